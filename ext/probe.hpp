// probe.hpp: whether a directory takes writes again. A try costs a small file; opening the database to find out would
// close it for readers meanwhile.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace telha {

inline bool accepts_writes(const std::string& directory) noexcept {
  constexpr size_t kBytes = 1 << 20;  // of the size of what opening writes
  const std::string path = directory + "/telha.probe";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return false;
  (void)::unlink(path.c_str());
  const std::vector<char> zeros(kBytes);
  const ssize_t written = ::write(file, zeros.data(), kBytes);
  const bool is_fine = written == static_cast<ssize_t>(kBytes) && ::fsync(file) == 0;
  ::close(file);
  return is_fine;
}

}  // namespace telha
