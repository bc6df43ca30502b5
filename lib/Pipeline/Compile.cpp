//===- Compile.cpp - the order of things -------------------------------------------------===//
#include "ajour/Pipeline/Compile.h"
#include "ArtifactBuilder.h"

#include "ajour/Conversion/Simplify.h"
#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/State.h"
#include "ajour/Reference/Interpreter.h"
#include "ajour/Target/CpuTarget.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <thread>

using namespace mlir;

namespace ajour {

ajour_arch hostArch() {
#if defined(__aarch64__)
  return AJOUR_ARCH_AARCH64;
#else
  return AJOUR_ARCH_X86_64;
#endif
}

std::unique_ptr<MLIRContext> makeContext() {
  // One thread: the compiler spreads levels over threads of its own.
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  context->loadDialect<nn::NNDialect, exec::ExecDialect, func::FuncDialect>();
  prepareCpuTarget(*context);
  return context;
}

LogicalResult simplify(ModuleOp module, int stages) {
  PassManager manager(module.getContext());
  SimplifyOptions options;
  options.stages = stages;
  buildSimplifyPipeline(manager, options);
  return manager.run(module);
}

static LogicalResult makeChannelMajor(ModuleOp module, const llvm::SmallDenseSet<Operation *> &chosen) {
  if (chosen.empty())
    return success();
  PassManager manager(module.getContext());
  manager.addNestedPass<func::FuncOp>(
      createChannelMajorPass([&](nn::ConvOp conv) { return chosen.contains(conv.getOperation()); }));
  if (failed(manager.run(module)))
    return failure();
  // Weights of a product whose input has changed its order.
  SmallVector<Operation *> movements;
  module.walk([&](Operation *op) {
    if (isa<nn::TransposeOp, nn::ReshapeOp>(op))
      movements.push_back(op);
  });
  for (Operation *op : movements)
    foldConstants(op);
  return success();
}

LogicalResult lowerToExec(ModuleOp module, const CompileOptions &options) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (main && failed(nn::getStates(main)))
    return failure();
  FailureOr<std::vector<EncodedWeight>> weights = encodeWeights(module);
  if (failed(weights))
    return failure();
  if (!options.sparse)
    ignoreZeros(*weights);
  ajour_cpu_level best = chosenLevels(options).back();
  llvm::SmallDenseSet<Operation *> channelMajor = chooseChannelMajor(*weights, best);
  if (options.report)
    reportWeights(*weights, best, *options.report);
  if (failed(makeChannelMajor(module, channelMajor)) || failed(formDispatches(module)))
    return failure();
  updateStatesInPlace(module);
  return verify(module);
}

static void progress(const CompileOptions &options, const char *phase, int64_t done, int64_t total) {
  if (options.progress)
    options.progress(phase, done, total);
}

/// Whether a constant is a scale, a zero point or a table of the weights that it is used with.
static bool isWeightParameter(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<nn::DequantizeGroupedOp, nn::DequantizeCodebookOp>(user) && use.getOperandNumber() > 0)
      return true;
    return isa<nn::DequantizeGroupedOp, nn::CastOp>(user) && isWeightParameter(user->getResult(0));
  });
}

/// Notes how many weights the model has before anything stores them in another way: elements of constants, each constant once. Integers
/// of 64 bits are shapes and indices.
static void countWeights(ModuleOp module) {
  llvm::SmallDenseSet<Attribute> seen;
  uint64_t count = 0;
  module.walk([&](nn::ConstantOp constant) {
    auto type = cast<RankedTensorType>(constant.getType());
    if (!type.getElementType().isInteger(64) && !isWeightParameter(constant.getResult()) && seen.insert(constant.getValue()).second)
      count += uint64_t(type.getNumElements());
  });
  module->setAttr(weightCountAttrName, IntegerAttr::get(IntegerType::get(module.getContext(), 64), int64_t(count)));
}

/// What is noted and reported of the model before anything changes it.
static void reportImported(ModuleOp module, const CompileOptions &options) {
  countWeights(module);
  if (options.report)
    reportImportedLayout(module, *options.report);
}

/// What a report says of the dispatches, from the highest level that a callee has code for.
static void reportCompiled(ModuleOp module, const CompileOptions &options, const std::vector<LevelCode> &codes) {
  if (!options.report)
    return;
  auto lowered = [&](StringRef callee) -> const LoweredDispatch * {
    for (const LevelCode &code : llvm::reverse(codes))
      if (auto found = code.dispatches.find(callee); found != code.dispatches.end())
        return &found->second;
    return nullptr;
  };
  reportCompiledLayout(module, lowered, *options.report);
  reportWeightKernels(module, lowered, *options.report);
}

/// Whether the code generator makes other code of the same loops than for the level before.
static bool changesGeneratedCode(ajour_cpu_level level) {
  return level == AJOUR_LEVEL_avx2 || level == AJOUR_LEVEL_avx512 || level == AJOUR_LEVEL_neon;
}

