// stall.hpp: writes that RocksDB would hold up for ever. When a flush has no room on the disk, RocksDB waits until
// there is some, and has every writer wait with it once its buffers are full. A caller is told instead.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

namespace telha {

// What went wrong in the background and is not over. RocksDB's threads tell it.
class Background : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) override {
    std::lock_guard lock(mutex_);
    // What follows from a full disk does not say that it does.
    if (!error_.IsNoSpace() || !error->IsIOError()) error_ = *error;
  }
  void OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo& info) override {
    if (!info.new_bg_error.ok()) return;
    std::lock_guard lock(mutex_);
    error_ = rocksdb::Status();
  }

  rocksdb::Status error() const noexcept {
    std::lock_guard lock(mutex_);
    return error_;
  }

  // What is behind an error that a call met.
  rocksdb::Status cause_of(rocksdb::Status status) const noexcept {
    rocksdb::Status error = this->error();
    return error.IsNoSpace() && status.IsIOError() && !status.IsNoSpace() ? error : status;
  }

 private:
  mutable std::mutex mutex_;
  rocksdb::Status error_;
};

// A write that waits while RocksDB catches up with its work, but not while that work fails: then nothing is written,
// and the answer is why.
inline rocksdb::Status write_unless_stuck(rocksdb::DB* db, const Background& background, bool sync,
                                          rocksdb::WriteBatch* batch) noexcept {
  rocksdb::WriteOptions options;
  options.sync = sync;
  options.no_slowdown = true;
  for (;;) {
    rocksdb::Status status = db->Write(options, batch);
    if (status.ok()) return status;
    if (!status.IsIncomplete()) return background.cause_of(std::move(status));
    rocksdb::Status error = background.error();
    if (!error.ok()) return error;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace telha
