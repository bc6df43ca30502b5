//===- PlainWeights.cpp - a product's constant weights in plain form ----------------===//
#include "PlainWeights.h"

#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Encoding/Detect.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ajour {

using encoding::Granularity;
using encoding::ValuesKind;
using encoding::WeightShape;

Value weightsOf(Operation *product) {
  return llvm::TypeSwitch<Operation *, Value>(product)
      .Case([](nn::MatmulOp matmul) { return matmul.getRhs(); })
      .Case([](nn::ConvOp conv) { return conv.getFilter(); })
      .Case([](nn::ConvTransposeOp conv) { return conv.getFilter(); })
      .Default([](Operation *) { return Value(); });
}

static ArrayRef<int32_t> zeroPointsOf(Operation *product) {
  return llvm::TypeSwitch<Operation *, ArrayRef<int32_t>>(product)
      .Case<nn::MatmulOp, nn::ConvOp, nn::ConvTransposeOp>([](auto op) { return op.getRhsZeroPoints(); })
      .Default([](Operation *) { return ArrayRef<int32_t>(); });
}

/// Whether the weights lie as [k][n].
static bool isTurned(Operation *product) {
  auto matmul = dyn_cast<nn::MatmulOp>(product);
  return matmul && !matmul.getTransposeRhs();
}

/// The elements in the order [n][k].
template <typename T> static void toRows(Operation *product, const WeightShape &shape, std::vector<T> &data) {
  if (!isTurned(product))
    return;
  std::vector<T> rows(data.size());
  for (int64_t p = 0; p < shape.k; ++p)
    for (int64_t j = 0; j < shape.n; ++j)
      rows[j * shape.k + p] = data[p * shape.n + j];
  data = std::move(rows);
}

static int64_t bytesOf(Value value) { return nn::estimateBytes(cast<RankedTensorType>(value.getType())); }

//===----------------------------------------------------------------------===//
// Plain constants
//===----------------------------------------------------------------------===//

static void readNumbers(std::span<const float> numbers, uint32_t type, const WeightShape &shape, PlainWeight &weight) {
  weight.mask = encoding::nonzeroMask(numbers);
  weight.values = encoding::detectValues(shape, numbers, type);
}

static bool readFloats(Operation *product, ElementsAttr constant, const WeightShape &shape, PlainWeight &weight) {
  std::vector<char> storage;
  ArrayRef<char> bytes = nn::constantBytes(constant, storage);
  if (constant.getElementType().isF32() && !isTurned(product) &&
      reinterpret_cast<uintptr_t>(bytes.data()) % sizeof(float) == 0) {
    // Large weights are looked at where they are.
    readNumbers({reinterpret_cast<const float *>(bytes.data()), bytes.size() / sizeof(float)}, AJOUR_F32, shape, weight);
    return true;
  }
  auto numbers = nn::constantFloats(constant);
  if (!numbers)
    return false;
  storage = std::vector<char>();
  toRows(product, shape, *numbers);
  uint32_t type = nn::getElementTypeId(constant.getElementType());
  readNumbers(*numbers, type == AJOUR_F16 || type == AJOUR_BF16 ? type : AJOUR_F32, shape, weight);
  return true;
}

/// Weights of an integer product: scales are part of what becomes of the sums.
static bool readCodes(Operation *product, ElementsAttr constant, const WeightShape &shape, PlainWeight &weight) {
  if (!constant.getElementType().isInteger(8))
    return false;
  auto codes = nn::constantInts(constant);
  toRows(product, shape, *codes);
  ArrayRef<int32_t> zeroPoints = zeroPointsOf(product);
  encoding::Values &values = weight.values;
  values.kind = ValuesKind::Int;
  values.bits = 8;
  values.isSigned = !nn::isUnsigned(constant.getElementType());
  values.hasZeroPoints = llvm::any_of(zeroPoints, [](int32_t z) { return z != 0; });
  values.granularity = zeroPoints.size() > 1 ? Granularity::Channel : Granularity::Tensor;
  weight.mask.resize(codes->size());
  std::vector<int8_t> narrow(codes->size());
  for (size_t i = 0; i < codes->size(); ++i) {
    int32_t zero = zeroPoints.empty() ? 0 : zeroPoints[zeroPoints.size() == 1 ? 0 : i / shape.k];
    weight.mask[i] = (*codes)[i] != zero;
    narrow[i] = static_cast<int8_t>((*codes)[i]);
  }
  if (!values.hasZeroPoints)
    values = encoding::detectValues(narrow, values);
  return true;
}

