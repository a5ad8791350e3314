// fuzz_record.cc: a libFuzzer target for the record decoder. Whatever it accepts must survive being written again, and
// an event must always find room. Built and run by hand:
//
//   clang++-14 -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I ext ext/fuzz_record.cc -o /tmp/fuzz_record
//   /tmp/fuzz_record -max_len=4096 -runs=2000000
#include <cstdint>
#include <cstdlib>

#include "record.hpp"

using telha::Bytes;
using telha::is_nil;
using telha::record::NewEvent;
using telha::record::View;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

bool equal(const Bytes& left, const Bytes& right) {
  return is_nil(left) == is_nil(right) && (is_nil(left) || telha::same(left, right));
}

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  View view;
  const char* why = nullptr;
  if (telha::record::decode(reinterpret_cast<const char*>(data), size, &view, &why) != telha::record::kOk) return 0;
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
