// syncer.hpp: the thread that fsyncs the log in mode group, and writes down now and then what is on disk.
#pragma once

#include <rocksdb/db.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "database.hpp"
#include "failure.hpp"
#include "settings.hpp"

namespace telha {

class Syncer {
 public:
  Syncer(const Settings* settings, Database* database, Failure* failure) noexcept
      : settings_(settings), database_(database), failure_(failure) {}

  void start() noexcept {
    is_stopping_ = false;
    if (settings_->durability != Durability::kOs) thread_ = std::thread([this] { run(); });
  }

  void stop() noexcept {
    {
      std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    stop_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // Something was written in mode group.
  void note_write() noexcept { is_dirty_.store(true, std::memory_order_release); }

  // Takes everything written so far to disk. `durable`: the sequence number of its newest row.
  rocksdb::Status sync(uint64_t* durable) noexcept {
    const uint64_t sequence = database_->newest_sequence();
    const rocksdb::Status status = database_->sync();
    if (status.ok()) {
      *durable = std::max(*durable, sequence);
    } else {
      failure_->remember(status);
    }
    return status;
  }

 private:
  static constexpr std::chrono::milliseconds kMarkPause{1000};  // at least, between two marks

  void run() noexcept {
    const bool groups = settings_->durability == Durability::kGroup;
    const auto pause = groups ? std::chrono::milliseconds(settings_->group_sync_ms) : kMarkPause;
    auto marked_at = std::chrono::steady_clock::now();
    uint64_t durable = 0;
    std::unique_lock lock(mutex_);
    while (!stop_.wait_for(lock, pause, [this] { return is_stopping_; })) {
      if (groups) sync_if_dirty(&durable);  // after a failed write too, for those before it
      if (failure_->is_set()) continue;
      if (!groups) durable = database_->newest_sequence();  // a row gets there when it is on disk
      const auto now = std::chrono::steady_clock::now();
      if (now - marked_at < kMarkPause || durable == 0) continue;
      marked_at = now;
      (void)database_->mark(durable);  // if it cannot be written, the older one is true too
    }
    if (groups) sync_if_dirty(&durable);
  }

  void sync_if_dirty(uint64_t* durable) noexcept {
    if (is_dirty_.exchange(false)) (void)sync(durable);
  }

  const Settings* settings_;
  Database* database_;
  Failure* failure_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable stop_;
  std::atomic<bool> is_dirty_{false};
  bool is_stopping_ = false;
};

}  // namespace telha
