// fork.hpp: notices that this process is a forked copy of one that had a store open.
//
// RocksDB does not survive fork: its background threads are gone in the child, an open store writes into the parent's
// log, and even a store opened afresh in the child hangs at its first flush. So once a store was ever opened, a forked
// child may use none: every call is refused, and nothing of the copy is closed or freed.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace telha::fork {

// Held by a fork, and by whoever takes or drops a lock file: no child is born with a descriptor that is not tracked.
inline std::mutex locks_mutex;

// An open lock file stays locked for as long as any copy of its descriptor is open, so the child must drop its copies,
// or a forked worker would keep the directory locked after its parent has died. Fixed size: the handler that runs in
// the child may not allocate. Stores beyond it are still guarded; only their copies are not dropped.
inline constexpr size_t kTrackedLocks = 256;
inline std::array<std::atomic<int>, kTrackedLocks> tracked_locks{};  // descriptor + 1; 0 is a free slot
inline std::atomic<bool> opened{false};
inline std::atomic<bool> child{false};

// RocksDB's static destructors join threads that a forked child does not have: they hang or crash it. So the child ends
// as it would have, with the same status and its streams flushed, but without running them.
inline void end_without_destructors(int status, void*) noexcept {
  std::fflush(nullptr);
  ::_exit(status);
}

// Called in a child that is about to exit: handlers run last one first. Not called by the fork itself, for a thread of
// the parent may have been registering a handler of its own, and the lock for that is then never given back in here.
inline void skip_destructors() noexcept { (void)::on_exit(end_without_destructors, nullptr); }

inline void before_fork() noexcept { locks_mutex.lock(); }
inline void in_parent() noexcept { locks_mutex.unlock(); }

inline void in_child() noexcept {
  locks_mutex.unlock();
  if (!opened.load(std::memory_order_relaxed) || child.exchange(true, std::memory_order_relaxed)) return;
  for (auto& slot : tracked_locks) {
    const int stored = slot.exchange(0, std::memory_order_relaxed);
    if (stored != 0) ::close(stored - 1);
  }
}

// Whether stores are out of bounds in this process. Cheap enough for every call.
inline bool is_child() noexcept { return child.load(std::memory_order_relaxed); }

// Called once, when the module is loaded: a process that forks while its first store is being opened is watched too.
inline int watch() noexcept { return ::pthread_atfork(before_fork, in_parent, in_child); }

// Called before a store is opened. From then on the process has what a fork would tear.
inline void note_open() noexcept { opened.store(true, std::memory_order_relaxed); }

inline void track_lock(int descriptor) noexcept {
  for (auto& slot : tracked_locks) {
    int expected = 0;
    if (slot.compare_exchange_strong(expected, descriptor + 1)) return;
  }
}

inline void untrack_lock(int descriptor) noexcept {
  for (auto& slot : tracked_locks) {
    int expected = descriptor + 1;
    if (slot.compare_exchange_strong(expected, 0)) return;
  }
}

}  // namespace telha::fork
