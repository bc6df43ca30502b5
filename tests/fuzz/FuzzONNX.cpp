// Fuzzes the ONNX importer: any bytes give a module or a diagnostic.
#include "ajour/Import/Import.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

extern "C" const char *__asan_default_options() { return "allocator_may_return_null=1"; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // The importer reads a file; one in memory keeps the disk out.
  static int file = memfd_create("model.onnx", 0);
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != ssize_t(size))
    abort();
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  bool said = false;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    said |= diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
    return mlir::success();
  });
  auto module = ajour::importONNX(&context, "/proc/self/fd/" + std::to_string(file), {});
  if (!module && !said)
    abort(); // a refusal says why
  return 0;
}
