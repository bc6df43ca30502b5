//===- LayerBuilder.h - layers of language models as nn ---------*- C++ -*-===//
//
// What builders of architectures share: weights by name as values, products, norms, and a main whose inputs are tokens.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_LIB_IMPORT_ARCHITECTURES_LAYERBUILDER_H
#define AJOUR_LIB_IMPORT_ARCHITECTURES_LAYERBUILDER_H

#include "Weights.h"

#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ajour::architectures {

/// How a norm computes; its weights are the model's.
struct NormConfig {
  float epsilon = 1e-5f;
  bool rootMeanSquare = true; ///< else the mean is subtracted too
  bool addOne = false;        ///< the scale is 1 + weight
  bool plain = false;         ///< there is no weight
};

/// A name with the number of the layer in place of {}.
std::string nameOf(llvm::StringRef pattern, int64_t layer);

/// Writes operations, each located at the weight that it uses. What is wrong is reported there, and building goes on so that all
/// weights that are missing or misshapen are named: a null Value follows from a failure, and every function passes it on.
class LayerBuilder {
public:
  /// `architecture` is what the model calls itself in messages; names and weights must outlive the builder.
  LayerBuilder(mlir::MLIRContext *context, const std::string &path, const std::string &architecture, const WeightSource &weights);

  mlir::AffineExpr expr(int64_t value) { return mlir::getAffineConstantExpr(value, context); }
  mlir::RankedTensorType type(llvm::ArrayRef<mlir::AffineExpr> dims) { return nn::makeTensor(dims, f32); }

  /// Operations that come next belong to the node of this weight.
  void at(llvm::StringRef weight, llvm::StringRef kind);
  void fail(const llvm::Twine &what);

  mlir::Value constant(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes);
  mlir::Value constant(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<float> values);

  /// A constant whose bytes `fill` makes, those of each weight behind the other, whenever they are wanted.
  mlir::Value fromFile(mlir::RankedTensorType type, llvm::ArrayRef<Weight> weights,
                       std::function<void(const Weight &, llvm::MutableArrayRef<char>)> fill);

  /// A weight that must be there, of `shape`; -1 in it is any size. What comes next is located at it.
  const Weight *require(const std::string &name, llvm::ArrayRef<int64_t> shape, llvm::StringRef kind);
  /// A weight as a value: f32, or what is made f32 where it is read.
  mlir::Value load(const Weight &weight);
  /// The bias beside a weight, null where the file has none; nothing when it does not fit.
  std::optional<mlir::Value> loadBias(const std::string &weight, int64_t size);
  /// Weights of one shape and form as one value [count, ...].
  mlir::Value loadStack(llvm::ArrayRef<const Weight *> weights);

  /// `lhsGroup`: elements of lhs that are rounded to 8 bits together; 0: none.
  mlir::Value matmul(mlir::Value lhs, mlir::Value rhs, mlir::Value bias, bool transposed, int64_t lhsGroup = 0);
  mlir::Value binary(nn::BinaryKind kind, mlir::Value lhs, mlir::Value rhs);
  mlir::Value unary(nn::UnaryKind kind, mlir::Value x);
  /// x times a number; x itself for 1.
  mlir::Value scale(mlir::Value x, float factor);
  /// cap tanh(x / cap), which keeps x within the cap; x itself for 0.
  mlir::Value softCap(mlir::Value x, float cap);
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> dims);
  mlir::Value transpose(mlir::Value value, llvm::ArrayRef<int64_t> perm);
  mlir::Value part(mlir::Value x, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> steps, llvm::ArrayRef<mlir::AffineExpr> dims);

  /// x [tokens, in] times a weight [out, in] (with `turned` [in, out]), with a bias where the file has one. `out` -1: whatever the
  /// weight has.
  mlir::Value linear(mlir::Value x, const std::string &pattern, int64_t layer, int64_t out, bool turned = false);
  /// A norm over the last dimension, with the bias that the file has beside the weight. Without a name x itself.
  mlir::Value norm(mlir::Value x, const std::string &pattern, int64_t layer, const NormConfig &config);

  mlir::MLIRContext *context;
  const std::string &path, &architecture;
  const WeightSource &weights;
  mlir::OpBuilder b;
  mlir::Location location;
  mlir::AffineExpr tokens; ///< the module's symbol: tokens of a call
  mlir::Type f32, i64;
  bool good = true;

private:
  mlir::Value loadGroupedStack(llvm::ArrayRef<const Weight *> stack, const std::vector<int64_t> &shape);
  mlir::Value loadPlainStack(llvm::ArrayRef<const Weight *> stack, const std::vector<int64_t> &shape);
  /// With weights given, `grouped` says only what they are made of.
  mlir::Value loadGrouped(const std::vector<int64_t> &shape, const gguf::Grouped &grouped, llvm::ArrayRef<Weight> weights);
  int64_t nodes = 0;
};

} // namespace ajour::architectures

#endif
