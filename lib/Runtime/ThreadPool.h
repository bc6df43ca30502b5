/// Threads that share the work items of one dispatch at a time.
#ifndef AJOUR_LIB_RUNTIME_THREADPOOL_H
#define AJOUR_LIB_RUNTIME_THREADPOOL_H

#include <atomic>
#include <pthread.h>

#include "Support.h"

namespace ajour::runtime {

/// Processes items [begin, end) on the thread number `thread` (0 is the caller).
using WorkFn = void (*)(void *context, uint32_t thread, int64_t begin, int64_t end);

/// Each thread has a range of the items, the same share of every dispatch, so that it finds in its own cache what it
/// wrote there in the dispatch before. It claims chunks of its range, then of the others' until none is left,
/// so that a slow core delays nobody by more than its chunk. A worker that has not woken up when the items
/// run out is not waited for. Not copyable or movable: workers point to it.
class ThreadPool {
public:
  ThreadPool() = default;
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;
  ~ThreadPool() { stop(); }

  /// Starts `threads` - 1 workers. When the system refuses some, goes on with those that it gave.
  [[nodiscard]] bool start(uint32_t threads);
  void stop();

  /// Threads that work, the caller included.
  uint32_t threadCount() const { return 1 + static_cast<uint32_t>(startedWorkers); }

  /// Processes all items of [0, work), which cost as chunkSize says, or stops between chunks once `cancelled` is set. Returns
  /// when nobody works any more. Does not allocate.
  void run(int64_t work, WorkFn fn, void *context, const std::atomic<bool> &cancelled, int64_t cost = 0);

  /// The same on the calling thread.
  void runAlone(int64_t work, WorkFn fn, void *context, const std::atomic<bool> &cancelled, int64_t cost = 0);

  /// Binds worker i to cpus[i mod count]. Returns how many could not be bound.
  uint32_t bind(const uint32_t *cpus, uint32_t count);

  /// Multiply-accumulates of a chunk, if its items are as small: milliseconds on a slow core, and far more than claiming costs.
  static constexpr int64_t chunkCost = 1 << 25;
  /// A cost that is not known and may be high: each item is a chunk.
  static constexpr int64_t unknownCost = INT64_MAX;

  /// Items that a thread claims at once of `work` items of `cost` multiply-accumulates in all (0: few). Slow threads and
  /// cancelled runs end with their chunk, so there are some for each thread and more where all of it takes long.
  static int64_t chunkSize(int64_t work, uint32_t threads, int64_t cost = 0);

private:
  struct Worker {
    ThreadPool *pool;
    uint32_t index;
    pthread_t thread;
  };

  /// What is left of one thread's share of the job.
  struct alignas(64) Range {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  static void *workerMain(void *argument);
  void workerLoop(uint32_t index);
  void setJob(int64_t work, WorkFn fn, void *context, const std::atomic<bool> &cancelled, int64_t chunk, uint32_t sharers);
  bool join(uint32_t lastEpoch, uint32_t &epoch);
  void leave();
  void claimChunks(uint32_t thread);
  void awaitOthers();

  // The job; written by the caller while nobody has joined.
  WorkFn jobFn = nullptr;
  void *jobContext = nullptr;
  const std::atomic<bool> *jobCancelled = nullptr;
  int64_t jobChunk = 1;
  static constexpr uint32_t maxRanges = 256; ///< the most threads of a session
  Range ranges[maxRanges];

  // Bit 0: the job is open for joining; bits 1 to 31: workers that joined; bits 32 to 63: job number.
  alignas(64) std::atomic<uint64_t> gate{0};
  alignas(64) std::atomic<uint32_t> sleepers{0};
  std::atomic<bool> callerSleeps{false};
  std::atomic<bool> stopping{false};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
  pthread_cond_t done = PTHREAD_COND_INITIALIZER;
  Array<Worker> workers;
  size_t startedWorkers = 0;
};

} // namespace ajour::runtime

#endif