/// The loops of the callees for one level: all of them for the lowest level asked for and for those that
/// widen vectors, else those that have a micro-kernel of this level.
static FailureOr<OwningOpRef<ModuleOp>> lowerLevel(ModuleOp module, ajour_cpu_level level,
                                                   const CompileOptions &options, bool isLowest,
                                                   LevelCode &code) {
  unsigned symbols = 0;
  if (auto attr = module->getAttrOfType<ArrayAttr>("nn.symbols"))
    symbols = attr.size();
  LoweringOptions lowering = options.lowering;
  lowering.winograd &= options.optimization > 0;
  OwningOpRef<ModuleOp> loops = ModuleOp::create(module.getLoc());
  for (auto callee : module.getOps<func::FuncOp>()) {
    if (callee.getName() == "main")
      continue;
    FailureOr<LoweredDispatch> lowered = lowerDispatch(callee, level, symbols, *loops, lowering);
    if (failed(lowered))
      return failure();
    if (!isLowest && !changesGeneratedCode(level) && lowered->kernelLevel != unsigned(level)) {
      loops->lookupSymbol(lowered->symbol)->erase();
      loops->lookupSymbol(lowered->symbol + "_body")->erase();
      continue;
    }
    code.dispatches[callee.getName()] = std::move(*lowered);
  }
  code.level = level;
  if (failed(verify(*loops)))
    return failure();
  return loops;
}

std::vector<ajour_cpu_level> chosenLevels(const CompileOptions &options) {
  std::vector<ajour_cpu_level> levels = options.levels;
  if (levels.empty())
    for (const CpuLevelInfo &info : cpuLevels())
      if (info.arch == hostArch())
        levels.push_back(info.level);
  llvm::sort(levels);
  levels.erase(llvm::unique(levels), levels.end());
  return levels;
}

/// The loops of all levels, lowest first.
static LogicalResult lowerLevels(ModuleOp module, const CompileOptions &options, std::vector<ajour_cpu_level> &levels,
                                 std::vector<LevelCode> &codes, std::vector<OwningOpRef<ModuleOp>> &modules) {
  levels = chosenLevels(options);
  codes.resize(levels.size());
  for (auto [level, code] : llvm::zip_equal(levels, codes)) {
    progress(options, "lowering", modules.size(), levels.size());
    bool isLowest = modules.empty() || lookupCpuLevel(levels[modules.size() - 1])->arch != lookupCpuLevel(level)->arch;
    FailureOr<OwningOpRef<ModuleOp>> loops = lowerLevel(module, level, options, isLowest, code);
    if (failed(loops))
      return failure();
    modules.push_back(std::move(*loops));
  }
  reportCompiled(module, options, codes);
  return success();
}

/// Writes the artifact of the codes.
static LogicalResult writeCodes(ModuleOp module, const std::string &path, std::vector<LevelCode> &codes) {
  ArtifactBuilder builder(module, path);
  for (ajour_arch arch : {AJOUR_ARCH_X86_64, AJOUR_ARCH_AARCH64}) {
    std::vector<LevelCode> own;
    for (LevelCode &code : codes)
      if (lookupCpuLevel(code.level)->arch == arch && !code.dispatches.empty())
        own.push_back(std::move(code));
    if (!own.empty())
      builder.addProgram(arch, std::move(own));
  }
  std::string message = builder.write();
  if (!message.empty())
    return emitError(module.getLoc()) << message;
  return success();
}

