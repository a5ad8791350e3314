// msgpack_reader.hpp: the part of msgpack that a record uses: nil, booleans, integers, strings, binaries and arrays.
//
// It trusts nothing: it never looks past the end, allocates nothing and refuses every other type, text that is not
// UTF-8, and a length or count that exceeds the bytes that are left. It does not know what a record is.
#pragma once

#include <utility>

#include "bytes.hpp"

namespace telha::msgpack {

constexpr int kMaxDepth = 8;

enum Type : uint8_t { kNil, kBool, kInt, kStr, kBin, kArray };

// One value, or the head of an array whose elements follow.
struct Value {
  Type type = kNil;
  bool is_negative = false;
  uint64_t number = 0;  // kBool: 0 or 1; kInt: its 64 bits, two's complement when negative; kArray: elements
  Bytes bytes;          // kStr, kBin
};

// Reads values off a span. After a refusal (false) the position means nothing: give the whole span up.
class Reader {
 public:
  Reader() noexcept : Reader(nullptr, 0) {}
  Reader(const char* data, size_t size) noexcept
      : at_(reinterpret_cast<const unsigned char*>(data)), end_(at_ + size) {}
  explicit Reader(const Bytes& span) noexcept : Reader(span.data, span.size) {}

  const char* at() const noexcept { return reinterpret_cast<const char*>(at_); }
  size_t left() const noexcept { return static_cast<size_t>(end_ - at_); }
  Bytes since(const char* start) const noexcept { return {start, static_cast<size_t>(at() - start)}; }

  bool read(Value* out) noexcept;

  // Steps over one value that stands inside `depth` arrays.
  bool skip(int depth) noexcept {
    Value value;
    if (!read(&value)) return false;
    if (value.type != kArray) return true;
    if (depth >= kMaxDepth) return false;
    for (uint64_t i = 0; i < value.number; ++i) {
      if (!skip(depth + 1)) return false;
    }
    return true;
  }

  // The methods below read one type each. Every one tries the frequent form first and leaves the others to read().

  template <typename Number>
  bool uint(Number* out, uint64_t max) noexcept {
    uint64_t number = 0;
    if (at_ != end_ && *at_ < 0x80) {
      number = *at_++;
    } else if (left() > 8 && *at_ == 0xCF) {
      ++at_;
      take_number<8>(&number);
    } else {
      Value value;
      if (!read(&value) || value.type != kInt || value.is_negative) return false;
      number = value.number;
    }
    *out = static_cast<Number>(number);
    return number <= max;
  }

  bool optional_uint(int64_t* out, uint64_t max) noexcept { return take_nil(out) || uint(out, max); }

  // Takes a nil, if that is next.
  bool nil() noexcept {
    if (at_ == end_ || *at_ != 0xC0) return false;
    ++at_;
    return true;
  }

  bool array(uint32_t* count) noexcept {
    if (at_ != end_ && (*at_ & 0xF0) == 0x90) {
      *count = *at_++ & 0x0F;
      return *count <= left();
    }
    Value value;
    if (!read(&value) || value.type != kArray) return false;
    *count = static_cast<uint32_t>(value.number);
    return true;
  }

  bool text(Bytes* out) noexcept {
    if (at_ != end_ && (*at_ & 0xE0) == 0xA0) {
      const size_t size = *at_++ & 0x1F;
      if (size > left()) return false;
      *out = {at(), size};
      at_ += size;
      return is_utf8(*out);
    }
    return span(kStr, out);
  }

  bool binary(Bytes* out) noexcept {
    if (left() > 2 && *at_ == 0xC4) {
      const size_t size = at_[1];
      at_ += 2;
      if (size > left()) return false;
      *out = {at(), size};
      at_ += size;
      return true;
    }
    return span(kBin, out);
  }
  [[gnu::always_inline]] bool optional_text(Bytes* out) noexcept { return take_nil(out) || text(out); }
  [[gnu::always_inline]] bool optional_binary(Bytes* out) noexcept { return take_nil(out) || binary(out); }

