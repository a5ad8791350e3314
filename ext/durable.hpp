// durable.hpp: what of a store's logs and MANIFEST is on disk, while it is open, and the mark that says so.
//
// The mark must never demand what a power cut may take, nor what RocksDB has removed. So a file counts up to where it
// was when its last fsync began; the mark is written when a MANIFEST was fsynced, before RocksDB acts on what stands
// in it, and before a log is removed; and from time to time for the logs.
#pragma once

#include <fcntl.h>
#include <rocksdb/status.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "counted_file.hpp"
#include "mark.hpp"

namespace telha {

// A log or MANIFEST, by its name in the directory.
struct FileName {
  bool is_log = false;
  uint64_t number = 0;

  static std::optional<FileName> parse(std::string_view name) noexcept {
    constexpr std::string_view kManifest = "MANIFEST-", kLog = ".log";
    FileName parsed{name.ends_with(kLog), 0};
    if (parsed.is_log) {
      name.remove_suffix(kLog.size());
    } else if (name.starts_with(kManifest)) {
      name.remove_prefix(kManifest.size());
    } else {
      return std::nullopt;
    }
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), parsed.number);
    if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
    return parsed;
  }

  static std::string of(MarkedKind kind, uint64_t number) noexcept {
    std::string digits = std::to_string(number);
    if (digits.size() < 6) digits.insert(0, 6 - digits.size(), '0');
    return kind == MarkedKind::kManifest ? "MANIFEST-" + digits : digits + ".log";
  }
};

class Durable {
 public:
  // Why CURRENT could not be opened to be read. RocksDB, which tries that first, tells of it as of wrong options.
  rocksdb::Status unread;

  // `in_turn`: every write is on disk before the next one begins. What the mark demanded goes on being demanded.
  int open(const std::string& directory, bool in_turn) noexcept {
    directory_ = directory;
    in_turn_ = in_turn;
    files_.clear();
    marked_ = Mark();
    const int error = file_.open(directory, &marked_);
    sequence_ = marked_.sequence;
    is_in_doubt_ = false;
    for (const MarkedFile& file : marked_.files) {
      auto counted = std::make_shared<CountedFile>(file.bytes);
      counted->durable = file.bytes;
      counted->is_named = true;
      files_[FileName::of(file.kind, file.number)] = {file.kind, file.number, std::move(counted), true};
    }
    return error;
  }

  void close() noexcept {
    clear();
    file_.close();
  }

  // The files that the mark named are demanded no more.
  void clear() noexcept {
    std::lock_guard lock(files_mutex_);
    files_.clear();
  }

  // As it was last written or read.
  const Mark& marked() const noexcept { return marked_; }

  // Before RocksDB begins another log: takes those before it to disk. Else a power cut could keep a newer log and lose
  // an older one, and RocksDB would read over the gap.
  rocksdb::Status settle_logs(const std::string& path) noexcept {
    const auto name = name_of(path);
    if (!name || !name->is_log) return rocksdb::Status::OK();
    const rocksdb::Status status = sync_logs();
    return status.ok() ? write() : status;
  }

  // Takes to disk all that was written to logs so far, without a word to RocksDB: one with assertions ends the process
  // when it is asked to fsync a log while a write to it fails in another thread.
  rocksdb::Status sync_logs() noexcept {
    std::vector<std::pair<std::shared_ptr<CountedFile>, uint64_t>> unsynced;
    bool are_named = true;
    for (const auto& [name, log] : unsynced_logs()) {
      unsynced.emplace_back(log, log->written.load());
      are_named = are_named && log->is_named;
      if (const int error = log->sync(); error != 0) return status_of(error, name);
    }
    if (!are_named) {
      const rocksdb::Status status = sync_names();
      if (!status.ok()) return status;
    }
    for (const auto& [log, bytes] : unsynced) log->reach(bytes);
    return rocksdb::Status::OK();
  }

  // Takes to disk which files the directory has.
  rocksdb::Status sync_names() noexcept {
    const Unnamed unnamed = unnamed_logs();
    const int error = sync_file(directory_, O_DIRECTORY);
    note_named(unnamed, error == 0);
    return status_of(error, directory_);
  }

  // Logs whose entries in the directory may not be on disk.
  using Unnamed = std::vector<std::shared_ptr<CountedFile>>;
  Unnamed unnamed_logs() noexcept {
    Unnamed unnamed;
    std::lock_guard lock(files_mutex_);
    for (const auto& [name, file] : files_) {
      if (file.kind != MarkedKind::kManifest && !file.counted->is_named) unnamed.push_back(file.counted);
    }
    return unnamed;
  }

  // An fsync of the directory has ended that was begun after those were asked for.
  void note_named(const Unnamed& logs, bool is_ok) noexcept {
    for (const auto& log : logs) {
      if (is_ok) log->is_named = true;
      if (!is_ok) log->fail();
    }
    if (!is_ok && !logs.empty()) note_doubt();
  }

