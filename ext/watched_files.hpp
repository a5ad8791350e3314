// watched_files.hpp: RocksDB's way to the file system: makes files that are closed to others, and keeps count of what
// is on disk. What is done with the count is durable.hpp's affair.
#pragma once

#include <fcntl.h>
#include <rocksdb/file_system.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "durable.hpp"

namespace telha {

// Makes a file that only the owner may read, before RocksDB opens it with a mode of its own. Whatever keeps it from
// being made will keep RocksDB too, which then says so. A file that is there is not opened: closing LOCK again would
// drop a lock that this process may hold on it.
inline void make_private(const std::string& path) noexcept {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file >= 0) {
    (void)::fchmod(file, 0600);  // whatever the umask is
    ::close(file);
  } else {
    (void)::chmod(path.c_str(), 0600);
  }
}

// Files of an earlier release may be readable to others.
inline void close_to_others(const std::string& directory, const std::vector<std::string>& names) noexcept {
  for (const std::string& name : names) {
    const std::string path = directory + '/' + name;
    struct stat status{};
    const bool is_open = ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 077) != 0;
    if (is_open) (void)::chmod(path.c_str(), 0600);
  }
}

class WatchedFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using Status = rocksdb::IOStatus;
  using Options = rocksdb::IOOptions;
  using Debug = rocksdb::IODebugContext;

  WatchedFile(std::unique_ptr<rocksdb::FSWritableFile>&& file, std::shared_ptr<FileBytes> bytes,
              Durable* marks_each) noexcept
      : FSWritableFileOwnerWrapper(std::move(file)), bytes_(std::move(bytes)), marks_each_(marks_each) {}

  Status Append(const rocksdb::Slice& data, const Options& options, Debug* debug) override {
    return count(data, target()->Append(data, options, debug));
  }
  Status Append(const rocksdb::Slice& data, const Options& options, const rocksdb::DataVerificationInfo& info,
                Debug* debug) override {
    return count(data, target()->Append(data, options, info, debug));
  }
  Status Sync(const Options& options, Debug* debug) override {
    const uint64_t bytes = bytes_->written.load();
    return reach(bytes, target()->Sync(options, debug));
  }
  Status Fsync(const Options& options, Debug* debug) override {
    const uint64_t bytes = bytes_->written.load();
    return reach(bytes, target()->Fsync(options, debug));
  }

 private:
  Status count(const rocksdb::Slice& data, Status status) noexcept {
    if (status.ok()) bytes_->written.fetch_add(data.size());
    return status;
  }

  Status reach(uint64_t bytes, Status status) noexcept {
    if (!status.ok()) return status;
    bytes_->reach(bytes);
    if (marks_each_ == nullptr) return status;
    const rocksdb::Status marked = marks_each_->write();
    return marked.ok() ? status : Status::IOError(marked.ToString());
  }

  std::shared_ptr<FileBytes> bytes_;
  Durable* marks_each_;  // of a MANIFEST; null for logs
};

class WatchedFiles final : public rocksdb::FileSystemWrapper {
 public:
  using Status = rocksdb::IOStatus;
  using Options = rocksdb::FileOptions;
  using Debug = rocksdb::IODebugContext;
  using WritableFile = std::unique_ptr<rocksdb::FSWritableFile>;

  explicit WatchedFiles(Durable* durable) : FileSystemWrapper(rocksdb::FileSystem::Default()), durable_(durable) {}

  const char* Name() const override { return "TelhaWatchedFiles"; }

  Status NewWritableFile(const std::string& path, const Options& options, WritableFile* out, Debug* debug) override {
    const rocksdb::Status settled = durable_->settle_logs(path);
    if (!settled.ok())
      return settled.IsNoSpace() ? Status::NoSpace(settled.ToString()) : Status::IOError(settled.ToString());
    make_private(path);
    return watch(path, 0, target()->NewWritableFile(path, options, out, debug), out);
  }
  Status ReopenWritableFile(const std::string& path, const Options& options, WritableFile* out, Debug* debug) override {
    uint64_t bytes = 0;
    (void)target()->GetFileSize(path, options.io_options, &bytes, debug);
    make_private(path);
    return watch(path, bytes, target()->ReopenWritableFile(path, options, out, debug), out);
  }
  Status LockFile(const std::string& path, const rocksdb::IOOptions& options, rocksdb::FileLock** lock,
                  Debug* debug) override {
    make_private(path);
    return target()->LockFile(path, options, lock, debug);
  }
  Status DeleteFile(const std::string& path, const rocksdb::IOOptions& options, Debug* debug) override {
    const rocksdb::Status marked = durable_->forget(path);
    if (!marked.ok()) return Status::IOError(marked.ToString());
    return target()->DeleteFile(path, options, debug);
  }

 private:
  Status watch(const std::string& path, uint64_t bytes, Status status, WritableFile* out) noexcept {
    if (!status.ok()) return status;
    std::shared_ptr<FileBytes> counted = durable_->begin(path, bytes);
    if (counted == nullptr) return status;
    const bool is_log = path.ends_with(".log");
    *out = std::make_unique<WatchedFile>(std::move(*out), std::move(counted), is_log ? nullptr : durable_);
    return status;
  }

  Durable* durable_;
};

}  // namespace telha
