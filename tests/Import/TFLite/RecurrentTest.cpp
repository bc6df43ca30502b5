//===- RecurrentTest.cpp - recurrent operators and state of TFLite files ----------------===//
//
// With gates of sigmoid(0) = 1/2 and no activation, every number can be worked out by hand. Results are main's: the
// outputs, then the states.
//
//===----------------------------------------------------------------------===//
#include "Import/TFLite/Builder.h"

#include <gmock/gmock.h>

#include <cmath>

using namespace ajour;
using namespace ajour::test;
using namespace ajour::tflite;
using testing::HasSubstr;

namespace {

using Floats = std::vector<float>;
constexpr auto F32 = TensorType::FLOAT32;

template <typename T> HostTensor makeTensor(uint32_t type, std::vector<int64_t> shape, const std::vector<T> &elements) {
  HostTensor tensor{type, std::move(shape), {}};
  const char *bytes = reinterpret_cast<const char *>(elements.data());
  tensor.data.assign(bytes, bytes + elements.size() * sizeof(T));
  return tensor;
}
HostTensor floats(std::vector<int64_t> shape, Floats elements) { return makeTensor(AJOUR_F32, std::move(shape), elements); }

void expectResult(const Outcome &outcome, size_t i, const Floats &expected, float tolerance = 1e-6f) {
  ASSERT_LT(i, outcome.outputs.size()) << outcome.errors;
  const HostTensor &found = outcome.outputs[i];
  ASSERT_EQ(found.elementType, uint32_t(AJOUR_F32));
  ASSERT_EQ(found.numElements(), int64_t(expected.size()));
  for (size_t k = 0; k < expected.size(); ++k)
    EXPECT_NEAR(found.as<float>()[k], expected[k], tolerance) << "result " << i << ", element " << k;
}

int variable(TFLiteBuilder &b, const std::string &name, TensorType type, std::vector<int32_t> shape) {
  int index = b.tensor(name, type, std::move(shape));
  b.at(index).is_variable = true;
  return index;
}

/// One direction's operands 1 to 17 for one unit and one input: gates of 1/2, the candidate is x. Optional ones absent.
std::vector<int32_t> simpleDirection(TFLiteBuilder &b, const std::string &name, bool coupled = false, float forgetBias = 0) {
  std::vector<int32_t> in(17, -1);
  const float weights[] = {0, 0, 1, 0};
  for (int gate = 0; gate < 4; ++gate) {
    if (gate == 0 && coupled)
      continue;
    in[gate] = b.constant<float>(name + "w" + std::to_string(gate), F32, {1, 1}, {weights[gate]});
    in[4 + gate] = b.constant<float>(name + "r" + std::to_string(gate), F32, {1, 1}, {0});
    in[11 + gate] = b.constant<float>(name + "b" + std::to_string(gate), F32, {1}, {gate == 1 ? forgetBias : 0});
  }
  return in;
}

TEST(TFLiteRecurrent, LstmKeepsItsState) {
  for (bool timeMajor : {false, true}) {
    TFLiteBuilder b;
    std::vector<int32_t> shape = timeMajor ? std::vector<int32_t>{2, 1, 1} : std::vector<int32_t>{1, 2, 1};
    int x = b.tensor("x", F32, shape), y = b.tensor("y", F32, shape);
    std::vector<int32_t> in{x};
    for (int operand : simpleDirection(b, ""))
      in.push_back(operand);
    in.push_back(variable(b, "h", F32, {1, 1}));
    in.push_back(variable(b, "c", F32, {1, 1}));
    b.op(Builtin::UNIDIRECTIONAL_SEQUENCE_LSTM, in, {y}, SequenceLstmT()).time_major = timeMajor;
    b.io({x}, {y});
    // c = 4 / 2, then 2 / 2 + 1 / 2; h is half of it.
    Outcome o = importModel(b, {floats({shape[0], shape[1], 1}, {4, 1})});
    expectResult(o, 0, {1, .75f});
    expectResult(o, 1, {.75f});
    expectResult(o, 2, {1.5f});
  }
}

TEST(TFLiteRecurrent, FullLstmOfOneStepWithCoupledGates) {
  TFLiteBuilder b;
  int x = b.tensor("x", F32, {1, 1}), y = b.tensor("y", F32, {1, 1});
  std::vector<int32_t> in{x};
  for (int operand : simpleDirection(b, "", /*coupled=*/true, std::log(3.0f))) // forget 3/4, input 1/4
    in.push_back(operand);
  in.push_back(b.constant<float>("h", F32, {1, 1}, {0}));
  in.push_back(b.constant<float>("c", F32, {1, 1}, {8}));
  b.op(Builtin::LSTM, in, {y}, LstmT()).cell_clip = 6.5f;
  b.io({x}, {y});
  Outcome o = importModel(b, {floats({1, 1}, {4})});
  expectResult(o, 0, {3.25f}); // c = 6 + 1, limited to 6.5
  EXPECT_EQ(o.outputs.size(), 1u) << "constant states are none";
}

TEST(TFLiteRecurrent, LstmNormalisesItsGates) {
  TFLiteBuilder b;
  int x = b.tensor("x", F32, {1, 1, 1}), y = b.tensor("y", F32, {1, 1, 2});
  std::vector<int32_t> in(24, -1);
  in[0] = x;
  for (int gate = 0; gate < 4; ++gate) {
    std::string n = std::to_string(gate);
    in[1 + gate] = b.constant<float>("w" + n, F32, {2, 1}, gate == 2 ? Floats{1, 3} : Floats{0, 0});
    in[5 + gate] = b.constant<float>("r" + n, F32, {2, 2}, {0, 0, 0, 0});
    in[12 + gate] = b.constant<float>("b" + n, F32, {2}, {0, 0});
    in[20 + gate] = b.constant<float>("n" + n, F32, {2}, {2, 2});
  }
  in[18] = variable(b, "h", F32, {1, 2});
  in[19] = variable(b, "c", F32, {1, 2});
  b.op(Builtin::UNIDIRECTIONAL_SEQUENCE_LSTM, in, {y}, SequenceLstmT());
  b.io({x}, {y});
  // The candidate is (1, 3) normalised to (-1, 1), times 2; c is half of it, h half of that.
  expectResult(importModel(b, {floats({1, 1, 1}, {1})}), 0, {-.5f, .5f}, 1e-5f);
}

TEST(TFLiteRecurrent, BasicLstm) {
  TFLiteBuilder b;
  int x = b.tensor("x", F32, {1, 1}), h = b.tensor("h", F32, {1, 1}), c = b.tensor("c", F32, {1, 1});
  // Rows: input, candidate, forget, output; columns: x, h.
  int w = b.constant<float>("w", F32, {4, 2}, {0, 0, 1, .5f, 0, 0, 0, 0}), bias = b.constant<float>("b", F32, {4}, {0, 0, 0, 0});
  int y = b.tensor("y", F32, {1, 1}), next = b.tensor("next", F32, {1, 1});
  int joined = b.tensor("joined", F32, {1, 2}), gates = b.tensor("gates", F32, {1, 4});
  b.op(Builtin::LSTM, {x, h, w, bias, c}, {y, next, joined, gates}, LstmT()).kernel_type = LstmKernel::BASIC;
  b.io({x, h, c}, {y, next});
  Outcome o = importModel(b, {floats({1, 1}, {1}), floats({1, 1}, {.5f}), floats({1, 1}, {2})});
  float cell = 1 + std::tanh(1.25f) / 2;
  expectResult(o, 0, {std::tanh(cell) / 2});
  expectResult(o, 1, {cell});
}

TEST(TFLiteRecurrent, Rnn) {
  auto model = [](Builtin code, std::vector<int32_t> shape) {
    TFLiteBuilder b;
    int x = b.tensor("x", F32, shape), y = b.tensor("y", F32, shape);
    std::vector<int32_t> in{x, b.constant<float>("w", F32, {1, 1}, {2}), b.constant<float>("r", F32, {1, 1}, {.5f}),
                            b.constant<float>("b", F32, {1}, {1}), variable(b, "h", F32, {1, 1})};
    if (code == Builtin::RNN) {
      b.op(code, in, {y}, RnnT()).activation = tflite::Activation::RELU;
    } else {
      SequenceRnnT &options = b.op(code, in, {y}, SequenceRnnT());
      options.activation = tflite::Activation::RELU;
      options.time_major = true;
    }
    b.io({x}, {y});
    return b;
  };
  Outcome one = importModel(model(Builtin::RNN, {1, 1}), {floats({1, 1}, {3})});
  expectResult(one, 0, {7});
  expectResult(one, 1, {7});
  Outcome sequence = importModel(model(Builtin::UNIDIRECTIONAL_SEQUENCE_RNN, {2, 1, 1}), {floats({2, 1, 1}, {3, -4})});
  expectResult(sequence, 0, {7, 0}); // -8 + 3.5 + 1
  expectResult(sequence, 1, {0});
}

TEST(TFLiteRecurrent, BothDirections) {
  for (bool merge : {false, true}) {
    TFLiteBuilder b;
    int x = b.tensor("x", F32, {1, 2, 1}), y = b.tensor("y", F32, {1, 2, merge ? 2 : 1}), z = b.tensor("z", F32, {1, 2, 1});
    auto one = [&](const char *name) { return b.constant<float>(name, F32, {1, 1}, {1}); };
    int zero = b.constant<float>("b", F32, {1}, {0});
    std::vector<int32_t> in{x, one("fw"), one("fr"), zero, variable(b, "fh", F32, {1, 1}),
                            one("bw"), one("br"), zero, variable(b, "bh", F32, {1, 1}), -1, -1, -1};
    std::vector<int32_t> out = merge ? std::vector<int32_t>{y} : std::vector<int32_t>{y, z};
    b.op(Builtin::BIDIRECTIONAL_SEQUENCE_RNN, in, out, BidirectionalRnnT()).merge_outputs = merge;
    b.io({x}, out);
    Outcome o = importModel(b, {floats({1, 2, 1}, {1, 2})});
    if (merge) {
      expectResult(o, 0, {1, 3, 3, 2});
    } else {
      expectResult(o, 0, {1, 3});
      expectResult(o, 1, {3, 2});
    }
  }
}

TEST(TFLiteRecurrent, LstmInBothDirections) {
  TFLiteBuilder b;
  int x = b.tensor("x", F32, {1, 2, 1}), y = b.tensor("y", F32, {1, 2, 2});
  std::vector<int32_t> in{x};
  for (const char *name : {"f", "b"})
    for (int operand : simpleDirection(b, name))
      in.push_back(operand);
  for (const char *name : {"fh", "fc", "bh", "bc"})
    in.push_back(variable(b, name, F32, {1, 1}));
  in.insert(in.end(), 9, -1);
  BidirectionalLstmT &options = b.op(Builtin::BIDIRECTIONAL_SEQUENCE_LSTM, in, {y}, BidirectionalLstmT());
  options.merge_outputs = true;
  options.time_major = false;
  b.io({x}, {y});
  expectResult(importModel(b, {floats({1, 2, 1}, {4, 1})}), 0, {1, 1.125f, .75f, .25f});
}

TEST(TFLiteRecurrent, SvdfSumsItsMemory) {
  TFLiteBuilder b;
  int x = b.tensor("x", F32, {1, 1}), y = b.tensor("y", F32, {1, 1});
  // Two filters of one unit, memories of two steps.
  std::vector<int32_t> in{x, b.constant<float>("f", F32, {2, 1}, {2, 3}), b.constant<float>("t", F32, {2, 2}, {1, 5, 1, 7}),
                          b.constant<float>("b", F32, {1}, {.5f}), variable(b, "m", F32, {1, 4})};
  b.op(Builtin::SVDF, in, {y}, SvdfT()).rank = 2;
  b.io({x}, {y});
  Outcome o = importModel(b, {floats({1, 1}, {10})});
  expectResult(o, 0, {310.5f}); // 20 * 5 + 30 * 7 + .5
  expectResult(o, 1, {0, 20, 0, 30});
}

TEST(TFLiteRecurrent, SvdfOnIntegers) {
  TFLiteBuilder b;
  int x = b.tensor("x", TensorType::INT8, {1, 1}), y = b.tensor("y", TensorType::INT8, {1, 1});
  int f = b.constant<int8_t>("f", TensorType::INT8, {1, 1}, {2}), t = b.constant<int16_t>("t", TensorType::INT16, {1, 2}, {3, 5});
  int bias = b.constant<int32_t>("b", TensorType::INT32, {1}, {7}), m = variable(b, "m", TensorType::INT16, {1, 2});
  b.quantize(x, {1}, {1});
  b.quantize(y, {1}, {-3});
  b.quantize(f, {1}, {0});
  b.quantize(t, {1}, {0});
  b.quantize(m, {1}, {0});
  b.op(Builtin::SVDF, {x, f, t, bias, m}, {y}, SvdfT()).rank = 1;
  b.io({x}, {y});
  Outcome o = importModel(b, {makeTensor<int8_t>(AJOUR_I8, {1, 1}, {4})});
  ASSERT_EQ(o.outputs.size(), 2u) << o.errors;
  EXPECT_EQ(o.outputs[0].as<int8_t>()[0], (4 - 1) * 2 * 5 + 7 - 3);
  EXPECT_EQ(o.outputs[1].as<int16_t>()[0], 0);
  EXPECT_EQ(o.outputs[1].as<int16_t>()[1], 6);
}

//===----------------------------------------------------------------------===//
// LSTM on integers
//===----------------------------------------------------------------------===//

/// A layer of 3 inputs, 2 units and 4 steps with scattered weights, and what it means in floating point.
struct IntegerLstm {
  static constexpr int inputs = 3, units = 2, steps = 4;
  static constexpr double inputScale = 1 / 64.0, weightScale = 1 / 100.0, stateScale = 1 / 128.0, biasScale = inputScale * weightScale;
  static constexpr int inputZero = 5, stateZero = -3;
  bool coupled = false, peephole = false, project = false;
  float cellClip = 0;
  TFLiteBuilder b;
  std::vector<int32_t> in = std::vector<int32_t>(24, -1);
  int x = -1, y = -1;
  std::vector<int8_t> sequence;
  std::map<int, std::vector<double>> real; ///< of each operand