LogicalResult writeModule(ModuleOp module, const std::string &path, const CompileOptions &options) {
  std::vector<ajour_cpu_level> levels;
  std::vector<LevelCode> codes;
  std::vector<OwningOpRef<ModuleOp>> modules;
  if (mlir::failed(lowerLevels(module, options, levels, codes, modules)))
    return failure();
  // Code generation takes most of the time and each level is a module of its own.
  std::atomic<size_t> next{0}, done{0};
  std::vector<char> failed(levels.size(), 0);
  CpuEmitOptions emit;
  emit.optimization = options.optimization;
  auto work = [&] {
    for (size_t i = next++; i < levels.size(); i = next++) {
      if (codes[i].dispatches.empty()) {
        ++done;
        continue;
      }
      FailureOr<CpuCode> code = emitCpuCode(*modules[i], levels[i], emit);
      if (mlir::failed(code))
        failed[i] = 1;
      else
        codes[i].sharedObject = std::move(code->sharedObject);
      ++done;
    }
  };
  progress(options, "generating code", 0, levels.size());
  std::vector<std::thread> threads;
  unsigned count = std::min<unsigned>(std::max(1u, std::thread::hardware_concurrency()), levels.size());
  for (unsigned i = 1; i < count; ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  if (llvm::is_contained(failed, 1))
    return failure();

  progress(options, "writing", 0, 1);
  if (mlir::failed(writeCodes(module, path, codes)))
    return failure();
  progress(options, "writing", 1, 1);
  return success();
}

std::string staticTableName(const std::string &prefix) {
  std::string name;
  for (char c : llvm::sys::path::filename(prefix))
    name += llvm::isAlnum(c) ? c : '_';
  // Two underscores, or one and a capital, are the C library's.
  if (name.empty() || !llvm::isAlpha(name[0]))
    name = "model" + name;
  return name + "_code";
}

/// The header that declares the table, with what an application does with it.
static std::string staticHeader(const std::string &prefix) {
  std::string table = staticTableName(prefix), guard = StringRef("AJOUR_STATIC_" + table + "_H").upper();
  std::string stem = llvm::sys::path::filename(prefix).str();
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "/* Compiled code of " << stem << ".ajour. Link " << stem << ".o and load the artifact with its table:\n *\n"
     << " *   ajour_load_options options = AJOUR_INIT(ajour_load_options);\n"
     << " *   options.static_code = &" << table << ";\n"
     << " *   ajour_model_load_file(\"" << stem << ".ajour\", &options, &model);\n */\n"
     << "#ifndef " << guard << "\n#define " << guard << "\n\n#include \"ajour/ajour.h\"\n\n"
     << "#ifdef __cplusplus\nextern \"C\" {\n#endif\nextern const ajour_static_code " << table
     << ";\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  return text;
}

static LogicalResult writeBytes(ModuleOp module, const std::string &path, StringRef bytes) {
  llvm::Error error = llvm::writeToOutput(path, [&](raw_ostream &os) {
    os << bytes;
    return llvm::Error::success();
  });
  if (error)
    return emitError(module.getLoc()) << path << ": cannot write: " << llvm::toString(std::move(error));
  return success();
}

LogicalResult writeStatic(ModuleOp module, const std::string &prefix, StaticPlatform platform,
                          const CompileOptions &options) {
  std::vector<ajour_cpu_level> levels;
  std::vector<LevelCode> codes;
  std::vector<OwningOpRef<ModuleOp>> modules;
  if (failed(lowerLevels(module, options, levels, codes, modules)))
    return failure();
  CpuEmitOptions emit;
  emit.optimization = options.optimization;
  emit.platform = platform == StaticPlatform::IOS       ? CpuPlatform::IOS
                  : platform == StaticPlatform::Android ? CpuPlatform::Android
                                                        : CpuPlatform::Linux;
  std::vector<StaticLevel> parts;
  for (auto [code, loops] : llvm::zip_equal(codes, modules))
    if (!code.dispatches.empty())
      parts.push_back({*loops, code.level});
  if (parts.empty())
    return emitError(module.getLoc()) << "the model computes nothing: there is no code to write";
  progress(options, "generating code", 0, 1);
  FailureOr<StaticObject> object = emitStaticObject(parts, staticTableName(prefix), emit);
  if (failed(object))
    return failure();
  for (LevelCode &code : codes)
    code.identity = object->identity;
  progress(options, "writing", 0, 1);
  std::string paths[] = {prefix + ".ajour", prefix + ".o", prefix + ".h"};
  if (succeeded(writeCodes(module, paths[0], codes)) &&
      succeeded(writeBytes(module, paths[1], StringRef(object->object.data(), object->object.size()))) &&
      succeeded(writeBytes(module, paths[2], staticHeader(prefix)))) {
    progress(options, "writing", 1, 1);
    return success();
  }
  for (const std::string &path : paths)
    llvm::sys::fs::remove(path);
  return failure();
}

FailureOr<std::string> emitAssembly(ModuleOp module, ajour_cpu_level level, const CompileOptions &options) {
  LevelCode code;
  FailureOr<OwningOpRef<ModuleOp>> loops = lowerLevel(module, level, options, /*isLowest=*/true, code);
  if (failed(loops))
    return failure();
  CpuEmitOptions emit;
  emit.optimization = options.optimization;
  emit.wantAssembly = true;
  emit.wantSharedObject = false;
  FailureOr<CpuCode> result = emitCpuCode(**loops, level, emit);
  if (failed(result))
    return failure();
  return result->assembly;
}

LogicalResult compileModule(ModuleOp module, const std::string &outputPath, const CompileOptions &options) {
  reportImported(module, options);
  progress(options, "simplifying", 0, 1);
  if (failed(simplify(module, options.stages())) || failed(lowerToExec(module, options)))
    return failure();
  return writeModule(module, outputPath, options);
}

LogicalResult compileStatic(MLIRContext *context, const std::string &modelPath, const std::string &prefix,
                            StaticPlatform platform, const CompileOptions &options) {
  OwningOpRef<ModuleOp> module = importModel(context, modelPath, options.import);
  if (!module)
    return failure();
  reportImported(*module, options);
  progress(options, "simplifying", 0, 1);
  if (failed(simplify(*module, options.stages())) || failed(lowerToExec(*module, options)))
    return failure();
  return writeStatic(*module, prefix, platform, options);
}

LogicalResult compileModel(MLIRContext *context, const std::string &modelPath, const std::string &outputPath,
                           const CompileOptions &options) {
  OwningOpRef<ModuleOp> module = importModel(context, modelPath, options.import);
  if (!module)
    return failure();
  return compileModule(*module, outputPath, options);
}

} // namespace ajour
