// leased.hpp: the rows of leased jobs, in memory, so that what is done under a lease need not read them first.
//
// A cache with a bound: a row that is not here is read from disk. One that is here is the stored one, because whoever
// writes a job holds its claim and tells of it before giving the claim back. Wants the store's mutex held.
#pragma once

#include <string>
#include <unordered_map>

#include "job_id.hpp"
#include "rows.hpp"

namespace telha {

class LeasedRows {
 public:
  static constexpr size_t kMaxBytes = 32 << 20;
  static constexpr size_t kMaxRowBytes = 16 << 10;

  // A leased job was written.
  void put(const Row& row) noexcept {
    forget(row.job_id());
    if (row.value.size() > kMaxRowBytes || bytes_ + size_of(row) > kMaxBytes) return;
    bytes_ += size_of(row);
    rows_.emplace(JobId(row.job_id()), row);
  }

  // A job was written that is not leased, or may have been.
  void forget(const char* job_id) noexcept {
    const auto found = rows_.find(JobId(job_id));
    if (found == rows_.end()) return;
    bytes_ -= size_of(found->second);
    rows_.erase(found);
  }

  const Row* find(const char* job_id) const noexcept {
    const auto found = rows_.find(JobId(job_id));
    return found == rows_.end() ? nullptr : &found->second;
  }

 private:
  static size_t size_of(const Row& row) noexcept { return row.key.size() + row.value.size() + 128; }

  std::unordered_map<JobId, Row, JobIdHash> rows_;
  size_t bytes_ = 0;
};

}  // namespace telha
