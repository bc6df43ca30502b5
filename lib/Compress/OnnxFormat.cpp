//===- OnnxFormat.cpp - the weights of an ONNX file ----------------------------===//
#include "OnnxFormat.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>

namespace ajour::compress {

namespace {

/// The metadata key under which the structure of each weight is kept, by the name of its tensor.
constexpr const char *encodingKey = "ajour.encoding";

const AttributeProto *findAttribute(const NodeProto &node, llvm::StringRef name) {
  for (const AttributeProto &attribute : node.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

int64_t intAttribute(const NodeProto &node, llvm::StringRef name, int64_t otherwise) {
  const AttributeProto *attribute = findAttribute(node, name);
  return attribute ? attribute->i() : otherwise;
}

float floatAttribute(const NodeProto &node, llvm::StringRef name, float otherwise) {
  const AttributeProto *attribute = findAttribute(node, name);
  return attribute ? attribute->f() : otherwise;
}

nlohmann::json structureJson(const LayerPlan &plan) {
  nlohmann::json json;
  switch (plan.structure) {
  case Structure::Dense:
    json["structure"] = "dense";
    break;
  case Structure::C4n:
    json = {{"structure", "c4n"}, {"n", plan.pruned}, {"share", plan.share}};
    break;
  case Structure::NM:
    json = {{"structure", "nm"}, {"kept", plan.kept}, {"of", plan.of}};
    break;
  case Structure::Pattern:
    json = {{"structure", "pattern"}, {"entries", plan.entries}};
    break;
  case Structure::Block:
    json = {{"structure", "block"}, {"rows", plan.rows}, {"cols", plan.cols}};
    break;
  case Structure::Unstructured:
    json["structure"] = "unstructured";
    break;
  }
  return json;
}

} // namespace

void setData(TensorProto &tensor, int32_t type, const void *data, size_t bytes) {
  std::string name = tensor.name(), doc = tensor.doc_string();
  std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  tensor.Clear();
  tensor.set_name(name);
  if (!doc.empty())
    tensor.set_doc_string(doc);
  for (int64_t dim : dims)
    tensor.add_dims(dim);
  tensor.set_data_type(type);
  tensor.set_raw_data(data, bytes);
}

void addInt(NodeProto &node, const char *name, int64_t value) {
  AttributeProto &made = *node.add_attribute();
  made.set_name(name);
  made.set_type(AttributeProto::INT);
  made.set_i(value);
}

OnnxFormat::OnnxFormat(mlir::MLIRContext *context, const std::string &path) : context(context) {
  std::string error;
  file = onnx_import::readModel(path, error);
  if (!file)
    throw CompressError("'" + path + "' " + error);
  indexGraph();
  for (int64_t i = 0; i < graph().node_size(); ++i)
    addLayer(i);
}

void OnnxFormat::indexGraph() {
  for (TensorProto &tensor : *graph().mutable_initializer())
    tensors[tensor.name()] = &tensor;
  for (NodeProto &node : *graph().mutable_node()) {
    for (const std::string &input : node.input())
      ++uses[input];
    for (const std::string &output : node.output())
      names.insert(output);
    // Graphs inside a node may read anything of this one.
    for (AttributeProto &attribute : *node.mutable_attribute()) {
      if (node.op_type() == "Constant" && attribute.name() == "value" && node.output_size() == 1)
        tensors[node.output(0)] = attribute.mutable_t();
      for (const NodeProto &inner : attribute.g().node())
        for (const std::string &input : inner.input())
          uses[input] += 2;
    }
  }
  for (const auto &output : graph().output())
    ++uses[output.name()];
  for (const auto &entry : tensors)
    names.insert(entry.getKey());
  for (const auto &input : graph().input())
    names.insert(input.name());
}

void OnnxFormat::addLayer(int64_t index) {
  const NodeProto &node = graph().node(int(index));
  bool isConv = node.op_type() == "Conv", isLinear = node.op_type() == "Gemm" || node.op_type() == "MatMul";
  if ((!isConv && !isLinear) || !(node.domain().empty() || node.domain() == "ai.onnx") || node.input_size() < 2)
    return;
  TensorProto *tensor = tensorOf(node.input(1));
  if (!tensor)
    return; // no constant: two activations are multiplied
  FileLayer layer;
  layer.node = node.name().empty() ? node.op_type() + "_" + std::to_string(index) : node.name();
  layer.type = node.op_type();
  layer.index = index;
  layer.weight = node.input(1);
  layer.fileShape.assign(tensor->dims().begin(), tensor->dims().end());
  if (onnx_import::checkedElements(layer.fileShape) <= 0 || (isLinear && layer.fileShape.size() != 2) ||
      (isConv && layer.fileShape.size() < 3))
    return;
  if (tensor->data_type() != TensorProto::FLOAT)
    layer.why = "its weights are " + onnx_import::onnxTypeName(tensor->data_type()) + ", expected float";
  else if (uses[layer.weight] != 1)
    layer.why = "its weights are used in " + std::to_string(uses[layer.weight]) + " places, expected one";
  describe(node, layer);
  layerList.push_back(std::move(layer));
}

void OnnxFormat::describe(const NodeProto &node, FileLayer &layer) {
  const std::vector<int64_t> &dims = layer.fileShape;
  int64_t bias = -1;
  if (layer.type == "Conv") {
    layer.shape.outputs = dims[0];
    layer.shape.groups = intAttribute(node, "group", 1);
    layer.shape.channels = dims[1];
    layer.window.assign(dims.begin() + 2, dims.end());
    for (int64_t size : layer.window)
      layer.shape.taps *= size;
    layer.kind = layer.shape.groups > 1 && dims[1] == 1 ? LayerKind::Depthwise : LayerKind::Conv;
    if (layer.shape.groups < 1 || dims[0] % layer.shape.groups)
      layer.why = "it has " + std::to_string(layer.shape.groups) + " groups for " + std::to_string(dims[0]) + " outputs";
    bias = 2;
  } else {
    layer.kind = LayerKind::Linear;
    bool transposed = layer.type == "Gemm" && intAttribute(node, "transB", 0);
    layer.shape.outputs = dims[transposed ? 0 : 1];
    layer.shape.channels = dims[transposed ? 1 : 0];
    if (layer.type == "Gemm" && floatAttribute(node, "alpha", 1) == 1 && floatAttribute(node, "beta", 1) == 1)
      bias = 2;
  }
  if (bias < 0 || bias >= node.input_size())
    return;
  const TensorProto *tensor = tensorOf(node.input(int(bias)));
  layer.hasBias = tensor && tensor->data_type() == TensorProto::FLOAT && uses[node.input(int(bias))] == 1 &&
                  tensor->dims_size() == 1 && tensor->dims(0) == layer.shape.outputs;
}

std::vector<float> OnnxFormat::read(const TensorProto &tensor) {
  onnx_import::TensorData data;
  std::string error;
  if (!onnx_import::readTensor(*file, tensor, context, data, error))
    throw CompressError("'" + file->path + "': tensor '" + tensor.name() + "' " + error);
  std::vector<float> values(data.bytes.size() / sizeof(float));
  std::memcpy(values.data(), data.bytes.data(), values.size() * sizeof(float));
  return values;
}

bool OnnxFormat::isTransposed(const FileLayer &layer) {
  return layer.type == "Gemm" && intAttribute(graph().node(int(layer.index)), "transB", 0);
}

std::vector<size_t> OnnxFormat::placesOf(size_t index) {
  const FileLayer &layer = layerList[index];
  const LayerShape &shape = layer.shape;
  // Strides of output, tap and channel in the file.
  size_t output = size_t(shape.columns()), tap = 1, channel = size_t(shape.taps);
  if (layer.kind == LayerKind::Linear && !isTransposed(layer)) {
    output = 1;
    channel = size_t(shape.outputs);
  }
  std::vector<size_t> places;
  places.reserve(size_t(shape.outputs * shape.columns()));
  for (int64_t o = 0; o < shape.outputs; ++o)
    for (int64_t t = 0; t < shape.taps; ++t)
      for (int64_t c = 0; c < shape.channels; ++c)
        places.push_back(o * output + t * tap + c * channel);
  return places;
}

std::vector<float> OnnxFormat::weights(size_t index) {
  std::vector<float> values = read(*tensorOf(layerList[index].weight)), ordered;
  for (size_t place : placesOf(index))
    ordered.push_back(values[place]);
  return ordered;
}

std::string OnnxFormat::refusal(size_t index, const LayerPlan &plan) {
  const FileLayer &layer = layerList[index];
  if (plan.group && plan.group >= layer.shape.channels)
    return "";
  if (plan.group && layer.shape.channels % plan.group)
    return "its " + std::to_string(layer.shape.channels) + " inputs are no multiple of the group of " +
           std::to_string(plan.group);
  return "";
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::string OnnxFormat::freshName(const std::string &wanted) {
  std::string name = wanted;
  for (int i = 2; names.contains(name); ++i)
    name = wanted + "_" + std::to_string(i);
  names.insert(name);
  return name;
}

int64_t OnnxFormat::opset() const {
  for (const auto &import : file->proto.opset_import())
    if (import.domain().empty() || import.domain() == "ai.onnx")
      return import.version();
  return 1;
}

void OnnxFormat::storeBias(const FileLayer &layer, const LayerSolution &solution) {
  TensorProto &bias = *tensorOf(graph().node(int(layer.index)).input(2));
  std::vector<float> values = read(bias);
  for (size_t o = 0; o < values.size(); ++o)
    values[o] += solution.biasDelta[o];
  setData(bias, TensorProto::FLOAT, values.data(), values.size() * sizeof(float));
}

void OnnxFormat::store(size_t index, const LayerPlan &plan, const LayerSolution &solution) {
  const FileLayer &layer = layerList[index];
  TensorProto &tensor = *tensorOf(layer.weight);
  std::vector<size_t> places = placesOf(index);
  if (!solution.biasDelta.empty())
    storeBias(layer, solution);
  if (plan.bits)
    return storeSteps(layer, plan, solution, tensor, places);
  std::vector<float> values(places.size());
  for (size_t i = 0; i < places.size(); ++i)
    values[places[i]] = solution.weights[i];
  setData(tensor, TensorProto::FLOAT, values.data(), values.size() * sizeof(float));
  declare(layer, plan, layer.weight);
}

/// Notes the structure of a weight. Readers see it as one matrix of all outputs and of inputs tap after tap; where runs or rows end
/// elsewhere in that, they find out for themselves.
void OnnxFormat::declare(const FileLayer &layer, const LayerPlan &plan, const std::string &name) {
  int64_t run = plan.structure == Structure::C4n ? 4 : plan.structure == Structure::NM ? plan.of : 1;
  int64_t rows = plan.structure == Structure::C4n ? plan.share : plan.structure == Structure::Block ? plan.rows : 1;
  bool runsFit = layer.shape.taps == 1 || layer.shape.channels % run == 0;
  bool rowsFit = layer.shape.groups == 1 || layer.shape.outputsPerGroup() % rows == 0;
  if (plan.structure != Structure::Dense && runsFit && rowsFit)
    encodings[name] = structureJson(plan);
}

/// Gives a tensor of scales its sizes, and the node its axis and block size.
void OnnxFormat::setScaleShape(const FileLayer &layer, const LayerPlan &plan, const LayerSolution &solution,
                               TensorProto &scale, NodeProto &node) {
  const LayerShape &shape = layer.shape;
  bool inputsFirst = layer.kind == LayerKind::Linear && !isTransposed(layer);
  std::vector<float> values = solution.scales;
  if (!plan.group) {
    scale.add_dims(shape.outputs);
    addInt(node, "axis", inputsFirst ? 1 : 0);
  } else {
    // Scales lie as [outputs][taps][blocks]; the file wants the weight's order with blocks for inputs.
    int64_t blocks = int64_t(values.size()) / (shape.outputs * shape.taps);
    for (int64_t o = 0; o < shape.outputs; ++o)
      for (int64_t t = 0; t < shape.taps; ++t)
        for (int64_t b = 0; b < blocks; ++b) {
          size_t to = inputsFirst ? size_t(b * shape.outputs + o) : size_t((o * blocks + b) * shape.taps + t);
          values[to] = solution.scales[(o * shape.taps + t) * blocks + b];
        }
    std::vector<int64_t> dims = layer.fileShape;
    dims[inputsFirst ? 0 : 1] = blocks;
    for (int64_t dim : dims)
      scale.add_dims(dim);
    addInt(node, "axis", inputsFirst ? 0 : 1);
    addInt(node, "block_size", plan.group);
  }
  setData(scale, TensorProto::FLOAT, values.data(), values.size() * sizeof(float));
}

/// The weight becomes integers behind a DequantizeLinear that has the weight's name.
void OnnxFormat::storeSteps(const FileLayer &layer, const LayerPlan &plan, const LayerSolution &solution,
                            TensorProto &tensor, const std::vector<size_t> &places) {
  bool four = plan.bits <= 4;
  std::vector<int8_t> steps(places.size());
  for (size_t i = 0; i < places.size(); ++i)
    steps[places[i]] = solution.steps[i];
  if (four) {
    std::vector<int8_t> packed((steps.size() + 1) / 2, 0);
    for (size_t i = 0; i < steps.size(); ++i)
      packed[i / 2] |= int8_t((steps[i] & 15) << (i % 2 * 4));
    steps = std::move(packed);
  }
  TensorProto quantised;
  std::string name = freshName(layer.weight + "_quantized");
  quantised.set_name(name);
  for (int64_t dim : layer.fileShape)
    quantised.add_dims(dim);
  setData(quantised, four ? int32_t(onnx_import::OnnxInt4) : int32_t(TensorProto::INT8), steps.data(), steps.size());
  TensorProto scale;
  scale.set_name(freshName(layer.weight + "_scale"));

  NodeProto node;
  node.set_op_type("DequantizeLinear");
  node.set_name(freshName(layer.weight + "_DequantizeLinear"));
  // Blocks and 4 bits came with operator set 21, an axis with 13; the other domain has them for any.
  if (opset() < (four || plan.group ? 21 : 13)) {
    node.set_domain("com.microsoft");
    needsMicrosoft = true;
  }
  setScaleShape(layer, plan, solution, scale, node);
  node.add_input(name);
  node.add_input(scale.name());
  node.add_output(layer.weight);
  newNodes.push_back(std::move(node));
  declare(layer, plan, name);
  if (!plan.group)
    integerScales[layer.index] = solution.scales;

  // The float tensor makes place: an initialiser, which may also be listed as an input, or a Constant node.
  auto &initialisers = *graph().mutable_initializer();
  bool isInitialiser = llvm::any_of(initialisers, [&](const TensorProto &t) { return &t == &tensor; });
  if (isInitialiser) {
    tensor.Swap(&quantised);
    auto &inputs = *graph().mutable_input();
    for (int i = inputs.size(); i-- > 0;)
      if (inputs[i].name() == layer.weight)
        inputs.DeleteSubrange(i, 1);
  } else {
    constantNodes.insert(layer.weight);
    tensor.Clear();
    *graph().add_initializer() = quantised;
  }
  *graph().add_initializer() = scale;
  tensors.erase(layer.weight);
}

/// The file may be written to another folder, from where external data cannot be named.
void OnnxFormat::inlineExternalData() {
  int64_t total = 0;
  for (TensorProto &tensor : *graph().mutable_initializer()) {
    if (tensor.data_location() != TensorProto::EXTERNAL) {
      total += int64_t(tensor.raw_data().size());
      continue;
    }
    onnx_import::TensorData data;
    std::string error;
    if (!onnx_import::readTensor(*file, tensor, context, data, error))
      throw CompressError("'" + file->path + "': tensor '" + tensor.name() + "' " + error);
    if (tensor.data_type() >= int32_t(onnx_import::OnnxFloat8E4M3FN))
      throw CompressError("'" + file->path + "': tensor '" + tensor.name() + "' is external and of " +
                          onnx_import::onnxTypeName(tensor.data_type()) + ", which cannot be put into the file");
    total += int64_t(data.bytes.size());
    setData(tensor, tensor.data_type(), data.bytes.data(), data.bytes.size());
  }
  if (total > int64_t(2'000'000'000))
    throw CompressError("'" + file->path + "' has " + std::to_string(total) +
                        " bytes of weights after compression, an ONNX file has at most 2147483647");
}

std::string OnnxFormat::serialise() {
  inlineExternalData();
  google::protobuf::RepeatedPtrField<NodeProto> nodes;
  for (NodeProto &node : newNodes)
    nodes.Add()->Swap(&node);
  for (int i = 0; i < graph().node_size(); ++i) {
    NodeProto &node = *graph().mutable_node(i);
    if (node.op_type() != "Constant" || node.output_size() != 1 || !constantNodes.count(node.output(0)))
      nodes.Add()->Swap(&node);
    for (NodeProto &behind : nodesBehind[i])
      nodes.Add()->Swap(&behind);
  }
  graph().mutable_node()->Swap(&nodes);
  if (needsMicrosoft && llvm::none_of(file->proto.opset_import(),
                                      [](const auto &import) { return import.domain() == "com.microsoft"; })) {
    auto &import = *file->proto.add_opset_import();
    import.set_domain("com.microsoft");
    import.set_version(1);
  }
  auto &metadata = *file->proto.mutable_metadata_props();
  for (int i = metadata.size(); i-- > 0;)
    if (metadata[i].key() == encodingKey)
      metadata.DeleteSubrange(i, 1);
  if (!encodings.empty()) {
    auto &entry = *metadata.Add();
    entry.set_key(encodingKey);
    entry.set_value(encodings.dump());
  }
  return file->proto.SerializeAsString();
}

std::unique_ptr<ModelFormat> openOnnx(mlir::MLIRContext *context, const std::string &path) {
  return std::make_unique<OnnxFormat>(context, path);
}

} // namespace ajour::compress
