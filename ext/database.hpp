// database.hpp: the RocksDB database behind a store: its column families, options, and the order in which it is opened
// and closed. Knows bytes; knows nothing of jobs.
#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "durable.hpp"
#include "guard.hpp"
#include "log_gaps.hpp"
#include "quiet_logger.hpp"
#include "settings.hpp"
#include "stall.hpp"
#include "watched_files.hpp"

namespace telha {

enum class Family : size_t { kMeta = 0, kJobs, kIds, kIdempotency, kPayloads, kResults, kExpiries, kData, kCount };

// What an operator chose to do without.
struct Dropped {
  std::string damage;             // empty: nothing was missing
  uint64_t sequence_numbers = 0;  // of the newest rows; others may be missing too
};

class Database {
 public:
  static constexpr size_t kFamilies = static_cast<size_t>(Family::kCount);

  // Changes the options before they are used: how bench/floor.cc measures those that were not chosen.
  using Trial = std::function<void(rocksdb::DBOptions*, rocksdb::ColumnFamilyOptions* jobs)>;
  void set_trial(Trial trial) noexcept { trial_ = std::move(trial); }

  // Corruption when something is gone that was on disk. With `recovers`, that is told in `dropped` instead.
  rocksdb::Status open(const Settings& settings, bool recovers, Dropped* dropped) noexcept {
    rocksdb::Status status = Durable::status_of(durable_.open(settings.path, settings.durability == Durability::kSync));
    if (!status.ok() && !(recovers && status.IsCorruption())) return status;
    const Mark mark = durable_.marked();
    Guard guard = Guard::look(settings.path, mark);
    if (guard.error != 0) return Durable::status_of(guard.error, settings.path);
    if (!status.ok()) guard.damage.push_back(status.ToString());
    if (!guard.damage.empty() && !recovers) return rocksdb::Status::Corruption(guard.text());
    if (guard.is_stale) durable_.clear();
    if (!guard.ragged.empty() && ::truncate(guard.ragged.c_str(), static_cast<off_t>(guard.ragged_at)) != 0) {
      return Durable::status_of(errno);
    }
    bool is_new = false;
    status = look(settings.path, &is_new);
    if (status.ok()) status = open_rocksdb(settings, is_new, false);
    if (!status.ok()) return status;
    const uint64_t sequence = db_->GetLatestSequenceNumber();
    guard.compare(sequence, mark);
    if (!guard.damage.empty() && !recovers) {
      (void)close();
      return rocksdb::Status::Corruption(guard.text());
    }
    if (!guard.damage.empty()) *dropped = {guard.text(), mark.sequence - std::min(sequence, mark.sequence)};
    // RocksDB has written to table files what it found in the logs: all of it is on disk now.
    durable_.settle(sequence);
    status = durable_.write();
    if (!status.ok()) (void)close();
    return status;
  }

  // For a disk that takes no writes: reads the log into memory, and writes nothing.
  rocksdb::Status open_for_reading(const Settings& settings) noexcept { return open_rocksdb(settings, false, true); }

  // The newest row that stands whole in a log; 0 when nobody can tell, because a write failed whose rows RocksDB may
  // have counted.
  uint64_t newest_sequence() const noexcept {
    const uint64_t sequence = db_->GetLatestSequenceNumber();
    return durable_.is_in_doubt() ? 0 : sequence;
  }

  // Takes to disk all that was written so far.
  rocksdb::Status sync() noexcept { return durable_.sync_logs(); }

  // Rows up to this sequence number are on disk: what a later open demands.
  rocksdb::Status mark(uint64_t sequence) noexcept {
    durable_.reach(sequence);
    return durable_.write();
  }

  // Requires that no call is under way and no iterator is left. Column family handles go before the database: RocksDB
  // ends the process otherwise.
  rocksdb::Status close() noexcept {
    if (db_ == nullptr) return rocksdb::Status::OK();
    for (auto*& handle : handles_) {
      if (handle != nullptr) db_->DestroyColumnFamilyHandle(handle);
      handle = nullptr;
    }
    const rocksdb::Status status = db_->Close();
    db_.reset();
    (void)durable_.write();  // what RocksDB may have fsynced while it was closed; an older mark is true too
    durable_.close();
    return status;
  }

  // Waits while RocksDB catches up with its work, but not while that work fails.
  rocksdb::Status write(bool sync, rocksdb::WriteBatch* batch) const noexcept {
    return write_unless_stuck(db_.get(), *background_, sync, batch);
  }

  rocksdb::DB* db() const noexcept { return db_.get(); }
  rocksdb::ColumnFamilyHandle* family(Family family) const noexcept { return handles_[static_cast<size_t>(family)]; }

  rocksdb::ColumnFamilyHandle* family_by_id(uint32_t id) const noexcept {
    for (auto* handle : handles_) {
      if (handle->GetID() == id) return handle;
    }
    return nullptr;
  }

 private:
  static constexpr std::array<const char*, kFamilies> kNames = {"default",  "jobs",    "ids",      "idempotency",
                                                                "payloads", "results", "expiries", "data"};
  static constexpr int kCacheShardBits = 2;  // few threads, and blocks that are large beside a small cache
  static constexpr size_t kBandBytes = 34;   // scope, state, priority: rows of one band are inserted in key order

