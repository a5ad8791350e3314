// window.hpp: which jobs are next, in memory, so that a lease costs the same whatever lies in front of its job.
//
// One window per scope and filter that workers ask for. A window knows every pending job of its filter up to its
// cursor, in order: those that are due are `ready`, the others `gated`. What is behind the cursor is found by a scan
// from there (scan.pxd). Deleted rows, gated rows and rows of other kinds are thus walked once and not at every lease.
//
// A cache and never the truth: an entry without a row may be out of date, so whoever takes it reads its row first. One
// with a row is what is stored unless the job is claimed, because every move is told of before its claim is given back
// (announce.pxd). What a window must not do is miss a job. All methods want the store's mutex held. No I/O, no clock.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <utility>

#include "due.hpp"
#include "kinds.hpp"
#include "row.hpp"

namespace telha {

// A job that is next, and its row as it is stored. Null when it has to be read: a gate has opened, or the row is large.
struct ReadyJob {
  Key key;
  Row row;

  const char* order() const noexcept { return key.order(); }
  size_t row_bytes() const noexcept { return row.is_null() ? 0 : row.bytes(); }
};

class Window {
 public:
  static constexpr size_t kMaxRowBytes = 4 << 20;
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

  bool is_for(const char* scope, const Kinds& wanted) const noexcept {
    return (scope == nullptr) == scope_.empty() &&
           (scope == nullptr || std::memcmp(scope, scope_.data(), Key::kScopeBytes) == 0) && kinds == wanted;
  }

  // Tells of a pending job of a wanted kind that was written just now. One behind the cursor is left to the scan. A row
  // that is not current, because the job may have moved since, only says where to look.
  void offer(const Row& row, int64_t not_before_us, bool is_current) noexcept {
    if (!is_known(row.key() + Key::kOrderAt)) return;
    if (not_before_us >= 0) {
      gated_.push(not_before_us, row.key());
    } else {
      insert({Key(row.key()), is_current ? row : Row()});
    }
  }

  // Tells of one that a scan has met; the scan then moves the cursor past it.
  void add(const char* key, const Bytes& value, int64_t not_before_us) noexcept {
    if (not_before_us >= 0) {
      gated_.push(not_before_us, key);
    } else {
      const bool has_room = row_bytes_ + value.size < kMaxRowBytes;
      insert({Key(key), has_room ? Row::of(key, value) : Row()});
    }
  }

  // The first job that is ready, null when none is known to be. Opens the gates whose time has come.
  const ReadyJob* first(int64_t now_us) noexcept {
    if (gated_.is_past_horizon(now_us)) restart();
    for (const char* key; (key = gated_.top(now_us)) != nullptr;) {
      // A job behind the cursor will be met by the scan; before the cursor it has waited here.
      if (is_known(key + Key::kOrderAt)) insert({Key(key), Row()});
      gated_.pop();
    }
    return ready_.empty() ? nullptr : &ready_.front();
  }

  // The job has left, or is leaving, the Pending state. A gate of its own that stays behind opens on nothing.
  void withdraw(const char* key) noexcept {
    const char* order = key + Key::kOrderAt;
    if (ready_.empty()) return;
    const int compared = compare_order(order, ready_.front().order());
    if (compared < 0) return;  // most jobs that move have left from the front
    const auto at = compared == 0 ? ready_.begin() : find(order);
    if (at == ready_.end() || compare_order(at->order(), order) != 0) return;
    row_bytes_ -= at->row_bytes();
    ready_.erase(at);
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
    while (!ready_.empty() && compare_order(ready_.back().order(), last_order) > 0) pop_back();
  }

  // Forgets everything; the next scan starts at the beginning.
  void restart() noexcept {
    ready_.clear();
    row_bytes_ = 0;
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

  std::deque<ReadyJob>::iterator find(const char* order) noexcept {
    return std::lower_bound(ready_.begin(), ready_.end(), order, [](const ReadyJob& job, const char* wanted) {
      return compare_order(job.order(), wanted) < 0;
    });
  }

  // A job that is here already takes the row that it is told of with, which is a later one.
  void insert(ReadyJob job) noexcept {
    if (row_bytes_ + job.row_bytes() > kMaxRowBytes) job.row = Row();
    row_bytes_ += job.row_bytes();
    if (ready_.empty() || compare_order(ready_.back().order(), job.order()) < 0) {
      ready_.push_back(std::move(job));
    } else {
      const auto at = find(job.order());
      if (compare_order(at->order(), job.order()) == 0) {
        row_bytes_ -= at->row_bytes();
        at->row = std::move(job.row);
        return;
      }
      ready_.insert(at, std::move(job));
    }
    if (ready_.size() > ready_limit_) forget_last();
  }

  void pop_back() noexcept {
    row_bytes_ -= ready_.back().row_bytes();
    ready_.pop_back();
  }

  // Full: the last job is left to a later scan, which then starts before it. A scan under way goes on from where it
  // started in every scope, so the cursor stays until it ends.
  void forget_last() noexcept {
    pop_back();
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
  std::deque<ReadyJob> ready_;
  size_t row_bytes_ = 0;  // of the rows in ready_
  DueHeap gated_;
  std::string cursor_;        // jobs up to and with it are known; a job's order and a zero byte
  size_t counted_ = 0;        // the entries of it that Windows has counted, ...
  size_t counted_bytes_ = 0;  // ... and the bytes of their rows
  std::string overflow_;      // the last job that a scan under way has room for
  bool is_scanning_ = false;
  bool is_complete_ = false;
};

}  // namespace telha
