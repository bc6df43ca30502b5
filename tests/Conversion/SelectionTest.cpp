//===- SelectionTest.cpp - which kernel serves a weight ------------------------------===//
#include "ajour/Conversion/Selection.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace ajour;

namespace {

constexpr ajour_cpu_level levels[] = {
#define AJOUR_ROW(id, name, arch, features, cpu, attrs) AJOUR_LEVEL_##name,
    AJOUR_CPU_LEVELS(AJOUR_ROW)
#undef AJOUR_ROW
};

/// Zeros at random: groups of r rows skip density^r columns.
WeightUse unstructured(encoding::WeightShape shape, double density) {
  WeightUse use;
  use.shape = shape;
  use.encoding.structure.kind = encoding::StructureKind::Block;
  use.encoding.structure.rows = 1;
  for (size_t i = 0; i < use.densities.size(); ++i)
    use.densities[i] = 1 - std::pow(1 - density, double(1 << i));
  use.isConv = true;
  return use;
}

/// Groups of `rows` rows skip the same.
WeightUse blocks(encoding::WeightShape shape, double density, int64_t rows) {
  WeightUse use = unstructured(shape, density);
  use.encoding.structure.rows = rows;
  for (size_t i = 0; i < use.densities.size(); ++i)
    use.densities[i] = (1 << i) <= rows ? density : 1 - std::pow(1 - density, double(1 << i) / double(rows));
  return use;
}

WeightUse c4n(int64_t pruned, int64_t share) {
  WeightUse use = blocks({4096, 4096}, double(4 - pruned) / 4, share);
  use.encoding.structure = {};
  use.encoding.structure.kind = encoding::StructureKind::C4n;
  use.encoding.structure.pruned = {pruned};
  use.encoding.structure.share = share;
  use.isConv = false;
  return use;
}

TEST(Selection, NoSparseKernelThatMayBeSlower) {
  for (ajour_cpu_level level : levels)
    for (double density : {1.0, 0.9, 0.8, 0.7, 0.5, 0.3, 0.1, 0.05, 0.0})
      for (int64_t rows : {-1, 1, 4, 5, 49, 3136})
        for (WeightUse use : {unstructured({256, 256}, density), unstructured({64, 576, 3, 3}, density),
                              blocks({256, 256}, density, 4), blocks({2048, 2048}, density, 16)}) {
          use.isConv = rows > 1;
          const KernelChoice choice = selectKernel(use, rows, level);
          EXPECT_FALSE(choice.reason.empty());
          if (choice.family == KernelFamily::Dense) {
            EXPECT_EQ(choice.gain, 1);
            continue;
          }
          EXPECT_GE(choice.gain, 1.03);
          // No kernel gains more than the products that it leaves out.
          EXPECT_LE(choice.gain, 1 / std::max(use.groupDensity(choice.group), 1e-9));
          const auto cost = estimateCost(use, choice.family, choice.group, rows, level),
                     dense = estimateCost(use, KernelFamily::Dense, 1, rows, level);
          ASSERT_TRUE(cost && dense);
          EXPECT_LE(*cost * 1.03, *dense);
        }
}

TEST(Selection, OneTokenTakesMatrixVectorKernels) {
  const KernelChoice c4 = selectKernel(c4n(2, 8), 1, AJOUR_LEVEL_avx512vnni);
  EXPECT_EQ(c4.family, KernelFamily::GemvC4n);
  EXPECT_EQ(c4.group, 8);
  WeightUse use = blocks({2048, 2048}, 0.1, 16);
  use.isConv = false;
  const KernelChoice block = selectKernel(use, 1, AJOUR_LEVEL_avx2);
  EXPECT_EQ(block.family, KernelFamily::GemvColumns);
  EXPECT_EQ(block.group, 16);
  EXPECT_GT(block.gain, 3);
}

TEST(Selection, PixelsTakeKernelsOverPixels) {
  const KernelChoice pointwise = selectKernel(blocks({256, 256}, 0.2, 4), 196, AJOUR_LEVEL_avx512);
  EXPECT_EQ(pointwise.family, KernelFamily::Spmm);
  EXPECT_EQ(pointwise.group, 4);
  WeightUse strided = unstructured({256, 2304, 3, 3}, 0.2);
  strided.stride = 2;
  EXPECT_EQ(selectKernel(strided, 196, AJOUR_LEVEL_avx512).family, KernelFamily::Spconv);
}

TEST(Selection, ChannelsLastTakesKernelsWithColumnsInLanes) {
  WeightUse use = blocks({256, 256}, 0.2, 4);
  const KernelChoice f32 = selectKernel(use, 196, AJOUR_LEVEL_avx512, /*overPixels=*/false);
  EXPECT_EQ(f32.family, KernelFamily::GemmSparse);
  EXPECT_EQ(f32.group, 4);
  use.lhs = AJOUR_U8, use.rhs = AJOUR_I8;
  for (bool isConv : {true, false}) {
    use.isConv = isConv;
    const KernelChoice int8 = selectKernel(use, 196, AJOUR_LEVEL_avx512vbmi);
    EXPECT_EQ(int8.family, KernelFamily::GemmSparse);
    EXPECT_GT(int8.gain, 1.5);
  }
  // The dense kernel of a level may be far ahead of the sparse one that it could use.
  EXPECT_EQ(selectKernel(use, 196, AJOUR_LEVEL_avx512vnni).family, KernelFamily::Dense);
  EXPECT_EQ(findSparseGemm(4, /*isFloat=*/false, AJOUR_LEVEL_i8mm), nullptr);
  EXPECT_NE(findSparseGemm(4, /*isFloat=*/false, AJOUR_LEVEL_dotprod), nullptr);
  // Columns that a panel has and the weight has not are computed all the same.
  WeightUse narrow = blocks({8, 256}, 0.2, 4);
  EXPECT_LT(selectKernel(narrow, 196, AJOUR_LEVEL_avx512, /*overPixels=*/false).gain, f32.gain);
}

TEST(Selection, DenseConvolutionsMayTakeWinograd) {
  // 4 of 9 positions: more than Winograd's method leaves. It is for stride 1 without dilation.
  WeightUse use = unstructured({256, 2304, 3, 3}, 4.0 / 9);
  EXPECT_EQ(selectKernel(use, 3136, AJOUR_LEVEL_avx512).family, KernelFamily::Dense);
  const double direct = [&] {
    WeightUse strided = use;
    strided.stride = 2;
    return *estimateCost(strided, KernelFamily::Dense, 1, 3136, AJOUR_LEVEL_avx512);
  }();
  const double winograd = *estimateCost(use, KernelFamily::Dense, 1, 3136, AJOUR_LEVEL_avx512);
  EXPECT_LT(winograd, 0.5 * direct);
  EXPECT_GT(winograd, 0.25 * direct);
}

TEST(Selection, ReasonsAreSaid) {
  auto reason = [](WeightUse use, int64_t rows) { return selectKernel(use, rows, AJOUR_LEVEL_avx512).reason; };
  EXPECT_EQ(reason(unstructured({256, 256}, 0.95), 196), "5 % zeros");
  WeightUse depthwise = unstructured({64, 9, 3, 3}, 0.5);
  depthwise.isDepthwise = true;
  EXPECT_EQ(reason(depthwise, 196), "no sparse kernel: grouped convolutions have no sparse kernel");
  EXPECT_EQ(reason(blocks({256, 256}, 0.2, 4), 196), "computes 20 % of the products");
  EXPECT_NE(reason(unstructured({256, 256}, 0.8), 196).find("of the dense time"), std::string::npos);
  EXPECT_EQ(reason(unstructured({256, 2304, 3, 3}, 0.2), 8), "no sparse kernel: fewer than 16 rows");
  WeightUse matrix = blocks({256, 256}, 0.2, 4);
  matrix.isConv = false;
  EXPECT_EQ(reason(matrix, 8), "no sparse kernel: fewer than 16 rows");
}

} // namespace
