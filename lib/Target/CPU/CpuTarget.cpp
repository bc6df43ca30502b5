//===- CpuTarget.cpp - from dispatch functions to machine code ------------===//
#include "ajour/Target/CpuTarget.h"

#include "Codegen.h"

#include "ajour/ABI/ArtifactHeader.h"
#include "ajour/ABI/StaticCode.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <mutex>

using namespace mlir;

namespace ajour {

llvm::ArrayRef<CpuLevelInfo> cpuLevels() {
  static const CpuLevelInfo rows[] = {
#define AJOUR_ROW(id, name, arch, features, cpu, attrs) {AJOUR_LEVEL_##name, #name, arch, features, cpu, attrs},
      AJOUR_CPU_LEVELS(AJOUR_ROW)
#undef AJOUR_ROW
  };
  return rows;
}

const CpuLevelInfo *lookupCpuLevel(ajour_cpu_level level) {
  for (const CpuLevelInfo &row : cpuLevels())
    if (row.level == level)
      return &row;
  return nullptr;
}

/// Text of the last fatal error of LLVM on this thread.
static thread_local std::string fatalErrorText;

/// LLVM reports what it cannot select by ending the process. Inside a crash recovery context the thread
/// leaves the code generation instead.
static void recoverFromFatalError(void *, const char *reason, bool) {
  fatalErrorText = reason;
  if (llvm::CrashRecoveryContext *context = llvm::CrashRecoveryContext::GetCurrent())
    context->HandleExit(1);
}

static void initializeLLVM() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    llvm::CrashRecoveryContext::Enable();
    llvm::install_fatal_error_handler(recoverFromFatalError);
  });
}

void prepareCpuTarget(MLIRContext &context) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  initializeLLVM();
  DialectRegistry registry;
  registry.insert<affine::AffineDialect, arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect,
                  index::IndexDialect, LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                  tensor::TensorDialect, ub::UBDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  // Appending what is there already only reads, so later calls disturb no other thread.
  bool missing = llvm::any_of(registry.getDialectNames(), [&](StringRef name) { return !context.getLoadedDialect(name); });
  if (!missing)
    return;
  context.appendDialectRegistry(registry);
  for (StringRef name : registry.getDialectNames())
    context.getOrLoadDialect(name);
}

/// Dispatch functions: public, with a body, of the signature of ajour_dispatch_fn.
static LogicalResult checkDispatches(ModuleOp module) {
  Type pointer = LLVM::LLVMPointerType::get(module.getContext());
  Type i64 = IntegerType::get(module.getContext(), 64);
  SmallVector<Type> expected = {pointer, pointer, pointer, i64, i64};
  bool any = false;
  for (auto function : module.getOps<FunctionOpInterface>()) {
    if (function.isExternal() || !function.isPublic())
      continue;
    any = true;
    ArrayRef<Type> results = function.getResultTypes();
    bool hasResult = !results.empty() && !isa<LLVM::LLVMVoidType>(results.front());
    if (hasResult || !llvm::equal(function.getArgumentTypes(), expected))
      return function.emitError() << "dispatch '" << function.getName() << "' has type " << function.getFunctionType()
                                  << ", expected (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64) without a result";
  }
  if (!any)
    return module.emitError("the module has no dispatch function (a public function with a body)");
  return success();
}

static llvm::Triple tripleOf(const CpuLevelInfo &level, CpuPlatform platform) {
  bool arm = level.arch == AJOUR_ARCH_AARCH64;
  switch (platform) {
  case CpuPlatform::Linux:
    return llvm::Triple(arm ? "aarch64-linux-gnu" : "x86_64-linux-gnu");
  case CpuPlatform::Android:
    return llvm::Triple(arm ? "aarch64-linux-android30" : "x86_64-linux-android30");
  case CpuPlatform::IOS:
    return llvm::Triple("arm64-apple-ios15.0");
  }
  llvm_unreachable("unknown platform");
}

static llvm::CodeGenOptLevel codegenLevel(unsigned optimization) {
  return optimization == 0   ? llvm::CodeGenOptLevel::None
         : optimization == 1 ? llvm::CodeGenOptLevel::Less
         : optimization == 2 ? llvm::CodeGenOptLevel::Default
                             : llvm::CodeGenOptLevel::Aggressive;
}

