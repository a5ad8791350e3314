// floor.cc: what RocksDB itself can do on the writes of a job's life cycle, with no queue around them.
//
// It writes what docs/format.md says that enqueue, lease and complete write, and does nothing else: keys, values and
// their order are made before the clock starts, nothing is read, scanned or decoded, and one write batch is reused. The
// options are those of ext/database.hpp, which is compiled in. tests/bench/test_floor.py holds its rows to the queue's.
//
//   floor run PATH JOBS BATCH THREADS DURABILITY ORDER BYTES BYTES BYTES    one run in a new directory; prints JSON
//   floor rows PATH                                        what a closed store holds, per column family; prints JSON
//   floor trial PATH JOBS BATCH DB JOBS_FAMILY BYTES BYTES BYTES
//                                          one run, each batch through all three, with other options; prints JSON
//
//   DURABILITY  os or sync
//   ORDER       phases: all jobs enqueued, then all leased, then all completed; cycle: each batch through all three
//   BYTES       size of a record as enqueue, lease and complete write it
//   DB, JOBS_FAMILY  options as RocksDB reads them from text, for the database and for the jobs column family;
//               "deletions" for the latter adds the collector that has files of many tombstones compacted
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/utilities/table_properties_collectors.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>
#include <time.h>

#include <array>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "database.hpp"

namespace {

using rocksdb::Slice;
using telha::Database;
using telha::Family;

constexpr size_t kScopeBytes = 32;
constexpr size_t kStateAt = 32;
constexpr size_t kJobIdAt = 42;
constexpr size_t kJobIdBytes = 16;
constexpr size_t kKeyBytes = 58;
constexpr size_t kIdRowBytes = 41;
constexpr size_t kNoiseBytes = 1 << 16;
constexpr size_t kOffsets = kNoiseBytes / 2;
enum State : char { kPending = 0, kLeased = 1, kCompleted = 2 };
enum Verb : size_t { kEnqueue, kLease, kComplete, kVerbs };
constexpr std::array<const char*, kVerbs> kVerbNames = {"enqueue", "lease", "complete"};

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "floor: %s\n", why.c_str());
  std::exit(1);
}

void check(const rocksdb::Status& status) {
  if (!status.ok()) fail(status.ToString());
}

struct Job {
  std::array<char, kKeyBytes> pending, leased, completed;
  std::array<char, kIdRowBytes> id_row;

  Slice key(State state) const {
    const auto& bytes = state == kPending ? pending : state == kLeased ? leased : completed;
    return Slice(bytes.data(), bytes.size());
  }
  Slice job_id() const { return Slice(pending.data() + kJobIdAt, kJobIdBytes); }
};

struct Plan {
  std::string path;
  size_t jobs = 0, batch = 1, threads = 1;
  bool sync = false, is_cycle = false;
  size_t stride = 1;  // how far the values of two jobs are apart in the noise: 1 is a payload that all jobs share
  std::array<size_t, kVerbs> bytes{};
};

// One scope, one priority, creation times a few microseconds apart: what a busy producer leaves.
std::vector<Job> make_jobs(size_t n) {
  std::mt19937_64 random(1);
  std::vector<Job> jobs(n);
  uint64_t created_at = 1'800'000'000'000'000;
  for (Job& job : jobs) {
    char* key = job.pending.data();
    std::memset(key, 7, kScopeBytes);
    key[kStateAt] = kPending;
    key[kStateAt + 1] = static_cast<char>(128);
    created_at += 5;
    for (int i = 0; i < 8; ++i) key[34 + i] = static_cast<char>(created_at >> (56 - 8 * i));
    const uint64_t milliseconds = created_at / 1000;  // a UUIDv7: it sorts as created_at does
    for (int i = 0; i < 6; ++i) key[kJobIdAt + i] = static_cast<char>(milliseconds >> (40 - 8 * i));
    key[kJobIdAt + 6] = static_cast<char>(0x70 | ((created_at % 1000) >> 8));
    key[kJobIdAt + 7] = static_cast<char>(created_at % 1000);
    const uint64_t noise = random();
    std::memcpy(key + kJobIdAt + 8, &noise, 8);
    job.leased = job.completed = job.pending;
    job.leased[kStateAt] = kLeased;
    job.completed[kStateAt] = kCompleted;
    std::memcpy(job.id_row.data(), key, kScopeBytes);
    std::memcpy(job.id_row.data() + kScopeBytes, key + kStateAt + 1, 1 + 8);
  }
  return jobs;
}

