//===- Emitter.h - elements of nn values as scalar code ---------*- C++ -*-===//
//
// The heart of code generation for everything that is not a micro-kernel. A tensor is never built: the
// emitter is asked for one element of a value and writes the scalar code that computes it, following the
// operations backwards to buffers. Data movement (transposes, slices, broadcasts, ...) thereby becomes
// index arithmetic of its consumer.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_LIB_CONVERSION_LOOPS_EMITTER_H
#define AJOUR_LIB_CONVERSION_LOOPS_EMITTER_H

#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace ajour::loops {

using Index = llvm::SmallVector<mlir::Value, 6>;

class Emitter {
public:
  /// Writes at `builder`'s insertion point in a function with the block `entry`, constant tables into `module`.
  /// `symbols` holds one i64 value for each symbolic dimension.
  Emitter(mlir::OpBuilder &builder, mlir::Location loc, mlir::ModuleOp module, mlir::Block *entry,
          std::vector<mlir::Value> symbols)
      : b(builder), loc(loc), module(module), entry(entry), symbols(std::move(symbols)) {
    scopes.emplace_back();
  }

  mlir::OpBuilder &b;
  mlir::Location loc;

  //===--- scalars -------------------------------------------------------===//

  mlir::Value i64(int64_t value);
  mlir::Value i32(int32_t value);
  /// A constant of any scalar type from a double (integers: converted).
  mlir::Value constant(mlir::Type scalarType, double value);
  mlir::Value integer(mlir::Type scalarType, int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value c) { return b.createOrFold<mlir::arith::AddIOp>(loc, a, c); }
  mlir::Value sub(mlir::Value a, mlir::Value c) { return b.createOrFold<mlir::arith::SubIOp>(loc, a, c); }
  mlir::Value mul(mlir::Value a, mlir::Value c) { return b.createOrFold<mlir::arith::MulIOp>(loc, a, c); }
  /// Quotient and remainder of values that are not negative.
  mlir::Value div(mlir::Value a, mlir::Value c) { return b.createOrFold<mlir::arith::DivUIOp>(loc, a, c); }
  mlir::Value rem(mlir::Value a, mlir::Value c) { return b.createOrFold<mlir::arith::RemUIOp>(loc, a, c); }
  mlir::Value min(mlir::Value a, mlir::Value c) { return b.createOrFold<mlir::arith::MinSIOp>(loc, a, c); }
  mlir::Value max(mlir::Value a, mlir::Value c) { return b.createOrFold<mlir::arith::MaxSIOp>(loc, a, c); }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value c) {
    return b.createOrFold<mlir::arith::CmpIOp>(loc, predicate, a, c);
  }
  /// 0 <= a < n.
  mlir::Value inRange(mlir::Value a, mlir::Value n) { return compare(mlir::arith::CmpIPredicate::ult, a, n); }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value c) {
    return b.createOrFold<mlir::arith::SelectOp>(loc, condition, a, c);
  }
  mlir::Value logicalAnd(mlir::Value a, mlir::Value c) { return b.createOrFold<mlir::arith::AndIOp>(loc, a, c); }

  /// The value of a size expression.
  mlir::Value size(mlir::AffineExpr expr);
  mlir::Value size(mlir::Value tensor, unsigned dim) { return size(nn::getDims(tensor)[dim]); }
  /// Product of sizes.
  mlir::Value product(llvm::ArrayRef<mlir::AffineExpr> dims);

  //===--- types ----------------------------------------------------------===//

  /// The type of an element as a scalar value: signless; i1 for booleans.
  mlir::Type scalarType(mlir::Type elementType);
  static mlir::Type elementType(mlir::Value tensor) {
    return llvm::cast<mlir::RankedTensorType>(tensor.getType()).getElementType();
  }
  mlir::Value toFloat(mlir::Value scalar, mlir::Type fromElement); ///< to f32 (f64 stays)
  mlir::Value convert(mlir::Value scalar, mlir::Type fromElement, mlir::Type toElement); ///< as nn.cast

  //===--- control --------------------------------------------------------===//

  /// for (i = from; i < to; i += step) body(i)
  void loop(mlir::Value from, mlir::Value to, llvm::function_ref<void(mlir::Value)> body, int64_t step = 1);
  /// A loop that carries values; the body returns their next ones.
  Index reduce(mlir::Value from, mlir::Value to, llvm::ArrayRef<mlir::Value> initial,
               llvm::function_ref<Index(mlir::Value, llvm::ArrayRef<mlir::Value>)> body, int64_t step = 1);
  mlir::Value ifElse(mlir::Value condition, llvm::function_ref<mlir::Value()> then,
                     llvm::function_ref<mlir::Value()> otherwise);
  void ifThenElse(mlir::Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise);

  /// Loops over the index space `dims`, first dimension outermost.
  void nest(llvm::ArrayRef<mlir::AffineExpr> dims, llvm::function_ref<void(llvm::ArrayRef<mlir::Value>)> body);

  //===--- memory ---------------------------------------------------------===//

  mlir::Value pointer(mlir::Value base, mlir::Value offsetElements, mlir::Type elementType);
  mlir::Value loadAt(mlir::Value base, mlir::Value offsetElements, mlir::Type elementType);
  void storeAt(mlir::Value scalar, mlir::Value base, mlir::Value offsetElements, mlir::Type elementType);
  /// Asks for the cache line of an address that will be read.
  void prefetch(mlir::Value pointer, int level = 1);
  /// Memory of the function's frame for `count` elements, 64-byte aligned, allocated at its entry.
  mlir::Value frameArray(mlir::Type elementType, int64_t count);
  /// A constant table in the module.
  mlir::Value table(llvm::ArrayRef<int32_t> values);
  mlir::Value table(llvm::ArrayRef<float> values);

  /// Row-major position of an index in a shape, and back. What one has put together the other takes apart without
  /// arithmetic, in any grouping whose boundaries fit.
  mlir::Value linearize(llvm::ArrayRef<mlir::Value> index, llvm::ArrayRef<mlir::AffineExpr> dims);
  Index delinearize(mlir::Value linear, llvm::ArrayRef<mlir::AffineExpr> dims);
  /// The index of the same element in another shape of as many.
  Index reshapeIndex(llvm::ArrayRef<mlir::Value> index, llvm::ArrayRef<mlir::AffineExpr> from,
                     llvm::ArrayRef<mlir::AffineExpr> to);
  /// Says that `linear` is the position of `index` in `dims`.
  void noteJoin(mlir::Value linear, llvm::ArrayRef<mlir::Value> index, llvm::ArrayRef<mlir::AffineExpr> dims);

  //===--- elements -------------------------------------------------------===//

  /// Says where a value lies in memory.
  void bindBuffer(mlir::Value tensor, mlir::Value pointer) { buffers[tensor] = pointer; }
  mlir::Value buffer(mlir::Value tensor) { return buffers.lookup(tensor); }
  /// Says how to make an element of a value, instead of following its operation.
  using ElementFn = std::function<mlir::Value(llvm::ArrayRef<mlir::Value>)>;
  void bindElement(mlir::Value tensor, ElementFn fn) { bound[tensor] = std::move(fn); }

  /// The code for one element.
  mlir::Value element(mlir::Value tensor, llvm::ArrayRef<mlir::Value> index);

  /// Whether `element` can follow this operation (others need loops of their own).
  static bool isPointwise(mlir::Operation *op);
  /// Whether it only moves elements.
  static bool isMovement(mlir::Operation *op);

  /// The index that a gather with constant indices reads for `at`; with `inverse`, which its indices must be a
  /// permutation for, the one that reads `at`.
  mlir::Value gatherIndex(nn::GatherOp op, mlir::Value at, bool inverse);
  /// Whether a gather with constant indices takes every row once.
  static bool isPermutation(nn::GatherOp op);

  /// An index operand brought into [0, size): negative ones count from the end, then clamped.
  mlir::Value wrapIndex(mlir::Value scalar, mlir::Type elementType, mlir::Value size);

  /// acc = combine(acc, x) of a reduction kind; its neutral element.
  mlir::Value combine(nn::ReduceKind kind, mlir::Value acc, mlir::Value x, mlir::Type elementType);
  mlir::Value neutral(nn::ReduceKind kind, mlir::Type elementType);
  mlir::Value binary(nn::BinaryKind kind, mlir::Value lhs, mlir::Value rhs, mlir::Type elementType);
  mlir::Value unary(nn::UnaryKind kind, mlir::Value x, mlir::Type elementType, float alpha, float beta);
  mlir::Value compareElements(nn::CompareKind kind, mlir::Value lhs, mlir::Value rhs, mlir::Type elementType);

