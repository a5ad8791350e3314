// store.hpp: one open queue directory: who may call it when, what it writes, and how it ends.
//
// Verbs (lease.pxd and its neighbours) enter through a Visit, take the mutex only for what is in memory, and write
// through commit(). No Python object is touched in here and the GIL is never held.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "claims.hpp"
#include "database.hpp"
#include "due.hpp"
#include "fault.hpp"
#include "fork.hpp"
#include "group_commit.hpp"
#include "known_scopes.hpp"
#include "leased.hpp"
#include "owner_lock.hpp"
#include "registry.hpp"
#include "rows.hpp"
#include "settings.hpp"
#include "turns.hpp"
#include "waiters.hpp"
#include "windows.hpp"

namespace telha {

class Store {
 public:
  static constexpr size_t kLeases = 64 * 1024;

  OwnerLock owner;
  Settings settings;
  Database database;
  std::mutex reaping;  // one pass at a time: a second one would find the leases popped and not yet reaped
  std::mutex mutex;    // guards what follows, which is all that is in memory
  JobTable jobs;       // claims and rows by job id
  Claims claims{&jobs};
  Waiters waiters;
  KnownScopes scopes;
  Windows windows;
  LeasedRows leased{&jobs};
  DueHeap leases{kLeases};      // leased jobs by deadline, for the reaper
  bool knows_leases = false;    // whether every leased job stands in there, up to its horizon
  uint64_t corrupt_leases = 0;  // leased rows that did not decode when the leases were read
  // Grows, under the mutex, when a job was moved or windows were filled. If it has not since before a job was written,
  // then nobody else has met that job.
  std::atomic<uint64_t> moves{0};

  Store() noexcept = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store() { Stores::of_process().forget(this); }

  // Requires that the settings are final. The lock is released when the database cannot be opened.
  Fault open() noexcept {
    fork::note_open();
    if (!Stores::of_process().begin_open(this)) {
      owner.release();
      return Fault::of(Code::kClosed);
    }
    Fault fault = open_database();
    Stores::of_process().end_open();
    return fault;
  }

  // Refuses new calls, wakes waiters, waits for calls under way, then releases everything in RocksDB's order. A call
  // that is not the first only waits until the first is done.
  Fault close() noexcept {
    std::unique_lock lock(mutex);
    if (phase_.load() != Phase::kOpen) {
      left_.wait(lock, [this] { return phase_.load() != Phase::kClosing; });
      return Fault{};
    }
    phase_.store(Phase::kClosing);
    waiters.wake_all();
    left_.wait(lock, [this] { return visits_.load() == 0; });
    lock.unlock();
    stop_syncing();
    if (has_clock_.load() && !has_failed_.load()) write_clock();
    rocksdb::Status status = database.close();
    owner.release();
    lock.lock();
    phase_.store(Phase::kClosed);
    left_.notify_all();
    return Fault::read(std::move(status));
  }

  // Around a verb that writes, unless it waits for an fsync, which threads share by waiting together.
  void take_turn() noexcept {
    if (settings.durability != Durability::kSync && !fork::is_child()) turns_.take();
  }
  void give_turn_back() noexcept {
    if (settings.durability != Durability::kSync && !fork::is_child()) turns_.give_back();
  }

  bool is_open() const noexcept { return phase_.load() == Phase::kOpen; }

  // Makes one batch durable as the settings say. After a failed write every later one is refused with the first cause:
  // the log's tail is then in doubt, and RocksDB with assertions may abort when it is synced or appended to again.
  Fault commit(rocksdb::WriteBatch* batch) noexcept {
    if (has_failed_.load(std::memory_order_acquire)) return failed();
    rocksdb::Status status = settings.durability == Durability::kSync
                                 ? group_commit_.write(database, batch)
                                 : database.db()->Write(rocksdb::WriteOptions(), batch);
    if (!status.ok()) {
      remember_failure(status);
      return Fault::write(std::move(status));
    }
    if (settings.durability == Durability::kGroup) is_dirty_.store(true, std::memory_order_release);
    return Fault{};
  }

  // Strictly increasing over all jobs of the store, across ties and steps of the clock.
  uint64_t next_created_at(int64_t now_us) noexcept {
    uint64_t last = last_created_at_.load();
    uint64_t next = 0;
    do {
      next = std::min(std::max(last + 1, static_cast<uint64_t>(now_us)), kMaxTimeUs);
    } while (!last_created_at_.compare_exchange_weak(last, next));
    return next;
  }

