//===- GraphBuilder.h - Writes ONNX networks with random weights -*- C++ -*-===//

#ifndef AJOUR_TOOLS_MAKEMODEL_GRAPHBUILDER_H
#define AJOUR_TOOLS_MAKEMODEL_GRAPHBUILDER_H

#ifndef ONNX_ML
#define ONNX_ML 1
#endif
#ifndef ONNX_NAMESPACE
#define ONNX_NAMESPACE onnx
#endif
#include <onnx/onnx_pb.h>

#include "Pruning.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ajour::tools {

/// Silu and HardSwish are a function and a product, as exporters write them.
enum class Activation { None, Relu, Relu6, Silu, HardSwish, Sigmoid, HardSigmoid };

/// A value of the graph: its name, shape without the batch, and what is expected of its elements.
struct Value {
  std::string name;
  int64_t channels = 0, height = 1, width = 1;
  /// Mean and root of the mean square, tracked so that random weights neither grow nor shrink the signal.
  double mean = 0, rms = 1;
  /// True after a ReLU.
  bool nonNegative = false;
  /// Quantisation of the value, where the model has it.
  float scale = 0;
  uint8_t zeroPoint = 0;
};

struct ConvOptions {
  int64_t channels = 0, kernel = 1, stride = 1, pad = 0, groups = 1;
  Activation activation = Activation::Relu;
};

/// Builds a classification network for one NCHW picture, opset 13.
///
/// Weights are normal with a deviation of 1 / (rms of the input * sqrt(fan-in)), He's scaling with the ReLU's part in the tracked
/// rms, so that every convolution's result has variance 1. Batch norms are taken as folded: convolutions have a bias.
///
/// With `quantized`, every activation passes a QuantizeLinear and DequantizeLinear pair (u8, per tensor, asymmetric), weights are
/// s8, symmetric per output channel, biases s32 with the product of the scales: the form that post-training quantisers
/// write. Ranges come from the tracked rms instead of a calibration.
class GraphBuilder {
public:
  GraphBuilder(const std::string &name, bool quantized, uint64_t seed);

  /// Weights made from now on have these zeros; the others grow so that results keep their variance.
  void setPruning(const Pruning &value) { pruning = value; }

  Value input(int64_t channels, int64_t height, int64_t width);
  Value conv(const Value &input, const ConvOptions &options);
  Value add(const Value &lhs, const Value &rhs, Activation activation);
  Value concat(const std::vector<Value> &parts);
  /// x * gate(expand(squeeze(mean of x over the picture))) with 1x1 convolutions, "squeeze and excitation" (Hu et al. 2017).
  Value squeezeExcite(const Value &input, int64_t channels, Activation inner, Activation gate);
  Value maxPool(const Value &input, int64_t kernel, int64_t stride, int64_t pad);
  Value globalAveragePool(const Value &input);
  Value flatten(const Value &input);
  Value linear(const Value &input, int64_t features, Activation activation);
  void output(const Value &value);

  /// The first frame of a sequence, [1, 1, channels].
  Value frame(int64_t channels);
  /// A GRU or LSTM layer (`type`, with `gates` rows of weights for each unit) for one frame. Its states are inputs and outputs of the graph.
  Value recurrent(const std::string &type, int64_t gates, const Value &input, int64_t units);

  const onnx::ModelProto &model() const { return proto; }

private:
  onnx::NodeProto &addNode(const std::string &type, const std::vector<std::string> &inputs, const std::string &output);
  std::string uniqueName(const std::string &base);
  void addInitializer(const std::string &name, int type, const std::vector<int64_t> &dims, const void *data,
                      size_t bytes);
  std::string scalar(const std::string &name, float value);
  std::string scalar(const std::string &name, uint8_t value);
  /// Adds weight and bias of `rows` output channels of `columns` each; the result names what a node takes.
  std::vector<std::string> weights(const std::string &node, const Value &input, std::vector<int64_t> dims);
  std::vector<float> makeWeights(const Value &input, const std::vector<int64_t> &dims);
  std::vector<std::string> quantizedWeights(const std::string &node, const Value &input, std::vector<int64_t> dims,
                                            const std::vector<float> &weight, const std::vector<float> &bias);
  void activate(Value &value, Activation activation);
  Value multiply(const Value &lhs, const Value &rhs);
  /// Adds the QuantizeLinear and DequantizeLinear pair; `keep` uses the scale that the value already has.
  void quantize(Value &value, bool keep = false);
  double normal();

  Pruning pruning;
  onnx::ModelProto proto;
  onnx::GraphProto &graph;
  bool quantized;
  uint64_t state;
  int counter = 0;
};

/// Names of the architectures: mobilenet_v1, resnet50 and so on.
std::vector<std::string> architectureNames();

/// Builds one at `size` x `size` pixels with 1000 classes. The name must be one of architectureNames().
void buildArchitecture(const std::string &name, GraphBuilder &builder, int64_t size);

} // namespace ajour::tools

#endif
