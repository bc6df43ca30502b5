//===- Selection.h - which kernel serves a weight ---------------*- C++ -*-===//
//
// Dense or sparse, for each layer: never a sparse kernel that may be slower than the dense one.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_CONVERSION_SELECTION_H
#define AJOUR_CONVERSION_SELECTION_H

#include "ajour/ABI/CpuFeatures.h"
#include "ajour/Encoding/Encoding.h"
#include "ajour/Kernels/Kernels.h"

#include <array>
#include <optional>
#include <string>

namespace ajour {

/// A weight of a product and how it is used.
struct WeightUse {
  encoding::WeightShape shape;
  encoding::Encoding encoding;
  /// Shares of the dense products that kernels compute whose 1, 2, 4, 8, 16 neighbouring rows skip the same columns.
  std::array<double, 5> densities = {1, 1, 1, 1, 1};
  /// Element types of the product as it is computed (AJOUR_F32, AJOUR_I8, AJOUR_U8, ...).
  uint32_t lhs = AJOUR_F32, rhs = AJOUR_F32;
  bool isConv = false;
  bool isDepthwise = false; ///< or grouped: one matrix for each group
  int64_t stride = 1;       ///< the larger of a convolution's
  bool isDilated = false;

  double density() const { return densities[0]; }
  /// The density of groups of `rows` rows (1, 2, 4, 8 or 16).
  double groupDensity(int64_t rows) const;
};

/// Append only: the cost table names them.
enum class KernelFamily {
  Dense,       ///< gemm_*: what is stored is as large as a dense weight
  GemvC4n,     ///< gemv_* over activations put together by a code for each 4 columns; 4, 8 or 16 rows share it
  GemvColumns, ///< gemv_* over activations put together by a mask; 4, 8 or 16 rows share it
  Spmm,        ///< spmm_*: pixels in vectors, 1, 2, 4 or 8 rows share what they skip
  Spconv,      ///< spconv_*: the same for windows
  GemmSparse,  ///< gemm_sparse*: output columns in lanes, 1, 2 or 4 of which keep the same inputs
};

std::string_view name(KernelFamily family);

/// Whether its kernels have pixels in vectors, and so want channel-major activations.
inline bool isOverPixels(KernelFamily family) { return family == KernelFamily::Spmm || family == KernelFamily::Spconv; }

struct KernelChoice {
  KernelFamily family = KernelFamily::Dense;
  /// Neighbouring rows that share what the kernel skips.
  int64_t group = 1;
  /// Expected time of the dense kernel / expected time of this one.
  double gain = 1;
  /// Why not a sparse kernel, or why this one: for reports.
  std::string reason;
};

/// The kernel that serves a product of `rows` rows (tokens, output pixels; -1: not known) for a level. A family other than Dense is
/// chosen only if it is expected to be at least 3 % faster, after what the cost table's measurements scatter has been taken off.
/// Without `overPixels` the activations are channels-last, and families that have pixels in vectors are left out.
KernelChoice selectKernel(const WeightUse &use, int64_t rows, ajour_cpu_level level, bool overPixels = true);

/// The kernel of the family GemmSparse for 1, 2 or 4 columns that keep the same inputs; null: there is none that competes with the
/// level's dense one.
const ajour_kernel_row *findSparseGemm(int64_t group, bool isFloat, ajour_cpu_level level);

/// Expected time of a product, in nanoseconds on one thread of the CPU that the table was measured on; nullopt: the family cannot compute it
/// or has no row for the level. Dense always has one. `rows` >= 1.
std::optional<double> estimateCost(const WeightUse &use, KernelFamily family, int64_t group, int64_t rows, ajour_cpu_level level);

} // namespace ajour

#endif
