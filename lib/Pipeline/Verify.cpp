//===- Verify.cpp - compiled against reference ---------------------------------------------===//
//
// Three ways to compute a model are compared: the imported module and the simplified one by the reference
// interpreter, and the compiled one by the runtime. Each compiled dispatch is compared with the reference on
// the very inputs that it was given, so that errors do not add up and the first wrong dispatch is the culprit.
//
//===----------------------------------------------------------------------===//
#include "ajour/Pipeline/Verify.h"

#include "ajour/Conversion/Simplify.h"
#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Dialect/NN/State.h"
#include "ajour/Pipeline/CompiledModel.h"
#include "ajour/Reference/Interpreter.h"
#include "ajour/Support/NodeLocation.h"
#include "ajour/Target/CpuTarget.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;

namespace ajour {

namespace {

using Tensors = std::vector<HostTensor>;

func::FuncOp mainOf(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("main"); }

bool isFloat(Type type) { return isa<FloatType>(cast<ShapedType>(type).getElementType()); }

/// Whether an operation turns floats into integers by rounding, where the last bit may decide.
bool roundsFloats(Operation *op) {
  return isa<nn::QuantizeOp, nn::CastOp>(op) && isFloat(op->getOperand(0).getType()) &&
         !isFloat(op->getResult(0).getType());
}

bool roundsFloats(func::FuncOp function) {
  return function.walk([](Operation *op) { return roundsFloats(op) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

std::string outputName(func::FuncOp main, unsigned index) {
  auto name = main.getResultAttrOfType<StringAttr>(index, "nn.name");
  if (auto state = main.getResultAttrOfType<StringAttr>(index, nn::stateAttr))
    return "state " + state.str();
  return name ? name.str() : "output " + std::to_string(index);
}

Location locationOf(Value value) { return exec::resolveAlias(value).getLoc(); }

class Verifier {
public:
  Verifier(ModuleOp module, ArrayRef<HostTensor> inputs, const VerifyOptions &options)
      : imported(module), inputs(inputs), options(options), symbols(readSymbols(mainOf(module), inputs)) {}

  FailureOr<VerifyReport> run();

private:
  FailureOr<OwningOpRef<ModuleOp>> simplified(int stages);
  std::vector<VerifiedValue> compareOutputs(func::FuncOp main, const Tensors &found, const Tensors &expected,
                                            int64_t steps, std::string level = {});
  LogicalResult findPass();
  LogicalResult compareDispatches(func::FuncOp main, CompiledModel &compiled, const std::string &level);
  FailureOr<std::vector<std::string>> levelsToRun(Location loc) const;

  void progress(const char *phase, int64_t done, int64_t total) {
    if (options.compile.progress)
      options.compile.progress(phase, done, total);
  }

  ModuleOp imported;
  ArrayRef<HostTensor> inputs;
  const VerifyOptions &options;
  std::vector<int64_t> symbols;
  Tensors importedOutputs, simplifiedOutputs;
  VerifyReport report;
};

} // namespace

//===----------------------------------------------------------------------===//
// Simplification
//===----------------------------------------------------------------------===//

FailureOr<OwningOpRef<ModuleOp>> Verifier::simplified(int stages) {
  OwningOpRef<ModuleOp> copy = imported.clone();
  if (failed(simplify(*copy, stages)))
    return failure();
  if (options.afterStages)
    options.afterStages(*copy, stages);
  return copy;
}

std::vector<VerifiedValue> Verifier::compareOutputs(func::FuncOp main, const Tensors &found, const Tensors &expected,
                                                    int64_t steps, std::string level) {
  std::vector<VerifiedValue> compared;
  Operation *ret = main.getBody().front().getTerminator();
  for (unsigned i = 0; i < expected.size(); ++i) {
    VerifiedValue value;
    value.name = outputName(main, i);
    value.nodes = describeNodes(locationOf(ret->getOperand(i)));
    value.kind = "output";
    value.level = level;
    value.difference = compareTensors(found[i], expected[i], options.tolerance, steps);
    compared.push_back(std::move(value));
  }
  return compared;
}

static bool anyDiffers(ArrayRef<VerifiedValue> values) {
  return llvm::any_of(values, [](const VerifiedValue &value) { return value.difference.differs; });
}

/// The elements in order of size, as one row: equal for a tensor and any transposition of it.
static HostTensor sortElements(const HostTensor &tensor) {
  HostTensor row{tensor.elementType, {tensor.numElements()}, tensor.data};
  auto sortAs = [&](auto zero) {
    using T = decltype(zero);
    T *first = row.as<T>();
    std::sort(first, first + row.numElements(), [](T a, T b) { return a < b; });
  };
  switch (tensor.elementType) {
  case AJOUR_F32:
    for (int64_t i = 0; i < row.numElements(); ++i) // NaN has no place in an order
      if (std::isnan(row.as<float>()[i]))
        row.as<float>()[i] = std::numeric_limits<float>::max();
    sortAs(float());
    break;
  case AJOUR_I8:
    sortAs(int8_t());
    break;
  case AJOUR_U8:
  case AJOUR_BOOL:
    sortAs(uint8_t());
    break;
  case AJOUR_I16:
    sortAs(int16_t());
    break;
  case AJOUR_I32:
    sortAs(int32_t());
    break;
  case AJOUR_I64:
    sortAs(int64_t());
    break;
  default:
    break; // left in place: such tensors are only found when they are not moved
  }
  return row;
}

/// Key of a node in a table of values.
static std::string nodeKey(const NodeInfo &node) { return node.name + "\n" + std::to_string(node.index); }

/// Bisection finds the first stage after which an output differs; then the values of each node before and after
/// that stage are compared to name the node.
LogicalResult Verifier::findPass() {
  int good = 0, bad = int(simplifyStages().size());
  OwningOpRef<ModuleOp> badModule;
  while (bad - good > 1 || !badModule) {
    int middle = bad - good > 1 ? (good + bad) / 2 : bad;
    FailureOr<OwningOpRef<ModuleOp>> module = simplified(middle);
    if (failed(module))
      return failure();
    FailureOr<Tensors> outputs = interpret(mainOf(**module), inputs, symbols);
    if (failed(outputs))
      return failure();
    bool differs = anyDiffers(compareOutputs(mainOf(**module), *outputs, importedOutputs, options.steps));
    if (middle == bad) {
      badModule = std::move(*module);
      break;
    }
    if (differs) {
      bad = middle;
      badModule = std::move(*module);
    } else {
      good = middle;
    }
  }
  report.pass = simplifyStages()[bad - 1];

  // The values of each node before the stage, by node; a node may have made several.
  FailureOr<OwningOpRef<ModuleOp>> goodModule = simplified(good);
  if (failed(goodModule))
    return failure();
  std::map<std::string, std::vector<HostTensor>> before;
  auto keep = [&](Value value, const HostTensor &tensor) {
    if (!value.getDefiningOp() || isa<nn::ConstantOp>(value.getDefiningOp()))
      return;
    for (const NodeInfo &node : getNodes(value.getLoc()))
      before[nodeKey(node)].push_back(sortElements(tensor));
  };
  if (failed(interpret(mainOf(**goodModule), inputs, symbols, keep)))
    return failure();
  auto look = [&](Value value, const HostTensor &tensor) {
    if (!report.suspect.nodes.empty() || !value.getDefiningOp() || isa<nn::ConstantOp>(value.getDefiningOp()))
      return;
    HostTensor row = sortElements(tensor);
    TensorDifference closest;
    bool comparable = false, same = false;
    for (const NodeInfo &node : getNodes(value.getLoc()))
      for (const HostTensor &other : before[nodeKey(node)])
        if (other.elementType == row.elementType && other.shape == row.shape) {
          TensorDifference difference = compareTensors(row, other, options.tolerance, options.steps);
          same |= !difference.differs;
          if (!comparable || difference.maxAbsolute < closest.maxAbsolute)
            closest = difference;
          comparable = true;
        }
    if (!comparable || same)
      return;
    report.suspect.nodes = describeNodes(value.getLoc());
    report.suspect.kind = value.getDefiningOp()->getName().getStringRef().str();
    report.suspect.difference = closest;
    if (auto dequantize = value.getDefiningOp<nn::DequantizeOp>())
      report.suspect.step = *llvm::max_element(dequantize.getScales());
    else if (isa<nn::QuantizeOp, nn::RequantizeOp>(value.getDefiningOp()))
      report.suspect.step = 1;
  };
  return success(succeeded(interpret(mainOf(*badModule), inputs, symbols, look)));
}

//===----------------------------------------------------------------------===//
// Dispatches
//===----------------------------------------------------------------------===//

namespace {

/// Follows a compiled run and computes each dispatch again.
class DispatchChecker {
public:
  DispatchChecker(func::FuncOp main, ArrayRef<HostTensor> inputs, ArrayRef<int64_t> symbols,
                  const VerifyOptions &options, const std::string &level, std::vector<VerifiedValue> &results)
      : symbols(symbols), options(options), level(level), results(results) {
    for (auto [argument, input] : llvm::zip_equal(main.getArguments(), inputs))
      values[argument] = input;
    for (Operation &op : main.getBody().front()) {
      if (auto dispatch = dyn_cast<exec::DispatchOp>(op))
        dispatches.push_back(dispatch);
      for (Value operand : op.getOperands())
        lastUse[exec::resolveAlias(operand)] = dispatches.size();
    }
  }

  void observe(const ajour_observation &observation);
  bool failed = false;

private:
  /// The tensor of an operand as the compiled model has it.
  std::optional<HostTensor> valueOf(Value value);

  ArrayRef<int64_t> symbols;
  const VerifyOptions &options;
  const std::string &level;
  std::vector<VerifiedValue> &results;
  std::vector<exec::DispatchOp> dispatches;
  llvm::DenseMap<Value, HostTensor> values;
  llvm::DenseMap<Value, size_t> lastUse;
};

} // namespace

std::optional<HostTensor> DispatchChecker::valueOf(Value value) {
  Value origin = exec::resolveAlias(value);
  HostTensor tensor;
  if (ElementsAttr constant = nn::getConstantValue(origin))
    tensor = toHostTensor(constant);
  else if (auto known = values.find(origin); known != values.end())
    tensor = known->second;
  else
    return std::nullopt;
  if (origin == value)
    return tensor;
  MLIRContext *context = value.getContext();
  SmallVector<AffineExpr> constants;
  for (int64_t symbol : symbols)
    constants.push_back(getAffineConstantExpr(symbol, context));
  tensor.shape.clear();
  for (AffineExpr dim : nn::getDims(value)) {
    std::optional<int64_t> size = nn::getConstant(dim.replaceSymbols(constants));
    if (!size)
      return std::nullopt;
    tensor.shape.push_back(*size);
  }
  return tensor;
}

void DispatchChecker::observe(const ajour_observation &observation) {
  if (failed || observation.dispatch >= dispatches.size())
    return;
  exec::DispatchOp dispatch = dispatches[observation.dispatch];
  auto callee = dispatch->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(dispatch.getCallee());
  Tensors operands;
  for (Value input : dispatch.getInputs()) {
    std::optional<HostTensor> tensor = valueOf(input);
    if (!tensor) {
      dispatch.emitError() << "an operand has no value";
      failed = true;
      return;
    }
    operands.push_back(std::move(*tensor));
  }
  FailureOr<Tensors> expected = interpret(callee, operands, symbols);
  if (mlir::failed(expected)) {
    failed = true;
    return;
  }
  int64_t steps = roundsFloats(callee) ? options.steps : 0;
  for (auto [i, result] : llvm::enumerate(dispatch.getOutputs())) {
    HostTensor found{(*expected)[i].elementType, (*expected)[i].shape, {}};
    if (i < observation.result_count && observation.results[i].data) {
      const char *bytes = static_cast<const char *>(observation.results[i].data);
      found.data.assign(bytes, bytes + std::min<uint64_t>(observation.results[i].bytes, (*expected)[i].data.size()));
    }
    VerifiedValue value;
    value.name = observation.name;
    value.nodes = describeNodes(dispatch.getLoc());
    value.kind = observation.kind;
    value.level = level;
    value.difference = compareTensors(found, (*expected)[i], options.tolerance, steps);
    results.push_back(std::move(value));
    values[result] = std::move(found);
  }
  for (auto it = values.begin(); it != values.end();) {
    auto current = it++;
    if (lastUse.lookup(current->first) <= observation.dispatch + 1)
      values.erase(current);
  }
}

/// The levels to compare: of those that code is made for and this machine runs the best, the one that AJOUR_CPU names, or all.
FailureOr<std::vector<std::string>> Verifier::levelsToRun(Location loc) const {
  std::vector<std::string> levels;
  std::vector<ajour_cpu_level> chosen = chosenLevels(options.compile);
  for (const std::string &name : runnableLevels())
    if (llvm::any_of(chosen, [&](ajour_cpu_level level) { return lookupCpuLevel(level)->name == name; }))
      levels.push_back(name);
  if (levels.empty()) {
    InFlightDiagnostic message = emitError(loc) << "this machine runs none of the code levels asked for: ";
    llvm::interleaveComma(chosen, message, [&](ajour_cpu_level level) { message << lookupCpuLevel(level)->name; });
    return message << "; it runs " << llvm::join(runnableLevels(), ", ");
  }
  const char *forced = getenv("AJOUR_CPU");
  if (!options.allLevels)
    levels = {forced && *forced ? std::string(forced) : levels.back()};
  return levels;
}

LogicalResult Verifier::compareDispatches(func::FuncOp main, CompiledModel &compiled, const std::string &level) {
  DispatchChecker checker(main, inputs, symbols, options, level, report.dispatches);
  int64_t count = llvm::range_size(main.getOps<exec::DispatchOp>());
  CompiledModel::RunOptions run;
  run.level = level;
  run.threads = options.threads;
  run.observer = [&](const ajour_observation &observation) {
    progress("comparing dispatches", observation.dispatch, count);
    checker.observe(observation);
  };
  Tensors outputs;
  std::string error;
  if (!compiled.run(inputs, outputs, error, run))
    return imported.emitError() << error;
  if (checker.failed)
    return failure();
  // Integers that were rounded from floats somewhere may be off by more than a step at the end.
  bool rounds = main->getParentOfType<ModuleOp>()
                    .walk([](Operation *op) { return roundsFloats(op) ? WalkResult::interrupt() : WalkResult::advance(); })
                    .wasInterrupted();
  for (VerifiedValue &value : compareOutputs(main, outputs, simplifiedOutputs, 0, level)) {
    unsigned index = report.outputs.size() % std::max<size_t>(simplifiedOutputs.size(), 1);
    if (rounds && !isFloat(main.getResultTypes()[index]))
      value.difference.differs = false;
    report.outputs.push_back(std::move(value));
  }
  return success();
}

FailureOr<VerifyReport> Verifier::run() {
  progress("interpreting the model", 0, 2);
  FailureOr<Tensors> outputs = interpret(mainOf(imported), inputs, symbols);
  if (failed(outputs))
    return failure();
  importedOutputs = std::move(*outputs);

  int stages = options.compile.stages();
  FailureOr<OwningOpRef<ModuleOp>> module =
      simplified(stages < 0 ? int(simplifyStages().size()) : stages);
  if (failed(module))
    return failure();
  if (options.afterSimplify)
    options.afterSimplify(**module);
  progress("interpreting the simplified model", 1, 2);
  outputs = interpret(mainOf(**module), inputs, symbols);
  if (failed(outputs))
    return failure();
  simplifiedOutputs = std::move(*outputs);
  report.simplified = compareOutputs(mainOf(**module), simplifiedOutputs, importedOutputs, options.steps);
  if (anyDiffers(report.simplified) && failed(findPass()))
    return failure();

  if (failed(lowerToExec(**module)))
    return failure();
  OwningOpRef<ModuleOp> code = (*module)->clone();
  if (options.beforeCode)
    options.beforeCode(*code);
  CompileOptions compile = options.compile;
  FailureOr<std::vector<std::string>> levels = levelsToRun(mainOf(**module).getLoc());
  if (failed(levels))
    return failure();
  std::unique_ptr<CompiledModel> compiled = CompiledModel::write(*code, compile);
  if (!compiled)
    return failure();
  for (const std::string &level : *levels)
    if (failed(compareDispatches(mainOf(**module), *compiled, level)))
      return failure();
  report.results = std::move(importedOutputs);
  return std::move(report);
}

FailureOr<VerifyReport> verifyModule(ModuleOp module, ArrayRef<HostTensor> inputs, const VerifyOptions &options) {
  return Verifier(module, inputs, options).run();
}

const VerifiedValue *VerifyReport::firstDispatch() const {
  for (const VerifiedValue &value : dispatches)
    if (value.difference.differs)
      return &value;
  return nullptr;
}

bool VerifyReport::roundsOtherwise() const {
  constexpr double roundingOfTheStep = 1e-4;
  return pass == "nn-integer" && suspect.step > 0 &&
         suspect.difference.maxAbsolute <= suspect.step * (1 + roundingOfTheStep);
}

bool VerifyReport::passed() const {
  return (!anyDiffers(simplified) || roundsOtherwise()) && !anyDiffers(dispatches) && !anyDiffers(outputs);
}

} // namespace ajour
