// place.hpp: a directory that is held, whatever becomes of its path. A path means what stands there now: another
// directory once one was moved, a link was turned, or the process changed its own. The way through a descriptor leads
// to the same directory for as long as that is open. Knows nothing of queues.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

namespace telha {

class Place {
 public:
  Place() noexcept = default;
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() { close(); }

  // Holds what is a directory and no link to one: 0, or an errno.
  int open(const char* path) noexcept {
    close();
    file_ = ::open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file_ < 0) return errno;
    way_ = "/proc/self/fd/" + std::to_string(file_);
    if (leads_here()) return 0;
    // There is no /proc. The path without links does not change with the process's own directory.
    way_.clear();
    char* const real = ::realpath(path, nullptr);
    if (real != nullptr) way_ = real;
    std::free(real);
    if (leads_here()) return 0;
    close();
    return ENOENT;  // it was moved this very moment
  }

  void close() noexcept {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }

  // A path for as long as it is open; what it says afterwards is good for messages only.
  const std::string& way() const noexcept { return way_; }

 private:
  bool leads_here() const noexcept {
    struct stat held{}, found{};
    return ::fstat(file_, &held) == 0 && ::stat(way_.c_str(), &found) == 0 && held.st_dev == found.st_dev &&
           held.st_ino == found.st_ino;
  }

  int file_ = -1;
  std::string way_;
};

}  // namespace telha
