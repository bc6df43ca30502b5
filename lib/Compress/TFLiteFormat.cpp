//===- TFLiteFormat.cpp - the weights of a TFLite file --------------------------===//
#include "ModelFormat.h"

#include "ajour/Import/TFLite_generated.h"

#include "llvm/Support/MemoryBuffer.h"

#include <cstring>

namespace ajour::compress {

namespace {

using tflite::Builtin;
using tflite::TensorType;

class TFLiteFormat : public ModelFormat {
public:
  explicit TFLiteFormat(const std::string &path);

  std::vector<float> weights(size_t layer) override;
  std::string refusal(size_t layer, const LayerPlan &plan) override;
  void store(size_t layer, const LayerPlan &plan, const LayerSolution &solution) override;
  bool quantiseActivations(const ActivationRanges &) override { return false; }
  std::string whyNoActivations() const override { return "a TFLite file keeps its element types, so 'activations' is not for it"; }
  std::string serialise() override { return std::move(bytes); }

private:
  const tflite::Model &model() const { return *tflite::GetModel(bytes.data()); }
  const tflite::Tensor &tensor(int64_t index) const { return *model().subgraphs()->Get(0)->tensors()->Get(unsigned(index)); }
  /// The bytes of a tensor's constant; null where it has none of this size.
  char *dataOf(int64_t tensor, size_t size);
  void countUses();
  void addLayer(const tflite::Operator &op, Builtin code, int64_t index);
  bool describe(const tflite::Operator &op, Builtin code, FileLayer &layer);
  void describeValues(const tflite::Tensor &weight, FileLayer &layer);
  /// The place in the file of each weight in LayerShape's order.
  size_t placeOf(const FileLayer &layer, int64_t output, int64_t column) const {
    return size_t(layer.kind == LayerKind::Depthwise ? column * layer.shape.outputs + output
                                                     : output * layer.shape.columns() + column);
  }

