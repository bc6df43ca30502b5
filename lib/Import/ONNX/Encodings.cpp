//===- Encodings.cpp - what a model says of its weights --------------------------------===//
#include "Encodings.h"

#include "ajour/Dialect/Enc/Enc.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace ajour::onnx_import {

static constexpr StringLiteral key = "ajour.encoding";

/// Nodes behind which a weight is still the same weight.
static bool keepsWeight(const ::onnx::NodeProto &node) {
  for (const char *type : {"DequantizeLinear", "Transpose", "Reshape", "Identity", "Cast", "Squeeze", "Unsqueeze", "Flatten"})
    if (node.op_type() == type)
      return true;
  return false;
}

/// Brackets nested deeper than this are no list of weights; the parser is recursive.
static bool isShallow(StringRef text) {
  int depth = 0;
  for (char c : text) {
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (depth > 8)
      return false;
  }
  return true;
}

/// {"structure": NAME, PARAMETER: INTEGER or [INTEGER...]} as an attribute.
static DictionaryAttr readEntry(OpBuilder &builder, StringRef weight, const llvm::json::Value &value,
                                std::string &error) {
  const llvm::json::Object *object = value.getAsObject();
  std::optional<StringRef> structure = object ? object->getString("structure") : std::nullopt;
  if (!structure) {
    error = ("'" + weight + "' is not an object with a \"structure\"").str();
    return {};
  }
  NamedAttrList list;
  list.append("weight", builder.getStringAttr(weight));
  list.append("structure", builder.getStringAttr(*structure));
  for (const auto &[name, parameter] : *object) {
    if (StringRef(name) == "structure" || StringRef(name) == "weight")
      continue;
    SmallVector<int64_t> numbers;
    bool isRight = true;
    auto add = [&](const llvm::json::Value &element) {
      std::optional<int64_t> number = element.getAsInteger();
      isRight &= number.has_value();
      numbers.push_back(number.value_or(0));
    };
    if (const llvm::json::Array *array = parameter.getAsArray())
      llvm::for_each(*array, add);
    else
      add(parameter);
    if (!isRight) {
      error = ("parameter '" + StringRef(name) + "' of '" + weight + "' is not an integer or a list of integers").str();
      return {};
    }
    list.append(StringRef(name), builder.getDenseI64ArrayAttr(numbers));
  }
  return list.getDictionary(builder.getContext());
}

DictionaryAttr readDeclaredEncodings(const ::onnx::ModelProto &model, MLIRContext *context, std::string &error) {
  StringRef text;
  for (const ::onnx::StringStringEntryProto &entry : model.metadata_props())
    if (entry.key() == key)
      text = entry.value();
  if (text.empty())
    return {};
  auto refuse = [&](const Twine &message) {
    error = ("metadata '" + key + "' " + message).str();
    return DictionaryAttr();
  };
  llvm::Expected<llvm::json::Value> json =
      isShallow(text) ? llvm::json::parse(text)
                      : llvm::createStringError(std::errc::invalid_argument, "values are nested too deeply");
  if (!json)
    return refuse("is not JSON: " + llvm::toString(json.takeError()));
  const llvm::json::Object *object = json->getAsObject();
  if (!object)
    return refuse("is not an object of the form {WEIGHT: {\"structure\": ...}}");

  // Values that are a weight, by name; the weight that they are.
  llvm::StringMap<StringRef> weights;
  for (const ::onnx::TensorProto &tensor : model.graph().initializer())
    weights[tensor.name()] = tensor.name();
  for (const ::onnx::NodeProto &node : model.graph().node())
    if (node.op_type() == "Constant" && node.output_size() == 1)
      weights[node.output(0)] = node.output(0);
  llvm::StringMap<DictionaryAttr> entries;
  OpBuilder builder(context);
  for (const auto &[name, value] : *object) {
    if (!weights.count(StringRef(name)))
      return refuse("names '" + StringRef(name) + "', which is no initializer of the model");
    std::string problem;
    entries[StringRef(name)] = readEntry(builder, name, value, problem);
    if (!problem.empty())
      return refuse(problem);
  }
  // Nodes stand in the order of their inputs.
  NamedAttrList nodes;
  for (int64_t index = 0; index < model.graph().node_size(); ++index) {
    const ::onnx::NodeProto &node = model.graph().node(static_cast<int>(index));
    if (keepsWeight(node) && node.input_size() > 0 && node.output_size() > 0) {
      if (auto found = weights.find(node.input(0)); found != weights.end())
        weights[node.output(0)] = found->second;
      continue;
    }
    for (const std::string &input : node.input())
      if (auto weight = weights.find(input); weight != weights.end())
        if (auto entry = entries.find(weight->second); entry != entries.end())
          nodes.set(nodeName(node, index), entry->second);
  }
  return nodes.getDictionary(context);
}

} // namespace ajour::onnx_import
