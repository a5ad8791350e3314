// keeper.cc: the keeper of leases on a store that is a table, while many threads hold, end, wait and close.
//
//   keeper holds THREADS     each hold is ended, or told of once, for the reason that is true of it
//   keeper closes ROUNDS     closed by several, or by its store, at every moment of a renewal
//   keeper bounds SEED       bounds that are reached at once, never, or while the store refuses
//
// test_native.py builds it with sanitizers and runs it. Exits 0, or says what differs and exits 1.
#include "keeper.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>

namespace {

using telha::Held;
using telha::Hold;
using telha::Keeper;
using telha::Over;
using telha::Renewal;
using telha::Renewed;
using telha::Renewer;

constexpr int64_t kForeverUs = int64_t{3600} * 1'000'000;
constexpr int64_t kTtlUs = 6'000;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "keeper: %s\n", what);
  std::exit(1);
}

void pause_us(int64_t us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

int64_t wall_now_us() {
  int64_t wall_us = 0, monotonic_ns = 0;
  telha::system_clocks(&wall_us, &monotonic_ns);
  return wall_us;
}

std::string id_of(int job) {
  std::string id = std::to_string(job);
  id.resize(16, '.');
  return id;
}

// Leases by job id, and what became of them.
class Table {
 public:
  struct Lease {
    uint64_t generation = 1;
    Renewed answer = Renewed::kKept;
    int64_t deadline_us = 0;
    int renewals = 0;
  };

  Renewer renewer() {
    return {.store = this,
            .renew = [](void* store, Renewal* renewals, size_t count, int64_t now_us) {
              return static_cast<Table*>(store)->renew(renewals, count, now_us);
            },
            .seen_us = [](void* store) { return static_cast<Table*>(store)->seen_us_.load(); }};
  }

  Renewal lease(int job, int64_t ttl_us = kTtlUs) {
    std::lock_guard lock(mutex_);
    auto& [id, lease] = *leases_.try_emplace(id_of(job)).first;
    lease = Lease{.deadline_us = wall_now_us() + ttl_us};
    return {.scope = nullptr,
            .job_id = id.data(),
            .known_key = nullptr,
            .worker_id = {"worker", 6},
            .lease_generation = lease.generation,
            .deadline_us = lease.deadline_us,
            .ttl_us = ttl_us};
  }

  void answer(int job, Renewed renewed) {
    std::lock_guard lock(mutex_);
    leases_[id_of(job)].answer = renewed;
  }

  int renewals(int job) {
    std::lock_guard lock(mutex_);
    return leases_[id_of(job)].renewals;
  }

  std::atomic<bool> is_open{true};
  std::atomic<bool> fails{false};
  std::atomic<int64_t> takes_us{0};
  std::atomic<int> calls{0};

 private:
  bool renew(Renewal* renewals, size_t count, int64_t now_us) {
    ++calls;
    if (takes_us > 0) pause_us(takes_us);
    require(count > 0 && count <= Keeper::kMaxBatch, "a batch is empty or too large");
    require(now_us >= seen_us_.exchange(now_us), "time went back");
    if (!is_open || fails) return is_open;
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < count; ++i) {
      Renewal& renewal = renewals[i];
      Lease& lease = leases_[std::string(renewal.job_id, 16)];
      require(renewal.lease_generation == lease.generation, "another lease is renewed");
      require(std::string(renewal.worker_id.data, renewal.worker_id.size) == "worker", "for another worker");
      require(now_us >= lease.deadline_us - kTtlUs + kTtlUs / 3 - kTtlUs / 10, "it was not due yet");
      ++lease.renewals;
      renewal.renewed = lease.answer;
      renewal.deadline_us = lease.deadline_us = std::max(lease.deadline_us, now_us + kTtlUs);
      renewal.ttl_us = kTtlUs;
    }
    return true;
  }

  std::mutex mutex_;
  std::map<std::string, Lease> leases_;
  std::atomic<int64_t> seen_us_{0};
};

