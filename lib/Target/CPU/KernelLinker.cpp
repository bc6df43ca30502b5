//===- KernelLinker.cpp - micro-kernels from bitcode ----------------------===//
#include "Codegen.h"

#include "ajour/Kernels/KernelBitcode.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Transforms/IPO/Internalize.h"

using namespace llvm;

namespace ajour {

static MemoryBufferRef kernelBitcode(ajour_arch arch) {
  const char *begin = ajour_kernels_x86_64_begin, *end = ajour_kernels_x86_64_end;
  if (arch == AJOUR_ARCH_AARCH64)
    begin = ajour_kernels_aarch64_begin, end = ajour_kernels_aarch64_end;
  return MemoryBufferRef(StringRef(begin, end - begin), "kernels");
}

void setTargetAttributes(Function &function, const CpuLevelInfo &level) {
  // What clang wrote into the kernels would keep them from being inlined into code for another set.
  for (StringRef name : {"tune-cpu", "min-legal-vector-width", "frame-pointer", "stack-protector-buffer-size",
                         "no-trapping-math"})
    function.removeFnAttr(name);
  function.addFnAttr("target-cpu", level.cpu);
  function.removeFnAttr("target-features");
  if (*level.features)
    function.addFnAttr("target-features", level.features);
  function.addFnAttr("no-builtins");
  function.setDoesNotThrow();
  if (level.arch == AJOUR_ARCH_X86_64)
    function.addFnAttr("prefer-vector-width", level.level >= AJOUR_LEVEL_avx512 ? "512" : "256");
}

/// A kernel that needs a feature that the level lacks would end in an instruction that cannot be selected.
static Error checkFeatures(const Function &kernel, const CpuLevelInfo &level, const TargetMachine &machine) {
  StringRef list = kernel.getFnAttribute("target-features").getValueAsString();
  SmallVector<StringRef> features;
  list.split(features, ',', -1, /*KeepEmpty=*/false);
  // "v8a" names the architecture version, which LLVM's generic CPU states by its parts.
  for (StringRef feature : features)
    if (feature.starts_with("+") && feature != "+v8a" && !machine.getMCSubtargetInfo()->checkFeatures(feature.str()))
      return createStringError("kernel '" + kernel.getName() + "' needs CPU feature '" + feature.drop_front() +
                               "', which level '" + level.name + "' does not have");
  return Error::success();
}

/// LLVM neither reports nor inlines a call whose type differs from the callee's.
static Error checkDeclaration(const Function &declared, const Function *kernel, const CpuLevelInfo &level) {
  if (!kernel || (kernel->isDeclaration() && !kernel->isMaterializable()))
    return createStringError("no kernel is called '" + declared.getName() + "' for the architecture of level '" +
                             level.name + "'; see ajour/Kernels/Kernels.h");
  if (kernel->getFunctionType() != declared.getFunctionType()) {
    std::string text;
    raw_string_ostream stream(text);
    stream << "kernel '" << declared.getName() << "' is declared as " << *declared.getFunctionType() << ", expected "
           << *kernel->getFunctionType();
    return createStringError(text);
  }
  return Error::success();
}

Expected<std::vector<std::string>> linkKernels(Module &module, const CpuLevelInfo &level,
                                               const TargetMachine &machine) {
  std::vector<const Function *> wanted;
  StringSet<> before;
  for (Function &function : module) {
    before.insert(function.getName());
    if (function.isDeclaration() && !function.isIntrinsic() && !function.use_empty())
      wanted.push_back(&function);
  }
  std::vector<std::string> added;
  if (wanted.empty())
    return added;

  Expected<std::unique_ptr<Module>> kernels = getLazyBitcodeModule(kernelBitcode(level.arch), module.getContext());
  if (!kernels)
    return kernels.takeError();
  (*kernels)->setTargetTriple(module.getTargetTriple());
  (*kernels)->setDataLayout(module.getDataLayout());
  if (Error error = (*kernels)->materializeMetadata())
    return std::move(error);
  if (NamedMDNode *flags = (*kernels)->getModuleFlagsMetadata())
    flags->eraseFromParent();
  std::vector<std::string> names;
  for (const Function *declared : wanted) {
    const Function *kernel = (*kernels)->getFunction(declared->getName());
    if (Error error = checkDeclaration(*declared, kernel, level))
      return std::move(error);
    if (Error error = checkFeatures(*kernel, level, machine))
      return std::move(error);
    names.push_back(declared->getName().str());
  }
  auto internalize = [](Module &linked, const StringSet<> &kept) {
    internalizeModule(linked, [&](const GlobalValue &value) { return !value.hasName() || !kept.count(value.getName()); });
  };
  if (Linker::linkModules(module, std::move(*kernels), Linker::Flags::LinkOnlyNeeded, internalize))
    return createStringError("the kernels cannot be linked into the generated code");
  for (Function &function : module)
    if (!before.count(function.getName()) && !function.isIntrinsic())
      names.push_back(function.getName().str());
  for (StringRef name : names) {
    Function *function = module.getFunction(name);
    setTargetAttributes(*function, level);
    function->setLinkage(GlobalValue::InternalLinkage);
    function->removeFnAttr(Attribute::NoInline);
    function->addFnAttr(Attribute::AlwaysInline);
  }
  return names;
}

} // namespace ajour
