//===- CompiledModel.cpp - compiled code as an executor -----------------------------===//
#include "Support/CompiledModel.h"

#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Support/Diagnostics.h"
#include "ajour/Target/CpuTarget.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace ajour::test {

CompileOptions oneLevel(unsigned optimization) {
  CompileOptions options;
  options.optimization = optimization;
  const char *forced = getenv("AJOUR_CPU");
  std::string level = forced && *forced ? forced : ajour_cpu_level_name();
  for (const CpuLevelInfo &info : cpuLevels())
    if (level == info.name)
      options.levels.push_back(info.level);
  return options;
}

/// Compiles a clone; diagnostics go to `error`.
static std::shared_ptr<CompiledModel> compile(ModuleOp module, const CompileOptions &options, std::string &error) {
  // An importer's context knows only the dialects that it makes.
  module.getContext()->loadDialect<nn::NNDialect, exec::ExecDialect, func::FuncDialect>();
  prepareCpuTarget(*module.getContext());
  DiagnosticCollector diagnostics(module.getContext(), "model");
  OwningOpRef<ModuleOp> clone = module.clone();
  std::shared_ptr<CompiledModel> compiled = CompiledModel::compile(*clone, options);
  if (!compiled)
    error = diagnostics.text();
  return compiled;
}

std::shared_ptr<CompiledModel> compileClone(ModuleOp module, const CompileOptions &options) {
  std::string error;
  std::shared_ptr<CompiledModel> compiled = compile(module, options, error);
  EXPECT_TRUE(compiled) << error;
  return compiled;
}

std::function<std::vector<HostTensor>(const std::vector<HostTensor> &)> prepareCompiled(ModuleOp module) {
  std::shared_ptr<CompiledModel> compiled = compileClone(module);
  size_t count = module.lookupSymbol<func::FuncOp>("main").getNumResults();
  return [compiled, count](const std::vector<HostTensor> &inputs) {
    std::vector<HostTensor> outputs;
    std::string error;
    if (!compiled || !compiled->run(inputs, outputs, error)) {
      ADD_FAILURE() << "cannot run: " << error;
      outputs.assign(count, HostTensor{AJOUR_F32, {0}, {}});
    }
    return outputs;
  };
}

bool executeCompiled(ModuleOp module, const std::vector<HostTensor> &inputs, const std::vector<int64_t> &symbols,
                     std::vector<HostTensor> &outputs, std::string &error) {
  (void)symbols; // the runtime reads them from the inputs
  std::shared_ptr<CompiledModel> compiled = compile(module, oneLevel(), error);
  return compiled && compiled->run(inputs, outputs, error);
}

} // namespace ajour::test
