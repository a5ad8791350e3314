// survey.hpp: the whole store as it is at one moment. Lives inside one verb; iterators over it go before it does.
//
// What is looked up goes through the block cache: the look-ups of one scope come in the order of its ids.
#pragma once

#include <rocksdb/db.h>

#include "fault.hpp"
#include "store.hpp"

namespace telha {

class Survey {
 public:
  Survey() noexcept = default;
  Survey(const Survey&) = delete;
  Survey& operator=(const Survey&) = delete;
  // As of now; what an earlier begin() saw is given up. Every begin() has its end().
  void begin(Store* store) noexcept {
    end();
    store_ = store;
    options_.snapshot = store->database.db()->GetSnapshot();
  }

  // Requires the visit under which it began: RocksDB does not close over one that is left.
  void end() noexcept {
    if (store_ != nullptr) store_->database.db()->ReleaseSnapshot(options_.snapshot);
    store_ = nullptr;
  }

  const rocksdb::Snapshot* moment() const noexcept { return options_.snapshot; }

  Fault get(Family family, const rocksdb::Slice& key, rocksdb::PinnableSlice* out) const noexcept {
    out->Reset();
    rocksdb::Status status = store_->database.db()->Get(options_, store_->database.family(family), key, out);
    return status.IsNotFound() ? Fault::of(Code::kNotFound) : Fault::read(std::move(status));
  }

 private:
  Store* store_ = nullptr;
  rocksdb::ReadOptions options_;
};

}  // namespace telha
