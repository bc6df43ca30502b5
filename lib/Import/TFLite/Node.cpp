//===- Node.cpp - building nn operations for one operator --------------------===//
#include "Importer.h"

#include "ajour/Dialect/NN/Weights.h"
#include "ajour/Reference/Interpreter.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace ajour::nn;

namespace ajour::tflite {

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

//===----------------------------------------------------------------------===//
// Operands and results
//===----------------------------------------------------------------------===//

Value Node::value(size_t i) {
  if (!has(i)) {
    error() << "operand " << i << " is missing";
    return {};
  }
  const TensorData &tensor = in(i);
  if (!tensor.problem.empty()) {
    error() << "operand " << i << " '" << tensor.name << "': " << tensor.problem;
    return {};
  }
  if (!tensor.elementType) {
    error() << "operand " << i << " '" << tensor.name << "' has type " << typeName(tensor.format)
            << ", which is not supported; use a numeric type";
    return {};
  }
  if (tensor.bits() < 8 && !tensor.isConstant) {
    error() << "operand " << i << " '" << tensor.name << "' of type " << typeName(tensor.format)
            << " is computed when the model runs; the nearest supported type is INT8";
    return {};
  }
  Value &known = values[op.inputs[i]];
  if (!known && tensor.blocks)
    known = dequantizeBlocks(tensor);
  else if (!known && tensor.isConstant)
    known = constantOf(tensor);
  if (!known && tensor.isVariable)
    return variable(i);
  if (!known)
    error() << "operand " << i << " '" << tensor.name << "' has no value";
  return known;
}

Value Node::constantOf(const TensorData &tensor) {
  return constant(makeTensor(tensor.shape, tensor.elementType), tensor.bytes);
}

/// What a constant quantised in blocks stands for: floats, whatever reads them.
Value Node::dequantizeBlocks(const TensorData &tensor) {
  const BlockQuantInfo &blocks = *tensor.blocks;
  SmallVector<Value> operands{constantOf(tensor), constantOf(graph.tensors[blocks.scales])};
  if (blocks.zeroPoints >= 0)
    operands.push_back(cast(constantOf(graph.tensors[blocks.zeroPoints]), graph.tensors[blocks.scales].elementType));
  DequantizeGroupedOp::Properties p;
  p.setAxis(b.getI64IntegerAttr(blocks.axis));
  p.setGroup(b.getI64IntegerAttr(blocks.size));
  p.setBits(b.getI64IntegerAttr(std::min<int64_t>(8, tensor.bits())));
  return createAs<DequantizeGroupedOp>(withElementType(tensorType(operands[0]), b.getF32Type()), p, operands);
}

Value Node::floatValue(size_t i) {
  Value x = value(i);
  if (!x)
    return {};
  if (isQuantized(i))
    return dequantize(x, *in(i).quant);
  if (isa<FloatType>(tensorType(x).getElementType()))
    return cast(x, b.getF32Type());
  (void)unsupportedType(i, "FLOAT32 or a quantised type");
  return {};
}

std::optional<std::vector<int64_t>> Node::ints(size_t i, const char *what) {
  Value x = value(i);
  if (!x)
    return std::nullopt;
  ElementsAttr attr = getConstantValue(x);
  if (!attr) {
    error() << what << " (operand " << i << " '" << in(i).name << "') must be a constant";
    return std::nullopt;
  }
  std::optional<std::vector<int64_t>> result = constantInts(attr);
  if (!result)
    error() << what << " (operand " << i << " '" << in(i).name << "') must be an integer, found "
            << typeName(in(i).format);
  return result;
}

std::optional<int64_t> Node::scalarInt(size_t i, const char *what) {
  std::optional<std::vector<int64_t>> all = ints(i, what);
  if (all && all->size() != 1) {
    error() << what << " (operand " << i << ") must have one element, found " << all->size();
    return std::nullopt;
  }
  return all ? std::optional(all->front()) : std::nullopt;
}

std::optional<int64_t> Node::axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank)
    return axis < 0 ? axis + rank : axis;
  error() << "axis " << axis << " is outside a tensor of rank " << rank;
  return std::nullopt;
}

