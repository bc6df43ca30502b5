//===- InspectModel.cpp - inspect: what is in a model -------------------------===//
#include "Commands.h"
#include "ToolSupport/Files.h"
#include "ajour/Conversion/Dispatch.h"
#include "ajour/Conversion/Encode.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Dialect/NN/State.h"
#include "ajour/Pipeline/Report.h"
#include "ajour/Support/Diagnostics.h"
#include "ajour/Support/NodeLocation.h"

#include "mlir/IR/MLIRContext.h"

#include "llvm/ADT/DenseSet.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <set>

namespace ajour::tools {

namespace {

struct InspectCommand : CompileArguments {
  CLI::App *command = nullptr;
};

/// Writes a module as lines "key value...", the way that artifacts are written.
class ModelPrinter {
public:
  ModelPrinter(mlir::ModuleOp module, std::ostream &os) : module(module), os(os) {
    main = module.lookupSymbol<mlir::func::FuncOp>("main");
    if (auto list = module->getAttrOfType<mlir::ArrayAttr>("nn.symbols"))
      for (mlir::Attribute symbol : list) {
        symbols.push_back(llvm::cast<nn::SymbolAttr>(symbol));
        names.push_back(symbols.back().getName().str());
      }
    // Where a dimension is a multiple of its symbol, the user's name is that of the dimension.
    for (mlir::Type type : main.getArgumentTypes())
      for (mlir::AffineExpr dim : nn::getDims(llvm::cast<mlir::RankedTensorType>(type)))
        if (auto symbol = nn::matchSymbol(dim); symbol && symbol->multiple > 1 && symbol->position < symbols.size())
          names[symbol->position] = "(" + symbols[symbol->position].getName().str() + " / " + std::to_string(symbol->multiple) + ")";
  }

  void print(bool withOps) {
    if (auto source = module->getAttrOfType<mlir::StringAttr>("nn.source"))
      os << "source " << baseName(source.str()) << "\n";
    for (unsigned i : nn::inputArguments(main))
      printTensor("input", main.getArgumentTypes()[i], main.getArgAttrDict(i));
    for (unsigned i : nn::outputResults(main))
      printTensor("output", main.getResultTypes()[i], main.getResultAttrDict(i));
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (nn::isStateArgument(main, i))
        printTensor("state", main.getArgumentTypes()[i], main.getArgAttrDict(i));
    printTotals();
    printCounts();
    if (withOps)
      printOps();
  }

private:
  std::string text(mlir::AffineExpr expr) {
    std::string list = nn::toString(llvm::ArrayRef(expr), names);
    return list.substr(1, list.size() - 2); // without the brackets
  }
  std::string dimText(mlir::AffineExpr dim);
  void printTensor(const char *kind, mlir::Type type, mlir::DictionaryAttr attrs);
  void printTotals();
  void printCounts();
  void printOps();

  template <typename Work> void forEachOp(Work work) {
    main.walk([&](mlir::Operation *op) {
      if (op->getName().getDialectNamespace() == "nn" && !llvm::isa<nn::ConstantOp>(op))
        work(op);
    });
  }

