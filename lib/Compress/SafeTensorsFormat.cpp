//===- SafeTensorsFormat.cpp - the weights of a Hugging Face folder -----------------===//
#include "ModelFormat.h"

#include "ajour/ABI/ElementTypes.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Encoding/Half.h"
#include "ajour/Import/SafeTensors.h"
#include "ajour/Reference/Interpreter.h"
#include "ajour/Support/NodeLocation.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <limits>

namespace ajour::compress {

namespace {

using namespace llvm;
using safetensors::Tensor;

/// Layers are the products of the imported module, which stand at the weight that they use.
class SafeTensorsFormat : public ModelFormat {
public:
  SafeTensorsFormat(mlir::ModuleOp module, const std::string &path) {
    std::vector<std::string> paths;
    std::string problem = safetensors::findShards(safetensors::folderOf(path), paths);
    for (size_t i = 0; i < paths.size() && problem.empty(); ++i)
      problem = safetensors::readFile(paths[i], file);
    if (!problem.empty())
      throw CompressError(problem);
    // Weights in half precision stand behind a cast, which hides that they are constant.
    SmallVector<nn::CastOp> casts;
    module.walk([&](nn::CastOp op) { casts.push_back(op); });
    for (nn::CastOp op : casts)
      foldConstants(op, nullptr, std::numeric_limits<int64_t>::max());
    module.walk([&](nn::GatherOp op) {
      for (const NodeInfo &node : getNodes(op.getLoc()))
        looked.insert(node.name);
    });
    module.walk([&](nn::MatmulOp op) { addLayer(op); });
  }

  std::vector<float> weights(size_t layer) override { return values(tensorOf(layerList[layer].weight)); }
  std::string refusal(size_t, const LayerPlan &plan) override {
    return plan.bits ? "weights of a safetensors file stay floating point, so 'bits' is not for it" : "";
  }
  void store(size_t layer, const LayerPlan &plan, const LayerSolution &solution) override;
  bool quantiseActivations(const ActivationRanges &) override { return false; }
  std::string whyNoActivations() const override { return "a safetensors file says nothing of activations"; }
  std::string serialise() override;

private:
  void addLayer(nn::MatmulOp op);
  static bool isFloat(const Tensor &tensor) {
    return tensor.elementType == AJOUR_F32 || tensor.elementType == AJOUR_F16 || tensor.elementType == AJOUR_BF16;
  }
  const Tensor &tensorOf(StringRef name) const { return file.tensors[file.byName.lookup(name)]; }
  std::vector<float> values(const Tensor &tensor) const;
  void replace(StringRef name, ArrayRef<float> values);

  safetensors::File file;
  StringSet<> looked; ///< weights whose rows are looked up
  StringMap<std::vector<char>> replaced;
};

void SafeTensorsFormat::addLayer(nn::MatmulOp op) {
  SmallVector<NodeInfo> nodes = getNodes(op.getLoc());
  if (nodes.size() != 1 || !file.byName.contains(nodes[0].name) || !nn::getConstantValue(op.getRhs()))
    return;
  const Tensor &tensor = tensorOf(nodes[0].name);
  if (tensor.shape.size() != 2)
    return;
  FileLayer layer;
  layer.node = layer.weight = nodes[0].name;
  layer.type = nodes[0].type;
  layer.index = nodes[0].index;
  layer.kind = LayerKind::Linear;
  layer.fileShape = tensor.shape;
  layer.shape.outputs = tensor.shape[0];
  layer.shape.channels = tensor.shape[1];
  StringRef stem = layer.weight;
  layer.hasBias = op.getBias() && nn::getConstantValue(op.getBias()) && stem.consume_back("weight") && file.byName.contains((stem + "bias").str());
  if (!isFloat(tensor))
    layer.why = "its weights are " + std::string(ajour_element_name(ajour_element_type(tensor.elementType))) + ", expected F32, F16 or BF16";
  else if (!op.getTransposeRhs())
    layer.why = "its weights are [in, out], expected [out, in]";
  else if (looked.contains(layer.weight))
    layer.why = "its weights are the embedding as well";
  layerList.push_back(std::move(layer));
}

std::vector<float> SafeTensorsFormat::values(const Tensor &tensor) const {
  size_t count = tensor.bytes.size() / ajour_element_size(tensor.elementType);
  std::vector<float> result(count);
  if (tensor.elementType == AJOUR_F32) {
    std::memcpy(result.data(), tensor.bytes.data(), tensor.bytes.size());
    return result;
  }
  for (size_t i = 0; i < count; ++i) {
    uint16_t bits = support::endian::read16le(tensor.bytes.data() + 2 * i);
    result[i] = tensor.elementType == AJOUR_F16 ? encoding::halfToFloat(bits) : encoding::bfloatToFloat(bits);
  }
  return result;
}

/// Gives a tensor other values, in its own element type.
void SafeTensorsFormat::replace(StringRef name, ArrayRef<float> values) {
  const Tensor &tensor = tensorOf(name);
  std::vector<char> &bytes = replaced[name];
  bytes.resize(tensor.bytes.size());
  if (tensor.elementType == AJOUR_F32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return;
  }
  for (size_t i = 0; i < values.size(); ++i)
    support::endian::write16le(bytes.data() + 2 * i, tensor.elementType == AJOUR_F16 ? encoding::floatToHalf(values[i]) : encoding::floatToBFloat(values[i]));
}

void SafeTensorsFormat::store(size_t index, const LayerPlan &, const LayerSolution &solution) {
  const FileLayer &layer = layerList[index];
  replace(layer.weight, solution.weights);
  if (solution.biasDelta.empty())
    return;
  std::string name = StringRef(layer.weight).drop_back(strlen("weight")).str() + "bias";
  std::vector<float> bias = values(tensorOf(name));
  for (size_t o = 0; o < bias.size(); ++o)
    bias[o] += solution.biasDelta[o];
  replace(name, bias);
}

/// One file with the tensors in the order in which they were read.
std::string SafeTensorsFormat::serialise() {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  size_t offset = 0;
  for (const Tensor &tensor : file.tensors) {
    header[tensor.name] = {{"dtype", safetensors::nameOfType(tensor.elementType)}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.append(alignTo(text.size(), 8) - text.size(), ' ');
  std::string result(8, '\0');
  support::endian::write64le(result.data(), text.size());
  result += text;
  for (const Tensor &tensor : file.tensors) {
    auto changed = replaced.find(tensor.name);
    ArrayRef<char> bytes = changed == replaced.end() ? tensor.bytes : ArrayRef<char>(changed->second);
    result.append(bytes.begin(), bytes.end());
  }
  return result;
}

} // namespace

std::unique_ptr<ModelFormat> openSafeTensors(mlir::ModuleOp module, const std::string &path) {
  return std::make_unique<SafeTensorsFormat>(module, path);
}

} // namespace ajour::compress
