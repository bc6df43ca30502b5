//===- Transformer.cpp - decoder-only transformers as nn ----------------------------===//
#include "Transformer.h"

#include "../GGUF/Blocks.h"

#include "ajour/ABI/ElementTypes.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Dialect/NN/State.h"
#include "ajour/Support/NodeLocation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Path.h"

#include <cmath>

using namespace mlir;

namespace ajour::architectures {

const TransformerNames ggufNames = {
    "token_embd.weight",        "output_norm.weight",      "output.weight",           "blk.{}.attn_norm.weight",
    "blk.{}.attn_q.weight",     "blk.{}.attn_k.weight",    "blk.{}.attn_v.weight",    "blk.{}.attn_output.weight",
    "blk.{}.attn_q_norm.weight", "blk.{}.attn_k_norm.weight", "blk.{}.ffn_norm.weight", "blk.{}.ffn_gate.weight",
    "blk.{}.ffn_up.weight",     "blk.{}.ffn_down.weight",  "rope_freqs.weight"};

const TransformerNames huggingFaceNames = {"model.embed_tokens.weight",
                                           "model.norm.weight",
                                           "lm_head.weight",
                                           "model.layers.{}.input_layernorm.weight",
                                           "model.layers.{}.self_attn.q_proj.weight",
                                           "model.layers.{}.self_attn.k_proj.weight",
                                           "model.layers.{}.self_attn.v_proj.weight",
                                           "model.layers.{}.self_attn.o_proj.weight",
                                           "model.layers.{}.self_attn.q_norm.weight",
                                           "model.layers.{}.self_attn.k_norm.weight",
                                           "model.layers.{}.post_attention_layernorm.weight",
                                           "model.layers.{}.mlp.gate_proj.weight",
                                           "model.layers.{}.mlp.up_proj.weight",
                                           "model.layers.{}.mlp.down_proj.weight",
                                           ""};

namespace {

using nn::Dims;

class Builder {
public:
  Builder(MLIRContext *context, const std::string &path, const TransformerConfig &config, const WeightSource &weights)
      : context(context), path(path), c(config), names(config.names), weights(weights), b(context),
        location(FileLineColLoc::get(context, path, 0, 0)), tokens(getAffineSymbolExpr(0, context)),
        length(getAffineSymbolExpr(1, context)), f32(Float32Type::get(context)), i64(IntegerType::get(context, 64)) {}

  OwningOpRef<ModuleOp> run() {
    OwningOpRef<ModuleOp> module(ModuleOp::create(location));
    (*module)->setAttr("nn.source", b.getStringAttr(llvm::sys::path::filename(path)));
    auto symbol = [&](const char *name, int64_t most) { return nn::SymbolAttr::get(context, b.getStringAttr(name), 1, most); };
    (*module)->setAttr("nn.symbols", b.getArrayAttr({symbol("tokens", c.tokens), symbol("length", c.context)}));
    SmallVector<Type> inputs = {nn::makeTensor({tokens}, i64), nn::makeTensor({tokens}, i64),
                                nn::makeTensor({tokens, length}, b.getI1Type())};
    SmallVector<Type> outputs = {type({tokens, expr(c.vocabulary)})};
    RankedTensorType cache = type({expr(c.context), expr(c.keyValueHeads * c.headSize)});
    inputs.append(2 * c.layers, cache);
    outputs.append(2 * c.layers, cache);
    b.setInsertionPointToEnd(module->getBody());
    auto main = func::FuncOp::create(b, location, "main", b.getFunctionType(inputs, outputs));
    for (auto [i, name] : {std::pair(0, "tokens"), {1, "positions"}, {2, "visible"}})
      main.setArgAttr(i, "nn.name", b.getStringAttr(name));
    main.setResultAttr(0, "nn.name", b.getStringAttr("logits"));
    for (int64_t i = 0; i < 2 * c.layers; ++i) {
      StringAttr name = b.getStringAttr((i % 2 ? "value." : "key.") + std::to_string(i / 2));
      main.setArgAttr(3 + i, nn::stateAttr, name);
      main.setResultAttr(1 + i, nn::stateAttr, name);
    }
    b.setInsertionPointToEnd(main.addEntryBlock());
    positions = main.getArgument(1);
    visible = main.getArgument(2);
    caches.assign(main.args_begin() + 3, main.args_end());
    Value logits = forward(main.getArgument(0));
    if (!good)
      return nullptr;
    SmallVector<Value> results = {logits};
    results.append(caches);
    func::ReturnOp::create(b, location, results);
    return module;
  }

private:
  AffineExpr expr(int64_t value) { return getAffineConstantExpr(value, context); }
  RankedTensorType type(ArrayRef<AffineExpr> dims) { return nn::makeTensor(dims, f32); }

