// claims.hpp: which jobs a verb is changing right now.
//
// Every verb reads a row, decides, and writes. It holds the job's claim from before the read until after the write, so
// no two verbs decide on the same row, while jobs that have nothing to do with each other are written side by side and
// share RocksDB's log writes and fsyncs. All methods are called with the store's mutex held; it is the lock argument.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace telha {

class Claims {
 public:
  using Lock = std::unique_lock<std::mutex>;

  bool is_taken(std::string_view name) const noexcept { return !taken_.empty() && taken_.contains(std::string(name)); }

  // Takes a claim that is free. Requires !is_taken(name).
  void take(std::string_view name) noexcept { taken_.emplace(name); }

  // Waits until none of the names is taken, then takes all of them: all or nothing, so that two calls which want the
  // same names in different orders cannot wait for each other. Names may repeat; returns how many are distinct.
  size_t wait_and_take(Lock& lock, const std::vector<std::string>& names) noexcept {
    for (;;) {
      bool free = true;
      for (const auto& name : names) free = free && !taken_.contains(name);
      if (free) break;
      ++waiting_;
      returned_.wait(lock);
      --waiting_;
    }
    const size_t before = taken_.size();
    taken_.insert(names.begin(), names.end());
    return taken_.size() - before;
  }

  void give_back(std::string_view name) noexcept {
    taken_.erase(std::string(name));
    if (waiting_ != 0) returned_.notify_all();
  }

 private:
  std::unordered_set<std::string> taken_;
  std::condition_variable returned_;
  size_t waiting_ = 0;
};

}  // namespace telha
