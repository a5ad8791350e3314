// checks.cc: classes of the core that need neither RocksDB nor Python, against plain models of themselves.
//
//   checks job_table SEED     random claims and rows, beside a std::map
//   checks window SEED        random offers, gates, withdrawals and scans, beside a sorted list of all jobs
//   checks turns THREADS      one at a time, and everybody gets on
//
// test_native.py builds it with sanitizers and runs it. Exits 0, or says what differs and exits 1.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "claims.hpp"
#include "job_table.hpp"
#include "leased.hpp"
#include "turns.hpp"
#include "window.hpp"

namespace {

using telha::Bytes;
using telha::Claim;
using telha::JobId;
using telha::Key;
using telha::Row;

void require(bool holds, const char* what, int step) {
  if (holds) return;
  std::fprintf(stderr, "checks: %s, at step %d\n", what, step);
  std::exit(1);
}

std::string key_of(int job) {
  std::string key(Key::kBytes, '\0');
  key[Key::kOrderAt + 3] = static_cast<char>(job >> 8);
  key[Key::kOrderAt + 4] = static_cast<char>(job);
  key[Row::kJobIdAt] = static_cast<char>(job);
  key[Row::kJobIdAt + 15] = static_cast<char>(job >> 8);
  return key;
}

Row row_of(int job, int version) {
  const std::string value = "row " + std::to_string(version);
  return Row::of(key_of(job).data(), Bytes{value.data(), value.size()});
}

std::string text(const Row& row) { return row.is_null() ? "" : std::string(row.value().data, row.value().size); }

int job_table(unsigned seed) {
  struct Held {
    Claim claim = Claim::kNone;
    std::string row;
  };
  std::mt19937 random(seed);
  telha::JobTable table;
  telha::Claims claims(&table);
  telha::LeasedRows leased(&table);
  std::map<int, Held> model;
  for (int step = 0; step < 200'000; ++step) {
    const int job = static_cast<int>(random() % (step % 3000 < 1500 ? 3000 : 40));
    const std::string key = key_of(job);
    const JobId id(key.data() + Row::kJobIdAt);
    Held& held = model[job];
    switch (random() % 5) {
      case 0:
        if (held.claim != Claim::kNone) break;
        held.claim = random() % 2 == 0 ? Claim::kLease : Claim::kOther;
        claims.take(id, held.claim);
        break;
      case 1:
        if (held.claim == Claim::kNone) break;
        held.claim = Claim::kNone;
        claims.give_back(id);
        break;
      case 2:
        leased.put(row_of(job, step));
        held.row = text(row_of(job, step));
        break;
      case 3:
        leased.forget(key.data() + Row::kJobIdAt);
        held.row.clear();
        break;
      default: break;
    }
    require(claims.of(id) == held.claim, "a claim differs", step);
    require(text(leased.find(key.data() + Row::kJobIdAt)) == held.row, "a row differs", step);
    if (step % 1000 != 0) continue;
    for (const auto& [other, is] : model) {
      const std::string other_key = key_of(other);
      require(claims.of(JobId(other_key.data() + Row::kJobIdAt)) == is.claim, "another claim differs", step);
      require(text(leased.find(other_key.data() + Row::kJobIdAt)) == is.row, "another row differs", step);
    }
  }
  return 0;
}

// What is pending, by job: when its gate opens (-1: it is open) and which row it has.
struct Pending {
  int64_t not_before;
  int version;
};

int window(unsigned seed) {
  constexpr size_t kReadyLimit = 16;
  std::mt19937 random(seed);
  telha::Window window(nullptr, "", kReadyLimit);
  std::map<int, Pending> model;
  int64_t now = 0;
  const auto fill = [&] {  // as scan.pxd does, a few rows at a time
    window.begin_scan();
    const std::string cursor(window.cursor(), window.cursor_size());
    int met = 0;
    std::string last;
    bool is_cut = false;
    for (const auto& [job, is] : model) {
      const std::string key = key_of(job);
      if (key.substr(Key::kOrderAt) < cursor) continue;
      if (met++ == 5) {
        is_cut = true;
        break;
      }
      last = key.substr(Key::kOrderAt);
      const std::string value = "row " + std::to_string(is.version);
      window.add(key.data(), Bytes{value.data(), value.size()}, is.not_before > now ? is.not_before : -1);
    }
    window.end_scan(is_cut ? last.data() : nullptr);
  };
  for (int step = 0; step < 100'000; ++step) {
    const int job = static_cast<int>(random() % 300);
    const std::string key = key_of(job);
    switch (random() % 6) {
      case 0:
      case 1: {  // enqueued, released or failed
        const Pending is{random() % 3 == 0 ? now + static_cast<int64_t>(random() % 40) + 1 : -1, step};
        model[job] = is;
        window.withdraw(key.data());
        window.offer(row_of(job, step), is.not_before, random() % 4 != 0);
        break;
      }
      case 2:  // leased through another window
        model.erase(job);
        window.withdraw(key.data());
        break;
      case 3: now += static_cast<int64_t>(random() % 5); break;
      default: {  // leased through this one
        const telha::ReadyJob* ready = nullptr;
        while (true) {
          ready = window.first(now);
          if (ready == nullptr) {
            if (window.is_complete()) break;
            fill();
            continue;
          }
          // An entry that is out of date is taken out by whoever looks at its row.
          const auto found = std::find_if(model.begin(), model.end(), [&](const auto& one) {
            return std::memcmp(key_of(one.first).data(), ready->key.bytes, Key::kBytes) == 0;
          });
          if (found != model.end() && found->second.not_before <= now) break;
          require(ready->row.is_null(), "a row stands for a job that is not ready", step);
          const telha::ReadyJob taken = *ready;
          window.withdraw(taken.key.bytes);
          if (found != model.end())
            window.offer(row_of(found->first, found->second.version), found->second.not_before, true);
        }
        const auto first =
            std::find_if(model.begin(), model.end(), [&](const auto& one) { return one.second.not_before <= now; });
        require((ready == nullptr) == (first == model.end()), "one finds a job and the other none", step);
        if (ready == nullptr) break;
        require(key_of(first->first) == std::string(ready->key.bytes, Key::kBytes), "another job is next", step);
        require(ready->row.is_null() || text(ready->row) == text(row_of(first->first, first->second.version)),
                "the row is not the stored one", step);
        const telha::ReadyJob taken = *ready;
        window.withdraw(taken.key.bytes);
        model.erase(first);
      }
    }
  }
  return 0;
}

// Some wait in the line when it is over.
void end_turns() {
  for (int round = 0; round < 200; ++round) {
    telha::Turns turns;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 40; ++i) {
          turns.take();
          if (i % 8 == t) std::this_thread::sleep_for(std::chrono::microseconds(50));
          turns.give_back();
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50 + round * 5));
    turns.end();
    for (auto& thread : threads) thread.join();
  }
}

int turns(int count) {
  constexpr int kEach = 3000;
  end_turns();
  telha::Turns turns;
  int in_turn = 0, total = 0;  // guarded by the turn: a sanitizer sees whether they are
  std::atomic<bool> overlapped{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        turns.take();
        if (++in_turn != 1) overlapped = true;
        ++total;
        if (i % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        --in_turn;
        turns.give_back();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  require(!overlapped, "two had a turn at once", 0);
  require(total == count * kEach, "a turn was lost", total);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[1] : "";
  const int number = argc == 3 ? std::atoi(argv[2]) : 0;
  if (what == "job_table") return job_table(static_cast<unsigned>(number));
  if (what == "window") return window(static_cast<unsigned>(number));
  if (what == "turns") return turns(number);
  std::fprintf(stderr, "checks: see the top of checks.cc for what to say\n");
  return 2;
}