  /// Operations that come next belong to the node of this weight.
  void at(StringRef weight, StringRef kind) {
    location = makeNodeLocation(context, {path, weight.str(), kind.str(), nodes++});
  }
  std::string nameOf(const char *pattern, int64_t layer) const {
    std::string name = pattern;
    if (size_t place = name.find("{}"); place != std::string::npos)
      name.replace(place, 2, std::to_string(layer));
    return name;
  }
  void fail(const Twine &what) {
    emitError(location) << what;
    good = false;
  }

  //===--- weights --------------------------------------------------------===//

  Value constant(RankedTensorType type, ArrayRef<char> bytes) {
    return nn::ConstantOp::create(b, location, type, nn::makeConstant(type, bytes));
  }
  Value constant(ArrayRef<int64_t> shape, ArrayRef<float> values) {
    return constant(nn::makeTensor(shape, f32), ArrayRef(reinterpret_cast<const char *>(values.data()), values.size() * 4));
  }

  static std::string shapeText(ArrayRef<int64_t> shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i)
      text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
  }

  /// A weight that must be there, of `shape`; -1 in it is any size.
  const Weight *require(const std::string &name, ArrayRef<int64_t> shape, StringRef kind) {
    at(name, kind);
    const Weight *weight = weights.find(name);
    if (!weight) {
      fail("the model has no weight of this name, which its architecture '" + Twine(c.architecture) + "' needs");
      return nullptr;
    }
    bool fits = weight->shape.size() == shape.size();
    for (size_t i = 0; fits && i < shape.size(); ++i)
      fits = shape[i] == -1 ? weight->shape[i] > 0 : shape[i] == weight->shape[i];
    if (!fits) {
      std::string wanted = shapeText(shape);
      for (size_t at; (at = wanted.find("-1")) != std::string::npos;)
        wanted.replace(at, 2, "?");
      fail("the weight's shape is " + Twine(shapeText(weight->shape)) + ", expected " + wanted);
      return nullptr;
    }
    return weight;
  }

  /// A weight as a value: f32, or what is made f32 where it is read.
  Value load(const Weight &weight) {
    if (!weight.blocks) {
      Type element = nn::getElementType(weight.elementType, context);
      if (!isa_and_nonnull<FloatType>(element)) {
        fail("the weight has the element type " + Twine(ajour_element_name(ajour_element_type(weight.elementType))) + ", expected a floating point type");
        return nullptr;
      }
      Value value = constant(nn::makeTensor(weight.shape, element), weight.bytes);
      if (element == f32)
        return value;
      return nn::CastOp::create(b, location, nn::makeTensor(weight.shape, f32), value);
    }
    gguf::Grouped grouped = gguf::unpackBlocks(*weight.blocks, weight.bytes);
    Type element = grouped.isUnsigned ? IntegerType::get(context, 8, IntegerType::Unsigned) : IntegerType::get(context, 8);
    Value values = constant(nn::makeTensor(weight.shape, element), ArrayRef(reinterpret_cast<const char *>(grouped.values.data()), grouped.values.size()));
    std::vector<int64_t> groups = weight.shape;
    groups.back() /= grouped.group;
    Value scales = constant(groups, grouped.scales);
    Value zeroPoints = grouped.zeroPoints.empty() ? Value() : constant(groups, grouped.zeroPoints);
    return nn::DequantizeGroupedOp::create(b, location, nn::makeTensor(weight.shape, f32), values, scales, zeroPoints,
                                           int64_t(weight.shape.size()) - 1, grouped.group, int64_t(grouped.bits));
  }

  //===--- operations -----------------------------------------------------===//

  Value matmul(Value lhs, Value rhs, Value bias, bool transposed) {
    return nn::MatmulOp::create(b, location, lhs, rhs, bias, false, transposed, 0, ArrayRef<int32_t>());
  }
  Value binary(nn::BinaryKind kind, Value lhs, Value rhs) { return nn::BinaryOp::create(b, location, kind, lhs, rhs); }
  Value reshape(Value value, ArrayRef<AffineExpr> dims) {
    return nn::ReshapeOp::create(b, location, nn::makeTensor(dims, cast<RankedTensorType>(value.getType()).getElementType()), value);
  }
  Value transpose(Value value, ArrayRef<int64_t> perm) { return nn::TransposeOp::create(b, location, value, perm); }

