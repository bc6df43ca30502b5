//===- ModelFormat.h - the weights of a model file -------------*- C++ -*-===//
#ifndef AJOUR_LIB_COMPRESS_MODELFORMAT_H
#define AJOUR_LIB_COMPRESS_MODELFORMAT_H

#include "Solver.h"

#include "mlir/IR/MLIRContext.h"

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
  std::string why;      ///< why the weights cannot be changed; empty: they can
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
  virtual std::string serialise() = 0;

protected:
  std::vector<FileLayer> layerList;
};

std::unique_ptr<ModelFormat> openOnnx(mlir::MLIRContext *context, const std::string &path);

} // namespace ajour::compress

#endif