private:
  mlir::Value compute(mlir::Operation *op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value computeElementwise(mlir::Operation *op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value computeMovement(mlir::Operation *op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value computePad(nn::PadOp op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value computeConcat(nn::ConcatOp op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value computeResize(nn::ResizeOp op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value computeGridSample(nn::GridSampleOp op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value computeQuantize(nn::QuantizeOp op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value computeDequantize(nn::DequantizeOp op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value computeRequantize(nn::RequantizeOp op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value computeGrouped(nn::DequantizeGroupedOp op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value computeCodebook(nn::DequantizeCodebookOp op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value groupParameter(mlir::Value parameters, llvm::ArrayRef<mlir::Value> index, int64_t axis, int64_t group);
  mlir::Value interpolate(nn::LookupOp op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value resizeCoordinate(nn::ResizeOp op, unsigned dim, mlir::Value index);
  mlir::Value floatUnary(nn::UnaryKind kind, mlir::Value x, float alpha, float beta);
  mlir::Value broadcastElement(mlir::Value operand, llvm::ArrayRef<mlir::Value> index);
  mlir::Value saturate(mlir::Value real, mlir::Type elementType, int64_t low, int64_t high);
  mlir::Value perChannel(llvm::ArrayRef<float> values, mlir::Value channel);
  mlir::Value perChannel(llvm::ArrayRef<int32_t> values, mlir::Value channel);
  mlir::Value global(mlir::Type elementType, mlir::DenseElementsAttr values);

  /// An index that delinearize made, and what from.
  struct Split {
    Index index;
    nn::Dims dims;
    mlir::Value linear;
  };
  /// The parts of a position.
  struct Join {
    Index index;
    nn::Dims dims;
  };
  std::optional<Index> regroup(const Join &join, llvm::ArrayRef<mlir::AffineExpr> dims);
  struct Scope {
    std::map<std::pair<void *, std::vector<void *>>, mlir::Value> elements;
  };
  template <typename Fn> auto scoped(Fn &&fn) {
    scopes.emplace_back();
    struct Pop {
      std::vector<Scope> &scopes;
      ~Pop() { scopes.pop_back(); }
    } pop{scopes};
    return fn();
  }

  mlir::ModuleOp module;
  mlir::Block *entry; ///< where constants and frame arrays stand: loops are built before they are attached
  std::vector<mlir::Value> symbols;
  std::vector<Scope> scopes;
  std::vector<Split> splits;
  llvm::DenseMap<mlir::Value, Join> joins;
  std::map<std::pair<const void *, int64_t>, mlir::Value> integers;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
  llvm::DenseMap<mlir::Value, ElementFn> bound;
};

} // namespace ajour::loops

#endif