  // RocksDB begins to write a file of this directory. `counted` stays null when it is none that counts.
  rocksdb::Status begin(const std::string& path, uint64_t bytes, std::shared_ptr<CountedFile>* counted) noexcept {
    const auto name = name_of(path);
    if (!name) return rocksdb::Status::OK();
    auto file = std::make_shared<CountedFile>(bytes);
    if (const int error = name->is_log ? file->open(path) : 0; error != 0) return status_of(error, path);
    const MarkedKind log = in_turn_ ? MarkedKind::kLogInTurn : MarkedKind::kLog;
    const MarkedKind kind = name->is_log ? log : MarkedKind::kManifest;
    std::lock_guard lock(files_mutex_);
    files_[FileName::of(kind, name->number)] = {kind, name->number, file, false};
    *counted = std::move(file);
    return rocksdb::Status::OK();
  }

  // RocksDB is about to have CURRENT name another MANIFEST: a power cut could keep that, and lose the MANIFEST's entry.
  rocksdb::Status settle_names(const std::string& path) noexcept {
    const bool is_current = path == directory_ + "/CURRENT";
    return is_current ? sync_names() : rocksdb::Status::OK();
  }

  // RocksDB is about to remove a file.
  rocksdb::Status forget(const std::string& path) noexcept {
    const auto name = name_of(path);
    if (!name) return rocksdb::Status::OK();
    {
      std::lock_guard lock(files_mutex_);
      files_.erase(FileName::of(name->is_log ? MarkedKind::kLog : MarkedKind::kManifest, name->number));
    }
    return name->is_log ? write() : rocksdb::Status::OK();
  }

  // A write to a log failed, in whatever way. RocksDB may count its rows nevertheless.
  void note_doubt() noexcept { is_in_doubt_.store(true); }
  bool is_in_doubt() const noexcept { return is_in_doubt_.load(); }

  // Rows up to this sequence number are on disk.
  void reach(uint64_t sequence) noexcept {
    std::lock_guard lock(files_mutex_);
    sequence_ = std::max(sequence, sequence_);
  }

  // The store was opened and all that it has is on disk, in files that were begun since: older ones no longer count.
  void settle(uint64_t sequence) noexcept {
    std::lock_guard lock(files_mutex_);
    std::erase_if(files_, [](const auto& file) { return file.second.is_old; });
    sequence_ = sequence;
  }

  // Writes the mark, unless it says so already.
  rocksdb::Status write() noexcept {
    std::lock_guard one_at_a_time(write_mutex_);
    Mark mark;
    {
      std::lock_guard lock(files_mutex_);
      mark.sequence = sequence_;
      for (const auto& [name, file] : files_) {
        const uint64_t bytes = file.counted->durable.load();
        const bool is_there = file.kind == MarkedKind::kManifest || file.counted->is_named;
        if (bytes > 0 && is_there) mark.files.push_back({file.kind, file.number, bytes});
      }
    }
    if (mark == marked_) return rocksdb::Status::OK();
    const int error = file_.write(mark);
    if (error != 0) return status_of(error);
    marked_ = std::move(mark);
    return rocksdb::Status::OK();
  }

  static rocksdb::Status status_of(int error, const std::string& file = MarkFile::kName) noexcept {
    if (error == 0) return rocksdb::Status::OK();
    const std::string text = file + ": " + std::strerror(error);
    if (error == EBADMSG) return rocksdb::Status::Corruption(file + " is damaged");
    return error == ENOSPC || error == EDQUOT ? rocksdb::Status::NoSpace(text) : rocksdb::Status::IOError(text);
  }

 private:
  struct File {
    MarkedKind kind;
    uint64_t number;
    std::shared_ptr<CountedFile> counted;
    bool is_old;  // the mark names it, and nothing was written to it since
  };

  std::map<std::string, std::shared_ptr<CountedFile>> unsynced_logs() noexcept {
    std::map<std::string, std::shared_ptr<CountedFile>> unsynced;
    std::lock_guard lock(files_mutex_);
    for (const auto& [name, file] : files_) {
      const bool is_log = file.kind != MarkedKind::kManifest && !file.is_old;
      if (is_log && file.counted->durable.load() < file.counted->written.load()) unsynced[name] = file.counted;
    }
    return unsynced;
  }

  // Of a file that stands right in the directory.
  std::optional<FileName> name_of(const std::string& path) const noexcept {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos || trimmed(path.substr(0, slash)) != trimmed(directory_)) return std::nullopt;
    return FileName::parse(std::string_view(path).substr(slash + 1));
  }

  static std::string trimmed(std::string path) noexcept {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path;
  }

  std::string directory_;
  bool in_turn_ = false;
  std::atomic<bool> is_in_doubt_{false};
  std::mutex files_mutex_;
  std::map<std::string, File> files_;
  uint64_t sequence_ = 0;
  std::mutex write_mutex_;  // taken before the other
  MarkFile file_;
  Mark marked_;
};

}  // namespace telha
