//===- Importer.h - TFLite operators as nn operations -----------*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_TFLITE_IMPORTER_H
#define AJOUR_LIB_IMPORT_TFLITE_IMPORTER_H

#include "Reader.h"
#include "State.h"

#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Reference/Interpreter.h"

#include <functional>

namespace ajour::tflite {

/// Multiplier and shift of the fixed-point form of nn.requantize.
struct FixedPoint {
  int32_t multiplier = 0;
  int32_t shift = 0;
};

/// A real factor as 31 fraction bits and a power of two. Source: the format's published reference kernels.
FixedPoint quantizeMultiplier(double factor);
/// x * factor as those kernels compute it on 32 bits.
int32_t multiplyByQuantized(int32_t x, FixedPoint factor);

/// Limits that a fused activation sets.
struct Range {
  double low, high;
};

/// One operator while it is imported: its operands, and what builds operations in its place. Every builder
/// takes null values and then gives null, so that failures (which are reported where they arise) pass through.
class Node {
public:
  Node(mlir::OpBuilder &builder, mlir::Location loc, const Graph &graph, const OperatorData &op,
       std::vector<mlir::Value> &values, States &states, FoldBudget &foldBudget, bool floatProducts)
      : b(builder), loc(loc), graph(graph), op(op), states(states), floatProducts(floatProducts), values(values),
        foldBudget(foldBudget) {}

  mlir::OpBuilder &b;
  mlir::Location loc;
  const Graph &graph;
  const OperatorData &op;
  States &states;
  const bool floatProducts; ///< ImportOptions::floatProducts

  mlir::InFlightDiagnostic error() const { return mlir::emitError(loc); }

  //===--- operands and results -------------------------------------------===//
  size_t numInputs() const { return op.inputs.size(); }
  size_t numOutputs() const { return op.outputs.size(); }
  bool has(size_t i) const { return i < op.inputs.size() && op.inputs[i] >= 0; }
  const TensorData &in(size_t i) const { return graph.tensors[op.inputs[i]]; }
  const TensorData &out(size_t i = 0) const { return graph.tensors[op.outputs[i]]; }
  bool isQuantized(size_t i) const { return in(i).isQuantized(); }
  /// Whether the product of two operands is one of integers. Other combinations become f32, which also covers hybrid models
  /// (f32 activations, 8-bit weights).
  bool isIntegerProduct(size_t lhs, size_t rhs) const {
    return !floatProducts && has(lhs) && has(rhs) && isQuantized(lhs) && isQuantized(rhs) && out().isQuantized();
  }

  /// Whether the product is computed in f32 though its result is quantised, because the user wants it so.
  bool isFloatProduct() const { return floatProducts && out().isQuantized(); }

  /// Operand i as it is; null after a diagnostic.
  mlir::Value value(size_t i);
  /// Operand i, a variable tensor, as the operators so far leave it; and its value for what comes after. Other operands
  /// keep none.
  mlir::Value variable(size_t i);
  mlir::LogicalResult setVariable(size_t i, mlir::Value value);
  /// Operand i as f32: dequantised, or widened from 16 bits.
  mlir::Value floatValue(size_t i);
  /// The elements of an integer operand that must be constant; reports when it is not.
  std::optional<std::vector<int64_t>> ints(size_t i, const char *what);
  /// One such element.
  std::optional<int64_t> scalarInt(size_t i, const char *what);
  /// An axis of operand `of`, from the end when negative; reports when outside.
  std::optional<int64_t> axis(int64_t axis, int64_t rank);
  /// The options table, or null when the operator carries none (each operator then has its defaults).
  template <typename T> const T *options() const { return op.table->options_as<T>(); }

  /// Sets result i; checks that its element type is what the file says.
  mlir::LogicalResult set(mlir::Value value, size_t i = 0);
  /// Sets result i from f32, quantising if the file says so.
  mlir::LogicalResult setFloat(mlir::Value value, size_t i = 0);
  /// Sets the result of a product in f32; under `floatProducts`, halves are rounded away from zero.
  mlir::LogicalResult setFloatProduct(mlir::Value value);
  /// Result i as it stands.
  mlir::Value result(size_t i = 0) const { return values[op.outputs[i]]; }

