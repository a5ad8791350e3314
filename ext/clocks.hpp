// clocks.hpp: the clocks of the system.
#pragma once

#include <time.h>

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

}  // namespace telha
