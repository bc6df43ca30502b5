//===- Compress.cpp - compressed models from dense ones ------------------------===//
#include "ajour/Compress/Compress.h"

#include "Calibration.h"
#include "ModelFormat.h"
#include "Ranges.h"
#include "Search.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Support/Diagnostics.h"
#include "ajour/Support/NodeLocation.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace ajour::compress {

namespace {

/// Inputs of a part; its moments then take 150 MB.
constexpr int64_t mostColumns = 4608;

/// Least damping with inputs that are made up.
constexpr double syntheticDamping = 0.5;

/// Rows of calibration data for a layer with this many inputs: enough for moments of full rank, few enough for
/// seconds of work.
int64_t rowsFor(int64_t columns) { return std::max<int64_t>(8192, 3 * columns); }

/// Bytes of a layer's weights in memory: kept weights, where they are, scales.
int64_t storedBytes(const LayerPlan &plan, const LayerShape &shape, const std::vector<uint8_t> &kept, int64_t scales) {
  double count = 0, bits = 0;
  for (uint8_t keep : kept)
    count += keep;
  double all = double(kept.size()), value = plan.bits ? double(plan.bits) : 32;
  switch (plan.structure) {
  case Structure::Dense:
    break;
  case Structure::C4n:
    bits = all / 4 * (plan.pruned == 2 ? 3 : 2) / double(plan.share);
    break;
  case Structure::NM:
    bits = all / double(plan.of) * std::ceil(double(plan.kept) * std::log2(double(plan.of)));
    break;
  case Structure::Pattern: // the pattern's number and the input channel
    bits = count / double(plan.entries) * (std::ceil(std::log2(double(std::max<int64_t>(plan.table, 2)))) + 16);
    break;
  case Structure::Block:
    bits = count / double(plan.rows * plan.cols) * 16;
    break;
  case Structure::Unstructured:
    bits = count * 16;
    break;
  }
  return int64_t((count * value + bits + 7) / 8) + 4 * scales;
}

/// A layer on its way.
struct Layer {
  LayerReport report;
  Operation *product = nullptr; ///< nn.conv or nn.matmul
};

class Compressor {
public:
  Compressor(MLIRContext *context, const std::string &path, const CompressOptions &options)
      : context(context), path(path), options(options) {}

  CompressedModel run();

private:
  void open();
  void plan();
  void checkRules(const std::vector<std::vector<std::string>> &obstacles);
  void importModule();
  void findProducts();
  /// Calls work(layer) before the product of each layer whose plan changes something, on the way through the model.
  void runModel(Calibration &calibration, llvm::function_ref<void(size_t)> work);
  double timeOf(size_t index, const LayerPlan &plan) const;
  void search(const std::vector<Sample> &samples);
  void collectRanges(Calibration &calibration);
  void quantiseActivations();
  void compress(size_t index, const Calibration &calibration);
  LayerProblem problemOf(size_t index, const Calibration &calibration);
  void replaceWeights(Operation *product, const LayerShape &shape, const LayerSolution &solution);
  void progress(const std::string &phase, int64_t done, int64_t total) const {
    if (options.progress)
      options.progress(phase, done, total);
  }

