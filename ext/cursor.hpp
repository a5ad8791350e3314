// cursor.hpp: a walk over the rows of the jobs family, or of another, that begin with one prefix. It lives inside one
// verb, never crosses to Python and never outlives the store. An iterator that has failed looks like one that has
// ended, so every walk ends by asking fault().
#pragma once

#include <rocksdb/db.h>

#include <memory>
#include <string>
#include <string_view>

#include "fault.hpp"
#include "store.hpp"

namespace telha {

class Cursor {
 public:
  Cursor() noexcept = default;
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  // Before it is opened: to walk another family, as it was at a moment, and leave the block cache to others.
  void survey(Family family, const rocksdb::Snapshot* moment) noexcept {
    family_ = family;
    options_.snapshot = moment;
    options_.fill_cache = false;
  }

  // Stands on the first row that begins with the prefix. An empty prefix walks all rows.
  void open(Store* store, const char* prefix, size_t size) noexcept { open_at(store, prefix, size, prefix, size); }

  // Stands on the first of these rows that is not before `start`, which may be anywhere.
  void open_at(Store* store, const char* prefix, size_t size, const char* start, size_t start_size) noexcept {
    const std::string_view first(size ? prefix : "", size);
    const std::string_view from(start_size ? start : "", start_size);
    bound_ = successor(first);
    if (!bound_.empty()) {
      upper_ = bound_;
      options_.iterate_upper_bound = &upper_;
    }
    rows_.reset(store->database.db()->NewIterator(options_, store->database.family(family_)));
    rows_->Seek(rocksdb::Slice(from < first ? first : from));
  }

  void seek(const char* key, size_t size) noexcept { rows_->Seek(rocksdb::Slice(key, size)); }
  bool is_on_row() const noexcept { return rows_->Valid(); }
  void step() noexcept { rows_->Next(); }
  rocksdb::Slice key() const noexcept { return rows_->key(); }
  rocksdb::Slice value() const noexcept { return rows_->value(); }
  Fault fault() const noexcept { return Fault::read(rows_->status()); }

  // Moves on to the first row of a scope behind this one; false when there is none.
  bool skip_scope(const char* scope, size_t size) noexcept {
    const std::string after = successor(std::string_view(scope, size));
    if (after.empty()) return false;
    rows_->Seek(after);
    return rows_->Valid();
  }

 private:
  // The least string greater than all that begin with the prefix; empty when there is none.
  static std::string successor(std::string_view prefix) noexcept {
    std::string after(prefix);
    while (!after.empty() && static_cast<unsigned char>(after.back()) == 0xFF) after.pop_back();
    if (!after.empty()) after.back() = static_cast<char>(after.back() + 1);
    return after;
  }

  // Declared in the order in which they must outlive each other: the iterator goes first.
  Family family_ = Family::kJobs;
  std::string bound_;
  rocksdb::Slice upper_;
  rocksdb::ReadOptions options_;
  std::unique_ptr<rocksdb::Iterator> rows_;
};

}  // namespace telha
