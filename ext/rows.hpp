// rows.hpp: what goes into and comes out of a verb: rows, and one outcome per job asked for.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "fault.hpp"

namespace telha {

inline void set_text(std::string* out, const char* data, size_t size) noexcept { out->assign(data, size); }
inline void append_text(std::string* out, const char* data, size_t size) noexcept { out->append(data, size); }

// A row of the jobs column family.
struct Row {
  std::string key;
  std::string value;

  void set(const char* key_data, size_t key_size, const char* value_data, size_t value_size) noexcept {
    key.assign(key_data, key_size);
    value.assign(value_data, value_size);
  }
  // State and job id stand where keys.pxd says they do.
  void set_state(uint8_t state) noexcept { key[32] = static_cast<char>(state); }
  const char* job_id() const noexcept { return key.data() + 42; }
};

// What became of one job: a fault, or the row as it is now.
struct Outcome {
  Fault fault;
  Row row;
  bool is_written = false;  // by this call, so that others have to be told; not one that was only found
};

// A growable list whose members are noexcept, as the core needs them.
template <typename Item>
class List {
 public:
  size_t size() const noexcept { return items_.size(); }
  Item* at(size_t index) noexcept { return &items_[index]; }
  Item* add() noexcept { return &items_.emplace_back(); }
  void resize(size_t size) noexcept { items_.resize(size); }
  void clear() noexcept { items_.clear(); }
  std::vector<Item>& items() noexcept { return items_; }

 private:
  std::vector<Item> items_;
};

using Rows = List<Row>;
using Outcomes = List<Outcome>;
using Names = List<std::string>;

inline void sort_unique(Names* names) noexcept {
  auto& items = names->items();
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace telha
