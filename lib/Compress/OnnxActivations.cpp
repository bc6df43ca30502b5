//===- OnnxActivations.cpp - activations of an ONNX file as integers ------------===//
//
// Behind each activation that a layer of integer weights reads, or that leads to one through operators which
// integers go through, stands a QuantizeLinear and a DequantizeLinear; the compiler makes what lies between such pairs integer.
//
//===----------------------------------------------------------------------===//
#include "OnnxFormat.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace ajour::compress {

namespace {

/// Operators that copy or choose elements: their result keeps the operand's scale.
constexpr llvm::StringLiteral movements[] = {"MaxPool",  "AveragePool", "Reshape",      "Flatten",     "Transpose",   "Squeeze",
                                             "Unsqueeze", "Slice",      "DepthToSpace", "SpaceToDepth"};

/// Others through which integers go: with one addition or a table of 256 values.
constexpr llvm::StringLiteral passing[] = {"Add",     "Sub",       "Mul",         "Concat",    "Relu",   "Clip",
                                           "Sigmoid", "HardSwish", "HardSigmoid", "LeakyRelu", "Resize", "Pad",
                                           "GlobalAveragePool"};

bool isMovement(const NodeProto &node) { return llvm::is_contained(movements, node.op_type()); }
bool isPassing(const NodeProto &node) {
  return (node.domain().empty() || node.domain() == "ai.onnx") && (isMovement(node) || llvm::is_contained(passing, node.op_type()));
}

} // namespace

void OnnxFormat::findWanted() {
  for (int64_t i = graph().node_size(); i-- > 0;) {
    const NodeProto &node = graph().node(int(i));
    for (int k = 0; k < node.input_size(); ++k)
      readers[node.input(k)].push_back({i, k});
    if (integerScales.count(i))
      wanted.insert(node.input(0));
    else if (isPassing(node) && node.output_size() > 0 && wanted.contains(node.output(0)))
      for (const std::string &input : node.input())
        wanted.insert(input);
  }
}

/// Whether the one reader of a product is computed with it, so that only its result need be an integer.
bool OnnxFormat::isFused(const std::string &tensor) {
  const auto &list = readers[tensor];
  if (list.size() != 1 || uses[tensor] != 1)
    return false;
  const NodeProto &reader = graph().node(int(list[0].first));
  if (reader.op_type() == "Relu" || reader.op_type() == "Clip")
    return true;
  return reader.op_type() == "Add" && llvm::any_of(reader.input(), [&](const std::string &name) { return tensorOf(name); });
}

void OnnxFormat::quantiseTensor(const std::string &tensor, int64_t producer, const Affine &affine) {
  TensorProto scale, zero;
  scale.set_name(freshName(tensor + "_scale"));
  setData(scale, TensorProto::FLOAT, &affine.scale, sizeof(float));
  zero.set_name(freshName(tensor + "_zero_point"));
  setData(zero, TensorProto::UINT8, &affine.zeroPoint, 1);
  std::string integers = freshName(tensor + "_quantized"), back = freshName(tensor + "_dequantized");
  std::vector<NodeProto> nodes(2);
  for (auto [node, type] : llvm::zip_equal(nodes, std::vector<const char *>{"QuantizeLinear", "DequantizeLinear"})) {
    node.set_op_type(type);
    node.set_name(freshName(tensor + "_" + type));
  }
  nodes[0].add_input(tensor);
  nodes[0].add_output(integers);
  nodes[1].add_input(integers);
  nodes[1].add_output(back);
  for (NodeProto &node : nodes) {
    node.add_input(scale.name());
    node.add_input(zero.name());
  }
  *graph().add_initializer() = scale;
  *graph().add_initializer() = zero;
  auto &place = producer < 0 ? newNodes : nodesBehind[producer];
  place.insert(place.end(), nodes.begin(), nodes.end());
  for (auto [reader, operand] : readers[tensor])
    graph().mutable_node(int(reader))->set_input(operand, back);
}

