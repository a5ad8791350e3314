// msgpack_writer.hpp: writes every value in its shortest form, so that one record has one encoding.
#pragma once

#include <bit>

#include "bytes.hpp"

namespace telha::msgpack {

constexpr size_t kMaxHeaderBytes = 9;

// Writes values to memory that the caller has made large enough: kMaxHeaderBytes a value, and its bytes.
class Writer {
 public:
  Writer() noexcept : Writer(nullptr) {}
  explicit Writer(char* out) noexcept : at_(out) {}

  char* at() const noexcept { return at_; }

  void nil() noexcept { byte(0xC0); }

  void boolean(bool value) noexcept { byte(value ? 0xC3 : 0xC2); }

  void uint(uint64_t number) noexcept {
    if (number < 0x80) return byte(number);
    if (number <= UINT8_MAX) return header(0xCC, 1, number);
    if (number <= UINT16_MAX) return header(0xCD, 2, number);
    if (number <= UINT32_MAX) return header(0xCE, 4, number);
    header(0xCF, 8, number);
  }

  void negative(int64_t number) noexcept {  // requires number < 0
    const auto bits = static_cast<uint64_t>(number);
    if (number >= -32) return byte(bits);
    if (number >= INT8_MIN) return header(0xD0, 1, bits);
    if (number >= INT16_MIN) return header(0xD1, 2, bits);
    if (number >= INT32_MIN) return header(0xD2, 4, bits);
    header(0xD3, 8, bits);
  }

  void optional_uint(int64_t number) noexcept {  // -1 is written as nil
    number < 0 ? nil() : uint(static_cast<uint64_t>(number));
  }

  void array(uint64_t count) noexcept {
    if (count < 16) return byte(0x90 | count);
    count <= UINT16_MAX ? header(0xDC, 2, count) : header(0xDD, 4, count);
  }

  // A string, or a binary, of `size` bytes begins; raw() writes them, in as many pieces as it likes.
  void text_header(uint64_t size) noexcept {
    if (size < 32) return byte(0xA0 | size);
    if (size <= UINT8_MAX) return header(0xD9, 1, size);
    size <= UINT16_MAX ? header(0xDA, 2, size) : header(0xDB, 4, size);
  }

  void text(const Bytes& value) noexcept {
    text_header(value.size);
    raw(value);
  }

  void binary_header(uint64_t size) noexcept {
    if (size <= UINT8_MAX) return header(0xC4, 1, size);
    size <= UINT16_MAX ? header(0xC5, 2, size) : header(0xC6, 4, size);
  }

  void binary(const Bytes& value) noexcept {
    binary_header(value.size);
    raw(value);
  }

  void optional_text(const Bytes& value) noexcept { is_nil(value) ? nil() : text(value); }
  void optional_binary(const Bytes& value) noexcept { is_nil(value) ? nil() : binary(value); }

  void raw(const Bytes& value) noexcept {
    if (value.size != 0) std::memcpy(at_, value.data, value.size);
    at_ += value.size;
  }

 private:
  void byte(uint64_t value) noexcept { *at_++ = static_cast<char>(value); }

  void header(uint64_t tag, size_t width, uint64_t number) noexcept {
    byte(tag);
    const uint64_t bytes = big_endian(number << (8 * (8 - width)));
    std::memcpy(at_, &bytes, sizeof bytes);  // up to 7 bytes too many, within kMaxHeaderBytes
    at_ += width;
  }

  static uint64_t big_endian(uint64_t number) noexcept {
    return std::endian::native == std::endian::little ? __builtin_bswap64(number) : number;
  }

  char* at_;
};

}  // namespace telha::msgpack