  mlir::ModuleOp module;
  mlir::func::FuncOp main;
  std::ostream &os;
  std::vector<nn::SymbolAttr> symbols;
  std::vector<std::string> names; ///< of the symbols, as expressions show them
};

/// "224", "H(32..4096, multiple of 32)" with the bounds of a symbol, or an expression of symbols.
std::string ModelPrinter::dimText(mlir::AffineExpr dim) {
  auto symbol = nn::matchSymbol(dim);
  if (!symbol || symbol->position >= symbols.size())
    return text(dim);
  nn::SymbolAttr bounds = symbols[symbol->position];
  std::string result = bounds.getName().str() + "(" + std::to_string(bounds.getMin() * symbol->multiple) + "..";
  if (bounds.getMax() >= 0)
    result += std::to_string(bounds.getMax() * symbol->multiple);
  if (symbol->multiple > 1)
    result += ", multiple of " + std::to_string(symbol->multiple);
  return result + ")";
}

void ModelPrinter::printTensor(const char *kind, mlir::Type type, mlir::DictionaryAttr attrs) {
  auto tensor = llvm::cast<mlir::RankedTensorType>(type);
  auto name = attrs ? attrs.getAs<mlir::StringAttr>("nn.name") : mlir::StringAttr();
  if (attrs && !name)
    name = attrs.getAs<mlir::StringAttr>(nn::stateAttr);
  std::string shape;
  for (mlir::AffineExpr dim : nn::getDims(tensor))
    shape += (shape.empty() ? "" : "x") + dimText(dim);
  os << kind << " " << (name ? name.str() : "") << " " << nn::elementName(tensor.getElementType()) << " "
     << (shape.empty() ? "scalar" : shape);
  auto scale = attrs ? attrs.getAs<mlir::FloatAttr>("nn.scale") : mlir::FloatAttr();
  auto zeroPoint = attrs ? attrs.getAs<mlir::IntegerAttr>("nn.zero_point") : mlir::IntegerAttr();
  if (scale) {
    char text[64];
    std::snprintf(text, sizeof text, " scale %.9g zero_point %lld", scale.getValueAsDouble(),
                  static_cast<long long>(zeroPoint ? zeroPoint.getInt() : 0));
    os << text;
  }
  os << "\n";
}

void ModelPrinter::printTotals() {
  int64_t parameters = 0, bytes = 0;
  llvm::DenseSet<mlir::Attribute> seen; // a constant that several nodes read is one
  main.walk([&](nn::ConstantOp constant) {
    auto value = llvm::cast<mlir::ElementsAttr>(constant.getValue());
    if (!seen.insert(value).second)
      return;
    parameters += value.getNumElements();
    bytes += value.getNumElements() * nn::elementBytes(value.getElementType());
  });
  mlir::AffineExpr macs = mlir::simplifyAffineExpr(countMacs(main), 0, static_cast<unsigned>(symbols.size()));
  os << "parameters " << parameters << "\nparameter_bytes " << bytes << "\nmacs " << text(macs) << "\n";
}

/// How often each name occurs, the most frequent first.
void printFrequencies(std::ostream &os, const char *kind, const std::map<std::string, size_t> &counts) {
  std::vector<std::pair<std::string, size_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  for (const auto &[name, count] : sorted)
    os << kind << " " << name << " " << count << "\n";
}

void ModelPrinter::printCounts() {
  std::map<std::string, size_t> nodeTypes, opTypes;
  std::set<std::pair<int64_t, std::string>> nodes;
  size_t ops = 0;
  forEachOp([&](mlir::Operation *op) {
    ++ops;
    ++opTypes[op->getName().stripDialect().str()];
    for (const NodeInfo &node : getNodes(op->getLoc()))
      if (nodes.insert({node.index, node.name}).second)
        ++nodeTypes[node.type];
  });
  os << "nodes " << nodes.size() << "\n";
  printFrequencies(os, "node_type", nodeTypes);
  os << "ops " << ops << "\n";
  printFrequencies(os, "op_type", opTypes);
}

void ModelPrinter::printOps() {
  size_t index = 0;
  auto typesOf = [&](mlir::TypeRange types) {
    std::string text;
    for (mlir::Type type : types)
      text += (text.empty() ? "" : ", ") + nn::toString(llvm::cast<mlir::RankedTensorType>(type), names);
    return text;
  };
  forEachOp([&](mlir::Operation *op) {
    std::string nodes = describeNodes(op->getLoc());
    os << "op " << index++ << " " << op->getName().stripDialect().str() << " (" << typesOf(op->getOperandTypes())
       << ") -> " << typesOf(op->getResultTypes()) << ": " << (nodes.empty() ? "made by the compiler" : nodes) << "\n";
  });
}

/// What was found in the weights, as `compile --report` says it, for the best level that would be compiled for.
void printSparsity(mlir::ModuleOp module, const CompileOptions &options, DiagnosticCollector &diagnostics) {
  auto weights = mlir::succeeded(simplify(module)) ? encodeWeights(module) : mlir::FailureOr<std::vector<EncodedWeight>>();
  if (mlir::failed(weights))
    throw DiagnosedError(diagnostics.text());
  CompileReport report;
  reportWeights(*weights, chosenLevels(options).back(), report);
  std::cout << reportText(report);
}

void inspectModel(const InspectCommand &arguments, const std::string &model) {
  if (arguments.command->count("--memory"))
    throw CLI::ValidationError("--memory", "is for artifacts; compile " + model + " first");
  CompileOptions options = optionsOf(arguments);
  Progress progress;
  attachProgress(options, progress);
  auto context = makeContext();
  DiagnosticCollector diagnostics(context.get(), model);
  auto module = importModel(context.get(), model, options.import);
  progress.finish();
  for (const std::string &note : diagnostics.notes())
    std::cerr << note << "\n";
  if (!module)
    throw DiagnosedError(diagnostics.text());
  ModelPrinter(*module, std::cout).print(arguments.command->count("--ops") > 0);
  if (arguments.command->count("--sparsity"))
    printSparsity(*module, options, diagnostics);
}

} // namespace

void addInspectHooks(CommandHooks &hooks) {
  auto arguments = std::make_shared<InspectCommand>();
  hooks.addInspectOptions = [arguments](CLI::App &inspect) {
    arguments->command = &inspect;
    addImportSettings(inspect, *arguments);
    inspect.add_flag("--sparsity")->description("How weights are made: zeros, structure, values, the kernel that serves them and why");
    inspect.parse_complete_callback([arguments, &inspect] {
      if (isModelFile(inspect.get_option("file")->as<std::string>()))
        return;
      for (const char *option : {"--dim", "--bind", "--kv", "--allow-newer-opset", "--float-products", "--sparsity"})
        if (inspect.count(option) && !(option == std::string("--dim") && inspect.count("--memory")))
          throw CLI::ValidationError(option, "is for models, which end in .onnx, .tflite, .gguf or .safetensors");
    });
  };
  hooks.inspect = [arguments](const std::string &model) { inspectModel(*arguments, model); };
}

} // namespace ajour::tools
