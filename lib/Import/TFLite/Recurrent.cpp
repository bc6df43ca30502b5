//===- Recurrent.cpp - LSTM, RNN and SVDF ----------------------------------------===//
//
// A layer is the product of all its steps with the input's weights, and a recurrence (nn.rnn, nn.lstm). Weights of
// fewer bits than the input (hybrid models) are dequantised. Variable tensors are states. Sources: the format's
// documentation of each operator and its published reference kernels.
//
//===----------------------------------------------------------------------===//
#include "Recurrent.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::tflite {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

Value timeMajorInput(Node &node, Value x, bool timeMajor) {
  if (!x)
    return {};
  RankedTensorType type = typeOf(x);
  if (type.getRank() == 2) {
    Dims dims = getDims(x);
    return node.reshape(x, {node.b.getAffineConstantExpr(1), dims[0], dims[1]});
  }
  if (type.getRank() != 3) {
    node.error() << "an input of rank 2 or 3 is needed, found " << nn::toString(type);
    return {};
  }
  return timeMajor ? x : node.transpose(x, {1, 0, 2});
}

Value fromTimeMajor(Node &node, Value y, bool timeMajor, size_t rank) {
  if (!y)
    return {};
  if (rank == 2) {
    Dims dims = getDims(y);
    return node.reshape(y, ArrayRef(dims).drop_front());
  }
  return timeMajor ? y : node.transpose(y, {1, 0, 2});
}

