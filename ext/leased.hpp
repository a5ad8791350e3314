// leased.hpp: the rows of leased jobs, in memory, so that what is done under a lease need not read them first.
//
// A cache with a bound: a row that is not here is read from disk. One that is here is the stored one, because whoever
// writes a job holds its claim and tells of it before giving the claim back. Wants the store's mutex held.
#pragma once

#include "job_table.hpp"

namespace telha {

class LeasedRows {
 public:
  static constexpr size_t kMaxBytes = 64 << 20;
  static constexpr size_t kMaxRowBytes = 16 << 10;

  explicit LeasedRows(JobTable* table) noexcept : table_(table) {}

  // A leased job was written.
  void put(const Row& row) noexcept {
    JobTable::Slot* const slot = table_->hold(JobId(row.job_id()));
    take_out(slot);
    if (row.bytes() <= kMaxRowBytes && bytes_ + row.bytes() <= kMaxBytes) {
      bytes_ += row.bytes();
      slot->row = row;
    }
    table_->settle(slot);
  }

  // A job was written that is not leased, or may have been.
  void forget(const char* job_id) noexcept {
    JobTable::Slot* const slot = table_->find(JobId(job_id));
    if (slot == nullptr) return;
    take_out(slot);
    table_->settle(slot);
  }

  // Null when it is not here.
  Row find(const char* job_id) const noexcept {
    const JobTable::Slot* const slot = table_->find(JobId(job_id));
    return slot == nullptr ? Row() : slot->row;
  }

 private:
  void take_out(JobTable::Slot* slot) noexcept {
    if (slot->row.is_null()) return;
    bytes_ -= slot->row.bytes();
    slot->row = Row();
  }

  JobTable* table_;
  size_t bytes_ = 0;
};

}  // namespace telha
