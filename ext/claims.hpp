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
#include <unordered_map>
#include <vector>

#include "job_id.hpp"

namespace telha {

// Why a job is claimed. A lease in progress takes the job away, so that other leases pass it by. Any other verb may be
// refused and leave the job as ready as it was, so a lease that needs the job waits for the verb to end.
enum class Claim { kNone, kLease, kOther };

class Claims {
 public:
  using Lock = std::unique_lock<std::mutex>;

  Claim of(const JobId& id) const noexcept {
    const auto found = taken_.find(id);
    return found == taken_.end() ? Claim::kNone : found->second;
  }

  // Takes a claim that is free.
  void take(const JobId& id, Claim why) noexcept { taken_.emplace(id, why); }

  // Waits until none of the ids is taken, then takes all of them: all or nothing, so that two calls which want the
  // same ids in different orders cannot wait for each other. Ids may repeat; returns how many are distinct.
  size_t wait_and_take(Lock& lock, const std::vector<JobId>& ids) noexcept {
    returned_.wait(lock, [&] {
      // A lease that waits for a job comes first, or verbs that follow each other could keep the job from it for ever.
      if (leases_waiting_ != 0) return false;
      for (const auto& id : ids) {
        if (taken_.contains(id)) return false;
      }
      return true;
    });
    const size_t before = taken_.size();
    for (const auto& id : ids) taken_.emplace(id, Claim::kOther);
    return taken_.size() - before;
  }

  // For a lease, which holds no claim meanwhile: waits until a job is free.
  void wait_for(Lock& lock, JobId id) noexcept {
    ++leases_waiting_;
    returned_.wait(lock, [&] { return !taken_.contains(id); });
    --leases_waiting_;
    returned_.notify_all();
  }

  void give_back(const JobId& id) noexcept {
    taken_.erase(id);
    returned_.notify_all();  // free of cost while nobody waits
  }

 private:
  std::unordered_map<JobId, Claim, JobIdHash> taken_;
  std::condition_variable returned_;
  size_t leases_waiting_ = 0;
};

}  // namespace telha
