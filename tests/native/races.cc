// races.cc: the windows, claims, leased rows, scopes and waiters of a store, used by many threads as the verbs use them
// (enqueue.pxd, lease.pxd, move.pxd, scan.pxd, announce.pxd), over rows in memory. Built with ThreadSanitizer.
//
//   races SEED ROUNDS [forgets-to-wake | forgets-claims]
//
// Each round has producers, consumers of single scopes and kinds and of many, one who claims jobs and leaves them as
// they are, and in every other round gates and a clock. Every job must be handed out to one at a time and completed
// once, nobody may sleep beside a job that is for him, and nothing may be left in memory. The last word plants a fault.
// Exits 0, or says what is wrong and exits 1.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "claims.hpp"
#include "job_table.hpp"
#include "known_scopes.hpp"
#include "leased.hpp"
#include "waiters.hpp"
#include "windows.hpp"

namespace {

using namespace telha;
using Lock = std::unique_lock<std::mutex>;
using Random = std::mt19937;

constexpr int kJobs = 160, kScopes = 2, kStretch = 24;
constexpr size_t kReadyLimit = 8;
enum State : uint8_t { kPending, kLeased, kCompleted };

bool forgets_to_wake = false, forgets_claims = false;
constexpr int64_t kPatienceUs = 200'000;  // then a sleeper looks around

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "races: %s\n", what);
  std::_Exit(1);
}

// A row's value: its kind, when its gate opens (-1: it is open), how often it was leased.
struct Value {
  char kind;
  int64_t not_before;
  int generation;
};

Value value_of(const Row& row) {
  Value value;
  std::memcpy(&value, row.value().data, sizeof value);
  return value;
}

int number_of(const char* key) {
  return static_cast<uint8_t>(key[Row::kJobIdAt]) | (static_cast<uint8_t>(key[Row::kJobIdAt + 15]) << 8);
}

std::string scope_of(int scope) { return std::string(Key::kScopeBytes, static_cast<char>('A' + scope)); }

std::string key_of(int job, int scope) {
  std::string key = scope_of(scope) + std::string(Key::kBytes - Key::kScopeBytes, '\0');
  key[Key::kOrderAt + 7] = static_cast<char>(job >> 8);
  key[Key::kOrderAt + 8] = key[Row::kJobIdAt] = static_cast<char>(job);
  key[Row::kJobIdAt + 15] = static_cast<char>(job >> 8);
  return key;
}

Row row_of(const char* key, State state, const Value& value) {
  Value bytes;
  std::memset(static_cast<void*>(&bytes), 0, sizeof bytes);
  bytes = value;
  return Row::of(key, state, 0, Bytes{reinterpret_cast<const char*>(&bytes), sizeof bytes});
}

std::string filter_of(const char* kind) { return kind == nullptr ? "" : std::string("\1=") + kind; }

bool is_wanted(const Kinds& kinds, char kind) { return kinds.count == 0 || kinds.patterns[0].text.data[0] == kind; }

// What stands for RocksDB: rows by key, each change whole.
class Rows {
 public:
  void write(const char* before, const Row& after) {
    std::unique_lock lock(mutex_);
    if (before != nullptr) rows_.erase(std::string(before, Key::kBytes));
    rows_[std::string(after.key(), Key::kBytes)] = after;
  }
  Row get(const std::string& key) const {
    std::shared_lock lock(mutex_);
    const auto found = rows_.find(key);
    return found == rows_.end() ? Row() : found->second;
  }
  bool has(const std::string& scope) const {
    std::shared_lock lock(mutex_);
    const auto at = rows_.lower_bound(scope);
    return at != rows_.end() && at->first.compare(0, scope.size(), scope) == 0;
  }
  // The pending rows of a scope from an order on.
  std::vector<Row> pending(const std::string& scope, const std::string& cursor) const {
    std::vector<Row> found;
    std::shared_lock lock(mutex_);
    const std::string prefix = scope + std::string(1, '\0');
    for (auto at = rows_.lower_bound(prefix + cursor); at != rows_.end(); ++at) {
      if (at->first.compare(0, prefix.size(), prefix) != 0) break;
      found.push_back(at->second);
    }
    return found;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::string, Row> rows_;
};

struct Store {
  std::mutex mutex;
  JobTable table;
  Claims claims{&table};
  LeasedRows leased{&table};
  Windows windows;
  Waiters waiters;
  KnownScopes scopes;
  Rows rows;
  std::atomic<uint64_t> moves{0};
  std::atomic<int64_t> now{0};
  std::atomic<int> completed{0};
  std::atomic<int> holders[kJobs] = {};
  int announced[kJobs] = {};  // the generation that was announced last, and one; wants the mutex

