//===- Transformer.cpp - decoder-only transformers as nn ----------------------------===//
#include "Transformer.h"

#include "../GGUF/Blocks.h"
#include "Cache.h"

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

namespace {

using nn::Dims;

class Builder : LayerBuilder {
public:
  Builder(MLIRContext *context, const std::string &path, const TransformerConfig &config, const WeightSource &weights)
      : LayerBuilder(context, path, config.architecture, weights), c(config), names(config.names) {}

  OwningOpRef<ModuleOp> run() {
    OwningOpRef<ModuleOp> module(ModuleOp::create(location));
    (*module)->setAttr("nn.source", b.getStringAttr(llvm::sys::path::filename(path)));
    auto symbol = [&](const char *name, int64_t most) { return nn::SymbolAttr::get(context, b.getStringAttr(name), 1, most); };
    (*module)->setAttr("nn.symbols", b.getArrayAttr({symbol("tokens", c.tokens)}));
    SmallVector<Type> inputs(hasAttention(c) ? 2 : 1, nn::makeTensor({tokens}, i64));
    SmallVector<Type> outputs = {type({tokens, expr(c.vocabulary)})};
    size_t given = inputs.size();
    std::vector<std::pair<std::string, RankedTensorType>> states = declareStates();
    if (!good)
      return nullptr;
    for (const auto &[name, type] : states) {
      inputs.push_back(type);
      outputs.push_back(type);
    }
    b.setInsertionPointToEnd(module->getBody());
    auto main = func::FuncOp::create(b, location, "main", b.getFunctionType(inputs, outputs));
    main.setArgAttr(0, "nn.name", b.getStringAttr("tokens"));
    if (given > 1)
      main.setArgAttr(1, "nn.name", b.getStringAttr("positions"));
    main.setResultAttr(0, "nn.name", b.getStringAttr("logits"));
    for (auto [i, state] : llvm::enumerate(states)) {
      main.setArgAttr(given + i, nn::stateAttr, b.getStringAttr(state.first));
      main.setResultAttr(1 + i, nn::stateAttr, b.getStringAttr(state.first));
    }
    b.setInsertionPointToEnd(main.addEntryBlock());
    if (given > 1)
      positions = main.getArgument(1);
    ValueRange before = main.getArguments().drop_front(given);
    for (LayerState &state : layerStates)
      state.bind(before);
    Value logits = forward(main.getArgument(0));
    for (const std::string &name : weights.unused()) {
      at(name, "weight");
      fail("the weight has no use in the architecture '" + Twine(architecture) + "'");
    }
    if (!good)
      return nullptr;
    SmallVector<Value> results = {logits};
    for (const LayerState &state : layerStates)
      state.append(results);
    func::ReturnOp::create(b, location, results);
    return module;
  }

private:
  /// What a layer keeps from call to call: keys and values, or what a Mamba layer has.
  struct LayerState {
    std::vector<CacheSide> cache; ///< keys and values, or nothing
    StateSpaceSizes sizes;        ///< of a Mamba layer
    Value rows, scan;

    void bind(ValueRange &before) {
      for (CacheSide &side : cache)
        side.bind(before);
      if (!cache.empty())
        return;
      rows = before[0];
      scan = before[1];
      before = before.drop_front(2);
    }
    void append(SmallVectorImpl<Value> &results) const {
      for (const CacheSide &side : cache) {
        results.push_back(side.rows);
        if (side.scales)
          results.push_back(side.scales);
      }
      if (cache.empty())
        results.append({rows, scan});
    }
  };

  /// Names and types of the states of all layers.
  std::vector<std::pair<std::string, RankedTensorType>> declareStates() {
    std::vector<std::pair<std::string, RankedTensorType>> states;
    layers = c.layers;
    layerStates.resize(layers.size());
    for (int64_t layer = 0; layer < int64_t(layers.size()); ++layer) {
      std::string number = std::to_string(layer);
      LayerState &state = layerStates[layer];
      if (layers[layer].mixer == Mixer::Attention) {
        countHeads(layer);
        for (auto [name, cacheType] : {std::pair("key.", c.keys), {"value.", c.values}}) {
          state.cache.emplace_back(name + number, cacheType, c.context, layers[layer].keyValueHeads, c.headSize);
          for (auto &declared : state.cache.back().states(context))
            states.push_back(declared);
        }
      } else if (std::optional<StateSpaceSizes> found = sizesOfStateSpace(*this, c, layer)) {
        state.sizes = *found;
        states.emplace_back("rows." + number, type({expr(found->taps - 1), expr(found->channels)}));
        states.emplace_back("scan." + number, type({expr(found->states), expr(found->heads), expr(found->inner / found->heads)}));
      }
    }
    return states;
  }

