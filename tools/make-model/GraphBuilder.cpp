//===- GraphBuilder.cpp - Writes ONNX networks with random weights --------===//

#include "GraphBuilder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ajour::tools {

namespace {

void setInts(onnx::NodeProto &node, const char *name, const std::vector<int64_t> &values) {
  onnx::AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (int64_t value : values)
    attribute.add_ints(value);
}

void setInt(onnx::NodeProto &node, const char *name, int64_t value) {
  onnx::AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

void describeValue(onnx::ValueInfoProto &info, const std::string &name, const std::vector<int64_t> &dims) {
  info.set_name(name);
  auto &type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  for (int64_t dim : dims)
    type.mutable_shape()->add_dim()->set_dim_value(dim);
}

int64_t pooledSize(int64_t size, int64_t kernel, int64_t stride, int64_t pad) {
  return (size + 2 * pad - kernel) / stride + 1;
}

} // namespace

GraphBuilder::GraphBuilder(const std::string &name, bool quantized, uint64_t seed)
    : graph(*proto.mutable_graph()), quantized(quantized), state(seed) {
  proto.set_ir_version(7);
  proto.set_producer_name("ajour-make-model");
  onnx::OperatorSetIdProto &opset = *proto.add_opset_import();
  opset.set_domain("");
  opset.set_version(13);
  graph.set_name(name);
}

double GraphBuilder::normal() {
  // The sum of four uniform numbers is normal enough for weights; SplitMix64 gives all four in one word.
  uint64_t word = state += 0x9e3779b97f4a7c15;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
  word = (word ^ word >> 27) * 0x94d049bb133111eb;
  word ^= word >> 31;
  double sum = 0;
  for (int i = 0; i < 4; ++i)
    sum += static_cast<double>(word >> (16 * i) & 0xffff) / 65536 + 0.5 / 65536;
  return (sum - 2) * std::sqrt(3.0);
}

onnx::NodeProto &GraphBuilder::addNode(const std::string &type, const std::vector<std::string> &inputs,
                                       const std::string &output) {
  onnx::NodeProto &node = *graph.add_node();
  node.set_op_type(type);
  node.set_name(output);
  for (const std::string &input : inputs)
    node.add_input(input);
  node.add_output(output);
  return node;
}

std::string GraphBuilder::uniqueName(const std::string &base) { return base + "_" + std::to_string(counter++); }

void GraphBuilder::addInitializer(const std::string &name, int type, const std::vector<int64_t> &dims,
                                  const void *data, size_t bytes) {
  onnx::TensorProto &tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (int64_t dim : dims)
    tensor.add_dims(dim);
  tensor.set_raw_data(data, bytes);
}

std::string GraphBuilder::scalar(const std::string &name, float value) {
  addInitializer(name, onnx::TensorProto::FLOAT, {}, &value, sizeof(value));
  return name;
}

std::string GraphBuilder::scalar(const std::string &name, uint8_t value) {
  addInitializer(name, onnx::TensorProto::UINT8, {}, &value, sizeof(value));
  return name;
}

void GraphBuilder::quantize(Value &value, bool keep) {
  if (!quantized)
    return;
  if (!keep) {
    // A calibration would find about five deviations of the signal.
    value.scale = static_cast<float>((value.nonNegative ? 6 : 10) * value.rms / 255);
    value.zeroPoint = value.nonNegative ? 0 : 128;
  }
  std::string scale = scalar(value.name + "_scale", value.scale);
  std::string zeroPoint = scalar(value.name + "_zero_point", value.zeroPoint);
  addNode("QuantizeLinear", {value.name, scale, zeroPoint}, value.name + "_q");
  addNode("DequantizeLinear", {value.name + "_q", scale, zeroPoint}, value.name + "_dq");
  value.name += "_dq";
}

static double applied(Activation activation, double x) {
  switch (activation) {
  case Activation::None:
    return x;
  case Activation::Relu:
    return std::max(x, 0.0);
  case Activation::Relu6:
    return std::clamp(x, 0.0, 6.0);
  case Activation::Silu:
    return x / (1 + std::exp(-x));
  case Activation::HardSwish:
    return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
  case Activation::Sigmoid:
    return 1 / (1 + std::exp(-x));
  case Activation::HardSigmoid:
    return std::clamp(x / 6 + 0.5, 0.0, 1.0);
  }
  return x;
}

/// The first two moments of f(x) where x is normal, by a sum over its density.
static void trackMoments(Value &value, Activation activation) {
  constexpr int steps = 400;
  double mean = value.mean, deviation = std::sqrt(std::max(value.rms * value.rms - mean * mean, 1e-12));
  double sum = 0, squares = 0, mass = 0;
  for (int i = 0; i <= steps; ++i) {
    double z = 10.0 * i / steps - 5, density = std::exp(-0.5 * z * z);
    double y = applied(activation, mean + deviation * z);
    sum += density * y;
    squares += density * y * y;
    mass += density;
  }
  value.mean = sum / mass;
  value.rms = std::sqrt(squares / mass);
}

void GraphBuilder::activate(Value &value, Activation activation) {
  if (activation == Activation::None)
    return;
  bool isProduct = activation == Activation::Silu || activation == Activation::HardSwish;
  if (isProduct)
    quantize(value);
  Value input = value;
  Activation function = activation == Activation::Silu        ? Activation::Sigmoid
                        : activation == Activation::HardSwish ? Activation::HardSigmoid
                                                              : activation;
  trackMoments(value, function);
  value.nonNegative = true;
  switch (function) {
  case Activation::Relu:
    value.name = uniqueName("relu");
    addNode("Relu", {input.name}, value.name);
    break;
  case Activation::Relu6: {
    value.name = uniqueName("relu6");
    std::string low = scalar(value.name + "_min", 0.0f), high = scalar(value.name + "_max", 6.0f);
    addNode("Clip", {input.name, low, high}, value.name);
    break;
  }
  case Activation::Sigmoid:
    value.name = uniqueName("sigmoid");
    addNode("Sigmoid", {input.name}, value.name);
    break;
  default: {
    value.name = uniqueName("hard_sigmoid");
    onnx::AttributeProto &alpha = *addNode("HardSigmoid", {input.name}, value.name).add_attribute();
    alpha.set_name("alpha");
    alpha.set_type(onnx::AttributeProto::FLOAT);
    alpha.set_f(1.0f / 6);
  }
  }
  if (!isProduct)
    return;
  quantize(value);
  Value product = multiply(input, value);
  trackMoments(input, activation);
  product.mean = input.mean;
  product.rms = input.rms;
  value = product;
}

Value GraphBuilder::multiply(const Value &lhs, const Value &rhs) {
  Value value{uniqueName("mul"), lhs.channels, lhs.height, lhs.width};
  value.mean = lhs.mean * rhs.mean;
  value.rms = lhs.rms * rhs.rms;
  value.nonNegative = lhs.nonNegative && rhs.nonNegative;
  addNode("Mul", {lhs.name, rhs.name}, value.name);
  return value;
}

Value GraphBuilder::squeezeExcite(const Value &input, int64_t channels, Activation inner, Activation gate) {
  Value squeezed = conv(globalAveragePool(input), {channels, 1, 1, 0, 1, inner});
  Value value = multiply(input, conv(squeezed, {input.channels, 1, 1, 0, 1, gate}));
  quantize(value);
  return value;
}

Value GraphBuilder::concat(const std::vector<Value> &parts) {
  Value value = parts[0];
  value.name = uniqueName("concat");
  value.channels = 0;
  std::vector<std::string> names;
  for (const Value &part : parts) {
    names.push_back(part.name);
    value.channels += part.channels;
    value.rms = std::max(value.rms, part.rms);
  }
  setInt(addNode("Concat", names, value.name), "axis", 1);
  quantize(value);
  return value;
}

Value GraphBuilder::input(int64_t channels, int64_t height, int64_t width) {
  Value value{"image", channels, height, width};
  describeValue(*graph.add_input(), value.name, {1, channels, height, width});
  value.mean = 0.5; // Pixels in [0, 1].
  value.rms = 0.6;
  value.nonNegative = true;
  if (quantized) {
    value.scale = 1.0f / 255;
    value.zeroPoint = 0;
    quantize(value, true);
  }
  return value;
}

std::vector<std::string> GraphBuilder::quantizedWeights(const std::string &node, const Value &input,
                                                        std::vector<int64_t> dims, const std::vector<float> &weight,
                                                        const std::vector<float> &bias) {
  size_t rows = bias.size(), columns = weight.size() / rows;
  std::vector<float> scales(rows), biasScales(rows);
  std::vector<int8_t> zeros(rows, 0), stored(weight.size());
  std::vector<int32_t> zeroBias(rows, 0), storedBias(rows);
  for (size_t r = 0; r < rows; ++r) {
    float largest = 1e-6f;
    for (size_t c = 0; c < columns; ++c)
      largest = std::max(largest, std::fabs(weight[r * columns + c]));
    scales[r] = largest / 127;
    for (size_t c = 0; c < columns; ++c)
      stored[r * columns + c] = static_cast<int8_t>(std::nearbyint(weight[r * columns + c] / scales[r]));
    biasScales[r] = scales[r] * input.scale;
    storedBias[r] = static_cast<int32_t>(std::nearbyint(bias[r] / biasScales[r]));
  }
  int64_t count = static_cast<int64_t>(rows);
  std::string w = node + "_weight", b = node + "_bias";
  addInitializer(w + "_q", onnx::TensorProto::INT8, dims, stored.data(), stored.size());
  addInitializer(w + "_scale", onnx::TensorProto::FLOAT, {count}, scales.data(), rows * 4);
  addInitializer(w + "_zero_point", onnx::TensorProto::INT8, {count}, zeros.data(), rows);
  addInitializer(b + "_q", onnx::TensorProto::INT32, {count}, storedBias.data(), rows * 4);
  addInitializer(b + "_scale", onnx::TensorProto::FLOAT, {count}, biasScales.data(), rows * 4);
  addInitializer(b + "_zero_point", onnx::TensorProto::INT32, {count}, zeroBias.data(), rows * 4);
  setInt(addNode("DequantizeLinear", {w + "_q", w + "_scale", w + "_zero_point"}, w), "axis", 0);
  setInt(addNode("DequantizeLinear", {b + "_q", b + "_scale", b + "_zero_point"}, b), "axis", 0);
  return {w, b};
}

std::vector<float> GraphBuilder::makeWeights(const Value &input, const std::vector<int64_t> &dims) {
  size_t rows = static_cast<size_t>(dims[0]), columns = 1;
  for (size_t d = 1; d < dims.size(); ++d)
    columns *= static_cast<size_t>(dims[d]);
  std::vector<float> weight(rows * columns);
  double deviation = 1 / (input.rms * std::sqrt(static_cast<double>(columns)));
  for (float &value : weight)
    value = static_cast<float>(normal() * deviation);
  double kept = prune(pruning, dims, state, weight);
  if (kept > 0 && kept < 1)
    for (float &value : weight)
      value = static_cast<float>(value / std::sqrt(kept));
  return weight;
}

std::vector<std::string> GraphBuilder::weights(const std::string &node, const Value &input,
                                               std::vector<int64_t> dims) {
  size_t rows = static_cast<size_t>(dims[0]);
  std::vector<float> weight = makeWeights(input, dims), bias(rows);
  for (float &value : bias)
    value = static_cast<float>(normal() * 0.1);
  if (quantized)
    return quantizedWeights(node, input, dims, weight, bias);
  addInitializer(node + "_weight", onnx::TensorProto::FLOAT, dims, weight.data(), weight.size() * 4);
  addInitializer(node + "_bias", onnx::TensorProto::FLOAT, {dims[0]}, bias.data(), rows * 4);
  return {node + "_weight", node + "_bias"};
}

Value GraphBuilder::conv(const Value &input, const ConvOptions &options) {
  std::string name = uniqueName("conv");
  int64_t kernel = options.kernel, pad = options.pad;
  std::vector<std::string> parts =
      weights(name, input, {options.channels, input.channels / options.groups, kernel, kernel});
  onnx::NodeProto &node = addNode("Conv", {input.name, parts[0], parts[1]}, name);
  setInts(node, "kernel_shape", {kernel, kernel});
  setInts(node, "strides", {options.stride, options.stride});
  setInts(node, "pads", {pad, pad, pad, pad});
  setInts(node, "dilations", {1, 1});
  setInt(node, "group", options.groups);
  Value value{name, options.channels, pooledSize(input.height, kernel, options.stride, pad),
              pooledSize(input.width, kernel, options.stride, pad)};
  activate(value, options.activation);
  quantize(value);
  return value;
}

Value GraphBuilder::add(const Value &lhs, const Value &rhs, Activation activation) {
  Value value{uniqueName("add"), lhs.channels, lhs.height, lhs.width};
  value.mean = lhs.mean + rhs.mean;
  value.rms = std::sqrt(lhs.rms * lhs.rms + rhs.rms * rhs.rms + 2 * lhs.mean * rhs.mean);
  addNode("Add", {lhs.name, rhs.name}, value.name);
  activate(value, activation);
  quantize(value);
  return value;
}

Value GraphBuilder::maxPool(const Value &input, int64_t kernel, int64_t stride, int64_t pad) {
  Value value = input;
  value.name = uniqueName("max_pool");
  onnx::NodeProto &node = addNode("MaxPool", {input.name}, value.name);
  setInts(node, "kernel_shape", {kernel, kernel});
  setInts(node, "strides", {stride, stride});
  setInts(node, "pads", {pad, pad, pad, pad});
  value.height = pooledSize(input.height, kernel, stride, pad);
  value.width = pooledSize(input.width, kernel, stride, pad);
  // The largest of several half-normal values.
  value.mean *= 1.5;
  value.rms *= 1.5;
  quantize(value, /*keep=*/true);
  return value;
}

Value GraphBuilder::globalAveragePool(const Value &input) {
  Value value = input;
  value.name = uniqueName("average_pool");
  value.height = value.width = 1;
  addNode("GlobalAveragePool", {input.name}, value.name);
  quantize(value);
  return value;
}

Value GraphBuilder::flatten(const Value &input) {
  Value value = input;
  value.name = uniqueName("flatten");
  value.channels = input.channels * input.height * input.width;
  value.height = value.width = 1;
  setInt(addNode("Flatten", {input.name}, value.name), "axis", 1);
  quantize(value, /*keep=*/true);
  return value;
}

Value GraphBuilder::linear(const Value &input, int64_t features, Activation activation) {
  std::string name = uniqueName("linear");
  std::vector<std::string> parts = weights(name, input, {features, input.channels});
  setInt(addNode("Gemm", {input.name, parts[0], parts[1]}, name), "transB", 1);
  Value value{name, features};
  activate(value, activation);
  quantize(value);
  return value;
}

Value GraphBuilder::frame(int64_t channels) {
  Value value{"frame", channels};
  describeValue(*graph.add_input(), value.name, {1, 1, channels});
  return value;
}

Value GraphBuilder::recurrent(const std::string &type, int64_t gates, const Value &input, int64_t units) {
  std::string name = uniqueName(type == "GRU" ? "gru" : "lstm");
  int64_t rows = gates * units;
  // A state in (-1, 1) is what the next step and the next layer read.
  Value state{name, units};
  state.rms = 0.5;
  std::vector<float> ofInput = makeWeights(input, {rows, input.channels}), ofState = makeWeights(state, {rows, units}), bias(2 * rows);
  for (float &value : bias)
    value = static_cast<float>(normal() * 0.1);
  addInitializer(name + "_W", onnx::TensorProto::FLOAT, {1, rows, input.channels}, ofInput.data(), ofInput.size() * 4);
  addInitializer(name + "_R", onnx::TensorProto::FLOAT, {1, rows, units}, ofState.data(), ofState.size() * 4);
  addInitializer(name + "_B", onnx::TensorProto::FLOAT, {1, 2 * rows}, bias.data(), bias.size() * 4);
  std::vector<std::string> inputs = {input.name, name + "_W", name + "_R", name + "_B", ""}, states = {"h"};
  if (type == "LSTM")
    states.push_back("c");
  for (const std::string &kind : states)
    inputs.push_back(name + "_" + kind);
  onnx::NodeProto &node = addNode(type, inputs, name + "_frames");
  setInt(node, "hidden_size", units);
  if (type == "GRU")
    setInt(node, "linear_before_reset", 1); // as PyTorch and cuDNN have it
  for (const std::string &kind : states) {
    describeValue(*graph.add_input(), name + "_" + kind, {1, 1, units});
    node.add_output(name + "_" + kind + "_next");
    describeValue(*graph.add_output(), name + "_" + kind + "_next", {1, 1, units});
  }
  // [1 step, 1 direction, 1, units] as a frame.
  std::string axis = name + "_axis";
  int64_t one = 1;
  addInitializer(axis, onnx::TensorProto::INT64, {1}, &one, sizeof(one));
  addNode("Squeeze", {name + "_frames", axis}, name);
  return state;
}

void GraphBuilder::output(const Value &value) {
  Value named = value;
  named.name = "scores";
  // The last node gives the output its name; its own name stays.
  onnx::NodeProto &last = *graph.mutable_node(graph.node_size() - 1);
  last.set_output(0, named.name);
  describeValue(*graph.add_output(), named.name, {1, named.channels});
}

} // namespace ajour::tools
