//===- FuzzModel.cpp - bytes as a model file ------------------------------------===//
#include "FuzzModel.h"

#include "ajour/Conversion/Dispatch.h"
#include "ajour/Conversion/Simplify.h"
#include "ajour/Dialect/Exec/Exec.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

// LLVM's headers poison memory pools that the uninstrumented LLVM library hands out without a word.
extern "C" const char *__asan_default_options() { return "allocator_may_return_null=1:allow_user_poisoning=0"; }

namespace ajour::fuzz {

static mlir::LogicalResult compile(mlir::ModuleOp module) {
  mlir::PassManager manager(module.getContext());
  buildSimplifyPipeline(manager);
  return mlir::success(succeeded(manager.run(module)) && succeeded(formDispatches(module)) &&
                       succeeded(mlir::verify(module)));
}

int importBytes(ImportFunction import, const uint8_t *data, size_t size) {
  // Importers read a file; one in memory keeps the disk out.
  static int file = memfd_create("model", 0);
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != ssize_t(size))
    abort();
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<exec::ExecDialect>();
  std::string errors;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
      errors += diagnostic.str() + "\n";
    return mlir::success();
  });
  auto module = import(&context, "/proc/self/fd/" + std::to_string(file), {});
  if (!module) {
    if (errors.empty())
      abort(); // a refusal says why
    return 0;
  }
  if (failed(compile(*module))) {
    fprintf(stderr, "imported, but not compiled: %s", errors.c_str());
    abort();
  }
  return 0;
}

} // namespace ajour::fuzz