  MLIRContext *context;
  const std::string &path;
  const CompressOptions &options;
  std::unique_ptr<ModelFormat> format;
  std::vector<Layer> layers;
  OwningOpRef<ModuleOp> module;
  CompressReport report;
  ActivationRanges ranges;
};

void Compressor::open() {
  StringRef name(path);
  bool isOnnx = name.ends_with_insensitive(".onnx"), isTFLite = name.ends_with_insensitive(".tflite");
  bool isFolder = name.ends_with_insensitive(".safetensors") || llvm::sys::fs::exists(path + "/config.json");
  if (!llvm::sys::fs::exists(path))
    throw CompressError("'" + path + "' cannot be read: there is no such file");
  if (!isOnnx && !isTFLite && !isFolder)
    throw CompressError("'" + path + "' cannot be compressed: expected an ONNX (.onnx) or TFLite (.tflite) file, or a folder with model.safetensors and config.json");
  importModule();
  format = isOnnx ? openOnnx(context, path) : isTFLite ? openTFLite(path) : openSafeTensors(*module, path);
  if (format->layers().empty())
    throw CompressError("'" + path + "' has no layer with constant weights" +
                        (isOnnx ? " (Conv, Gemm or MatMul)" : isTFLite ? " (CONV_2D, DEPTHWISE_CONV_2D or FULLY_CONNECTED)" : ""));
}

/// A rule that nothing fits, or whose structure no layer can have, is a mistake of the recipe.
void Compressor::checkRules(const std::vector<std::vector<std::string>> &obstacles) {
  for (size_t r = 0; r < options.recipe.rules.size(); ++r) {
    const Rule &rule = options.recipe.rules[r];
    if (rule.number == 0 || !rule.plan.changes())
      continue; // made by a scheme
    std::string where = "recipe '" + options.recipe.file + "': rule " + std::to_string(rule.number) + ": ";
    if (obstacles[r].empty()) {
      std::string names;
      for (size_t i = 0; i < layers.size() && i < 8; ++i)
        names += (i ? ", '" : "'") + layers[i].report.node + "'";
      throw CompressError(where + "fits no layer of '" + path + "' that an earlier rule has not taken; there are " +
                          names + (layers.size() > 8 ? ", ..." : ""));
    }
    if (!llvm::is_contained(obstacles[r], ""))
      throw CompressError(where + "no layer that it fits can become " + toString(rule.plan) + ": " + obstacles[r][0]);
  }
}

void Compressor::plan() {
  // For each rule what stands against it in each layer that it decides on.
  std::vector<std::vector<std::string>> obstacles(options.recipe.rules.size());
  for (const FileLayer &file : format->layers()) {
    Layer layer;
    LayerReport &report = layer.report;
    report.node = file.node;
    report.type = file.type;
    report.weight = file.weight;
    report.shape = file.fileShape;
    report.elements = file.shape.outputs * file.shape.columns();
    report.bytesBefore = report.bytesAfter = (file.scales.empty() ? 4 : 1) * report.elements;
    for (size_t r = 0; r < options.recipe.rules.size(); ++r) {
      const Rule &rule = options.recipe.rules[r];
      if (!rule.fits(file.node, file.weight, file.kind, file.window, layers.empty()))
        continue;
      std::string why = file.why;
      if (why.empty())
        why = obstacle(file.shape, rule.plan);
      if (why.empty())
        why = format->refusal(layers.size(), rule.plan);
      obstacles[r].push_back(why.empty() ? "" : "node '" + file.node + "': " + why);
      report.why = rule.plan.changes() ? why : "";
      if (why.empty())
        report.plan = rule.plan;
      break;
    }
    layers.push_back(std::move(layer));
  }
  checkRules(obstacles);
}

void Compressor::importModule() {
  DiagnosticCollector diagnostics(context, path);
  module = importModel(context, path, options.import);
  if (!module)
    throw ImportFailure(diagnostics.text());
}

/// The products that the nodes of layers became, with their weights as they are in the file.
void Compressor::findProducts() {
  llvm::StringMap<size_t> byNode;
  for (size_t i = 0; i < layers.size(); ++i)
    byNode[std::to_string(format->layers()[i].index) + " " + layers[i].report.node] = i;
  module->walk([&](Operation *op) {
    if (!isa<nn::ConvOp, nn::MatmulOp>(op) || !nn::getConstantValue(op->getOperand(1)))
      return;
    for (const NodeInfo &node : getNodes(op->getLoc()))
      if (auto found = byNode.find(std::to_string(node.index) + " " + node.name); found != byNode.end())
        layers[found->second].product = op;
  });
  for (size_t i = 0; i < layers.size(); ++i) {
    LayerReport &report = layers[i].report;
    auto constant = layers[i].product ? nn::getConstantValue(layers[i].product->getOperand(1)) : ElementsAttr();
    bool integer = !format->layers()[i].scales.empty();
    if (!report.plan.changes() || (constant && constant.getNumElements() == report.elements &&
                                   (integer ? constant.getElementType().isInteger(8) : constant.getElementType().isF32())))
      continue;
    layers[i].product = nullptr;
    report.plan.method = Method::Magnitude;
    report.why = "its product is not found in the imported model, so its inputs are not known";
  }
}

/// The weights of a layer in the order of its product's constant.
template <typename T>
std::vector<T> inProductOrder(Operation *product, const LayerShape &shape, const std::vector<T> &weights) {
  auto matmul = dyn_cast<nn::MatmulOp>(product);
  if (!matmul || matmul.getTransposeRhs())
    return weights;
  std::vector<T> transposed(weights.size());
  for (int64_t o = 0; o < shape.outputs; ++o)
    for (int64_t c = 0; c < shape.channels; ++c)
      transposed[c * shape.outputs + o] = weights[o * shape.channels + c];
  return transposed;
}

/// Gives a product the weights that it has now, so that layers behind it see their inputs as they will be.
void Compressor::replaceWeights(Operation *product, const LayerShape &shape, const LayerSolution &solution) {
  OpBuilder builder(product);
  auto set = [&](unsigned operand, const auto &values) {
    auto type = cast<RankedTensorType>(product->getOperand(operand).getType());
    ArrayRef<char> bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(values[0]));
    product->setOperand(operand, nn::ConstantOp::create(builder, product->getLoc(), type, nn::makeConstant(type, bytes)));
  };
  if (cast<RankedTensorType>(product->getOperand(1).getType()).getElementType().isF32())
    set(1, inProductOrder(product, shape, solution.weights));
  else
    set(1, inProductOrder(product, shape, solution.steps));
  if (solution.biasDelta.empty())
    return;
  std::vector<float> bias = *nn::constantFloats(nn::getConstantValue(product->getOperand(2)));
  for (size_t o = 0; o < bias.size(); ++o)
    bias[o] += solution.biasDelta[o];
  set(2, bias);
}