int holds(int count) {
  constexpr int kJobs = 60, kRounds = 40;
  Table table;
  Keeper keeper(table.renewer(), wall_now_us());
  std::mutex mutex;
  std::map<const Hold*, Over> expected;  // of holds that nobody ends
  std::set<const Hold*> told;
  std::vector<Held> all;  // so that no two ever have one address
  std::atomic<bool> is_over{false};

  const auto work = [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Held> mine;
      for (int i = 0; i < kJobs; ++i) {
        const int job = (thread * kRounds + round) * kJobs + i;
        const int fate = static_cast<int>(random() % 12);
        const Renewal lease = table.lease(job);
        if (fate == 0) table.answer(job, Renewed::kLost);
        if (fate == 1) table.answer(job, Renewed::kCompleted);
        const int64_t timeout_us = fate == 2 ? 1000 : kForeverUs, progress_us = fate == 3 ? 1000 : -1;
        mine.push_back(telha::make_hold(lease, timeout_us, progress_us));
        std::lock_guard lock(mutex);
        all.push_back(mine.back());
        if (fate == 0) expected[mine.back().get()] = Over::kLost;
        if (fate == 2) expected[mine.back().get()] = Over::kTimeout;
        if (fate == 3) expected[mine.back().get()] = Over::kStalled;
      }
      const size_t batch = 1 + random() % 16;
      for (size_t at = 0; at < mine.size(); at += batch) {
        require(keeper.hold(&mine[at], std::min(batch, mine.size() - at)) == 0, "a hold was refused");
      }
      if (random() % 4 == 0) pause_us(static_cast<int64_t>(random() % 4000));
      for (const Held& held : mine) {
        held->progress();
        std::unique_lock lock(mutex);
        if (expected.contains(held.get())) continue;
        lock.unlock();
        keeper.end(held);
        require(held->over() == Over::kEnded, "an ended hold is over for another reason");
      }
    }
  };
  const auto wait = [&] {
    std::vector<Held> found;
    while (!is_over) {
      require(keeper.wait(1000, &found), "it was closed");
      std::lock_guard lock(mutex);
      for (const Held& held : found) {
        require(told.insert(held.get()).second, "a hold was told of twice");
        require(expected.contains(held.get()), "a hold was told of that somebody has ended");
        require(held->over() == expected[held.get()], "for another reason");
      }
      found.clear();
    }
  };

  std::vector<std::thread> workers, waiters;
  for (int t = 0; t < 2; ++t) waiters.emplace_back(wait);
  for (int t = 0; t < count; ++t) workers.emplace_back(work, t);
  for (auto& thread : workers) thread.join();
  const auto all_told = [&] {
    std::lock_guard lock(mutex);
    return told.size() == expected.size();
  };
  while (!all_told()) pause_us(1000);
  is_over = true;
  for (auto& thread : waiters) thread.join();
  keeper.close();
  for (const Held& held : all) require(held->over() != Over::kNot, "a hold outlives its keeper");
  return 0;
}

int closes(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    Table table;
    table.takes_us = 150;
    const bool by_store = round % 3 == 0;
    Keeper keeper(table.renewer(), wall_now_us());
    std::vector<Held> held;
    for (int job = 0; job < 20; ++job) held.push_back(telha::make_hold(table.lease(job, 1), kForeverUs, -1));
    if (round % 7 != 0) require(keeper.hold(held.data(), held.size()) == 0, "a hold was refused");
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
      std::vector<Held> found;
      if (round % 7 != 0 || !by_store) require(!keeper.wait(kForeverUs, &found), "something is told of");
    });
    threads.emplace_back([&] {
      for (const Held& one : held) keeper.end(one);
      const Held more = telha::make_hold(table.lease(21), kForeverUs, -1);
      while (by_store && keeper.hold(&more, 1) == 0) {
        table.is_open = false;
        pause_us(20);
        keeper.end(more);
      }
    });
    pause_us(round * 3 % 400);
    if (by_store) {
      const Held due = telha::make_hold(table.lease(22, 1), kForeverUs, -1);
      (void)keeper.hold(&due, 1);
      table.is_open = false;
    } else {
      for (int t = 0; t < 3; ++t) threads.emplace_back([&] { keeper.close(); });
    }
    for (auto& thread : threads) thread.join();
    if (!by_store) {
      require(keeper.hold(held.data(), 1) == Keeper::kClosed, "a closed keeper holds");
    }
  }
  return 0;
}

int bounds(unsigned seed) {
  std::mt19937 random(seed);
  Table table;
  Keeper keeper(table.renewer(), wall_now_us());
  std::vector<Held> held, found;
  for (int job = 0; job < 3000; ++job) {  // more than go into one batch
    held.push_back(telha::make_hold(table.lease(job), random() % 3 == 0 ? 0 : kForeverUs, random() % 3 == 0 ? 0 : -1));
  }
  require(keeper.hold(held.data(), held.size()) == 0, "a hold was refused");
  table.fails = true;
  const int calls = table.calls;
  while (table.calls < calls + 20) pause_us(500);  // far beyond the deadlines
  table.fails = false;
  size_t left = 0;
  for (const Held& one : held) left += one->over() == Over::kNot ? 1 : 0;
  require(left > 1000 && left < 2000, "holds are over that have no bound, or are not over");
  const auto all_renewed = [&] {
    for (int job = 0; job < 3000; ++job) {
      if (held[static_cast<size_t>(job)]->over() == Over::kNot && table.renewals(job) < 3) return false;
    }
    return true;
  };
  while (!all_renewed()) pause_us(500);
  require(keeper.wait(0, &found) && found.size() == held.size() - left, "not all that is over is told of");
  for (const Held& one : found) require(one->over() == Over::kTimeout || one->over() == Over::kStalled, "for no bound");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[1] : "";
  const int number = argc == 3 ? std::atoi(argv[2]) : 0;
  if (what == "holds") return holds(number);
  if (what == "closes") return closes(number);
  if (what == "bounds") return bounds(static_cast<unsigned>(number));
  std::fprintf(stderr, "keeper: see the top of keeper.cc for what to say\n");
  return 2;
}
