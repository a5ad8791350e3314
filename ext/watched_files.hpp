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
#include "quota.hpp"

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

  WatchedFile(std::unique_ptr<rocksdb::FSWritableFile>&& file, std::shared_ptr<CountedFile> counted, Durable* durable,
              bool is_log) noexcept
      : FSWritableFileOwnerWrapper(std::move(file)), counted_(std::move(counted)), durable_(durable), is_log_(is_log) {}

  Status Append(const rocksdb::Slice& data, const Options& options, Debug* debug) override {
    return count(data, target()->Append(data, options, debug));
  }
  Status Append(const rocksdb::Slice& data, const Options& options, const rocksdb::DataVerificationInfo& info,
                Debug* debug) override {
    return count(data, target()->Append(data, options, info, debug));
  }
  Status RangeSync(uint64_t from, uint64_t bytes, const Options& options, Debug* debug) override {
    return heed(target()->RangeSync(from, bytes, options, debug));
  }
  Status Sync(const Options& options, Debug* debug) override {
    return reach([&] { return target()->Sync(options, debug); });
  }
  Status Fsync(const Options& options, Debug* debug) override {
    return reach([&] { return target()->Fsync(options, debug); });
  }

 private:
  Status count(const rocksdb::Slice& data, Status status) noexcept {
    if (status.ok()) counted_->written.fetch_add(data.size());
    return heed(std::move(status));
  }

  template <typename Sync>
  Status reach(Sync sync) noexcept {
    const uint64_t bytes = counted_->written.load();
    if (is_log_ && counted_->durable.load() == bytes) return Status::OK();  // a flush asks again for logs that ended
    Status status = sync();
    if (!status.ok()) {
      counted_->fail();
      return heed(std::move(status));
    }
    counted_->reach(bytes);
    return is_log_ ? status : rocksdb::status_to_io_status(durable_->write());
  }

  // Before RocksDB acts on it.
  Status heed(Status status) noexcept {
    if (!status.ok() && is_log_) durable_->note_doubt();
    return status;
  }

  std::shared_ptr<CountedFile> counted_;
  Durable* durable_;
  bool is_log_;  // otherwise a MANIFEST
};

// RocksDB fsyncs the directory when it has made files there.
class WatchedDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  WatchedDirectory(std::unique_ptr<rocksdb::FSDirectory>&& directory, Durable* durable) noexcept
      : FSDirectoryWrapper(std::move(directory)), durable_(durable) {}

  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    return name([&] { return FSDirectoryWrapper::Fsync(options, debug); });
  }
  rocksdb::IOStatus FsyncWithDirOptions(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug,
                                        const rocksdb::DirFsyncOptions& why) override {
    return name([&] { return FSDirectoryWrapper::FsyncWithDirOptions(options, debug, why); });
  }

 private:
  template <typename Fsync>
  rocksdb::IOStatus name(Fsync fsync) noexcept {
    const Durable::Unnamed unnamed = durable_->unnamed_logs();
    rocksdb::IOStatus status = fsync();
    durable_->note_named(unnamed, status.ok());
    return status;
  }

  Durable* durable_;
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
    rocksdb::Status settled = durable_->settle_logs(path);
    if (!settled.ok()) return rocksdb::status_to_io_status(std::move(settled));
    make_private(path);
    return watch(path, 0, tell_quota([&] { return target()->NewWritableFile(path, options, out, debug); }), out);
  }
  Status ReopenWritableFile(const std::string& path, const Options& options, WritableFile* out, Debug* debug) override {
    uint64_t bytes = 0;
    (void)target()->GetFileSize(path, options.io_options, &bytes, debug);
    make_private(path);
    return watch(path, bytes, tell_quota([&] { return target()->ReopenWritableFile(path, options, out, debug); }), out);
  }
  Status NewRandomAccessFile(const std::string& path, const Options& options,
                             std::unique_ptr<rocksdb::FSRandomAccessFile>* out, Debug* debug) override {
    Status status = target()->NewRandomAccessFile(path, options, out, debug);
    if (!status.ok() && path.ends_with("/CURRENT")) durable_->unread = status;
    return status;
  }
  Status RenameFile(const std::string& from, const std::string& to, const rocksdb::IOOptions& options,
                    Debug* debug) override {
    rocksdb::Status settled = durable_->settle_names(to);
    if (!settled.ok()) return rocksdb::status_to_io_status(std::move(settled));
    return tell_quota([&] { return target()->RenameFile(from, to, options, debug); });
  }
  Status LinkFile(const std::string& from, const std::string& to, const rocksdb::IOOptions& options,
                  Debug* debug) override {
    return tell_quota([&] { return target()->LinkFile(from, to, options, debug); });
  }
  Status NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                      std::unique_ptr<rocksdb::FSDirectory>* out, Debug* debug) override {
    Status status = target()->NewDirectory(path, options, out, debug);
    if (status.ok()) *out = std::make_unique<WatchedDirectory>(std::move(*out), durable_);
    return status;
  }
  Status LockFile(const std::string& path, const rocksdb::IOOptions& options, rocksdb::FileLock** lock,
                  Debug* debug) override {
    make_private(path);
    return target()->LockFile(path, options, lock, debug);
  }
  Status DeleteFile(const std::string& path, const rocksdb::IOOptions& options, Debug* debug) override {
    rocksdb::Status marked = durable_->forget(path);
    if (!marked.ok()) return rocksdb::status_to_io_status(std::move(marked));
    return target()->DeleteFile(path, options, debug);
  }

 private:
  Status watch(const std::string& path, uint64_t bytes, Status status, WritableFile* out) noexcept {
    if (!status.ok()) return status;
    *out = std::make_unique<QuotaFile>(std::move(*out));
    std::shared_ptr<CountedFile> counted;
    if (rocksdb::Status begun = durable_->begin(path, bytes, &counted); !begun.ok()) {
      out->reset();
      return rocksdb::status_to_io_status(std::move(begun));
    }
    if (counted == nullptr) return status;
    *out = std::make_unique<WatchedFile>(std::move(*out), std::move(counted), durable_, path.ends_with(".log"));
    return status;
  }

  Durable* durable_;
};

}  // namespace telha
