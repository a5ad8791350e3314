// due.hpp: jobs by the time at which something is due: a gate that opens, a lease that runs out.
//
// A cache with a bound. When it is full it forgets its later half and remembers from when on it knows nothing, its
// horizon; whoever reaches the horizon has to fill it anew from disk. Entries may be out of date: each says where to
// look, not what is there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace telha {

// A job key; keys.pxd says what is in it. Jobs are leased in the order of what follows scope and state.
struct Key {
  static constexpr size_t kBytes = 58;
  static constexpr size_t kScopeBytes = 32;
  static constexpr size_t kOrderAt = 33;
  static constexpr size_t kOrderBytes = kBytes - kOrderAt;

  char bytes[kBytes];

  Key() noexcept = default;
  explicit Key(const char* data) noexcept { std::memcpy(bytes, data, kBytes); }
  const char* order() const noexcept { return bytes + kOrderAt; }
};

inline int compare_order(const char* left, const char* right) noexcept {
  return std::memcmp(left, right, Key::kOrderBytes);
}

class DueHeap {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  explicit DueHeap(size_t limit) noexcept : limit_(limit) {}

  void push(int64_t at_us, const char* key) noexcept {
    if (is_past_horizon(at_us)) return;
    entries_.push_back({at_us, Key(key)});
    std::push_heap(entries_.begin(), entries_.end(), later);
    if (entries_.size() > limit_) forget_half();
  }

  // The earliest entry that is due, null when none is; pop() removes it.
  const char* top(int64_t now_us) const noexcept {
    return entries_.empty() || entries_.front().at_us > now_us ? nullptr : entries_.front().key.bytes;
  }

  void pop() noexcept {
    std::pop_heap(entries_.begin(), entries_.end(), later);
    entries_.pop_back();
  }

  // When to look next: the earliest entry, or the horizon.
  int64_t next_us() const noexcept { return entries_.empty() ? horizon_us_ : entries_.front().at_us; }

  bool is_past_horizon(int64_t now_us) const noexcept { return has_horizon_ && now_us >= horizon_us_; }

  // Forgets the jobs behind `order`, because a scan that starts there will add them again.
  void forget_behind(const char* order) noexcept {
    std::erase_if(entries_, [order](const Entry& entry) { return compare_order(entry.key.order(), order) > 0; });
    std::make_heap(entries_.begin(), entries_.end(), later);
  }

  void clear() noexcept {
    entries_.clear();
    horizon_us_ = kNever;
    has_horizon_ = false;
  }

  size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    int64_t at_us;
    Key key;
  };

  static bool later(const Entry& left, const Entry& right) noexcept { return left.at_us > right.at_us; }

  void forget_half() noexcept {
    std::sort(entries_.begin(), entries_.end(), [](const Entry& l, const Entry& r) { return l.at_us < r.at_us; });
    // Entries that are due just at the horizon may stay: whoever works them off gets on, even if all are due at once.
    const auto cut = entries_.begin() + static_cast<std::ptrdiff_t>(entries_.size() / 2);
    horizon_us_ = cut->at_us;
    has_horizon_ = true;
    entries_.erase(cut, entries_.end());
    std::make_heap(entries_.begin(), entries_.end(), later);
  }

  size_t limit_;
  std::vector<Entry> entries_;
  int64_t horizon_us_ = kNever;
  bool has_horizon_ = false;  // the end of time is a time like any other
};

}  // namespace telha
