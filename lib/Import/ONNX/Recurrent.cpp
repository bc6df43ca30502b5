//===- Recurrent.cpp - ONNX RNN, GRU and LSTM -----------------------------------===//
//
// A layer is the product of all its steps with the input's weights, and a recurrence (nn.rnn, nn.gru, nn.lstm) for
// each direction. Source: the operators' definitions, set 14 (older sets lack only the attribute `layout`).
//
//===----------------------------------------------------------------------===//
#include "Node.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace ajour::onnx_import {

namespace {

using nn::CellActivation;

/// Functions of one direction, in the order of the cell's definition.
struct Functions {
  SmallVector<Attribute> kinds;
  SmallVector<float> alphas, betas;
};

/// A function and the parameters that it takes when the node gives none (NaN: it has no such parameter).
struct FunctionRow {
  const char *name;
  CellActivation kind;
  float alpha, beta;
};
constexpr float none = std::numeric_limits<float>::quiet_NaN();
constexpr FunctionRow functionRows[] = {
    {"sigmoid", CellActivation::sigmoid, none, none},
    {"tanh", CellActivation::tanh, none, none},
    {"relu", CellActivation::relu, none, none},
    {"affine", CellActivation::affine, 1, 0},
    {"leakyrelu", CellActivation::leaky_relu, 0.01f, none},
    {"thresholdedrelu", CellActivation::thresholded_relu, 1, none},
    {"scaledtanh", CellActivation::scaled_tanh, 1, 1},
    {"hardsigmoid", CellActivation::hard_sigmoid, 0.2f, 0.5f},
    {"elu", CellActivation::elu, 1, none},
    {"softsign", CellActivation::softsign, none, none},
    {"softplus", CellActivation::softplus, none, none},
};

/// One recurrent node while it is imported.
class Layer {
public:
  Layer(Node &n, int64_t gates, std::vector<std::string> defaults) : n(n), gates(gates) {
    std::string direction = StringRef(n.attrString("direction", "forward")).lower();
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      n.refuse("attribute 'direction' is '" + Twine(direction) + "', expected forward, reverse or bidirectional");
    directions = direction == "bidirectional" ? 2 : 1;
    firstIsReverse = direction == "reverse";
    batchFirst = n.attrInt("layout", 0) != 0;
    readShapes();
    readFunctions(defaults);
  }

  Node &n;
  int64_t gates, directions = 1, hidden = 0;
  bool firstIsReverse = false, batchFirst = false;
  AffineExpr batch;
  std::vector<Functions> functions;
  SmallVector<SmallVector<Value>> results; ///< of each direction

  /// Operand i for one direction, without the dimension of directions; null when absent.
  Value part(size_t i, int64_t direction) {
    Value x = n.inOrNull(i);
    if (!x)
      return {};
    Dims dims = Node::dimsOf(x);
    dims.erase(dims.begin());
    return n.reshape(n.sliceAxis(x, 0, direction, n.dim(1)), dims);
  }
  /// A state before the first step, [B, H].
  Value initial(size_t i, int64_t direction) {
    Value x = n.inOrNull(i);
    if (!x)
      return {};
    int64_t axis = batchFirst ? 1 : 0;
    needShape(i, batchFirst ? Dims{batch, n.dim(directions), n.dim(hidden)} : Dims{n.dim(directions), batch, n.dim(hidden)});
    return n.reshape(n.sliceAxis(x, axis, direction, n.dim(1)), {batch, n.dim(hidden)});
  }
  /// Half `half` (0: the input's, 1: the recurrent one) of the bias of gates [from, to); null without a bias.
  Value bias(int64_t direction, int64_t half, int64_t from, int64_t to) {
    Value b = part(3, direction);
    return b ? n.sliceAxis(b, 0, (half * gates + from) * hidden, n.dim((to - from) * hidden)) : Value();
  }
  /// What the input contributes to all gates of all steps, [T, B, gates H].
  Value project(int64_t direction, Value bias) {
    Value x = n.in(0);
    if (batchFirst)
      x = n.transpose(x, {1, 0, 2});
    return n.matmul(x, part(1, direction), bias, /*transposeLhs=*/false, /*transposeRhs=*/true);
  }
  Value lengths() {
    Value x = n.inOrNull(4);
    if (x && Node::dimsOf(x) != Dims{batch})
      n.refuse(n.inputName(4) + " is " + n.text(x) + ", expected one length for each of the batch");
    return x;
  }

