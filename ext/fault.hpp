// fault.hpp: why a verb did not do what it was asked. A value, because nothing is thrown inside the core; `_rocks.pyx`
// turns it into one of the errors of telha_queue/errors.py.
#pragma once

#include <rocksdb/status.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace telha {

enum class Code : int {
  kOk = 0,
  kNotFound,           // no such job in that scope
  kLeaseConflict,      // held: generation in the row; state: state of the row
  kInvalidTransition,  // state: state of the row
  kCorrupt,            // why: what does not decode
  kUnsupportedVersion,
  kClosed,
  kForked,
  kFailed,   // an earlier write failed; status: that first cause
  kStorage,  // status: what RocksDB said
};

struct Fault {
  Code code = Code::kOk;
  bool outcome_unknown = false;  // a write was under way: it may be there after a reopen
  uint8_t state = 0;
  uint64_t held = 0;
  const char* why = "";  // static text
  // Null for none: every verb returns faults, nearly all of them fine, and a Status takes long to make and to move.
  std::shared_ptr<const rocksdb::Status> cause;

  rocksdb::Status status() const noexcept { return cause ? *cause : rocksdb::Status(); }

  bool ok() const noexcept { return code == Code::kOk; }

  static Fault of(Code code) noexcept {
    Fault fault;
    fault.code = code;
    return fault;
  }
  static Fault read(rocksdb::Status status) noexcept {
    if (status.ok()) return Fault{};
    Fault fault = of(Code::kStorage);
    fault.cause = std::make_shared<rocksdb::Status>(std::move(status));
    return fault;
  }
  static Fault write(rocksdb::Status status) noexcept {
    Fault fault = read(std::move(status));
    fault.outcome_unknown = !fault.ok();
    return fault;
  }
  static Fault refused(Code code, uint64_t held, uint8_t state) noexcept {
    Fault fault = of(code);
    fault.held = held;
    fault.state = state;
    return fault;
  }
  static Fault corrupt(const char* why) noexcept {
    Fault fault = of(Code::kCorrupt);
    fault.why = why;
    return fault;
  }
};

}  // namespace telha
