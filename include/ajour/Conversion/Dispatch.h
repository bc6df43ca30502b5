//===- Dispatch.h - from nn operations to compiled dispatches -*- C++ -*-===//
#ifndef AJOUR_CONVERSION_DISPATCH_H
#define AJOUR_CONVERSION_DISPATCH_H

#include "ajour/ABI/CpuFeatures.h"
#include "ajour/Encoding/PackGemv.h"
#include "ajour/Encoding/PackSparse.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace ajour {

/// Groups the nn operations of `main` into dispatches: each becomes a private function of nn operations
/// and an exec.dispatch that calls it; functions with equal bodies are shared. Afterwards main holds
/// constants, exec.dispatch, exec.alias and the return. Arguments of such a function that are constants of
/// main carry the attribute `exec.constant`.
mlir::LogicalResult formDispatches(mlir::ModuleOp module);

/// Lets dispatches that write a few elements of a state (nn::State) change its buffer instead of copying it: the function of such a
/// dispatch gets the attribute `exec.in_place`, the number of the argument that its result takes the place of. Only where nothing
/// else reads the state's old value.
void updateStatesInPlace(mlir::ModuleOp module);

/// The argument of a dispatch's function that its result takes the place of; nothing for others.
std::optional<unsigned> inPlaceArgument(mlir::func::FuncOp callee);

/// What PackSpec::Stored* read besides the weights: parts of nn.dequantize_grouped or nn.dequantize_codebook. How the codes
/// are packed (ajour/Encoding/PackStored.h) follows from it and from the types of the parts.
struct StoredSpec {
  bool isCodes = false;             ///< the weights are codes; else they are floats
  int scales = -1, zeroPoints = -1; ///< argument numbers, -1: none
  int codebook = -1;                ///< the table, an argument number
  int64_t axis = 0, sourceGroup = 1; ///< attributes of the operation
  int64_t bits = 8, group = 0;       ///< as packed; `group` in k
  bool halfScales = false, realZeros = false;
};

/// How the bytes of a constant operand are made from the callee's constant arguments.
struct PackSpec {
  enum Kind {
    GemmF32,     ///< panels of a weight matrix
    Gemm8,       ///< the same for 8-bit weights (made signed)
    DepthwiseF32,
    Depthwise8,
    GemmBias,    ///< i32 [n]: bias with the zero points folded in
    DepthwiseBias,
    WinogradF32, ///< transformed 3x3 filters
    SparseInputs, ///< the three parts of encoding::PackedSparse
    SparseWeights,
    SparseIndex,
    PanelOffsets, ///< the four parts of encoding::PackedPanels
    PanelPicks,
    PanelWeights,
    PanelIndex,
    Gemv,        ///< blocks of 16 rows, as `gemv` says
    StoredInt,      ///< blocks of codes with parameters in groups
    StoredCodebook, ///< blocks of indices, with scales in groups or none
    StoredHalf,     ///< blocks of f16
    Codebook,       ///< f32 [2^stored.bits]: the entries, `weights` being the table
  } kind;
  unsigned weights = 0; ///< argument number
  int bias = -1;        ///< argument number, -1: none
  int64_t k = 0, n = 0; ///< of the product; depthwise: n channels
  bool transposed = true; ///< weights are [n][k] (else [k][n])
  int64_t kh = 0, kw = 0; ///< depthwise window; weights are [n][kh][kw]
  int64_t tile = 0;       ///< Winograd: output rows and columns of a tile
  int64_t nr = 0, kr = 0;
  encoding::GemvFormat gemv;
  int scales = -1, zeroPoints = -1, offsets = -1; ///< argument numbers; of quantised weights
  int scaleCodes = -1, offsetCodes = -1;          ///< where scales and offsets are those of runs of groups (gemv.run)
  int64_t scaleStrideK = 0, scaleStrideN = 0; ///< from group to group and from column to column in those
  int32_t lhsZeroPoint = 0; ///< as the kernel sees the lhs (after its sign is changed)
  llvm::SmallVector<int32_t> rhsZeroPoints; ///< of the signed weights; one or n
  encoding::SparsePlan sparse; ///< of the Sparse kinds
  encoding::PanelPlan panels;  ///< of the Panel kinds
  StoredSpec stored;
};

/// One operand of a compiled dispatch, in the order of its ABI function.
struct OperandSpec {
  enum Kind { Argument, Result, Packed } kind;
  unsigned index = 0; ///< argument or result number of the callee; Packed: position in `packs`
};

/// What lowering one callee for one CPU level made.
struct LoweredDispatch {
  std::string symbol;
  /// The level of the micro-kernel in it, or 0: code for a higher level then differs only in what the
  /// code generator makes of the same loops.
  unsigned kernelLevel = 0;
  /// The micro-kernel of its product, for reports; empty: none, scalar code.
  std::string kernel;
  std::vector<OperandSpec> operands;
  std::vector<PackSpec> packs;
  mlir::AffineExpr work;         ///< number of work items
  mlir::AffineExpr scratchBytes; ///< per thread
  /// What operands are copied into scratch memory as, for reports: "im2col", "band", "rows", "winograd" or empty; and the bytes
  /// that one run writes there.
  std::string copyKind;
  mlir::AffineExpr copyBytes;
};

/// What the user may decide about the code.
struct LoweringOptions {
  /// Whether convolutions may be computed by Winograd's method, which rounds otherwise than their definition.
  bool winograd = true;
};

/// Writes the code of a callee for a level into `destination` (functions with the signature of
/// ajour_dispatch_fn in the scf, arith, math, func and llvm dialects). `symbolCount` is the number of the
/// model's symbolic dimensions.
mlir::FailureOr<LoweredDispatch> lowerDispatch(mlir::func::FuncOp callee, ajour_cpu_level level,
                                               unsigned symbolCount, mlir::ModuleOp destination,
                                               const LoweringOptions &options = {});

/// The bytes of a packed operand. `constants` holds the callee's arguments that are constants (others null).
std::vector<char> packOperand(const PackSpec &spec, llvm::ArrayRef<mlir::ElementsAttr> constants);

/// Multiply-accumulates of a callee, for profiles and reports.
mlir::AffineExpr countMacs(mlir::func::FuncOp callee);

/// The ajour_element_type of the wider factor of those multiply-accumulates; 0 if there are none.
unsigned macElementType(mlir::func::FuncOp callee);

} // namespace ajour

#endif
