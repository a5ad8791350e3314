// tail.hpp: the last fields of a record, which few jobs have. They are written as far as the last one that is not nil,
// so a job without any takes no byte and no time for them.
#pragma once

#include "bytes.hpp"
#include "msgpack_reader.hpp"
#include "msgpack_writer.hpp"

namespace telha::record {

using msgpack::Reader;
using msgpack::Writer;

constexpr uint32_t kTailFields = 6;
constexpr uint64_t kWholeProgress = 1'000'000;
constexpr uint64_t kMaxTailNumber = INT64_MAX;

struct Tail {
  int64_t expires_at = -1;  // -1 is nil, here and below
  int64_t progress = -1;    // in parts of kWholeProgress
  int64_t result_bytes = -1;
  Bytes progress_text;
  Bytes durable_continuation;
  Bytes result;  // nil while result_bytes is not: it stands in its own row
};

// Reads up to `count` of the fields. Returns null, or which field is not as docs/format.md has it. Apart from the code
// that every record takes, as write_tail is, so that the compiler spends nothing on it there.
[[gnu::cold, gnu::noinline]] inline const char* read_tail(Reader& in, uint32_t count, Tail* out) noexcept {
  if (count > 0 && !in.optional_uint(&out->expires_at, kMaxTailNumber)) return "expires_at";
  if (count > 1 && !in.optional_uint(&out->progress, kWholeProgress)) return "progress";
  if (count > 2 && !in.optional_text(&out->progress_text)) return "progress_text";
  if (count > 3 && !in.optional_binary(&out->durable_continuation)) return "durable_continuation";
  if (count > 4 && !in.optional_binary(&out->result)) return "result";
  if (count > 5 && !in.optional_uint(&out->result_bytes, kMaxTailNumber)) return "result_bytes";
  return nullptr;
}

// Whether the result stands in a row of its own.
inline bool has_result_aside(const Tail& tail) noexcept { return tail.result_bytes >= 0 && is_nil(tail.result); }

// How many are written.
inline uint32_t tail_fields(const Tail& tail) noexcept {
  const bool has_text = !is_nil(tail.progress_text) || !is_nil(tail.durable_continuation) || !is_nil(tail.result);
  if ((tail.expires_at & tail.progress & tail.result_bytes) == -1 && !has_text) return 0;
  if (tail.result_bytes >= 0) return 6;
  if (!is_nil(tail.result)) return 5;
  if (!is_nil(tail.durable_continuation)) return 4;
  if (!is_nil(tail.progress_text)) return 3;
  if (tail.progress >= 0) return 2;
  return tail.expires_at >= 0 ? 1 : 0;
}

inline size_t tail_room(const Tail& tail) noexcept {
  return tail.progress_text.size + tail.durable_continuation.size + tail.result.size;
}

[[gnu::cold, gnu::noinline]] inline void write_tail(Writer& to, uint32_t count, const Tail& tail) noexcept {
  if (count > 0) to.optional_uint(tail.expires_at);
  if (count > 1) to.optional_uint(tail.progress);
  if (count > 2) to.optional_text(tail.progress_text);
  if (count > 3) to.optional_binary(tail.durable_continuation);
  if (count > 4) to.optional_binary(tail.result);
  if (count > 5) to.optional_uint(tail.result_bytes);
}

}  // namespace telha::record
