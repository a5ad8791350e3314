// failure.hpp: the first write that failed, and when to try again.
//
// After a failed write every later one is refused with its cause: the log's tail is then in doubt, and RocksDB with
// assertions may abort when it is synced or appended to again. Opening the database anew ends that.
#pragma once

#include <rocksdb/status.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>

#include "fault.hpp"

namespace telha {

class Failure {
 public:
  bool is_set() const noexcept { return is_set_.load(std::memory_order_acquire); }

  Fault fault() const noexcept {
    std::lock_guard lock(mutex_);
    Fault fault = Fault::of(Code::kFailed);
    fault.cause = std::make_shared<rocksdb::Status>(first_);
    return fault;
  }

  void remember(const rocksdb::Status& status) noexcept {
    std::lock_guard lock(mutex_);
    if (!is_set_.exchange(true)) first_ = status;
  }

  // The newest cause takes the place of the first: it is why the store cannot be written to now.
  void replace(const rocksdb::Status& status) noexcept {
    std::lock_guard lock(mutex_);
    first_ = status;
    is_set_.store(true);
  }

  void clear() noexcept {
    std::lock_guard lock(mutex_);
    first_ = rocksdb::Status();
    is_set_.store(false);
  }

  // Whether the caller is the one to try again: one of all threads, at most once a second.
  bool claim_try() noexcept {
    const int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
    int64_t not_before = next_try_.load();
    return is_set() && now >= not_before && next_try_.compare_exchange_strong(not_before, now + kPause.count());
  }

 private:
  static constexpr std::chrono::steady_clock::duration kPause = std::chrono::seconds(1);

  mutable std::mutex mutex_;
  std::atomic<bool> is_set_{false};
  rocksdb::Status first_;
  std::atomic<int64_t> next_try_{INT64_MIN};
};

}  // namespace telha
