//===- Cache.h - keys and values that a model keeps -------------*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_ARCHITECTURES_CACHE_H
#define AJOUR_LIB_IMPORT_ARCHITECTURES_CACHE_H

#include "ajour/Dialect/NN/NN.h"
#include "ajour/Import/Import.h"

#include "mlir/IR/Builders.h"

#include <string>
#include <utility>
#include <vector>

namespace ajour::architectures {

/// The keys, or the values, of one layer: a state [context, heads, size], and with types of few bits one of scales [context, heads].
/// Row p is that of position p, so that a session goes back by giving positions again.
class CacheSide {
public:
  /// `size` is even for int4.
  CacheSide(std::string name, CacheType type, int64_t context, int64_t heads, int64_t size)
      : name(std::move(name)), type(type), context(context), heads(heads), size(size) {}

  /// Names and types of the states.
  std::vector<std::pair<std::string, mlir::RankedTensorType>> states(mlir::MLIRContext *ctx) const;
  /// Takes the states' values before the call from the front of `arguments`.
  void bind(mlir::ValueRange &arguments);
  /// Writes x [tokens, heads, size] (f32) to the rows of `positions` [tokens].
  void write(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::Value positions);

  /// What the states are now; `scales` is null for floats.
  mlir::Value rows, scales;

private:
  void scatter(mlir::OpBuilder &b, mlir::Location loc, mlir::Value &state, mlir::Value x, mlir::Value positions);

  std::string name;
  CacheType type;
  int64_t context, heads, size;
};

} // namespace ajour::architectures

#endif
