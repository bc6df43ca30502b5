//===- Harness.cpp --------------------------------------------------------===//
#include "Harness.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace ajour::test {

Session::Session() {
  prepareCpuTarget(context);
  context.getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
    llvm::raw_string_ostream stream(errors);
    stream << diagnostic << "\n";
    return mlir::success();
  });
}

mlir::OwningOpRef<mlir::ModuleOp> Session::parse(const std::string &text) {
  return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
}

mlir::FailureOr<CpuCode> Session::emit(const std::string &text, ajour_cpu_level level, const CpuEmitOptions &options) {
  mlir::OwningOpRef<mlir::ModuleOp> module = parse(text);
  if (!module)
    return mlir::failure();
  return emitCpuCode(*module, level, options);
}

std::string Session::takeErrors() { return std::exchange(errors, {}); }

std::string writeTemporary(const std::vector<char> &bytes, const char *suffix) {
  llvm::SmallString<128> path;
  int file = -1;
  EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("ajour-test", suffix, file, path));
  llvm::raw_fd_ostream stream(file, /*shouldClose=*/true);
  stream.write(bytes.data(), bytes.size());
  return std::string(path);
}

Loaded::Loaded(const std::vector<char> &sharedObject) {
  std::string path = writeTemporary(sharedObject, "so");
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  llvm::sys::fs::remove(path);
}

Loaded::~Loaded() {
  if (handle)
    dlclose(handle);
}

ajour_dispatch_fn Loaded::find(const char *name) const {
  return handle ? reinterpret_cast<ajour_dispatch_fn>(dlsym(handle, name)) : nullptr;
}

bool cpuHas(ajour_cpu_level level) {
#if defined(__x86_64__)
  const ajour_arch native = AJOUR_ARCH_X86_64;
#else
  const ajour_arch native = AJOUR_ARCH_AARCH64;
#endif
  const CpuLevelInfo *info = lookupCpuLevel(level);
  if (!info || info->arch != native)
    return false;
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
#define AJOUR_ROW(bit, name, text)                                                                                   \
  if ((info->featureSet & AJOUR_CPU_##name) && !host.lookup(text))                                                   \
    return false;
  AJOUR_CPU_FEATURES(AJOUR_ROW)
#undef AJOUR_ROW
  return true;
}

std::vector<ajour_cpu_level> runnableLevels() {
  std::vector<ajour_cpu_level> result;
  for (const CpuLevelInfo &row : cpuLevels())
    if (cpuHas(row.level))
      result.push_back(row.level);
  return result;
}

Symbols readSymbols(const std::vector<char> &sharedObject) {
  Symbols result;
  auto object = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(sharedObject.data(), sharedObject.size()), "code"));
  if (!object) {
    ADD_FAILURE() << llvm::toString(object.takeError());
    return result;
  }
  for (llvm::object::ELFSymbolRef symbol : llvm::cast<llvm::object::ELFObjectFileBase>(**object).getDynamicSymbolIterators()) {
    llvm::StringRef name = llvm::cantFail(symbol.getName());
    bool undefined = llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined;
    (undefined ? result.undefined : result.defined).push_back(name.str());
  }
  return result;
}

} // namespace ajour::test
