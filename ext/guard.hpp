// guard.hpp: whether a directory still holds what its mark says is on disk. Asked before RocksDB opens it, because
// RocksDB takes a shorter log or MANIFEST for all there is, opens with fewer rows, and clears away what it did not
// read.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "durable.hpp"
#include "log_check.hpp"

namespace telha {

struct Guard {
  std::vector<std::string> damage;  // a sentence each
  std::string ragged;      // a MANIFEST with an end that was never on disk and is garbled: RocksDB refuses those
  uint64_t ragged_at = 0;  // where that begins
  int error = 0;           // an errno: a file could not be read, so nothing is known of it
  bool is_stale = false;   // the store was opened since by something that keeps no mark: RocksDB's own tools

  static Guard look(const std::string& directory, const Mark& mark) noexcept {
    Guard guard;
    guard.look_at_current(directory, mark);
    if (guard.is_stale) return guard;
    std::vector<MarkedFile> logs;
    for (const MarkedFile& file : mark.files) {
      if (file.kind != MarkedKind::kManifest) logs.push_back(file);
    }
    std::sort(logs.begin(), logs.end(), [](const auto& left, const auto& right) { return left.number < right.number; });
    uint64_t readable = 0;  // rows up to this one can be read from the logs
    bool is_whole = true;   // so far
    for (const MarkedFile& log : logs) {
      const LogCheck check = guard.look_at(directory, log);
      is_whole = is_whole && guard.damage.empty();
      if (check.last_sequence > 0 && (is_whole || readable == 0)) readable = check.last_sequence;
      if (!is_whole) break;
    }
    if (is_whole || mark.sequence == 0) return guard;
    guard.damage.push_back(
        "rows up to sequence number " + std::to_string(mark.sequence) + " were on disk" +
        (readable == 0 || readable >= mark.sequence
             ? std::string()
             : ", the last " + std::to_string(mark.sequence - readable) + " are gone or unreadable"));
    return guard;
  }

  // What RocksDB came back with.
  void compare(uint64_t sequence, const Mark& mark) noexcept {
    if (sequence >= mark.sequence) return;
    damage.push_back("the last " + std::to_string(mark.sequence - sequence) + " of " + std::to_string(mark.sequence) +
                     " sequence numbers that were on disk are gone");
  }

  std::string text() const noexcept {
    std::string text;
    for (const std::string& sentence : damage) text += (text.empty() ? "" : "; ") + sentence;
    return text;
  }

 private:
  void look_at_current(const std::string& directory, const Mark& mark) noexcept {
    char text[64] = {};
    std::FILE* file = std::fopen((directory + "/CURRENT").c_str(), "re");
    if (file == nullptr) {
      if (errno == ENOENT && mark.sequence > 0) damage.emplace_back("the file CURRENT is missing");
      return;
    }
    const size_t size = std::fread(text, 1, sizeof text, file);
    std::fclose(file);
    const std::string_view line(text, size);
    const auto name = FileName::parse(line.substr(0, line.find('\n')));
    if (!name || name->is_log || !line.ends_with('\n')) {
      damage.emplace_back("the file CURRENT is damaged");
      return;
    }
    if (::access((directory + '/' + FileName::of(MarkedKind::kManifest, name->number)).c_str(), F_OK) != 0) {
      damage.push_back("the file CURRENT names MANIFEST number " + std::to_string(name->number) + ", which is missing");
      return;
    }
    bool is_newer = true;
    for (const MarkedFile& manifest : mark.files) {
      if (manifest.kind != MarkedKind::kManifest) continue;
      is_newer = is_newer && name->number > manifest.number;
      if (name->number != manifest.number) continue;
      const LogCheck check = look_at(directory, manifest);
      if (!check.is_sound || check.error != 0 || check.sound_bytes == check.size) continue;
      ragged = directory + '/' + FileName::of(manifest.kind, manifest.number);
      ragged_at = check.sound_bytes;
    }
    is_stale = is_newer;
  }

  LogCheck look_at(const std::string& directory, const MarkedFile& file) noexcept {
    const std::string name = FileName::of(file.kind, file.number);
    const LogCheck check = LogCheck::of(directory + '/' + name, file.bytes, file.kind);
    const std::string durable = std::to_string(file.bytes);
    if (check.error == ENOENT) {
      damage.push_back(name + " is missing, of which " + durable + " bytes were on disk");
    } else if (check.error != 0) {
      error = check.error;
    } else if (check.size < file.bytes) {
      damage.push_back(name + " has " + std::to_string(check.size) + " bytes, of which " + durable + " were on disk");
    } else if (!check.is_sound) {
      damage.push_back(name + " is damaged at byte " + std::to_string(check.sound_bytes));
    }
    return check;
  }
};

}  // namespace telha
