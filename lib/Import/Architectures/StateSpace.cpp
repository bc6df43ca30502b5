//===- StateSpace.cpp - Mamba layers -----------------------------------------------------===//
//
// Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023, and Dao and Gu, "Transformers are SSMs", 2024.
//
//===----------------------------------------------------------------------===//
#include "Transformer.h"

using namespace mlir;

namespace ajour::architectures {

/// What a parameter without a limit has.
static bool fits(int64_t size, int64_t expected) { return expected == 0 || size == expected; }

std::optional<StateSpaceSizes> sizesOfStateSpace(LayerBuilder &b, const TransformerConfig &c, int64_t layer) {
  const StateSpaceNames &names = c.names.stateSpace;
  bool second = c.layers[layer].mixer == Mixer::Mamba2;
  auto found = [&](const std::string &pattern, size_t rank) {
    const Weight *weight = b.weights.find(nameOf(pattern, layer));
    return weight && weight->shape.size() == rank ? weight : nullptr;
  };
  const Weight *in = b.require(nameOf(names.in, layer), {-1, c.hidden}, "linear"), *out = b.require(nameOf(names.out, layer), {c.hidden, -1}, "linear");
  // [channels, taps], with a dimension of 1 between them in safetensors.
  const Weight *conv = found(names.conv, 2);
  if (!conv)
    conv = b.require(nameOf(names.conv, layer), {-1, 1, -1}, "conv");
  const Weight *decay = second && found(names.decay, 1) ? found(names.decay, 1) : b.require(nameOf(names.decay, layer), {-1, -1}, "decay");
  if (!in || !out || !conv || !decay)
    return std::nullopt;
  StateSpaceSizes s;
  s.inner = out->shape[1];
  s.channels = conv->shape[0];
  s.taps = conv->shape.back();
  s.heads = decay->shape[0];
  s.groups = second ? c.stateSpace.groups : 1;
  int64_t parts = s.channels - s.inner; // B and C pass the convolution in Mamba-2
  s.states = second ? parts / (2 * s.groups) : decay->shape[1];
  int64_t expectedIn = second ? s.inner + s.channels + s.heads : 2 * s.inner, expectedChannels = second ? s.inner + 2 * s.groups * s.states : s.inner;
  bool good = in->shape[0] == expectedIn && s.channels == expectedChannels && s.inner % s.heads == 0 && s.heads % s.groups == 0 && s.states > 0 &&
              (second || s.heads == s.inner) && s.taps >= 2 && fits(s.states, c.stateSpace.states) && fits(s.taps, c.stateSpace.taps);
  if (good)
    return s;
  b.at(nameOf(names.in, layer), "state_space");
  b.fail("the layer's sizes do not fit each other: in-projection " + Twine(in->shape[0]) + ", convolution " + Twine(s.channels) + " channels and " + Twine(s.taps) +
         " taps, " + Twine(s.heads) + " heads in " + Twine(s.groups) + " groups of " + Twine(s.states) + " states, out-projection " + Twine(s.inner) + "; expected " + Twine(expectedIn) +
         ", " + Twine(expectedChannels) + " channels" + (c.stateSpace.taps ? " and " + std::to_string(c.stateSpace.taps) + " taps" : "") +
         (c.stateSpace.states ? ", " + std::to_string(c.stateSpace.states) + " states" : ""));
  return std::nullopt;
}

namespace {

class StateSpaceLayer {
public:
  StateSpaceLayer(LayerBuilder &builder, const TransformerConfig &config, const StateSpaceSizes &sizes, int64_t layer, Value &rows, Value &state)
      : b(builder), c(config), s(sizes), names(config.names.stateSpace), layer(layer), rows(rows), state(state) {}

  Value run(Value x) {
    if (!x)
      return nullptr;
    Value y = c.layers[layer].mixer == Mixer::Mamba2 ? second(x) : first(x);
    return b.linear(y, names.out, layer, c.hidden);
  }

private:
  /// Columns [from, from + width) of x [tokens, ...].
  Value columns(Value x, int64_t from, int64_t width) { return b.part(x, {0, from}, {1, 1}, {b.tokens, b.expr(width)}); }
  Value split(Value x, int64_t outer, int64_t inner) { return b.reshape(x, {b.tokens, b.expr(outer), b.expr(inner)}); }

  /// A weight of one number for each of `size`, with or without a dimension of 1 behind.
  Value vector(const std::string &pattern, int64_t size) {
    std::string name = nameOf(pattern, layer);
    const Weight *found = b.weights.find(name);
    bool isColumn = found && found->shape.size() == 2;
    const Weight *weight = b.require(name, isColumn ? ArrayRef{size, int64_t(1)} : ArrayRef{size}, "vector");
    Value value = weight ? b.load(*weight) : Value();
    return value && isColumn ? b.reshape(value, {b.expr(size)}) : value;
  }

  /// The causal convolution and its function; leaves the last rows as the next state.
  Value convolve(Value x) {
    std::string name = nameOf(names.conv, layer);
    Value filter = b.load(*b.weights.find(name));
    std::optional<Value> bias = b.loadBias(name, s.channels);
    if (!filter || !bias)
      return nullptr;
    b.at(name, "causal_conv");
    filter = b.transpose(b.reshape(filter, {b.expr(s.channels), b.expr(s.taps)}), {1, 0});
    auto conv = nn::CausalConvOp::create(b.b, b.location, x, filter, *bias, rows, /*silu=*/true);
    rows = conv.getFinal();
    return conv.getOutput();
  }

