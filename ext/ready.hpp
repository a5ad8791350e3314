// ready.hpp: which jobs are next, in memory, so that a lease costs the same whatever lies in front of its job.
//
// One window per scope and filter that workers ask for. A window knows every pending job of its filter up to its
// cursor, in order: those that are due are `ready`, the others `gated`. What is behind the cursor is found by a scan
// from there (scan.pxd). Deleted rows, gated rows and rows of other kinds are thus walked once and not at every lease.
//
// A cache and never the truth: an entry may be out of date, so whoever takes it looks at its row. What it must not do
// is miss a job. All methods want the store's mutex held. No I/O, no RocksDB, no clock.
#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "due.hpp"
#include "kinds.hpp"

namespace telha {

class Window {
 public:
  // Gated jobs may be many times as many as ready ones: to find them anew costs a scan of all rows.
  static constexpr size_t kGatedPerReady = 16;

  Window(const char* scope, std::string filter, size_t ready_limit)
      : filter_(std::move(filter)),
        scope_(scope ? std::string(scope, Key::kScopeBytes) : std::string()),
        ready_limit_(ready_limit),
        gated_(ready_limit * kGatedPerReady) {
    kinds = Kinds::of(filter_);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  Kinds kinds;  // borrows from filter_

  const char* scope() const noexcept { return scope_.empty() ? nullptr : scope_.data(); }

  // Tells of a pending job of a wanted kind that was written just now. One behind the cursor is left to the scan.
  void offer(const char* key, int64_t not_before_us) noexcept {
    if (is_known(key + Key::kOrderAt)) add(key, not_before_us);
  }

  // Tells of one that a scan has met; the scan then moves the cursor past it.
  void add(const char* key, int64_t not_before_us) noexcept {
    if (not_before_us >= 0) {
      gated_.push(not_before_us, key);
    } else {
      insert(key);
    }
  }

  // The first job that is ready, null when none is known to be. Opens the gates whose time has come.
  const char* first(int64_t now_us) noexcept {
    if (gated_.is_past_horizon(now_us)) restart();
    for (const char* key; (key = gated_.top(now_us)) != nullptr;) {
      // A job behind the cursor will be met by the scan; before the cursor it has waited here.
      if (is_known(key + Key::kOrderAt)) insert(key);
      gated_.pop();
    }
    return ready_.empty() ? nullptr : ready_.front().bytes;
  }

  // The job has left, or is leaving, the Pending state. A gate of its own that stays behind opens on nothing.
  void withdraw(const char* key) noexcept {
    const auto at = find(key + Key::kOrderAt);
    if (at != ready_.end() && compare_order(at->order(), key + Key::kOrderAt) == 0) ready_.erase(at);
  }

  // When first() may have more to tell than now; DueHeap::kNever when only offer() can change that.
  int64_t next_due_us() const noexcept { return gated_.next_us(); }

  // Whether all jobs of the filter are known, so that none is left to scan for.
  bool is_complete() const noexcept { return is_complete_; }

  // The order from which a scan has to go on; empty for the beginning.
  const char* cursor() const noexcept { return cursor_.data(); }
  size_t cursor_size() const noexcept { return cursor_.size(); }

  // Around a scan, which add()s what it meets. It ends at the order of the last row that it has seen, or, with null,
  // at the end of all rows.
  void begin_scan() noexcept {
    if (cursor_.empty()) {
      gated_.clear();
    } else {
      gated_.forget_behind(cursor_.data());
    }
    overflow_.clear();
    is_scanning_ = true;
  }
  void end_scan(const char* last_order) noexcept {
    is_scanning_ = false;
    if (!overflow_.empty() && (last_order == nullptr || compare_order(overflow_.data(), last_order) < 0)) {
      last_order = overflow_.data();
    }
    is_complete_ = last_order == nullptr;
    if (is_complete_) return;
    know_up_to(last_order);
    while (!ready_.empty() && compare_order(ready_.back().order(), last_order) > 0) ready_.pop_back();
  }

  // Forgets everything; the next scan starts at the beginning.
  void restart() noexcept {
    ready_.clear();
    gated_.clear();
    cursor_.clear();
    is_scanning_ = false;
    is_complete_ = false;
  }

  size_t size() const noexcept { return ready_.size() + gated_.size(); }

 private:
  friend class Windows;

  bool is_known(const char* order) const noexcept {
    return is_complete_ || (!cursor_.empty() && compare_order(order, cursor_.data()) <= 0);
  }

  std::deque<Key>::iterator find(const char* order) noexcept {
    return std::lower_bound(ready_.begin(), ready_.end(), order,
                            [](const Key& key, const char* wanted) { return compare_order(key.order(), wanted) < 0; });
  }

  void insert(const char* key) noexcept {
    const char* order = key + Key::kOrderAt;
    if (ready_.empty() || compare_order(ready_.back().order(), order) < 0) {
      ready_.emplace_back(key);
    } else {
      const auto at = find(order);
      if (compare_order(at->order(), order) == 0) return;
      ready_.emplace(at, key);
    }
    if (ready_.size() > ready_limit_) forget_last();
  }

  // Full: the last job is left to a later scan, which then starts before it. A scan under way goes on from where it
  // started in every scope, so the cursor stays until it ends.
  void forget_last() noexcept {
    ready_.pop_back();
    overflow_.assign(ready_.back().order(), Key::kOrderBytes);
    if (is_scanning_) return;
    know_up_to(overflow_.data());
    is_complete_ = false;
  }

  void know_up_to(const char* order) noexcept {
    cursor_.assign(order, Key::kOrderBytes);
    cursor_.push_back('\0');  // the least string that is greater
  }

  std::string filter_;
  std::string scope_;  // empty: all scopes
  size_t ready_limit_;
  std::deque<Key> ready_;
  DueHeap gated_;
  std::string cursor_;    // jobs up to and with it are known; a job's order and a zero byte
  size_t counted_ = 0;    // the entries of it that Windows has counted
  std::string overflow_;  // the last job that a scan under way has room for
  bool is_scanning_ = false;
  bool is_complete_ = false;
};

// All windows of a store, bounded in number and in entries: the one that was asked for the longest time ago goes first.
class Windows {
 public:
  static constexpr size_t kMaxWindows = 8 * 1024;
  static constexpr size_t kMaxEntries = 1024 * 1024;

