//===- Node.h - one node being imported ------------------------*- C++ -*-===//
//
// What a handler of an operator sees: the node's operands, attributes and version, and functions that make nn
// operations. A handler that cannot go on throws Refused after saying why; the graph importer catches it, marks
// the node's outputs as missing and goes on, so that one run lists every problem.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_LIB_IMPORT_ONNX_NODE_H
#define AJOUR_LIB_IMPORT_ONNX_NODE_H

#include "ajour/Import/OnnxFile.h"

#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "llvm/ADT/StringMap.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ajour::onnx_import {

using mlir::AffineExpr;
using mlir::ArrayRef;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::StringRef;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;
using nn::Dims;

using Ints = std::vector<int64_t>;

/// Thrown by a handler after it has said what is wrong.
struct Refused {};

/// What a name stands for. Shape arithmetic on symbolic dimensions is kept as expressions and becomes a
/// tensor only where one is needed.
struct Entry {
  Value value;                      ///< null: see below
  std::optional<Dims> exprs;        ///< the elements of a small integer tensor as expressions
  bool isScalar = false;            ///< rank of `exprs`: 0 or 1
  Type exprElement;                 ///< element type of `exprs`
  int32_t onnxType = 0;             ///< type in the file; 0: that of the value
  bool poisoned = false;            ///< its node was refused: users say nothing more
  const ::onnx::TensorProto *tensor = nullptr; ///< an initializer that nobody has used yet
};

class Importer;
struct Scope;

/// A node of the graph together with what is known about its surroundings.
class Node {
public:
  Node(Importer &importer, Scope &scope, const ::onnx::NodeProto &proto, mlir::Location loc, int64_t opset)
      : importer(importer), scope(scope), proto(proto), loc(loc), opset(opset) {}

  Importer &importer;
  Scope &scope;
  const ::onnx::NodeProto &proto;
  mlir::Location loc;
  int64_t opset; ///< version of the node's domain

  mlir::MLIRContext *context() const;
  StringRef type() const { return proto.op_type(); }

  /// Reports at this node and throws.
  [[noreturn]] void refuse(const llvm::Twine &message);

  // Operands.
  size_t numInputs() const { return proto.input_size(); }
  bool has(size_t i) const { return i < numInputs() && !proto.input(int(i)).empty(); }
  Value in(size_t i);                ///< refuses when absent
  Value inOrNull(size_t i) { return has(i) ? in(i) : Value(); }
  Entry &entry(size_t i);
  /// "input 'NAME'" for messages.
  std::string inputName(size_t i) const;
  /// The elements as expressions when they are known at compile time or symbolic.
  std::optional<Dims> exprsOrNone(size_t i);
  Dims exprs(size_t i, const char *what);
  /// Constant integers; refuses, with the remedy, when they are not known at compile time.
  Ints ints(size_t i, const char *what);
  int64_t oneInt(size_t i, const char *what);
  std::vector<float> floats(size_t i, const char *what);
  /// Refuses because input i is needed at compile time.
  [[noreturn]] void refuseRuntime(size_t i, const char *what);
  bool isConstant(size_t i) { return has(i) && nn::getConstantValue(in(i)); }
  int32_t onnxType(size_t i);

  // Attributes; refuse when the type is not the expected one.
  bool hasAttr(StringRef name) const { return findAttr(name) != nullptr; }
  const ::onnx::AttributeProto *findAttr(StringRef name) const;
  int64_t attrInt(StringRef name, int64_t otherwise);
  int64_t attrInt(StringRef name); ///< refuses when absent
  float attrFloat(StringRef name, float otherwise);
  std::string attrString(StringRef name, StringRef otherwise);
  Ints attrInts(StringRef name, Ints otherwise = {});
  std::vector<float> attrFloats(StringRef name, std::vector<float> otherwise = {});
  Value attrTensor(StringRef name); ///< null when absent

  // Results.
  size_t numOutputs() const { return proto.output_size(); }
  /// Whether the output has a name, that is, may be used.
  bool wants(size_t i) const { return i < numOutputs() && !proto.output(int(i)).empty(); }
  void set(size_t i, Value value, int32_t onnxType = 0);
  void setExprs(size_t i, Dims exprs, bool isScalar, Type element);

  // nn operations. Each is verified, folded when its operands are constants, and refuses on failure.
  template <typename Op> SmallVector<Value> make(ValueRange operands, typename Op::Properties properties,
                                                 mlir::TypeRange types = {});
  template <typename Op> Value make1(ValueRange operands, typename Op::Properties properties,
                                     mlir::TypeRange types = {}) {
    return make<Op>(operands, std::move(properties), types)[0];
  }

  Value constant(RankedTensorType type, ArrayRef<char> bytes);
  Value constantInts(ArrayRef<int64_t> values, Type element); ///< rank 1
  Value constantFloats(ArrayRef<float> values, Type element); ///< rank 1
  Value scalar(double value, Type element);                   ///< rank 0, converted to the element type
  Value like(double value, Value other) { return scalar(value, elementOf(other)); }

