// group_commit.hpp: writes of several threads made durable by one fsync.
//
// RocksDB shares an fsync among the writers that stand in its queue when one begins. With a handful of threads that is
// half of them at a time, because those whom an fsync has just let go arrive while the next one runs. So writers line
// up here first: whoever leads waits a moment for as many as there were lately, for less than an fsync takes, and
// writes for all. A thread that is alone waits for nobody.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "database.hpp"

namespace telha {

class GroupCommit {
 public:
  // Writes the batch, with those of others, and returns when it is on disk. All of a group share one outcome.
  rocksdb::Status write(const Database& database, rocksdb::WriteBatch* batch) noexcept {
    Writer self{batch};
    std::unique_lock lock(mutex_);
    (last_ == nullptr ? first_ : last_->next) = &self;
    last_ = &self;
    ++waiting_;
    if (has_leader_) {
      if (waiting_ >= expected_) gathered_.notify_one();
      self.cv.wait(lock, [&] { return self.is_done || self.leads; });
      if (self.is_done) return self.status;
    }
    has_leader_ = true;
    lead(database, lock);
    return self.status;
  }

  // After the database was opened again.
  void begin_anew() noexcept {
    std::lock_guard lock(mutex_);
    failed_ = rocksdb::Status();
  }

 private:
  using Clock = std::chrono::steady_clock;

  struct Writer {
    rocksdb::WriteBatch* batch;
    rocksdb::Status status{};
    bool is_done = false;
    bool leads = false;
    Writer* next = nullptr;
    std::condition_variable cv{};
  };

  // Copies the writes of another batch behind those of one.
  class Appender : public rocksdb::WriteBatch::Handler {
   public:
    Appender(const Database& database, rocksdb::WriteBatch* to) noexcept : database_(database), to_(to) {}
    rocksdb::Status PutCF(uint32_t family, const rocksdb::Slice& key, const rocksdb::Slice& value) override {
      return to_->Put(database_.family_by_id(family), key, value);
    }
    rocksdb::Status DeleteCF(uint32_t family, const rocksdb::Slice& key) override {
      return to_->Delete(database_.family_by_id(family), key);
    }

   private:
    const Database& database_;
    rocksdb::WriteBatch* to_;
  };

  void lead(const Database& database, std::unique_lock<std::mutex>& lock) noexcept {
    if (waiting_ < expected_) {
      gathered_.wait_for(lock, fsync_time_, [this] { return waiting_ >= expected_; });
    }
    Writer* const group = first_;
    const size_t size = take_group();
    expected_ = SIZE_MAX;  // nobody need tell a leader that has left
    lock.unlock();
    const auto started = Clock::now();
    const rocksdb::Status status = failed_.ok() ? write_all(database, group) : failed_;
    const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - started);
    lock.lock();
    if (failed_.ok()) failed_ = status;
    fsync_time_ = std::min((7 * fsync_time_ + took) / 8, kLongestWait);
    expected_ = size + waiting_;
    for (Writer* writer = group; writer != nullptr;) {
      Writer* const next = writer->next;  // it may be gone once it is done
      writer->status = status;
      writer->is_done = true;
      writer->cv.notify_one();
      writer = next;
    }
    has_leader_ = first_ != nullptr;
    if (has_leader_) {
      first_->leads = true;
      first_->cv.notify_one();
    }
  }

  // Takes the first writers off the line, as many as make a batch of bounded size; returns how many.
  size_t take_group() noexcept {
    size_t size = 1, bytes = first_->batch->GetDataSize();
    Writer* end = first_;
    while (end->next != nullptr && bytes + end->next->batch->GetDataSize() <= kMaxGroupBytes) {
      end = end->next;
      bytes += end->batch->GetDataSize();
      ++size;
    }
    first_ = std::exchange(end->next, nullptr);
    if (first_ == nullptr) last_ = nullptr;
    waiting_ -= size;
    return size;
  }

  rocksdb::Status write_all(const Database& database, Writer* group) noexcept {
    if (group->next == nullptr) return database.write(true, group->batch);
    together_.Clear();
    Appender appender(database, &together_);
    for (Writer* writer = group; writer != nullptr; writer = writer->next) {
      const rocksdb::Status status = writer->batch->Iterate(&appender);
      if (!status.ok()) return status;
    }
    return database.write(true, &together_);
  }

  static constexpr std::chrono::nanoseconds kLongestWait{1'000'000};
  static constexpr size_t kMaxGroupBytes = 1024 * 1024;

  std::mutex mutex_;
  Writer* first_ = nullptr;
  Writer* last_ = nullptr;
  size_t waiting_ = 0;
  size_t expected_ = 0;  // how many writers the leader may hope for
  bool has_leader_ = false;
  std::condition_variable gathered_;
  rocksdb::Status failed_;                  // the first write that failed: nothing may be written to that log any more
  std::chrono::nanoseconds fsync_time_{0};  // lately
  rocksdb::WriteBatch together_;            // the leader's
};

}  // namespace telha