  /// x [tokens, in] times a weight [out, in], with a bias where the file has one. `out` -1: whatever the weight has.
  Value linear(Value x, const char *pattern, int64_t layer, int64_t out) {
    if (!x)
      return nullptr;
    std::string name = nameOf(pattern, layer);
    const Weight *weight = require(name, {out, *nn::getConstant(nn::getDims(x).back())}, "linear");
    if (!weight)
      return nullptr;
    Value rhs = load(*weight), bias;
    std::string biasName = StringRef(name).drop_back(strlen("weight")).str() + "bias";
    if (rhs && weights.find(biasName)) {
      Location outer = location;
      if (const Weight *found = require(biasName, {weight->shape[0]}, "linear"))
        bias = load(*found);
      location = outer;
    }
    return rhs ? matmul(x, rhs, bias, true) : Value();
  }

  Value norm(Value x, const std::string &name) {
    if (!x)
      return nullptr;
    const Weight *weight = require(name, {*nn::getConstant(nn::getDims(x).back())}, "rms_norm");
    Value scale = weight ? load(*weight) : Value();
    if (!scale)
      return nullptr;
    return nn::LayerNormOp::create(b, location, x, scale, Value(), int64_t(nn::getDims(x).size()) - 1, APFloat(c.normEpsilon), true);
  }
  /// A norm that only some models have.
  Value optionalNorm(Value x, const char *pattern, int64_t layer) {
    std::string name = nameOf(pattern, layer);
    return x && weights.find(name) ? norm(x, name) : x;
  }

  //===--- the model ------------------------------------------------------===//

  /// Cosines and sines of the rotary embedding, [tokens, 1, pairs] (Su et al., RoFormer).
  bool rotary() {
    int64_t pairs = c.ropeSize / 2;
    std::vector<float> frequencies(pairs), divisors = c.ropeDivisors;
    if (const Weight *factors = *names.ropeFactors ? weights.find(names.ropeFactors) : nullptr) {
      factors = require(names.ropeFactors, {pairs}, "rope");
      if (!factors || factors->elementType != AJOUR_F32)
        return false;
      divisors.resize(pairs);
      std::memcpy(divisors.data(), factors->bytes.data(), pairs * sizeof(float));
    }
    for (int64_t i = 0; i < pairs; ++i) {
      frequencies[i] = float(std::pow(double(c.ropeBase), -2.0 * double(i) / double(c.ropeSize)) / double(c.ropeScale));
      if (!divisors.empty())
        frequencies[i] /= divisors[i];
    }
    at("rope", "rope");
    Value places = nn::CastOp::create(b, location, type({tokens, expr(1), expr(1)}), reshape(positions, {tokens, expr(1), expr(1)}));
    Value angles = binary(nn::BinaryKind::mul, places, constant({1, 1, pairs}, frequencies));
    cosines = nn::UnaryOp::create(b, location, nn::UnaryKind::cos, angles);
    sines = nn::UnaryOp::create(b, location, nn::UnaryKind::sin, angles);
    return true;
  }

  Value part(Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps, ArrayRef<AffineExpr> dims) {
    return nn::SliceOp::create(b, location, type(dims), x, starts, steps);
  }

  /// Rotates pairs of each head of x [tokens, heads, size] by their position's angles.
  Value rotate(Value x, int64_t heads) {
    int64_t pairs = c.ropeSize / 2, step = c.ropeInterleaved ? 2 : 1;
    AffineExpr h = expr(heads);
    Dims half = {tokens, h, expr(pairs)};
    Value first = part(x, {0, 0, 0}, {1, 1, step}, half), second = part(x, {0, 0, step == 2 ? 1 : pairs}, {1, 1, step}, half);
    auto mul = [&](Value a, Value d) { return binary(nn::BinaryKind::mul, a, d); };
    Value left = binary(nn::BinaryKind::sub, mul(first, cosines), mul(second, sines));
    Value right = binary(nn::BinaryKind::add, mul(first, sines), mul(second, cosines));
    Value rotated;
    if (c.ropeInterleaved) {
      Dims single = {tokens, h, expr(pairs), expr(1)};
      Value joined = nn::ConcatOp::create(b, location, ValueRange{reshape(left, single), reshape(right, single)}, 3);
      rotated = reshape(joined, {tokens, h, expr(c.ropeSize)});
    } else {
      rotated = nn::ConcatOp::create(b, location, ValueRange{left, right}, 2);
    }
    if (c.ropeSize == c.headSize)
      return rotated;
    Value rest = part(x, {0, 0, c.ropeSize}, {1, 1, 1}, {tokens, h, expr(c.headSize - c.ropeSize)});
    return nn::ConcatOp::create(b, location, ValueRange{rotated, rest}, 2);
  }

