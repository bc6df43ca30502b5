//===- LayerBuilder.cpp - layers of language models as nn -----------------------------===//
#include "LayerBuilder.h"

#include "ajour/ABI/ElementTypes.h"
#include "ajour/Support/NodeLocation.h"

#include <cstring>

using namespace mlir;

namespace ajour::architectures {

std::string nameOf(StringRef pattern, int64_t layer) {
  std::string name = pattern.str();
  if (size_t place = name.find("{}"); place != std::string::npos)
    name.replace(place, 2, std::to_string(layer));
  return name;
}

LayerBuilder::LayerBuilder(MLIRContext *context, const std::string &path, const std::string &architecture, const WeightSource &weights)
    : context(context), path(path), architecture(architecture), weights(weights), b(context),
      location(FileLineColLoc::get(context, path, 0, 0)), tokens(getAffineSymbolExpr(0, context)),
      f32(Float32Type::get(context)), i64(IntegerType::get(context, 64)) {}

void LayerBuilder::at(StringRef weight, StringRef kind) {
  location = makeNodeLocation(context, {path, weight.str(), kind.str(), nodes++});
}

void LayerBuilder::fail(const Twine &what) {
  emitError(location) << what;
  good = false;
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

Value LayerBuilder::constant(RankedTensorType type, ArrayRef<char> bytes) {
  return nn::ConstantOp::create(b, location, type, nn::makeConstant(type, bytes));
}

Value LayerBuilder::constant(ArrayRef<int64_t> shape, ArrayRef<float> values) {
  return constant(nn::makeTensor(shape, f32), ArrayRef(reinterpret_cast<const char *>(values.data()), values.size() * 4));
}

static std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + (shape[i] == -1 ? "?" : std::to_string(shape[i]));
  return text + "]";
}

const Weight *LayerBuilder::require(const std::string &name, ArrayRef<int64_t> shape, StringRef kind) {
  at(name, kind);
  const Weight *weight = weights.find(name);
  if (!weight) {
    fail("the model has no weight of this name, which its architecture '" + Twine(architecture) + "' needs");
    return nullptr;
  }
  bool fits = weight->shape.size() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = shape[i] == -1 ? weight->shape[i] > 0 : shape[i] == weight->shape[i];
  if (!fits) {
    fail("the weight's shape is " + Twine(shapeText(weight->shape)) + ", expected " + shapeText(shape));
    return nullptr;
  }
  return weight;
}

/// A constant of a part of grouped values, or, with weights given, of that part of each one behind the other, read when it is wanted.
template <typename T>
static Value makePart(LayerBuilder &builder, RankedTensorType type, std::vector<T> gguf::Grouped::*part, const gguf::Grouped &grouped,
                      ArrayRef<Weight> weights) {
  if (weights.empty())
    return builder.constant(type, ArrayRef(reinterpret_cast<const char *>((grouped.*part).data()), (grouped.*part).size() * sizeof(T)));
  return builder.fromFile(type, weights, [part](const Weight &weight, MutableArrayRef<char> to) {
    gguf::Grouped unpacked = weight.unpack();
    assert((unpacked.*part).size() * sizeof(T) == to.size() && "a part of each group");
    std::memcpy(to.data(), (unpacked.*part).data(), to.size());
  });
}

Value LayerBuilder::loadGrouped(const std::vector<int64_t> &shape, const gguf::Grouped &grouped, ArrayRef<Weight> weights) {
  using gguf::Grouped;
  Type element = grouped.isUnsigned ? IntegerType::get(context, 8, IntegerType::Unsigned) : IntegerType::get(context, 8);
  Value values = makePart(*this, nn::makeTensor(shape, element), &Grouped::values, grouped, weights);
  std::vector<int64_t> groups = shape;
  groups.back() /= grouped.group;
  RankedTensorType ofGroups = nn::makeTensor(groups, f32), ofCodes = nn::makeTensor(groups, IntegerType::get(context, 8));
  if (grouped.halfScales.empty()) {
    Value scales = makePart(*this, ofGroups, &Grouped::scales, grouped, weights);
    Value zeroPoints = grouped.zeroPoints.empty() ? Value() : makePart(*this, ofGroups, &Grouped::zeroPoints, grouped, weights);
    return nn::DequantizeGroupedOp::create(b, location, nn::makeTensor(shape, f32), values, scales, zeroPoints,
                                           int64_t(shape.size()) - 1, grouped.group, int64_t(grouped.bits));
  }
  if (grouped.run > 0)
    groups.back() /= grouped.run;
  RankedTensorType ofRuns = nn::makeTensor(groups, Float16Type::get(context));
  // In super-blocks the parameters of groups are codes, dequantised.
  auto parameters = [&](std::vector<uint16_t> Grouped::*halves, std::vector<int8_t> Grouped::*codes) -> Value {
    Value numbers = makePart(*this, ofRuns, halves, grouped, weights);
    if (grouped.run == 0)
      return numbers;
    Value coded = makePart(*this, ofCodes, codes, grouped, weights);
    return nn::DequantizeGroupedOp::create(b, location, ofGroups, coded, numbers, Value(), int64_t(groups.size()) - 1, grouped.run, 8, false);
  };
  Value scales = parameters(&Grouped::halfScales, &Grouped::scaleCodes);
  Value offsets = grouped.offsets.empty() ? Value() : parameters(&Grouped::offsets, &Grouped::offsetCodes);
  return nn::DequantizeGroupedOp::create(b, location, nn::makeTensor(shape, f32), values, scales, offsets, int64_t(shape.size()) - 1, grouped.group,
                                         int64_t(grouped.bits), bool(offsets));
}

Value LayerBuilder::load(const Weight &weight) { return loadStack(&weight); }

Value LayerBuilder::loadStack(ArrayRef<const Weight *> stack) {
  const Weight &first = *stack[0];
  std::vector<int64_t> shape = first.shape;
  if (stack.size() > 1)
    shape.insert(shape.begin(), int64_t(stack.size()));
  for (const Weight *weight : stack)
    if (weight->shape != first.shape || weight->elementType != first.elementType || weight->blocks != first.blocks ||
        weight->isGrouped() != first.isGrouped() || (stack.size() > 1 && !weight->order().empty())) {
      fail("weights of the layer's experts differ in shape or form, or have their inputs in an order of their own");
      return nullptr;
    }
  return first.isGrouped() ? loadGroupedStack(stack, shape) : loadPlainStack(stack, shape);
}

/// Weights of at least so many bytes stay in the file until they are packed.
static constexpr size_t leastLazyBytes = 64 << 10;

/// Copies of the weights, if they can be read again later, from the file alone, and are worth it; else none.
static std::vector<Weight> weightsInFile(ArrayRef<const Weight *> stack) {
  std::vector<Weight> weights;
  if (!stack[0]->file || stack[0]->bytes.size() < leastLazyBytes || llvm::any_of(stack, [](const Weight *weight) { return weight->quantized; }))
    return weights;
  for (const Weight *weight : stack)
    weights.push_back(*weight);
  return weights;
}

Value LayerBuilder::fromFile(RankedTensorType type, ArrayRef<Weight> weights, std::function<void(const Weight &, MutableArrayRef<char>)> fill) {
  auto make = [weights = weights.vec(), fill = std::move(fill)](MutableArrayRef<char> bytes) {
    size_t size = bytes.size() / weights.size();
    for (size_t i = 0; i < weights.size(); ++i) {
      fill(weights[i], bytes.slice(i * size, size));
      weights[i].release();
    }
  };
  return nn::ConstantOp::create(b, location, type, nn::makeLazyConstant(type, std::move(make)));
}

Value LayerBuilder::loadGroupedStack(ArrayRef<const Weight *> stack, const std::vector<int64_t> &shape) {
  // All weights of a type have the form of its first block.
  if (std::vector<Weight> weights = weightsInFile(stack); !weights.empty()) {
    const gguf::TypeInfo &blocks = *weights[0].blocks;
    return loadGrouped(shape, gguf::unpackBlocks(blocks, weights[0].bytes.take_front(size_t(blocks.blockBytes))), weights);
  }
  gguf::Grouped all = stack[0]->unpack();
  for (const Weight *weight : stack.drop_front()) {
    gguf::Grouped next = weight->unpack();
    if (next.group != all.group || next.isUnsigned != all.isUnsigned || next.zeroPoints.empty() != all.zeroPoints.empty() ||
        next.run != all.run || next.halfScales.empty() != all.halfScales.empty() || next.offsets.empty() != all.offsets.empty()) {
      fail("weights of the layer's experts are quantised in different ways");
      return nullptr;
    }
    auto append = [](auto &to, const auto &from) { to.insert(to.end(), from.begin(), from.end()); };
    append(all.values, next.values);
    append(all.scales, next.scales);
    append(all.zeroPoints, next.zeroPoints);
    append(all.halfScales, next.halfScales);
    append(all.offsets, next.offsets);
    append(all.scaleCodes, next.scaleCodes);
    append(all.offsetCodes, next.offsetCodes);
  }
  return loadGrouped(shape, all, {});
}

Value LayerBuilder::loadPlainStack(ArrayRef<const Weight *> stack, const std::vector<int64_t> &shape) {
  Type element = nn::getElementType(stack[0]->elementType, context);
  if (!isa_and_nonnull<FloatType>(element)) {
    fail("the weight has the element type " + Twine(ajour_element_name(ajour_element_type(stack[0]->elementType))) + ", expected a floating point type");
    return nullptr;
  }
  if (std::vector<Weight> weights = weightsInFile(stack); !weights.empty()) {
    Value value = fromFile(nn::makeTensor(shape, element), weights,
                           [](const Weight &weight, MutableArrayRef<char> to) { std::memcpy(to.data(), weight.bytes.data(), to.size()); });
    return element == f32 ? value : nn::CastOp::create(b, location, nn::makeTensor(shape, f32), value);
  }
  // One plain weight is read where it stands.
  std::vector<char> made;
  for (const Weight *weight : stack) {
    std::vector<char> expanded = weight->quantized ? weight->quantized->expand() : std::vector<char>();
    ArrayRef<char> bytes = weight->quantized ? ArrayRef<char>(expanded) : weight->bytes;
    if (weight->quantized || stack.size() > 1)
      made.insert(made.end(), bytes.begin(), bytes.end());
  }
  Value value = constant(nn::makeTensor(shape, element), made.empty() ? stack[0]->bytes : ArrayRef<char>(made));
  if (element == f32)
    return value;
  return nn::CastOp::create(b, location, nn::makeTensor(shape, f32), value);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

Value LayerBuilder::matmul(Value lhs, Value rhs, Value bias, bool transposed, int64_t lhsGroup) {
  return nn::MatmulOp::create(b, location, lhs, rhs, bias, false, transposed, 0, ArrayRef<int32_t>(), lhsGroup, lhsGroup == 32);
}
Value LayerBuilder::binary(nn::BinaryKind kind, Value lhs, Value rhs) { return nn::BinaryOp::create(b, location, kind, lhs, rhs); }
Value LayerBuilder::unary(nn::UnaryKind kind, Value x) { return nn::UnaryOp::create(b, location, kind, x); }

Value LayerBuilder::scale(Value x, float factor) {
  return !x || factor == 1.0f ? x : binary(nn::BinaryKind::mul, x, constant({1}, {factor}));
}
Value LayerBuilder::softCap(Value x, float cap) {
  return !x || cap == 0.0f ? x : scale(unary(nn::UnaryKind::tanh, scale(x, 1.0f / cap)), cap);
}

Value LayerBuilder::reshape(Value value, ArrayRef<AffineExpr> dims) {
  return nn::ReshapeOp::create(b, location, nn::makeTensor(dims, cast<RankedTensorType>(value.getType()).getElementType()), value);
}
Value LayerBuilder::transpose(Value value, ArrayRef<int64_t> perm) { return nn::TransposeOp::create(b, location, value, perm); }
Value LayerBuilder::part(Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps, ArrayRef<AffineExpr> dims) {
  return nn::SliceOp::create(b, location, type(dims), x, starts, steps);
}

std::optional<Value> LayerBuilder::loadBias(const std::string &weight, int64_t size) {
  StringRef stem = weight;
  if (!stem.consume_back("weight"))
    return Value();
  std::string name = stem.str() + "bias";
  if (!weights.find(name))
    return Value();
  Location outer = location;
  const Weight *found = require(name, {size}, "bias");
  Value bias = found ? load(*found) : Value();
  location = outer;
  return bias ? std::optional(bias) : std::nullopt;
}

Value LayerBuilder::linear(Value x, const std::string &pattern, int64_t layer, int64_t out, bool turned) {
  if (!x)
    return nullptr;
  std::string name = nameOf(pattern, layer);
  int64_t in = *nn::getConstant(nn::getDims(x).back());
  const Weight *weight = require(name, turned ? ArrayRef{in, out} : ArrayRef{out, in}, "linear");
  if (!weight)
    return nullptr;
  Value rhs = load(*weight);
  std::optional<Value> bias = loadBias(name, weight->shape[turned ? 1 : 0]);
  if (ArrayRef<int64_t> order = weight->order(); !order.empty()) {
    RankedTensorType type = nn::makeTensor({int64_t(order.size())}, i64);
    x = nn::GatherOp::create(b, location, x, constant(type, ArrayRef(reinterpret_cast<const char *>(order.data()), order.size() * 8)), 1);
  }
  // Products with quantised blocks round their lhs to 8 bits, as the format's reference implementation does: with blocks of 32 in groups of 32
  // with scales of f16, with super-blocks of 256 in groups of 256.
  int64_t lhsGroup = weight->blocks && gguf::isQuantized(weight->blocks->type) ? weight->blocks->blockElements : 0;
  return rhs && bias ? matmul(x, rhs, *bias, !turned, lhsGroup) : Value();
}

Value LayerBuilder::norm(Value x, const std::string &pattern, int64_t layer, const NormConfig &config) {
  if (!x || pattern.empty())
    return x;
  Value factors;
  std::optional<Value> bias = Value();
  if (config.plain) {
    at(nameOf(pattern, layer), "norm");
  } else {
    int64_t size = *nn::getConstant(nn::getDims(x).back());
    std::string name = nameOf(pattern, layer);
    const Weight *weight = require(name, {size}, config.rootMeanSquare ? "rms_norm" : "layer_norm");
    factors = weight ? load(*weight) : Value();
    bias = loadBias(name, size);
    if (!factors || !bias)
      return nullptr;
    if (config.addOne)
      factors = binary(nn::BinaryKind::add, factors, constant({1}, {1.0f}));
  }
  return nn::LayerNormOp::create(b, location, x, factors, *bias, int64_t(nn::getDims(x).size()) - 1, APFloat(config.epsilon), config.rootMeanSquare);
}

} // namespace ajour::architectures
