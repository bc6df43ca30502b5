//===- Compile.cpp - the order of things -------------------------------------------------===//
#include "ajour/Pipeline/Compile.h"
#include "ArtifactBuilder.h"

#include "ajour/Conversion/Simplify.h"
#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Target/CpuTarget.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

#include <atomic>
#include <thread>

using namespace mlir;

namespace ajour {

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

LogicalResult lowerToExec(ModuleOp module) {
  if (failed(formDispatches(module)))
    return failure();
  return verify(module);
}

static void report(const CompileOptions &options, const char *phase, int64_t done, int64_t total) {
  if (options.progress)
    options.progress(phase, done, total);
}

/// Whether the code generator makes other code of the same loops than for the level before.
static bool changesGeneratedCode(ajour_cpu_level level) {
  return level == AJOUR_LEVEL_avx2 || level == AJOUR_LEVEL_avx512 || level == AJOUR_LEVEL_neon;
}

/// The loops of the callees for one level: all of them for the lowest level asked for and for those that
/// widen vectors, else those that have a micro-kernel of this level.
static FailureOr<OwningOpRef<ModuleOp>> lowerLevel(ModuleOp module, ajour_cpu_level level, bool isLowest,
                                                   LevelCode &code) {
  unsigned symbols = 0;
  if (auto attr = module->getAttrOfType<ArrayAttr>("nn.symbols"))
    symbols = attr.size();
  OwningOpRef<ModuleOp> loops = ModuleOp::create(module.getLoc());
  for (auto callee : module.getOps<func::FuncOp>()) {
    if (callee.getName() == "main")
      continue;
    FailureOr<LoweredDispatch> lowered = lowerDispatch(callee, level, symbols, *loops);
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

static std::vector<ajour_cpu_level> chosenLevels(const CompileOptions &options) {
  if (!options.levels.empty())
    return options.levels;
  std::vector<ajour_cpu_level> levels;
#if defined(__aarch64__)
  ajour_arch arch = AJOUR_ARCH_AARCH64;
#else
  ajour_arch arch = AJOUR_ARCH_X86_64;
#endif
  for (const CpuLevelInfo &info : cpuLevels())
    if (info.arch == arch)
      levels.push_back(info.level);
  return levels;
}

LogicalResult writeModule(ModuleOp module, const std::string &path, const CompileOptions &options) {
  std::vector<ajour_cpu_level> levels = chosenLevels(options);
  llvm::sort(levels);
  std::vector<LevelCode> codes(levels.size());
  std::vector<OwningOpRef<ModuleOp>> modules;
  for (auto [level, code] : llvm::zip_equal(levels, codes)) {
    report(options, "lowering", modules.size(), levels.size());
    bool isLowest = modules.empty() || lookupCpuLevel(levels[modules.size() - 1])->arch != lookupCpuLevel(level)->arch;
    FailureOr<OwningOpRef<ModuleOp>> loops = lowerLevel(module, level, isLowest, code);
    if (failed(loops))
      return failure();
    modules.push_back(std::move(*loops));
  }
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
  report(options, "generating code", 0, levels.size());
  std::vector<std::thread> threads;
  unsigned count = std::min<unsigned>(std::max(1u, std::thread::hardware_concurrency()), levels.size());
  for (unsigned i = 1; i < count; ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  if (llvm::is_contained(failed, 1))
    return failure();

  report(options, "writing", 0, 1);
  ArtifactBuilder builder(module);
  for (ajour_arch arch : {AJOUR_ARCH_X86_64, AJOUR_ARCH_AARCH64}) {
    std::vector<LevelCode> own;
    for (LevelCode &code : codes)
      if (lookupCpuLevel(code.level)->arch == arch && !code.dispatches.empty())
        own.push_back(std::move(code));
    if (!own.empty())
      builder.addProgram(arch, std::move(own));
  }
  std::string message = builder.write(path);
  if (!message.empty())
    return emitError(module.getLoc()) << message;
  report(options, "writing", 1, 1);
  return success();
}

FailureOr<std::string> emitAssembly(ModuleOp module, ajour_cpu_level level, const CompileOptions &options) {
  LevelCode code;
  FailureOr<OwningOpRef<ModuleOp>> loops = lowerLevel(module, level, /*isLowest=*/true, code);
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
  report(options, "simplifying", 0, 1);
  int stages = options.optimization == 0 ? 0 : options.simplifyStages;
  if (failed(simplify(module, stages)) || failed(lowerToExec(module)))
    return failure();
  return writeModule(module, outputPath, options);
}

LogicalResult compileModel(MLIRContext *context, const std::string &modelPath, const std::string &outputPath,
                           const CompileOptions &options) {
  OwningOpRef<ModuleOp> module = importModel(context, modelPath, options.import);
  if (!module)
    return failure();
  return compileModule(*module, outputPath, options);
}

} // namespace ajour