LogicalResult Node::set(Value x, size_t i) {
  if (!x)
    return failure();
  if (i >= numOutputs())
    return error() << "result " << i << " is missing: the operator has " << numOutputs();
  Type expected = out(i).elementType, found = tensorType(x).getElementType();
  if (out(i).elementType && out(i).bits() < 8)
    return error() << "result '" << out(i).name << "' has type " << typeName(out(i).format)
                   << ", which only constants may have; the nearest supported type is INT8";
  if (expected != found)
    return error() << "result '" << out(i).name << "' has type " << typeName(out(i).format) << " in the file, but "
                   << elementName(found) << " follows from the operands";
  values[op.outputs[i]] = x;
  return success();
}

LogicalResult Node::setFloat(Value x, size_t i) {
  if (!x || i >= numOutputs())
    return failure();
  if (!out(i).isQuantized()) {
    if (out(i).elementType && isa<FloatType>(out(i).elementType))
      x = cast(x, out(i).elementType);
    return set(x, i);
  }
  return set(quantize(x, out(i)), i);
}

LogicalResult Node::setFloatProduct(Value x) {
  if (!x || !isFloatProduct())
    return setFloat(x);
  if (failed(needPerTensor(out())))
    return failure();
  Value steps = binary(BinaryKind::div, x, floats(out().quant->scales));
  Value nearest = unary(UnaryKind::floor, binary(BinaryKind::add, unary(UnaryKind::abs, steps), floats(0.5f)));
  QuantizeOp::Properties p;
  p.setScales(b.getDenseF32ArrayAttr(1.0f));
  p.setZeroPoints(b.getDenseI32ArrayAttr(out().quant->zeroPoints));
  p.setAxis(b.getI64IntegerAttr(0));
  Value whole = binary(BinaryKind::mul, unary(UnaryKind::sign, steps), nearest);
  return set(whole ? createAs<QuantizeOp>(withElementType(tensorType(whole), out().elementType), p, whole) : Value());
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Value Node::constant(RankedTensorType type, ArrayRef<char> bytes) {
  return ConstantOp::create(b, loc, type, makeConstant(type, bytes));
}

template <typename T> static ArrayRef<char> bytesOf(const T &value) {
  return ArrayRef(reinterpret_cast<const char *>(&value), sizeof(T));
}

Value Node::intScalar(Type elementType, int64_t v) {
  return constant(makeTensor(ArrayRef<int64_t>{}, elementType), bytesOf(v).take_front(elementBytes(elementType)));
}

Value Node::scalar(Type elementType, double v) {
  if (isa<IntegerType>(elementType))
    return intScalar(elementType, int64_t(v));
  Value single = constant(makeTensor(ArrayRef<int64_t>{}, b.getF32Type()), bytesOf(float(v)));
  return cast(single, elementType);
}

Value Node::floats(ArrayRef<float> v) {
  return constant(makeTensor({int64_t(v.size())}, b.getF32Type()),
                  ArrayRef(reinterpret_cast<const char *>(v.data()), v.size() * sizeof(float)));
}

LogicalResult Node::spend(int64_t elements, int64_t elementBytes) {
  if (elements > foldBudget.bytes / elementBytes)
    return error() << "makes a constant of " << elements << " elements, too much for a file of "
                   << int64_t(graph.file->getBufferSize()) << " bytes";
  foldBudget.bytes -= elements * elementBytes;
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

bool Node::finish(Operation *operation) {
  last.clear();
  for (Type type : operation->getResultTypes()) {
    int64_t elements = 1;
    for (int64_t dim : llvm::cast<RankedTensorType>(type).getShape())
      if (!ShapedType::isDynamic(dim) && dim != 0 &&
          (llvm::MulOverflow(elements, dim, elements) || elements > Limits::elements)) {
        error() << "a result of " << toString(llvm::cast<RankedTensorType>(type)) << " has more than " << Limits::elements
                << " elements";
        operation->erase();
        return false;
      }
  }
  if (failed(verify(operation))) {
    operation->erase();
    return false;
  }
  // Operations on constants only are evaluated at once, so that later operators see values.
  bool foldable = operation->getNumOperands() > 0 && !isStoredForm(operation) && llvm::all_of(operation->getOperands(), [](Value operand) {
    return operand.getDefiningOp<ConstantOp>() != nullptr;
  });
  if (foldable && foldConstants(operation, &last, /*maxBytes=*/int64_t(1) << 32, &foldBudget))
    return true;
  last.assign(operation->result_begin(), operation->result_end());
  return true;
}

Value Node::unary(UnaryKind kind, Value x, float alpha, float beta) {
  UnaryOp::Properties p;
  p.setKind(UnaryKindAttr::get(b.getContext(), kind));
  p.setAlpha(b.getF32FloatAttr(alpha));
  p.setBeta(b.getF32FloatAttr(beta));
  return create<UnaryOp>(p, x);
}

Value Node::binary(BinaryKind kind, Value lhs, Value rhs) {
  BinaryOp::Properties p;
  p.setKind(BinaryKindAttr::get(b.getContext(), kind));
  return create<BinaryOp>(p, {lhs, rhs});
}

Value Node::compare(CompareKind kind, Value lhs, Value rhs) {
  CompareOp::Properties p;
  p.setKind(CompareKindAttr::get(b.getContext(), kind));
  return create<CompareOp>(p, {lhs, rhs});
}

Value Node::select(Value condition, Value lhs, Value rhs) { return create<SelectOp>({}, {condition, lhs, rhs}); }

Value Node::cast(Value x, Type elementType) {
  if (!x || tensorType(x).getElementType() == elementType)
    return x;
  return createAs<CastOp>(withElementType(tensorType(x), elementType), {}, x);
}

Value Node::clamp(Value x, Range range) {
  if (!x)
    return {};
  if (auto integer = dyn_cast<IntegerType>(tensorType(x).getElementType()); integer && integer.getWidth() <= 32) {
    auto [low, high] = integerRange(integer);
    if (range.low <= double(low) && range.high >= double(high))
      return x;
  }
  ClampOp::Properties p;
  p.setLow(b.getF64FloatAttr(range.low));
  p.setHigh(b.getF64FloatAttr(range.high));
  return create<ClampOp>(p, x);
}

Value Node::reshape(Value x, ArrayRef<AffineExpr> dims) {
  if (!x || getDims(x) == Dims(dims))
    return x;
  return createAs<ReshapeOp>(makeTensor(dims, tensorType(x).getElementType()), {}, x);
}

Value Node::reshape(Value x, ArrayRef<int64_t> dims) {
  Dims exprs;
  for (int64_t dim : dims)
    exprs.push_back(b.getAffineConstantExpr(dim));
  return reshape(x, exprs);
}

Value Node::broadcast(Value x, ArrayRef<int64_t> dims) {
  if (!x || tensorType(x).getShape() == dims)
    return x;
  return createAs<BroadcastOp>(makeTensor(dims, tensorType(x).getElementType()), {}, x);
}

Value Node::transpose(Value x, ArrayRef<int64_t> perm) {
  bool identity = true;
  for (auto [i, p] : llvm::enumerate(perm))
    identity &= int64_t(i) == p;
  if (!x || (identity && int64_t(perm.size()) == tensorType(x).getRank()))
    return x;
  TransposeOp::Properties p;
  p.setPerm(b.getDenseI64ArrayAttr(perm));
  return create<TransposeOp>(p, x);
}

Value Node::slice(Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps, ArrayRef<AffineExpr> sizes) {
  if (!x)
    return {};
  SliceOp::Properties p;
  p.setStarts(b.getDenseI64ArrayAttr(starts));
  p.setSteps(b.getDenseI64ArrayAttr(steps));
  return createAs<SliceOp>(makeTensor(sizes, tensorType(x).getElementType()), p, x);
}

Value Node::concat(ValueRange parts, int64_t axis) {
  ConcatOp::Properties p;
  p.setAxis(b.getI64IntegerAttr(axis));
  return create<ConcatOp>(p, parts);
}

Value Node::pad(Value x, Value fill, ArrayRef<int64_t> low, ArrayRef<int64_t> high, PadMode mode) {
  PadOp::Properties p;
  p.setLow(b.getDenseI64ArrayAttr(low));
  p.setHigh(b.getDenseI64ArrayAttr(high));
  p.setMode(PadModeAttr::get(b.getContext(), mode));
  return fill ? create<PadOp>(p, {x, fill}) : create<PadOp>(p, x);
}

Value Node::reduce(ReduceKind kind, Value x, ArrayRef<int64_t> axes, bool keepDims) {
  ReduceOp::Properties p;
  p.setKind(ReduceKindAttr::get(b.getContext(), kind));
  p.setAxes(b.getDenseI64ArrayAttr(axes));
  if (keepDims)
    p.setKeepDims(b.getUnitAttr());
  return create<ReduceOp>(p, x);
}

Value Node::dequantize(Value x, const QuantInfo &info) {
  if (!x)
    return {};
  DequantizeOp::Properties p;
  p.setScales(b.getDenseF32ArrayAttr(info.scales));
  p.setZeroPoints(b.getDenseI32ArrayAttr(info.zeroPoints));
  p.setAxis(b.getI64IntegerAttr(info.isPerTensor() ? 0 : info.axis));
  return createAs<DequantizeOp>(withElementType(tensorType(x), b.getF32Type()), p, x);
}

Value Node::quantize(Value x, const TensorData &as) {
  if (!x)
    return {};
  if (!as.problem.empty()) {
    error() << "result '" << as.name << "': " << as.problem;
    return {};
  }
  QuantizeOp::Properties p;
  p.setScales(b.getDenseF32ArrayAttr(as.quant->scales));
  p.setZeroPoints(b.getDenseI32ArrayAttr(as.quant->zeroPoints));
  p.setAxis(b.getI64IntegerAttr(as.quant->isPerTensor() ? 0 : as.quant->axis));
  return createAs<QuantizeOp>(withElementType(tensorType(x), as.elementType), p, x);
}

Value Node::requantize(Value x, ArrayRef<FixedPoint> factors, int32_t zeroPoint, Type elementType,
                       std::optional<Range> range, int64_t axis) {
  if (!x)
    return {};
  auto [low, high] = integerRange(elementType);
  RequantizeOp::Properties p;
  SmallVector<int32_t> multipliers, shifts;
  for (FixedPoint factor : factors) {
    multipliers.push_back(factor.multiplier);
    shifts.push_back(factor.shift);
  }
  p.setMultipliers(b.getDenseI32ArrayAttr(multipliers));
  p.setShifts(b.getDenseI32ArrayAttr(shifts));
  p.setAxis(b.getI64IntegerAttr(axis));
  p.setZeroPoint(b.getI32IntegerAttr(zeroPoint));
  p.setQmin(b.getI32IntegerAttr(int32_t(range ? range->low : double(low))));
  p.setQmax(b.getI32IntegerAttr(int32_t(range ? range->high : double(high))));
  return createAs<RequantizeOp>(withElementType(tensorType(x), elementType), p, x);
}

Value Node::requantizeQuotient(Value x, ArrayRef<float> scales, float divisor, int32_t zeroPoint, Type elementType,
                               Range range) {
  if (!x)
    return {};
  RequantizeOp::Properties p;
  p.setScales(b.getDenseF32ArrayAttr(scales));
  p.setDivisor(b.getF32FloatAttr(divisor));
  p.setAxis(b.getI64IntegerAttr(-1));
  p.setZeroPoint(b.getI32IntegerAttr(zeroPoint));
  p.setQmin(b.getI32IntegerAttr(int32_t(range.low)));
  p.setQmax(b.getI32IntegerAttr(int32_t(range.high)));
  return createAs<RequantizeOp>(withElementType(tensorType(x), elementType), p, x);
}

Value Node::centered(Value x, int32_t zeroPoint) {
  Value wide = cast(x, b.getI32Type());
  return zeroPoint == 0 ? wide : binary(BinaryKind::sub, wide, intScalar(b.getI32Type(), zeroPoint));
}

Value Node::rescale(Value x, const TensorData &from, const TensorData &to) {
  if (failed(needPerTensor(from)) || failed(needPerTensor(to)))
    return {};
  float fromScale = from.quant->scales[0], toScale = to.quant->scales[0];
  int32_t fromZero = from.quant->zeroPoints[0], toZero = to.quant->zeroPoints[0];
  if (from.elementType == to.elementType && fromScale == toScale && fromZero == toZero)
    return x;
  FixedPoint factor = quantizeMultiplier(double(fromScale) / double(toScale));
  auto width = llvm::cast<IntegerType>(from.elementType).getWidth();
  if (width == 8 && llvm::cast<IntegerType>(to.elementType).getWidth() <= 32)
    return lookup(x, to.elementType, [&](int64_t v) {
      return int64_t(multiplyByQuantized(int32_t(v - fromZero), factor)) + toZero;
    });
  if (width > 32 || llvm::cast<IntegerType>(to.elementType).getWidth() > 32)
    return quantize(dequantize(x, *from.quant), to);
  return requantize(centered(x, fromZero), factor, toZero, to.elementType);
}

Value Node::lookup(Value x, Type elementType, function_ref<int64_t(int64_t)> function) {
  if (!x)
    return {};
  auto [low, high] = integerRange(tensorType(x).getElementType());
  auto [resultLow, resultHigh] = integerRange(elementType);
  int64_t width = elementBytes(elementType);
  std::vector<char> table(256 * width);
  for (int64_t v = low; v <= high; ++v) {
    int64_t result = std::clamp<int64_t>(function(v), resultLow, resultHigh);
    memcpy(table.data() + (v - low) * width, &result, width);
  }
  return createAs<LookupOp>(withElementType(tensorType(x), elementType), {},
                            {x, constant(makeTensor({256}, elementType), table)});
}

//===----------------------------------------------------------------------===//
// Checks and tables
//===----------------------------------------------------------------------===//

LogicalResult Node::unsupportedType(size_t i, const char *supported) {
  return error() << "operand " << i << " '" << in(i).name << "' has type " << typeName(in(i).format)
                 << (in(i).quant ? " (quantised)" : "") << ", supported: " << supported;
}

LogicalResult Node::needPerTensor(const TensorData &tensor) {
  if (!tensor.problem.empty())
    return error() << "tensor '" << tensor.name << "': " << tensor.problem;
  if (!tensor.isQuantized())
    return error() << "tensor '" << tensor.name << "' of type " << typeName(tensor.format) << " has no quantisation";
  if (!tensor.quant->isPerTensor())
    return error() << "tensor '" << tensor.name << "' has " << tensor.quant->scales.size()
                   << " scales, one for the whole tensor is expected";
  return success();
}

Value Node::activate(Value x, Activation activation) {
  switch (activation) {
  case Activation::NONE:
    return x;
  case Activation::RELU:
    return unary(UnaryKind::relu, x);
  case Activation::RELU_N1_TO_1:
    return clamp(x, {-1, 1});
  case Activation::RELU6:
    return clamp(x, {0, 6});
  case Activation::TANH:
    return unary(UnaryKind::tanh, x);
  default:
    error() << "fused activation " << EnumNameActivation(activation)
            << " is not supported; the nearest supported is RELU";
    return {};
  }
}

std::optional<Range> Node::activationRange(Activation activation, const TensorData &result) {
  if (failed(needPerTensor(result)))
    return std::nullopt;
  auto [low, high] = integerRange(result.elementType);
  Range range{double(low), double(high)};
  auto quantized = [&](float real) {
    return std::round(real / result.quant->scales[0]) + double(result.quant->zeroPoints[0]);
  };
  switch (activation) {
  case Activation::NONE:
    return range;
  case Activation::RELU:
    range.low = std::max(range.low, quantized(0));
    break;
  case Activation::RELU_N1_TO_1:
    range.low = std::max(range.low, quantized(-1));
    range.high = std::min(range.high, quantized(1));
    break;
  case Activation::RELU6:
    range.low = std::max(range.low, quantized(0));
    range.high = std::min(range.high, quantized(6));
    break;
  default:
    error() << "fused activation " << EnumNameActivation(activation)
            << " is not supported on a quantised result; the nearest supported is RELU6";
    return std::nullopt;
  }
  range.high = std::max(range.low, range.high);
  return range;
}

std::optional<int64_t> Node::staticSize(Value x, int64_t dim) {
  if (!x)
    return std::nullopt;
  if (tensorType(x).isDynamicDim(dim)) {
    error() << "dimension " << dim << " of " << nn::toString(tensorType(x)) << " must be a number here; fix it with --dim";
    return std::nullopt;
  }
  return tensorType(x).getDimSize(dim);
}

std::optional<std::vector<int64_t>> Node::staticShape(Value x) {
  if (!x)
    return std::nullopt;
  std::vector<int64_t> shape;
  for (int64_t i = 0; i < tensorType(x).getRank(); ++i) {
    std::optional<int64_t> size = staticSize(x, i);
    if (!size)
      return std::nullopt;
    shape.push_back(*size);
  }
  return shape;
}

void Node::remarkFloatFallback() {
  emitRemark(loc) << "quantised " << op.type << " is computed in f32";
}

} // namespace ajour::tflite
