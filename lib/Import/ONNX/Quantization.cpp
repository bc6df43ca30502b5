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

Value dequantize(Node &n, Value x, const Params &params, int64_t axis, Type element) {
  nn::DequantizeOp::Properties p;
  p.scales = n.builder().getDenseF32ArrayAttr(params.scales);
  p.zero_points = n.builder().getDenseI32ArrayAttr(params.zeroPoints);
  p.axis = n.i64(axis);
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
             ", expected an integer of 2 to 16 bits");
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
  if (unsigned bits = onnxTypeBits(type); bits && bits < 8) {
    double values = double(1 << bits), low = nn::isUnsigned(element) ? 0 : -values / 2;
    result = n.clamp(result, low, low + values - 1);
  }
  n.set(0, result, type);
}

/// Parameters in blocks along an axis, one for each element of it.
Value repeated(Node &n, Value parameters, int64_t axis, int64_t size, int64_t block) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < size; ++i)
    indices.push_back(i / block);
  return n.gather(parameters, n.constantInts(indices, n.i64Type()), axis);
}

/// Small floats of a constant as indices of its values, which are at most 256.
std::pair<Value, Value> asCodebook(Node &n, Value x) {
  std::vector<float> values = *nn::constantFloats(nn::getConstantValue(x)), entries = values;
  // Bits are compared: the zeros differ, and NaN equals itself.
  auto bits = [](float value) { return llvm::bit_cast<uint32_t>(value); };
  auto isLess = [&](float a, float b) { return bits(a) < bits(b); };
  llvm::sort(entries, isLess);
  entries.erase(std::unique(entries.begin(), entries.end(), [&](float a, float b) { return bits(a) == bits(b); }),
                entries.end());
  std::vector<char> indices;
  for (float value : values)
    indices.push_back(char(llvm::lower_bound(entries, value, isLess) - entries.begin()));
  Type u8 = IntegerType::get(n.context(), 8, IntegerType::Unsigned);
  return {n.constant(nn::withElementType(Node::typeOf(x), u8), indices), n.constantFloats(entries, n.f32())};
}

/// How many bits the values of an 8-bit operand take in the file.
int64_t byteBits(Node &n, size_t i) {
  unsigned bits = onnxTypeBits(n.onnxType(i));
  return bits && bits < 8 ? bits : 8;
}

/// DequantizeLinear with scales and zero points in blocks along an axis.
Value dequantizeBlocks(Node &n, int64_t axis, int64_t block) {
  Value x = n.in(0), scale = n.in(1), zero = n.inOrNull(2);
  Dims expected = Node::dimsOf(x);
  if (block < 1)
    n.refuse("has blocks of " + Twine(block) + ", expected at least 1");
  expected[axis] = expected[axis].ceilDiv(block);
  for (Value parameters : {scale, zero})
    if (parameters && Node::dimsOf(parameters) != expected)
      n.refuse("has parameters " + n.text(parameters) + " for blocks of " + Twine(block) + " along axis " + Twine(axis) +
               " of " + n.text(x) + ", expected " + n.text(expected));
  Type element = Node::elementOf(scale);
  bool isStatic = Node::typeOf(x).hasStaticShape(), isByte = Node::elementOf(x).isInteger(8);
  if (isStatic && isByte) {
    nn::DequantizeGroupedOp::Properties p;
    p.axis = n.i64(axis);
    p.group = n.i64(block);
    p.bits = n.i64(byteBits(n, 0));
    SmallVector<Value> operands{x, scale};
    if (zero)
      operands.push_back(zero);
    return n.make1<nn::DequantizeGroupedOp>(operands, p, nn::withElementType(Node::typeOf(x), element));
  }
  if (isStatic && n.isConstant(0) && Node::isFloat(x) && n.onnxType(0) >= OnnxFloat8E4M3FN) {
    auto [indices, table] = asCodebook(n, x);
    nn::DequantizeCodebookOp::Properties p;
    p.axis = n.i64(axis);
    p.group = n.i64(block);
    return n.make1<nn::DequantizeCodebookOp>({indices, table, scale}, p, nn::withElementType(Node::typeOf(x), element));
  }
  int64_t size = n.staticDims(x, axis, axis + 1, "the blocked axis")[0];
  scale = repeated(n, scale, axis, size, block);
  if (Node::isFloat(x))
    return n.mul(n.cast(x, element), scale);
  Value wide = n.cast(x, n.i32());
  if (zero)
    wide = n.sub(wide, n.cast(repeated(n, zero, axis, size, block), n.i32()));
  return n.mul(n.cast(wide, element), scale);
}

