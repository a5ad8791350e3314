// rows.hpp: what comes out of a verb: one outcome per job asked for.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "fault.hpp"
#include "row.hpp"

namespace telha {

inline void set_text(std::string* out, const char* data, size_t size) noexcept { out->assign(data, size); }
inline void append_text(std::string* out, const char* data, size_t size) noexcept { out->append(data, size); }

// What became of one job: a fault, or the row as it is now.
struct Outcome {
  Fault fault;
  Row row;
  Row before;               // the row that it had under another priority; null: it kept its place
  int64_t due_us = -1;      // when the row's gate opens, or its lease runs out; -1: neither
  bool is_written = false;  // by this call, so that others have to be told; not one that was only found
};

// A scope's key and its name as it is stored; empty for none.
struct ScopeName {
  std::string scope;
  std::string name;
};

// A growable list whose members are noexcept, as the core needs them.
template <typename Item>
class List {
 public:
  size_t size() const noexcept { return items_.size(); }
  Item* at(size_t index) noexcept { return &items_[index]; }
  Item* data() noexcept { return items_.data(); }  // all of them, and maybe none
  Item* add() noexcept { return &items_.emplace_back(); }
  void resize(size_t size) noexcept { items_.resize(size); }
  void reserve(size_t size) noexcept { items_.reserve(size); }
  void remove_last() noexcept { items_.pop_back(); }
  void clear() noexcept { items_.clear(); }
  std::vector<Item>& items() noexcept { return items_; }

 private:
  std::vector<Item> items_;
};

using Names = List<std::string>;

inline void sort_unique(Names* names) noexcept {
  auto& items = names->items();
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace telha
