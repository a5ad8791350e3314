// quota.hpp: a quota that is used up, told as a full disk is. RocksDB takes EDQUOT for any error of the disk.
#pragma once

#include <rocksdb/file_system.h>

#include <cerrno>
#include <memory>
#include <utility>

namespace telha {

// `call` reaches the file system.
template <typename Call>
rocksdb::IOStatus tell_quota(Call call) noexcept {
  errno = 0;
  rocksdb::IOStatus status = call();
  if (status.ok() || errno != EDQUOT) return status;
  rocksdb::IOStatus full = rocksdb::IOStatus::NoSpace(status.ToString());
  full.SetRetryable(true);  // as RocksDB's own
  return full;
}

class QuotaFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using Status = rocksdb::IOStatus;
  using Options = rocksdb::IOOptions;
  using Debug = rocksdb::IODebugContext;

  explicit QuotaFile(std::unique_ptr<rocksdb::FSWritableFile>&& file) noexcept
      : FSWritableFileOwnerWrapper(std::move(file)) {}

  Status Append(const rocksdb::Slice& data, const Options& options, Debug* debug) override {
    return tell_quota([&] { return target()->Append(data, options, debug); });
  }
  Status Append(const rocksdb::Slice& data, const Options& options, const rocksdb::DataVerificationInfo& info,
                Debug* debug) override {
    return tell_quota([&] { return target()->Append(data, options, info, debug); });
  }
  Status Sync(const Options& options, Debug* debug) override {
    return tell_quota([&] { return target()->Sync(options, debug); });
  }
  Status Fsync(const Options& options, Debug* debug) override {
    return tell_quota([&] { return target()->Fsync(options, debug); });
  }
  Status Close(const Options& options, Debug* debug) override {
    return tell_quota([&] { return target()->Close(options, debug); });
  }
};

}  // namespace telha