  rocksdb::Status open_rocksdb(const Settings& settings, bool is_new, bool reads_only) noexcept {
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    const auto cache = rocksdb::NewLRUCache(settings.block_cache_bytes, kCacheShardBits);
    for (size_t i = 0; i < kFamilies; ++i) {
      families.emplace_back(kNames[i], family_options(static_cast<Family>(i), settings, cache));
    }
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DBOptions options = database_options(settings, is_new);
    options.env = env_.get();
    background_ = std::make_shared<Background>();
    options.listeners = {background_};
    end_at_gap_.begin();
    options.wal_filter = &end_at_gap_;
    if (trial_) trial_(&options, &families[static_cast<size_t>(Family::kJobs)].options);
    durable_.unread = rocksdb::Status::OK();
    const rocksdb::Status status = reads_only ? read_into(options, settings.path, families, &handles, &db_)
                                              : open_into(options, settings.path, families, &handles, &db_);
    if (status.IsInvalidArgument() && !durable_.unread.ok()) return durable_.unread;
    if (status.ok()) std::copy(handles.begin(), handles.end(), handles_.begin());
    return status;
  }

  // Whether there is a database. RocksDB takes a directory without the file CURRENT for a new one, and clears away the
  // data that it finds there.
  static rocksdb::Status look(const std::string& path, bool* is_new) noexcept {
    std::vector<std::string> names;
    rocksdb::Status status = rocksdb::Env::Default()->GetChildren(path, &names);
    if (!status.ok()) return status;
    close_to_others(path, names);
    *is_new = std::find(names.begin(), names.end(), "CURRENT") == names.end();
    const bool has_data = std::any_of(names.begin(), names.end(), [](const std::string& name) {
      return name.ends_with(".sst") || name.ends_with(".log") || name.ends_with(".blob");
    });
    if (*is_new && has_data) return rocksdb::Status::Corruption("the file CURRENT is missing, and there is data");
    return status;
  }

  static rocksdb::DBOptions database_options(const Settings& settings, bool is_new) noexcept {
    rocksdb::DBOptions options;
    options.create_if_missing = is_new;
    options.create_missing_column_families = true;
    options.info_log = std::make_shared<QuietLogger>();
    options.stats_dump_period_sec = 0;
    options.stats_persist_period_sec = 0;
    options.max_background_jobs = 2;
    // All files stay open. With a bound RocksDB 7.8 reopens them for a scan, and when descriptors run out it ends the
    // scan early with an OK status: rows are missed in silence.
    options.max_open_files = -1;
    options.wal_bytes_per_sync = 1 << 20;  // so that little is left to do when a log is fsynced
    options.max_total_wal_size = 4 * settings.memtable_bytes;
    return options;
  }

  static rocksdb::ColumnFamilyOptions family_options(Family family, const Settings& settings,
                                                     const std::shared_ptr<rocksdb::Cache>& cache) noexcept {
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = cache;
    // In the cache, so that memory has a bound, and in parts: the whole index of a file is larger than a shard of the
    // cache, is then never kept, and reading it made each look-up in a file cost 150 us instead of 1.
    table.cache_index_and_filter_blocks = true;
    table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
    table.partition_filters = true;
    // Look-ups of these are by whole key; the jobs family is scanned, and looked up where the row is known to be.
    if (family == Family::kIds || family == Family::kIdempotency) {
      table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    }
    rocksdb::ColumnFamilyOptions options;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    options.write_buffer_size = memtable_bytes(family, settings);
    options.compression = compression();
    options.level_compaction_dynamic_level_bytes = true;
    if (family == Family::kJobs) {
      options.memtable_insert_with_hint_prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(kBandBytes));
    }
    return options;
  }

  // The jobs family takes three writes for one of the others, and the meta family next to none. The last three have
  // rows of few jobs.
  static uint64_t memtable_bytes(Family family, const Settings& settings) noexcept {
    constexpr uint64_t kLeast = 64 << 10;
    switch (family) {
      case Family::kJobs: return settings.memtable_bytes;
      case Family::kMeta: return kLeast;
      case Family::kResults:
      case Family::kExpiries:
      case Family::kData: return std::max(settings.memtable_bytes / 16, kLeast);
      default: return std::max(settings.memtable_bytes / 4, kLeast);
    }
  }

  static rocksdb::CompressionType compression() noexcept {
    const auto supported = rocksdb::GetSupportedCompressions();
    const bool lz4 = std::find(supported.begin(), supported.end(), rocksdb::kLZ4Compression) != supported.end();
    return lz4 ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;
  }

  // Later releases hand the database out as a unique_ptr; a template, so that the form a release lacks is not compiled.
  template <typename Options, typename Families, typename Handles, typename Owner>
  static rocksdb::Status open_into(const Options& options, const std::string& path, const Families& families,
                                   Handles* handles, Owner* owner) noexcept {
    if constexpr (requires { rocksdb::DB::Open(options, path, families, handles, owner); }) {
      return rocksdb::DB::Open(options, path, families, handles, owner);
    } else {
      typename Owner::pointer db = nullptr;
      rocksdb::Status status = rocksdb::DB::Open(options, path, families, handles, &db);
      owner->reset(db);
      return status;
    }
  }

  template <typename Options, typename Families, typename Handles, typename Owner>
  static rocksdb::Status read_into(const Options& options, const std::string& path, const Families& families,
                                   Handles* handles, Owner* owner) noexcept {
    if constexpr (requires { rocksdb::DB::OpenForReadOnly(options, path, families, handles, owner); }) {
      return rocksdb::DB::OpenForReadOnly(options, path, families, handles, owner);
    } else {
      typename Owner::pointer db = nullptr;
      rocksdb::Status status = rocksdb::DB::OpenForReadOnly(options, path, families, handles, &db);
      owner->reset(db);
      return status;
    }
  }

  Trial trial_;
  EndAtGap end_at_gap_;
  std::shared_ptr<Background> background_;  // of the database that is open
  Durable durable_;
  std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(std::make_shared<WatchedFiles>(&durable_));
  std::unique_ptr<rocksdb::DB> db_;
  std::array<rocksdb::ColumnFamilyHandle*, kFamilies> handles_{};
};

}  // namespace telha
