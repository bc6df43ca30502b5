//===- ModelFormat.h - the weights of a model file -------------*- C++ -*-===//
#ifndef AJOUR_LIB_COMPRESS_MODELFORMAT_H
#define AJOUR_LIB_COMPRESS_MODELFORMAT_H

#include "Solver.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

#include <map>
#include <memory>

namespace ajour::compress {

/// A layer of a model file: a node with a constant weight.
struct FileLayer {
  std::string node, type; ///< as ajour/Support/NodeLocation.h names them
  int64_t index = 0;      ///< of the node
  std::string weight;     ///< name of its tensor
  LayerKind kind = LayerKind::Conv;
  std::vector<int64_t> fileShape; ///< of the weight
  std::vector<int64_t> window;    ///< of a convolution
  LayerShape shape;
  bool hasBias = false; ///< a bias of its own that can be changed
  /// The file holds 8-bit steps of these scales, one for each output, and will; empty: floating point.
  std::vector<float> scales;
  std::string why;      ///< why the weights cannot be changed; empty: they can
};

/// What the values of an activation lie between, by the place where it is made.
struct ActivationRanges {
  struct Range {
    float low = 0, high = 0;
  };
  std::map<int64_t, Range> nodes; ///< first output of a node
  std::map<std::string, Range> inputs;
};

/// A model file whose weights can be replaced. All functions throw CompressError.
class ModelFormat {
public:
  virtual ~ModelFormat() = default;

  /// Layers in the file's order.
  const std::vector<FileLayer> &layers() const { return layerList; }
  /// The weights of a layer as LayerShape orders them.
  virtual std::vector<float> weights(size_t layer) = 0;
  /// Why the format cannot hold what the plan asks for; empty: it can.
  virtual std::string refusal(size_t layer, const LayerPlan &plan) = 0;
  virtual void store(size_t layer, const LayerPlan &plan, const LayerSolution &solution) = 0;
  /// Lets the inputs of layers that have integer weights be integers too, and what lies between them. False: the format or
  /// its version cannot.
  virtual bool quantiseActivations(const ActivationRanges &ranges) = 0;
  /// Why not, after that.
  virtual std::string whyNoActivations() const = 0;
  virtual std::string serialise() = 0;

protected:
  std::vector<FileLayer> layerList;
};

std::unique_ptr<ModelFormat> openOnnx(mlir::MLIRContext *context, const std::string &path);

/// A Hugging Face folder, which has been imported as `module`: the products in it are its layers. Weights stay floating point, in their own
/// precision.
std::unique_ptr<ModelFormat> openSafeTensors(mlir::ModuleOp module, const std::string &path);

/// A TFLite file that the importer has accepted. Weights are replaced where they are; element types and scales stay.
std::unique_ptr<ModelFormat> openTFLite(const std::string &path);

} // namespace ajour::compress

#endif