  //===--- constants --------------------------------------------------------===//
  mlir::Value constant(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes);
  mlir::Value scalar(mlir::Type elementType, double value);
  mlir::Value intScalar(mlir::Type elementType, int64_t value);
  mlir::Value floats(llvm::ArrayRef<float> values);

  /// Accounts for a constant that the operator makes; reports when a small file asks for too much.
  mlir::LogicalResult spend(int64_t elements, int64_t elementBytes);

  //===--- operations -------------------------------------------------------===//
  /// An operation whose type is inferred; folded when it can be.
  template <typename Op> mlir::Value create(typename Op::Properties properties, mlir::ValueRange operands) {
    llvm::SmallVector<mlir::Type> types;
    return createMany<Op>(properties, operands, types) ? last[0] : mlir::Value();
  }
  /// The same with several results, which are in `last` afterwards.
  template <typename Op>
  bool createMany(typename Op::Properties &properties, mlir::ValueRange operands,
                  llvm::SmallVectorImpl<mlir::Type> &types) {
    // Inference reads attributes that have defaults.
    if constexpr (requires(mlir::OperationName name) { Op::populateDefaultProperties(name, properties); })
      Op::populateDefaultProperties(mlir::OperationName(Op::getOperationName(), b.getContext()), properties);
    if (llvm::is_contained(operands, mlir::Value()) ||
        failed(Op::inferReturnTypes(b.getContext(), loc, operands, b.getDictionaryAttr({}), &properties, {}, types)))
      return false;
    return finish(Op::create(b, loc, mlir::TypeRange(types), operands, properties));
  }
  /// An operation of a given type.
  template <typename Op>
  mlir::Value createAs(mlir::RankedTensorType type, typename Op::Properties properties, mlir::ValueRange operands) {
    if (!type || llvm::is_contained(operands, mlir::Value()))
      return {};
    return finish(Op::create(b, loc, mlir::TypeRange(mlir::Type(type)), operands, properties)) ? last[0]
                                                                                               : mlir::Value();
  }

  mlir::Value unary(nn::UnaryKind kind, mlir::Value x, float alpha = 0, float beta = 0);
  mlir::Value binary(nn::BinaryKind kind, mlir::Value lhs, mlir::Value rhs);
  mlir::Value compare(nn::CompareKind kind, mlir::Value lhs, mlir::Value rhs);
  mlir::Value select(mlir::Value condition, mlir::Value lhs, mlir::Value rhs);
  mlir::Value cast(mlir::Value x, mlir::Type elementType);
  mlir::Value clamp(mlir::Value x, Range range);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<mlir::AffineExpr> dims);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> dims);
  mlir::Value broadcast(mlir::Value x, llvm::ArrayRef<int64_t> dims);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> perm);
  mlir::Value slice(mlir::Value x, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> steps,
                    llvm::ArrayRef<mlir::AffineExpr> sizes);
  mlir::Value concat(mlir::ValueRange parts, int64_t axis);
  mlir::Value pad(mlir::Value x, mlir::Value value, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high,
                  nn::PadMode mode = nn::PadMode::constant);
  mlir::Value reduce(nn::ReduceKind kind, mlir::Value x, llvm::ArrayRef<int64_t> axes, bool keepDims);
  mlir::Value dequantize(mlir::Value x, const QuantInfo &info);
  mlir::Value dequantizeBlocks(const TensorData &tensor);
  mlir::Value constantOf(const TensorData &tensor);
  mlir::Value quantize(mlir::Value x, const TensorData &as);
  /// The fixed-point form; the result's limits are `range`, by default the type's own.
  mlir::Value requantize(mlir::Value x, llvm::ArrayRef<FixedPoint> factors, int32_t zeroPoint,
                         mlir::Type elementType, std::optional<Range> range = std::nullopt, int64_t axis = -1);
  /// The floating point form, x * scale / divisor; one scale for all or one for each index of the last dimension.
  mlir::Value requantizeQuotient(mlir::Value x, llvm::ArrayRef<float> scales, float divisor, int32_t zeroPoint,
                                 mlir::Type elementType, Range range);
  /// x as i32 minus a zero point.
  mlir::Value centered(mlir::Value x, int32_t zeroPoint);
  /// Another scale and zero point for the same numbers; the value itself when they agree. Source: the
  /// reference kernel of QUANTIZE between integers.
  mlir::Value rescale(mlir::Value x, const TensorData &from, const TensorData &to);
  /// A function of an 8-bit value by its 256 results.
  mlir::Value lookup(mlir::Value x, mlir::Type elementType, llvm::function_ref<int64_t(int64_t)> function);

  //===--- checks and tables --------------------------------------------------===//
  /// Reports that the operator does not take operand i's type.
  mlir::LogicalResult unsupportedType(size_t i, const char *supported);
  /// A quantised tensor must have one scale; reports otherwise.
  mlir::LogicalResult needPerTensor(const TensorData &tensor);
  /// Applies a fused activation to a float value.
  mlir::Value activate(mlir::Value x, Activation activation);
  /// The limits that an activation sets on a quantised result; nothing after a diagnostic.
  std::optional<Range> activationRange(Activation activation, const TensorData &result);
  /// The size of a static dimension; reports when it is symbolic.
  std::optional<int64_t> staticSize(mlir::Value x, int64_t dim);
  /// All of them.
  std::optional<std::vector<int64_t>> staticShape(mlir::Value x);
  /// Says that an integer operator is computed in floating point.
  void remarkFloatFallback();

  llvm::SmallVector<mlir::Value> last; ///< results of the newest operation

