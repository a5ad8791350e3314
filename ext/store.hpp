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

#include "claims.hpp"
#include "database.hpp"
#include "due.hpp"
#include "failure.hpp"
#include "fault.hpp"
#include "fork.hpp"
#include "group_commit.hpp"
#include "known_scopes.hpp"
#include "leased.hpp"
#include "owner_lock.hpp"
#include "probe.hpp"
#include "registry.hpp"
#include "rows.hpp"
#include "settings.hpp"
#include "syncer.hpp"
#include "times.hpp"
#include "turns.hpp"
#include "waiters.hpp"
#include "windows.hpp"

namespace telha {

class Store : public Times {
 public:
  static constexpr size_t kLeases = 64 * 1024;

  OwnerLock owner;
  Settings settings;
  Database database;
  std::mutex reaping;  // one pass at a time: a second one would find the leases popped and not yet reaped
  std::mutex mending;  // one repair at a time: a second one would go by what the first has changed
  std::mutex mutex;    // guards what follows, which is all that is in memory
  JobTable jobs;       // claims and rows by job id
  Claims claims{&jobs};
  Waiters waiters;
  KnownScopes scopes;
  Windows windows;
  LeasedRows leased{&jobs};
  DueHeap leases{kLeases};        // leased jobs by deadline, for the reaper
  bool knows_leases = false;      // whether every leased job stands in there, up to its horizon
  uint64_t generation_floor = 0;  // the least generation of a lease; final once the store is open
  uint64_t corrupt_leases = 0;    // leased rows that did not decode when the leases were read
  // Grows, under the mutex, when a job was moved or windows were filled. If it has not since before a job was written,
  // then nobody else has met that job.
  std::atomic<uint64_t> moves{0};

  Store() noexcept = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store() { Stores::of_process().forget(this); }

  // Requires that the settings are final. The lock is released when the database cannot be opened. With `recovers`,
  // what is missing is told in `dropped` and is no reason to refuse.
  Fault open(bool recovers) noexcept {
    fork::note_open();
    if (!Stores::of_process().begin_open(this)) {
      owner.release();
      return Fault::of(Code::kClosed);
    }
    Fault fault = open_database(recovers);
    Stores::of_process().end_open();
    return fault;
  }

  // Refuses new calls, wakes waiters, waits for calls under way, then releases everything in RocksDB's order. A call
  // that is not the first only waits until the first is done.
  Fault close() noexcept {
    std::unique_lock lock(mutex);
    left_.wait(lock, [this] { return phase_.load() != Phase::kReopening; });
    if (phase_.load() != Phase::kOpen && phase_.load() != Phase::kDown) {
      left_.wait(lock, [this] { return phase_.load() != Phase::kClosing; });
      return Fault{};
    }
    turns_.end();
    leave_phase(lock, Phase::kClosing);
    if (has_clock() && !failure.is_set()) write_clock();
    rocksdb::Status status = database.close();
    owner.release();
    lock.lock();
    phase_.store(Phase::kClosed);
    left_.notify_all();
    return !status.ok() && failure.is_set() ? failure.fault() : Fault::read(std::move(status));  // that is why
  }

  // Opens the database again, keeping the directory: calls under way are waited for, others wait meanwhile. If it
  // cannot be opened for writing, it is opened for reading, unless it is damaged and might be read with fewer rows.
  Fault reopen() noexcept {
    if (fork::is_child()) return Fault::of(Code::kForked);
    std::unique_lock lock(mutex);
    if (phase_.load() == Phase::kReopening) {
      left_.wait(lock, [this] { return phase_.load() != Phase::kReopening; });
      if (phase_.load() == Phase::kOpen) return failure.is_set() ? failure.fault() : Fault{};
    }
    if (phase_.load() != Phase::kOpen && phase_.load() != Phase::kDown) return Fault::of(Code::kClosed);
    leave_phase(lock, Phase::kReopening);
    if (!failure.is_set() && has_clock()) write_clock();
    (void)database.close();
    forget_all();
    rocksdb::Status status = database.open(settings, false, &dropped);
    Phase next = Phase::kOpen;
    if (status.ok()) {
      failure.clear();
      syncer_.start();
    } else {
      failure.replace(status);
      if (status.IsCorruption() || !database.open_for_reading(settings).ok()) next = Phase::kDown;
    }
    lock.lock();
    phase_.store(next);
    left_.notify_all();
    return Fault::read(std::move(status));
  }

  // Before a verb that writes: after a failed write, tries at most once a second whether the cause is gone.
  void heal() noexcept {
    if (!failure.is_set() || fork::is_child() || !failure.claim_try()) return;
    if (accepts_writes(settings.path)) (void)reopen();
  }

  // Around a verb that writes, unless it waits for an fsync, which threads share by waiting together.
  void take_turn() noexcept {
    heal();
    if (settings.durability != Durability::kSync && !fork::is_child()) turns_.take();
  }
  void give_turn_back() noexcept {
    if (settings.durability != Durability::kSync && !fork::is_child()) turns_.give_back();
  }

