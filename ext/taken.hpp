// taken.hpp: what a call that leases has taken so far.
#pragma once

#include "rows.hpp"
#include "window.hpp"

namespace telha {

struct Taken {
  List<ReadyJob> picked;   // claimed, and in no window
  size_t done = 0;         // the picked jobs that were looked at
  List<Outcome> left;      // picked and not leased: gated still, or one too many
  List<size_t> gone;       // which of the picked jobs stand under another key by now
  int64_t room_bytes = 0;  // for payloads
  bool is_full = false;
  bool is_blocked = false;  // the next job is claimed by another verb, and must not be waited for
};

}  // namespace telha
