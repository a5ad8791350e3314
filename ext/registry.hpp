// registry.hpp: every store of the process, so that none is open when the process runs its static destructors.
//
// RocksDB's own are among them: a store that is open, or half opened by a daemon thread, crashes the process then.
#pragma once

#include <condition_variable>
#include <mutex>
#include <unordered_set>

namespace telha {

template <typename Store>
class Registry {
 public:
  // Lives as long as the process: threads may still ask when destructors run.
  static Registry& of_process() noexcept {
    static Registry* const registry = new Registry();
    return *registry;
  }

  // Around the opening of a store; false when the process is ending and nothing may be opened any more.
  bool begin_open(Store* store) noexcept {
    std::lock_guard lock(mutex_);
    if (is_ending_) return false;
    stores_.insert(store);
    ++opening_;
    return true;
  }

  void end_open() noexcept {
    std::lock_guard lock(mutex_);
    if (--opening_ == 0) opened_.notify_all();
  }

  // Before a store is freed; waits while end() may be closing it.
  void forget(Store* store) noexcept {
    std::lock_guard lock(mutex_);
    stores_.erase(store);
  }

  // Refuses to open more, waits for those that are half open, and closes all. Returns how many did not close well.
  size_t end() noexcept {
    std::unique_lock lock(mutex_);
    is_ending_ = true;
    opened_.wait(lock, [this] { return opening_ == 0; });
    size_t failed = 0;
    for (Store* store : stores_) failed += store->close().ok() ? 0 : 1;
    return failed;
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  std::unordered_set<Store*> stores_;
  size_t opening_ = 0;
  bool is_ending_ = false;
};

}  // namespace telha
