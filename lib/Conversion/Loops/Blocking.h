//===- Blocking.h - how a product is cut into work items ---------*- C++ -*-===//
#ifndef AJOUR_LIB_CONVERSION_LOOPS_BLOCKING_H
#define AJOUR_LIB_CONVERSION_LOOPS_BLOCKING_H

#include "ajour/ABI/CpuFeatures.h"
#include "ajour/Dialect/NN/Shapes.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

namespace ajour::loops {

/// Bytes of lhs rows that one work item works on.
inline int64_t blockBudget(ajour_cpu_level level) { return level >= AJOUR_LEVEL_neon ? 128 << 10 : 512 << 10; }
/// Work items that a dispatch should have, so that threads share it evenly; fewer where each item copies.
inline constexpr int64_t wantedItems = 12, wantedCopyingItems = 6;

/// Bytes of weights that stay in the second-level cache while row tiles pass by, and of a row tile that stays in the first.
inline int64_t residentBytes(ajour_cpu_level level) { return blockBudget(level); }
inline constexpr int64_t residentTileBytes = 32 << 10;
/// Work items where each takes some row tiles and all weights, and row tiles from which on it does.
inline constexpr int64_t wantedRowItems = 24, leastRowItems = 24;

/// Bytes of transformed input of a Winograd convolution whose weights come from farther away, and the work items wanted.
inline int64_t winogradBudget(ajour_cpu_level level) { return 2 * blockBudget(level); }
inline constexpr int64_t wantedWinogradItems = 4;

/// Bytes of one row tile from which its depth is taken in stretches.
inline constexpr int64_t deepTileBytes = 72 << 10;

/// Rows up to which weights of few bits are read as they are, block by block, by the matrix-vector kernels; of more rows each
/// panel of them is unpacked first.
inline constexpr int64_t mostStoredRows = 16;
/// The same where the lhs is rounded to 8 bits; more rows are taken in tiles.
inline constexpr int64_t mostRowsOfRounded = 4;

/// How a product is cut into work items: blocks of `tiles` row tiles times groups of panels.
struct Blocking {
  int64_t tiles = 1, groups = 1;
};

/// The cut that moves the fewest bytes among those that give enough items. Weights are read once for each
/// block and rows once for each group, under the arithmetic; copying rows first is time of its own.
inline Blocking chooseBlocking(int64_t rowTiles, int64_t images, int64_t panels, int64_t maxTiles, int64_t rowBytes,
                               int64_t weightBytes, bool copies) {
  constexpr int64_t copyCost = 8;
  int64_t wanted = copies ? wantedCopyingItems : wantedItems;
  Blocking best;
  int64_t bestCost = std::numeric_limits<int64_t>::max(), bestItems = 0;
  for (int64_t tiles = 1; tiles <= std::min(maxTiles, rowTiles); ++tiles) {
    int64_t blocks = llvm::divideCeil(rowTiles, tiles) * images;
    for (int64_t groups = 1; groups <= panels; ++groups) {
      int64_t items = std::min(wanted, blocks * groups);
      int64_t cost = blocks * weightBytes + groups * rowTiles * images * rowBytes * (copies ? copyCost : 1);
      if (items > bestItems || (items == bestItems && cost < bestCost)) {
        best = {tiles, groups};
        bestItems = items;
        bestCost = cost;
      }
      if (items == wanted)
        break;
    }
  }
  return best;
}

/// The value of a size that does not depend on symbols.
inline std::optional<int64_t> known(mlir::AffineExpr expr) { return nn::getConstant(nn::simplifySize(expr)); }

} // namespace ajour::loops

#endif