  /// What the states decay by, [states, heads] or [1, heads]; files hold it as it is, or the logarithm of its negative.
  Value decay(int64_t states) {
    std::string name = nameOf(names.decay, layer);
    Value value = states == 1 ? vector(names.decay, s.heads) : nullptr;
    if (states > 1)
      if (const Weight *weight = b.require(name, {s.heads, states}, "decay"))
        value = b.load(*weight);
    if (!value)
      return nullptr;
    value = states == 1 ? b.reshape(value, {b.expr(1), b.expr(s.heads)}) : b.transpose(value, {1, 0});
    return c.stateSpace.logDecay ? b.unary(nn::UnaryKind::neg, b.unary(nn::UnaryKind::exp, value)) : value;
  }

  Value scan(Value x, Value delta, Value a, Value in, Value out, Value deltaBias, Value skip, Value gate) {
    int64_t size = s.inner / s.heads;
    b.at(nameOf(names.decay, layer), "selective_scan");
    auto op = nn::SelectiveScanOp::create(b.b, b.location, split(x, s.heads, size), delta, a, split(in, s.groups, s.states), split(out, s.groups, s.states),
                                          deltaBias, skip, split(gate, s.heads, size), state, /*softplus=*/true, APFloat(c.stateSpace.deltaMin),
                                          APFloat(c.stateSpace.deltaMax));
    state = op.getFinal();
    return b.reshape(op.getY(), {b.tokens, b.expr(s.inner)});
  }

  Value first(Value x) {
    Value both = b.linear(x, names.in, layer, 2 * s.inner);
    Value mixed = both ? convolve(columns(both, 0, s.inner)) : Value();
    Value parts = b.linear(mixed, names.parts, layer, -1);
    if (!parts)
      return nullptr;
    int64_t rank = *nn::getConstant(nn::getDims(parts).back()) - 2 * s.states;
    if (rank < 1) {
      b.fail("the weight has " + Twine(rank + 2 * s.states) + " rows, expected more than twice the " + Twine(s.states) + " states");
      return nullptr;
    }
    // Some models normalise each of the parts.
    auto part = [&](int64_t from, int64_t width, const std::string &norm) {
      return c.stateSpace.normParts ? b.norm(columns(parts, from, width), norm, layer, *c.stateSpace.normParts) : columns(parts, from, width);
    };
    Value low = part(0, rank, names.delta), in = part(rank, s.states, names.parts), out = part(rank + s.states, s.states, names.parts);
    Value delta = b.linear(low, names.delta, layer, s.inner), a = decay(s.states), skip = vector(names.skip, s.inner);
    if (!delta || !a || !skip || !in || !out)
      return nullptr;
    return scan(mixed, delta, a, in, out, Value(), skip, columns(both, s.inner, s.inner));
  }

  Value second(Value x) {
    int64_t parts = s.groups * s.states;
    Value all = b.linear(x, names.in, layer, s.inner + s.channels + s.heads);
    Value mixed = all ? convolve(columns(all, s.inner, s.channels)) : Value();
    Value a = decay(1), skip = vector(names.skip, s.heads), deltaBias = vector(names.deltaBias, s.heads);
    if (!mixed || !a || !skip || !deltaBias)
      return nullptr;
    Value y = scan(columns(mixed, 0, s.inner), columns(all, s.inner + s.channels, s.heads), a, columns(mixed, s.inner, parts),
                   columns(mixed, s.inner + parts, parts), deltaBias, skip, columns(all, 0, s.inner));
    return normGroups(y);
  }

  /// The norm of each group's channels.
  Value normGroups(Value y) {
    std::string name = nameOf(names.norm, layer);
    int64_t size = s.inner / s.groups;
    const Weight *found = b.weights.find(name);
    bool isSplit = found && found->shape.size() == 2;
    const Weight *weight = b.require(name, isSplit ? ArrayRef{s.groups, size} : ArrayRef{s.inner}, "rms_norm");
    Value factors = weight ? b.load(*weight) : Value();
    if (!factors)
      return nullptr;
    if (!isSplit)
      factors = b.reshape(factors, {b.expr(s.groups), b.expr(size)});
    Value normed = nn::LayerNormOp::create(b.b, b.location, split(y, s.groups, size), factors, Value(), 2, APFloat(c.stateSpace.normEpsilon), /*rms=*/true);
    return b.reshape(normed, {b.tokens, b.expr(s.inner)});
  }

  LayerBuilder &b;
  const TransformerConfig &c;
  const StateSpaceSizes &s;
  const StateSpaceNames &names;
  int64_t layer;
  Value &rows, &state;
};

} // namespace

Value buildStateSpace(LayerBuilder &builder, const TransformerConfig &config, const StateSpaceSizes &sizes, Value x, int64_t layer, Value &rows,
                      Value &state) {
  return StateSpaceLayer(builder, config, sizes, layer, rows, state).run(x);
}

} // namespace ajour::architectures
