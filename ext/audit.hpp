// audit.hpp: one check of a store, under way: what it sees, what it has found, and what it is about to put right.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "database.hpp"
#include "findings.hpp"
#include "survey.hpp"

namespace telha {

// The side rows that a sound job is to be given. An empty `name` stands for an idempotency row that is well.
struct Mend {
  std::string key;  // the job's
  Found id = Found::kCount;
  Found named = Found::kCount;
  std::string name;
  std::string seen;         // what the idempotency row held; empty too when there was none
  int64_t expires_at = -1;  // the row in the expiries family that it lacks; -1 for none
};

struct Drop {
  Family family = Family::kMeta;
  std::string key;
};

struct Audit {
  static constexpr size_t kMaxPending = 256;  // repairs in one write

  bool is_repairing = false;
  bool is_partial = false;
  uint64_t jobs = 0;
  uint64_t ids = 0;  // side rows that a job accounts for, here and below
  uint64_t names = 0;
  uint64_t payloads = 0;
  uint64_t expiries = 0;
  uint64_t results = 0;
  bool has_mended = false;
  Survey survey;
  Findings findings;
  FewIds lost_ids;    // jobs that cannot be found by their id
  FewIds lost_names;  // idempotency rows that a job has found wrong
  std::vector<Mend> mends;
  std::vector<Drop> drops;

  // Forgets all that was found.
  void reset() noexcept {
    is_partial = has_mended = false;
    jobs = ids = names = payloads = expiries = results = 0;
    findings = {};
    lost_ids = lost_names = {};
    mends.clear();
    drops.clear();
  }

  void add(Found kind, const rocksdb::Slice& row, const char* scope, const char* job_id, const char* detail) noexcept {
    findings.add(kind, row.data(), row.size(), scope, job_id, detail);
  }
  void drop(Found kind, Family family, const rocksdb::Slice& key) noexcept {
    drops.push_back({family, key.ToString()});
    findings.mend(kind);
  }
  Mend* mend(const rocksdb::Slice& key) noexcept {
    Mend& made = mends.emplace_back();
    made.key = key.ToString();
    return &made;
  }

  // Damage to keys leaves it open whose side rows are whose; damage to records, whose idempotency keys.
  bool knows_jobs() const noexcept { return findings.found(Found::kJobKey) == 0; }
  bool knows_names() const noexcept {
    return knows_jobs() && findings.found(Found::kJobRecord) + findings.found(Found::kJobVersion) == 0;
  }
};

}  // namespace telha
