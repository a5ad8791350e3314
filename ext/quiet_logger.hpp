// quiet_logger.hpp: RocksDB's info log, written nowhere.
//
// The default logger writes a LOG file beside the data. On a full disk a RocksDB with assertions aborts the process in
// that write, at the very moment when the queue has to report the full disk (facebook/rocksdb: WritableFileWriter).
#pragma once

#include <rocksdb/env.h>

#include <cstdarg>

namespace telha {

class QuietLogger final : public rocksdb::Logger {
 public:
  QuietLogger() : Logger(rocksdb::InfoLogLevel::FATAL_LEVEL) {}
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

}  // namespace telha
