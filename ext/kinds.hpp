// kinds.hpp: a filter on kinds, as bytes. scan.pxd says what it lets through.
#pragma once

#include <string>

#include "bytes.hpp"

namespace telha {

inline constexpr size_t kMaxKinds = 64;

struct KindPattern {
  Bytes text;
  bool is_exact = false;
};

// No patterns want every kind. The texts are borrowed.
struct Kinds {
  size_t count = 0;
  union {  // so that making one does not write to all of them
    KindPattern patterns[kMaxKinds];
  };

  Kinds() noexcept {}

  bool operator==(const Kinds& other) const noexcept {
    if (count != other.count) return false;
    for (size_t i = 0; i < count; ++i) {
      if (patterns[i].is_exact != other.patterns[i].is_exact || !same(patterns[i].text, other.patterns[i].text)) {
        return false;
      }
    }
    return true;
  }

  // The filter as one string that no other filter has: what windows are found by.
  std::string name() const noexcept {
    std::string name;
    for (size_t i = 0; i < count; ++i) {
      name += static_cast<char>(patterns[i].text.size);  // at most 128
      name += patterns[i].is_exact ? '=' : '^';
      name.append(patterns[i].text.data, patterns[i].text.size);
    }
    return name;
  }

  // The same filter, its texts borrowed from a name of it.
  static Kinds of(const std::string& name) noexcept {
    Kinds kinds;
    for (size_t at = 0; at < name.size();) {
      KindPattern& pattern = kinds.patterns[kinds.count++];
      pattern.text.size = static_cast<unsigned char>(name[at]);
      pattern.is_exact = name[at + 1] == '=';
      pattern.text.data = name.data() + at + 2;
      at += 2 + pattern.text.size;
    }
    return kinds;
  }
};

}  // namespace telha