class Worker {
 public:
  Worker(const Database& database, const Plan& plan, const std::vector<Job>& jobs)
      : db_(database.db()),
        jobs_family_(database.family(Family::kJobs)),
        ids_family_(database.family(Family::kIds)),
        jobs_(jobs),
        bytes_(plan.bytes),
        stride_(plan.stride) {
    options_.sync = plan.sync;
    std::mt19937_64 random(2);
    noise_.resize(kNoiseBytes);
    for (char& byte : noise_) byte = static_cast<char>(random());
  }

  void write(Verb verb, size_t first, size_t count) {
    batch_.Clear();
    for (size_t i = first; i < first + count; ++i) {
      const Job& job = jobs_[i];
      const Slice value(noise_.data() + i * stride_ % kOffsets, bytes_[verb]);
      switch (verb) {
        case kEnqueue:
          batch_.Put(jobs_family_, job.key(kPending), value);
          batch_.Put(ids_family_, job.job_id(), Slice(job.id_row.data(), job.id_row.size()));
          break;
        case kLease:
          batch_.Delete(jobs_family_, job.key(kPending));
          batch_.Put(jobs_family_, job.key(kLeased), value);
          break;
        default: batch_.Delete(jobs_family_, job.key(kLeased)); batch_.Put(jobs_family_, job.key(kCompleted), value);
      }
    }
    check(db_->Write(options_, &batch_));
  }

 private:
  rocksdb::DB* db_;
  rocksdb::ColumnFamilyHandle *jobs_family_, *ids_family_;
  const std::vector<Job>& jobs_;
  std::array<size_t, kVerbs> bytes_;
  size_t stride_;
  rocksdb::WriteOptions options_;
  rocksdb::WriteBatch batch_;
  std::string noise_;
};

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Phase {
  double wall_s = 0, cpu_s = 0;
};

// Runs `verbs` in order on every batch; batches are dealt to the threads in turn, so all write at the same place.
Phase run_phase(const Database& database, const Plan& plan, const std::vector<Job>& jobs,
                const std::vector<Verb>& verbs) {
  std::barrier<> line(static_cast<std::ptrdiff_t>(plan.threads + 1));
  std::vector<double> cpu_s(plan.threads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < plan.threads; ++t) {
    threads.emplace_back([&, t] {
      Worker worker(database, plan, jobs);
      line.arrive_and_wait();
      const double started = thread_cpu_s();
      for (size_t first = t * plan.batch; first < jobs.size(); first += plan.threads * plan.batch) {
        for (const Verb verb : verbs) worker.write(verb, first, std::min(plan.batch, jobs.size() - first));
      }
      cpu_s[t] = thread_cpu_s() - started;
      line.arrive_and_wait();
    });
  }
  line.arrive_and_wait();
  const auto started = std::chrono::steady_clock::now();
  line.arrive_and_wait();
  Phase phase;
  phase.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  for (auto& thread : threads) thread.join();
  for (const double one : cpu_s) phase.cpu_s += one;
  return phase;
}

void print_phase(const char* name, const Phase& phase, size_t jobs, const char* end) {
  std::printf("\"%s\": {\"wall_s\": %.6f, \"cpu_s\": %.6f, \"jobs_per_s\": %.0f}%s", name, phase.wall_s, phase.cpu_s,
              static_cast<double>(jobs) / phase.wall_s, end);
}

telha::Settings settings_of(const std::string& path) {
  telha::Settings settings;
  settings.path = path;
  return settings;
}

int run(const Plan& plan) {
  Database database;
  std::filesystem::create_directories(plan.path);
  telha::Dropped dropped;
  check(database.open(settings_of(plan.path), false, &dropped));
  const std::vector<Job> jobs = make_jobs(plan.jobs);
  std::printf("{\"rocksdb\": \"%d.%d.%d\", ", ROCKSDB_MAJOR, ROCKSDB_MINOR, ROCKSDB_PATCH);
  if (plan.is_cycle) {
    print_phase("cycle", run_phase(database, plan, jobs, {kEnqueue, kLease, kComplete}), plan.jobs, "}\n");
  } else {
    for (const Verb verb : {kEnqueue, kLease, kComplete}) {
      print_phase(kVerbNames[verb], run_phase(database, plan, jobs, {verb}), plan.jobs,
                  verb == kComplete ? "}\n" : ", ");
    }
  }
  check(database.close());
  return 0;
}

