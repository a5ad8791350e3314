// batches.hpp: write batches that are used again, because a new one grows to its size by several allocations.
#pragma once

#include <rocksdb/write_batch.h>

namespace telha {

inline rocksdb::WriteBatch* fresh_batch() noexcept {
  constexpr size_t kKeptBytes = 1 << 20;  // a larger one is not kept for the life of the thread
  thread_local rocksdb::WriteBatch batch;
  if (batch.GetDataSize() > kKeptBytes) {
    batch = rocksdb::WriteBatch();
  } else {
    batch.Clear();
  }
  return &batch;
}

}  // namespace telha