  /// Heads of a layer whose queries and keys have weights of their own are as many as these have rows for.
  void countHeads(int64_t layer) {
    auto rowsOf = [&](const std::string &pattern) {
      const Weight *weight = pattern.empty() ? nullptr : weights.find(nameOf(pattern, layer));
      return weight && weight->shape.size() == 2 ? weight->shape[0] : 0;
    };
    int64_t heads = rowsOf(names.query) / c.headSize, shared = rowsOf(names.key) / c.headSize;
    if (heads > 0 && shared > 0 && heads % shared == 0) {
      layers[layer].heads = heads;
      layers[layer].keyValueHeads = shared;
    }
  }

  //===--- the model ------------------------------------------------------===//

  /// Divisors of the first rotary embedding's frequencies that the file has as a weight, or none. False after a failure.
  bool readDivisors(std::vector<float> &divisors) {
    const RopeConfig &rope = c.ropes[0];
    bool isLong = rope.longFrom > 0 && c.context > rope.longFrom;
    // Of those for short and for long contexts one is used.
    if (!names.ropeLongDivisors.empty())
      weights.find(isLong ? names.ropeDivisors : names.ropeLongDivisors);
    const std::string &name = isLong && !names.ropeLongDivisors.empty() ? names.ropeLongDivisors : names.ropeDivisors;
    if (name.empty() || !weights.find(name))
      return true;
    const Weight *factors = require(name, {rope.size / 2}, "rope");
    if (!factors)
      return false;
    divisors.resize(size_t(rope.size / 2));
    if (factors->elementType == AJOUR_F32)
      std::memcpy(divisors.data(), factors->bytes.data(), divisors.size() * sizeof(float));
    if (factors->elementType != AJOUR_F32 || !llvm::all_of(divisors, [](float d) { return d > 0; })) {
      fail("the rotary embedding's factors are not positive numbers of the type f32");
      return false;
    }
    return true;
  }

  /// Cosines and sines of the rotary embeddings, [tokens, 1, pairs].
  bool rotary() {
    if (c.ropes.empty() || !positions)
      return true;
    std::vector<float> divisors;
    if (!readDivisors(divisors))
      return false;
    for (const RopeConfig &rope : c.ropes) {
      bool isLong = !rope.longFrequencies.empty() && c.context > rope.longFrom;
      std::vector<float> frequencies = isLong ? rope.longFrequencies : rope.frequencies;
      for (size_t i = 0; i < divisors.size() && cosines.empty(); ++i)
        frequencies[i] /= divisors[i];
      at("rope", "rope");
      Value places = nn::CastOp::create(b, location, type({tokens, expr(1), expr(1)}), reshape(positions, {tokens, expr(1), expr(1)}));
      Value angles = binary(nn::BinaryKind::mul, places, constant({1, 1, rope.size / 2}, frequencies));
      cosines.push_back(scale(unary(nn::UnaryKind::cos, angles), rope.magnitude));
      sines.push_back(scale(unary(nn::UnaryKind::sin, angles), rope.magnitude));
    }
    return true;
  }

  /// Rotates pairs of each head of x [tokens, heads, size] by their position's angles.
  Value rotate(Value x, int64_t heads, int rope) {
    if (rope < 0)
      return x;
    int64_t size = c.ropes[rope].size;
    int64_t pairs = size / 2, step = c.ropeInterleaved ? 2 : 1;
    AffineExpr h = expr(heads);
    Dims half = {tokens, h, expr(pairs)};
    Value first = part(x, {0, 0, 0}, {1, 1, step}, half), second = part(x, {0, 0, step == 2 ? 1 : pairs}, {1, 1, step}, half);
    auto mul = [&](Value a, Value d) { return binary(nn::BinaryKind::mul, a, d); };
    Value left = binary(nn::BinaryKind::sub, mul(first, cosines[rope]), mul(second, sines[rope]));
    Value right = binary(nn::BinaryKind::add, mul(first, sines[rope]), mul(second, cosines[rope]));
    Value rotated;
    if (c.ropeInterleaved) {
      Dims single = {tokens, h, expr(pairs), expr(1)};
      Value joined = nn::ConcatOp::create(b, location, ValueRange{reshape(left, single), reshape(right, single)}, 3);
      rotated = reshape(joined, {tokens, h, expr(size)});
    } else {
      rotated = nn::ConcatOp::create(b, location, ValueRange{left, right}, 2);
    }
    if (size == c.headSize)
      return rotated;
    Value rest = part(x, {0, 0, size}, {1, 1, 1}, {tokens, h, expr(c.headSize - size)});
    return nn::ConcatOp::create(b, location, ValueRange{rotated, rest}, 2);
  }