namespace {
/// Keeps the errors that LLVM reports through its context.
struct ErrorCollector : llvm::DiagnosticHandler {
  std::string &text;
  explicit ErrorCollector(std::string &text) : text(text) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      llvm::raw_string_ostream stream(text);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      stream << (text.empty() ? "" : "; ");
      info.print(printer);
    }
    return true;
  }
};

/// The code of one level on its way into a static object.
struct StaticPart {
  const CpuLevelInfo *level;
  llvm::StringSet<> dispatches;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
};

/// A dispatch function of a static object.
struct StaticRow {
  std::string symbol;
  const CpuLevelInfo *level;
  std::string linkName;
};

/// One run of LLVM. Lives on the heap: after a crash inside LLVM it is left alone, for its destructors
/// cannot be trusted.
struct LLVMRun {
  std::string errors;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
  std::vector<StaticPart> parts;
  std::vector<StaticRow> rows;
  llvm::Error error = llvm::Error::success();
  llvm::SmallVector<char, 0> object, assembly;

  LLVMRun() {
    context.setDiagnosticHandler(std::make_unique<ErrorCollector>(errors));
    llvm::cantFail(std::move(error));
    error = llvm::Error::success();
  }
};
} // namespace

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createMachine(const CpuLevelInfo &level,
                                                                          const CpuEmitOptions &options) {
  llvm::Triple triple = tripleOf(level, options.platform);
  std::string text;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, text);
  if (!target)
    return llvm::createStringError("LLVM has no target for " + triple.str() + ": " + text);
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, level.cpu, level.features, llvm::TargetOptions(), llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, codegenLevel(options.optimization)));
}

static llvm::Error generate(LLVMRun &run, llvm::CodeGenFileType type, llvm::SmallVectorImpl<char> &out) {
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager passes;
  // Code generation changes the module; assembly is made first, from a copy.
  std::unique_ptr<llvm::Module> copy;
  llvm::Module *module = run.module.get();
  if (type == llvm::CodeGenFileType::AssemblyFile)
    module = (copy = llvm::CloneModule(*module)).get();
  if (run.machine->addPassesToEmitFile(passes, stream, nullptr, type))
    return llvm::createStringError("LLVM cannot write this kind of file for " + run.machine->getTargetTriple().str());
  passes.run(*module);
  return llvm::Error::success();
}

/// Links the kernels in and optimises.
static llvm::Error prepareModule(llvm::Module &module, llvm::TargetMachine &machine, const CpuLevelInfo &level,
                                 unsigned optimization, const llvm::StringSet<> &dispatches) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    setTargetAttributes(function, level);
    if (!dispatches.contains(function.getName()))
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  llvm::Expected<std::vector<std::string>> kernels = linkKernels(module, level, machine);
  if (!kernels)
    return kernels.takeError();
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (llvm::verifyModule(module, &stream))
    return llvm::createStringError("the generated LLVM IR is not valid: " + text);
  optimizeModule(module, machine, optimization);
  for (const std::string &name : *kernels)
    if (llvm::Function *kernel = module.getFunction(name); kernel && !kernel->use_empty())
      return llvm::createStringError("kernel '" + name + "' was not inlined into its caller");
  return llvm::Error::success();
}

static llvm::Error runLLVM(LLVMRun &run, const CpuLevelInfo &level, const CpuEmitOptions &options,
                           const llvm::StringSet<> &dispatches) {
  if (llvm::Error error = prepareModule(*run.module, *run.machine, level, options.optimization, dispatches))
    return error;
  if (options.wantAssembly)
    if (llvm::Error error = generate(run, llvm::CodeGenFileType::AssemblyFile, run.assembly))
      return error;
  return generate(run, llvm::CodeGenFileType::ObjectFile, run.object);
}

