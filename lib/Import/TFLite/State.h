//===- State.h - what a TFLite model keeps between calls ---------*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_TFLITE_STATE_H
#define AJOUR_LIB_IMPORT_TFLITE_STATE_H

#include "ajour/Dialect/NN/State.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

#include <map>
#include <string>
#include <vector>

namespace ajour::tflite {

/// Variable tensors and resource variables: each becomes a state of `main` (ajour/Dialect/NN/State.h).
class States {
public:
  /// The state of a key, made with a further argument of the function when it is new. `initial` null: zeros. An empty
  /// optional: the key exists with another type.
  struct Entry {
    std::string name;
    mlir::RankedTensorType type;
    mlir::Value argument; ///< null until it is read or written
    mlir::Value current;  ///< as the operators so far leave it
    mlir::ElementsAttr initial;
    mlir::Location loc;
  };
  Entry &find(const std::string &key, const std::string &name, mlir::Location loc);
  /// The value of an entry of this type now; null when it has another type.
  mlir::Value read(Entry &entry, mlir::RankedTensorType type);
  bool write(Entry &entry, mlir::Value value);

  /// Which entry a tensor with a resource handle stands for.
  std::map<int32_t, Entry *> handles;

  void setFunction(mlir::func::FuncOp main) { function = main; }
  /// States that were never written are constants; the others' final values go to `results` with `attributes`
  /// (argument number, result number counted from `firstResult`).
  void finish(mlir::OpBuilder &builder, llvm::SmallVectorImpl<mlir::Value> &results);
  /// Marks arguments and results of the function, whose type is final.
  void mark();

private:
  bool open(Entry &entry, mlir::RankedTensorType type);

  mlir::func::FuncOp function;
  std::map<std::string, std::unique_ptr<Entry>> entries;
  std::vector<Entry *> order; ///< as they were opened
  std::map<Entry *, unsigned> resultOf;
};

} // namespace ajour::tflite

#endif
