// alarm.hpp: a sleep of one thread that others may cut short, and that knows of clocks that are set and of suspends.
#pragma once

#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "clocks.hpp"

namespace telha {

// A timer of the kernel on the wall clock. It also rings when that clock is set, in either direction, and when the
// machine wakes up: whoever sleeps by it then looks at the time again. Methods but open() want what it wakes held by
// the caller's mutex, save wait().
class Alarm {
 public:
  Alarm() noexcept = default;
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm() {
    if (timer_ >= 0) ::close(timer_);
  }

  // Returns 0 or an errno.
  int open() noexcept {
    if (timer_ < 0) timer_ = ::timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC);
    return timer_ < 0 ? errno : 0;
  }

  // To ring after so many microseconds, at once for none, never for kNever. What was set before is forgotten.
  void set(int64_t left_us) noexcept {
    constexpr int kOnSet = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;
    for (int flags = kOnSet;;) {
      int64_t wall_us = 0, monotonic_ns = 0;
      system_clocks(&wall_us, &monotonic_ns);
      itimerspec at{};
      if (left_us <= 0) {
        at.it_value.tv_nsec = 1;  // long past
      } else if (left_us != kNever) {
        const int64_t ring_us = wall_us + (left_us < kLongest ? left_us : kLongest);
        at.it_value.tv_sec = ring_us / 1'000'000;
        at.it_value.tv_nsec = ring_us % 1'000'000 * 1000;
      }
      if (::timerfd_settime(timer_, flags, &at, nullptr) == 0) return;
      // ECANCELED: the clock was set meanwhile. EINVAL: a kernel that cannot tell.
      if (errno == EINVAL && flags == kOnSet) {
        flags = TFD_TIMER_ABSTIME;
      } else if (errno != ECANCELED) {
        return;
      }
    }
  }

  // Sleeps until it rings; may return early.
  void wait() noexcept {
    uint64_t rung = 0;
    (void)!::read(timer_, &rung, sizeof rung);
  }

  static constexpr int64_t kNever = INT64_MAX;

 private:
  static constexpr int64_t kLongest = int64_t{24 * 3600} * 1'000'000;  // whoever wakes looks again

  int timer_ = -1;
};

}  // namespace telha