  Value unary(nn::UnaryKind kind, Value x, float alpha = 0, float beta = 0);
  Value binary(nn::BinaryKind kind, Value lhs, Value rhs);
  Value add(Value a, Value b) { return binary(nn::BinaryKind::add, a, b); }
  Value sub(Value a, Value b) { return binary(nn::BinaryKind::sub, a, b); }
  Value mul(Value a, Value b) { return binary(nn::BinaryKind::mul, a, b); }
  Value div(Value a, Value b) { return binary(nn::BinaryKind::div, a, b); }
  Value compare(nn::CompareKind kind, Value lhs, Value rhs);
  Value select(Value condition, Value lhs, Value rhs);
  Value cast(Value x, Type element);
  Value clamp(Value x, double low, double high);
  Value reshape(Value x, ArrayRef<AffineExpr> dims);
  Value reshape(Value x, ArrayRef<int64_t> dims);
  Value broadcast(Value x, ArrayRef<AffineExpr> dims);
  Value transpose(Value x, ArrayRef<int64_t> perm);
  Value slice(Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps, ArrayRef<AffineExpr> dims);
  Value sliceAxis(Value x, int64_t axis, int64_t start, AffineExpr size);
  Value concat(ValueRange values, int64_t axis);
  Value pad(Value x, ArrayRef<int64_t> low, ArrayRef<int64_t> high, nn::PadMode mode = nn::PadMode::constant,
            Value value = {});
  Value gather(Value data, Value indices, int64_t axis, int64_t batchDims = 0);
  Value reduce(nn::ReduceKind kind, Value x, ArrayRef<int64_t> axes, bool keepDims);
  Value argReduce(nn::ArgKind kind, Value x, int64_t axis, bool keepDims, bool last);
  Value matmul(Value lhs, Value rhs, Value bias = {}, bool transposeLhs = false, bool transposeRhs = false);
  Value iota(ArrayRef<AffineExpr> dims, int64_t axis, Type element);

  // Types.
  static RankedTensorType typeOf(Value v) { return llvm::cast<RankedTensorType>(v.getType()); }
  static Type elementOf(Value v) { return typeOf(v).getElementType(); }
  static int64_t rankOf(Value v) { return typeOf(v).getRank(); }
  static Dims dimsOf(Value v) { return nn::getDims(v); }
  static bool isFloat(Value v) { return llvm::isa<mlir::FloatType>(elementOf(v)); }
  AffineExpr dim(int64_t size) const { return mlir::getAffineConstantExpr(size, context()); }
  Dims dimsFrom(ArrayRef<int64_t> sizes) const;
  AffineExpr product(ArrayRef<AffineExpr> dims) const { return nn::numElements(dims, context()); }
  /// As the user reads it, with the names of symbols.
  std::string text(RankedTensorType type) const;
  std::string text(Value v) const { return text(typeOf(v)); }
  std::string text(ArrayRef<AffineExpr> dims) const;
  /// The constant sizes of dimensions [from, to); refuses when one is symbolic.
  Ints staticDims(Value v, int64_t from, int64_t to, const char *what);
  /// An axis counted from the end when negative; refuses outside [0, rank).
  int64_t axis(int64_t value, int64_t rank);
  Ints axes(const Ints &values, int64_t rank); ///< normalised, ascending, distinct
  mlir::DenseI64ArrayAttr i64s(ArrayRef<int64_t> values) const { return builder().getDenseI64ArrayAttr(values); }
  mlir::IntegerAttr i64(int64_t value) const { return builder().getI64IntegerAttr(value); }
  mlir::Builder builder() const { return mlir::Builder(context()); }
  Type i1() const { return mlir::IntegerType::get(context(), 1); }
  Type i32() const { return mlir::IntegerType::get(context(), 32); }
  Type i64Type() const { return mlir::IntegerType::get(context(), 64); }
  Type f32() const { return mlir::Float32Type::get(context()); }

private:
  SmallVector<Value> finish(mlir::Operation *op);
  mlir::OpBuilder &opBuilder() const;
};

template <typename Op>
SmallVector<Value> Node::make(ValueRange operands, typename Op::Properties properties, mlir::TypeRange types) {
  mlir::OperationState state(loc, Op::getOperationName());
  Op::populateDefaultProperties(*state.name.getRegisteredInfo(), properties);
  state.addOperands(operands);
  SmallVector<Type> inferred(types.begin(), types.end());
  state.getOrAddProperties<typename Op::Properties>() = properties;
  if constexpr (Op::template hasTrait<mlir::InferTypeOpInterface::Trait>())
    if (inferred.empty() &&
        mlir::failed(Op::inferReturnTypes(context(), loc, state.operands, mlir::DictionaryAttr::get(context()),
                                          state.getRawProperties(), {}, inferred)))
      throw Refused();
  state.addTypes(inferred);
  return finish(opBuilder().create(state));
}

/// A number for messages: "0.5", "1e+20".
std::string numberText(double value);

// Channels-last helpers (Conv.cpp).
Value toChannelsLast(Node &n, Value x);
Value toChannelsFirst(Node &n, Value x);

using Handler = void (*)(Node &);
/// A row for each operator: its domain ("" is ai.onnx), name and handler, or why it is refused.
struct OpRow {
  const char *domain;
  const char *name;
  Handler handler;
  const char *refusal = nullptr; ///< with a null handler: what the user can do
};

// The tables of the files, by kind.
ArrayRef<OpRow> elementwiseRows();
ArrayRef<OpRow> linearRows();
ArrayRef<OpRow> convRows();
ArrayRef<OpRow> normRows();
ArrayRef<OpRow> shapeRows();
ArrayRef<OpRow> indexingRows();
ArrayRef<OpRow> resampleRows();
ArrayRef<OpRow> quantizationRows();
ArrayRef<OpRow> recurrentRows();
ArrayRef<OpRow> controlRows();

/// Shape arithmetic: when the node computes with symbolic dimensions, sets its result's expressions.
bool importShapeArithmetic(Node &n);

} // namespace ajour::onnx_import

#endif