  /// Makes the cell of one direction. Null operands are absent; the first two are always there.
  template <typename Op> void make(int64_t direction, ArrayRef<Value> operands, typename Op::Properties p) {
    SmallVector<Value> present;
    SmallVector<int32_t> segments;
    for (Value operand : operands) {
      segments.push_back(operand ? 1 : 0);
      if (operand)
        present.push_back(operand);
    }
    llvm::copy(segments, p.operandSegmentSizes.begin());
    const Functions &f = functions[direction];
    p.activations = n.builder().getArrayAttr(f.kinds);
    p.alphas = n.builder().getDenseF32ArrayAttr(f.alphas);
    p.betas = n.builder().getDenseF32ArrayAttr(f.betas);
    p.clip = n.builder().getF32FloatAttr(n.attrFloat("clip", 0));
    if (direction == 1 || firstIsReverse)
      p.reverse = n.builder().getUnitAttr();
    results.push_back(n.make<Op>(present, p));
  }

  /// Sets Y from the first result of each direction, and the last states from the others.
  void finish() {
    if (n.wants(0)) {
      SmallVector<Value> parts;
      for (auto &own : results) {
        Dims dims = Node::dimsOf(own[0]);
        dims.insert(dims.begin() + 1, n.dim(1));
        parts.push_back(n.reshape(own[0], dims));
      }
      Value y = n.concat(parts, 1);
      n.set(0, batchFirst ? n.transpose(y, {2, 0, 1, 3}) : y);
    }
    for (size_t i = 1; i < results[0].size() && i < n.numOutputs(); ++i) {
      SmallVector<Value> parts;
      int64_t axis = batchFirst ? 1 : 0;
      for (auto &own : results) {
        Dims dims = Node::dimsOf(own[i]);
        dims.insert(dims.begin() + axis, n.dim(1));
        parts.push_back(n.reshape(own[i], dims));
      }
      if (n.wants(i))
        n.set(i, n.concat(parts, axis));
    }
  }

private:
  void needShape(size_t i, const Dims &dims) {
    Value x = n.inOrNull(i);
    if (x && Node::dimsOf(x) != dims)
      n.refuse(n.inputName(i) + " is " + n.text(x) + ", expected " + n.text(dims));
  }

  void readShapes() {
    Value x = n.in(0), r = n.in(2);
    if (Node::rankOf(x) != 3 || Node::rankOf(r) != 3)
      n.refuse(n.inputName(0) + " is " + n.text(x) + " and " + n.inputName(2) + " is " + n.text(r) +
               ", expected a sequence of rank 3 and recurrent weights [directions, gates * hidden, hidden]");
    hidden = n.staticDims(r, 2, 3, "the recurrent weights")[0];
    constexpr int64_t maxUnits = int64_t(1) << 28;
    if (hidden > maxUnits)
      n.refuse("has " + Twine(hidden) + " units, at most " + Twine(maxUnits) + " are supported");
    int64_t stated = n.attrInt("hidden_size", hidden);
    if (stated != hidden || hidden < 1)
      n.refuse("attribute 'hidden_size' is " + Twine(stated) + ", but " + n.inputName(2) + " is " + n.text(r));
    batch = Node::dimsOf(x)[batchFirst ? 0 : 1];
    AffineExpr d = n.dim(directions), rows = n.dim(gates * hidden);
    needShape(1, {d, rows, Node::dimsOf(x)[2]});
    needShape(2, {d, rows, n.dim(hidden)});
    if (n.has(3))
      needShape(3, {d, n.dim(2 * gates * hidden)});
  }