  /// Queries, keys and values of each head, [tokens, heads, size].
  bool project(Value x, int64_t layer, Value &q, Value &k, Value &v) {
    int64_t size = c.headSize, heads = layers[layer].heads, kv = layers[layer].keyValueHeads;
    if (names.queryKeyValue.empty() || (!names.query.empty() && !weights.find(nameOf(names.queryKeyValue, layer)))) {
      q = linear(x, names.query, layer, heads * size, c.turnedWeights);
      k = linear(x, names.key, layer, kv * size, c.turnedWeights);
      v = linear(x, names.value, layer, kv * size, c.turnedWeights);
      if (!q || !k || !v)
        return false;
      at(nameOf(names.output, layer), "attention");
      q = reshape(normWhole(q, names.queryNorm, layer), {tokens, expr(heads), expr(size)});
      k = reshape(normWhole(k, names.keyNorm, layer), {tokens, expr(kv), expr(size)});
      v = reshape(v, {tokens, expr(kv), expr(size)});
      return true;
    }
    Value all = linear(x, names.queryKeyValue, layer, (heads + 2 * kv) * size, c.turnedWeights);
    if (!all)
      return false;
    at(nameOf(names.output, layer), "attention");
    if (c.queryKeyValueOrder == QueryKeyValueOrder::PerHead) {
      all = reshape(all, {tokens, expr(heads), expr(3), expr(size)});
      auto each = [&](int64_t i) {
        return reshape(part(all, {0, 0, i, 0}, {1, 1, 1, 1}, {tokens, expr(heads), expr(1), expr(size)}), {tokens, expr(heads), expr(size)});
      };
      q = each(0);
      k = each(1);
      v = each(2);
      return true;
    }
    all = reshape(all, {tokens, expr(heads + 2 * kv), expr(size)});
    q = part(all, {0, 0, 0}, {1, 1, 1}, {tokens, expr(heads), expr(size)});
    k = part(all, {0, heads, 0}, {1, 1, 1}, {tokens, expr(kv), expr(size)});
    v = part(all, {0, heads + kv, 0}, {1, 1, 1}, {tokens, expr(kv), expr(size)});
    return true;
  }

  /// Norms of queries and keys are of all heads at once or of each, as the weight's size says.
  bool isWholeNorm(const std::string &pattern, int64_t layer, int64_t heads) {
    const Weight *weight = pattern.empty() ? nullptr : weights.find(nameOf(pattern, layer));
    return heads > 1 && weight && weight->shape == std::vector<int64_t>{heads * c.headSize};
  }
  Value normWhole(Value x, const std::string &pattern, int64_t layer) {
    int64_t size = *nn::getConstant(nn::getDims(x).back());
    return isWholeNorm(pattern, layer, size / c.headSize) ? norm(x, pattern, layer, c.norm) : x;
  }
  Value normHeads(Value x, const std::string &pattern, int64_t layer, int64_t heads) {
    return isWholeNorm(pattern, layer, heads) ? x : norm(x, pattern, layer, c.norm);
  }

  /// Slopes of ALiBi: 2^(-8 i / n) for the largest power n of 2 of heads, and between them for the others, as its authors' program has them.
  static std::vector<float> slopesOf(int64_t heads) {
    int64_t n = int64_t(llvm::bit_floor(uint64_t(heads)));
    std::vector<float> slopes;
    for (int64_t i = 0; i < heads; ++i)
      slopes.push_back(float(std::exp2(i < n ? -8.0 * double(i + 1) / double(n) : -4.0 * double(2 * (i - n) + 1) / double(n))));
    return slopes;
  }

