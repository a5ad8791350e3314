// job_id.hpp: a job's id as a value that tables are keyed by: 16 bytes, no allocation.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>

namespace telha {

struct JobId {
  static constexpr size_t kBytes = 16;

  uint64_t words[2] = {0, 0};

  JobId() noexcept = default;
  explicit JobId(const char* bytes) noexcept { std::memcpy(words, bytes, kBytes); }

  // A stand-in for a text, for tables in which two that collide do no more than wait for each other.
  static JobId of_text(std::string_view text) noexcept {
    JobId id;
    id.words[0] = std::hash<std::string_view>{}(text);
    id.words[1] = ~id.words[0];  // no UUIDv7 looks like this, save for one in 2^64
    return id;
  }

  bool operator==(const JobId& other) const noexcept = default;
};

// Ids that were made within a few microseconds of each other lie side by side in a table of 2^bits slots: jobs are
// leased and finished in about the order in which they came, and so find their neighbours in the processor's cache.
struct JobIdHash {
  static constexpr int kNeighbourBits = 2;

  size_t operator()(const JobId& id, int bits) const noexcept {
    constexpr uint64_t kOdd = 0x9E3779B97F4A7C15u;
    uint64_t time = id.words[0];  // of a UUIDv7: 48 bits of milliseconds, 4 of version, 12 of microseconds
    if constexpr (std::endian::native == std::endian::little) time = __builtin_bswap64(time);
    const uint64_t us = (time >> 16) * 1000 + (time & 0xFFF);
    const uint64_t group = (us >> kNeighbourBits) * kOdd >> (64 - bits + kNeighbourBits);
    return group << kNeighbourBits | (us & ((1u << kNeighbourBits) - 1));
  }
};

}  // namespace telha
