#include "ThreadPool.h"

#include <sched.h>

namespace ajour::runtime {

// Spinning bridges the time between two dispatches of a run (microseconds); after that a worker sleeps.
constexpr int spinRounds = 2000;
constexpr int chunksPerThread = 6;

static inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

int64_t ThreadPool::chunkSize(int64_t work, uint32_t threads, int64_t cost) {
  int64_t chunks = static_cast<int64_t>(threads <= 1 ? 1 : threads) * chunksPerThread;
  if (cost / chunkCost > chunks)
    chunks = cost / chunkCost;
  int64_t chunk = work / chunks;
  return chunk < 1 ? 1 : chunk;
}

bool ThreadPool::start(uint32_t threads) {
  if (threads > maxRanges)
    threads = maxRanges;
  if (threads <= 1)
    return true;
  if (!workers.reset(threads - 1))
    return false;
  for (uint32_t i = 0; i < threads - 1; ++i) {
    workers[i].pool = this;
    workers[i].index = i + 1;
    if (pthread_create(&workers[i].thread, nullptr, workerMain, &workers[i]) != 0)
      break;
    ++startedWorkers;
  }
  return true;
}

void ThreadPool::stop() {
  pthread_mutex_lock(&mutex);
  stopping.store(true);
  pthread_cond_broadcast(&wake);
  pthread_mutex_unlock(&mutex);
  for (size_t i = 0; i < startedWorkers; ++i)
    pthread_join(workers[i].thread, nullptr);
  startedWorkers = 0;
}

void *ThreadPool::workerMain(void *argument) {
  auto *worker = static_cast<Worker *>(argument);
  worker->pool->workerLoop(worker->index);
  return nullptr;
}

/// Joins a job newer than `lastEpoch` if one is open.
bool ThreadPool::join(uint32_t lastEpoch, uint32_t &epoch) {
  uint64_t seen = gate.load(std::memory_order_acquire);
  while ((seen & 1) && static_cast<uint32_t>(seen >> 32) != lastEpoch) {
    epoch = static_cast<uint32_t>(seen >> 32);
    if (gate.compare_exchange_weak(seen, seen + 2, std::memory_order_acq_rel, std::memory_order_acquire))
      return true;
  }
  return false;
}

void ThreadPool::leave() {
  uint64_t before = gate.fetch_sub(2);
  bool last = (before & 0xffffffffu) == 2; // closed, and nobody else in it
  if (last && callerSleeps.load()) {
    pthread_mutex_lock(&mutex);
    pthread_cond_signal(&done);
    pthread_mutex_unlock(&mutex);
  }
}

void ThreadPool::workerLoop(uint32_t index) {
  uint32_t lastEpoch = 0;
  while (!stopping.load(std::memory_order_relaxed)) {
    bool joined = false;
    for (int i = 0; i < spinRounds && !joined; ++i) {
      joined = join(lastEpoch, lastEpoch);
      if (!joined)
        relax();
    }
    if (!joined) {
      pthread_mutex_lock(&mutex);
      sleepers.fetch_add(1);
      while (!stopping.load() && !(joined = join(lastEpoch, lastEpoch)))
        pthread_cond_wait(&wake, &mutex);
      sleepers.fetch_sub(1);
      pthread_mutex_unlock(&mutex);
    }
    if (joined) {
      claimChunks(index);
      leave();
    }
  }
}

void ThreadPool::claimChunks(uint32_t thread) {
  uint32_t count = threadCount();
  for (uint32_t i = 0; i < count; ++i) {
    Range &range = ranges[(thread + i) % count];
    while (!jobCancelled->load(std::memory_order_relaxed)) {
      int64_t begin = range.next.fetch_add(jobChunk, std::memory_order_relaxed);
      if (begin >= range.end)
        break;
      int64_t end = range.end - begin < jobChunk ? range.end : begin + jobChunk;
      jobFn(jobContext, thread, begin, end);
    }
  }
}

void ThreadPool::awaitOthers() {
  auto busy = [&] { return (gate.load() & 0xfffffffeu) != 0; };
  for (int i = 0; i < spinRounds && busy(); ++i)
    relax();
  if (!busy())
    return;
  pthread_mutex_lock(&mutex);
  callerSleeps.store(true);
  while (busy())
    pthread_cond_wait(&done, &mutex);
  callerSleeps.store(false);
  pthread_mutex_unlock(&mutex);
}

void ThreadPool::setJob(int64_t work, WorkFn fn, void *context, const std::atomic<bool> &cancelled, int64_t chunk, uint32_t sharers) {
  jobFn = fn;
  jobContext = context;
  jobCancelled = &cancelled;
  jobChunk = chunk;
  int64_t share = work / sharers, rest = work % sharers, start = 0;
  for (uint32_t i = 0, count = threadCount(); i < count; ++i) {
    ranges[i].next.store(start, std::memory_order_relaxed);
    start += i >= sharers ? 0 : share + (i < rest ? 1 : 0);
    ranges[i].end = start;
  }
}

void ThreadPool::runAlone(int64_t work, WorkFn fn, void *context, const std::atomic<bool> &cancelled, int64_t cost) {
  if (work <= 0)
    return;
  setJob(work, fn, context, cancelled, chunkSize(work, 1, cost), 1);
  claimChunks(0);
}

void ThreadPool::run(int64_t work, WorkFn fn, void *context, const std::atomic<bool> &cancelled, int64_t cost) {
  if (work <= 1 || startedWorkers == 0)
    return runAlone(work, fn, context, cancelled, cost);
  uint32_t count = threadCount();
  setJob(work, fn, context, cancelled, chunkSize(work, count, cost), count);
  uint64_t epoch = (gate.load(std::memory_order_relaxed) >> 32) + 1;
  if ((epoch & 0xffffffffu) == 0)
    epoch = 1;
  gate.store(epoch << 32 | 1);
  if (sleepers.load() != 0) {
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&mutex);
  }
  claimChunks(0);
  gate.fetch_and(~uint64_t(1));
  awaitOthers();
}

uint32_t ThreadPool::bind(const uint32_t *cpus, uint32_t count) {
#if defined(__linux__)
  uint32_t failed = 0;
  for (size_t i = 0; i < startedWorkers && count != 0; ++i) {
    uint32_t cpu = cpus[i % count];
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu < CPU_SETSIZE)
      CPU_SET(cpu, &set);
    failed += cpu >= CPU_SETSIZE || pthread_setaffinity_np(workers[i].thread, sizeof(set), &set) != 0;
  }
  return failed;
#else
  return static_cast<uint32_t>(startedWorkers);
#endif
}

} // namespace ajour::runtime