  /// Attention over the positions up to a token's own with as many query heads on each key-value head as there are (grouped-query attention).
  Value attention(Value x, int64_t layer) {
    int64_t size = c.headSize, kv = layers[layer].keyValueHeads, heads = layers[layer].heads;
    Value q, k, v;
    if (!x || !project(x, layer, q, k, v))
      return nullptr;
    q = normHeads(q, names.queryNorm, layer, heads);
    k = normHeads(k, names.keyNorm, layer, kv);
    if (!q || !k)
      return nullptr;
    at(nameOf(names.output, layer), "attention");
    q = rotate(q, heads, layers[layer].rope);
    k = rotate(k, kv, layers[layer].rope);
    CacheSide &keys = layerStates[layer].cache[0], &values = layerStates[layer].cache[1];
    keys.write(b, location, k, positions);
    values.write(b, location, v, positions);
    float scale = c.attentionScale != 0 ? c.attentionScale : 1.0f / std::sqrt(float(size));
    Value slopes = c.linearBias ? constant({heads}, slopesOf(heads)) : Value();
    Value mixed = nn::AttentionOp::create(b, location, q, keys.rows, values.rows, positions, Value(), slopes, Value(), keys.scales, values.scales,
                                          APFloat(scale), APFloat(c.attentionCap), layers[layer].window);
    return linear(reshape(mixed, {tokens, expr(heads * size)}), names.output, layer, c.hidden, c.turnedWeights);
  }

  Value add(Value stream, Value more) { return more ? binary(nn::BinaryKind::add, stream, scale(more, c.residualScale)) : stream; }

  /// The stream behind a layer. After a missing weight the walk goes on, so that all are named.
  Value layer(Value stream, int64_t layer) {
    Value read = norm(stream, names.attentionNorm, layer, c.norm);
    LayerState &state = layerStates[layer];
    bool attends = layers[layer].mixer == Mixer::Attention;
    Value mixed = attends ? attention(read, layer) : buildStateSpace(*this, c, state.sizes, read, layer, state.rows, state.scan);
    Value sum = add(stream, norm(mixed, names.attentionPostNorm, layer, c.norm));
    if (names.down.empty())
      return sum;
    Value second = c.parallel ? stream : sum;
    bool hasNorm = !names.feedForwardNorm.empty() && (!c.parallel || c.norm.plain || weights.find(nameOf(names.feedForwardNorm, layer)));
    second = hasNorm ? norm(second, names.feedForwardNorm, layer, c.norm) : c.parallel ? read : second;
    return add(sum, norm(buildFeedForward(*this, c, second, layer), names.feedForwardPostNorm, layer, c.norm));
  }

  Value forward(Value ids) {
    const Weight *table = require(names.embedding, {c.vocabulary, c.hidden}, "embedding");
    if (!table || !rotary())
      return nullptr;
    at(names.embedding, "embedding");
    Value embedding = load(*table);
    if (!embedding)
      return nullptr;
    Value stream = scale(nn::GatherOp::create(b, location, embedding, ids, 0), c.embeddingScale);
    stream = norm(stream, names.embeddingNorm, 0, c.norm);
    if (!names.positionEmbedding.empty()) {
      const Weight *learned = require(names.positionEmbedding, {-1, c.hidden}, "embedding");
      if (learned && learned->shape[0] < c.context)
        fail("the weight has " + Twine(learned->shape[0]) + " positions, the model's context " + Twine(c.context));
      Value places = learned ? load(*learned) : Value();
      if (!places)
        return nullptr;
      stream = binary(nn::BinaryKind::add, stream, nn::GatherOp::create(b, location, places, positions, 0));
    }
    for (int64_t i = 0; i < int64_t(layers.size()); ++i)
      stream = layer(stream, i);
    stream = norm(stream, names.finalNorm, 0, c.norm);
    // Without a head of its own the embedding serves.
    Value logits = linear(stream, weights.find(names.head) ? names.head : names.embedding, 0, c.vocabulary);
    return softCap(scale(logits, c.logitScale), c.logitCap);
  }

  const TransformerConfig &c;
  const TransformerNames &names;
  std::vector<LayerConfig> layers; ///< as their weights are
  Value positions;
  SmallVector<Value> cosines, sines;    ///< of each rotary embedding
  std::vector<LayerState> layerStates;
};

} // namespace

bool hasAttention(const TransformerConfig &config) {
  return llvm::any_of(config.layers, [](const LayerConfig &layer) { return layer.mixer == Mixer::Attention; });
}

OwningOpRef<ModuleOp> buildTransformer(MLIRContext *context, const std::string &path, const TransformerConfig &config,
                                       const WeightSource &weights) {
  context->loadDialect<nn::NNDialect, func::FuncDialect>();
  return Builder(context, path, config, weights).run();
}

} // namespace ajour::architectures