namespace {

/// A constant of 0 in a shape.
Value zeros(Node &node, ArrayRef<int64_t> shape) { return node.broadcast(node.scalar(node.b.getF32Type(), 0), shape); }

/// Weights of several gates under each other as f32. Where all are 8-bit constants they stay such, with a scale for each
/// row; a null entry is minus the one in `negated`.
Value stackWeights(Node &node, ArrayRef<int> operands) {
  bool stayQuantised = llvm::all_of(operands, [&](int i) {
    return node.has(i) && node.isQuantized(i) && node.in(i).isConstant && node.in(i).elementType.isSignlessInteger(8) &&
           node.in(i).shape.size() == 2 && (node.in(i).quant->isPerTensor() || node.in(i).quant->axis == 0);
  });
  SmallVector<Value> parts;
  QuantInfo rows;
  for (int i : operands) {
    parts.push_back(stayQuantised ? node.value(i) : node.floatValue(i));
    if (!stayQuantised)
      continue;
    const TensorData &tensor = node.in(i);
    for (int64_t row = 0; row < tensor.shape[0]; ++row) {
      size_t own = tensor.quant->isPerTensor() ? 0 : row;
      rows.scales.push_back(tensor.quant->scales[own]);
      rows.zeroPoints.push_back(tensor.quant->zeroPoints[own]);
    }
  }
  if (llvm::is_contained(parts, Value()))
    return {};
  Value stacked = node.concat(parts, 0);
  return stayQuantised ? node.dequantize(stacked, rows) : stacked;
}

/// The functions of a cell: sigmoid `gates` times, then what the operator's activation says.
bool setFunctions(Node &node, Activation activation, size_t gates, size_t others, ArrayAttr &kinds,
                  DenseF32ArrayAttr &alphas) {
  CellActivation kind;
  switch (activation) {
  case Activation::NONE:
    kind = CellActivation::affine;
    break;
  case Activation::RELU:
    kind = CellActivation::relu;
    break;
  case Activation::RELU6:
    kind = CellActivation::relu6;
    break;
  case Activation::TANH:
    kind = CellActivation::tanh;
    break;
  default:
    node.error() << "fused activation " << EnumNameActivation(activation) << " is not supported; the nearest supported is TANH";
    return false;
  }
  SmallVector<Attribute> list(gates, CellActivationAttr::get(node.b.getContext(), CellActivation::sigmoid));
  list.append(others, CellActivationAttr::get(node.b.getContext(), kind));
  kinds = node.b.getArrayAttr(list);
  alphas = node.b.getDenseF32ArrayAttr(SmallVector<float>(list.size(), 1));
  return true;
}

/// Sets the segments of optional operands and returns those that are there.
template <typename Properties> SmallVector<Value> present(Properties &properties, ArrayRef<Value> operands) {
  SmallVector<Value> list;
  for (auto [segment, operand] : llvm::zip_equal(properties.operandSegmentSizes, operands)) {
    segment = operand ? 1 : 0;
    if (operand)
      list.push_back(operand);
  }
  return list;
}

Value product(Node &node, Value x, Value weights, Value bias) {
  if (!x || !weights)
    return {};
  MatmulOp::Properties p;
  p.setTransposeRhs(node.b.getUnitAttr());
  SmallVector<Value> operands{x, weights};
  if (bias)
    operands.push_back(bias);
  return node.create<MatmulOp>(p, operands);
}

//===----------------------------------------------------------------------===//
// RNN
//===----------------------------------------------------------------------===//

/// One direction from operand `first` on: weights, recurrent weights, bias, state. [T, B, H], or null after a diagnostic.
Value importRnnDirection(Node &node, Value x, int first, Activation activation, bool reverse) {
  Value state = node.floatValue(first + 3);
  Value sums = product(node, x, node.floatValue(first), node.has(first + 2) ? node.floatValue(first + 2) : Value());
  Value recurrent = node.floatValue(first + 1);
  RnnOp::Properties p;
  if (!state || !sums || !recurrent || !setFunctions(node, activation, 0, 1, p.activations, p.alphas))
    return {};
  if (reverse)
    p.reverse = node.b.getUnitAttr();
  SmallVector<Value> operands = present(p, {sums, recurrent, state, Value()});
  SmallVector<Type> types;
  if (!node.createMany<RnnOp>(p, operands, types))
    return {};
  Value output = node.last[0], final = node.last[1];
  return succeeded(node.setVariable(first + 3, final)) ? output : Value();
}

LogicalResult importRnn(Node &node) {
  const Rnn *o = node.options<Rnn>();
  size_t rank = node.in(0).shape.size();
  Value x = timeMajorInput(node, node.floatValue(0), /*timeMajor=*/true);
  Value y = x ? importRnnDirection(node, x, 1, o ? o->activation() : Activation::NONE, false) : Value();
  return y ? node.setFloat(fromTimeMajor(node, y, true, rank)) : failure();
}

LogicalResult importSequenceRnn(Node &node) {
  const SequenceRnn *o = node.options<SequenceRnn>();
  bool timeMajor = o && o->time_major();
  Value x = timeMajorInput(node, node.floatValue(0), timeMajor);
  Value y = x ? importRnnDirection(node, x, 1, o ? o->activation() : Activation::NONE, false) : Value();
  return y ? node.setFloat(fromTimeMajor(node, y, timeMajor, 3)) : failure();
}

/// Two directions, each a result or joined in the last dimension.
LogicalResult setDirections(Node &node, Value forward, Value backward, bool timeMajor, bool merge) {
  if (!forward || !backward)
    return failure();
  if (merge)
    return node.setFloat(fromTimeMajor(node, node.concat({forward, backward}, 2), timeMajor, 3));
  return success(succeeded(node.setFloat(fromTimeMajor(node, forward, timeMajor, 3), 0)) &&
                 succeeded(node.setFloat(fromTimeMajor(node, backward, timeMajor, 3), 1)));
}

/// Auxiliary inputs join layers of both directions in a way that no converter writes any more.
LogicalResult refuseAuxiliary(Node &node, int first, int last) {
  for (int i = first; i <= last; ++i)
    if (node.has(i))
      return node.error() << "operand " << i << ", of an auxiliary input, is not supported; concatenate the inputs instead";
  return success();
}

LogicalResult importBidirectionalRnn(Node &node) {
  const BidirectionalRnn *o = node.options<BidirectionalRnn>();
  bool timeMajor = o && o->time_major();
  if (failed(refuseAuxiliary(node, 9, 11)))
    return failure();
  Value x = timeMajorInput(node, node.floatValue(0), timeMajor);
  if (!x)
    return failure();
  Activation activation = o ? o->activation() : Activation::NONE;
  Value forward = importRnnDirection(node, x, 1, activation, false);
  Value backward = importRnnDirection(node, x, 5, activation, true);
  return setDirections(node, forward, backward, timeMajor, o && o->merge_outputs());
}

//===----------------------------------------------------------------------===//
// LSTM
//===----------------------------------------------------------------------===//

/// Four gates' vectors as [4, H]; null when there are none.
Value stackVectors(Node &node, int first, ArrayRef<int> order, int64_t hidden) {
  SmallVector<Value> rows;
  for (int gate : order)
    if (node.has(first + gate))
      rows.push_back(node.reshape(node.floatValue(first + gate), {1, hidden}));
    else
      rows.push_back(zeros(node, {1, hidden}));
  return llvm::is_contained(rows, Value()) ? Value() : node.concat(rows, 0);
}

Value negated(Node &node, Value x) { return x ? node.unary(UnaryKind::neg, x) : Value(); }

/// Rows [from, from + count) of a matrix.
Value rowsOf(Node &node, Value x, int64_t from, int64_t count) {
  return node.slice(x, {from, 0}, {1, 1}, {node.b.getAffineConstantExpr(count), getDims(x)[1]});
}

/// Weights, vectors and flags of the four gates. Where the input gate is coupled to the forget gate (it has no weights),
/// ours is minus the forget gate's, since sigmoid(-x) = 1 - sigmoid(x), and nn.lstm takes 1 - i for the forget gate.
struct Gates {
  Value weights, recurrent, bias, peephole, norm;
  bool coupled = false;
};

Value couple(Node &node, Value stacked, int64_t hidden) {
  // Order i, o, f, c with i still as f: turn the first rows around.
  Value first = negated(node, rowsOf(node, stacked, 0, hidden));
  return node.concat({first, rowsOf(node, stacked, hidden, typeOf(stacked).getDimSize(0) - hidden)}, 0);
}

std::optional<Gates> readGates(Node &node, const LstmOperands &at, int64_t hidden) {
  Gates gates;
  gates.coupled = !node.has(at.weights);
  SmallVector<int> order(std::begin(gateOrder), std::end(gateOrder));
  if (gates.coupled)
    order[0] = 1;
  SmallVector<int> weights, recurrent;
  for (int gate : order) {
    weights.push_back(at.weights + gate);
    recurrent.push_back(at.recurrent + gate);
  }
  gates.weights = stackWeights(node, weights);
  gates.recurrent = stackWeights(node, recurrent);
  gates.bias = stackVectors(node, at.bias, order, hidden);
  if (!gates.weights || !gates.recurrent || !gates.bias)
    return std::nullopt;
  if (at.norm >= 0 && node.has(at.norm + 1) && !(gates.norm = stackVectors(node, at.norm, order, hidden)))
    return std::nullopt;
  if (at.peephole >= 0 && node.has(at.peephole + 1)) {
    // Input, forget, output; ours are input, output, forget.
    int own[] = {gates.coupled ? 1 : 0, 2, 1};
    if (!(gates.peephole = stackVectors(node, at.peephole, own, hidden)))
      return std::nullopt;
  }
  if (!gates.coupled)
    return gates;
  // A norm of minus the sums is minus their norm: only weights, peephole and bias change sign.
  gates.weights = couple(node, gates.weights, hidden);
  gates.recurrent = couple(node, gates.recurrent, hidden);
  gates.bias = couple(node, gates.bias, 1);
  if (gates.peephole)
    gates.peephole = couple(node, gates.peephole, 1);
  return gates;
}

/// One direction in floating point: [T, B, R], or null after a diagnostic.
Value importFloatLstm(Node &node, Value x, const LstmOperands &at, const LstmOptions &options) {
  if (!node.has(at.weights + 1) || node.in(at.weights + 1).shape.size() != 2) {
    node.error() << "weights of rank 2 are needed at operand " << at.weights + 1;
    return {};
  }
  int64_t hidden = node.in(at.weights + 1).shape[0];
  std::optional<Gates> gates = readGates(node, at, hidden);
  Value state = node.floatValue(at.state), cell = node.floatValue(at.cell);
  if (!gates || !state || !cell)
    return {};
  Value bias = node.reshape(gates->bias, {4 * hidden});
  Value sums = product(node, x, gates->weights, gates->norm ? Value() : bias);
  Value projection, projectionBias;
  if (at.projection >= 0 && node.has(at.projection) && !(projection = node.floatValue(at.projection)))
    return {};
  if (projection && node.has(at.projectionBias) && !(projectionBias = node.floatValue(at.projectionBias)))
    return {};
  LstmOp::Properties p;
  if (!sums || !setFunctions(node, options.activation, 1, 2, p.activations, p.alphas))
    return {};
  p.cell_clip = node.b.getF32FloatAttr(options.cellClip);
  p.projection_clip = node.b.getF32FloatAttr(options.projectionClip);
  if (options.reverse)
    p.reverse = node.b.getUnitAttr();
  if (gates->coupled)
    p.input_forget = node.b.getUnitAttr();
  SmallVector<Value> operands = present(p, {sums, gates->recurrent, gates->peephole, gates->norm,
                                            gates->norm ? gates->bias : Value(), projection, projectionBias, state, cell,
                                            Value()});
  SmallVector<Type> types;
  if (!node.createMany<LstmOp>(p, operands, types))
    return {};
  Value output = node.last[0], last = node.last[1], lastCell = node.last[2];
  if (failed(node.setVariable(at.state, last)) || failed(node.setVariable(at.cell, lastCell)))
    return {};
  return output;
}

/// 8-bit input and result make the whole layer one of integers.
bool isInteger(Node &node, const LstmOperands &at) {
  return node.isQuantized(at.input) && node.has(at.weights + 1) && node.isQuantized(at.weights + 1);
}

constexpr LstmOperands fullOperands{0, 1, 5, 9, 12, 16, 17, 18, 19, 20};

LogicalResult importLayer(Node &node, const LstmOptions &options) {
  LstmOperands at = fullOperands;
  if (node.numInputs() <= 20)
    at.norm = -1;
  size_t rank = node.in(0).shape.size();
  if (isInteger(node, at)) {
    Value y = importQuantizedLstm(node, at, options);
    return y ? node.set(fromTimeMajor(node, y, options.timeMajor, rank)) : failure();
  }
  Value x = timeMajorInput(node, node.floatValue(0), options.timeMajor);
  Value y = x ? importFloatLstm(node, x, at, options) : Value();
  return y ? node.setFloat(fromTimeMajor(node, y, options.timeMajor, rank)) : failure();
}

LogicalResult importSequenceLstm(Node &node) {
  const SequenceLstm *o = node.options<SequenceLstm>();
  if (o && o->diagonal_recurrent_tensors())
    return node.error() << "diagonal recurrent weights are not supported; the nearest supported are full matrices";
  LstmOptions options;
  if (o)
    options = {o->activation(), o->cell_clip(), o->proj_clip(), o->time_major()};
  return importLayer(node, options);
}

/// The kernel of five operands: one matrix for input and state, gates input, candidate, forget, output, and the states as
/// ordinary values: activation, cell; results: activation, cell and two scratch tensors.
LogicalResult importBasicLstm(Node &node) {
  Value x = node.floatValue(0), state = node.floatValue(1), weights = node.floatValue(2), bias = node.floatValue(3),
        cell = node.floatValue(4);
  if (!x || !state || !weights || !bias || !cell)
    return failure();
  if (typeOf(x).getRank() != 2 || typeOf(cell).getRank() != 2 || typeOf(weights).getRank() != 2 ||
      !typeOf(weights).hasStaticShape() || !typeOf(cell).hasStaticShape())
    return node.error() << "matrices are needed, found " << nn::toString(typeOf(x)) << " and "
                        << nn::toString(typeOf(weights));
  int64_t hidden = typeOf(cell).getDimSize(1), columns = typeOf(weights).getDimSize(1);
  int64_t width = columns - hidden;
  if (typeOf(weights).getDimSize(0) != 4 * hidden || width < 1)
    return node.error() << "weights " << nn::toString(typeOf(weights)) << " do not fit a cell of " << hidden << " units";
  auto size = [&](int64_t value) { return node.b.getAffineConstantExpr(value); };
  SmallVector<Value> own, recurrent, biases;
  bias = node.reshape(bias, {int64_t(1), 4 * hidden});
  for (int gate : {0, 3, 2, 1}) {
    own.push_back(node.slice(weights, {gate * hidden, 0}, {1, 1}, {size(hidden), size(width)}));
    recurrent.push_back(node.slice(weights, {gate * hidden, width}, {1, 1}, {size(hidden), size(hidden)}));
    biases.push_back(node.slice(bias, {0, gate * hidden}, {1, 1}, {size(1), size(hidden)}));
  }
  Value sums = product(node, timeMajorInput(node, x, true), node.concat(own, 0),
                       node.reshape(node.concat(biases, 1), {4 * hidden}));
  LstmOp::Properties p;
  if (!sums || !setFunctions(node, Activation::TANH, 1, 2, p.activations, p.alphas))
    return failure();
  Value none;
  SmallVector<Value> operands =
      present(p, {sums, node.concat(recurrent, 0), none, none, none, none, none, state, cell, none});
  SmallVector<Type> types;
  if (!node.createMany<LstmOp>(p, operands, types))
    return failure();
  Value last = node.last[1], lastCell = node.last[2];
  if (failed(node.setVariable(1, last)) || failed(node.setVariable(4, lastCell)) || failed(node.setFloat(last, 0)))
    return failure();
  if (node.numOutputs() > 1 && failed(node.setFloat(lastCell, 1)))
    return failure();
  // What the kernel keeps in its scratch tensors: the joined operands, and the gates before their functions.
  if (node.numOutputs() > 2 && failed(node.setFloat(node.concat({x, state}, 1), 2)))
    return failure();
  if (node.numOutputs() > 3 && failed(node.setFloat(zeros(node, node.out(3).shape), 3)))
    return failure();
  return success();
}

LogicalResult importLstm(Node &node) {
  const Lstm *o = node.options<Lstm>();
  if (o && o->kernel_type() == LstmKernel::BASIC)
    return node.isQuantized(0) ? node.error() << "the basic kernel on " << typeName(node.in(0).format)
                                              << " is not supported, expected FLOAT32; the nearest supported is the full kernel"
                               : importBasicLstm(node);
  LstmOptions options;
  if (o)
    options = {o->activation(), o->cell_clip(), o->proj_clip(), /*timeMajor=*/true};
  if (node.numInputs() < 20)
    return node.error() << node.numInputs() << " operands, expected 20 or 24";
  return importLayer(node, options);
}

LogicalResult importBidirectionalLstm(Node &node) {
  const BidirectionalLstm *o = node.options<BidirectionalLstm>();
  if (failed(refuseAuxiliary(node, 39, 47)))
    return failure();
  LstmOptions options;
  options.timeMajor = true;
  if (o)
    options = {o->activation(), o->cell_clip(), o->proj_clip(), o->time_major()};
  LstmOperands forward{0, 1, 5, 9, 12, 16, 17, 35, 36, -1}, backward{0, 18, 22, 26, 29, 33, 34, 37, 38, -1};
  if (isInteger(node, forward))
    return node.error() << "both directions on " << typeName(node.in(0).format)
                        << " are not supported, expected FLOAT32; the nearest supported is UNIDIRECTIONAL_SEQUENCE_LSTM";
  Value x = timeMajorInput(node, node.floatValue(0), options.timeMajor);
  if (!x)
    return failure();
  Value first = importFloatLstm(node, x, forward, options);
  options.reverse = true;
  Value second = first ? importFloatLstm(node, x, backward, options) : Value();
  return setDirections(node, first, second, options.timeMajor, o && o->merge_outputs());
}

//===----------------------------------------------------------------------===//
// SVDF
//===----------------------------------------------------------------------===//

/// Each filter's products with the input of the last M steps are a row of the state; a filter's value is their sum with
/// its weights over time, a unit's the sum of its filters.
LogicalResult importSvdf(Node &node) {
  const Svdf *o = node.options<Svdf>();
  int64_t rank = o ? o->rank() : 0;
  bool integer = node.isQuantized(0) && node.isQuantized(1) && node.out().isQuantized();
  Value x = integer ? node.value(0) : node.floatValue(0), features = integer ? node.value(1) : node.floatValue(1);
  Value time = integer ? node.value(2) : node.floatValue(2), state = node.value(4);
  if (!x || !features || !time || !state)
    return failure();
  if (typeOf(x).getRank() != 2 || typeOf(features).getRank() != 2 || typeOf(time).getRank() != 2 || rank < 1 ||
      !typeOf(time).hasStaticShape() || typeOf(time).getDimSize(0) % rank)
    return node.error() << "an input [B, I], weights [F, I] and [F, M] and a rank that divides F are needed, found "
                        << nn::toString(typeOf(x)) << ", " << nn::toString(typeOf(features)) << ", "
                        << nn::toString(typeOf(time)) << " and " << rank;
  int64_t filters = typeOf(time).getDimSize(0), memory = typeOf(time).getDimSize(1), units = filters / rank;
  AffineExpr batch = getDims(x)[0];
  auto size = [&](int64_t value) { return node.b.getAffineConstantExpr(value); };
  Type stateElement = typeOf(state).getElementType();
  MatmulOp::Properties p;
  p.setTransposeRhs(node.b.getUnitAttr());
  if (integer) {
    for (size_t i : {0, 1, 2, 4})
      if (failed(node.needPerTensor(node.in(i))))
        return failure();
    p.setLhsZeroPoint(node.b.getI32IntegerAttr(node.in(0).quant->zeroPoints[0]));
    p.setRhsZeroPoints(node.b.getDenseI32ArrayAttr(weightZeroPoints(node.in(1))));
  }
  Value newest = node.create<MatmulOp>(p, {x, features});
  auto scaleOf = [&](const TensorData &tensor) { return double(tensor.quant->scales[0]); };
  if (integer)
    newest = node.requantize(newest, quantizeMultiplier(scaleOf(node.in(0)) * scaleOf(node.in(1)) / scaleOf(node.in(4))), 0,
                             stateElement);
  Dims stateDims = getDims(state);
  state = node.reshape(state, {batch, size(filters), size(memory)});
  newest = node.reshape(newest, {batch, size(filters), size(1)});
  Value next = newest;
  if (memory > 1)
    next = node.concat({node.slice(state, {0, 0, 1}, {1, 1, 1}, {batch, size(filters), size(memory - 1)}), newest}, 2);
  if (!next || failed(node.setVariable(4, node.reshape(next, stateDims))))
    return failure();
  Value wide = next;
  if (integer) {
    wide = node.cast(next, node.b.getI32Type());
    time = node.cast(time, node.b.getI32Type());
  }
  Value sums = node.reduce(ReduceKind::sum, node.binary(BinaryKind::mul, wide, time), {2}, false);
  sums = node.reduce(ReduceKind::sum, node.reshape(sums, {batch, size(units), size(rank)}), {2}, false);
  if (node.has(3))
    sums = node.binary(BinaryKind::add, sums, integer ? node.value(3) : node.floatValue(3));
  Activation activation = o ? o->activation() : Activation::NONE;
  if (!integer)
    return node.setFloat(node.activate(sums, activation));
  std::optional<Range> range = node.activationRange(activation, node.out());
  if (!range)
    return failure();
  FixedPoint factor = quantizeMultiplier(scaleOf(node.in(4)) * scaleOf(node.in(2)) / scaleOf(node.out()));
  return node.set(node.requantize(sums, factor, node.out().quant->zeroPoints[0], node.out().elementType, range));
}

const OpRow rows[] = {
    {Builtin::RNN, 3, 5, 5, importRnn},
    {Builtin::UNIDIRECTIONAL_SEQUENCE_RNN, 3, 5, 5, importSequenceRnn},
    {Builtin::BIDIRECTIONAL_SEQUENCE_RNN, 3, 9, 12, importBidirectionalRnn},
    {Builtin::LSTM, 4, 5, 24, importLstm},
    {Builtin::UNIDIRECTIONAL_SEQUENCE_LSTM, 4, 20, 24, importSequenceLstm},
    {Builtin::BIDIRECTIONAL_SEQUENCE_LSTM, 3, 39, 48, importBidirectionalLstm},
    {Builtin::SVDF, 4, 5, 5, importSvdf},
};

} // namespace

ArrayRef<OpRow> recurrentRows() { return rows; }

} // namespace ajour::tflite
