//===- FuzzModel.h - bytes as a model file --------------------*- C++ -*-===//
#ifndef AJOUR_TESTS_FUZZ_FUZZMODEL_H
#define AJOUR_TESTS_FUZZ_FUZZMODEL_H

#include "ajour/Import/Import.h"

#include "mlir/IR/MLIRContext.h"

namespace ajour::fuzz {

using ImportFunction = mlir::OwningOpRef<mlir::ModuleOp> (*)(mlir::MLIRContext *, const std::string &,
                                                             const ImportOptions &);

/// Imports the bytes, simplifies what came of them, and forms dispatches. Ends the program if a step fails without
/// a diagnostic, or if a pass fails on what was imported: whatever is accepted can be compiled.
int importBytes(ImportFunction import, const uint8_t *data, size_t size);

} // namespace ajour::fuzz

#endif
