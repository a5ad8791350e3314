// bytes.hpp: spans of somebody else's memory, and whether one is UTF-8. Owns nothing and knows no format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace telha {

// A null `data` is nil; an empty string has a `data` that is not null. Lives as long as what it points into.
struct Bytes {
  const char* data = nullptr;
  size_t size = 0;
};

inline bool is_nil(const Bytes& bytes) noexcept { return bytes.data == nullptr; }
inline Bytes nil() noexcept { return {}; }
inline Bytes text(const char* literal) noexcept { return {literal, std::strlen(literal)}; }

// Nil equals nothing, not even nil: a worker that is not there is never the one that asks.
inline bool same(const Bytes& left, const Bytes& right) noexcept {
  return left.data != nullptr && right.data != nullptr && left.size == right.size &&
         std::memcmp(left.data, right.data, left.size) == 0;
}

template <typename Word>
inline Word load(const char* data) noexcept {
  Word word;
  std::memcpy(&word, data, sizeof(word));
  return word;
}

// Whether no byte has its high bit set. Most text is like that, and short: so words, the last two overlapping.
inline bool is_ascii(const Bytes& text) noexcept {
  const char* const data = text.data;
  const size_t size = text.size;
  uint64_t high = 0;
  if (size >= 8) {
    for (size_t i = 0; i + 8 <= size; i += 8) high |= load<uint64_t>(data + i);
    high |= load<uint64_t>(data + size - 8);
  } else if (size >= 4) {
    high = load<uint32_t>(data) | load<uint32_t>(data + size - 4);
  } else {
    for (size_t i = 0; i < size; ++i) high |= static_cast<unsigned char>(data[i]);
  }
  return (high & 0x8080808080808080U) == 0;
}

// Whether every byte is one of the 95 that ASCII prints, the space included.
inline bool is_printable_ascii(const Bytes& text) noexcept {
  if (text.size < 8) {
    for (size_t i = 0; i < text.size; ++i) {
      if (text.data[i] < 0x20 || text.data[i] > 0x7E) return false;
    }
    return true;
  }
  constexpr uint64_t kOnes = 0x0101010101010101U;
  uint64_t wrong = 0;
  const auto look = [&](uint64_t word) {
    // In bytes below 0x80 neither sum carries: the first sets a high bit from 0x20 on, the second at 0x7F.
    wrong |= (word | ~(word + 0x60 * kOnes) | (word + kOnes)) & (0x80 * kOnes);
  };
  for (size_t i = 0; i + 8 <= text.size; i += 8) look(load<uint64_t>(text.data + i));
  look(load<uint64_t>(text.data + text.size - 8));
  return wrong == 0;
}

// Whether the bytes are UTF-8 as Python's strict decoder has it: no surrogates, nothing overlong or past U+10FFFF.
inline bool is_utf8(const Bytes& text) noexcept {
  if (is_ascii(text)) return true;
  const auto* at = reinterpret_cast<const unsigned char*>(text.data);
  const auto* const end = at + text.size;
  while (at != end) {
    const unsigned char lead = *at;
    const ptrdiff_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
    if (length == 0 || end - at < length) return false;
    for (ptrdiff_t i = 1; i < length; ++i) {
      if ((at[i] & 0xC0) != 0x80) return false;
    }
    if ((lead == 0xE0 && at[1] < 0xA0) || (lead == 0xED && at[1] > 0x9F)) return false;
    if ((lead == 0xF0 && at[1] < 0x90) || (lead == 0xF4 && at[1] > 0x8F)) return false;
    at += length;
  }
  return true;
}

}  // namespace telha
