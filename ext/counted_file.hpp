// counted_file.hpp: a log or MANIFEST: how much of it was written, and how much of that is on disk. Fsyncs a log
// without RocksDB; knows nothing of other files.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <string>

namespace telha {

class CountedFile {
 public:
  explicit CountedFile(uint64_t bytes) noexcept : written(bytes) {}
  CountedFile(const CountedFile&) = delete;
  CountedFile& operator=(const CountedFile&) = delete;
  ~CountedFile() {
    if (file_ >= 0) ::close(file_);
  }

  std::atomic<uint64_t> written;
  std::atomic<uint64_t> durable{0};   // of those, fsynced
  std::atomic<bool> is_named{false};  // its entry in the directory is on disk

  void reach(uint64_t bytes) noexcept {
    uint64_t known = durable.load();
    while (known < bytes && !durable.compare_exchange_weak(known, bytes)) {
    }
  }

  // So that it can be fsynced without RocksDB. Returns 0 or an errno.
  int open(const std::string& path) noexcept {
    file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    return file_ < 0 ? errno : 0;
  }

  // Returns 0 or an errno: the first, for good. What it was told of may be lost, and a later fsync would not say so.
  // One at a time, because the system tells each descriptor once.
  int sync() noexcept {
    std::lock_guard one_at_a_time(mutex_);
    if (error_ == 0 && ::fdatasync(file_) != 0) error_ = errno;
    return error_;
  }

  // An fsync failed that it needs.
  void fail() noexcept {
    std::lock_guard lock(mutex_);
    if (error_ == 0) error_ = EIO;
  }

 private:
  std::mutex mutex_;
  int file_ = -1;
  int error_ = 0;
};

}  // namespace telha
