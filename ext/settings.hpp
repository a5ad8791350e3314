// settings.hpp: what a store is told when it is opened.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace telha {

// Ordered from strong to weak; the numbers are those of telha_queue.config.DURABILITIES.
enum class Durability : int { kSync = 0, kGroup = 1, kOs = 2 };

struct Settings {
  std::string path;
  Durability durability = Durability::kSync;
  int64_t group_sync_ms = 50;
  uint64_t memtable_bytes = 64 << 20;
  uint64_t block_cache_bytes = 32 << 20;
  uint64_t window_jobs = 4096;
  int64_t max_attempts = 5;
  int64_t max_crashes = 0;
  int64_t lease_grace_us = 0;
  int64_t backoff_base_secs = 10;
  int64_t backoff_factor = 4;
  int64_t backoff_cap_secs = 3600;

  void set_path(const char* data, size_t size) noexcept { path.assign(data, size); }

  void add_kind_base(const char* kind, size_t size, int64_t base_secs) noexcept {
    kind_bases_.emplace_back(std::string(kind, size), base_secs);
  }

  // The backoff base of a kind that has one of its own, matched whole; -1 for all others.
  int64_t kind_base_secs(const char* kind, size_t size) const noexcept {
    for (const auto& [name, base_secs] : kind_bases_) {
      if (std::string_view(kind, size) == name) return base_secs;
    }
    return -1;
  }

 private:
  std::vector<std::pair<std::string, int64_t>> kind_bases_;
};

}  // namespace telha
