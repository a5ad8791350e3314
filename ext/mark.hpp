// mark.hpp: the file `telha.mark`: what of a store is known to be on disk, so that its loss is noticed.
//
// Two slots of 4 KiB, written in turn and in place. A write that is cut short leaves the other slot, which holds what
// was true before; and neither a full disk nor a process without descriptors can keep the mark from being written.
// docs/format.md has the bytes.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "crc32c.hpp"

namespace telha {

enum class MarkedKind : uint8_t { kManifest = 0, kLog = 1, kLogInTurn = 2 };

struct MarkedFile {
  MarkedKind kind;
  uint64_t number;
  uint64_t bytes;  // known to be on disk, from its start
  bool operator==(const MarkedFile&) const = default;
};

struct Mark {
  uint64_t sequence = 0;  // rows up to this sequence number are on disk
  std::vector<MarkedFile> files;
  bool operator==(const Mark&) const = default;
};

// Returns when a file, or with O_DIRECTORY which files a directory has, is on disk: 0, or an errno.
inline int sync_file(const std::string& path, int flags) noexcept {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (file < 0) return errno;
  const int error = ::fsync(file) == 0 ? 0 : errno;
  ::close(file);
  return error;
}

class MarkFile {
 public:
  static constexpr const char* kName = "telha.mark";

  MarkFile() noexcept = default;
  MarkFile(const MarkFile&) = delete;
  MarkFile& operator=(const MarkFile&) = delete;
  ~MarkFile() { close(); }

  // Opens the mark of a directory, and makes one that demands nothing where there is none. Returns 0 or an errno;
  // EBADMSG when neither slot holds what was written there.
  int open(const std::string& directory, Mark* out) noexcept {
    close();
    const std::string path = directory + '/' + kName;
    file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file_ < 0 && errno == ENOENT) return make(directory, path);
    return file_ < 0 ? errno : read(out);
  }

  // Returns when it is on disk: 0, or an errno.
  int write(const Mark& mark) noexcept {
    const int error = write_slot(mark, generation_ + 1);
    if (error == 0 && ::fdatasync(file_) != 0) return errno;
    if (error == 0) ++generation_;
    return error;
  }

  void close() noexcept {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }

 private:
  static constexpr size_t kSlotBytes = 4096;
  static constexpr size_t kHeadBytes = 32;  // magic, checksum of what follows, count of files, generation, sequence
  static constexpr size_t kFileBytes = 17;
  static constexpr size_t kMaxFiles = (kSlotBytes - kHeadBytes) / kFileBytes;
  static constexpr char kMagic[] = "telhamk1";

  // Under another name first, so that it is whole where it is. It is the first file that a new store makes: what is
  // there already, which is the lock that says whose directory this is, is taken to disk before.
  int make(const std::string& directory, const std::string& path) noexcept {
    if (const int error = sync_file(directory, O_DIRECTORY); error != 0) return error;
    const std::string unfinished = path + ".new";
    file_ = ::open(unfinished.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file_ < 0) return errno;
    generation_ = 0;
    for (uint64_t generation : {0, 1}) {
      if (const int error = write_slot(Mark(), generation); error != 0) return error;
    }
    if (::fsync(file_) != 0 || ::rename(unfinished.c_str(), path.c_str()) != 0) return errno;
    generation_ = 1;
    return sync_file(directory, O_DIRECTORY);
  }

  int read(Mark* out) noexcept {
    bool is_found = false;
    for (size_t slot : {0, 1}) {
      char bytes[kSlotBytes];
      const ssize_t got = ::pread(file_, bytes, sizeof bytes, static_cast<off_t>(slot * kSlotBytes));
      if (got < 0) return errno;
      Mark mark;
      uint64_t generation = 0;
      if (static_cast<size_t>(got) < sizeof bytes || !decode(bytes, &mark, &generation)) continue;
      if (is_found && generation < generation_) continue;
      is_found = true;
      generation_ = generation;
      *out = std::move(mark);
    }
    return is_found ? 0 : EBADMSG;
  }

  int write_slot(const Mark& mark, uint64_t generation) noexcept {
    char bytes[kSlotBytes] = {};
    const size_t count = std::min(mark.files.size(), kMaxFiles);
    std::memcpy(bytes, kMagic, 8);
    put(bytes + 12, count, 4);
    put(bytes + 16, generation, 8);
    put(bytes + 24, mark.sequence, 8);
    char* at = bytes + kHeadBytes;
    for (size_t i = 0; i < count; ++i, at += kFileBytes) {
      put(at, static_cast<uint64_t>(mark.files[i].kind), 1);
      put(at + 1, mark.files[i].number, 8);
      put(at + 9, mark.files[i].bytes, 8);
    }
    put(bytes + 8, crc32c(bytes + 12, kSlotBytes - 12), 4);
    const off_t where = static_cast<off_t>((generation % 2) * kSlotBytes);
    const ssize_t written = ::pwrite(file_, bytes, kSlotBytes, where);
    if (written < 0) return errno;
    return static_cast<size_t>(written) == kSlotBytes ? 0 : ENOSPC;
  }

  static bool decode(const char* bytes, Mark* out, uint64_t* generation) noexcept {
    const uint64_t count = get(bytes + 12, 4);
    if (std::memcmp(bytes, kMagic, 8) != 0 || count > kMaxFiles) return false;
    if (get(bytes + 8, 4) != crc32c(bytes + 12, kSlotBytes - 12)) return false;
    *generation = get(bytes + 16, 8);
    out->sequence = get(bytes + 24, 8);
    const char* at = bytes + kHeadBytes;
    for (uint64_t i = 0; i < count; ++i, at += kFileBytes) {
      out->files.push_back({static_cast<MarkedKind>(get(at, 1)), get(at + 1, 8), get(at + 9, 8)});
    }
    return true;
  }

  static void put(char* out, uint64_t number, size_t bytes) noexcept {
    for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(number >> (8 * (bytes - 1 - i)));
  }

  static uint64_t get(const char* from, size_t bytes) noexcept {
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; ++i) number = (number << 8) | static_cast<uint8_t>(from[i]);
    return number;
  }

  int file_ = -1;
  uint64_t generation_ = 0;
};

}  // namespace telha