  template <typename T>
  void operand(int i, TensorType type, std::vector<int32_t> shape, double scale, int seed, int limit) {
    std::vector<T> values(std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>()));
    for (size_t k = 0; k < values.size(); ++k)
      values[k] = T(int((k * 7919 + seed * 104729) % (2 * limit + 1)) - limit);
    in[i] = b.constant<T>("c" + std::to_string(i), type, shape, values);
    b.quantize(in[i], {float(scale)}, {0});
    for (T value : values)
      real[i].push_back(value * scale);
  }

  void build() {
    x = in[0] = b.tensor("x", TensorType::INT8, {1, steps, inputs});
    y = b.tensor("y", TensorType::INT8, {1, steps, units});
    b.quantize(x, {float(inputScale)}, {inputZero});
    b.quantize(y, {float(stateScale)}, {stateZero});
    for (int gate = 0; gate < 4; ++gate) {
      if (gate == 0 && coupled)
        continue;
      operand<int8_t>(1 + gate, TensorType::INT8, {units, inputs}, weightScale, gate, 127);
      operand<int8_t>(5 + gate, TensorType::INT8, {units, units}, weightScale, gate + 10, 127);
      operand<int32_t>(12 + gate, TensorType::INT32, {units}, biasScale, gate + 20, 3000);
      if (peephole && gate != 2)
        operand<int16_t>(gate == 3 ? 11 : 9 + gate, TensorType::INT16, {units}, 1 / 20000.0, gate + 30, 20000);
    }
    if (project) {
      operand<int8_t>(16, TensorType::INT8, {units, units}, weightScale, 40, 100);
      operand<int32_t>(17, TensorType::INT32, {units}, 1 / 128.0 * weightScale, 41, 2000);
    }
    in[18] = variable(b, "h", TensorType::INT8, {1, units});
    in[19] = variable(b, "c", TensorType::INT16, {1, units});
    b.quantize(in[18], {float(stateScale)}, {stateZero});
    b.quantize(in[19], {1 / 2048.0f}, {0});
    b.op(Builtin::UNIDIRECTIONAL_SEQUENCE_LSTM, in, {y}, SequenceLstmT());
    SequenceLstmT &options = *b.model.subgraphs[0]->operators[0]->options.AsSequenceLstm();
    options.activation = tflite::Activation::TANH;
    options.cell_clip = cellClip;
    if (project) { // the memory's own scale and zero point
      int hidden = b.tensor("hidden", TensorType::INT8, {1});
      b.quantize(hidden, {1 / 128.0f}, {0});
      b.model.subgraphs[0]->operators[0]->intermediates = {hidden, hidden, hidden, hidden, hidden};
    }
    b.io({x}, {y});
    for (int i = 0; i < steps * inputs; ++i)
      sequence.push_back(int8_t(i * 53 % 200 - 100));
  }