/// A layer's own bias becomes integers in steps of the product's.
void OnnxFormat::quantiseBias(int64_t index, float inputScale) {
  NodeProto &node = *graph().mutable_node(int(index));
  auto layer = llvm::find_if(layerList, [&](const FileLayer &l) { return l.index == index; });
  if (layer == layerList.end() || !layer->hasBias)
    return;
  std::string name = node.input(2);
  std::vector<float> values = read(*tensorOf(name)), scales = integerScales[index];
  std::vector<int32_t> steps(values.size());
  for (size_t o = 0; o < values.size(); ++o) {
    scales[o] *= inputScale;
    steps[o] = int32_t(std::clamp(std::nearbyint(double(values[o]) / scales[o]), -2147483647., 2147483647.));
  }
  TensorProto integers, scale;
  integers.set_name(freshName(name + "_quantized"));
  scale.set_name(freshName(name + "_scale"));
  for (TensorProto *tensor : {&integers, &scale})
    tensor->add_dims(int64_t(values.size()));
  setData(integers, TensorProto::INT32, steps.data(), steps.size() * sizeof(int32_t));
  setData(scale, TensorProto::FLOAT, scales.data(), scales.size() * sizeof(float));
  NodeProto back;
  back.set_op_type("DequantizeLinear");
  back.set_name(freshName(name + "_DequantizeLinear"));
  back.add_input(integers.name());
  back.add_input(scale.name());
  back.add_output(freshName(name + "_dequantized"));
  addInt(back, "axis", 0);
  node.set_input(2, back.output(0));
  newNodes.push_back(std::move(back));
  // The float bias has no reader left.
  auto &initialisers = *graph().mutable_initializer();
  for (int i = initialisers.size(); i-- > 0;)
    if (initialisers[i].name() == name)
      initialisers.DeleteSubrange(i, 1);
  *graph().add_initializer() = integers;
  *graph().add_initializer() = scale;
}

bool OnnxFormat::quantiseActivations(const ActivationRanges &ranges) {
  if (opset() < 13)
    return false; // an axis of DequantizeLinear came with 13
  findWanted();
  std::map<std::string, Affine> chosen;
  auto choose = [&](const std::string &tensor, int64_t producer, const ActivationRanges::Range &range) {
    if (!wanted.contains(tensor))
      return;
    float low = std::min(range.low, 0.f), high = std::max(range.high, 0.f);
    Affine affine{std::max((high - low) / 255, 1e-20f), 0};
    affine.zeroPoint = uint8_t(std::clamp(std::nearbyint(-low / affine.scale), 0.f, 255.f));
    if (producer >= 0) {
      const NodeProto &node = graph().node(int(producer));
      if (!isMovement(node) && isFused(tensor))
        return;
      if (isMovement(node))
        if (auto found = chosen.find(node.input(0)); found != chosen.end())
          affine = found->second;
    }
    chosen[tensor] = affine;
  };
  for (const auto &[name, range] : ranges.inputs)
    choose(name, -1, range);
  for (int64_t i = 0; i < graph().node_size(); ++i)
    if (auto found = ranges.nodes.find(i); found != ranges.nodes.end() && graph().node(int(i)).output_size() > 0)
      choose(graph().node(int(i)).output(0), i, found->second);
  for (const auto &[index, scales] : integerScales)
    if (auto found = chosen.find(graph().node(int(index)).input(0)); found != chosen.end())
      quantiseBias(index, found->second.scale);
  std::map<std::string, int64_t> producers;
  for (int64_t i = 0; i < graph().node_size(); ++i)
    for (const std::string &output : graph().node(int(i)).output())
      producers[output] = i;
  for (const auto &[tensor, affine] : chosen) {
    auto producer = producers.find(tensor);
    quantiseTensor(tensor, producer == producers.end() ? -1 : producer->second, affine);
  }
  return true;
}

} // namespace ajour::compress
