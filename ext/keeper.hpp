// keeper.hpp: a thread that renews leases while their holders work, in need of nobody: no handler, no interpreter.
//
// telha_queue/keeper_thread.py is its readable twin. It knows tokens, deadlines and clocks, and how a store is reached
// is told to it: it knows nothing of RocksDB, and nothing of Python. Leases run on the time of the queue, bounds on the
// monotonic clock, for which a suspended machine does not age.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "alarm.hpp"
#include "clocks.hpp"
#include "hold.hpp"

namespace telha {

// How a keeper reaches a store.
struct Renewer {
  void* store = nullptr;
  // Renews up to kMaxBatch in one write, without a lock of the keeper's. False when the store is closed, for good.
  bool (*renew)(void* store, Renewal* renewals, size_t count, int64_t now_us) = nullptr;
  // The latest time that the store has seen; takes no lock.
  int64_t (*seen_us)(void* store) = nullptr;
};

// Safe to use from many threads. In a forked child, which has not its thread, nothing may be called but is_forked().
class Keeper {
 public:
  static constexpr size_t kMaxBatch = 1000;
  static constexpr int64_t kShortestPauseUs = 1000;  // between two renewals, however short a ttl is

  // The store outlives it. `now_us`: the time of the queue.
  Keeper(const Renewer& renewer, int64_t now_us) noexcept : renewer_(renewer) {
    int64_t wall_us = 0;
    time_.now_us = now_us;
    system_clocks(&wall_us, &time_.monotonic_ns);
  }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() { close(); }

  bool is_forked() const noexcept { return ::getpid() != pid_; }

  // Begins to renew; the first call starts the thread. Returns 0, the errno that is in the way of it, or kClosed.
  int hold(const Held* holds, size_t count) noexcept {
    std::lock_guard lock(mutex_);
    if (is_closed_) return kClosed;
    if (const int error = start(); error != 0) return error;
    int64_t first_us = INT64_MAX;
    const int64_t now_us = now(), bounds_us = Hold::monotonic_us();
    for (size_t i = 0; i < count; ++i) {
      holds[i]->keeper_ = this;
      holds[i]->at_ = holds_.size();
      holds_.push_back(holds[i]);
      first_us = std::min(first_us, left_us(*holds[i], now_us, bounds_us));
    }
    if (bounds_us + std::max<int64_t>(first_us, 0) < wakes_at_us_) wake_in(first_us);
    return 0;
  }

  // Stops to renew: no renewal begins afterwards. One that is over already is not told of any more.
  void end(const Held& held) noexcept {
    if (held->keeper_ != this) return;
    std::lock_guard lock(mutex_);
    if (held->over() == Over::kNot) {
      take_out(held, Over::kEnded);
    } else {
      std::erase(over_, held);
    }
  }

  // Fills in what came to be over and was not ended, each once; sleeps until there is some, for at most `timeout_us`.
  // False when it is closed and there is none.
  bool wait(int64_t timeout_us, std::vector<Held>* found) noexcept {
    std::unique_lock lock(mutex_);
    found_.wait_for(lock, std::chrono::microseconds(timeout_us), [this] { return is_closed_ || !over_.empty(); });
    found->swap(over_);
    return !is_closed_ || !found->empty();
  }

  // Ends all holds, wakes those who wait, and waits for the thread.
  void close() noexcept {
    {
      std::lock_guard lock(mutex_);
      end_all();
      if (is_started_) alarm_.set(0);
    }
    std::lock_guard lock(joining_);
    if (thread_.joinable()) thread_.join();
  }

  static constexpr int kClosed = -1;

 private:
  int start() noexcept {
    if (is_started_) return 0;
    if (const int error = alarm_.open(); error != 0) return error;
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {  // no room for another thread
      return error.code().value();
    }
    is_started_ = true;
    return 0;
  }

  void run() noexcept {
    ::pthread_setname_np(::pthread_self(), "telha-keeper");
    std::vector<Held> due;
    std::vector<Renewal> renewals;
    std::unique_lock lock(mutex_);
    while (!is_closed_) {
      wakes_at_us_ = 0;  // it is awake: nobody need wake it
      const int64_t now_us = now(), bounds_us = Hold::monotonic_us();
      drop_bounded(bounds_us);
      find_due(now_us, &due);
      renewals.clear();
      for (const Held& held : due) renewals.push_back(held->renewal());
      if (due.empty()) {
        int64_t first_us = INT64_MAX;
        for (const Held& held : holds_) first_us = std::min(first_us, left_us(*held, now_us, bounds_us));
        wake_in(first_us);
        lock.unlock();
        alarm_.wait();
        lock.lock();
        continue;
      }
      lock.unlock();
      const bool is_open = renewer_.renew(renewer_.store, renewals.data(), renewals.size(), now_us);
      lock.lock();
      const int64_t renewed_us = now();
      for (size_t i = 0; i < due.size(); ++i) note(due[i], renewals[i], renewed_us);
      due.clear();
      if (!is_open) end_all();
    }
  }

