// log_check.hpp: whether a file in RocksDB's log format, a log or a MANIFEST, is sound as far as it is known to be on
// disk. Reads one file and changes nothing; knows nothing of who demands what.
//
// The format: blocks of 32 KiB, in which records follow each other, each of a checksum, a length, a type and its bytes.
// A batch that does not fit in the rest of a block is cut into a first, middle and last record. A batch begins with its
// sequence number and the count of its rows.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "crc32c.hpp"
#include "mark.hpp"

namespace telha {

struct LogCheck {
  int error = 0;               // an errno: the file could not be read
  uint64_t size = 0;           // of the file
  bool is_sound = true;        // false: `sound_bytes` is where the damage begins
  uint64_t sound_bytes = 0;    // what precedes has no damage
  uint64_t last_sequence = 0;  // of the rows in there; 0 for none

  // `durable` bytes are demanded. If each batch of a log was on disk before the next was begun, then damage with a
  // whole batch behind it is no write that was cut short, wherever it is.
  static LogCheck of(const std::string& path, uint64_t durable, MarkedKind kind) noexcept {
    LogCheck check;
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status{};
    if (file < 0 || ::fstat(file, &status) != 0) {
      check.error = errno;
    } else {
      check.size = static_cast<uint64_t>(status.st_size);
      check.read(file, durable, kind);
    }
    if (file >= 0) ::close(file);
    return check;
  }

 private:
  static constexpr size_t kBlockBytes = 32 * 1024;
  static constexpr size_t kHeaderBytes = 7;

  enum class Found { kRecord, kBatch, kEnd, kDamage };

  void read(int file, uint64_t durable, MarkedKind kind) noexcept {
    const bool in_turn = kind == MarkedKind::kLogInTurn;
    std::vector<char> block(kBlockBytes);
    const uint64_t end = kind == MarkedKind::kLog ? std::min(size, durable) : size;
    for (uint64_t start = 0; start < end; start += kBlockBytes) {
      const size_t length = static_cast<size_t>(std::min<uint64_t>(kBlockBytes, size - start));
      if (!fill(file, block.data(), length, start)) return;
      for (size_t at = 0; at < length && start + at < end;) {
        size_t next = kBlockBytes, claimed = 0;
        const Found found = parse(block.data(), length, at, &next, &claimed);
        if (found == Found::kDamage && !is_doubtful_) {
          sound_bytes = start + at;
          // Beyond what is demanded a record may be cut short; so may one that straddles the end of it, in a log that
          // one thread had fsynced while others wrote.
          is_sound = sound_bytes >= durable || (kind == MarkedKind::kLog && start + claimed > durable);
          if (!is_sound || !in_turn) return;
          is_doubtful_ = true;
        } else if (found == Found::kBatch && is_doubtful_) {
          is_sound = false;
          return;
        } else if (!is_doubtful_) {
          sound_bytes = start + std::min(next, length);
        }
        at = next;
      }
    }
    if (size < durable) is_sound = false;
  }

  bool fill(int file, char* out, size_t length, uint64_t at) noexcept {
    while (length > 0) {
      const ssize_t got = ::pread(file, out, length, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        error = got < 0 ? errno : EIO;
        return false;
      }
      out += got;
      length -= static_cast<size_t>(got);
      at += static_cast<uint64_t>(got);
    }
    return true;
  }

  // One record at `at` of a block. `next` is where another may begin; `claimed` where this one ends by its own account.
  Found parse(const char* block, size_t length, size_t at, size_t* next, size_t* claimed) noexcept {
    if (kBlockBytes - at < kHeaderBytes) return Found::kEnd;  // too little for a header: the rest is filled up
    *claimed = at + kHeaderBytes;
    if (*claimed > length) return Found::kDamage;
    const char* header = block + at;
    const auto type = static_cast<uint8_t>(header[6]);
    const size_t bytes = little_endian<uint16_t>(header + 4);
    const bool is_recycled = type >= 5 && type <= 8;  // its header tells the number of the log too
    const size_t body_at = at + kHeaderBytes + (is_recycled ? 4 : 0);
    *claimed = 0;
    if (type == 0 || body_at + bytes > kBlockBytes) return Found::kDamage;
    *claimed = *next = body_at + bytes;
    if (*next > length) return Found::kDamage;
    const uint32_t crc = crc32c(header + 6, *next - at - 6);
    if (((crc >> 15) | (crc << 17)) + 0xA282EAD8u != little_endian<uint32_t>(header)) return Found::kDamage;
    if (type != 1 && type != 2 && type != 5 && type != 6) return Found::kRecord;
    if (!is_doubtful_ && bytes >= 12) {
      const uint64_t first = little_endian<uint64_t>(block + body_at);
      const uint64_t rows = little_endian<uint32_t>(block + body_at + 8);
      if (rows > 0) last_sequence = first + rows - 1;
    }
    return Found::kBatch;
  }

  template <typename Number>
  static Number little_endian(const char* bytes) noexcept {
    Number number = 0;
    for (size_t i = sizeof number; i-- > 0;) {
      number = static_cast<Number>((uint64_t{number} << 8) | static_cast<uint8_t>(bytes[i]));
    }
    return number;
  }

  bool is_doubtful_ = false;  // damage was met where nothing is demanded
};

}  // namespace telha