  bool is_open() const noexcept { return phase_.load() == Phase::kOpen; }

  // Makes one batch durable as the settings say. After a failed write every later one is refused, see failure.hpp.
  Fault commit(rocksdb::WriteBatch* batch) noexcept {
    if (failure.is_set()) return failure.fault();
    rocksdb::Status status =
        settings.durability == Durability::kSync ? group_commit_.write(database, batch) : database.write(false, batch);
    if (!status.ok()) {
      failure.remember(status);
      return Fault::write(std::move(status));
    }
    if (settings.durability == Durability::kGroup) syncer_.note_write();
    return Fault{};
  }

  // 64 well mixed bits (splitmix64). They tell ids apart and are no secret.
  uint64_t random() noexcept {
    uint64_t z = random_state_.fetch_add(0x9E3779B97F4A7C15u) + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // Takes everything that was acknowledged to disk; mode sync has done so already.
  Fault flush() noexcept;

  Dropped dropped;  // when it was opened
  Failure failure;  // since then

  // Rows that a scan met and could not decode, since the store was opened.
  std::atomic<uint64_t> corrupt_rows{0};

 private:
  friend class Visit;
  using Stores = Registry<Store>;
  enum class Phase { kNew, kOpen, kReopening, kDown, kClosing, kClosed };  // down: not even reading works

  Fault open_database(bool recovers) noexcept {
    rocksdb::Status status = database.open(settings, recovers, &dropped);
    if (!status.ok()) {
      owner.release();
      return Fault::read(std::move(status));
    }
    random_state_ = (uint64_t{std::random_device{}()} << 32) | std::random_device{}();
    windows.set_ready_limit(settings.window_jobs);
    phase_.store(Phase::kOpen);
    syncer_.start();
    return Fault{};
  }

  // Waits, with the mutex, until the last call has left; then lets go of the mutex and ends the syncing thread.
  void leave_phase(std::unique_lock<std::mutex>& lock, Phase phase) noexcept {
    phase_.store(phase);
    waiters.wake_all();
    left_.wait(lock, [this] { return visits_.load() == 0; });
    lock.unlock();
    syncer_.stop();
  }

  // What memory knows of jobs: a write that failed may be there after all once the log is read again.
  void forget_all() noexcept {
    renew(&leased, &jobs);
    renew(&claims, &jobs);
    renew(&jobs);
    renew(&windows);
    windows.set_ready_limit(settings.window_jobs);
    renew(&scopes);
    group_commit_.begin_anew();
    leases.clear();
    knows_leases = false;
    corrupt_leases = 0;
    moves.fetch_add(1);
  }

  template <typename Part, typename... Arguments>
  static void renew(Part* part, Arguments... arguments) noexcept {
    std::destroy_at(part);
    std::construct_at(part, arguments...);
  }

  // For a call that found the store not open: whether it is worth entering again.
  Fault await_reopening() noexcept {
    std::unique_lock lock(mutex);
    left_.wait(lock, [this] { return phase_.load() != Phase::kReopening; });
    if (phase_.load() == Phase::kDown) return failure.fault();
    return phase_.load() == Phase::kOpen ? Fault{} : Fault::of(Code::kClosed);
  }

  // The last write, which takes everything to disk.
  void write_clock() noexcept {
    char bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(last_seen_us() >> (56 - 8 * i));
    rocksdb::WriteOptions options;
    options.sync = true;
    const auto status = database.db()->Put(options, database.family(Family::kMeta), "clock", {bytes, sizeof bytes});
    if (!status.ok()) return failure.remember(status);
    (void)database.mark(database.db()->GetLatestSequenceNumber());
  }

  Turns turns_;
  GroupCommit group_commit_;
  std::atomic<Phase> phase_{Phase::kNew};
  std::atomic<int64_t> visits_{0};
  std::condition_variable left_;  // the last visit under a closing store, or the store itself, is gone

  std::atomic<uint64_t> random_state_{0};
  Syncer syncer_{&settings, &database, &failure};
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
    for (;;) {
      store->visits_.fetch_add(1);
      store_ = store;
      if (store->is_open()) return Fault{};
      leave();
      if (Fault fault = store->await_reopening(); !fault.ok()) return fault;
    }
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

inline Fault Store::flush() noexcept {
  Visit visit;
  Fault fault = visit.enter(this);
  uint64_t durable = 0;
  if (fault.ok() && failure.is_set()) return failure.fault();
  if (!fault.ok() || settings.durability == Durability::kSync) return fault;
  const rocksdb::Status status = syncer_.sync(&durable);
  if (status.ok()) (void)database.mark(durable);
  return Fault::write(status);
}

// At the end of the process; see registry.hpp. Returns how many stores could not be closed well.
inline size_t close_all_stores() noexcept { return Registry<Store>::of_process().end(); }

}  // namespace telha