  /// h of each step.
  std::vector<double> expected() {
    auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    std::vector<double> h(units), c(units), all;
    for (int t = 0; t < steps; ++t) {
      auto gate = [&](int g, int u, double cell) {
        double sum = real[12 + g][u];
        for (int k = 0; k < inputs; ++k)
          sum += real[1 + g][u * inputs + k] * (sequence[t * inputs + k] - inputZero) * inputScale;
        for (int k = 0; k < units; ++k)
          sum += real[5 + g][u * units + k] * h[k];
        if (peephole && g != 2)
          sum += real[g == 3 ? 11 : 9 + g][u] * cell;
        return sum;
      };
      std::vector<double> memory(units), next(units);
      for (int u = 0; u < units; ++u) {
        double forget = sigmoid(gate(1, u, c[u])), input = coupled ? 1 - forget : sigmoid(gate(0, u, c[u]));
        next[u] = forget * c[u] + input * std::tanh(gate(2, u, 0));
        if (cellClip > 0)
          next[u] = std::clamp(next[u], -double(cellClip), double(cellClip));
        memory[u] = sigmoid(gate(3, u, next[u])) * std::tanh(next[u]);
      }
      c = next;
      for (int u = 0; u < units; ++u) {
        h[u] = memory[u];
        if (project) {
          h[u] = real[17][u];
          for (int k = 0; k < units; ++k)
            h[u] += real[16][u * units + k] * memory[k];
        }
        all.push_back(h[u]);
      }
    }
    return all;
  }
};