//===----------------------------------------------------------------------===//
// Few bits
//===----------------------------------------------------------------------===//

namespace {
/// Where the parameter of an element lies: dimensions of size 1 are shared, groups along one axis.
class ParameterIndex {
public:
  ParameterIndex(RankedTensorType elements, RankedTensorType parameters, int64_t axis, int64_t group)
      : sizes(elements.getShape()), axis(axis), group(group), strides(parameters.getRank()) {
    int64_t stride = 1;
    for (int64_t d = parameters.getRank() - 1; d >= 0; --d) {
      strides[d] = parameters.getDimSize(d) == 1 ? 0 : stride;
      stride *= parameters.getDimSize(d);
    }
  }
  int64_t operator()(int64_t element) const {
    int64_t place = 0;
    for (int64_t d = int64_t(sizes.size()) - 1; d >= 0; --d) {
      int64_t index = element % sizes[d];
      element /= sizes[d];
      place += (d == axis ? index / group : index) * strides[d];
    }
    return place;
  }

private:
  ArrayRef<int64_t> sizes;
  int64_t axis, group;
  SmallVector<int64_t> strides;
};
} // namespace

/// What a scale serves, seen from the matrix [n][k].
static Granularity granularityOf(Operation *product, RankedTensorType elements, RankedTensorType scales, int64_t axis,
                                 int64_t group) {
  if (scales.getNumElements() == 1)
    return Granularity::Tensor;
  int64_t rowAxis = isTurned(product) ? elements.getRank() - 1 : 0;
  for (int64_t d = 0; d < elements.getRank(); ++d)
    if (d != rowAxis && scales.getDimSize(d) > 1)
      return Granularity::Group;
  return Granularity::Channel;
}

/// Bytes of scales or offsets, which may be codes themselves.
static int64_t parameterBytes(Value value) {
  auto codes = value.getDefiningOp<nn::DequantizeGroupedOp>();
  if (!codes)
    return bytesOf(value);
  int64_t elements = cast<RankedTensorType>(value.getType()).getNumElements();
  return llvm::divideCeil(elements * codes.getBits(), 8) + bytesOf(codes.getScales());
}

static bool readGrouped(Operation *product, nn::DequantizeGroupedOp op, const WeightShape &shape, PlainWeight &weight) {
  ElementsAttr input = nn::getConstantValue(op.getInput());
  ElementsAttr zero = op.getZeroPoints() && !op.getOffsets() ? nn::getConstantValue(op.getZeroPoints()) : ElementsAttr();
  if (!input || (op.getZeroPoints() && !op.getOffsets() && !zero))
    return false;
  auto type = cast<RankedTensorType>(op.getInput().getType()), scales = cast<RankedTensorType>(op.getScales().getType());
  // Each is at most 8 bits: large weights are not widened.
  std::vector<char> storage;
  ArrayRef<char> codes = nn::constantBytes(input, storage);
  bool isSigned = !nn::isUnsigned(input.getElementType());
  std::vector<double> zeros;
  if (zero) {
    if (auto integers = nn::constantInts(zero))
      zeros.assign(integers->begin(), integers->end());
    else if (auto floats = nn::constantFloats(zero))
      zeros.assign(floats->begin(), floats->end());
    else
      return false;
  }
  ParameterIndex parameter(type, scales, op.getAxis(), op.getGroup());
  weight.mask.resize(codes.size());
  for (size_t i = 0; i < codes.size(); ++i)
    // With offsets no code stands for 0 everywhere.
    weight.mask[i] = op.getOffsets() || (isSigned ? int8_t(codes[i]) : uint8_t(codes[i])) != (zeros.empty() ? 0 : zeros[parameter(int64_t(i))]);
  toRows(product, shape, weight.mask);
  encoding::Values &values = weight.values;
  values.kind = ValuesKind::Int;
  values.bits = op.getBits();
  values.isSigned = isSigned;
  values.hasZeroPoints = llvm::any_of(zeros, [](double z) { return z != 0; });
  values.type = nn::getElementTypeId(scales.getElementType());
  values.granularity = granularityOf(product, type, scales, op.getAxis(), op.getGroup());
  values.group = values.granularity == Granularity::Group ? op.getGroup() : 0;
  weight.bytes = llvm::divideCeil(codes.size() * op.getBits(), 8) + parameterBytes(op.getScales()) +
                 (zero            ? llvm::divideCeil(zeros.size() * op.getBits(), 8)
                  : op.getOffsets() ? parameterBytes(op.getZeroPoints())
                                  : 0);
  return true;
}

