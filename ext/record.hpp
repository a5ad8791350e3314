// record.hpp: a job record taken apart into spans of its bytes, and put together again. docs/format.md is the law;
// telha_queue/record.py says the same in Python. Knows bytes; knows nothing of time, of RocksDB or of Python objects.
//
// The version rule. A newer writer may append fields to the record array or to an event: they are read over, and
// copied through every rewrite. Any other change raises kVersion and keeps a reader for the version before it.
#pragma once

#include <memory>
#include <string>

#include "row.hpp"
#include "tail.hpp"
#include "trail.hpp"

namespace telha::record {

constexpr char kVersion = 1;
constexpr uint32_t kRequiredFields = 15;
constexpr uint32_t kWrittenFields = 22;  // in every record that this release writes; those of the tail follow
constexpr uint32_t kKnownFields = kWrittenFields + kTailFields;
constexpr size_t kJobIdBytes = 16;
constexpr size_t kMaxKindBytes = 128;
constexpr uint64_t kMaxState = 4;
constexpr uint8_t kLeased = 1;
constexpr uint8_t kDead = 4;

enum Decoded { kOk, kCorrupt, kUnsupportedVersion };

// One record. Spans point into the buffer that was decoded and live as long as it does.
struct View : Trail, Tail {
  Bytes head;  // job_id to created_at as they are stored: they never change. Nil: write them from the fields
  Bytes job_id;
  Bytes kind;
  Bytes payload;  // nil: it stands in its own row
  Bytes worker_id;
  Bytes idempotency_key;
  Bytes continuation;
  Bytes dead_reason;
  Bytes reaped_worker_id;
  Bytes headers;  // the bytes of the array of names and values; nil: none
  Bytes extra;    // the bytes of a newer writer's fields
  uint64_t created_at = 0;
  uint64_t lease_generation = 0;
  uint64_t payload_bytes = 0;
  uint64_t events_dropped = 0;
  int64_t lease_deadline = -1;  // -1 is nil, here and below
  int64_t not_before = -1;
  int64_t max_attempts = -1;
  int64_t lease_ttl_us = -1;
  uint32_t attempts = 0;
  uint32_t crashes = 0;
  uint32_t extra_count = 0;
  uint8_t priority = 0;
  uint8_t state = 0;
};

// Names and values in turn, kept as they are stored.
inline bool read_headers(Reader& in, Bytes* out) noexcept {
  const char* const start = in.at();
  uint32_t count = 0;
  Bytes passed;
  if (in.nil()) return true;
  if (!in.array(&count) || count % 2 != 0) return false;
  for (uint32_t i = 0; i < count; ++i) {
    if (!in.text(&passed)) return false;
  }
  *out = in.since(start);
  return true;
}

// Returns null, or which field is not as docs/format.md has it.
inline const char* read_fields(Reader& in, View* out) noexcept {
  uint32_t count = 0;
  if (!in.array(&count)) return "not an array";
  if (count < kRequiredFields) return "too few fields";
  const char* const head = in.at();
  if (!in.binary(&out->job_id) || out->job_id.size != kJobIdBytes) return "job_id";
  if (!in.text(&out->kind) || out->kind.size == 0 || out->kind.size > kMaxKindBytes) return "kind";
  if (!in.optional_binary(&out->payload)) return "payload";
  if (!in.uint(&out->priority, UINT8_MAX)) return "priority";
  if (!in.uint(&out->created_at, kMaxTime)) return "created_at";
  out->head = in.since(head);
  if (!in.uint(&out->state, kMaxState)) return "state";
  if (!in.uint(&out->attempts, UINT32_MAX)) return "attempts";
  if (!in.uint(&out->lease_generation, UINT64_MAX)) return "lease_generation";
  if (!in.optional_text(&out->worker_id)) return "worker_id";
  if (!in.optional_uint(&out->lease_deadline, kMaxTime)) return "lease_deadline";
  if (!in.optional_uint(&out->not_before, kMaxTime)) return "not_before";
  if (!in.optional_text(&out->idempotency_key)) return "idempotency_key";
  if (!in.optional_uint(&out->max_attempts, UINT32_MAX)) return "max_attempts";
  if (!in.optional_binary(&out->continuation)) return "continuation";
  if (!read_trail(in, out)) return "events";
  out->payload_bytes = out->events_dropped = out->crashes = out->extra_count = 0;
  out->dead_reason = out->reaped_worker_id = out->headers = {};
  out->lease_ttl_us = -1;
  if (count > 15 && !in.uint(&out->payload_bytes, UINT64_MAX)) return "payload_bytes";
  if (count > 16 && !in.optional_text(&out->dead_reason)) return "dead_reason";
  if (count > 17 && !in.optional_text(&out->reaped_worker_id)) return "reaped_worker_id";
  if (count > 18 && !in.uint(&out->events_dropped, UINT64_MAX)) return "events_dropped";
  if (count > 19 && !in.uint(&out->crashes, UINT32_MAX)) return "crashes";
  if (count > 20 && !in.optional_uint(&out->lease_ttl_us, kMaxTime)) return "lease_ttl_us";
  if (count > 21 && !read_headers(in, &out->headers)) return "headers";
  static_cast<Tail&>(*out) = Tail();
  if (count > kWrittenFields) {
    const char* const why = read_tail(in, count - kWrittenFields, out);
    if (why != nullptr) return why;
  }
  const char* const extra = in.at();
  for (uint32_t i = kKnownFields; i < count; ++i) {
    if (!in.skip(1)) return "a later field";
    out->extra_count += 1;
  }
  out->extra = in.since(extra);
  return in.left() == 0 ? nullptr : "bytes after the record";
}

// What must hold between fields, so that no verb has to ask. dead_reason may be absent, so only its presence counts.
inline const char* check_state(const View& view) noexcept {
  const bool is_leased = view.state == kLeased;
  if (is_nil(view.worker_id) == is_leased) return "worker_id does not fit the state";
  if ((view.lease_deadline < 0) == is_leased) return "lease_deadline does not fit the state";
  if (!is_nil(view.dead_reason) && view.state != kDead) return "dead_reason does not fit the state";
  return nullptr;
}

// Checks every byte, in one pass and without allocating. `why` is set to a static text when the answer is not kOk;
// it names a field and never quotes the record.
inline Decoded decode(const char* data, size_t size, View* out, const char** why) noexcept {
  *why = "empty";
  if (size == 0) return kCorrupt;
  if (data[0] != kVersion) {
    *why = "a format version of a newer release";
    return kUnsupportedVersion;
  }
  Reader in(data + 1, size - 1);
  *why = read_fields(in, out);
  if (*why == nullptr) *why = check_state(*out);
  return *why == nullptr ? kOk : kCorrupt;
}

// What a fence asks of a record, and what a filter does, read alone. Both require a record that decode has accepted.
inline void read_holder(const Bytes& record, Bytes* worker_id, uint64_t* lease_generation) noexcept {
  Reader in(record.data + 1, record.size - 1);
  uint32_t count = 0;
  uint64_t number = 0;
  Bytes passed;
  in.array(&count);
  in.binary(&passed) && in.text(&passed) && in.optional_binary(&passed);  // job_id, kind, payload
  in.uint(&number, UINT64_MAX) && in.uint(&number, UINT64_MAX);           // priority, created_at
  in.uint(&number, UINT64_MAX) && in.uint(&number, UINT64_MAX);           // state, attempts
  in.uint(lease_generation, UINT64_MAX) && in.optional_text(worker_id);
}

inline Bytes kind_of(const Bytes& record) noexcept {
  Reader in(record.data + 1, record.size - 1);
  uint32_t count = 0;
  Bytes job_id, kind;
  in.array(&count) && in.binary(&job_id) && in.text(&kind);
  return kind;
}

inline void write_head(Writer& out, const View& view) noexcept {
  out.binary(view.job_id);
  out.text(view.kind);
  out.optional_binary(view.payload);
  out.uint(view.priority);
  out.uint(view.created_at);
}

// Room that encode may need.
inline size_t encoded_room(const View& view, const NewEvent* appended) noexcept {
  const size_t head_bytes = is_nil(view.head) ? view.job_id.size + view.kind.size + view.payload.size : view.head.size;
  return head_bytes + view.worker_id.size + view.idempotency_key.size + view.continuation.size + view.dead_reason.size +
         view.reaped_worker_id.size + view.headers.size + view.extra.size + tail_room(view) +
         trail_room(view, appended) + msgpack::kMaxHeaderBytes * (2 + kKnownFields);
}

// Writes the record to `out`, with one event more unless `appended` is null, and returns its length. `out` has
// encoded_room, and no span of `view` lies in it; no single span is 4 GiB or longer.
inline size_t encode(const View& view, const NewEvent* appended, char* out) noexcept {
  *out = kVersion;
  Writer to(out + 1);
  const uint32_t tail = view.extra_count > 0 ? kTailFields : tail_fields(view);
  to.array(uint64_t{kWrittenFields} + tail + view.extra_count);
  is_nil(view.head) ? write_head(to, view) : to.raw(view.head);
  to.uint(view.state);
  to.uint(view.attempts);
  to.uint(view.lease_generation);
  to.optional_text(view.worker_id);
  to.optional_uint(view.lease_deadline);
  to.optional_uint(view.not_before);
  to.optional_text(view.idempotency_key);
  to.optional_uint(view.max_attempts);
  to.optional_binary(view.continuation);
  uint64_t dropped = 0;
  if (appended != nullptr) {
    dropped = write_trail(to, view, *appended);
  } else {
    is_nil(view.events) ? to.array(0) : to.raw(view.events);
  }
  to.uint(view.payload_bytes);
  to.optional_text(view.dead_reason);
  to.optional_text(view.reaped_worker_id);
  to.uint(view.events_dropped + std::min(dropped, UINT64_MAX - view.events_dropped));
  to.uint(view.crashes);
  to.optional_uint(view.lease_ttl_us);
  is_nil(view.headers) ? to.nil() : to.raw(view.headers);
  if (tail > 0) write_tail(to, tail, view);
  to.raw(view.extra);
  return static_cast<size_t>(to.at() - out);
}

// The same into a string, which it replaces.
inline void encode(const View& view, const NewEvent* appended, std::string* out) noexcept {
  out->resize(encoded_room(view, appended));
  out->resize(encode(view, appended, out->data()));
}

// The row of a record, under a key that is its own but for state and priority. (Running out of memory here ends the
// process.)
inline Row encode_row(const char* key, const View& view, const NewEvent* appended) noexcept {
  constexpr size_t kSmall = 4096;  // written here first, so that the row takes no more memory than it needs
  const size_t room = encoded_room(view, appended);
  char small[kSmall];
  std::unique_ptr<char[]> large;
  if (room > kSmall) large.reset(new char[room]);
  char* const out = large ? large.get() : small;
  return Row::of(key, view.state, view.priority, {out, encode(view, appended, out)});
}

// Whether a record stands under the key it belongs to. Requires the 58 bytes of a job key.
inline bool matches_key(const View& view, const char* key) noexcept {
  constexpr size_t kStateAt = 32, kPriorityAt = 33, kCreatedAtAt = 34, kJobIdAt = 42;
  uint64_t created_at = 0;
  for (size_t i = kCreatedAtAt; i < kJobIdAt; ++i) created_at = created_at << 8 | static_cast<unsigned char>(key[i]);
  return static_cast<unsigned char>(key[kStateAt]) == view.state &&
         static_cast<unsigned char>(key[kPriorityAt]) == view.priority && created_at == view.created_at &&
         std::memcmp(key + kJobIdAt, view.job_id.data, kJobIdBytes) == 0;
}

}  // namespace telha::record