  bool is_over() const { return completed.load() == kJobs; }
};

// As announce.pxd. All want the mutex.
void offer(Store* store, const Row& row, bool is_current) {
  const Value value = value_of(row);
  for (const char* scope : {row.key(), static_cast<const char*>(nullptr)}) {
    for (Window* window : *store->windows.of(scope)) {
      if (!is_wanted(window->kinds, value.kind)) continue;
      window->offer(row, value.not_before, is_current);
      store->windows.count(window);
    }
  }
  store->windows.trim();
  store->announced[number_of(row.key())] = value.generation + 1;
  store->waiters.announce(row.key());
  for (Waiter* waiter = store->waiters.first(); waiter != nullptr; waiter = waiter->next) {
    const bool is_here = waiter->scope == nullptr || std::memcmp(waiter->scope, row.key(), Key::kScopeBytes) == 0;
    if (!is_here || !is_wanted(*static_cast<const Kinds*>(waiter->kinds), value.kind)) continue;
    if (!forgets_to_wake) store->waiters.wake(waiter);
  }
}

void tell_moved(Store* store, const Row& row) {
  store->moves.fetch_add(1);
  store->windows.withdraw(row.key());
  if (row.key()[Row::kStateAt] == kLeased) return store->leased.put(row);
  store->leased.forget(row.job_id());
  if (row.key()[Row::kStateAt] == kPending) offer(store, row, true);
}

void enqueue(Store* store, int job, int scope, const Value& value) {
  const uint64_t moves = store->moves.load();
  const Row row = row_of(key_of(job, scope).data(), kPending, value);
  store->rows.write(nullptr, row);
  Lock lock(store->mutex);
  if (store->scopes.is_complete()) store->scopes.add(row.key());
  offer(store, row, store->moves.load() == moves);
}

// As scan.pxd: a stretch of each scope. Wants the mutex.
void fill(Store* store, Window* window, int64_t now) {
  store->moves.fetch_add(1);
  Names scopes;
  if (window->scope() != nullptr) {
    *scopes.add() = std::string(window->scope(), Key::kScopeBytes);
  } else {
    for (int scope = 0; scope < kScopes && !store->scopes.is_complete(); ++scope) {
      if (store->rows.has(scope_of(scope))) store->scopes.add(scope_of(scope).data());
    }
    store->scopes.set_complete();
    store->scopes.copy_to(&scopes);
  }
  std::string least;
  window->begin_scan();
  for (const std::string& scope : scopes.items()) {
    int walked = 0;
    std::string last;
    for (const Row& row : store->rows.pending(scope, std::string(window->cursor(), window->cursor_size()))) {
      if (walked++ == kStretch) {
        if (least.empty() || last < least) least = last;
        break;
      }
      last.assign(row.key() + Key::kOrderAt, Key::kOrderBytes);
      const Value value = value_of(row);
      if (is_wanted(window->kinds, value.kind)) {
        window->add(row.key(), row.value(), value.not_before > now ? value.not_before : -1);
      }
    }
  }
  window->end_scan(least.empty() ? nullptr : least.data());
}

// As lease.pxd. Claims what is next; false when nothing is ready.
bool pick(Store* store, Lock& lock, const char* scope, const Kinds& kinds, int64_t now, ReadyJob* picked) {
  for (;;) {
    Window* const window = store->windows.find(scope, kinds);
    const ReadyJob* const ready = window->first(now);
    if (ready == nullptr) {
      if (window->is_complete()) return false;
      fill(store, window, now);
      lock.unlock();
      lock.lock();
      continue;
    }
    const JobId id(ready->key.bytes + Row::kJobIdAt);
    const Claim claim = store->claims.of(id);
    if (claim == Claim::kOther) {
      store->claims.wait_for(lock, id);
      continue;
    }
    *picked = *ready;
    store->windows.withdraw(picked->key.bytes);
    if (claim == Claim::kLease && !forgets_claims) continue;
    store->claims.take(id, Claim::kLease);
    return true;
  }
}

// Reads and writes without the mutex. One that is gated, or has moved on, is left, and the next is picked.
Row lease(Store* store, const char* scope, const Kinds& kinds) {
  const int64_t now = store->now.load();
  Lock lock(store->mutex);
  Row leased;
  for (ReadyJob picked; leased.is_null() && pick(store, lock, scope, kinds, now, &picked);) {
    lock.unlock();
    if (forgets_claims) std::this_thread::yield();
    const Row row = picked.row.is_null() ? store->rows.get(std::string(picked.key.bytes, Key::kBytes)) : picked.row;
    if (!row.is_null() && value_of(row).not_before <= now) {
      Value value = value_of(row);
      ++value.generation;
      leased = row_of(row.key(), kLeased, value);
      const int before = store->holders[number_of(row.key())].exchange(1);
      require(before == 0, "a job was handed out to two, or after its end");
      store->rows.write(row.key(), leased);
    }
    lock.lock();
    store->claims.give_back(JobId(picked.key.bytes + Row::kJobIdAt));
    if (!row.is_null()) tell_moved(store, leased.is_null() ? row : leased);
  }
  return leased;
}

// As move.pxd: what memory knows of a leased job is what is stored.
void finish(Store* store, const Row& held, State state, int64_t not_before) {
  const std::vector<JobId> ids{JobId(held.job_id())};
  Lock lock(store->mutex);
  store->claims.wait_and_take(lock, ids);
  const Row row = store->leased.find(held.job_id());
  lock.unlock();
  require(!row.is_null() && value_of(row).generation == value_of(held).generation, "memory has another lease");
  Value value = value_of(held);
  value.not_before = not_before;
  const Row moved = row_of(held.key(), state, value);
  require(store->holders[number_of(held.key())].exchange(state == kPending ? 0 : 2) == 1, "a lease was lost");
  store->rows.write(held.key(), moved);
  lock.lock();
  store->claims.give_back(ids[0]);
  tell_moved(store, moved);
  if (state == kCompleted && store->completed.fetch_add(1) == kJobs - 1) store->waiters.wake_all();
}

// Whether a job is there that a consumer could have, and nobody is at work on it. It was announced, so whoever slept
// then was woken, and whoever did not has met it: nobody may sleep. Wants the mutex. (Gates open without a word.)
bool is_slept_beside(Store* store, int scope, const Kinds& kinds) {
  for (int other = 0; other < kScopes; ++other) {
    if (scope >= 0 && scope != other) continue;
    for (const Row& row : store->rows.pending(scope_of(other), "")) {
      const Value value = value_of(row);
      const bool is_announced = store->announced[number_of(row.key())] == value.generation + 1;
      const bool is_free = store->claims.of(JobId(row.job_id())) == Claim::kNone;
      if (is_announced && is_free && value.not_before < 0 && is_wanted(kinds, value.kind)) return true;
    }
  }
  return false;
}

void consume(Store* store, Random random, int scope, const char* kind, bool has_clock) {
  const std::string filter = filter_of(kind), scope_bytes = scope_of(scope < 0 ? 0 : scope);
  const char* const where = scope < 0 ? nullptr : scope_bytes.data();
  const Kinds kinds = Kinds::of(filter);
  while (!store->is_over()) {
    Lock lock(store->mutex);
    const uint64_t ticket = store->waiters.ticket(where);
    lock.unlock();
    const Row held = lease(store, where, kinds);
    if (!held.is_null()) {
      const bool is_last = value_of(held).generation >= 3 || random() % 3 != 0;
      const int64_t gate = has_clock && random() % 2 == 0 ? store->now.load() + 1 + random() % 3 : -1;
      finish(store, held, is_last ? kCompleted : kPending, is_last ? -1 : gate);
      continue;
    }
    Waiter waiter;
    waiter.scope = where;
    waiter.kinds = &kinds;
    lock.lock();
    if (store->is_over()) return;
    const bool was_woken = store->waiters.sleep(lock, &waiter, ticket, kPatienceUs);
    require(was_woken || !is_slept_beside(store, scope, kinds), "somebody sleeps beside a job");
  }
}

void produce(Store* store, Random random, int first, bool has_clock) {
  for (int job = first; job < kJobs; job += 2) {
    const int64_t gate = has_clock && random() % 4 == 0 ? store->now.load() + 2 : -1;
    enqueue(store, job, static_cast<int>(random() % kScopes), {random() % 2 == 0 ? 'a' : 'b', gate, 0});
    if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));  // so that all fall asleep
  }
}

