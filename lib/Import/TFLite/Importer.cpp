//===- Importer.cpp - a TFLite graph as a function of nn operations ----------===//
#include "Importer.h"

#include "ajour/Import/Import.h"
#include "ajour/Reference/Interpreter.h"
#include "ajour/Support/NodeLocation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace ajour::tflite {

namespace {

/// All rows, by builtin code or custom name.
class OpTable {
public:
  OpTable() {
    for (ArrayRef<OpRow> rows :
         {elementwiseRows(), linearRows(), convRows(), normRows(), shapeRows(), sliceRows(), quantizationRows(),
                                 recurrentRows(), stateRows()})
      for (const OpRow &row : rows) {
        if (row.customName)
          custom[row.customName] = &row;
        else
          builtin[int32_t(row.code)] = &row;
      }
  }
  const OpRow *find(const OperatorData &op) const {
    if (op.code == Builtin::CUSTOM)
      return custom.lookup(op.type);
    auto found = builtin.find(int32_t(op.code));
    return found == builtin.end() ? nullptr : found->second;
  }
  static const OpTable &get() {
    static const OpTable table;
    return table;
  }

private:
  std::map<int32_t, const OpRow *> builtin;
  llvm::StringMap<const OpRow *> custom;
};

/// What to say about an operator without a row.
std::string unsupportedAdvice(const OperatorData &op) {
  switch (op.code) {
  case Builtin::CUSTOM:
    return "a custom operator that is not known; known is Convolution2DTransposeBias";
  case Builtin::IF:
  case Builtin::WHILE:
  case Builtin::CALL:
    return "control flow between subgraphs is not supported";
  case Builtin::WHERE:
  case Builtin::UNIQUE:
  case Builtin::NON_MAX_SUPPRESSION_V4:
  case Builtin::NON_MAX_SUPPRESSION_V5:
    return "the shape of its result depends on values, which is not supported";
  default:
    return "the operator is not supported";
  }
}

class Importer {
public:
  Importer(MLIRContext *context, Graph graph, const ImportOptions &options)
      : context(context), graph(std::move(graph)), options(options), builder(context),
        foldBudget(FoldBudget::forBytes(int64_t(this->graph.file->getBufferSize()))) {}

  OwningOpRef<ModuleOp> import() {
    OwningOpRef<ModuleOp> module(ModuleOp::create(fileLocation()));
    if (failed(checkOptions()) || failed(makeFunction(*module)))
      return nullptr;
    if (options.floatProducts)
      (*module)->setAttr("nn.float_products", builder.getUnitAttr());
    bool good = true;
    for (size_t i = 0; i < graph.operators.size(); ++i) {
      if (options.progress && i % 16 == 0)
        options.progress("import", int64_t(i), int64_t(graph.operators.size()));
      good &= succeeded(importOperator(i));
    }
    if (!good || failed(finishFunction(*module)))
      return nullptr;
    return module;
  }

private:
  MLIRContext *context;
  Graph graph;
  const ImportOptions &options;
  OpBuilder builder;
  FoldBudget foldBudget;
  func::FuncOp function;
  std::vector<Value> values;
  std::vector<bool> failedTensor;
  States states;
  SmallVector<int32_t> arguments; // the inputs that are not bound to constants
  SmallVector<Attribute> symbols;
  llvm::StringSet<> knownDims;

  Location fileLocation() { return FileLineColLoc::get(context, graph.fileName, 0, 0); }
  InFlightDiagnostic error() { return emitError(fileLocation()); }

  LogicalResult checkOptions() {
    std::string names;
    for (int32_t input : graph.inputs)
      names += (names.empty() ? "'" : ", '") + graph.tensors[input].name + "'";
    for (const auto &[name, tensor] : options.bindings)
      if (llvm::none_of(graph.inputs, [&](int32_t i) { return graph.tensors[i].name == name; }))
        return error() << "no input is called '" << name << "' to bind; inputs are " << names;
    if (graph.outputs.empty())
      return error() << "the model has no output";
    return success();
  }

  /// The size of a dimension that the file leaves open, as the user gives it.
  FailureOr<AffineExpr> openDimension(const TensorData &tensor, size_t axis) {
    std::string name = tensor.name + "." + std::to_string(axis);
    auto found = options.dims.find(name);
    if (found == options.dims.end())
      return builder.getAffineConstantExpr(tensor.shape[axis]);
    auto [min, max] = found->second;
    if (min < 1 || (max != -1 && max < min))
      return error() << "dimension " << name << ": bounds " << min << " to " << max << " are empty";
    if (min == max)
      return builder.getAffineConstantExpr(min);
    symbols.push_back(nn::SymbolAttr::get(context, builder.getStringAttr(name), min, max));
    return builder.getAffineSymbolExpr(symbols.size() - 1);
  }

