//===- Node.cpp - one node being imported ---------------------------------------===//
#include "Node.h"
#include "Importer.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/SetVector.h"

#include <limits>

using namespace mlir;

namespace ajour::onnx_import {

MLIRContext *Node::context() const { return importer.context; }
OpBuilder &Node::opBuilder() const { return importer.builder; }

std::string numberText(double value) {
  char text[32];
  snprintf(text, sizeof text, "%g", value);
  return text;
}

void Node::refuse(const Twine &message) {
  emitError(loc) << message;
  throw Refused();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

std::string Node::inputName(size_t i) const {
  return i < numInputs() ? "input '" + proto.input(int(i)) + "'" : "input " + std::to_string(i);
}

Entry &Node::entry(size_t i) {
  if (!has(i))
    refuse("needs input " + Twine(i) + ", which is missing");
  return importer.lookup(*this, proto.input(int(i)));
}

Value Node::in(size_t i) {
  Entry &e = entry(i);
  if (e.poisoned)
    throw Refused();
  if (!e.value)
    e.value = importer.materialize(*this, e, proto.input(int(i)));
  return e.value;
}

int32_t Node::onnxType(size_t i) { return has(i) ? entry(i).onnxType : 0; }

std::optional<Dims> Node::exprsOrNone(size_t i) {
  Entry &e = entry(i);
  if (e.exprs)
    return e.exprs;
  Value v = in(i);
  ElementsAttr attr = nn::getConstantValue(v);
  // Longer constants are never shapes.
  if (!attr || rankOf(v) > 1 || typeOf(v).getNumElements() > 64)
    return std::nullopt;
  std::optional<std::vector<int64_t>> values = nn::constantInts(attr);
  if (!values)
    return std::nullopt;
  Dims result;
  for (int64_t value : *values)
    result.push_back(dim(value));
  return result;
}

Dims Node::exprs(size_t i, const char *what) {
  std::optional<Dims> result = exprsOrNone(i);
  if (!result)
    refuseRuntime(i, what);
  return *result;
}

/// The model's inputs that a value is computed from.
static void collectInputs(Value value, llvm::SetVector<Value> &seen, SmallVectorImpl<unsigned> &arguments) {
  SmallVector<Value> work{value};
  while (!work.empty()) {
    Value v = work.pop_back_val();
    if (!seen.insert(v))
      continue;
    if (auto argument = dyn_cast<BlockArgument>(v))
      arguments.push_back(argument.getArgNumber());
    else
      llvm::append_range(work, v.getDefiningOp()->getOperands());
  }
}

void Node::refuseRuntime(size_t i, const char *what) {
  llvm::SetVector<Value> seen;
  SmallVector<unsigned> arguments;
  collectInputs(in(i), seen, arguments);
  std::string names, remedy;
  for (unsigned argument : arguments) {
    names += (names.empty() ? "'" : ", '") + importer.argumentNames[argument] + "'";
    remedy += " --bind " + importer.argumentNames[argument] + "=FILE";
  }
  refuse(Twine("its ") + what + " (" + inputName(i) + ") must be known when compiling, but depends on the model's " +
         (arguments.size() == 1 ? "input " : "inputs ") + names + "; give the value with" + remedy);
}

Ints Node::ints(size_t i, const char *what) {
  Value v = in(i);
  ElementsAttr attr = nn::getConstantValue(v);
  if (!attr) {
    if (entry(i).exprs)
      refuse(Twine("its ") + what + " (" + inputName(i) + ") is " + text(*entry(i).exprs) +
             ", expected numbers; fix the dimension with --dim NAME=SIZE");
    refuseRuntime(i, what);
  }
  std::optional<std::vector<int64_t>> values = nn::constantInts(attr);
  if (!values)
    refuse(Twine("its ") + what + " (" + inputName(i) + ") has type " + text(v) + ", expected integers");
  return *values;
}

int64_t Node::oneInt(size_t i, const char *what) {
  Ints values = ints(i, what);
  if (values.size() != 1)
    refuse(Twine("its ") + what + " (" + inputName(i) + ") has " + Twine(values.size()) + " elements, expected 1");
  return values[0];
}

std::vector<float> Node::floats(size_t i, const char *what) {
  Value v = in(i);
  ElementsAttr attr = nn::getConstantValue(v);
  if (!attr)
    refuseRuntime(i, what);
  std::optional<std::vector<float>> values = nn::constantFloats(attr);
  if (!values)
    refuse(Twine("its ") + what + " (" + inputName(i) + ") has type " + text(v) + ", expected floats");
  return *values;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

const ::onnx::AttributeProto *Node::findAttr(StringRef name) const {
  for (const ::onnx::AttributeProto &attr : proto.attribute())
    if (attr.name() == name)
      return importer.resolve(scope, attr);
  return nullptr;
}

static const char *attrTypeName(int type) {
  static const char *const names[] = {"nothing", "a float",  "an int",   "a string",  "a tensor",        "a graph",
                                      "floats",  "ints",     "strings",  "tensors",   "graphs",          "a sparse tensor",
                                      "sparse tensors", "a type", "types"};
  return type >= 0 && type < int(std::size(names)) ? names[type] : "something unknown";
}

static const ::onnx::AttributeProto *typedAttr(Node &n, StringRef name, int type) {
  const ::onnx::AttributeProto *attr = n.findAttr(name);
  if (attr && attr->type() != type)
    n.refuse("attribute '" + name + "' holds " + attrTypeName(attr->type()) + ", expected " + attrTypeName(type));
  return attr;
}

int64_t Node::attrInt(StringRef name, int64_t otherwise) {
  const auto *attr = typedAttr(*this, name, ::onnx::AttributeProto::INT);
  return attr ? attr->i() : otherwise;
}

int64_t Node::attrInt(StringRef name) {
  if (!hasAttr(name))
    refuse("needs attribute '" + name + "', which is missing");
  return attrInt(name, 0);
}

float Node::attrFloat(StringRef name, float otherwise) {
  const auto *attr = typedAttr(*this, name, ::onnx::AttributeProto::FLOAT);
  return attr ? attr->f() : otherwise;
}

std::string Node::attrString(StringRef name, StringRef otherwise) {
  const auto *attr = typedAttr(*this, name, ::onnx::AttributeProto::STRING);
  return attr ? attr->s() : otherwise.str();
}

Ints Node::attrInts(StringRef name, Ints otherwise) {
  const auto *attr = typedAttr(*this, name, ::onnx::AttributeProto::INTS);
  return attr ? Ints(attr->ints().begin(), attr->ints().end()) : otherwise;
}

std::vector<float> Node::attrFloats(StringRef name, std::vector<float> otherwise) {
  const auto *attr = typedAttr(*this, name, ::onnx::AttributeProto::FLOATS);
  return attr ? std::vector<float>(attr->floats().begin(), attr->floats().end()) : otherwise;
}

Value Node::attrTensor(StringRef name) {
  const auto *attr = typedAttr(*this, name, ::onnx::AttributeProto::TENSOR);
  if (!attr)
    return nullptr;
  TensorData data;
  std::string problem;
  if (!readTensor(importer.file(), attr->t(), context(), data, problem))
    refuse("attribute '" + name + "' " + problem);
  return constant(data.type, data.bytes);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void Node::set(size_t i, Value value, int32_t onnxType) {
  if (!wants(i))
    return;
  Entry e;
  e.value = value;
  e.onnxType = onnxType;
  importer.define(*this, proto.output(int(i)), std::move(e));
}

void Node::setExprs(size_t i, Dims exprs, bool isScalar, Type element) {
  if (!wants(i))
    return;
  Entry e;
  e.exprs = std::move(exprs);
  e.isScalar = isScalar;
  e.exprElement = element;
  importer.define(*this, proto.output(int(i)), std::move(e));
}

SmallVector<Value> Node::finish(Operation *op) {
  for (Type t : op->getResultTypes()) {
    auto type = cast<RankedTensorType>(t);
    int64_t elements = type.hasStaticShape() ? checkedElements(type.getShape()) : 0;
    if (elements < 0 || type.getRank() > mostDimensions) {
      op->erase();
      refuse("makes " + text(type) + ", which has too many elements or dimensions");
    }
  }
  if (failed(verify(op, /*verifyRecursively=*/false))) {
    op->erase();
    throw Refused();
  }
  SmallVector<Value> results;
  if (importer.fold(op, results))
    return results;
  results.assign(op->result_begin(), op->result_end());
  return results;
}

//===----------------------------------------------------------------------===//
// nn operations
//===----------------------------------------------------------------------===//

Value Node::constant(RankedTensorType type, ArrayRef<char> bytes) {
  return nn::ConstantOp::create(opBuilder(), loc, type, nn::makeConstant(type, bytes));
}

/// Appends one number in an element type's representation.
static void appendNumber(SmallVectorImpl<char> &bytes, double value, int64_t integer, Type element) {
  auto append = [&](const void *p, size_t size) {
    bytes.append(static_cast<const char *>(p), static_cast<const char *>(p) + size);
  };
  if (auto type = dyn_cast<FloatType>(element)) {
    llvm::APFloat number(value);
    bool losesInfo;
    number.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    uint64_t bits = number.bitcastToAPInt().getZExtValue();
    append(&bits, type.getWidth() / 8);
    return;
  }
  append(&integer, nn::elementBytes(element));
}

Value Node::constantInts(ArrayRef<int64_t> values, Type element) {
  SmallVector<char> bytes;
  for (int64_t value : values)
    appendNumber(bytes, double(value), value, element);
  return constant(RankedTensorType::get({int64_t(values.size())}, element), bytes);
}

/// A real number as an integer: truncated, the nearest end of the range beyond it, 0 for NaN.
static int64_t toInteger(double value) {
  constexpr double bound = 9223372036854775808.0; // 2^63
  if (value != value)
    return 0;
  if (value >= bound)
    return std::numeric_limits<int64_t>::max();
  return value < -bound ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(value);
}

Value Node::constantFloats(ArrayRef<float> values, Type element) {
  SmallVector<char> bytes;
  for (float value : values)
    appendNumber(bytes, value, toInteger(value), element);
  return constant(RankedTensorType::get({int64_t(values.size())}, element), bytes);
}

Value Node::scalar(double value, Type element) {
  SmallVector<char> bytes;
  appendNumber(bytes, value, isa<FloatType>(element) ? 0 : toInteger(value), element);
  return constant(RankedTensorType::get({}, element), bytes);
}

Value Node::unary(nn::UnaryKind kind, Value x, float alpha, float beta) {
  nn::UnaryOp::Properties p;
  p.kind = nn::UnaryKindAttr::get(context(), kind);
  p.alpha = builder().getF32FloatAttr(alpha);
  p.beta = builder().getF32FloatAttr(beta);
  return make1<nn::UnaryOp>(x, p);
}

Value Node::binary(nn::BinaryKind kind, Value lhs, Value rhs) {
  importer.unify(*this, dimsOf(lhs), dimsOf(rhs));
  nn::BinaryOp::Properties p;
  p.kind = nn::BinaryKindAttr::get(context(), kind);
  return make1<nn::BinaryOp>({lhs, rhs}, p);
}

Value Node::compare(nn::CompareKind kind, Value lhs, Value rhs) {
  nn::CompareOp::Properties p;
  p.kind = nn::CompareKindAttr::get(context(), kind);
  return make1<nn::CompareOp>({lhs, rhs}, p);
}

Value Node::select(Value condition, Value lhs, Value rhs) { return make1<nn::SelectOp>({condition, lhs, rhs}, {}); }

Value Node::cast(Value x, Type element) {
  return elementOf(x) == element ? x : make1<nn::CastOp>(x, {}, nn::withElementType(typeOf(x), element));
}

Value Node::clamp(Value x, double low, double high) {
  nn::ClampOp::Properties p;
  p.low = builder().getF64FloatAttr(low);
  p.high = builder().getF64FloatAttr(high);
  return make1<nn::ClampOp>(x, p);
}

Value Node::reshape(Value x, ArrayRef<AffineExpr> dims) {
  RankedTensorType type = nn::makeTensor(dims, elementOf(x));
  return type == x.getType() ? x : make1<nn::ReshapeOp>(x, {}, type);
}

Value Node::reshape(Value x, ArrayRef<int64_t> dims) { return reshape(x, dimsFrom(dims)); }

Value Node::broadcast(Value x, ArrayRef<AffineExpr> dims) {
  RankedTensorType type = nn::makeTensor(dims, elementOf(x));
  return type == x.getType() ? x : make1<nn::BroadcastOp>(x, {}, type);
}

/// A dequantised constant stays one: its integers are transposed, so that later passes still see integers.
static Value transposeQuantized(Node &n, Value x, ArrayRef<int64_t> perm) {
  auto op = x.getDefiningOp<nn::DequantizeOp>();
  if (!op || !nn::getConstantValue(op.getInput()) || int64_t(perm.size()) != Node::rankOf(x))
    return nullptr;
  Value integers = n.transpose(op.getInput(), perm);
  nn::DequantizeOp::Properties p = op.getProperties();
  int64_t axis = op.getAxis() < 0 ? op.getAxis() + Node::rankOf(x) : op.getAxis();
  if (op.getScales().size() > 1)
    p.axis = n.i64(llvm::find(perm, axis) - perm.begin());
  return n.make1<nn::DequantizeOp>(integers, p, nn::withElementType(Node::typeOf(integers), Node::elementOf(x)));
}

Value Node::transpose(Value x, ArrayRef<int64_t> perm) {
  bool identity = true;
  for (auto [i, p] : llvm::enumerate(perm))
    identity &= int64_t(i) == p;
  if (identity && int64_t(perm.size()) == rankOf(x))
    return x;
  if (Value v = transposeQuantized(*this, x, perm))
    return v;
  nn::TransposeOp::Properties p;
  p.perm = i64s(perm);
  return make1<nn::TransposeOp>(x, p);
}

Value Node::slice(Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps, ArrayRef<AffineExpr> dims) {
  RankedTensorType type = nn::makeTensor(dims, elementOf(x));
  if (type == x.getType() && llvm::all_of(starts, [](int64_t s) { return s == 0; }) &&
      llvm::all_of(steps, [](int64_t s) { return s == 1; }))
    return x;
  nn::SliceOp::Properties p;
  p.starts = i64s(starts);
  p.steps = i64s(steps);
  return make1<nn::SliceOp>(x, p, type);
}

Value Node::sliceAxis(Value x, int64_t axis, int64_t start, AffineExpr size) {
  SmallVector<int64_t> starts(rankOf(x), 0), steps(rankOf(x), 1);
  Dims dims = dimsOf(x);
  starts[axis] = start;
  dims[axis] = size;
  return slice(x, starts, steps, dims);
}

Value Node::concat(ValueRange values, int64_t axis) {
  if (values.size() == 1)
    return values[0];
  for (Value v : values.drop_front()) {
    Dims first = dimsOf(values[0]), other = dimsOf(v);
    if (first.size() != other.size() || axis >= int64_t(first.size()))
      break; // the verifier says so
    other[axis] = first[axis];
    importer.unify(*this, first, other);
  }
  nn::ConcatOp::Properties p;
  p.axis = i64(axis);
  return make1<nn::ConcatOp>(values, p);
}

Value Node::pad(Value x, ArrayRef<int64_t> low, ArrayRef<int64_t> high, nn::PadMode mode, Value value) {
  nn::PadOp::Properties p;
  p.low = i64s(low);
  p.high = i64s(high);
  p.mode = nn::PadModeAttr::get(context(), mode);
  SmallVector<Value> operands{x};
  if (value)
    operands.push_back(value);
  return make1<nn::PadOp>(operands, p);
}

Value Node::gather(Value data, Value indices, int64_t axis, int64_t batchDims) {
  nn::GatherOp::Properties p;
  p.axis = i64(axis);
  p.batch_dims = i64(batchDims);
  return make1<nn::GatherOp>({data, indices}, p);
}

Value Node::reduce(nn::ReduceKind kind, Value x, ArrayRef<int64_t> axes, bool keepDims) {
  if (axes.empty())
    return x;
  nn::ReduceOp::Properties p;
  p.kind = nn::ReduceKindAttr::get(context(), kind);
  p.axes = i64s(axes);
  if (keepDims)
    p.keep_dims = builder().getUnitAttr();
  return make1<nn::ReduceOp>(x, p);
}

Value Node::argReduce(nn::ArgKind kind, Value x, int64_t axis, bool keepDims, bool last) {
  nn::ArgReduceOp::Properties p;
  p.kind = nn::ArgKindAttr::get(context(), kind);
  p.axis = i64(axis);
  if (keepDims)
    p.keep_dims = builder().getUnitAttr();
  if (last)
    p.select_last = builder().getUnitAttr();
  return make1<nn::ArgReduceOp>(x, p);
}

Value Node::matmul(Value lhs, Value rhs, Value bias, bool transposeLhs, bool transposeRhs) {
  nn::MatmulOp::Properties p;
  if (transposeLhs)
    p.transpose_lhs = builder().getUnitAttr();
  if (transposeRhs)
    p.transpose_rhs = builder().getUnitAttr();
  SmallVector<Value> operands{lhs, rhs};
  if (bias)
    operands.push_back(bias);
  return make1<nn::MatmulOp>(operands, p);
}

Value Node::iota(ArrayRef<AffineExpr> dims, int64_t axis, Type element) {
  nn::IotaOp::Properties p;
  p.axis = i64(axis);
  return make1<nn::IotaOp>({}, p, nn::makeTensor(dims, element));
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

Dims Node::dimsFrom(ArrayRef<int64_t> sizes) const {
  Dims dims;
  for (int64_t size : sizes)
    dims.push_back(dim(size));
  return dims;
}

std::string Node::text(RankedTensorType type) const { return nn::toString(type, importer.symbolNames()); }
std::string Node::text(ArrayRef<AffineExpr> dims) const { return nn::toString(dims, importer.symbolNames()); }

Ints Node::staticDims(Value v, int64_t from, int64_t to, const char *what) {
  Dims dims = dimsOf(v);
  if (to > int64_t(dims.size()))
    refuse(Twine(what) + " needs dimension " + Twine(to - 1) + " of " + text(v));
  Ints sizes;
  for (int64_t i = from; i < to; ++i) {
    std::optional<int64_t> size = nn::getConstant(dims[i]);
    if (!size)
      refuse(Twine(what) + " needs a fixed size in dimension " + Twine(i) + " of " + text(v) +
             "; fix it with --dim NAME=SIZE");
    // Windows and the like are computed from it.
    if (*size > int64_t(1) << 31)
      refuse(Twine(what) + " has size " + Twine(*size) + " in dimension " + Twine(i) + " of " + text(v));
    sizes.push_back(*size);
  }
  return sizes;
}

int64_t Node::axis(int64_t value, int64_t rank) {
  if (value < -rank || value >= rank)
    refuse("axis " + Twine(value) + " is outside a tensor of rank " + Twine(rank));
  return value < 0 ? value + rank : value;
}

Ints Node::axes(const Ints &values, int64_t rank) {
  Ints result;
  for (int64_t value : values)
    result.push_back(axis(value, rank));
  llvm::sort(result);
  for (size_t i = 1; i < result.size(); ++i)
    if (result[i] == result[i - 1])
      refuse("axis " + Twine(result[i]) + " is given twice");
  return result;
}

} // namespace ajour::onnx_import
