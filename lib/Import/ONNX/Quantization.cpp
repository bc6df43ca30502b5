//===- Quantization.cpp - ONNX quantised operators -------------------------------------===//
#include "Conv.h"
#include "Linear.h"

using namespace mlir;

namespace ajour::onnx_import {

namespace {

using B = nn::BinaryKind;
using U = nn::UnaryKind;

/// Scales and zero points that are known when compiling, as many of each.
struct Params {
  std::vector<float> scales;
  std::vector<int32_t> zeroPoints;
};

std::vector<int32_t> zeroPoints(Node &n, size_t i, size_t count) {
  std::vector<int32_t> result;
  if (n.has(i)) {
    // Zero points of small floats are always zero.
    if (Node::isFloat(n.in(i)))
      return std::vector<int32_t>(count, 0);
    for (int64_t value : n.ints(i, "zero point"))
      result.push_back(int32_t(value));
  } else {
    result.assign(1, 0);
  }
  if (result.size() == 1)
    result.resize(count, result[0]);
  if (result.size() != count)
    n.refuse("has " + Twine(result.size()) + " zero points for " + Twine(count) + " scales");
  return result;
}

Params params(Node &n, size_t scale, size_t zeroPoint) {
  Params p;
  p.scales = n.floats(scale, "scale");
  p.zeroPoints = zeroPoints(n, zeroPoint, p.scales.size());
  return p;
}

Params scalarParams(Node &n, size_t scale, size_t zeroPoint) {
  Params p = params(n, scale, zeroPoint);
  if (p.scales.size() != 1)
    n.refuse("has " + Twine(p.scales.size()) + " scales in " + n.inputName(scale) + ", expected 1");
  return p;
}

Value quantize(Node &n, Value x, const Params &params, int64_t axis, Type element) {
  nn::QuantizeOp::Properties p;
  p.scales = n.builder().getDenseF32ArrayAttr(params.scales);
  p.zero_points = n.builder().getDenseI32ArrayAttr(params.zeroPoints);
  p.axis = n.i64(axis);
  return n.make1<nn::QuantizeOp>(x, p, nn::withElementType(Node::typeOf(x), element));
}

Value dequantize(Node &n, Value x, const Params &params, int64_t axis, Type element, int64_t block = 0) {
  nn::DequantizeOp::Properties p;
  p.scales = n.builder().getDenseF32ArrayAttr(params.scales);
  p.zero_points = n.builder().getDenseI32ArrayAttr(params.zeroPoints);
  p.axis = n.i64(axis);
  p.block = n.i64(block);
  return n.make1<nn::DequantizeOp>(x, p, nn::withElementType(Node::typeOf(x), element));
}

/// One value or one for each index of `axis`, shaped to broadcast over a tensor of this rank.
Value alongAxis(Node &n, Value v, int64_t axis, int64_t rank) {
  int64_t own = Node::rankOf(v);
  if (own == 0 || (own == 1 && nn::getConstant(Node::dimsOf(v)[0]) == 1))
    return n.reshape(v, ArrayRef<int64_t>());
  if (own != 1)
    n.refuse("has parameters " + n.text(v) + ", expected one value or one for each index of an axis");
  Dims dims(rank, n.dim(1));
  dims[n.axis(axis, rank)] = Node::dimsOf(v)[0];
  return n.reshape(v, dims);
}

bool known(Node &n, size_t scale, size_t zeroPoint) {
  return n.isConstant(scale) && (!n.has(zeroPoint) || n.isConstant(zeroPoint));
}

//===----------------------------------------------------------------------===//
// QuantizeLinear, DequantizeLinear
//===----------------------------------------------------------------------===//

void quantizeLinear(Node &n) {
  Value x = n.in(0), scale = n.in(1);
  int32_t type = n.has(2) ? n.onnxType(2) : int32_t(n.attrInt("output_dtype", 0));
  Type element = n.has(2) ? Node::elementOf(n.in(2)) : type ? elementTypeOf(type, n.context()) : nullptr;
  if (!element)
    element = IntegerType::get(n.context(), 8, IntegerType::Unsigned);
  if (!isa<IntegerType>(element) || cast<IntegerType>(element).getWidth() > 16)
    n.refuse("quantises to " + (type ? onnxTypeName(type) : nn::elementName(element)) +
             ", expected an integer of 4 to 16 bits");
  if (n.attrInt("block_size", 0))
    n.refuse("quantises in blocks when the model runs, expected per tensor or per axis (blocks are read in "
             "DequantizeLinear)");
  if (!Node::isFloat(x))
    x = n.cast(x, n.f32());
  int64_t axis = n.attrInt("axis", 1), rank = Node::rankOf(x);
  Value result;
  if (known(n, 1, 2)) {
    Params p = params(n, 1, 2);
    result = quantize(n, x, p, p.scales.size() == 1 ? 0 : n.axis(axis, rank), element);
  } else {
    auto [low, high] = nn::integerRange(element);
    Value steps = n.div(n.cast(x, n.f32()), alongAxis(n, n.cast(scale, n.f32()), axis, rank));
    steps = n.unary(U::round, steps);
    if (n.has(2))
      steps = n.add(steps, alongAxis(n, n.cast(n.in(2), n.f32()), axis, rank));
    result = n.cast(n.clamp(steps, double(low), double(high)), element);
  }
  if (type == OnnxUInt4)
    result = n.clamp(result, 0, 15);
  if (type == OnnxInt4)
    result = n.clamp(result, -8, 7);
  n.set(0, result, type);
}

void dequantizeLinear(Node &n) {
  Value x = n.in(0), scale = n.in(1);
  int64_t axis = n.attrInt("axis", 1), rank = Node::rankOf(x), block = n.attrInt("block_size", 0);
  Type element = Node::elementOf(scale);
  if (!isa<FloatType>(element))
    n.refuse("its scale is " + n.text(scale) + ", expected floats");
  if (Node::isFloat(x)) // 8- and 4-bit floats, which are decoded as f32
    return n.set(0, n.mul(n.cast(x, element), alongAxis(n, scale, axis, rank)));
  if (known(n, 1, 2)) {
    Params p = params(n, 1, 2);
    bool perTensor = p.scales.size() == 1 && block == 0;
    return n.set(0, dequantize(n, x, p, perTensor ? 0 : n.axis(axis, rank), element, block));
  }
  if (block)
    n.refuseRuntime(n.isConstant(1) ? 2 : 1, "scale or zero point");
  Value wide = n.cast(x, n.i32());
  if (n.has(2))
    wide = n.sub(wide, alongAxis(n, n.cast(n.in(2), n.i32()), axis, rank));
  n.set(0, n.mul(n.cast(wide, element), alongAxis(n, scale, axis, rank)));
}

/// The format's decomposition: 8-bit unsigned over the range of x with zero.
void dynamicQuantizeLinear(Node &n) {
  Value x = n.in(0);
  Ints all;
  for (int64_t i = 0; i < Node::rankOf(x); ++i)
    all.push_back(i);
  Value zero = n.like(0, x);
  Value low = n.binary(B::min, n.reduce(nn::ReduceKind::min, x, all, false), zero);
  Value high = n.binary(B::max, n.reduce(nn::ReduceKind::max, x, all, false), zero);
  Value scale = n.div(n.sub(high, low), n.like(255, x));
  // All zeros: any scale is right.
  scale = n.select(n.compare(nn::CompareKind::eq, scale, zero), n.like(1, x), scale);
  Value zeroPoint = n.unary(U::round, n.clamp(n.div(n.unary(U::neg, low), scale), 0, 255));
  Value steps = n.add(n.unary(U::round, n.div(x, scale)), zeroPoint);
  Type u8 = IntegerType::get(n.context(), 8, IntegerType::Unsigned);
  n.set(0, n.cast(n.clamp(steps, 0, 255), u8));
  n.set(1, scale);
  n.set(2, n.cast(zeroPoint, u8));
}

//===----------------------------------------------------------------------===//
// Integer products
//===----------------------------------------------------------------------===//

/// acc * scales + zero point in the result's type; the scale of each channel is lhs * rhs / result.
Value requantize(Node &n, Value acc, const Params &lhs, const std::vector<float> &rhsScales, const Params &out,
                 Type element) {
  auto [low, high] = nn::integerRange(element);
  std::vector<float> scales;
  for (float rhs : rhsScales)
    scales.push_back(lhs.scales[0] * rhs / out.scales[0]);
  nn::RequantizeOp::Properties p;
  p.scales = n.builder().getDenseF32ArrayAttr(scales);
  p.axis = n.i64(-1);
  p.zero_point = n.builder().getI32IntegerAttr(out.zeroPoints[0]);
  p.qmin = n.builder().getI32IntegerAttr(int32_t(low));
  p.qmax = n.builder().getI32IntegerAttr(int32_t(high));
  return n.make1<nn::RequantizeOp>(acc, p, nn::withElementType(Node::typeOf(acc), element));
}

/// The type of a quantised result: its zero point's.
Type quantizedType(Node &n, size_t zeroPoint) {
  Type element = Node::elementOf(n.in(zeroPoint));
  if (!isa<IntegerType>(element) || cast<IntegerType>(element).getWidth() != 8)
    n.refuse(n.inputName(zeroPoint) + " is " + n.text(n.in(zeroPoint)) + ", expected an 8-bit integer");
  return element;
}

void qLinearConv(Node &n) {
  Params x = scalarParams(n, 1, 2), w = params(n, 4, 5), y = scalarParams(n, 6, 7);
  Value acc = convolveLast(n, n.in(0), n.in(3), n.inOrNull(8), x.zeroPoints[0], w.zeroPoints);
  n.set(0, toChannelsFirst(n, requantize(n, acc, x, w.scales, y, quantizedType(n, 7))));
}

/// Subtracts zero points that are not known when compiling, or that nn.matmul and nn.conv do not take.
Value widened(Node &n, Value x, size_t zeroPoint, int64_t axis) {
  Value wide = n.cast(x, n.i32());
  if (!n.has(zeroPoint))
    return wide;
  Value zero = n.cast(n.in(zeroPoint), n.i32());
  if (Node::rankOf(zero) > 1) // already shaped to broadcast
    return n.sub(wide, zero);
  return n.sub(wide, alongAxis(n, zero, axis, Node::rankOf(x)));
}

/// The zero points of an operand when they are known and at most `count`.
std::optional<std::vector<int32_t>> knownZeroPoints(Node &n, size_t i, int64_t most) {
  if (!n.has(i))
    return std::vector<int32_t>{0};
  if (!n.isConstant(i))
    return std::nullopt;
  Ints values = n.ints(i, "zero point");
  if (values.empty() || int64_t(values.size()) > most)
    return std::nullopt;
  return std::vector<int32_t>(values.begin(), values.end());
}

void convInteger(Node &n) {
  Value x = n.in(0), w = n.in(1);
  std::optional<int64_t> outputs = Node::rankOf(w) ? nn::getConstant(Node::dimsOf(w)[0]) : std::nullopt;
  auto xz = knownZeroPoints(n, 2, 1), wz = knownZeroPoints(n, 3, outputs.value_or(1));
  if (xz && wz)
    return n.set(0, toChannelsFirst(n, convolveLast(n, x, w, {}, (*xz)[0], *wz)));
  n.set(0, toChannelsFirst(n, convolveLast(n, widened(n, x, 2, 1), widened(n, w, 3, 0), {})));
}

/// The accumulator of an integer matrix product.
Value integerProduct(Node &n, Value a, Value b, size_t aZero, size_t bZero) {
  std::optional<int64_t> columns = Node::rankOf(b) ? nn::getConstant(Node::dimsOf(b).back()) : std::nullopt;
  int64_t most = Node::rankOf(b) < 2 ? 1 : columns.value_or(1);
  auto az = knownZeroPoints(n, aZero, 1), bz = knownZeroPoints(n, bZero, most);
  if (!az || !bz) {
    a = widened(n, a, aZero, -2);
    b = widened(n, b, bZero, -1);
    az = bz = std::vector<int32_t>{0};
  }
  return matMulLike(n, a, b, [&](Value lhs, Value rhs) {
    nn::MatmulOp::Properties p;
    p.lhs_zero_point = n.builder().getI32IntegerAttr((*az)[0]);
    p.rhs_zero_points = n.builder().getDenseI32ArrayAttr(*bz);
    return n.make1<nn::MatmulOp>({lhs, rhs}, p);
  });
}

void matMulInteger(Node &n) { n.set(0, integerProduct(n, n.in(0), n.in(1), 2, 3)); }

void qLinearMatMul(Node &n) {
  Params a = scalarParams(n, 1, 2), b = params(n, 4, 5), y = scalarParams(n, 6, 7);
  Value acc = integerProduct(n, n.in(0), n.in(3), 2, 5);
  n.set(0, requantize(n, acc, a, b.scales, y, quantizedType(n, 7)));
}

//===----------------------------------------------------------------------===//
// com.microsoft: quantised forms of float operators
//===----------------------------------------------------------------------===//

/// A quantised operand as f32.
Value real(Node &n, size_t x, size_t scale, size_t zeroPoint) {
  return dequantize(n, n.in(x), scalarParams(n, scale, zeroPoint), 0, n.f32());
}

void setQuantized(Node &n, Value y, size_t scale, size_t zeroPoint, Type otherwise) {
  Type element = n.has(zeroPoint) ? quantizedType(n, zeroPoint) : otherwise;
  n.set(0, quantize(n, y, scalarParams(n, scale, zeroPoint), 0, element));
}

template <B kind> void qLinearBinary(Node &n) {
  setQuantized(n, n.binary(kind, real(n, 0, 1, 2), real(n, 3, 4, 5)), 6, 7, Node::elementOf(n.in(0)));
}

void qLinearSigmoid(Node &n) {
  setQuantized(n, n.unary(U::sigmoid, real(n, 0, 1, 2)), 3, 4, Node::elementOf(n.in(0)));
}

void qLinearLeakyRelu(Node &n) {
  setQuantized(n, n.unary(U::leaky_relu, real(n, 0, 1, 2), n.attrFloat("alpha", 0.01f)), 3, 4, Node::elementOf(n.in(0)));
}

void qLinearSoftmax(Node &n) {
  Value x = real(n, 0, 1, 2);
  nn::SoftmaxOp::Properties p;
  p.axis = n.i64(n.axis(n.attrInt("axis", -1), Node::rankOf(x)));
  if (n.attrInt("opset") < 13 && p.axis.getInt() != Node::rankOf(x) - 1)
    n.refuse("flattens its input as Softmax before opset 13 does, expected the last axis");
  setQuantized(n, n.make1<nn::SoftmaxOp>(x, p), 3, 4, Node::elementOf(n.in(0)));
}

void qLinearGlobalAveragePool(Node &n) {
  Value x = real(n, 0, 1, 2);
  int64_t rank = Node::rankOf(x), first = n.attrInt("channels_last", 0) ? 1 : 2;
  Ints axes;
  for (int64_t i = first; i < rank - (first == 1); ++i)
    axes.push_back(i);
  setQuantized(n, n.reduce(nn::ReduceKind::mean, x, axes, true), 3, 4, Node::elementOf(n.in(0)));
}

void qLinearConcat(Node &n) {
  SmallVector<Value> parts;
  if (n.numInputs() < 5 || n.numInputs() % 3 != 2)
    n.refuse("has " + Twine(n.numInputs()) + " inputs, expected 2 and three for each tensor");
  for (size_t i = 2; i < n.numInputs(); i += 3)
    parts.push_back(real(n, i, i + 1, i + 2));
  int64_t axis = n.axis(n.attrInt("axis"), Node::rankOf(parts[0]));
  setQuantized(n, n.concat(parts, axis), 0, 1, Node::elementOf(n.in(2)));
}

/// Unpacks `bits`-wide values, lowest bits first; each row of `perRow` starts at a byte.
std::vector<uint8_t> unpack(ArrayRef<char> bytes, int64_t rows, int64_t perRow, int64_t bits) {
  int64_t rowBytes = int64_t(llvm::divideCeil(perRow * bits, 8)), perByte = 8 / bits;
  std::vector<uint8_t> values;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < perRow; ++i)
      values.push_back((uint8_t(bytes[r * rowBytes + i / perByte]) >> (i % perByte * bits)) & ((1 << bits) - 1));
  return values;
}

/// A constant's bytes; refuses a size other than the expected one.
std::vector<char> constantBytes(Node &n, size_t i, const char *what, int64_t expected) {
  ElementsAttr attr = nn::getConstantValue(n.in(i));
  if (!attr)
    n.refuseRuntime(i, what);
  std::vector<char> bytes = nn::constantBytes(attr);
  if (int64_t(bytes.size()) != expected)
    n.refuse(n.inputName(i) + " has " + Twine(bytes.size()) + " bytes, expected " + Twine(expected));
  return bytes;
}

/// A [..., K] times B [N, K] in blocks along K: quantised values, packed in blocks that fill whole bytes; a last
/// block that K does not fill is padded.
void matMulNBits(Node &n) {
  Value a = n.in(0);
  int64_t k = n.attrInt("K"), columns = n.attrInt("N"), bits = n.attrInt("bits", 4), block = n.attrInt("block_size");
  if ((bits != 2 && bits != 4 && bits != 8) || block < 16 || (block & (block - 1)) || block > (1 << 20) || k < 1 ||
      columns < 1 || k > (1 << 26) || columns > (1 << 26))
    n.refuse("has K " + Twine(k) + ", N " + Twine(columns) + ", " + Twine(bits) + " bits and blocks of " + Twine(block) +
             ", expected 2, 4 or 8 bits and a power of two from 16");
  if (n.has(4))
    n.refuse("reorders K with g_idx, which is not supported");
  int64_t blocks = llvm::divideCeil(k, block);
  std::vector<char> packed = constantBytes(n, 1, "weight", columns * blocks * (block * bits / 8));
  std::vector<uint8_t> padded = unpack(packed, columns * blocks, block, bits);
  std::vector<char> values;
  for (int64_t row = 0; row < columns; ++row)
    values.insert(values.end(), padded.begin() + row * blocks * block, padded.begin() + row * blocks * block + k);
  Params p;
  p.scales = n.floats(2, "scale");
  if (int64_t(p.scales.size()) != columns * blocks)
    n.refuse("has " + Twine(p.scales.size()) + " scales, expected " + Twine(columns * blocks));
  p.zeroPoints.assign(columns * blocks, 1 << (bits - 1));
  if (n.has(3)) {
    if (Node::isFloat(n.in(3)))
      n.refuse("its zero points are " + n.text(n.in(3)) + ", expected packed ui8");
    std::vector<char> bytes = constantBytes(n, 3, "zero point", columns * int64_t(llvm::divideCeil(blocks * bits, 8)));
    std::vector<uint8_t> zero = unpack(bytes, columns, blocks, bits);
    p.zeroPoints.assign(zero.begin(), zero.end());
  }
  Type u8 = IntegerType::get(n.context(), 8, IntegerType::Unsigned);
  Value weight = n.constant(RankedTensorType::get({columns, k}, u8), values);
  Value b = dequantize(n, weight, p, 1, Node::elementOf(a), block);
  n.set(0, n.matmul(a, b, n.inOrNull(5), false, /*transposeRhs=*/true));
}

constexpr OpRow rows[] = {
    {"", "QuantizeLinear", quantizeLinear},
    {"", "DequantizeLinear", dequantizeLinear},
    {"", "DynamicQuantizeLinear", dynamicQuantizeLinear},
    {"", "QLinearConv", qLinearConv},
    {"", "QLinearMatMul", qLinearMatMul},
    {"", "ConvInteger", convInteger},
    {"", "MatMulInteger", matMulInteger},
    {"com.microsoft", "QuantizeLinear", quantizeLinear},
    {"com.microsoft", "DequantizeLinear", dequantizeLinear},
    {"com.microsoft", "QLinearAdd", qLinearBinary<B::add>},
    {"com.microsoft", "QLinearMul", qLinearBinary<B::mul>},
    {"com.microsoft", "QLinearSigmoid", qLinearSigmoid},
    {"com.microsoft", "QLinearLeakyRelu", qLinearLeakyRelu},
    {"com.microsoft", "QLinearSoftmax", qLinearSoftmax},
    {"com.microsoft", "QLinearGlobalAveragePool", qLinearGlobalAveragePool},
    {"com.microsoft", "QLinearConcat", qLinearConcat},
    {"com.microsoft", "MatMulNBits", matMulNBits},
};

} // namespace

ArrayRef<OpRow> quantizationRows() { return rows; }

} // namespace ajour::onnx_import