  LogicalResult checkDimNames() {
    for (const auto &[name, bounds] : options.dims)
      if (!knownDims.contains(name)) {
        std::string names;
        for (const auto &known : knownDims)
          names += (names.empty() ? "" : ", ") + known.getKey().str();
        return error() << "no open dimension is called '" << name << "'"
                       << (names.empty() ? "; the model has none" : "; open dimensions are " + names);
      }
    return success();
  }

  LogicalResult bind(const TensorData &tensor, const HostTensor &bound, Value &value) {
    RankedTensorType type = nn::makeTensor(tensor.shape, tensor.elementType);
    bool sameShape = bound.shape.size() == tensor.shape.size();
    for (size_t i = 0; sameShape && i < bound.shape.size(); ++i)
      sameShape = bound.shape[i] == tensor.shape[i] || tensor.isDynamic[i];
    if (bound.elementType != nn::getElementTypeId(tensor.elementType) || !sameShape) {
      Type element = nn::getElementType(bound.elementType, context);
      return error() << "input '" << tensor.name << "' is bound to "
                     << (element ? nn::toString(nn::makeTensor(bound.shape, element)) : "an unknown type")
                     << ", expected " << nn::toString(type);
    }
    type = nn::makeTensor(bound.shape, tensor.elementType);
    value = nn::ConstantOp::create(builder, fileLocation(), type, nn::makeConstant(type, bound.data));
    return success();
  }

  LogicalResult makeFunction(ModuleOp module) {
    values.assign(graph.tensors.size(), Value());
    failedTensor.assign(graph.tensors.size(), false);
    SmallVector<Type> types;
    for (int32_t input : graph.inputs) {
      const TensorData &tensor = graph.tensors[input];
      if (!tensor.elementType || !tensor.problem.empty())
        return error() << "input '" << tensor.name << "': "
                       << (tensor.elementType ? tensor.problem
                                              : "type " + typeName(tensor.format) + " is not supported");
      nn::Dims dims;
      for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
        if (!tensor.isDynamic[axis]) {
          dims.push_back(builder.getAffineConstantExpr(tensor.shape[axis]));
          continue;
        }
        knownDims.insert(tensor.name + "." + std::to_string(axis));
        FailureOr<AffineExpr> dim = openDimension(tensor, axis);
        if (failed(dim))
          return failure();
        dims.push_back(*dim);
      }
      if (options.bindings.count(tensor.name))
        continue;
      arguments.push_back(input);
      types.push_back(nn::makeTensor(dims, tensor.elementType));
    }
    if (failed(checkDimNames()))
      return failure();
    builder.setInsertionPointToEnd(module.getBody());
    function = func::FuncOp::create(builder, fileLocation(), "main", builder.getFunctionType(types, {}));
    states.setFunction(function);
    Block *entry = function.addEntryBlock();
    builder.setInsertionPointToEnd(entry);
    for (auto [position, input] : llvm::enumerate(arguments))
      values[input] = entry->getArgument(position);
    for (int32_t input : graph.inputs)
      if (auto bound = options.bindings.find(graph.tensors[input].name); bound != options.bindings.end())
        if (failed(bind(graph.tensors[input], bound->second, values[input])))
          return failure();
    return success();
  }

  LogicalResult importOperator(size_t index) {
    const OperatorData &op = graph.operators[index];
    std::string name = op.outputs.empty() ? "" : graph.tensors[op.outputs[0]].name;
    Location loc = makeNodeLocation(context, {graph.fileName, name, op.type, int64_t(index)});
    const OpRow *row = OpTable::get().find(op);
    LogicalResult status = checkRow(loc, op, row);
    // What depends on a failed operator has nothing to say; whether it is known was checked above.
    bool poisoned = llvm::any_of(op.inputs, [&](int32_t i) { return i >= 0 && failedTensor[i]; });
    if (succeeded(status) && !poisoned) {
      Node node(builder, loc, graph, op, values, states, foldBudget, options.floatProducts);
      status = row->import(node);
      for (int32_t output : op.outputs)
        if (succeeded(status) && !values[output] && !states.handles.count(output)) {
          emitError(loc) << "result '" << graph.tensors[output].name << "' is one more than the operator gives";
          status = failure();
        }
    }
    for (int32_t output : op.outputs)
      if (failed(status) || poisoned)
        failedTensor[output] = true;
    return status;
  }