TEST(TFLiteRecurrent, LstmOnIntegersIsThatOfTheirNumbers) {
  for (int form = 0; form < 5; ++form) {
    SCOPED_TRACE(form);
    IntegerLstm lstm;
    lstm.coupled = form == 1;
    lstm.peephole = form == 2;
    lstm.project = form == 3;
    lstm.cellClip = form == 4 ? .25f : 0;
    lstm.build();
    Outcome o = importModel(lstm.b, {makeTensor(AJOUR_I8, {1, lstm.steps, lstm.inputs}, lstm.sequence)});
    ASSERT_EQ(o.outputs.size(), 3u) << o.errors;
    std::vector<double> expected = lstm.expected();
    for (size_t i = 0; i < expected.size(); ++i) {
      double found = (o.outputs[0].as<int8_t>()[i] - lstm.stateZero) * lstm.stateScale;
      // Half a step of the result, and as much again from states of the steps before.
      EXPECT_NEAR(found, expected[i], lstm.stateScale * 1.01) << "element " << i;
    }
    EXPECT_EQ(o.outputs[1].as<int8_t>()[1], o.outputs[0].as<int8_t>()[lstm.steps * lstm.units - 1]);
    if (lstm.cellClip > 0) {
      for (int u = 0; u < lstm.units; ++u)
        EXPECT_LE(std::abs(o.outputs[2].as<int16_t>()[u]), 512);
    }
  }
}

