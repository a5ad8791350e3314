// owner_lock.hpp: one process owns a queue directory, and holds that directory itself, wherever it is moved to.
//
// RocksDB's own LOCK is an fcntl lock, which any code of the owner drops by opening and closing that file: a backup or
// a recursive copy is enough. flock belongs to the open descriptor and does not have that weakness. The file also marks
// the directory as a queue, and holds the owner's process id, for the message only.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <mutex>
#include <string>

#include "fork.hpp"
#include "place.hpp"

namespace telha {

class OwnerLock {
 public:
  static constexpr const char* kName = "telha.lock";

  OwnerLock() noexcept = default;
  OwnerLock(const OwnerLock&) = delete;
  OwnerLock& operator=(const OwnerLock&) = delete;
  ~OwnerLock() { release(); }

  // Takes the lock of a directory: 0, or an errno. EWOULDBLOCK means that somebody else holds it; owner_pid() then
  // tells who, 0 when that cannot be told.
  int acquire(const char* directory) noexcept {
    const std::lock_guard lock(fork::locks_mutex);
    if (descriptor_ >= 0) return EALREADY;
    if (const int error = place_.open(directory); error != 0) return error;
    const int error = take();
    if (error != 0) place_.close();
    return error;
  }

  void release() noexcept {
    if (fork::is_child()) return;
    const std::lock_guard lock(fork::locks_mutex);
    if (descriptor_ < 0) return;
    // Unlocked before it is closed: a child that was just forked holds a copy until it first runs, and a copy holds the
    // lock.
    ::flock(descriptor_, LOCK_UN);
    fork::untrack_lock(descriptor_);
    ::close(descriptor_);
    descriptor_ = -1;
    place_.close();
  }

  // The directory that is owned, see place.hpp: all files of a store are reached by it.
  const std::string& directory() const noexcept { return place_.way(); }
  int owner_pid() const noexcept { return owner_pid_; }

 private:
  int take() noexcept {
    const std::string path = directory() + '/' + kName;
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor_ < 0) return errno;
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      read_owner();
      ::close(descriptor_);
      descriptor_ = -1;
      return error;
    }
    fork::track_lock(descriptor_);
    write_owner();
    return 0;
  }

  void read_owner() noexcept {
    char text[16];
    const ssize_t size = ::pread(descriptor_, text, sizeof text, 0);
    if (size > 0) std::from_chars(text, text + size, owner_pid_);
  }

  // A failure to write the number is no failure to own the directory: the message of a second opener is poorer.
  void write_owner() noexcept {
    char text[16];
    const auto end = std::to_chars(text, text + sizeof text, ::getpid()).ptr;
    if (::ftruncate(descriptor_, 0) != 0) return;
    const ssize_t written = ::pwrite(descriptor_, text, static_cast<size_t>(end - text), 0);
    (void)written;
  }

  Place place_;
  int descriptor_ = -1;
  int owner_pid_ = 0;
};

}  // namespace telha