LayerProblem Compressor::problemOf(size_t index, const Calibration &calibration) {
  const FileLayer &file = format->layers()[index];
  LayerProblem problem;
  problem.shape = file.shape;
  problem.weights = format->weights(index);
  problem.parts = partsOf(file.shape, mostColumns);
  problem.scales = file.scales;
  problem.damping = std::max(options.recipe.damping, options.synthetic ? syntheticDamping : 0);
  Operation *product = layers[index].product;
  if (!product || !calibration.numSamples())
    return problem;
  problem.hasBias = file.hasBias && product->getNumOperands() > 2 && nn::getConstantValue(product->getOperand(2));
  Value input = product->getOperand(0);
  LayerInputs inputs{calibration.valueOf(input), calibration.unchangedValueOf(input)};
  int64_t rows = rowsFor(file.shape.columns());
  if (auto conv = dyn_cast<nn::ConvOp>(product))
    measure(conv, inputs, rows, problem);
  else
    measure(cast<nn::MatmulOp>(product), inputs, rows, problem);
  return problem;
}

void Compressor::compress(size_t index, const Calibration &calibration) {
  const FileLayer &file = format->layers()[index];
  Layer &layer = layers[index];
  LayerPlan plan = layer.report.plan;
  if (plan.group >= file.shape.channels)
    plan.group = 0; // one scale for each output is the same, for a kernel of one tap
  if (!file.scales.empty())
    plan.bits = 8;
  LayerProblem problem = problemOf(index, calibration);
  LayerPlan plain = plan;
  plain.method = Method::Magnitude;
  LayerSolution solution = solve(problem, plain);
  layer.report.errorMagnitude = solution.error;
  if (plan.method == Method::SecondOrder)
    if (LayerSolution better = solve(problem, plan); better.error <= solution.error)
      solution = std::move(better);
  layer.report.error = solution.error;
  layer.report.zeros = int64_t(std::count(solution.weights.begin(), solution.weights.end(), 0.f));
  layer.report.bytesAfter = storedBytes(plan, file.shape, solution.kept, int64_t(solution.scales.size()));
  if (layer.product && calibration.numSamples())
    replaceWeights(layer.product, file.shape, solution);
  format->store(index, plan, solution);
}

/// Notes what activations lie between when the model runs with compressed weights.
void Compressor::collectRanges(Calibration &calibration) {
  calibration.after = [this](Value value, const std::vector<HostTensor> &tensors) { noteRange(value, tensors, ranges); };
  auto main = module->lookupSymbol<func::FuncOp>("main");
  for (BlockArgument argument : main.getArguments()) {
    std::vector<HostTensor> tensors;
    for (const Sample &sample : calibration.allSamples())
      tensors.push_back(sample.inputs[argument.getArgNumber()]);
    auto name = main.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "nn.name");
    if (name && !tensors.empty() && tensors[0].elementType == AJOUR_F32)
      ranges.inputs[name.str()] = chooseRange(sampleValues(tensors));
  }
}