// A verb that is refused: it claims jobs for a while, whatever their state, and changes nothing.
void meddle(Store* store, Random random) {
  while (!store->is_over()) {
    std::vector<JobId> ids;
    for (unsigned n = random() % 3 + 1; n > 0; --n) {
      ids.emplace_back(key_of(static_cast<int>(random() % kJobs), 0).data() + Row::kJobIdAt);
    }
    Lock lock(store->mutex);
    store->claims.wait_and_take(lock, ids);
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    for (const JobId& id : ids) store->claims.give_back(id);
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void tick(Store* store) {
  while (!store->is_over()) {
    store->now.fetch_add(1);
    std::unique_lock lock(store->mutex);
    store->waiters.wake_all();
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
}

void play(unsigned seed, int round) {
  const auto random = [&](unsigned who) { return Random(seed + 1000u * static_cast<unsigned>(round) + who); };
  const bool has_clock = round % 2 == 1;
  const auto store = std::make_unique<Store>();
  store->windows.set_ready_limit(kReadyLimit);
  std::vector<std::thread> threads;
  const auto begin = [&](auto work, auto... words) {
    const unsigned who = static_cast<unsigned>(threads.size());
    threads.emplace_back([=, s = store.get()] { work(s, random(who), words...); });
  };
  for (int scope = 0; scope < kScopes; ++scope) {
    for (const char* kind : {"a", "b"}) begin(consume, scope, kind, has_clock);
  }
  if (round % 3 != 0) begin(consume, -1, static_cast<const char*>(nullptr), has_clock);
  if (round % 3 == 2) begin(consume, -1, "a", has_clock);
  if (round % 3 == 2) begin(consume, 0, static_cast<const char*>(nullptr), has_clock);
  begin(produce, 0, has_clock);
  begin(produce, 1, has_clock);
  begin(meddle);
  if (has_clock) threads.emplace_back(tick, store.get());
  for (auto& thread : threads) thread.join();
  for (int job = 0; job < kJobs; ++job) {
    require(store->holders[job].load() == 2, "a job was not completed");
    require(store->table.find(JobId(key_of(job, 0).data() + Row::kJobIdAt)) == nullptr, "something is left of a job");
  }
  require(lease(store.get(), nullptr, Kinds()).is_null(), "a job is handed out after all are completed");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "races: see the top of races.cc for what to say\n"), 2;
  const std::string fault = argc > 3 ? argv[3] : "";
  forgets_to_wake = fault == "forgets-to-wake";
  forgets_claims = fault == "forgets-claims";
  for (int round = 0; round < std::atoi(argv[2]); ++round) play(static_cast<unsigned>(std::atoll(argv[1])), round);
  return 0;
}
