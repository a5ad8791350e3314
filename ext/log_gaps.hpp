// log_gaps.hpp: where reading the log has to end after a power cut.
//
// A file system may have written a later page of a log and not an earlier one, which then reads as zeros. RocksDB steps
// over zeros, and would go on with what stands behind them: writes from the middle would be lost, and not the newest
// ones. But it numbers every write, so a gap shows; and one at the beginning of a log by the zeros themselves.
#pragma once

#include <fcntl.h>
#include <rocksdb/wal_filter.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace telha {

class EndAtGap final : public rocksdb::WalFilter {
 public:
  const char* Name() const override { return "TelhaEndAtGap"; }

  // Before a database is opened.
  void begin() noexcept { next_ = log_ = 0; }

  WalProcessingOption LogRecordFound(unsigned long long log, const std::string& path, const rocksdb::WriteBatch& batch,
                                     rocksdb::WriteBatch*, bool*) override {
    const uint64_t sequence = sequence_of(batch);
    if (next_ != 0 && sequence != next_) return WalProcessingOption::kStopReplay;
    if (log != log_ && begins_with_zeros(path)) return WalProcessingOption::kStopReplay;
    log_ = log;
    next_ = sequence + static_cast<uint64_t>(batch.Count());
    return WalProcessingOption::kContinueProcessing;
  }

 private:
  // The first eight bytes of a batch, least significant first.
  static uint64_t sequence_of(const rocksdb::WriteBatch& batch) noexcept {
    uint64_t sequence = 0;
    for (size_t i = 8; i-- > 0;) sequence = sequence << 8 | static_cast<unsigned char>(batch.Data()[i]);
    return sequence;
  }

  static bool begins_with_zeros(const std::string& path) noexcept {
    constexpr size_t kHeaderBytes = 7;
    char header[kHeaderBytes] = {};
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;  // RocksDB is reading it, and will say what is wrong
    const ssize_t got = ::pread(file, header, kHeaderBytes, 0);
    ::close(file);
    return got == static_cast<ssize_t>(kHeaderBytes) &&
           std::all_of(header, header + kHeaderBytes, [](char byte) { return byte == 0; });
  }

  uint64_t next_ = 0;  // what the next batch has to begin with; 0 before the first
  uint64_t log_ = 0;   // the log that is being read
};

}  // namespace telha