void Compressor::quantiseActivations() {
  if (!report.samples)
    throw CompressError("recipe '" + options.recipe.file + "': 'activations' needs calibration data");
  bool any = llvm::any_of(layers, [](const Layer &layer) { return layer.report.plan.bits && !layer.report.plan.group; });
  if (!any)
    throw CompressError("recipe '" + options.recipe.file +
                        "': 'activations' is for layers with 'bits' and without 'group', and there is none");
  if (!format->quantiseActivations(ranges))
    throw CompressError("'" + path + "': " + format->whyNoActivations());
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

/// Expected time of a layer's product; -1: not known.
double Compressor::timeOf(size_t index, const LayerPlan &plan) const {
  const FileLayer &file = format->layers()[index];
  Operation *product = layers[index].product;
  if (!product || !options.cost)
    return -1;
  ProductUse use;
  use.outputs = file.shape.outputs;
  use.groups = file.shape.groups;
  use.channels = file.shape.channels;
  use.window = file.window;
  use.plan = plan;
  use.isInteger = (options.recipe.activations && plan.bits && !plan.group) || !file.scales.empty();
  if (!file.scales.empty())
    use.plan.bits = 8;
  nn::Dims dims = nn::getDims(product->getResult(0));
  use.rows = nn::getConstant(nn::numElements(ArrayRef(dims).drop_back(), context)).value_or(1);
  if (auto conv = dyn_cast<nn::ConvOp>(product)) {
    use.stride = *llvm::max_element(conv.getStrides());
    use.isDilated = llvm::any_of(conv.getDilations(), [](int64_t d) { return d > 1; });
  }
  return options.cost(use);
}

/// Chooses shares of zeros so that all products together take the target's share of their dense time. Errors are measured
/// with the inputs of the model as it is.
void Compressor::search(const std::vector<Sample> &samples) {
  std::string where = "recipe '" + options.recipe.file + "': 'target' ";
  if (!options.cost || samples.empty())
    throw CompressError(where + "needs calibration data and estimates of time");
  std::vector<std::vector<Choice>> choices(layers.size());
  double dense = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const LayerPlan &plan : plansUpTo(layers[i].report.plan))
      choices[i].push_back({plan, 0, std::max(timeOf(i, plan), 0.)});
    LayerPlan without = layers[i].report.plan;
    without.structure = Structure::Dense;
    dense += std::max(timeOf(i, without), 0.);
  }
  Calibration calibration(module->lookupSymbol<func::FuncOp>("main"), samples);
  runModel(calibration, [&](size_t i) {
    if (choices[i].size() == 1)
      return;
    LayerProblem problem = problemOf(i, calibration);
    for (size_t c = 1; c < choices[i].size(); ++c) {
      progress("trying shares of " + layers[i].report.node, int64_t(c), int64_t(choices[i].size()));
      LayerPlan plan = choices[i][c].plan;
      plan.bits = 0; // what rounding adds is the same for all
      choices[i][c].error = solve(problem, plan).error;
    }
  });
  std::vector<size_t> chosen = searchChoices(choices, options.recipe.target * dense);
  if (chosen.empty()) {
    double least = 0;
    for (const std::vector<Choice> &list : choices)
      least += llvm::min_element(list, [](const Choice &a, const Choice &b) { return a.time < b.time; })->time;
    throw CompressError(where + "cannot be reached: with the shares that rules allow, products take at least " +
                        std::to_string(std::lround(100 * least / dense)) +
                        " % of their dense time; allow more zeros, or name more layers");
  }
  for (size_t i = 0; i < layers.size(); ++i)
    layers[i].report.plan = choices[i][chosen[i]].plan;
}

void Compressor::runModel(Calibration &calibration, llvm::function_ref<void(size_t)> work) {
  llvm::DenseMap<Operation *, size_t> byProduct;
  for (size_t i = 0; i < layers.size(); ++i)
    if (layers[i].report.plan.changes() && layers[i].product)
      byProduct[layers[i].product] = i;
  calibration.before = [&](Operation *op) {
    if (auto found = byProduct.find(op); found != byProduct.end())
      work(found->second);
  };
  DiagnosticCollector diagnostics(context, path);
  try {
    calibration.run();
  } catch (const CompressError &problem) {
    std::string text = diagnostics.text();
    throw CompressError("'" + path + "': " + problem.what() + (text.empty() ? "" : "\n" + text));
  }
}

CompressedModel Compressor::run() {
  progress("reading", 0, 1);
  open();
  plan();
  findProducts();
  std::vector<Sample> samples;
  if (options.samples)
    samples = options.samples(*module);
  report.samples = int64_t(samples.size());
  if (options.synthetic)
    report.notes.push_back("calibrated with " + std::to_string(samples.size()) +
                           " synthetic inputs; errors are about those, and real inputs give better weights");
  if (options.recipe.target > 0)
    search(samples);
  for (size_t i = 0; i < layers.size(); ++i) {
    LayerPlan dense;
    dense.bits = options.recipe.activations ? layers[i].report.plan.bits : 0;
    layers[i].report.timeBefore = timeOf(i, dense);
    layers[i].report.timeAfter = timeOf(i, layers[i].report.plan);
  }

  int64_t done = 0, total = llvm::count_if(layers, [](const Layer &layer) { return layer.report.plan.changes(); });
  Calibration calibration(module->lookupSymbol<func::FuncOp>("main"), std::move(samples));
  if (options.recipe.activations)
    collectRanges(calibration);
  runModel(calibration, [&](size_t i) {
    progress("compressing " + layers[i].report.node, done++, total);
    compress(i, calibration);
  });
  for (size_t i = 0; i < layers.size(); ++i)
    if (layers[i].report.plan.changes() && !layers[i].product)
      compress(i, Calibration(module->lookupSymbol<func::FuncOp>("main"), {}));
  if (options.recipe.activations)
    quantiseActivations();
  for (Layer &layer : layers)
    report.layers.push_back(std::move(layer.report));
  progress("writing", 0, 1);
  return {format->serialise(), std::move(report)};
}

} // namespace

CompressedModel compressModel(MLIRContext *context, const std::string &path, const CompressOptions &options) {
  return Compressor(context, path, options).run();
}

} // namespace ajour::compress