  std::string path, bytes;
  std::vector<int64_t> weightTensors, biasTensors; ///< by layer; -1: none
  std::map<uint32_t, int64_t> bufferUses;
};

TFLiteFormat::TFLiteFormat(const std::string &path) : path(path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false, /*IsVolatile=*/true);
  if (!buffer)
    throw CompressError("'" + path + "' cannot be read: " + buffer.getError().message());
  bytes = (*buffer)->getBuffer().str();
  // The importer has read the file before; this is in case that it has changed since.
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
  if (!tflite::VerifyModelBuffer(verifier) || !model().subgraphs() || !model().subgraphs()->size() ||
      !model().subgraphs()->Get(0)->tensors() || !model().operator_codes() || !model().buffers())
    throw CompressError("'" + path + "' is not a TFLite model or is damaged");
  countUses();
  const auto *operators = model().subgraphs()->Get(0)->operators();
  for (unsigned i = 0; operators && i < operators->size(); ++i) {
    const tflite::Operator &op = *operators->Get(i);
    if (op.opcode_index() >= model().operator_codes()->size() || !op.inputs() || !op.outputs() || !op.outputs()->size())
      continue;
    const auto *code = model().operator_codes()->Get(op.opcode_index());
    // Old files have the number in a byte.
    addLayer(op, Builtin(std::max<int32_t>(code->short_code(), int32_t(code->code()))), i);
  }
}

/// How often operators read each buffer: tensors may share one.
void TFLiteFormat::countUses() {
  for (const auto *graph : *model().subgraphs())
    for (unsigned i = 0; graph->operators() && i < graph->operators()->size(); ++i)
      for (unsigned k = 0; graph->operators()->Get(i)->inputs() && k < graph->operators()->Get(i)->inputs()->size(); ++k) {
        int32_t input = graph->operators()->Get(i)->inputs()->Get(k);
        if (input >= 0 && graph->tensors() && unsigned(input) < graph->tensors()->size())
          ++bufferUses[graph->tensors()->Get(unsigned(input))->buffer()];
      }
}

char *TFLiteFormat::dataOf(int64_t index, size_t size) {
  uint32_t buffer = tensor(index).buffer();
  if (buffer == 0 || buffer >= model().buffers()->size())
    return nullptr;
  const auto *data = model().buffers()->Get(buffer)->data();
  if (!data || data->size() != size)
    return nullptr;
  return bytes.data() + (reinterpret_cast<const char *>(data->data()) - bytes.data());
}

bool TFLiteFormat::describe(const tflite::Operator &op, Builtin code, FileLayer &layer) {
  const tflite::Tensor &input = tensor(op.inputs()->Get(0)), &weight = tensor(op.inputs()->Get(1));
  if (!weight.shape() || !input.shape() || !input.shape()->size())
    return false;
  layer.fileShape.assign(weight.shape()->begin(), weight.shape()->end());
  const std::vector<int64_t> &dims = layer.fileShape;
  for (int64_t dim : dims)
    if (dim < 1 || dim > (1 << 24))
      return false;
  int64_t channels = input.shape()->Get(input.shape()->size() - 1);
  if (code == Builtin::FULLY_CONNECTED) {
    layer.kind = LayerKind::Linear;
    layer.shape = {dims[0], 1, 1, dims.size() == 2 ? dims[1] : 0};
    return dims.size() == 2;
  }
  if (dims.size() != 4 || channels < 1)
    return false;
  layer.window = {dims[1], dims[2]};
  bool depthwise = code == Builtin::DEPTHWISE_CONV_2D;
  layer.kind = depthwise ? LayerKind::Depthwise : LayerKind::Conv;
  layer.shape = depthwise ? LayerShape{dims[3], channels, dims[1] * dims[2], 1}
                          : LayerShape{dims[0], channels / dims[3], dims[1] * dims[2], dims[3]};
  return layer.shape.groups > 0 && layer.shape.outputs % layer.shape.groups == 0 &&
         (depthwise ? dims[0] == 1 : channels % dims[3] == 0);
}

/// Floats, or 8-bit integers with a scale for each output or one for all.
void TFLiteFormat::describeValues(const tflite::Tensor &weight, FileLayer &layer) {
  const auto *quantization = weight.quantization();
  const auto *scales = quantization ? quantization->scale() : nullptr;
  const auto *zeros = quantization ? quantization->zero_point() : nullptr;
  bool symmetric = !zeros || std::all_of(zeros->begin(), zeros->end(), [](int64_t zero) { return zero == 0; });
  if (weight.sparsity())
    layer.why = "its weights are stored sparse already";
  else if (weight.type() == TensorType::INT8 && symmetric && scales &&
           (scales->size() == 1 || int64_t(scales->size()) == layer.shape.outputs))
    for (int64_t o = 0; o < layer.shape.outputs; ++o)
      layer.scales.push_back(scales->Get(scales->size() == 1 ? 0 : unsigned(o)));
  else if (weight.type() != TensorType::FLOAT32)
    layer.why = std::string("its weights are ") + tflite::EnumNameTensorType(weight.type()) +
                ", expected FLOAT32, or INT8 with scales and zero point 0";
}

void TFLiteFormat::addLayer(const tflite::Operator &op, Builtin code, int64_t index) {
  if ((code != Builtin::CONV_2D && code != Builtin::DEPTHWISE_CONV_2D && code != Builtin::FULLY_CONNECTED) || op.inputs()->size() < 2)
    return;
  unsigned tensors = model().subgraphs()->Get(0)->tensors()->size();
  for (unsigned k = 0; k < op.inputs()->size(); ++k)
    if (op.inputs()->Get(k) >= int32_t(tensors) || (k < 2 && op.inputs()->Get(k) < 0))
      return;
  if (uint32_t(op.outputs()->Get(0)) >= tensors)
    return;
  FileLayer layer;
  const tflite::Tensor &output = tensor(op.outputs()->Get(0)), &weight = tensor(op.inputs()->Get(1));
  layer.node = output.name() ? output.name()->str() : "";
  layer.type = tflite::EnumNameBuiltin(code);
  layer.index = index;
  layer.weight = weight.name() ? weight.name()->str() : "";
  if (!describe(op, code, layer))
    return;
  describeValues(weight, layer);
  int64_t tensorIndex = op.inputs()->Get(1), bias = op.inputs()->size() > 2 ? op.inputs()->Get(2) : -1;
  size_t elements = size_t(layer.shape.outputs * layer.shape.columns());
  if (!dataOf(tensorIndex, elements * (layer.scales.empty() ? 4 : 1))) {
    if (layer.why.empty())
      return; // no constant
  } else if (layer.why.empty() && bufferUses[weight.buffer()] != 1) {
    layer.why = "its weights are used in " + std::to_string(bufferUses[weight.buffer()]) + " places, expected one";
  }
  layer.hasBias = bias >= 0 && layer.scales.empty() && tensor(bias).type() == TensorType::FLOAT32 &&
                  bufferUses[tensor(bias).buffer()] == 1 && dataOf(bias, size_t(layer.shape.outputs) * 4);
  layerList.push_back(std::move(layer));
  weightTensors.push_back(tensorIndex);
  biasTensors.push_back(bias);
}

std::vector<float> TFLiteFormat::weights(size_t index) {
  const FileLayer &layer = layerList[index];
  std::vector<float> values;
  size_t elements = size_t(layer.shape.outputs * layer.shape.columns());
  const char *data = dataOf(weightTensors[index], elements * (layer.scales.empty() ? 4 : 1));
  for (int64_t o = 0; o < layer.shape.outputs; ++o)
    for (int64_t c = 0; c < layer.shape.columns(); ++c) {
      size_t at = placeOf(layer, o, c);
      float value;
      if (layer.scales.empty())
        std::memcpy(&value, data + at * sizeof(float), sizeof(float));
      else
        value = float(int8_t(data[at])) * layer.scales[o];
      values.push_back(value);
    }
  return values;
}

std::string TFLiteFormat::refusal(size_t, const LayerPlan &plan) {
  return plan.bits ? "a TFLite file keeps its element types, so 'bits' is not for it" : "";
}

void TFLiteFormat::store(size_t index, const LayerPlan &, const LayerSolution &solution) {
  const FileLayer &layer = layerList[index];
  size_t elements = size_t(layer.shape.outputs * layer.shape.columns()), from = 0;
  char *data = dataOf(weightTensors[index], elements * (layer.scales.empty() ? 4 : 1));
  for (int64_t o = 0; o < layer.shape.outputs; ++o)
    for (int64_t c = 0; c < layer.shape.columns(); ++c, ++from) {
      size_t at = placeOf(layer, o, c);
      if (layer.scales.empty())
        std::memcpy(data + at * sizeof(float), &solution.weights[from], sizeof(float));
      else
        data[at] = char(solution.steps[from]);
    }
  if (solution.biasDelta.empty())
    return;
  char *bias = dataOf(biasTensors[index], size_t(layer.shape.outputs) * 4);
  for (int64_t o = 0; o < layer.shape.outputs; ++o) {
    float value;
    std::memcpy(&value, bias + 4 * o, 4);
    value += solution.biasDelta[o];
    std::memcpy(bias + 4 * o, &value, 4);
  }
}

} // namespace

std::unique_ptr<ModelFormat> openTFLite(const std::string &path) { return std::make_unique<TFLiteFormat>(path); }

} // namespace ajour::compress
