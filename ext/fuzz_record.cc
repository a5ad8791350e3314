// fuzz_record.cc: a libFuzzer target for a row as it is read from disk: a key of 58 bytes, then a record. Whatever the
// decoder accepts must survive being written again, an event must always find room, a record belongs to one key, and a
// small input must not make it ask for much memory. `make torture ARGS="--only fuzz"` builds and runs it; by hand:
//
//   clang++-14 -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I ext ext/fuzz_record.cc -o /tmp/fuzz_record
//   /tmp/fuzz_record -max_len=4096 -runs=2000000
#include <sanitizer/allocator_interface.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "record.hpp"

using telha::Bytes;
using telha::is_nil;
using telha::Row;
using telha::record::NewEvent;
using telha::record::View;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

bool equal(const Bytes& left, const Bytes& right) {
  return is_nil(left) == is_nil(right) && (is_nil(left) || telha::same(left, right));
}

constexpr size_t kSmallInput = 1024, kMostForSmall = 64 * 1024;
size_t largest = 0;  // what was asked for in one piece since the input began

void note_malloc(const volatile void*, size_t size) { largest = std::max(largest, size); }
void note_free(const volatile void*) {}

View decoded(const std::string& value) {
  View view;
  const char* why = nullptr;
  require(telha::record::decode(value.data(), value.size(), &view, &why) == telha::record::kOk);
  return view;
}

// The fields that stay, whatever is done to trail and head.
void require_same_job(const View& left, const View& right) {
  require(equal(left.job_id, right.job_id) && equal(left.kind, right.kind) && equal(left.payload, right.payload));
  require(equal(left.worker_id, right.worker_id) && equal(left.idempotency_key, right.idempotency_key));
  require(equal(left.continuation, right.continuation) && equal(left.dead_reason, right.dead_reason));
  require(equal(left.reaped_worker_id, right.reaped_worker_id) && equal(left.extra, right.extra));
  require(left.priority == right.priority && left.state == right.state && left.created_at == right.created_at);
  require(left.attempts == right.attempts && left.crashes == right.crashes);
  require(left.lease_generation == right.lease_generation && left.payload_bytes == right.payload_bytes);
  require(left.lease_deadline == right.lease_deadline && left.not_before == right.not_before);
  require(left.max_attempts == right.max_attempts && left.extra_count == right.extra_count);
  require(left.lease_ttl_us == right.lease_ttl_us && equal(left.headers, right.headers));
}

void require_survives(const View& view, const NewEvent* appended) {
  std::string value;
  telha::record::encode(view, appended, &value);
  const View again = decoded(value);
  require_same_job(view, again);
  if (appended == nullptr) {
    require(equal(view.events, again.events) && view.events_count == again.events_count);
    require(view.detail_bytes == again.detail_bytes && view.events_dropped == again.events_dropped);
  } else {
    require(again.events_count >= 1 && again.events_count <= view.events_count + 1);
  }
  std::string once_more;
  telha::record::encode(again, nullptr, &once_more);
  require(value == once_more);
}

// The record stands under the key that is made of it, and under no key that differs in what a record knows.
void require_one_key(const View& view, const uint8_t* any_key) {
  constexpr size_t kPriorityAt = 33, kCreatedAtAt = 34;
  char key[Row::kKeyBytes];
  std::memcpy(key, any_key, sizeof key);
  key[Row::kStateAt] = static_cast<char>(view.state);
  key[kPriorityAt] = static_cast<char>(view.priority);
  for (size_t i = 0; i < 8; ++i) key[kCreatedAtAt + i] = static_cast<char>(view.created_at >> (56 - 8 * i));
  std::memcpy(key + Row::kJobIdAt, view.job_id.data, sizeof key - Row::kJobIdAt);
  require(telha::record::matches_key(view, key));
  key[Row::kStateAt + any_key[0] % (sizeof key - Row::kStateAt)] ^= 1;
  require(!telha::record::matches_key(view, key));
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  __sanitizer_install_malloc_and_free_hooks(note_malloc, note_free);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < Row::kKeyBytes) return 0;
  largest = 0;
  const Row row = Row::of(reinterpret_cast<const char*>(data),
                          {reinterpret_cast<const char*>(data) + Row::kKeyBytes, size - Row::kKeyBytes});
  View view;
  const char* why = nullptr;
  const auto fault = telha::record::decode(row.value().data, row.value().size, &view, &why);
  require(size >= kSmallInput || largest <= kMostForSmall);
  if (fault != telha::record::kOk) return 0;
  require_one_key(view, data);
  NewEvent event;
  event.transition = telha::text("extended");
  require_survives(view, nullptr);
  require_survives(view, &event);
  event.transition = telha::text("dead");
  event.detail = event.prefix = event.suffix = telha::text("detail");
  require_survives(view, &event);
  view.head = telha::nil();  // as for a job that is not stored yet
  require_survives(view, &event);
  return 0;
}
