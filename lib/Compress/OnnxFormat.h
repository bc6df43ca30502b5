//===- OnnxFormat.h - the weights of an ONNX file --------------*- C++ -*-===//
#ifndef AJOUR_LIB_COMPRESS_ONNXFORMAT_H
#define AJOUR_LIB_COMPRESS_ONNXFORMAT_H

#include "ModelFormat.h"

#include "ajour/Import/OnnxFile.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <nlohmann/json.hpp>

#include <map>
#include <set>

namespace ajour::compress {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::NodeProto;
using onnx::TensorProto;

/// Replaces a tensor's elements, whatever held them; its name, text and sizes stay.
void setData(TensorProto &tensor, int32_t type, const void *data, size_t bytes);

/// Adds an attribute of one integer.
void addInt(NodeProto &node, const char *name, int64_t value);

class OnnxFormat : public ModelFormat {
public:
  OnnxFormat(mlir::MLIRContext *context, const std::string &path);

  std::vector<float> weights(size_t layer) override;
  std::string refusal(size_t layer, const LayerPlan &plan) override;
  void store(size_t layer, const LayerPlan &plan, const LayerSolution &solution) override;
  bool quantiseActivations(const ActivationRanges &ranges) override;
  std::string whyNoActivations() const override {
    return "its operator set is older than 13, with which quantised activations came; convert it to a newer one";
  }
  std::string serialise() override;

private:
  GraphProto &graph() { return *file->proto.mutable_graph(); }
  void indexGraph();
  void addLayer(int64_t index);
  void describe(const NodeProto &node, FileLayer &layer);
  TensorProto *tensorOf(const std::string &name) {
    auto found = tensors.find(name);
    return found == tensors.end() ? nullptr : found->second;
  }
  std::vector<float> read(const TensorProto &tensor);
  /// The place in the file of each weight in LayerShape's order.
  std::vector<size_t> placesOf(size_t layer);
  void declare(const FileLayer &layer, const LayerPlan &plan, const std::string &name);
  void storeBias(const FileLayer &layer, const LayerSolution &solution);
  void storeSteps(const FileLayer &layer, const LayerPlan &plan, const LayerSolution &solution, TensorProto &tensor,
                  const std::vector<size_t> &places);
  void setScaleShape(const FileLayer &layer, const LayerPlan &plan, const LayerSolution &solution, TensorProto &scale,
                     NodeProto &node);
  std::string freshName(const std::string &wanted);
  bool isTransposed(const FileLayer &layer);
  void inlineExternalData();
  int64_t opset() const;

  mlir::MLIRContext *context;
  std::unique_ptr<onnx_import::ModelFile> file;
  llvm::StringMap<TensorProto *> tensors; ///< initialisers and values of Constant nodes, by name
  llvm::StringMap<int64_t> uses;
  llvm::StringSet<> names;
  std::set<std::string> constantNodes; ///< outputs of Constant nodes that became initialisers
  std::vector<NodeProto> newNodes;     ///< to stand in front of all others
  nlohmann::json encodings = nlohmann::json::object();
  bool needsMicrosoft = false;

  // For activations (OnnxActivations.cpp).
  struct Affine {
    float scale;
    uint8_t zeroPoint;
  };
  void findWanted();
  bool isFused(const std::string &tensor);
  void quantiseTensor(const std::string &tensor, int64_t producer, const Affine &affine);
  void quantiseBias(int64_t node, float inputScale);

  std::map<int64_t, std::vector<float>> integerScales; ///< of weights with one scale for each output, by node
  std::map<int64_t, std::vector<NodeProto>> nodesBehind; ///< to stand behind a node
  llvm::StringSet<> wanted;                              ///< tensors that are to be integers
  llvm::StringMap<std::vector<std::pair<int64_t, int>>> readers; ///< nodes and their operands, by tensor
};

} // namespace ajour::compress

#endif