  // The time of the queue.
  int64_t now() noexcept {
    int64_t wall_us = 0, monotonic_ns = 0;
    system_clocks(&wall_us, &monotonic_ns);
    time_.see(renewer_.seen_us(renewer_.store));
    return time_.at(wall_us, monotonic_ns);
  }

  static int64_t left_us(const Hold& hold, int64_t now_us, int64_t bounds_us) noexcept {
    return std::min(hold.renew_at_us_ - now_us, hold.bound_us() - bounds_us);
  }

  void wake_in(int64_t left_us) noexcept {
    const bool is_bounded = left_us < INT64_MAX / 2;
    wakes_at_us_ = is_bounded ? Hold::monotonic_us() + std::max<int64_t>(left_us, 0) : INT64_MAX;
    alarm_.set(is_bounded ? left_us : Alarm::kNever);
  }

  void drop_bounded(int64_t bounds_us) noexcept {
    for (size_t i = holds_.size(); i-- > 0;) {  // backwards: the last one takes the place of one that is taken out
      const Held held = holds_[i];
      if (held->bound_us() > bounds_us) continue;
      take_out(held, held->times_out_at_us_ <= bounds_us ? Over::kTimeout : Over::kStalled);
    }
  }

  // Those to renew now, and with them those that would be next, the longest due first.
  void find_due(int64_t now_us, std::vector<Held>* due) noexcept {
    const auto is_due = [now_us](const Held& held) { return held->renew_at_us_ <= now_us; };
    if (std::none_of(holds_.begin(), holds_.end(), is_due)) return;
    for (const Held& held : holds_) {
      if (held->renew_at_us_ <= now_us + held->ttl_us_ / 10) due->push_back(held);
    }
    if (due->size() <= kMaxBatch) return;
    const auto end = due->begin() + kMaxBatch;
    std::nth_element(due->begin(), end, due->end(),
                     [](const Held& left, const Held& right) { return left->renew_at_us_ < right->renew_at_us_; });
    due->erase(end, due->end());
  }

  // What became of a renewal; of one that was ended meanwhile that is nobody's concern.
  void note(const Held& held, const Renewal& renewal, int64_t now_us) noexcept {
    if (held->over() != Over::kNot) return;
    switch (renewal.renewed) {
      case Renewed::kKept:
        if (renewal.ttl_us > 0) held->ttl_us_ = renewal.ttl_us;  // a record of an older writer has none
        held->renew_at_us_ = std::max(Hold::renewal_of(renewal.deadline_us, held->ttl_us_), now_us + kShortestPauseUs);
        break;
      case Renewed::kFailed: held->renew_at_us_ = now_us + std::max(held->ttl_us_ / 10, kShortestPauseUs); break;
      case Renewed::kLost: take_out(held, Over::kLost); break;
      case Renewed::kCompleted: take_out(held, Over::kEnded); break;
    }
  }

  void take_out(Held held, Over why) noexcept {
    held->over_.store(why, std::memory_order_release);
    holds_.back()->at_ = held->at_;
    std::swap(holds_[held->at_], holds_.back());
    holds_.pop_back();
    if (why == Over::kEnded) return;
    over_.push_back(std::move(held));
    found_.notify_all();
  }

  void end_all() noexcept {
    is_closed_ = true;
    while (!holds_.empty()) take_out(holds_.back(), Over::kEnded);
    found_.notify_all();
  }

  const Renewer renewer_;
  const pid_t pid_ = ::getpid();
  std::mutex joining_;
  std::mutex mutex_;  // guards what follows; never held while a renewal is under way
  std::condition_variable found_;
  Alarm alarm_;
  std::thread thread_;
  PacedTime time_;
  std::vector<Held> holds_;
  std::vector<Held> over_;   // and not told yet
  int64_t wakes_at_us_ = 0;  // on the monotonic clock
  bool is_started_ = false;
  bool is_closed_ = false;
};

}  // namespace telha