 private:
  bool take_nil(int64_t* out) noexcept {
    *out = -1;
    return nil();
  }

  bool take_nil(Bytes* out) noexcept {
    *out = {};
    return nil();
  }

  bool span(Type type, Bytes* out) noexcept {
    Value value;
    if (!read(&value) || value.type != type) return false;
    *out = value.bytes;
    return true;
  }

  template <size_t kWidth>
  bool take_number(uint64_t* out) noexcept {
    if (left() < kWidth) return false;
    *out = big_endian(at_, std::make_index_sequence<kWidth>{});
    at_ += kWidth;
    return true;
  }

  // Written out in one expression, which the compiler turns into one swapped load.
  template <size_t... kIndex>
  static uint64_t big_endian(const unsigned char* data, std::index_sequence<kIndex...>) noexcept {
    return ((uint64_t{data[kIndex]} << 8 * (sizeof...(kIndex) - 1 - kIndex)) | ...);
  }

  template <size_t kWidth>
  bool read_int(Value* out) noexcept {
    out->type = kInt;
    return take_number<kWidth>(&out->number);
  }

  template <size_t kWidth>
  bool read_signed(Value* out) noexcept {
    if (!read_int<kWidth>(out)) return false;
    constexpr uint64_t kSign = uint64_t{1} << (8 * kWidth - 1);
    out->is_negative = (out->number & kSign) != 0;
    out->number = (out->number ^ kSign) - kSign;  // extends the sign
    return true;
  }

  template <size_t kWidth>
  bool read_span(Type type, Value* out) noexcept {
    uint64_t size = 0;
    return take_number<kWidth>(&size) && take_span(type, size, out);
  }

  bool take_span(Type type, uint64_t size, Value* out) noexcept {
    if (size > left()) return false;
    out->type = type;
    out->bytes = {at(), static_cast<size_t>(size)};
    at_ += size;
    return type != kStr || is_utf8(out->bytes);
  }

  template <size_t kWidth>
  bool read_array(Value* out) noexcept {
    return take_number<kWidth>(&out->number) && take_array(out->number, out);
  }

  bool take_array(uint64_t count, Value* out) noexcept {
    out->type = kArray;
    out->number = count;
    return count <= left();  // each element takes a byte at least
  }

  const unsigned char* at_;
  const unsigned char* end_;
};

inline bool Reader::read(Value* out) noexcept {
  if (at_ == end_) return false;
  const unsigned char tag = *at_++;
  *out = {};
  if (tag < 0x80 || tag >= 0xE0) {
    out->type = kInt;
    out->is_negative = tag >= 0xE0;
    out->number = static_cast<uint64_t>(static_cast<int64_t>(static_cast<signed char>(tag)));
    return true;
  }
  if (tag < 0x90) return false;  // a map
  if (tag < 0xA0) return take_array(tag & 0x0F, out);
  if (tag < 0xC0) return take_span(kStr, tag & 0x1F, out);
  switch (tag) {
    case 0xC0: return true;
    case 0xC2:
    case 0xC3:
      out->type = kBool;
      out->number = tag & 1;
      return true;
    case 0xC4: return read_span<1>(kBin, out);
    case 0xC5: return read_span<2>(kBin, out);
    case 0xC6: return read_span<4>(kBin, out);
    case 0xCC: return read_int<1>(out);
    case 0xCD: return read_int<2>(out);
    case 0xCE: return read_int<4>(out);
    case 0xCF: return read_int<8>(out);
    case 0xD0: return read_signed<1>(out);
    case 0xD1: return read_signed<2>(out);
    case 0xD2: return read_signed<4>(out);
    case 0xD3: return read_signed<8>(out);
    case 0xD9: return read_span<1>(kStr, out);
    case 0xDA: return read_span<2>(kStr, out);
    case 0xDB: return read_span<4>(kStr, out);
    case 0xDC: return read_array<2>(out);
    case 0xDD: return read_array<4>(out);
    default: return false;  // 0xC1, extension types, floats, maps
  }
}

}  // namespace telha::msgpack
