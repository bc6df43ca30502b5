//===- FeedForward.cpp - feed-forward layers, dense and of experts ----------------------===//
#include "Transformer.h"

using namespace mlir;

namespace ajour::architectures {

namespace {

class FeedForward {
public:
  FeedForward(LayerBuilder &builder, const TransformerConfig &config, int64_t layer)
      : b(builder), c(config), names(config.names), layer(layer) {}

  Value run(Value x) {
    if (!x)
      return nullptr;
    return c.layers[layer].experts ? mixture(x) : dense(x, names.gate, names.up, names.down);
  }

private:
  /// The function of a feed-forward layer's middle: of the gate times up, or of up alone.
  Value activate(Value gate, Value up) {
    Value activated = b.unary(c.activation, gate ? gate : up);
    return gate ? b.binary(nn::BinaryKind::mul, activated, up) : activated;
  }

  Value dense(Value x, const std::string &gateName, const std::string &upName, const std::string &downName) {
    Value gate, up;
    bool isJoined = !names.gateUp.empty() && &upName == &names.up && b.weights.find(nameOf(names.gateUp, layer));
    if (isJoined) {
      Value both = b.linear(x, names.gateUp, layer, -1, c.turnedWeights);
      if (!both)
        return nullptr;
      int64_t width = *nn::getConstant(nn::getDims(both).back());
      if (width % 2 != 0) {
        b.fail("gate and up together have the odd width " + Twine(width));
        return nullptr;
      }
      gate = b.part(both, {0, 0}, {1, 1}, {b.tokens, b.expr(width / 2)});
      up = b.part(both, {0, width / 2}, {1, 1}, {b.tokens, b.expr(width / 2)});
    } else {
      gate = gateName.empty() ? Value() : b.linear(x, gateName, layer, -1, c.turnedWeights);
      up = b.linear(x, upName, layer, -1, c.turnedWeights);
      if (!up || (!gate && !gateName.empty()))
        return nullptr;
      if (gate && gate.getType() != up.getType()) {
        b.fail("the gate of the feed-forward layer has another width");
        return nullptr;
      }
    }
    return b.linear(activate(gate, up), downName, layer, c.hidden, c.turnedWeights);
  }

  /// The weights [experts, out, in] of all experts, which a file has as one or as one for each. `out` and `in` -1: whatever they have.
  Value loadExperts(const std::string &pattern, int64_t out, int64_t in) {
    std::string name = nameOf(pattern, layer);
    size_t place = name.find("[]");
    if (place == std::string::npos) {
      const Weight *weight = b.require(name, {c.experts.count, out, in}, "experts");
      return weight ? b.load(*weight) : Value();
    }
    SmallVector<const Weight *> all;
    for (int64_t expert = 0; expert < c.experts.count; ++expert) {
      std::string own = name;
      own.replace(place, 2, std::to_string(expert));
      const Weight *weight = b.require(own, {out, in}, "experts");
      if (!weight)
        return nullptr;
      all.push_back(weight);
    }
    return b.loadStack(all);
  }

  /// x [tokens, 1 or chosen, in] times the weights of the experts chosen for it.
  Value expertProduct(Value x, Value weight, Value chosen) {
    return nn::ExpertMatmulOp::create(b.b, b.location, x, weight, chosen);
  }

  /// The numbers and shares of the experts of each token, [tokens, chosen] (Shazeer et al., sparsely gated mixtures).
  bool route(Value x, Value &chosen, Value &shares) {
    Value scores = b.linear(x, names.router, layer, c.experts.count);
    if (!scores)
      return false;
    int64_t count = c.experts.perToken;
    // The share among the chosen is the softmax over their scores, whatever the others' are.
    if (!c.experts.normalize)
      scores = nn::SoftmaxOp::create(b.b, b.location, scores, 1, false);
    auto best = nn::TopKOp::create(b.b, b.location, scores, count, 1, false);
    chosen = best.getIndices();
    shares = best.getValues();
    if (c.experts.normalize)
      shares = nn::SoftmaxOp::create(b.b, b.location, shares, 1, false);
    shares = b.scale(shares, c.experts.scale);
    return true;
  }

  Value mixture(Value x) {
    Value chosen, shares;
    if (!route(x, chosen, shares))
      return nullptr;
    Value gate = loadExperts(names.expertGate, -1, c.hidden);
    Value rows = b.reshape(x, {b.tokens, b.expr(1), b.expr(c.hidden)});
    Value gated = gate ? expertProduct(rows, gate, chosen) : Value();
    Value up = loadExperts(names.expertUp, -1, c.hidden);
    Value raised = up ? expertProduct(rows, up, chosen) : Value();
    if (!gated || !raised)
      return nullptr;
    if (gated.getType() != raised.getType()) {
      b.fail("the gate of the experts has another width");
      return nullptr;
    }
    Value middle = activate(gated, raised);
    Value down = loadExperts(names.expertDown, c.hidden, *nn::getConstant(nn::getDims(middle).back()));
    if (!down)
      return nullptr;
    Value each = expertProduct(middle, down, chosen);
    // [tokens, 1, chosen] times [tokens, chosen, hidden].
    Value weighted = b.binary(nn::BinaryKind::mul, each, b.reshape(shares, {b.tokens, b.expr(c.experts.perToken), b.expr(1)}));
    Value sum = nn::ReduceOp::create(b.b, b.location, nn::ReduceKind::sum, weighted, ArrayRef<int64_t>{1}, /*keep_dims=*/false);
    return names.sharedUp.empty() ? sum : addShared(x, sum);
  }

  /// The expert that every token meets, by a share of its own.
  Value addShared(Value x, Value sum) {
    Value shared = dense(x, names.sharedGate, names.sharedUp, names.sharedDown);
    Value share = sharedShare(x);
    return shared && share ? b.binary(nn::BinaryKind::add, sum, b.binary(nn::BinaryKind::mul, shared, share)) : Value();
  }
  Value sharedShare(Value x) {
    std::string name = nameOf(names.sharedRouter, layer);
    const Weight *found = b.weights.find(name);
    // A row, or a vector.
    bool isVector = found && found->shape.size() == 1;
    const Weight *weight = b.require(name, isVector ? ArrayRef{c.hidden} : ArrayRef{int64_t(1), c.hidden}, "linear");
    Value row = weight ? b.load(*weight) : Value();
    if (!row)
      return nullptr;
    if (isVector)
      row = b.reshape(row, {b.expr(1), b.expr(c.hidden)});
    return b.unary(nn::UnaryKind::sigmoid, b.matmul(x, row, Value(), true));
  }

  LayerBuilder &b;
  const TransformerConfig &c;
  const TransformerNames &names;
  int64_t layer;
};

} // namespace

Value buildFeedForward(LayerBuilder &builder, const TransformerConfig &config, Value x, int64_t layer) {
  return FeedForward(builder, config, layer).run(x);
}

} // namespace ajour::architectures
