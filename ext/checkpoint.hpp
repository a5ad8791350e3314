// checkpoint.hpp: a copy of the database as it is at one moment, taken beside running calls. RocksDB links the table
// files and copies the rest. And the mark of such a copy. Knows bytes; knows nothing of jobs.
#pragma once

#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>

#include <memory>
#include <string>
#include <vector>

#include "durable.hpp"
#include "fault.hpp"
#include "log_check.hpp"
#include "store.hpp"

namespace telha {

// Requires a visit, and a path at which nothing is. The copy has all rows up to `sequence`, and may have later ones.
inline Fault make_checkpoint(Store* store, const char* path, uint64_t* sequence) noexcept {
  // After a failed write the log's tail is in doubt, and flushing beside it may abort the process: so write first.
  rocksdb::WriteBatch nothing;
  Fault fault = store->commit(&nothing);
  if (!fault.ok()) return fault;
  rocksdb::Checkpoint* made = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(store->database.db(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  if (status.ok()) status = checkpoint->CreateCheckpoint(path, 0, sequence);
  return Fault::read(std::move(status));
}

// Makes the mark of a copy of which all is on disk: 0, or an errno. A log was copied while it was written to, and may
// end within a row: that much is not demanded.
inline int mark_copy(const std::string& directory, uint64_t sequence) noexcept {
  std::vector<std::string> names;
  const rocksdb::Status status = rocksdb::Env::Default()->GetChildren(directory, &names);
  if (!status.ok()) return EIO;
  Mark mark{sequence, {}};
  for (const std::string& name : names) {
    const auto file = FileName::parse(name);
    if (!file) continue;
    const LogCheck check = LogCheck::of(directory + '/' + name, 0, MarkedKind::kManifest);  // reads it to its end
    if (check.error != 0) return check.error;
    const MarkedKind kind = file->is_log ? MarkedKind::kLog : MarkedKind::kManifest;
    if (check.sound_bytes > 0) mark.files.push_back({kind, file->number, check.sound_bytes});
  }
  MarkFile made;
  Mark nothing;
  int error = made.open(directory, &nothing);
  for (size_t slot = 0; slot < 2 && error == 0; ++slot) error = made.write(mark);  // either says it alone
  return error;
}

}  // namespace telha