  LogicalResult checkRow(Location loc, const OperatorData &op, const OpRow *row) {
    if (!row)
      return emitError(loc) << unsupportedAdvice(op) << describeTypes(op);
    if (op.version > row->maxVersion || op.version < 1)
      return emitError(loc) << "version " << op.version << " is not supported, at most " << row->maxVersion << " is"
                            << describeTypes(op);
    int count = int(op.inputs.size());
    if (count < row->minInputs || (row->maxInputs >= 0 && count > row->maxInputs))
      return emitError(loc) << count << " operands, expected " << row->minInputs
                            << (row->maxInputs == row->minInputs ? ""
                                : row->maxInputs < 0             ? " or more"
                                                                 : " to " + std::to_string(row->maxInputs));
    if (op.outputs.empty() == row->hasResult)
      return emitError(loc) << (row->hasResult ? "the operator has no result" : "the operator has a result, expected none");
    return success();
  }

  /// "; version 2, operands INT8[1, 4], results ..." for messages about whole operators.
  std::string describeTypes(const OperatorData &op) {
    auto list = [&](ArrayRef<int32_t> indices) {
      std::string text;
      for (int32_t i : indices) {
        text += text.empty() ? "" : ", ";
        if (i < 0) {
          text += "none";
          continue;
        }
        const TensorData &tensor = graph.tensors[i];
        text += typeName(tensor.format) + "[";
        for (size_t d = 0; d < tensor.shape.size(); ++d)
          text += (d ? ", " : "") + std::to_string(tensor.shape[d]);
        text += "]";
      }
      return text.empty() ? std::string("none") : text;
    };
    return " (version " + std::to_string(op.version) + ", operands " + list(op.inputs) + ", results " +
           list(op.outputs) + ")";
  }

  void setAttributes(const TensorData &tensor, function_ref<void(StringRef, Attribute)> set) {
    set("nn.name", builder.getStringAttr(tensor.name));
    if (!tensor.isQuantized() || !tensor.quant->isPerTensor())
      return;
    set("nn.scale", builder.getF32FloatAttr(tensor.quant->scales[0]));
    set("nn.zero_point", builder.getI32IntegerAttr(tensor.quant->zeroPoints[0]));
  }

  LogicalResult finishFunction(ModuleOp module) {
    SmallVector<Value> results;
    SmallVector<Type> types, resultTypes;
    for (int32_t output : graph.outputs) {
      Value &value = values[output];
      const TensorData &tensor = graph.tensors[output];
      if (!value && tensor.isConstant && tensor.elementType)
        value = nn::ConstantOp::create(builder, fileLocation(), nn::makeTensor(tensor.shape, tensor.elementType),
                                       nn::makeConstant(nn::makeTensor(tensor.shape, tensor.elementType), tensor.bytes));
      if (!value)
        return error() << "output '" << tensor.name << "' of type " << typeName(tensor.format)
                       << " has no value that is supported";
      results.push_back(value);
    }
    states.finish(builder, results);
    llvm::append_range(types, function.getBody().front().getArgumentTypes());
    for (Value result : results)
      resultTypes.push_back(result.getType());
    func::ReturnOp::create(builder, fileLocation(), results);
    function.setFunctionType(builder.getFunctionType(types, resultTypes));
    for (auto [i, input] : llvm::enumerate(arguments))
      setAttributes(graph.tensors[input], [&](StringRef name, Attribute a) { function.setArgAttr(i, name, a); });
    for (auto [i, output] : llvm::enumerate(graph.outputs))
      setAttributes(graph.tensors[output], [&](StringRef name, Attribute a) { function.setResultAttr(i, name, a); });
    states.mark();
    module->setAttr("nn.symbols", builder.getArrayAttr(symbols));
    module->setAttr("nn.source", builder.getStringAttr(graph.fileName));
    eraseUnused();
    if (options.progress)
      options.progress("import", int64_t(graph.operators.size()), int64_t(graph.operators.size()));
    return verify(module);
  }

  /// Folding leaves operands behind that nothing uses.
  void eraseUnused() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>())
        op.erase();
  }
};

} // namespace

} // namespace ajour::tflite

namespace ajour {

OwningOpRef<ModuleOp> importTFLite(MLIRContext *context, const std::string &path, const ImportOptions &options) {
  context->loadDialect<nn::NNDialect, func::FuncDialect>();
  FailureOr<tflite::Graph> graph = tflite::readGraph(context, path);
  if (failed(graph))
    return nullptr;
  return tflite::Importer(context, std::move(*graph), options).import();
}

} // namespace ajour