/// Does LLVM's part of the work; anything that goes wrong inside LLVM becomes an error.
static llvm::Error runProtected(std::unique_ptr<LLVMRun> &run, const CpuLevelInfo &level,
                                llvm::function_ref<llvm::Error(LLVMRun &)> work) {
  fatalErrorText.clear();
  llvm::CrashRecoveryContext recovery;
  LLVMRun *state = run.get();
  if (!recovery.RunSafely([&] { state->error = work(*state); })) {
    run.release();
    return llvm::createStringError("LLVM failed for level '" + llvm::Twine(level.name) +
                                   "': " + (fatalErrorText.empty() ? "crash" : fatalErrorText));
  }
  if (llvm::Error error = std::move(run->error))
    return error;
  run->error = llvm::Error::success();
  if (!run->errors.empty())
    return llvm::createStringError("LLVM failed for level '" + llvm::Twine(level.name) + "': " + run->errors);
  return llvm::Error::success();
}

/// LLVM IR of a module of dispatches, and their names; null after a diagnostic.
static std::unique_ptr<llvm::Module> translate(ModuleOp module, const CpuEmitOptions &options, llvm::LLVMContext &context,
                                               llvm::StringSet<> &dispatches) {
  if (failed(checkDispatches(module)))
    return nullptr;
  for (auto function : module.getOps<FunctionOpInterface>())
    if (!function.isExternal() && function.isPublic())
      dispatches.insert(function.getName());
  OwningOpRef<ModuleOp> lowered(module.clone());
  if (failed(lowerToLLVMDialect(*lowered, options.contract)))
    return nullptr;
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(*lowered, context);
  if (!translated)
    module.emitError("translation to LLVM IR failed");
  return translated;
}

FailureOr<CpuCode> emitCpuCode(ModuleOp module, ajour_cpu_level level, const CpuEmitOptions &options) {
  prepareCpuTarget(*module.getContext());
  const CpuLevelInfo *info = lookupCpuLevel(level);
  if (!info)
    return module.emitError() << "CPU level " << unsigned(level) << " is not known";
  if (options.platform == CpuPlatform::IOS && (options.wantSharedObject || info->arch != AJOUR_ARCH_AARCH64))
    return module.emitError("for iOS only objects of an aarch64 level can be made");
  auto run = std::make_unique<LLVMRun>();
  llvm::StringSet<> dispatches;
  run->module = translate(module, options, run->context, dispatches);
  if (!run->module)
    return failure();
  auto machine = createMachine(*info, options);
  if (!machine)
    return module.emitError(llvm::toString(machine.takeError()));
  run->machine = std::move(*machine);
  if (llvm::Error error =
          runProtected(run, *info, [&](LLVMRun &state) { return runLLVM(state, *info, options, dispatches); }))
    return module.emitError(llvm::toString(std::move(error)));

  CpuCode code;
  code.object.assign(run->object.begin(), run->object.end());
  code.assembly.assign(run->assembly.begin(), run->assembly.end());
  if (options.wantSharedObject) {
    llvm::Expected<std::vector<char>> linked = linkSharedObject(code.object);
    if (!linked)
      return module.emitError(llvm::toString(linked.takeError()));
    code.sharedObject = std::move(*linked);
  }
  return code;
}

/// Links the prepared parts into run.module. Names of different levels must not meet; each function keeps the target attributes of
/// its level.
static llvm::Error mergeParts(LLVMRun &run, const CpuEmitOptions &options) {
  run.module = std::make_unique<llvm::Module>("static", run.context);
  run.module->setTargetTriple(run.machine->getTargetTriple());
  run.module->setDataLayout(run.machine->createDataLayout());
  for (StaticPart &part : run.parts) {
    if (llvm::Error error =
            prepareModule(*part.module, *part.machine, *part.level, options.optimization, part.dispatches))
      return error;
    for (llvm::Function &function : *part.module) {
      if (function.isDeclaration() || !part.dispatches.contains(function.getName()))
        continue;
      std::string symbol = function.getName().str();
      function.setName(llvm::Twine(part.level->name) + "." + symbol);
      run.rows.push_back({symbol, part.level, function.getName().str()});
    }
    if (llvm::Linker::linkModules(*run.module, std::move(part.module)))
      return llvm::createStringError("the code of level '" + llvm::Twine(part.level->name) + "' cannot be linked to the others");
  }
  return llvm::Error::success();
}

