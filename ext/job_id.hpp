// job_id.hpp: a job's id as a value that tables are keyed by: 16 bytes, no allocation.
#pragma once

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

struct JobIdHash {
  // The second word of a UUIDv7 is random but for two bits; all bits of the result are well mixed.
  size_t operator()(const JobId& id) const noexcept {
    constexpr uint64_t kOdd = 0x9E3779B97F4A7C15u;
    return (id.words[1] + id.words[0] * kOdd) * kOdd;
  }
};

}  // namespace telha