  // Before the first call of find(): how many ready jobs a window may hold.
  void set_ready_limit(size_t limit) noexcept { ready_limit_ = limit; }

  // The window of a scope (null: all scopes) and filter, made when it is new. It stays where it is until the next
  // call of find().
  Window* find(const char* scope, const Kinds& kinds) noexcept {
    // The first byte keeps a scope's bytes from being read as a filter.
    std::string name = scope ? "s" + std::string(scope, Key::kScopeBytes) : std::string("a");
    name += kinds.name();
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      count(&recent_.front().window);
      make_room();
      return &recent_.front().window;
    }
    recent_.emplace_front(std::move(name), scope, kinds.name(), ready_limit_);
    Slot& slot = recent_.front();
    by_name_.emplace(slot.name, recent_.begin());
    Group& windows = scope ? by_scope_[std::string(scope, Key::kScopeBytes)] : any_;
    windows.push_back(&slot.window);
    make_room();
    return &slot.window;
  }

  // The windows that a job of a scope can stand in: those of the scope, and those of all scopes (null).
  size_t count_of(const char* scope) noexcept { return group(scope).size(); }
  Window* of(const char* scope, size_t index) noexcept { return group(scope)[index]; }

  // Brings the number of entries up to date with a window that was told of a job, or filled.
  void count(Window* window) noexcept {
    entries_ += window->size() - window->counted_;
    window->counted_ = window->size();
  }

  void withdraw(const char* key) noexcept {
    for (Window* window : group(key)) window->withdraw(key);
    for (Window* window : group(nullptr)) window->withdraw(key);
  }

 private:
  struct Slot {
    Slot(std::string name_, const char* scope, std::string filter, size_t ready_limit)
        : name(std::move(name_)), window(scope, std::move(filter), ready_limit) {}
    std::string name;
    Window window;
  };
  using Group = std::vector<Window*>;

  Group& group(const char* scope) noexcept {
    if (scope == nullptr) return any_;
    const auto found = by_scope_.find(std::string(scope, Key::kScopeBytes));
    return found == by_scope_.end() ? none_ : found->second;
  }

  // The window in front is in use.
  void make_room() noexcept {
    while (recent_.size() > 1 && (recent_.size() > kMaxWindows || entries_ > kMaxEntries)) forget_oldest();
  }

  void forget_oldest() noexcept {
    Slot& slot = recent_.back();
    const char* scope = slot.window.scope();
    Group& windows = group(scope);
    entries_ -= slot.window.counted_;
    std::erase(windows, &slot.window);
    if (scope != nullptr && windows.empty()) by_scope_.erase(std::string(scope, Key::kScopeBytes));
    by_name_.erase(slot.name);
    recent_.pop_back();
  }

  size_t ready_limit_ = 4096;
  size_t entries_ = 0;
  std::list<Slot> recent_;  // the one asked for last in front
  std::unordered_map<std::string, std::list<Slot>::iterator> by_name_;
  std::unordered_map<std::string, Group> by_scope_;
  Group any_;
  Group none_;
};

}  // namespace telha