/// Defines the ajour_static_code (ajour/ABI/StaticCode.h).
static void defineTable(llvm::Module &module, llvm::StringRef name, const std::vector<StaticRow> &rows,
                        uint64_t identity) {
  llvm::LLVMContext &context = module.getContext();
  auto *pointer = llvm::PointerType::getUnqual(context);
  auto *i32 = llvm::Type::getInt32Ty(context), *i64 = llvm::Type::getInt64Ty(context);
  auto *rowType = llvm::StructType::get(context, {pointer, i32, i32, pointer});
  auto define = [&](llvm::Constant *value, llvm::GlobalValue::LinkageTypes linkage, const llvm::Twine &global) {
    return new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true, linkage, value, global);
  };
  auto local = llvm::GlobalValue::InternalLinkage;
  std::vector<llvm::Constant *> values;
  for (const StaticRow &row : rows) {
    llvm::Function *function = module.getFunction(row.linkName);
    function->setLinkage(local);
    llvm::Constant *symbol = define(llvm::ConstantDataArray::getString(context, row.symbol), local, row.linkName + ".name");
    values.push_back(llvm::ConstantStruct::get(
        rowType, {symbol, llvm::ConstantInt::get(i32, row.level->level), llvm::ConstantInt::get(i32, 0), function}));
  }
  auto *functions = define(llvm::ConstantArray::get(llvm::ArrayType::get(rowType, values.size()), values), local, "functions");
  auto *codeType = llvm::StructType::get(context, {i32, i32, i64, i64, pointer});
  define(llvm::ConstantStruct::get(codeType, {llvm::ConstantInt::get(i32, AJOUR_STATIC_CODE_VERSION),
                                              llvm::ConstantInt::get(i32, rows.front().level->arch),
                                              llvm::ConstantInt::get(i64, identity),
                                              llvm::ConstantInt::get(i64, values.size()), functions}),
         llvm::GlobalValue::ExternalLinkage, name);
}

FailureOr<StaticObject> emitStaticObject(ArrayRef<StaticLevel> levels, StringRef tableName, const CpuEmitOptions &options) {
  assert(!levels.empty() && "a static object needs a level");
  ModuleOp first = levels.front().module;
  prepareCpuTarget(*first.getContext());
  auto run = std::make_unique<LLVMRun>();
  for (const StaticLevel &level : levels) {
    const CpuLevelInfo *info = lookupCpuLevel(level.level);
    if (!info)
      return first.emitError() << "CPU level " << unsigned(level.level) << " is not known";
    if (options.platform == CpuPlatform::IOS && info->arch != AJOUR_ARCH_AARCH64)
      return first.emitError("for iOS only objects of an aarch64 level can be made");
    if (info->arch != lookupCpuLevel(levels.front().level)->arch)
      return first.emitError("a static object is for one architecture");
    StaticPart part;
    part.level = info;
    part.module = translate(level.module, options, run->context, part.dispatches);
    if (!part.module)
      return failure();
    auto machine = createMachine(*info, options);
    if (!machine)
      return first.emitError(llvm::toString(machine.takeError()));
    part.machine = std::move(*machine);
    run->parts.push_back(std::move(part));
  }
  const CpuLevelInfo &lowest = *run->parts.front().level;
  auto machine = createMachine(lowest, options);
  if (!machine)
    return first.emitError(llvm::toString(machine.takeError()));
  run->machine = std::move(*machine);
  StaticObject result;
  auto work = [&](LLVMRun &state) -> llvm::Error {
    if (llvm::Error error = mergeParts(state, options))
      return error;
    std::string text;
    llvm::raw_string_ostream stream(text);
    state.module->print(stream, nullptr);
    result.identity = ajour_checksum(text.data(), text.size());
    defineTable(*state.module, tableName, state.rows, result.identity);
    return generate(state, llvm::CodeGenFileType::ObjectFile, state.object);
  };
  if (llvm::Error error = runProtected(run, lowest, work))
    return first.emitError(llvm::toString(std::move(error)));
  result.object.assign(run->object.begin(), run->object.end());
  return result;
}

} // namespace ajour