  /// Writes keys or values of these tokens to their positions of a state, and gives those of all positions up to `length`, as
  /// [kv, 1, length, size].
  Value remember(Value x, int64_t state) {
    int64_t kv = c.keyValueHeads, size = c.headSize;
    Value rows = reshape(x, {tokens, expr(kv * size)});
    Value index = reshape(positions, {tokens, expr(1)});
    Value written = nn::ScatterNDOp::create(b, location, caches[state], index, rows);
    caches[state] = written;
    Value first = part(written, {0, 0}, {1, 1}, {length, expr(kv * size)});
    return transpose(reshape(first, {length, expr(kv), expr(1), expr(size)}), {1, 2, 0, 3});
  }

  /// Attention over the visible positions with as many query heads on each key-value head as there are (grouped-query attention).
  Value attention(Value x, int64_t layer) {
    int64_t size = c.headSize, kv = c.keyValueHeads, group = c.heads / kv;
    Value q = linear(x, names.query, layer, c.heads * size), k = linear(x, names.key, layer, kv * size);
    Value v = linear(x, names.value, layer, kv * size);
    if (!q || !k || !v)
      return nullptr;
    at(nameOf(names.output, layer), "attention");
    q = optionalNorm(reshape(q, {tokens, expr(c.heads), expr(size)}), names.queryNorm, layer);
    k = optionalNorm(reshape(k, {tokens, expr(kv), expr(size)}), names.keyNorm, layer);
    if (!q || !k)
      return nullptr;
    q = rotate(q, c.heads);
    k = rotate(k, kv);
    k = remember(k, 2 * layer);
    v = remember(v, 2 * layer + 1);
    // [kv, group, tokens, size] against [kv, 1, length, size].
    q = transpose(reshape(q, {tokens, expr(kv), expr(group), expr(size)}), {1, 2, 0, 3});
    Value scores = matmul(q, k, Value(), true);
    scores = binary(nn::BinaryKind::mul, scores, constant({1}, {1.0f / std::sqrt(float(size))}));
    Value masked = nn::SelectOp::create(b, location, reshape(visible, {expr(1), expr(1), tokens, length}), scores, constant({1, 1, 1, 1}, {-INFINITY}));
    Value weights = nn::SoftmaxOp::create(b, location, masked, 3, false);
    Value mixed = transpose(matmul(weights, v, Value(), false), {2, 0, 1, 3});
    return linear(reshape(mixed, {tokens, expr(c.heads * size)}), names.output, layer, c.hidden);
  }

  Value feedForward(Value x, int64_t layer) {
    Value gate = linear(x, names.gate, layer, -1), up = linear(x, names.up, layer, -1);
    if (!gate || !up)
      return nullptr;
    if (gate.getType() != up.getType()) {
      fail("the gate of the feed-forward layer has another width");
      return nullptr;
    }
    Value activated = nn::UnaryOp::create(b, location, nn::UnaryKind::silu, gate);
    return linear(binary(nn::BinaryKind::mul, activated, up), names.down, layer, c.hidden);
  }

  Value forward(Value ids) {
    const Weight *table = require(names.embedding, {c.vocabulary, c.hidden}, "embedding");
    if (!table || !rotary())
      return nullptr;
    at(names.embedding, "embedding");
    Value embedding = load(*table);
    if (!embedding)
      return nullptr;
    Value x = nn::GatherOp::create(b, location, embedding, ids, 0);
    // After a missing weight the walk goes on, so that all are named.
    Value stream = x;
    for (int64_t layer = 0; layer < c.layers; ++layer) {
      Value attended = attention(norm(stream, nameOf(names.attentionNorm, layer)), layer);
      Value sum = attended ? binary(nn::BinaryKind::add, stream, attended) : stream;
      Value fed = feedForward(norm(sum, nameOf(names.feedForwardNorm, layer)), layer);
      stream = fed ? binary(nn::BinaryKind::add, sum, fed) : sum;
    }
    stream = norm(stream, names.finalNorm);
    // Without a head of its own the embedding serves.
    return linear(stream, weights.find(names.head) ? names.head : names.embedding, 0, c.vocabulary);
  }

  MLIRContext *context;
  const std::string &path;
  const TransformerConfig &c;
  const TransformerNames &names;
  const WeightSource &weights;
  OpBuilder b;
  Location location;
  AffineExpr tokens, length;
  Type f32, i64;
  int64_t nodes = 0;
  bool good = true;
  Value cosines, sines, positions, visible;
  SmallVector<Value> caches; ///< key, value, key, value, ...
};

} // namespace

OwningOpRef<ModuleOp> buildTransformer(MLIRContext *context, const std::string &path, const TransformerConfig &config,
                                       const WeightSource &weights) {
  context->loadDialect<nn::NNDialect, func::FuncDialect>();
  return Builder(context, path, config, weights).run();
}

} // namespace ajour::architectures