static bool readCodebook(Operation *product, nn::DequantizeCodebookOp op, const WeightShape &shape, PlainWeight &weight) {
  ElementsAttr input = nn::getConstantValue(op.getInput()), table = nn::getConstantValue(op.getTable());
  if (!input || !table)
    return false;
  std::vector<int64_t> codes = *nn::constantInts(input);
  std::vector<float> entries = *nn::constantFloats(table);
  auto type = cast<RankedTensorType>(op.getInput().getType()), tableType = cast<RankedTensorType>(op.getTable().getType());
  int64_t count = tableType.getShape().back();
  // The table has the weight's dimensions before its entries, or none: then all elements share it.
  auto units = RankedTensorType::get(tableType.getRank() == 1 ? SmallVector<int64_t>(type.getRank(), 1)
                                                              : SmallVector<int64_t>(tableType.getShape().drop_back()),
                                     tableType.getElementType());
  ParameterIndex unit(type, units, /*axis=*/-1, /*group=*/1);
  weight.mask.resize(codes.size());
  for (size_t i = 0; i < codes.size(); ++i)
    weight.mask[i] = entries[unit(int64_t(i)) * count + std::min(codes[i], count - 1)] != 0;
  toRows(product, shape, weight.mask);
  encoding::Values &values = weight.values;
  values.kind = ValuesKind::Codebook;
  values.bits = std::max<int64_t>(1, llvm::Log2_64_Ceil(count));
  values.type = nn::getElementTypeId(tableType.getElementType());
  values.granularity = granularityOf(product, type, units, -1, 1);
  // Entries for each few columns have no name in the table of values; those of a row come closest.
  if (values.granularity == Granularity::Group)
    values.granularity = Granularity::Channel;
  weight.bytes = llvm::divideCeil(codes.size() * values.bits, 8) + bytesOf(op.getTable()) +
                 (op.getScales() ? bytesOf(op.getScales()) : 0);
  return true;
}

bool readPlainWeight(Operation *product, const WeightShape &shape, PlainWeight &weight) {
  Value value = weightsOf(product);
  if (ElementsAttr constant = nn::getConstantValue(value)) {
    weight.bytes = bytesOf(value);
    return readFloats(product, constant, shape, weight) || readCodes(product, constant, shape, weight);
  }
  if (!value.getDefiningOp())
    return false;
  return llvm::TypeSwitch<Operation *, bool>(value.getDefiningOp())
      .Case([&](nn::DequantizeGroupedOp op) { return readGrouped(product, op, shape, weight); })
      .Case([&](nn::DequantizeCodebookOp op) { return readCodebook(product, op, shape, weight); })
      .Case([&](nn::CastOp op) {
        ElementsAttr constant = nn::getConstantValue(op.getInput());
        if (!constant || !readFloats(product, constant, shape, weight))
          return false;
        weight.bytes = bytesOf(op.getInput());
        return true;
      })
      .Default([](Operation *) { return false; });
}

} // namespace ajour
