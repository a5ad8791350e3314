// crc32c.hpp: the checksum that RocksDB's logs carry, and the mark. Knows bytes only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace telha {

namespace crc32c_detail {

inline constexpr std::array<uint32_t, 256> kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
    table[i] = crc;
  }
  return table;
}();

inline uint32_t by_table(uint32_t crc, const char* data, size_t size) noexcept {
  for (size_t i = 0; i < size; ++i) crc = kTable[(crc ^ static_cast<uint8_t>(data[i])) & 0xFF] ^ (crc >> 8);
  return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) inline uint32_t by_hardware(uint32_t crc, const char* data, size_t size) noexcept {
  uint64_t wide = crc;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, data, sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  return by_table(static_cast<uint32_t>(wide), data, size);
}
#endif

}  // namespace crc32c_detail

inline uint32_t crc32c(const char* data, size_t size) noexcept {
#ifdef __x86_64__
  if (__builtin_cpu_supports("sse4.2")) return ~crc32c_detail::by_hardware(~0u, data, size);
#endif
  return ~crc32c_detail::by_table(~0u, data, size);
}

}  // namespace telha
