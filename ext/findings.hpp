// findings.hpp: what a check of a store has found, by kind; and the ids whose side rows are known to be wrong. Every
// count is exact, and what is kept beside the counts has a bound.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "bytes.hpp"
#include "job_id.hpp"

namespace telha {

// In the order of docs/format.md and of telha_queue.upkeep.FindingKind.
enum class Found : int {
  kJobKey = 0,
  kJobRecord,
  kJobVersion,
  kJobTwice,
  kJobTime,
  kIdMissing,
  kIdWrong,
  kIdOrphan,
  kKeyMissing,
  kKeyWrong,
  kKeyShared,
  kKeyOrphan,
  kPayloadMissing,
  kPayloadWrong,
  kPayloadOrphan,
  kExpiryMissing,
  kExpiryOrphan,
  kResultMissing,
  kResultWrong,
  kResultOrphan,
  kNameWrong,
  kClockWrong,
  kFloorWrong,
  kCount
};

struct Finding {
  Found kind = Found::kCount;
  std::string row;     // its key
  std::string scope;   // empty: it tells of none
  std::string job_id;  // likewise
  const char* detail = "";
};

class Findings {
 public:
  static constexpr size_t kMaxListed = 1000;  // of each kind
  static constexpr size_t kScopeBytes = 32;

  // A null `job_id` or `scope` is one that is not known. `detail` is a static text.
  void add(Found kind, const char* row, size_t size, const char* scope, const char* job_id,
           const char* detail) noexcept {
    if (++found_[index(kind)] > kMaxListed) return;
    Finding& finding = listed_.emplace_back();
    finding.kind = kind;
    finding.row.assign(row, size);
    if (scope != nullptr) finding.scope.assign(scope, kScopeBytes);
    if (job_id != nullptr) finding.job_id.assign(job_id, JobId::kBytes);
    finding.detail = detail;
  }

  void mend(Found kind) noexcept { ++mended_[index(kind)]; }

  uint64_t found(Found kind) const noexcept { return found_[index(kind)]; }
  uint64_t mended(Found kind) const noexcept { return mended_[index(kind)]; }
  size_t listed() const noexcept { return listed_.size(); }
  const Finding& at(size_t i) const noexcept { return listed_[i]; }

 private:
  static constexpr size_t index(Found kind) noexcept { return static_cast<size_t>(kind); }

  std::array<uint64_t, static_cast<size_t>(Found::kCount)> found_{};
  std::array<uint64_t, static_cast<size_t>(Found::kCount)> mended_{};
  std::vector<Finding> listed_;
};

// A set of ids that says when it could hold no more.
class FewIds {
 public:
  static constexpr size_t kMax = 64 * 1024;

  void add(const JobId& id) noexcept {
    if (ids_.size() < kMax) {
      ids_.insert(id);
    } else if (!ids_.contains(id)) {
      is_full_ = true;
    }
  }
  bool has(const JobId& id) const noexcept { return ids_.contains(id); }
  bool is_full() const noexcept { return is_full_; }

 private:
  struct Hash {
    // Those of texts have two words of which each tells the other, so the two are not simply laid over each other.
    size_t operator()(const JobId& id) const noexcept { return id.words[0] * 0x9E3779B97F4A7C15u ^ id.words[1]; }
  };

  std::unordered_set<JobId, Hash> ids_;
  bool is_full_ = false;
};

}  // namespace telha
