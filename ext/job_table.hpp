// job_table.hpp: what memory holds of jobs by their ids: a claim, a row, or both. One probe finds either.
//
// An open-addressed table, because every verb looks several jobs up and a list of nodes per bucket costs a cache miss
// for each. A slot that holds neither is free. It grows to what it held at most and stays that large; who puts rows in
// bounds them. Wants the store's mutex held.
#pragma once

#include <memory>
#include <utility>

#include "job_id.hpp"
#include "row.hpp"

namespace telha {

// Why a job is claimed. A lease in progress takes the job away, so that other leases pass it by. Any other verb may be
// refused and leave the job as ready as it was, so a lease that needs the job waits for the verb to end.
enum class Claim : uint8_t { kNone, kLease, kOther };

class JobTable {
 public:
  struct Slot {
    JobId id;
    Row row;
    Claim claim = Claim::kNone;
    bool is_reserved = false;  // by the call that comes next, whoever has the claim

    bool is_free() const noexcept { return claim == Claim::kNone && row.is_null() && !is_reserved; }
  };

  // Null when nothing is held of the job. Valid until the next call of hold() or settle().
  Slot* find(const JobId& id) const noexcept {
    for (size_t i = home(id);; i = next(i)) {
      Slot& slot = slots_[i];
      if (slot.is_free()) return nullptr;
      if (slot.id == id) return &slot;
    }
  }

  // The slot of a job, free if nothing was held of it. The caller puts something in, and calls settle() on what it
  // takes things out of.
  Slot* hold(const JobId& id) noexcept {
    if (2 * (held_ + 1) > size()) grow();
    size_t i = home(id);
    while (!slots_[i].is_free() && !(slots_[i].id == id)) i = next(i);
    if (slots_[i].is_free()) {
      slots_[i].id = id;
      ++held_;
    }
    return &slots_[i];
  }

  // Something was taken out of a slot: if it is free now, the slots behind it move up, so that no search ends early.
  void settle(Slot* slot) noexcept {
    if (!slot->is_free()) return;
    --held_;
    size_t hole = static_cast<size_t>(slot - slots_.get());
    for (size_t i = next(hole); !slots_[i].is_free(); i = next(i)) {
      const size_t behind_home = (i - home(slots_[i].id)) & (size() - 1);
      if (behind_home < ((i - hole) & (size() - 1))) continue;  // its home lies behind the hole
      slots_[hole] = std::move(slots_[i]);
      slots_[i] = Slot();
      hole = i;
    }
  }

 private:
  static constexpr int kLeastBits = 8;

  size_t size() const noexcept { return size_t{1} << bits_; }
  size_t next(size_t i) const noexcept { return (i + 1) & (size() - 1); }
  size_t home(const JobId& id) const noexcept { return JobIdHash()(id, bits_); }

  void grow() noexcept {
    const std::unique_ptr<Slot[]> old = std::move(slots_);
    const size_t old_size = size();
    ++bits_;
    slots_.reset(new Slot[size()]);
    for (size_t i = 0; i < old_size; ++i) {
      if (old[i].is_free()) continue;
      size_t to = home(old[i].id);
      while (!slots_[to].is_free()) to = next(to);
      slots_[to] = std::move(old[i]);
    }
  }

  int bits_ = kLeastBits;
  size_t held_ = 0;
  std::unique_ptr<Slot[]> slots_{new Slot[size_t{1} << kLeastBits]};
};

}  // namespace telha