  void readFunctions(const std::vector<std::string> &defaults) {
    std::vector<std::string> names;
    if (const ::onnx::AttributeProto *attr = n.findAttr("activations")) {
      if (attr->type() != ::onnx::AttributeProto::STRINGS)
        n.refuse("attribute 'activations' is no list of names");
      names.assign(attr->strings().begin(), attr->strings().end());
    }
    if (names.empty())
      names = defaults;
    if (directions == 2 && names.size() == defaults.size())
      for (size_t i = 0; i < defaults.size(); ++i) // both directions alike
        names.push_back(std::string(names[i]));
    if (names.size() != defaults.size() * directions)
      n.refuse("attribute 'activations' has " + Twine(names.size()) + " names, expected " +
               Twine(defaults.size() * directions));
    // The parameters are those of the functions that take some, in order.
    std::vector<float> alphas = n.attrFloats("activation_alpha"), betas = n.attrFloats("activation_beta");
    size_t nextAlpha = 0, nextBeta = 0;
    functions.resize(directions);
    for (size_t i = 0; i < names.size(); ++i) {
      std::string name = StringRef(names[i]).lower();
      const FunctionRow *row = llvm::find_if(functionRows, [&](const FunctionRow &r) { return name == r.name; });
      if (row == std::end(functionRows))
        n.refuse("attribute 'activations' names '" + Twine(names[i]) +
                 "', expected Sigmoid, Tanh, Relu, Affine, LeakyRelu, ThresholdedRelu, ScaledTanh, HardSigmoid, Elu, "
                 "Softsign or Softplus");
      Functions &f = functions[i / defaults.size()];
      f.kinds.push_back(nn::CellActivationAttr::get(n.context(), row->kind));
      auto parameter = [](float otherwise, const std::vector<float> &given, size_t &next) {
        if (std::isnan(otherwise))
          return 0.0f;
        return next < given.size() ? given[next++] : otherwise;
      };
      f.alphas.push_back(parameter(row->alpha, alphas, nextAlpha));
      f.betas.push_back(parameter(row->beta, betas, nextBeta));
    }
  }
};

void rnn(Node &n) {
  Layer layer(n, 1, {"Tanh"});
  for (int64_t d = 0; d < layer.directions; ++d) {
    Value bias = layer.bias(d, 0, 0, 1);
    if (bias)
      bias = n.add(bias, layer.bias(d, 1, 0, 1));
    layer.make<nn::RnnOp>(d, {layer.project(d, bias), layer.part(2, d), layer.initial(5, d), layer.lengths()}, {});
  }
  layer.finish();
}

void gru(Node &n) {
  Layer layer(n, 3, {"Sigmoid", "Tanh"});
  bool linear = n.attrInt("linear_before_reset", 0) != 0;
  for (int64_t d = 0; d < layer.directions; ++d) {
    // The recurrent bias of the candidate is inside the product with the reset gate when that comes last.
    Value bias = layer.bias(d, 0, 0, 3), candidate;
    if (bias) {
      candidate = layer.bias(d, 1, 2, 3);
      Value recurrent = layer.bias(d, 1, 0, 2);
      Value last = linear ? n.broadcast(n.like(0, candidate), Node::dimsOf(candidate)) : candidate;
      bias = n.add(bias, n.concat({recurrent, last}, 0));
    }
    nn::GruOp::Properties p;
    if (linear)
      p.linear_before_reset = n.builder().getUnitAttr();
    layer.make<nn::GruOp>(d, {layer.project(d, bias), layer.part(2, d), linear ? candidate : Value(), layer.initial(5, d),
                              layer.lengths()}, p);
  }
  layer.finish();
}

void lstm(Node &n) {
  Layer layer(n, 4, {"Sigmoid", "Tanh", "Tanh"});
  for (int64_t d = 0; d < layer.directions; ++d) {
    Value bias = layer.bias(d, 0, 0, 4);
    if (bias)
      bias = n.add(bias, layer.bias(d, 1, 0, 4));
    nn::LstmOp::Properties p;
    if (n.attrInt("input_forget", 0))
      p.input_forget = n.builder().getUnitAttr();
    Value peephole = layer.part(7, d);
    if (peephole) {
      if (Node::dimsOf(peephole) != Dims{n.dim(3 * layer.hidden)})
        n.refuse(n.inputName(7) + " is " + n.text(n.in(7)) + ", expected 3 * " + Twine(layer.hidden) + " weights for a direction");
      peephole = n.reshape(peephole, {int64_t(3), layer.hidden});
    }
    Value none;
    layer.make<nn::LstmOp>(d, {layer.project(d, bias), layer.part(2, d), peephole, none, none, none, none,
                               layer.initial(5, d), layer.initial(6, d), layer.lengths()}, p);
  }
  layer.finish();
}

constexpr OpRow rows[] = {
    {"", "RNN", rnn},
    {"", "GRU", gru},
    {"", "LSTM", lstm},
};

} // namespace

ArrayRef<OpRow> recurrentRows() { return rows; }

} // namespace ajour::onnx_import
