// turns.hpp: one call at a time, in bursts, for verbs that take less time than it takes to wake a thread.
//
// A write that is not fsynced takes a few microseconds. When threads hand the GIL and RocksDB's write queue to each
// other between such calls, they spend most of their time in going to sleep and waking up. So a thread that comes back
// for its next call finds its turn free, and the others sleep on. The first in line looks again and again: it takes a
// turn that is free, unless somebody is making call after call, whom it lets go on until kPatience is over and then is
// given the turn at the end of a call.
//
// A turn is taken without the GIL and given back with it, before any Python code runs: a thread that waits for the GIL
// with a turn in its hands is not waited for by one that holds the GIL.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace telha {

class Turns {
 public:
  void take() noexcept {
    if (!is_taken_.exchange(true, std::memory_order_acquire)) return count();
    // A thread that was woken by the job which this call wrote comes a moment before the call has ended.
    for (int i = 0; i < kYields && !has_line_.load(std::memory_order_relaxed); ++i) {
      std::this_thread::yield();
      if (!is_taken_.exchange(true, std::memory_order_acquire)) return count();
    }
    Waiter self;
    std::unique_lock lock(mutex_);
    has_line_.store(true, std::memory_order_relaxed);
    (last_ == nullptr ? first_ : last_->next) = &self;
    last_ = &self;
    self.cv.wait(lock, [&] { return first_ == &self; });
    const auto impatient_at = Clock::now() + kPatience;
    uint64_t before = taken_.load(std::memory_order_relaxed);
    for (auto pause = kFirstPause; !self.cv.wait_for(lock, pause, [&] { return self.has_turn; });) {
      const uint64_t now = taken_.load(std::memory_order_relaxed);
      const bool is_busy = (now - before) * kBusyCall > pause;
      if (!is_busy && !is_taken_.exchange(true, std::memory_order_acquire)) break;
      before = now;
      pause = std::min(2 * pause, kLastPause);
      if (Clock::now() >= impatient_at) is_wanted_.store(true);
    }
    is_wanted_.store(false);
    count();
    first_ = self.next;
    if (first_ == nullptr) {
      last_ = nullptr;
      has_line_.store(false, std::memory_order_relaxed);
    } else {
      first_->cv.notify_one();
    }
  }

  void give_back() noexcept {
    if (is_wanted_.load()) {
      std::lock_guard lock(mutex_);
      if (is_wanted_.load()) {
        is_wanted_.store(false);
        first_->has_turn = true;
        first_->cv.notify_one();
        return;
      }
    }
    is_taken_.store(false, std::memory_order_release);
  }

 private:
  void count() noexcept { taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kFirstPause{100};
  static constexpr std::chrono::microseconds kLastPause{1000};
  static constexpr std::chrono::microseconds kBusyCall{10};  // one call in this time, and more are under way
  static constexpr std::chrono::microseconds kPatience{5000};

  static constexpr int kYields = 40;

  struct Waiter {
    bool has_turn = false;
    Waiter* next = nullptr;
    std::condition_variable cv;
  };

  std::atomic<bool> is_taken_{false};
  std::atomic<uint64_t> taken_{0};      // how many turns there were; written by who has one
  std::atomic<bool> is_wanted_{false};  // the first in line has waited long enough
  std::atomic<bool> has_line_{false};
  std::mutex mutex_;  // guards the line
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
};

}  // namespace telha