//===----------------------------------------------------------------------===//
// Resource variables
//===----------------------------------------------------------------------===//

/// y = v + x, which is also the next v; v begins as 5 and 6. Reads v twice.
TFLiteBuilder accumulator(bool assigns = true) {
  TFLiteBuilder b;
  int x = b.tensor("x", F32, {2}), handle = b.tensor("handle", TensorType::RESOURCE, {});
  int v = b.tensor("v", F32, {2}), y = b.tensor("y", F32, {2});
  b.op(Builtin::CALL_ONCE, {}, {}, CallOnceT()).init_subgraph_index = 1;
  b.op(Builtin::VAR_HANDLE, {}, {handle}, VarHandleT()).shared_name = "total";
  b.op(Builtin::READ_VARIABLE, {handle}, {v});
  b.op(Builtin::ADD, {v, x}, {y}, AddT());
  if (assigns)
    b.op(Builtin::ASSIGN_VARIABLE, {handle, y}, {});
  b.io({x}, {y});
  // The second subgraph, by a builder of its own; buffers of constants move over.
  TFLiteBuilder init;
  int initHandle = init.tensor("handle", TensorType::RESOURCE, {}), value = init.constant<float>("value", F32, {2}, {5, 6});
  init.op(Builtin::VAR_HANDLE, {}, {initHandle}, VarHandleT()).shared_name = "total";
  init.op(Builtin::ASSIGN_VARIABLE, {initHandle, value}, {});
  uint32_t codes = uint32_t(b.model.operator_codes.size()), buffers = uint32_t(b.model.buffers.size());
  for (auto &code : init.model.operator_codes)
    b.model.operator_codes.push_back(std::move(code));
  for (auto &buffer : init.model.buffers)
    b.model.buffers.push_back(std::move(buffer));
  for (auto &op : init.model.subgraphs[0]->operators)
    op->opcode_index += codes;
  for (auto &tensor : init.model.subgraphs[0]->tensors)
    tensor->buffer = tensor->buffer ? tensor->buffer + buffers : 0;
  b.model.subgraphs.push_back(std::move(init.model.subgraphs[0]));
  return b;
}

