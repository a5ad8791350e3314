// waiters.hpp: who sleeps until a job becomes ready, and who until one has ended.
//
// A waiter takes a ticket, looks for a job, and sleeps only if nothing was announced under its ticket since: what
// becomes ready between its look and its sleep cannot be missed. Tickets are kept per group of scopes, so that the
// traffic of one tenant does not keep the waiters of another awake; those for the ends of jobs, per group of ids. All
// methods want the store's mutex held.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace telha {

struct Waiter {
  const char* scope = nullptr;   // 32 bytes; null waits for any scope
  const void* kinds = nullptr;   // the filter, as scan.pxd knows it
  const char* job_id = nullptr;  // 16 bytes; for those who wait for an end, who look at nothing else
  bool woken = false;
  Waiter* next = nullptr;
  Waiter* previous = nullptr;
  std::condition_variable cv;
};

// Those asleep.
class Sleepers {
 public:
  using Lock = std::unique_lock<std::mutex>;

  Waiter* first() const noexcept { return first_; }

  static void wake(Waiter* waiter) noexcept {
    waiter->woken = true;
    waiter->cv.notify_one();
  }

  void wake_all() noexcept {
    for (Waiter* waiter = first_; waiter != nullptr; waiter = waiter->next) wake(waiter);
  }

  // Sleeps for at most `timeout_us`, or until woken. Returns whether it was. A waiter that was not may sleep again.
  bool sleep(Lock& lock, Waiter* self, int64_t timeout_us) noexcept {
    self->next = first_;
    self->previous = nullptr;
    if (first_ != nullptr) first_->previous = self;
    first_ = self;
    self->cv.wait_for(lock, std::chrono::microseconds(timeout_us), [self] { return self->woken; });
    if (self->previous != nullptr) self->previous->next = self->next;
    if (self->next != nullptr) self->next->previous = self->previous;
    if (first_ == self) first_ = self->next;
    return self->woken;
  }

 private:
  Waiter* first_ = nullptr;
};

// Who waits until a job is completed or dead.
class EndWaiters {
 public:
  uint64_t ticket(const char* job_id) const noexcept { return by_group_[group(job_id)]; }

  // That job is completed or dead. While nobody waits this is a count and a look.
  void announce(const char* job_id) noexcept {
    ++by_group_[group(job_id)];
    for (Waiter* waiter = asleep_.first(); waiter != nullptr; waiter = waiter->next) {
      if (std::memcmp(waiter->job_id, job_id, kIdBytes) == 0) Sleepers::wake(waiter);
    }
  }

  void wake_all() noexcept {
    for (auto& count : by_group_) ++count;
    asleep_.wake_all();
  }

  // As Waiters::sleep.
  bool sleep(Sleepers::Lock& lock, Waiter* self, uint64_t held_ticket, int64_t timeout_us) noexcept {
    return ticket(self->job_id) != held_ticket || asleep_.sleep(lock, self, timeout_us);
  }

 private:
  static constexpr size_t kIdBytes = 16;
  static constexpr size_t kGroups = 64;

  // By the last byte of an id, which is random.
  static size_t group(const char* job_id) noexcept { return static_cast<uint8_t>(job_id[kIdBytes - 1]) % kGroups; }

  std::array<uint64_t, kGroups> by_group_{};
  Sleepers asleep_;
};

class Waiters {
 public:
  using Lock = Sleepers::Lock;

  EndWaiters ends;

  uint64_t ticket(const char* scope) const noexcept { return scope ? by_group_[group(scope)] : all_; }

  // Something became ready in the scope (null: anywhere). The caller then wakes the waiters whom it concerns.
  void announce(const char* scope) noexcept {
    ++all_;
    if (scope != nullptr) {
      ++by_group_[group(scope)];
    } else {
      for (auto& count : by_group_) ++count;
    }
  }

  Waiter* first() const noexcept { return asleep_.first(); }
  static void wake(Waiter* waiter) noexcept { Sleepers::wake(waiter); }

  // Those who wait for an end as well.
  void wake_all() noexcept {
    announce(nullptr);
    asleep_.wake_all();
    ends.wake_all();
  }

  // Sleeps for at most `timeout_us`, or until woken, or not at all when the ticket is out of date. Returns whether it
  // is worth looking again.
  bool sleep(Lock& lock, Waiter* self, uint64_t held_ticket, int64_t timeout_us) noexcept {
    return ticket(self->scope) != held_ticket || asleep_.sleep(lock, self, timeout_us);
  }

 private:
  static constexpr size_t kGroups = 64;

  static size_t group(const char* scope) noexcept {
    uint64_t words[4];
    std::memcpy(words, scope, sizeof words);
    return (((words[0] ^ words[1] ^ words[2] ^ words[3]) * 0x9E3779B97F4A7C15u) >> 58) % kGroups;
  }

  uint64_t all_ = 0;
  std::array<uint64_t, kGroups> by_group_{};
  Sleepers asleep_;
};

}  // namespace telha
