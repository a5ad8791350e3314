// times.hpp: the times that a store has seen, and the creation times that it gives to jobs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace telha {

class Times {
 public:
  // Strictly increasing over all jobs of the store, across ties and steps of the clock.
  uint64_t next_created_at(int64_t now_us) noexcept {
    uint64_t last = last_created_at_.load();
    uint64_t next = 0;
    do {
      next = std::min(std::max(last + 1, static_cast<uint64_t>(now_us)), kMaxTimeUs);
    } while (!last_created_at_.compare_exchange_weak(last, next));
    return next;
  }

  // The latest time that stored jobs, a clean close or a verb bear witness to.
  uint64_t last_seen_us() const noexcept { return std::max(seen_us_.load(), last_created_at_.load()); }

  // Takes note of the time of a call; returns the latest of any call. A thread that has read the clock and then waited
  // must not decide as of an earlier time than others have.
  int64_t see(int64_t now_us) noexcept {
    uint64_t seen = seen_us_.load(std::memory_order_relaxed);
    const auto now = static_cast<uint64_t>(now_us);
    while (seen < now && !seen_us_.compare_exchange_weak(seen, now)) {
    }
    return static_cast<int64_t>(std::max(seen, now));
  }

  void restore_clock(uint64_t last_created_at, uint64_t seen_us) noexcept {
    last_created_at_.store(last_created_at);
    seen_us_.store(seen_us);
    has_clock_.store(true);
  }

  // Whether the times are what the store says, so that they may be written back.
  bool has_clock() const noexcept { return has_clock_.load(); }

 private:
  static constexpr uint64_t kMaxTimeUs = INT64_MAX;

  std::atomic<uint64_t> last_created_at_{0};
  std::atomic<uint64_t> seen_us_{0};
  std::atomic<bool> has_clock_{false};
};

}  // namespace telha
