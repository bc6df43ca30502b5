//===- Importer.h - a graph being imported --------------------*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_ONNX_IMPORTER_H
#define AJOUR_LIB_IMPORT_ONNX_IMPORTER_H

#include "Node.h"

#include "ajour/Import/Import.h"
#include "ajour/Reference/Interpreter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

namespace ajour::onnx_import {

/// Names that are visible at a node: those of its graph and of the graphs around it. A function's body sees
/// only its own.
struct Scope {
  Scope *parent = nullptr;
  llvm::StringMap<Entry> names;
  /// Attributes of the call that a function's body refers to.
  const ::onnx::NodeProto *call = nullptr;
  Scope *callScope = nullptr;
  std::map<std::string, int64_t> opsets;
  llvm::StringMap<std::string> producers; ///< every node output of the graph, and its node
  unsigned depth = 0;
};

/// Imports one model.
class Importer {
public:
  /// `multiples` holds, for dimensions by name, the number that divides each; unify adds to it.
  Importer(mlir::MLIRContext *context, const ModelFile &model, const ImportOptions &options,
           std::map<std::string, int64_t> &multiples);

  mlir::OwningOpRef<mlir::ModuleOp> run();

  mlir::MLIRContext *context;
  mlir::OpBuilder builder;
  std::vector<std::string> argumentNames;

  // For nodes.
  Entry &lookup(Node &n, const std::string &name);
  void define(Node &n, const std::string &name, Entry entry);
  Value materialize(Node &n, Entry &entry, const std::string &name);
  const ::onnx::AttributeProto *resolve(Scope &scope, const ::onnx::AttributeProto &attr) const;
  bool fold(mlir::Operation *op, SmallVector<Value> &results);
  /// Two shapes are to broadcast. Where symbolic sizes are equal only if dimensions of the model are multiples of
  /// a power of two (as in feature pyramids), notes the multiples and refuses; the import is then tried again.
  void unify(Node &n, ArrayRef<AffineExpr> lhs, ArrayRef<AffineExpr> rhs);
  bool shouldRetry() const { return retry; }
  ArrayRef<std::string> symbolNames() const { return names; }
  const ModelFile &file() const { return model; }
  /// Imports the nodes of a branch in a scope inside the node's; returns its outputs.
  std::vector<Entry> importBranch(Node &n, const ::onnx::GraphProto &graph);

private:
  struct Symbol {
    std::string name;
    int64_t min, max;
  };

  mlir::Location fileLoc() const;
  void error(const llvm::Twine &message);
  bool readOpsets(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto> &imports,
                  std::map<std::string, int64_t> &opsets);
  void declare(Scope &scope, const ::onnx::GraphProto &graph, bool isMain);
  AffineExpr dimension(const std::string &name);
  RankedTensorType inputType(const ::onnx::ValueInfoProto &info);
  void importInputs(Scope &scope);
  void importNodes(Scope &scope, const google::protobuf::RepeatedPtrField<::onnx::NodeProto> &nodes, bool isMain);
  void importNode(Scope &scope, const ::onnx::NodeProto &proto, int64_t index);
  void callFunction(Node &n, const ::onnx::FunctionProto &function);
  void dispatch(Node &n, const OpRow *row);
  void poison(Scope &scope, const ::onnx::NodeProto &proto);
  bool dependsOnPoison(Scope &scope, const ::onnx::NodeProto &proto);
  Entry *find(Scope &scope, const std::string &name);
  std::string describe(Node &n);
  void finish(Scope &scope);
  void checkOptionsUsed();

  const ModelFile &model;
  const ImportOptions &options;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  std::vector<Symbol> symbols;
  std::vector<std::string> names;
  std::map<std::string, AffineExpr> dimensionsSeen;
  llvm::StringSet<> boundInputs;
  std::map<std::string, const ::onnx::FunctionProto *> functions;
  std::map<std::string, int64_t> &multiples;
  bool retry = false;
  int64_t errors = 0;
  /// A node takes more than 4 bytes of a file, so only functions that multiply can exceed this.
  const int64_t mostNodes;
  FoldBudget foldBudget;
  int64_t nodesExpanded = 0;
};

} // namespace ajour::onnx_import

#endif
