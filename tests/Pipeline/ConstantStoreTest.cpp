//===- ConstantStoreTest.cpp - constants of artifacts while they are made ------------===//
#include "Pipeline/ConstantStore.h"

#include <gtest/gtest.h>

using namespace ajour;

namespace {

std::vector<char> numbered(size_t size, unsigned start) {
  std::vector<char> bytes(size);
  for (size_t i = 0; i < size; ++i)
    bytes[i] = char((start + i * 7) % 251);
  return bytes;
}

TEST(ConstantStore, GivesBackWhatIsInMemoryAndInTheFile) {
  ConstantStore store(testing::TempDir());
  // The second does not fit into memory beside the first; the third is small but comes when memory is full.
  size_t sizes[] = {50u << 20, 20u << 20, 33, 14u << 20, 100};
  std::vector<char> expected;
  for (unsigned i = 0; i < 5; ++i) {
    std::vector<char> bytes = numbered(sizes[i], i);
    uint64_t offset = store.append(bytes);
    EXPECT_EQ(offset % 64, 0u);
    EXPECT_GE(offset, expected.size());
    expected.resize(offset, 0);
    expected.insert(expected.end(), bytes.begin(), bytes.end());
  }
  ASSERT_EQ(store.size(), expected.size());
  std::vector<char> got(expected.size(), 'x');
  for (size_t at = 0; at < got.size(); at += 3333333) {
    size_t count = std::min<size_t>(3333333, got.size() - at);
    ASSERT_TRUE(store.read(at, got.data() + at, count));
  }
  EXPECT_TRUE(got == expected);
}

TEST(ConstantStore, NoFileIsNoConstants) {
  ConstantStore store(testing::TempDir() + "/no/such/place");
  store.append(numbered(10, 0));
  char byte;
  EXPECT_TRUE(store.read(0, &byte, 1));
  store.append(numbered(65u << 20, 1));
  EXPECT_FALSE(store.read(0, &byte, 1));
}

} // namespace
