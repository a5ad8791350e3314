// row.hpp: a row of the jobs family in one piece of memory, shared by all that hold it: the verb that made it, the
// windows, the rows of leased jobs, and the JobRecord that Python was given. It never changes, so nobody copies it.
#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "bytes.hpp"

namespace telha {

// A handle; null holds nothing. Handles of one row may be copied and dropped by several threads at once. (Running out
// of memory here ends the process.)
class Row {
 public:
  static constexpr size_t kKeyBytes = 58;  // keys.pxd says what is in it
  static constexpr size_t kStateAt = 32;
  static constexpr size_t kJobIdAt = 42;

  Row() noexcept = default;
  Row(const Row& other) noexcept : block_(other.block_) {
    if (block_ != nullptr) block_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  Row(Row&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Row& operator=(Row other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Row() {
    if (block_ != nullptr && block_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) std::free(block_);
  }

  // A new row; takes a copy of both.
  static Row of(const char* key, const Bytes& value) noexcept {
    void* const memory = std::malloc(sizeof(Block) + value.size);
    if (memory == nullptr) std::abort();
    Row row;
    row.block_ = new (memory) Block;
    row.block_->value_size = value.size;
    std::memcpy(row.block_->key, key, kKeyBytes);
    std::memcpy(static_cast<void*>(row.block_ + 1), value.data, value.size);
    return row;
  }

  // The same for the key of another state and priority.
  static Row of(const char* key, uint8_t state, uint8_t priority, const Bytes& value) noexcept {
    Row row = of(key, value);
    row.block_->key[kStateAt] = static_cast<char>(state);
    row.block_->key[kStateAt + 1] = static_cast<char>(priority);
    return row;
  }

  bool is_null() const noexcept { return block_ == nullptr; }
  // All below want a row that is not null.
  const char* key() const noexcept { return block_->key; }
  const char* job_id() const noexcept { return block_->key + kJobIdAt; }
  Bytes value() const noexcept { return {reinterpret_cast<const char*>(block_ + 1), block_->value_size}; }
  size_t bytes() const noexcept { return sizeof(Block) + block_->value_size; }

 private:
  struct Block {
    std::atomic<uint32_t> holders{1};
    char key[kKeyBytes];
    size_t value_size = 0;
  };

  Block* block_ = nullptr;
};

}  // namespace telha