private:
  std::vector<mlir::Value> &values; // by tensor index
  FoldBudget &foldBudget;

  bool finish(mlir::Operation *operation);
};

using ImportFunction = mlir::LogicalResult (*)(Node &);

/// One operator that is known: which versions, how many operands and results, and its translation.
struct OpRow {
  Builtin code;
  int32_t maxVersion;
  int minInputs, maxInputs; ///< -1: any number
  ImportFunction import;
  const char *customName = nullptr;
  bool hasResult = true;
};

// The rows of each kind.
llvm::ArrayRef<OpRow> elementwiseRows();
llvm::ArrayRef<OpRow> linearRows();
llvm::ArrayRef<OpRow> convRows();
llvm::ArrayRef<OpRow> normRows();
llvm::ArrayRef<OpRow> shapeRows();
llvm::ArrayRef<OpRow> sliceRows();
llvm::ArrayRef<OpRow> quantizationRows();
llvm::ArrayRef<OpRow> recurrentRows();
llvm::ArrayRef<OpRow> stateRows();

//===--- shared by kinds -----------------------------------------------------===//

/// Low and high padding of one dimension. Source: the format's SAME and VALID rules.
std::pair<int64_t, int64_t> windowPadding(Padding padding, int64_t in, int64_t window, int64_t stride,
                                          int64_t dilation);
/// Finishes an integer product: rescales accumulators of lhs and weights to the result.
mlir::LogicalResult setAccumulator(Node &node, mlir::Value accumulator, size_t lhs, size_t weights,
                                   Activation activation, int64_t channels);
/// Sets a result that holds the operand's stored values, rescaled if the file gives it another scale.
mlir::LogicalResult setMoved(Node &node, mlir::Value x, size_t operand = 0, size_t result = 0);
/// Zero points of a weight as nn.conv and nn.matmul want them: none when all are 0.
std::vector<int32_t> weightZeroPoints(const TensorData &weights);

/// A product in f32 whose sums are taken in a defined order (FloatProducts.cpp). [M, K] and [N, K] give [M, N].
mlir::Value matmulInOrder(Node &node, mlir::Value rows, mlir::Value weights);
/// The same of a convolution over two dimensions of known size.
mlir::Value convInOrder(Node &node, const nn::ConvOp::Properties &properties, mlir::Value input, mlir::Value filter);

} // namespace ajour::tflite

#endif
