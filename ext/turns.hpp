// turns.hpp: one call at a time, in bursts, for verbs that take less time than it takes to wake a thread.
//
// A write that is not fsynced takes a few microseconds. When threads hand the GIL and RocksDB's write queue to each
// other between such calls, they spend most of their time in going to sleep and waking up. So a thread that comes back
// for its next call finds its turn free, and the others sleep on. The first in line looks again and again: it takes a
// turn that is free, unless somebody is making call after call, whom it lets go on for kPatience and then is given the
// turn at the end of a call. Whoever calls now and then goes to the head of the line and is given the turn at the end
// of the call that is under way: it does not wait for others to take their bursts.
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

class Turns;

// Of a thread: whose turn it had last, and how many there had been.
struct LastTurn {
  const Turns* of = nullptr;
  uint64_t taken = 0;
};
inline thread_local LastTurn own_last_turn;

class Turns {
 public:
  // For good: nobody waits any more. A thread that ended with a turn in its hands, because the interpreter was at its
  // end, is then not waited for.
  void end() noexcept {
    std::lock_guard lock(mutex_);
    is_over_.store(true);
    for (Waiter* waiter = first_; waiter != nullptr; waiter = waiter->next) waiter->cv.notify_one();
    first_ = last_ = nullptr;  // nobody may touch them from here on: they leave, and nobody joins the line any more
  }

  void take() noexcept {
    if (is_over_.load(std::memory_order_relaxed)) return;
    const bool is_rare = calls_now_and_then();
    if (try_take()) return begin(false);
    // A thread that was woken by the job which this call wrote comes a moment before the call has ended.
    for (int i = 0; i < kYields && !has_line_.load(std::memory_order_relaxed); ++i) {
      std::this_thread::yield();
      if (try_take()) return begin(false);
    }
    std::unique_lock lock(mutex_);
    if (is_over_.load()) return;
    Waiter self;
    line_up(&self, is_rare);
    if (wait(&self, is_rare, lock)) begin(is_rare);
  }

  void give_back() noexcept {
    if (is_over_.load(std::memory_order_relaxed)) return;
    own_last_turn = {this, taken_.load(std::memory_order_relaxed)};
    if (passes_on_ || is_wanted_.load()) {
      std::lock_guard lock(mutex_);
      if (first_ != nullptr && (passes_on_ || is_wanted_.load())) {
        Waiter* const next = first_;
        leave_line();
        next->has_turn = true;
        next->cv.notify_one();
        return;
      }
    }
    is_taken_.store(false, std::memory_order_release);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kFirstPause{100};
  static constexpr std::chrono::microseconds kLastPause{1000};
  static constexpr std::chrono::microseconds kBusyCall{10};  // one call in this time, and more are under way
  static constexpr std::chrono::microseconds kPatience{5000};
  static constexpr int kYields = 40;
  static constexpr uint64_t kOthersCalls = 20;

  struct Waiter {
    bool has_turn = false;
    Waiter* next = nullptr;
    std::condition_variable cv;
  };
  // Whether others have had many turns since this thread's last call ended.
  bool calls_now_and_then() const noexcept {
    return own_last_turn.of != this || taken_.load(std::memory_order_relaxed) - own_last_turn.taken > kOthersCalls;
  }

  bool try_take() noexcept { return !is_taken_.exchange(true, std::memory_order_acquire); }

  // The turn is this thread's. One that came to the head of the line interrupts a burst: others are not to wait for it.
  void begin(bool passes_on) noexcept {
    taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    passes_on_ = passes_on;
  }

  // The methods below want the mutex.

  void line_up(Waiter* self, bool at_head) noexcept {
    has_line_.store(true, std::memory_order_relaxed);
    if (at_head && first_ != nullptr) {
      self->next = first_;
      first_ = self;
    } else {
      (last_ == nullptr ? first_ : last_->next) = self;
      last_ = self;
    }
    if (at_head) is_wanted_.store(true);
  }

  // The first leaves: it has the turn, or is about to be told so. The next begins to look.
  void leave_line() noexcept {
    is_wanted_.store(false);
    first_ = first_->next;
    if (first_ == nullptr) {
      last_ = nullptr;
      has_line_.store(false, std::memory_order_relaxed);
    } else {
      first_->cv.notify_one();
    }
  }

  // False: there are no turns any more.
  bool wait(Waiter* self, bool is_rare, std::unique_lock<std::mutex>& lock) noexcept {
    const auto impatient_at = Clock::now() + (is_rare ? std::chrono::microseconds(0) : kPatience);
    auto pause = kFirstPause;
    uint64_t before = taken_.load(std::memory_order_relaxed);
    while (!self->has_turn) {
      if (is_over_.load()) return false;
      if (first_ != self) {
        self->cv.wait(lock, [&] { return first_ == self || self->has_turn || is_over_.load(); });
        before = taken_.load(std::memory_order_relaxed);
        continue;
      }
      if (Clock::now() >= impatient_at) is_wanted_.store(true);
      self->cv.wait_for(lock, pause, [&] { return self->has_turn; });
      if (self->has_turn || first_ != self) continue;
      const uint64_t now = taken_.load(std::memory_order_relaxed);
      const bool is_busy = (now - before) * kBusyCall > pause;
      if ((is_rare || !is_busy) && try_take()) {
        leave_line();
        return true;
      }
      before = now;
      pause = std::min(2 * pause, kLastPause);
    }
    return true;
  }

  std::atomic<bool> is_taken_{false};
  std::atomic<uint64_t> taken_{0};      // how many turns there were; written by who has one
  bool passes_on_ = false;              // likewise
  std::atomic<bool> is_wanted_{false};  // the first in line is to have the turn at the end of a call
  std::atomic<bool> has_line_{false};
  std::atomic<bool> is_over_{false};
  std::mutex mutex_;  // guards the line
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
};

}  // namespace telha
