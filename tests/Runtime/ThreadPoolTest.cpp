// Work sharing, counted in items rather than in time.
#include <atomic>
#include <cstdlib>
#include <sched.h>
#include <vector>

#include "Fixture.h"
#include "Pace.h"
#include "ThreadPool.h"

using namespace ajour::runtime;

namespace {

struct Counts {
  std::vector<std::atomic<int>> perItem;
  std::atomic<int64_t> perThread[8] = {};
  std::atomic<bool> cancelled{false};
  std::atomic<int64_t> others{0};
  int64_t work = 0;
  explicit Counts(size_t items) : perItem(items), work(static_cast<int64_t>(items)) {}
};

void countItems(void *context, uint32_t thread, int64_t begin, int64_t end) {
  Counts &counts = *static_cast<Counts *>(context);
  for (int64_t i = begin; i < end; ++i)
    counts.perItem[static_cast<size_t>(i)].fetch_add(1);
  counts.perThread[thread].fetch_add(end - begin);
}

} // namespace

TEST(ThreadPool, EveryItemOnce) {
  for (uint32_t threads : {1u, 2u, 3u, 8u}) {
    ThreadPool pool;
    ASSERT_TRUE(pool.start(threads));
    EXPECT_EQ(pool.threadCount(), threads);
    for (size_t items : {0, 1, 2, 7, 100, 1001}) {
      Counts counts(items);
      for (int round = 0; round < 20; ++round)
        pool.run(counts.work, countItems, &counts, counts.cancelled);
      for (auto &count : counts.perItem)
        ASSERT_EQ(count.load(), 20);
    }
  }
}

TEST(ThreadPool, AloneIsOnTheCaller) {
  for (uint32_t threads : {1u, 3u}) {
    ThreadPool pool;
    ASSERT_TRUE(pool.start(threads));
    for (size_t items : {0, 1, 7, 1000}) {
      Counts counts(items);
      for (int round = 0; round < 20; ++round)
        pool.runAlone(counts.work, countItems, &counts, counts.cancelled);
      for (auto &count : counts.perItem)
        ASSERT_EQ(count.load(), 20);
      EXPECT_EQ(counts.perThread[0].load(), 20 * counts.work);
    }
  }
}

TEST(Pace, ShortDispatchesRunAlone) {
  Pace pace;
  EXPECT_FALSE(pace.prefersAlone(1)) << "nothing is known";
  pace.learn(16, 8000, false); // as long as waking takes
  EXPECT_TRUE(pace.prefersAlone(16)) << "worth a try";
  EXPECT_FALSE(pace.prefersAlone(160)) << "many items take long";
  pace.learn(16, 2000, true);
  EXPECT_TRUE(pace.prefersAlone(16));
  pace.learn(16, 30000, true); // disturbed
  EXPECT_TRUE(pace.prefersAlone(16));
}

TEST(Pace, LongerOnesRunWhereTheyAreFaster) {
  Pace shared, alone;
  shared.learn(16, 12000, false);
  shared.learn(16, 20000, true);
  EXPECT_FALSE(shared.prefersAlone(16));
  int runs = 0;
  for (; !shared.prefersAlone(16) && runs < 1000; ++runs)
    shared.learn(16, 12000, false);
  EXPECT_GT(runs, 10) << "tried again, but seldom";
  EXPECT_LT(runs, 1000);
  alone.learn(16, 12000, false);
  alone.learn(16, 9000, true);
  EXPECT_TRUE(alone.prefersAlone(16));
}

TEST(ThreadPool, ChunkSizes) {
  EXPECT_EQ(ThreadPool::chunkSize(1, 4), 1);
  EXPECT_EQ(ThreadPool::chunkSize(23, 4), 1);
  EXPECT_EQ(ThreadPool::chunkSize(240, 4), 10);
  EXPECT_EQ(ThreadPool::chunkSize(60, 1), 10);
  // The more they cost the fewer items are a chunk.
  constexpr int64_t cost = ThreadPool::chunkCost;
  EXPECT_EQ(ThreadPool::chunkSize(60, 1, 6 * cost), 10);
  EXPECT_EQ(ThreadPool::chunkSize(60, 1, 30 * cost), 2);
  EXPECT_EQ(ThreadPool::chunkSize(60, 4, 30 * cost), 2);
  EXPECT_EQ(ThreadPool::chunkSize(60, 1, 1000 * cost), 1);
  EXPECT_EQ(ThreadPool::chunkSize(60, 1, ThreadPool::unknownCost), 1);
}

// A worker that hangs in its first chunk until all other chunks are done takes one chunk, not its share.
TEST(ThreadPool, SlowWorkerTakesOneChunk) {
  ThreadPool pool;
  ASSERT_TRUE(pool.start(2));
  constexpr int64_t items = 1200;
  const int64_t chunk = ThreadPool::chunkSize(items, 2);
  for (int round = 0; round < 20; ++round) {
    Counts counts(items);
    auto slow = [](void *context, uint32_t thread, int64_t begin, int64_t end) {
      Counts &counts = *static_cast<Counts *>(context);
      countItems(context, thread, begin, end);
      if (thread == 0)
        counts.others.fetch_add(end - begin);
      // The caller waits until the worker takes part, the worker until all else is done.
      while (thread == 0 ? counts.perThread[1].load() == 0
                         : counts.others.load() < items - ThreadPool::chunkSize(items, 2))
        sched_yield();
    };
    pool.run(counts.work, slow, &counts, counts.cancelled);
    EXPECT_EQ(counts.perThread[1].load(), chunk);
    EXPECT_EQ(counts.perThread[0].load(), items - chunk);
  }
}

TEST(ThreadPool, CancelStopsBetweenChunks) {
  ThreadPool pool;
  ASSERT_TRUE(pool.start(2));
  Counts counts(1200);
  auto stop = [](void *context, uint32_t thread, int64_t begin, int64_t end) {
    countItems(context, thread, begin, end);
    static_cast<Counts *>(context)->cancelled.store(true);
  };
  pool.run(counts.work, stop, &counts, counts.cancelled);
  int64_t done = counts.perThread[0] + counts.perThread[1];
  EXPECT_GE(done, 100);
  EXPECT_LE(done, 200);
  counts.cancelled = false;
  pool.run(counts.work, countItems, &counts, counts.cancelled);
  EXPECT_EQ(counts.perThread[0] + counts.perThread[1], done + 1200);
}

TEST(ThreadPool, AffinityFailureIsCounted) {
  ThreadPool pool;
  ASSERT_TRUE(pool.start(3));
  uint32_t none[] = {100000};
  EXPECT_EQ(pool.bind(none, 1), 2u);
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  uint32_t first = 0;
  while (!CPU_ISSET(first, &allowed))
    ++first;
  EXPECT_EQ(pool.bind(&first, 1), 0u);
}