void dequantizeLinear(Node &n) {
  Value x = n.in(0), scale = n.in(1);
  int64_t axis = n.attrInt("axis", 1), rank = Node::rankOf(x), block = n.attrInt("block_size", 0);
  Type element = Node::elementOf(scale);
  if (!isa<FloatType>(element))
    n.refuse("its scale is " + n.text(scale) + ", expected floats");
  if (block)
    return n.set(0, dequantizeBlocks(n, n.axis(axis, rank), block));
  if (Node::isFloat(x)) // 8- and 4-bit floats, which are decoded as f32
    return n.set(0, n.mul(n.cast(x, element), alongAxis(n, scale, axis, rank)));
  if (known(n, 1, 2)) {
    Params p = params(n, 1, 2);
    return n.set(0, dequantize(n, x, p, p.scales.size() == 1 ? 0 : n.axis(axis, rank), element));
  }
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

Type byteType(Node &n) { return IntegerType::get(n.context(), 8, IntegerType::Unsigned); }

/// Unpacked bytes [rows, perRow] of a constant whose rows start at a byte; `keep` of each row stay.
Value unpacked(Node &n, size_t i, const char *what, int64_t rows, int64_t perRow, int64_t bits, int64_t keep) {
  std::vector<char> packed = constantBytes(n, i, what, rows * int64_t(llvm::divideCeil(perRow * bits, 8)));
  std::vector<uint8_t> padded = unpack(packed, rows, perRow, bits);
  std::vector<char> values;
  for (int64_t row = 0; row < rows; ++row)
    values.insert(values.end(), padded.begin() + row * perRow, padded.begin() + row * perRow + keep);
  return n.constant(RankedTensorType::get({rows, keep}, byteType(n)), values);
}

/// Codes of `bits` without zero points of their own, which have 2^(bits - 1): signed, with zero points of 0.
Value centered(Node &n, Value codes, int64_t bits) {
  std::vector<char> values = nn::constantBytes(nn::getConstantValue(codes));
  for (char &value : values)
    value = char(uint8_t(value) - (1 << (bits - 1)));
  return n.constant(nn::withElementType(Node::typeOf(codes), IntegerType::get(n.context(), 8)), values);
}

/// Scales or real zero points of MatMulNBits as [N, blocks].
Value blockParameters(Node &n, size_t i, const char *what, int64_t columns, int64_t blocks) {
  Value v = n.in(i);
  auto count = nn::getConstant(nn::numElements(Node::dimsOf(v), n.context()));
  if (!Node::isFloat(v) || count != columns * blocks)
    n.refuse(n.inputName(i) + " is " + n.text(v) + ", expected " + Twine(columns * blocks) + " " + what + "s");
  return n.reshape(v, ArrayRef<int64_t>{columns, blocks});
}

/// The group of each of K elements when g_idx differs from groups in a row; nothing otherwise.
std::optional<Ints> reorderedGroups(Node &n, int64_t k, int64_t block) {
  if (!n.has(4))
    return std::nullopt;
  Ints groups = n.ints(4, "g_idx");
  int64_t blocks = llvm::divideCeil(k, block);
  if (int64_t(groups.size()) != k)
    n.refuse(n.inputName(4) + " has " + Twine(groups.size()) + " elements, expected K = " + Twine(k));
  bool inOrder = true;
  for (auto [i, group] : llvm::enumerate(groups)) {
    if (group < 0 || group >= blocks)
      n.refuse(n.inputName(4) + " names group " + Twine(group) + " of " + Twine(blocks));
    inOrder &= group == int64_t(i) / block;
  }
  return inOrder ? std::nullopt : std::optional(groups);
}

/// A [..., K] times B [N, K] in blocks along K: quantised values, packed in blocks that fill whole bytes; a last
/// block that K does not fill is padded. g_idx names each element's block; elements of a block may lie anywhere.
void matMulNBits(Node &n) {
  Value a = n.in(0);
  int64_t k = n.attrInt("K"), columns = n.attrInt("N"), bits = n.attrInt("bits", 4), block = n.attrInt("block_size");
  if ((bits != 2 && bits != 4 && bits != 8) || block < 16 || (block & (block - 1)) || block > (1 << 20) || k < 1 ||
      columns < 1 || k > (1 << 26) || columns > (1 << 26))
    n.refuse("has K " + Twine(k) + ", N " + Twine(columns) + ", " + Twine(bits) + " bits and blocks of " + Twine(block) +
             ", expected 2, 4 or 8 bits and a power of two from 16");
  int64_t blocks = llvm::divideCeil(k, block);
  Value weight = unpacked(n, 1, "weight", columns, blocks * block, bits, k);
  Value scales = blockParameters(n, 2, "scale", columns, blocks), zeros;
  if (!n.has(3))
    weight = centered(n, weight, bits);
  else if (Node::isFloat(n.in(3)))
    zeros = n.cast(blockParameters(n, 3, "zero point", columns, blocks), Node::elementOf(scales));
  else
    zeros = unpacked(n, 3, "zero point", columns, blocks, bits, blocks);
  if (std::optional<Ints> groups = reorderedGroups(n, k, block)) {
    // Parameters for each element; sorting K by group would move the reordering to the activations.
    Value indices = n.constantInts(*groups, n.i64Type());
    scales = n.gather(scales, indices, 1);
    zeros = zeros ? n.gather(zeros, indices, 1) : zeros;
    block = 1;
  }
  nn::DequantizeGroupedOp::Properties p;
  p.axis = n.i64(1);
  p.group = n.i64(block);
  p.bits = n.i64(bits);
  SmallVector<Value> operands{weight, scales};
  if (zeros)
    operands.push_back(zeros);
  Value b = n.make1<nn::DequantizeGroupedOp>(operands, p,
                                             nn::withElementType(Node::typeOf(weight), Node::elementOf(a)));
  Value product = n.matmul(a, b, n.inOrNull(5), false, /*transposeRhs=*/true);
  // Level 4 lets A be rounded to 8 bits in the same blocks.
  if (auto matmul = product.getDefiningOp<nn::MatmulOp>();
      matmul && n.attrInt("accuracy_level", 0) == 4 && block > 1 && Node::elementOf(a).isF32())
    matmul.setLhsGroup(block);
  n.set(0, product);
}

/// Gather of slices from a tensor quantised in blocks. Bytes hold values of `bits`, packed along the last axis, with
/// a zero point in the middle unless one is given; 4-bit types have none.
void gatherBlockQuantized(Node &n) {
  int64_t bits = n.attrInt("bits", 4), block = n.attrInt("block_size", 128);
  Value data = n.in(0), scales = n.in(2), zeros = n.inOrNull(3);
  bool isPacked = byteBits(n, 0) == 8;
  if ((bits != 4 && bits != 8) || block < 16 || (block & (block - 1)) || (!isPacked && bits != 4))
    n.refuse("has " + Twine(bits) + " bits and blocks of " + Twine(block) +
             ", expected 4 or 8 bits and a power of two from 16");
  if (!Node::elementOf(data).isInteger(8) || (isPacked && !nn::isUnsigned(Node::elementOf(data))))
    n.refuse("its data is " + n.text(data) + ", expected 4-bit integers or ui8");
  auto unpackLast = [&](size_t i, const char *what) {
    Ints sizes = n.staticDims(n.in(i), 0, Node::rankOf(n.in(i)), what);
    int64_t last = sizes.empty() ? 1 : sizes.back(), rows = 1;
    for (size_t d = 0; d + 1 < sizes.size(); ++d)
      rows *= sizes[d];
    Value flat = unpacked(n, i, what, rows, last * (8 / bits), bits, last * (8 / bits));
    if (!sizes.empty())
      sizes.back() *= 8 / bits;
    return n.reshape(flat, ArrayRef<int64_t>(sizes));
  };
  if (isPacked)
    data = unpackLast(0, "data");
  int64_t rank = Node::rankOf(data), axis = n.axis(n.attrInt("quantize_axis", 1), rank);
  int64_t gatherAxis = n.axis(n.attrInt("gather_axis", 0), rank);
  if (!Node::isFloat(scales))
    n.refuse("its scales are " + n.text(scales) + ", expected floats");
  if (isPacked && zeros) {
    zeros = unpackLast(3, "zero point");
    // An odd count of zero points is padded to whole bytes.
    AffineExpr wanted = Node::dimsOf(scales).back();
    if (Node::rankOf(zeros) == Node::rankOf(scales) && Node::dimsOf(zeros).back() != wanted)
      zeros = n.sliceAxis(zeros, rank - 1, 0, wanted);
  } else if (isPacked) {
    data = centered(n, data, bits);
  }
  nn::DequantizeGroupedOp::Properties p;
  p.axis = n.i64(axis);
  p.group = n.i64(block);
  p.bits = n.i64(bits);
  SmallVector<Value> operands{data, scales};
  if (zeros)
    operands.push_back(zeros);
  Value real = n.make1<nn::DequantizeGroupedOp>(operands, p,
                                                nn::withElementType(Node::typeOf(data), Node::elementOf(scales)));
  n.set(0, n.gather(real, n.in(1), gatherAxis));
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
    {"com.microsoft", "GatherBlockQuantized", gatherBlockQuantized},
};

} // namespace

ArrayRef<OpRow> quantizationRows() { return rows; }

} // namespace ajour::onnx_import
