// claims.hpp: which jobs a verb is changing right now.
//
// An idempotency key is claimed like a job, under a stand-in for an id.
//
// Every verb reads a row, decides, and writes. It holds the job's claim from before the read until after the write, so
// no two verbs decide on the same row, while jobs that have nothing to do with each other are written side by side and
// share RocksDB's log writes and fsyncs. All methods are called with the store's mutex held; it is the lock argument.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "job_table.hpp"

namespace telha {

class Claims {
 public:
  using Lock = std::unique_lock<std::mutex>;

  explicit Claims(JobTable* table) noexcept : table_(table) {}

  Claim of(const JobId& id) const noexcept {
    const JobTable::Slot* const slot = table_->find(id);
    return slot == nullptr ? Claim::kNone : slot->claim;
  }

  // Takes a claim that is free.
  void take(const JobId& id, Claim why) noexcept { table_->hold(id)->claim = why; }

  // Waits until none of the ids is taken, then takes all of them: all or nothing, so that two calls which want the
  // same ids in different orders cannot wait for each other. Ids may repeat; returns how many are distinct. A call that
  // has to wait reserves its ids, one call at a time, or calls on single jobs could keep one on many waiting for ever.
  size_t wait_and_take(Lock& lock, const std::vector<JobId>& ids) noexcept {
    while (!can_take(ids)) {
      if (reserver_ == nullptr) reserve(&ids, true);
      returned_.wait(lock);
    }
    if (reserver_ == &ids) {
      reserve(&ids, false);
      returned_.notify_all();
    }
    size_t distinct = 0;
    for (const auto& id : ids) {
      JobTable::Slot* const slot = table_->hold(id);
      distinct += slot->claim == Claim::kNone;
      slot->claim = Claim::kOther;
    }
    return distinct;
  }

  // For a lease, which holds no claim meanwhile: waits until a job is free.
  void wait_for(Lock& lock, JobId id) noexcept {
    ++leases_waiting_;
    returned_.wait(lock, [&] { return of(id) == Claim::kNone; });
    --leases_waiting_;
    returned_.notify_all();
  }

  void give_back(const JobId& id) noexcept {
    JobTable::Slot* const slot = table_->find(id);
    if (slot == nullptr) return;  // an id that stood twice in a call is back already
    slot->claim = Claim::kNone;
    table_->settle(slot);
    returned_.notify_all();  // free of cost while nobody waits
  }

 private:
  bool can_take(const std::vector<JobId>& ids) const noexcept {
    // A lease that waits for a job comes first, or verbs that follow each other could keep the job from it for ever.
    if (leases_waiting_ != 0) return false;
    for (const auto& id : ids) {
      const JobTable::Slot* const slot = table_->find(id);
      if (slot == nullptr) continue;
      if (slot->claim != Claim::kNone || (slot->is_reserved && reserver_ != &ids)) return false;
    }
    return true;
  }

  void reserve(const std::vector<JobId>* ids, bool is_reserved) noexcept {
    reserver_ = is_reserved ? ids : nullptr;
    for (const auto& id : *ids) {
      JobTable::Slot* const slot = is_reserved ? table_->hold(id) : table_->find(id);
      if (slot == nullptr) continue;  // an id that stands twice
      slot->is_reserved = is_reserved;
      table_->settle(slot);
    }
  }

  JobTable* table_;
  std::condition_variable returned_;
  size_t leases_waiting_ = 0;
  const std::vector<JobId>* reserver_ = nullptr;  // of the call that comes next
};

}  // namespace telha
