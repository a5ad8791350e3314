// hold.hpp: one lease that a keeper keeps: its token, when it is to be renewed, and when no longer. See keeper.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "bytes.hpp"
#include "clocks.hpp"

namespace telha {

enum class Renewed : int { kKept, kLost, kCompleted, kFailed };

// One lease to renew, and what became of it. The spans live as long as the call.
struct Renewal {
  const char* scope;      // 32 bytes, or null for any
  const char* job_id;     // 16 bytes
  const char* known_key;  // 58 bytes, or null
  Bytes worker_id;
  uint64_t lease_generation;
  Renewed renewed = Renewed::kFailed;
  int64_t deadline_us = 0;  // of a lease that was kept, here and below
  int64_t ttl_us = 0;
};

enum class Over : int { kNot, kLost, kTimeout, kStalled, kEnded };

// One lease that is kept.
class Hold {
 public:
  // Copies what it is given. A deadline below 0 is not known.
  Hold(const Renewal& lease, int64_t timeout_us, int64_t progress_us) noexcept
      : worker_id_(lease.worker_id.data, lease.worker_id.size),
        lease_generation_(lease.lease_generation),
        ttl_us_(lease.ttl_us),
        renew_at_us_(lease.deadline_us < 0 ? 0 : renewal_of(lease.deadline_us, lease.ttl_us)),
        times_out_at_us_(monotonic_us() + timeout_us),
        progress_us_(progress_us) {
    std::memcpy(job_id_, lease.job_id, sizeof job_id_);
    has_scope_ = lease.scope != nullptr;
    knows_key_ = lease.known_key != nullptr;
    if (has_scope_) std::memcpy(key_, lease.scope, 32);
    if (knows_key_) std::memcpy(key_, lease.known_key, sizeof key_);
    progress();
  }

  Over over() const noexcept { return over_.load(std::memory_order_acquire); }

  // The holder is getting on. Any thread may say so at any time.
  void progress() noexcept {
    if (progress_us_ >= 0) stalls_at_us_.store(monotonic_us() + progress_us_, std::memory_order_relaxed);
  }

  void* face = nullptr;  // whoever made it may keep something here

  static int64_t monotonic_us() noexcept {
    int64_t wall_us = 0, monotonic_ns = 0;
    system_clocks(&wall_us, &monotonic_ns);
    return monotonic_ns / 1000;
  }

 private:
  friend class Keeper;

  // All below is guarded by the keeper's mutex, save what never changes.
  static int64_t renewal_of(int64_t deadline_us, int64_t ttl_us) noexcept { return deadline_us - ttl_us + ttl_us / 3; }

  Renewal renewal() const noexcept {
    return {.scope = has_scope_ ? key_ : nullptr,
            .job_id = job_id_,
            .known_key = knows_key_ ? key_ : nullptr,
            .worker_id = {worker_id_.data(), worker_id_.size()},
            .lease_generation = lease_generation_};
  }

  // When a bound is reached.
  int64_t bound_us() const noexcept {
    return std::min(times_out_at_us_, stalls_at_us_.load(std::memory_order_relaxed));
  }

  char job_id_[16];
  char key_[58];
  bool has_scope_ = false, knows_key_ = false;
  const std::string worker_id_;
  const uint64_t lease_generation_;
  int64_t ttl_us_;
  int64_t renew_at_us_;
  const int64_t times_out_at_us_;
  const int64_t progress_us_;  // below 0: without
  std::atomic<int64_t> stalls_at_us_{INT64_MAX};
  std::atomic<Over> over_{Over::kNot};
  const void* keeper_ = nullptr;
  size_t at_ = 0;  // among the keeper's holds, while it is not over
};

using Held = std::shared_ptr<Hold>;

inline Held make_hold(const Renewal& lease, int64_t timeout_us, int64_t progress_us) noexcept {
  return std::make_shared<Hold>(lease, timeout_us, progress_us);
}

}  // namespace telha
