// clocks.hpp: the clocks of the system.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>

namespace telha {

// The wall clock, in microseconds since the epoch, and one that is never set, in nanoseconds since whenever.
inline void system_clocks(int64_t* wall_us, int64_t* monotonic_ns) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *wall_us = int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *monotonic_ns = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Time that never steps back: while the wall clock is behind the latest time seen, it goes on at the pace of the
// monotonic clock.
struct PacedTime {
  int64_t now_us = 0;
  int64_t monotonic_ns = 0;

  // The time when the system's clocks read so.
  int64_t at(int64_t wall_us, int64_t monotonic_read_ns) noexcept {
    const int64_t elapsed_us = (monotonic_read_ns - monotonic_ns) / 1000;
    if (elapsed_us > 0) {
      monotonic_ns += 1000 * elapsed_us;  // what is left counts next time, however often one asks
      see(now_us + std::min(elapsed_us, INT64_MAX - now_us));
    }
    return see(wall_us);
  }

  // Takes note of a time; returns the time now.
  int64_t see(int64_t seen_us) noexcept { return now_us = std::max(now_us, seen_us); }
};

}  // namespace telha
