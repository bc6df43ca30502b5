//===- ConstantsTest.cpp - constants that are made when they are asked for -----------===//
#include "Parsing.h"
#include "ajour/Dialect/NN/Shapes.h"

#include <cstring>

using namespace mlir;
using namespace ajour;

namespace {

TEST(LazyConstant, IsMadeEachTime) {
  MLIRContext *context = test::context();
  int calls = 0;
  RankedTensorType type = nn::makeTensor({2, 3}, Float16Type::get(context));
  ElementsAttr attr = nn::makeLazyConstant(type, [&](MutableArrayRef<char> bytes) {
    ++calls;
    ASSERT_EQ(bytes.size(), 12u);
    const uint16_t halves[6] = {0, 0x3c00, 0xc000, 0x0001, 0x7c00, 0x3800};
    std::memcpy(bytes.data(), halves, 12);
  });
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(nn::isLazyConstant(attr));
  EXPECT_EQ(attr.getType(), type);
  std::vector<char> storage;
  EXPECT_EQ(nn::constantBytes(attr, storage).size(), 12u);
  EXPECT_EQ(nn::constantBytes(attr).size(), 12u);
  EXPECT_EQ(calls, 2);
  std::vector<float> numbers = *nn::constantFloats(attr);
  EXPECT_EQ(numbers, (std::vector<float>{0, 1, -2, 0x1p-24f, INFINITY, 0.5f}));
}

TEST(LazyConstant, OthersAreNone) {
  MLIRContext *context = test::context();
  // Blobs of every small size: one of them is as long as what stands for a lazy constant.
  for (int64_t size = 1; size < 200; ++size) {
    std::vector<char> bytes(static_cast<size_t>(size), char(1));
    ElementsAttr attr = nn::makeConstant(nn::makeTensor({size}, IntegerType::get(context, 1)), bytes);
    EXPECT_FALSE(nn::isLazyConstant(attr)) << size;
    EXPECT_EQ(nn::constantBytes(attr), bytes) << size;
  }
}

} // namespace
