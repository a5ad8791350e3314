// trail.hpp: the events of a job, kept as the bytes they are stored in. Knows how events are read, merged, bounded and
// appended; knows nothing of the record around them.
//
// Appending copies the old events in one piece; only what must change is written anew.
#pragma once

#include <algorithm>

#include "msgpack_reader.hpp"
#include "msgpack_writer.hpp"

namespace telha::record {

using msgpack::Reader;
using msgpack::Writer;

constexpr uint64_t kMaxTime = INT64_MAX;
constexpr uint64_t kTrailEvents = 256;                 // the newest events kept besides the first
constexpr uint64_t kTrailBytes = uint64_t{64} * 1024;  // and never more detail text than this in all
constexpr uint64_t kMaxMerged = UINT32_MAX;
constexpr uint32_t kEventFields = 3;        // at, transition, detail
constexpr uint32_t kMergedEventFields = 5;  // and count, last_at
constexpr int kEventDepth = 3;              // record, events, event

// The event that a transition adds. Its detail is prefix + detail + suffix, so that no caller has to build text.
struct NewEvent {
  int64_t at = 0;
  Bytes transition;
  Bytes detail;  // nil: no detail, and no prefix or suffix
  Bytes prefix;
  Bytes suffix;

  uint64_t detail_bytes() const noexcept { return is_nil(detail) ? 0 : prefix.size + detail.size + suffix.size; }
};

// One stored event, as spans of the record.
struct Event {
  Bytes transition;
  Bytes detail;
  Bytes base;   // the bytes of at, transition and detail
  Bytes extra;  // the bytes of a newer writer's fields
  uint64_t at = 0;
  uint64_t count = 1;
  uint64_t last_at = 0;
  uint32_t fields = 0;
};

// The trail of a record; `events` is the whole array, its header included. Nil is the empty trail.
struct Trail {
  Bytes events;
  Bytes last_event;
  uint64_t detail_bytes = 0;
  uint32_t events_count = 0;
};

inline bool read_event(Reader& in, Event* out) noexcept {
  if (!in.array(&out->fields) || out->fields < kEventFields) return false;
  const char* const base = in.at();
  out->detail = {};
  if (!in.uint(&out->at, kMaxTime) || !in.text(&out->transition) || !in.optional_text(&out->detail)) return false;
  out->base = in.since(base);
  out->count = 1;
  if (out->fields > kEventFields) {  // a newer writer's fields come behind count and last_at, never instead
    if (out->fields < kMergedEventFields) return false;
    if (!in.uint(&out->count, UINT64_MAX) || !in.uint(&out->last_at, kMaxTime)) return false;
  }
  const char* const extra = in.at();
  for (uint32_t i = kMergedEventFields; i < out->fields; ++i) {
    if (!in.skip(kEventDepth)) return false;
  }
  out->extra = in.since(extra);
  return true;
}

inline bool read_trail(Reader& in, Trail* out) noexcept {
  const char* const start = in.at();
  out->detail_bytes = 0;
  out->last_event = {};
  if (!in.array(&out->events_count)) return false;
  Event event;
  for (uint32_t i = 0; i < out->events_count; ++i) {
    const char* const begin = in.at();
    if (!read_event(in, &event)) return false;
    out->detail_bytes += event.detail.size;
    out->last_event = in.since(begin);
  }
  out->events = in.since(start);
  return true;
}

// Room that write_trail may need.
inline size_t trail_room(const Trail& trail, const NewEvent* appended) noexcept {
  size_t room = trail.events.size + msgpack::kMaxHeaderBytes * (2 + kMergedEventFields);
  if (appended != nullptr) room += appended->transition.size + appended->detail_bytes();
  return room;
}

inline void write_event(Writer& out, const NewEvent& event) noexcept {
  out.array(kEventFields);
  out.uint(static_cast<uint64_t>(event.at));
  out.text(event.transition);
  if (is_nil(event.detail)) return out.nil();
  out.text_header(event.detail_bytes());
  out.raw(event.prefix);
  out.raw(event.detail);
  out.raw(event.suffix);
}

// Consecutive heartbeats are one event: the last one again, with one more counted.
inline void write_merged(Writer& out, const Event& last, int64_t at) noexcept {
  out.array(std::max(last.fields, kMergedEventFields));
  out.raw(last.base);
  out.uint(last.count < kMaxMerged ? last.count + 1 : kMaxMerged);
  out.uint(static_cast<uint64_t>(at));
  out.raw(last.extra);
}

// Writes the trail with one event more, and returns how many old ones fell out of it: the oldest after the first.
// Requires a trail that read_trail accepted.
inline uint64_t write_trail(Writer& out, const Trail& trail, const NewEvent& appended) noexcept {
  Reader in(trail.events);
  uint32_t count = 0;
  if (!is_nil(trail.events)) in.array(&count);
  const char* const end = trail.events.data + trail.events.size;

  const Bytes extended = text("extended");
  if (count != 0 && same(appended.transition, extended)) {
    Event last;
    Reader tail(trail.last_event);
    read_event(tail, &last);
    if (same(last.transition, extended)) {
      out.array(count);
      out.raw({in.at(), static_cast<size_t>(trail.last_event.data - in.at())});
      write_merged(out, last, appended.at);
      return 0;
    }
  }

  uint64_t kept = uint64_t{count} + 1;
  uint64_t kept_bytes = trail.detail_bytes + appended.detail_bytes();
  const auto is_over = [&] { return kept > 2 && (kept > kTrailEvents + 1 || kept_bytes > kTrailBytes); };
  if (!is_over()) {
    out.array(kept);
    out.raw({in.at(), static_cast<size_t>(end - in.at())});
  } else {
    Event event;
    const char* const begin = in.at();
    read_event(in, &event);
    const Bytes first = in.since(begin);
    while (is_over()) {
      read_event(in, &event);
      kept_bytes -= event.detail.size;
      kept -= 1;
    }
    out.array(kept);
    out.raw(first);
    out.raw({in.at(), static_cast<size_t>(end - in.at())});
  }
  write_event(out, appended);
  return uint64_t{count} + 1 - kept;
}

}  // namespace telha::record
