//===- Shapes.h - symbolic dimensions and constants of nn ------*- C++ -*-===//
#ifndef AJOUR_DIALECT_NN_SHAPES_H
#define AJOUR_DIALECT_NN_SHAPES_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <functional>
#include <optional>
#include <vector>

namespace ajour::nn {

/// A shape: one expression over the module's symbols for each dimension; constants for static ones.
using Dims = llvm::SmallVector<mlir::AffineExpr, 6>;

/// The dimensions of a tensor type.
Dims getDims(mlir::RankedTensorType type);
inline Dims getDims(mlir::Value value) { return getDims(llvm::cast<mlir::RankedTensorType>(value.getType())); }

/// The tensor type with these dimensions; carries `#nn.dims` when one is not a constant.
mlir::RankedTensorType makeTensor(llvm::ArrayRef<mlir::AffineExpr> dims, mlir::Type elementType);
mlir::RankedTensorType makeTensor(llvm::ArrayRef<int64_t> dims, mlir::Type elementType);

/// The same dimensions with another element type.
mlir::RankedTensorType withElementType(mlir::RankedTensorType type, mlir::Type elementType);

/// A size expression in its simplest form.
mlir::AffineExpr simplifySize(mlir::AffineExpr expr);

/// The value of a constant expression, or nothing.
std::optional<int64_t> getConstant(mlir::AffineExpr expr);

/// A symbol, or a positive multiple of one.
struct SymbolMultiple {
  unsigned position;
  int64_t multiple;
};
std::optional<SymbolMultiple> matchSymbol(mlir::AffineExpr expr);

/// Product of all dimensions.
mlir::AffineExpr numElements(llvm::ArrayRef<mlir::AffineExpr> dims, mlir::MLIRContext *context);

/// What a size is for reports and estimates, which know no values of symbols: each counts as `assumedSize`.
constexpr int64_t assumedSize = 128;
int64_t estimateSize(mlir::AffineExpr expr);
/// Bytes of a tensor under that assumption.
int64_t estimateBytes(mlir::RankedTensorType type);

/// NumPy broadcasting of two shapes; nothing when they do not fit (two dynamic dimensions fit only when
/// their expressions are equal; a dynamic dimension against a static one other than 1 does not fit).
std::optional<Dims> broadcastDims(llvm::ArrayRef<mlir::AffineExpr> lhs, llvm::ArrayRef<mlir::AffineExpr> rhs);

/// Writes a shape as a user reads it: "[1, 3, ?(height), 224]" needs symbol names; without them s0, s1.
std::string toString(llvm::ArrayRef<mlir::AffineExpr> dims, llvm::ArrayRef<std::string> symbolNames = {});
/// A type as a user reads it: "ui8[1, 224, 224, 3]".
std::string toString(mlir::RankedTensorType type, llvm::ArrayRef<std::string> symbolNames = {});
/// An element type's name as in ajour/ABI/ElementTypes.h.
std::string elementName(mlir::Type type);

/// The ajour_element_type of an MLIR element type, 0 when there is none; and back.
uint32_t getElementTypeId(mlir::Type type);
mlir::Type getElementType(uint32_t id, mlir::MLIRContext *context);

/// Bytes of one element in memory (a boolean takes one).
int64_t elementBytes(mlir::Type type);

/// True for ui8 ... ui64 and i1.
bool isUnsigned(mlir::Type type);

/// Lowest and highest value of an integer type of at most 32 bits (i1: 0 and 1).
std::pair<int64_t, int64_t> integerRange(mlir::Type type);

/// A constant attribute from raw little-endian bytes in row-major order (one byte for a boolean). The type
/// is static and the byte count must match it.
mlir::ElementsAttr makeConstant(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes);

/// A constant whose bytes are made each time that they are asked for, and not kept: for weights that are still in a file. `fill` gets as
/// many bytes as the type has; it is called from any thread and must give the same each time. What it holds lives as long as the context.
mlir::ElementsAttr makeLazyConstant(mlir::RankedTensorType type, std::function<void(llvm::MutableArrayRef<char>)> fill);
bool isLazyConstant(mlir::ElementsAttr attr);

/// The raw bytes of a constant made by makeConstant, makeLazyConstant or parsed from text; splats are expanded.
std::vector<char> constantBytes(mlir::ElementsAttr attr);
/// A view of them without a copy when the attribute stores them whole; else fills `storage`.
llvm::ArrayRef<char> constantBytes(mlir::ElementsAttr attr, std::vector<char> &storage);

/// The elements of an integer or boolean constant, widened; nothing for other types.
std::optional<std::vector<int64_t>> constantInts(mlir::ElementsAttr attr);
/// The elements of a floating point constant, widened or narrowed to f32; nothing for other types.
std::optional<std::vector<float>> constantFloats(mlir::ElementsAttr attr);

/// The attribute of the nn.constant that defines a value, or null.
mlir::ElementsAttr getConstantValue(mlir::Value value);

} // namespace ajour::nn

#endif
