// checkpoint.hpp: a copy of the database as it is at one moment, taken beside running calls. RocksDB links the table
// files and copies the rest. Knows bytes; knows nothing of jobs.
#pragma once

#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>

#include <memory>
#include <string>

#include "fault.hpp"
#include "store.hpp"

namespace telha {

// Requires a visit, and a path at which nothing is.
inline Fault make_checkpoint(Store* store, const char* path) noexcept {
  // After a failed write the log's tail is in doubt, and flushing beside it may abort the process: so write first.
  rocksdb::WriteBatch nothing;
  Fault fault = store->commit(&nothing);
  if (!fault.ok()) return fault;
  rocksdb::Checkpoint* made = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(store->database.db(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  if (status.ok()) status = checkpoint->CreateCheckpoint(path);
  return Fault::read(std::move(status));
}

}  // namespace telha