// A Database::Trial from two texts.
telha::Database::Trial trial_of(const std::string& db_text, const std::string& jobs_text) {
  return [=](rocksdb::DBOptions* db, rocksdb::ColumnFamilyOptions* jobs) {
    const rocksdb::ConfigOptions config;
    check(rocksdb::GetDBOptionsFromString(config, rocksdb::DBOptions(*db), db_text, db));
    if (jobs_text == "deletions") {
      jobs->table_properties_collector_factories = {rocksdb::NewCompactOnDeletionCollectorFactory(1000, 500)};
    } else {
      check(rocksdb::GetColumnFamilyOptionsFromString(config, rocksdb::ColumnFamilyOptions(*jobs), jobs_text, jobs));
    }
  };
}

// A run, then what it left: how long the first seek into the pending rows takes, which are all gone, and the size of
// the table files.
int trial(const Plan& plan, const std::string& db_text, const std::string& jobs_text) {
  Database database;
  std::filesystem::create_directories(plan.path);
  telha::Dropped dropped;
  database.set_trial(trial_of(db_text, jobs_text));
  check(database.open(settings_of(plan.path), false, &dropped));
  const std::vector<Job> jobs = make_jobs(plan.jobs);
  const Phase phase = run_phase(database, plan, jobs, {kEnqueue, kLease, kComplete});
  auto* family = database.family(Family::kJobs);
  check(database.db()->Flush(rocksdb::FlushOptions(), family));
#if ROCKSDB_MAJOR >= 9  // trials are for the bundled one
  check(database.db()->WaitForCompact(rocksdb::WaitForCompactOptions()));
#endif
  const auto started = std::chrono::steady_clock::now();
  const std::unique_ptr<rocksdb::Iterator> row(database.db()->NewIterator(rocksdb::ReadOptions(), family));
  row->Seek(Slice(jobs[0].pending.data(), kStateAt + 1));
  const std::chrono::duration<double, std::micro> seek = std::chrono::steady_clock::now() - started;
  check(row->status());
  uint64_t bytes = 0;
  database.db()->GetIntProperty(family, "rocksdb.total-sst-files-size", &bytes);
  std::printf("{\"wall_s\": %.6f, \"seek_us\": %.1f, \"disk_bytes\": %llu}\n", phase.wall_s, seek.count(),
              static_cast<unsigned long long>(bytes));
  return 0;
}

// `writes` is how many puts and deletes the store has ever had: RocksDB numbers them.
int rows(const std::string& path) {
  Database database;
  telha::Dropped dropped;
  check(database.open(settings_of(path), false, &dropped));
  std::printf("{\"writes\": %llu", static_cast<unsigned long long>(database.db()->GetLatestSequenceNumber()));
  for (size_t i = 0; i < Database::kFamilies; ++i) {
    auto* family = database.family(static_cast<Family>(i));
    const std::unique_ptr<rocksdb::Iterator> row(database.db()->NewIterator(rocksdb::ReadOptions(), family));
    std::printf(", \"%s\": [", family->GetName().c_str());
    const char* comma = "";
    for (row->SeekToFirst(); row->Valid(); row->Next(), comma = ", ") {
      const int state = row->key().size() == kKeyBytes ? row->key()[kStateAt] : -1;
      std::printf("%s[%d, %zu, %zu]", comma, state, row->key().size(), row->value().size());
    }
    check(row->status());
    std::printf("]");
  }
  std::printf("}\n");
  check(database.close());
  return 0;
}

size_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "rows" && argc == 3) return rows(argv[2]);
  if (command == "trial" && argc == 10) {
    Plan plan;
    plan.path = argv[2];
    plan.jobs = number(argv[3]);
    plan.batch = number(argv[4]);
    plan.stride = 331;
    for (size_t i = 0; i < kVerbs; ++i) plan.bytes[i] = number(argv[7 + i]);
    return trial(plan, argv[5], argv[6]);
  }
  if (command != "run" || argc != 11) fail("see the top of floor.cc for what to say");
  Plan plan;
  plan.path = argv[2];
  plan.jobs = number(argv[3]);
  plan.batch = number(argv[4]);
  plan.threads = number(argv[5]);
  plan.sync = std::strcmp(argv[6], "sync") == 0;
  plan.is_cycle = std::strcmp(argv[7], "cycle") == 0;
  for (size_t i = 0; i < kVerbs; ++i) plan.bytes[i] = number(argv[8 + i]);
  return run(plan);
}