  // 64 well mixed bits (splitmix64). They tell ids apart and are no secret.
  uint64_t random() noexcept {
    uint64_t z = random_state_.fetch_add(0x9E3779B97F4A7C15u) + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // The latest time that stored jobs, a clean close or a verb bear witness to.
  uint64_t last_seen_us() const noexcept { return std::max(seen_us_.load(), last_created_at_.load()); }

  // Takes note of the time of a call; returns the latest of any call. A thread that has read the clock and then waited
  // must not decide as of an earlier time than others have.
  int64_t see(int64_t now_us) noexcept {
    uint64_t seen = seen_us_.load(std::memory_order_relaxed);
    const auto now = static_cast<uint64_t>(now_us);
    while (seen < now && !seen_us_.compare_exchange_weak(seen, now)) {
    }
    return static_cast<int64_t>(std::max(seen, now));
  }

  void restore_clock(uint64_t last_created_at, uint64_t seen_us) noexcept {
    last_created_at_.store(last_created_at);
    seen_us_.store(seen_us);
    has_clock_.store(true);
  }

  // Rows that a scan met and could not decode, since the store was opened.
  std::atomic<uint64_t> corrupt_rows{0};

 private:
  friend class Visit;
  using Stores = Registry<Store>;
  static constexpr uint64_t kMaxTimeUs = INT64_MAX;
  enum class Phase { kNew, kOpen, kClosing, kClosed };

  Fault open_database() noexcept {
    rocksdb::Status status = database.open(settings);
    if (!status.ok()) {
      owner.release();
      return Fault::read(std::move(status));
    }
    random_state_ = (uint64_t{std::random_device{}()} << 32) | std::random_device{}();
    windows.set_ready_limit(settings.window_jobs);
    phase_.store(Phase::kOpen);
    if (settings.durability == Durability::kGroup) syncer_ = std::thread([this] { sync_in_groups(); });
    return Fault{};
  }

  Fault failed() noexcept {
    std::lock_guard lock(failure_mutex_);
    Fault fault = Fault::of(Code::kFailed);
    fault.cause = std::make_shared<rocksdb::Status>(first_failure_);
    return fault;
  }

  void remember_failure(const rocksdb::Status& status) noexcept {
    std::lock_guard lock(failure_mutex_);
    if (!has_failed_.exchange(true)) first_failure_ = status;
  }

  void sync_in_groups() noexcept {
    const auto pause = std::chrono::milliseconds(settings.group_sync_ms);
    std::unique_lock lock(sync_mutex_);
    while (!stop_.wait_for(lock, pause, [this] { return is_stopping_; })) {
      // Never after a failed write: the log's tail is in doubt then, and syncing it may abort the process.
      if (!is_dirty_.exchange(false) || has_failed_.load()) continue;
      const rocksdb::Status status = database.db()->SyncWAL();
      if (!status.ok()) remember_failure(status);
    }
  }

  void stop_syncing() noexcept {
    {
      std::lock_guard lock(sync_mutex_);
      is_stopping_ = true;
    }
    stop_.notify_all();
    if (syncer_.joinable()) syncer_.join();
  }

  void write_clock() noexcept {
    char bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(last_seen_us() >> (56 - 8 * i));
    rocksdb::WriteOptions options;
    options.sync = true;
    (void)database.db()->Put(options, database.family(Family::kMeta), "clock", rocksdb::Slice(bytes, sizeof bytes));
  }

  Turns turns_;
  GroupCommit group_commit_;
  std::atomic<Phase> phase_{Phase::kNew};
  std::atomic<int64_t> visits_{0};
  std::condition_variable left_;  // the last visit under a closing store, or the store itself, is gone

  std::atomic<uint64_t> last_created_at_{0};
  std::atomic<uint64_t> seen_us_{0};
  std::atomic<uint64_t> random_state_{0};
  std::atomic<bool> has_clock_{false};  // the two above are what the store says, so they may be written back

  std::atomic<bool> has_failed_{false};
  std::mutex failure_mutex_;
  rocksdb::Status first_failure_;

  std::thread syncer_;
  std::mutex sync_mutex_;
  std::condition_variable stop_;
  std::atomic<bool> is_dirty_{false};
  bool is_stopping_ = false;
};

// One call of a verb. While it lives, close() waits.
class Visit {
 public:
  Visit() noexcept = default;
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit() { leave(); }

  Fault enter(Store* store) noexcept {
    if (fork::is_child()) return Fault::of(Code::kForked);
    store->visits_.fetch_add(1);
    store_ = store;
    if (store->is_open()) return Fault{};
    leave();
    return Fault::of(Code::kClosed);
  }

 private:
  void leave() noexcept {
    if (store_ == nullptr) return;
    Store* store = store_;
    store_ = nullptr;
    // The last one out of a store that is closing tells it. The mutex orders this against close() going to sleep.
    if (store->visits_.fetch_sub(1) == 1 && !store->is_open()) {
      std::lock_guard lock(store->mutex);
      store->left_.notify_all();
    }
  }

  Store* store_ = nullptr;
};

// At the end of the process; see registry.hpp. Returns how many stores could not be closed well.
inline size_t close_all_stores() noexcept { return Registry<Store>::of_process().end(); }

}  // namespace telha
