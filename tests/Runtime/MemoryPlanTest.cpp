#include <algorithm>
#include <random>

#include "Fixture.h"
#include "ajour/Runtime/MemoryPlan.h"

using namespace ajour;

/// The least that any plan needs: the most bytes alive at one step.
static uint64_t lowerBound(const std::vector<PlannedBuffer> &buffers, uint32_t steps) {
  uint64_t most = 0;
  for (uint32_t step = 0; step < steps; ++step) {
    uint64_t alive = 0, padded;
    for (const PlannedBuffer &buffer : buffers)
      if (buffer.firstUse <= step && step <= buffer.lastUse && paddedBufferSize(buffer.size, padded))
        alive += padded;
    most = std::max(most, alive);
  }
  return most;
}

TEST(MemoryPlan, ChainTakesTwoBuffers) {
  std::vector<PlannedBuffer> buffers;
  for (uint32_t i = 0; i < 10; ++i)
    buffers.push_back({1000, i, i + 1, 0});
  uint64_t total;
  ASSERT_TRUE(planMemory(buffers.data(), buffers.size(), total));
  EXPECT_EQ(total, 2 * 1088u); // 1000 + slack 64, rounded up to 64
}

TEST(MemoryPlan, RandomPlansAreSound) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<PlannedBuffer> buffers(1 + random() % 60);
    for (PlannedBuffer &buffer : buffers) {
      buffer.firstUse = random() % 40;
      buffer.lastUse = buffer.firstUse + random() % 6;
      buffer.size = random() % 5 == 0 ? 0 : random() % 100000;
    }
    uint64_t total;
    size_t first, second;
    ASSERT_TRUE(planMemory(buffers.data(), buffers.size(), total));
    EXPECT_TRUE(checkMemoryPlan(buffers.data(), buffers.size(), total, first, second)) << first << " " << second;
    EXPECT_GE(total, lowerBound(buffers, 50));
    EXPECT_LE(total, 2 * lowerBound(buffers, 50));
  }
}

TEST(MemoryPlan, CheckFindsFaults) {
  size_t first, second;
  std::vector<PlannedBuffer> buffers = {{100, 0, 1, 0}, {100, 1, 2, 192}};
  EXPECT_TRUE(checkMemoryPlan(buffers.data(), 2, 384, first, second));
  EXPECT_FALSE(checkMemoryPlan(buffers.data(), 2, 383, first, second));
  EXPECT_EQ(first, second);
  buffers[1].offset = 128; // into the slack of the first
  EXPECT_FALSE(checkMemoryPlan(buffers.data(), 2, 1024, first, second));
  EXPECT_NE(first, second);
  buffers[1].firstUse = 2; // no longer alive together
  EXPECT_TRUE(checkMemoryPlan(buffers.data(), 2, 1024, first, second));
  buffers[1].offset = 8;
  EXPECT_FALSE(checkMemoryPlan(buffers.data(), 2, 1024, first, second));
}

TEST(MemoryPlan, RefusesOverflowAndTooMany) {
  std::vector<PlannedBuffer> buffers = {{UINT64_MAX - 10, 0, 1, 0}};
  uint64_t total;
  EXPECT_FALSE(planMemory(buffers.data(), 1, total));
  buffers.assign(maxPlannedBuffers + 1, {1, 0, 0, 0});
  EXPECT_FALSE(planMemory(buffers.data(), buffers.size(), total));
}