TEST(TFLiteState, ResourceVariablesGoOn) {
  Outcome o = importModel(accumulator(), {floats({2}, {1, 10})});
  expectResult(o, 0, {6, 16});
  expectResult(o, 1, {6, 16});
}

TEST(TFLiteState, AVariableThatNothingWritesIsAConstant) {
  Outcome o = importModel(accumulator(/*assigns=*/false), {floats({2}, {1, 10})});
  expectResult(o, 0, {6, 16});
  EXPECT_EQ(o.outputs.size(), 1u);
}

TEST(TFLiteState, Refusals) {
  auto message = [](const std::function<void(TFLiteBuilder &)> &change) {
    TFLiteBuilder b = accumulator();
    change(b);
    return importOnly(b.bytes()).errors;
  };
  auto op = [](TFLiteBuilder &b, int i) -> OperatorT & { return *b.model.subgraphs[0]->operators[i]; };
  EXPECT_EQ(message([](TFLiteBuilder &) {}), "");
  EXPECT_THAT(message([&](TFLiteBuilder &b) { op(b, 0).options.AsCallOnce()->init_subgraph_index = 7; }),
              HasSubstr("its subgraph #7 does not exist"));
  EXPECT_THAT(message([&](TFLiteBuilder &b) { b.model.subgraphs[1]->operators[1]->inputs = {1, 1}; }),
              HasSubstr("its subgraph has operator ASSIGN_VARIABLE; only assignments of constants"));
  EXPECT_THAT(message([&](TFLiteBuilder &b) { op(b, 2).inputs = {0}; }), HasSubstr("operand 0 is no handle"));
  EXPECT_THAT(message([&](TFLiteBuilder &b) { b.at(1).type = F32; }), HasSubstr("expected RESOURCE"));
  EXPECT_THAT(message([&](TFLiteBuilder &b) { b.at(2).shape = {1}; }), HasSubstr("reads variable 'total' as f32[1]"));
  EXPECT_THAT(message([&](TFLiteBuilder &b) {
                b.model.subgraphs[1]->operators.clear();
                op(b, 4).inputs[1] = b.constant<float>("one", F32, {1}, {1});
              }),
              HasSubstr("assigns f32[1] to variable 'total'"));
  EXPECT_THAT(message([&](TFLiteBuilder &b) { op(b, 4).outputs = {b.tensor("none", F32, {2})}; }),
              HasSubstr("the operator has a result, expected none"));
  EXPECT_THAT(message([&](TFLiteBuilder &b) { b.model.subgraphs[1]->operators[0]->outputs = {9}; }), HasSubstr("names tensor #9"));
}

