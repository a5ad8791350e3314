// turns.hpp: one call at a time, in bursts, for verbs that take less time than it takes to wake a thread.
//
// A write that is not fsynced takes a few microseconds. When threads hand the GIL and RocksDB's write queue to each
// other between such calls, they spend most of their time in going to sleep and waking up. So a thread that comes back
// for its next call finds its turn free, and the others sleep on: the first in line looks again every kPoll, costs the
// others nothing meanwhile, and after kPatience is given the turn by whoever ends a call next.
//
// A turn is taken without the GIL and given back with it, before any Python code runs: a thread that waits for the GIL
// with a turn in its hands is not waited for by one that holds the GIL.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace telha {

class Turns {
 public:
  void take() noexcept {
    if (!is_taken_.exchange(true, std::memory_order_acquire)) return;
    Waiter self;
    std::unique_lock lock(mutex_);
    (last_ == nullptr ? first_ : last_->next) = &self;
    last_ = &self;
    self.cv.wait(lock, [&] { return first_ == &self; });
    const auto impatient_at = Clock::now() + kPatience;
    while (!self.has_turn && is_taken_.exchange(true, std::memory_order_acquire)) {
      if (Clock::now() >= impatient_at) is_wanted_.store(true);
      self.cv.wait_for(lock, kPoll, [&] { return self.has_turn; });
    }
    is_wanted_.store(false);
    first_ = self.next;
    if (first_ == nullptr) {
      last_ = nullptr;
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
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kPoll{100};
  static constexpr std::chrono::microseconds kPatience{1000};

  struct Waiter {
    bool has_turn = false;
    Waiter* next = nullptr;
    std::condition_variable cv;
  };

  std::atomic<bool> is_taken_{false};
  std::atomic<bool> is_wanted_{false};  // the first in line has waited long enough
  std::mutex mutex_;                    // guards the line
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
};

}  // namespace telha