TEST(TFLiteRecurrent, Refusals) {
  auto message = [](const std::function<void(IntegerLstm &)> &change) {
    IntegerLstm lstm;
    lstm.build();
    change(lstm);
    return importOnly(lstm.b.bytes()).errors;
  };
  auto options = [](IntegerLstm &l) { return l.b.model.subgraphs[0]->operators[0]->options.AsSequenceLstm(); };
  EXPECT_EQ(message([](IntegerLstm &) {}), "");
  EXPECT_THAT(message([&](IntegerLstm &l) { options(l)->diagonal_recurrent_tensors = true; }), HasSubstr("diagonal recurrent weights"));
  EXPECT_THAT(message([&](IntegerLstm &l) { options(l)->activation = tflite::Activation::RELU; }),
              HasSubstr("fused activation RELU is not supported on integers, expected TANH"));
  EXPECT_THAT(message([&](IntegerLstm &l) { l.b.at(l.in[19]).quantization->scale = {.3f}; }), HasSubstr("must be a power of two"));
  EXPECT_THAT(message([&](IntegerLstm &l) { l.b.at(l.in[19]).type = TensorType::INT8; }),
              HasSubstr("the cell state (operand 19) must be INT16 with one scale, found INT8"));
  EXPECT_NE(message([&](IntegerLstm &l) { l.b.at(l.in[19]).shape = {1, 3}; }), "") << "cell states of three units, gates of two";
  EXPECT_THAT(message([&](IntegerLstm &l) { l.b.at(l.in[3]).quantization->zero_point = {4}; }), HasSubstr("must be constant symmetric matrices of 2 rows"));
  EXPECT_THAT(message([&](IntegerLstm &l) { l.b.model.subgraphs[0]->operators[0]->inputs[7] = -1; }),
              HasSubstr("recurrent weights (operand 7) must be INT8 with one scale, but is missing"));
  EXPECT_THAT(message([&](IntegerLstm &l) { // weights of no bytes and any number of rows
                l.b.at(l.in[2]).buffer = 0;
                l.b.at(l.in[2]).shape = {1 << 29, 3};
                l.b.model.subgraphs[0]->inputs.push_back(l.in[2]);
              }),
              HasSubstr("must be constant symmetric matrices"));
  EXPECT_THAT(message([&](IntegerLstm &l) { l.b.at(l.x).shape = {1, 2000, 3}; }), HasSubstr("2000 steps, from 1 to 1024"));
  EXPECT_THAT(message([&](IntegerLstm &l) {
                for (int i = 20; i < 24; ++i)
                  l.b.model.subgraphs[0]->operators[0]->inputs[i] = l.in[12 + i - 20];
              }),
              HasSubstr("has no intermediate tensor for it"));

  // A small file may not ask for any number of layers of many steps.
  EXPECT_THAT(message([&](IntegerLstm &l) {
                l.b.at(l.x).shape = {1, 1024, 3};
                l.b.at(l.y).shape = {1, 1024, 2};
                for (int i = 0; i < 10; ++i) {
                  int y = l.b.tensor("y" + std::to_string(i), TensorType::INT8, {1, 1024, 2});
                  l.b.quantize(y, {1 / 128.0f}, {-3});
                  l.b.op(Builtin::UNIDIRECTIONAL_SEQUENCE_LSTM, l.in, {y}, SequenceLstmT()).activation = tflite::Activation::TANH;
                }
              }),
              HasSubstr("too much for a file of"));

  auto basic = [](TensorType type, std::vector<int32_t> weights) {
    TFLiteBuilder b;
    int x = b.tensor("x", type, {1, 1}), h = b.tensor("h", type, {1, 1}), c = b.tensor("c", type, {1, 1});
    int w = b.tensor("w", type, weights), bias = b.tensor("b", type, {4}), y = b.tensor("y", type, {1, 1});
    if (type != F32)
      b.quantize(x, {1}, {0});
    b.op(Builtin::LSTM, {x, h, w, bias, c}, {y}, LstmT()).kernel_type = LstmKernel::BASIC;
    b.io({x, h, w, bias, c}, {y});
    return importOnly(b.bytes()).errors;
  };
  EXPECT_THAT(basic(TensorType::UINT8, {4, 2}), HasSubstr("the basic kernel on UINT8 is not supported"));
  EXPECT_THAT(basic(F32, {4, 1}), HasSubstr("do not fit a cell of 1 units"));
  EXPECT_THAT(basic(F32, {4, 2, 1}), HasSubstr("matrices are needed"));

  TFLiteBuilder b;
  int x = b.tensor("x", F32, {1, 1}), w = b.tensor("w", F32, {3, 1}), t = b.tensor("t", F32, {3, 2}), y = b.tensor("y", F32, {1, 1});
  b.op(Builtin::SVDF, {x, w, t, -1, variable(b, "m", F32, {1, 6})}, {y}, SvdfT()).rank = 2;
  b.io({x, w, t}, {y});
  EXPECT_THAT(importOnly(b.bytes()).errors, HasSubstr("a rank that divides F"));

  TFLiteBuilder a;
  int s = a.tensor("x", F32, {1, 1, 1}), z = a.tensor("y", F32, {1, 1, 1});
  std::vector<int32_t> in(12, a.constant<float>("c", F32, {1, 1}, {1}));
  in[0] = s;
  a.op(Builtin::BIDIRECTIONAL_SEQUENCE_RNN, in, {z}, BidirectionalRnnT()).merge_outputs = true;
  a.io({s}, {z});
  EXPECT_THAT(importOnly(a.bytes()).errors, HasSubstr("operand 9, of an auxiliary input, is not supported"));
}

} // namespace
