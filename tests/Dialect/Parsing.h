//===- Parsing.h - one operation as a module -------------------*- C++ -*-===//
#ifndef AJOUR_TESTS_DIALECT_PARSING_H
#define AJOUR_TESTS_DIALECT_PARSING_H

#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace ajour::test {

inline mlir::MLIRContext *context() {
  static mlir::MLIRContext *instance = [] {
    auto *made = new mlir::MLIRContext(mlir::MLIRContext::Threading::DISABLED);
    made->loadDialect<mlir::func::FuncDialect, nn::NNDialect, exec::ExecDialect>();
    return made;
  }();
  return instance;
}

/// A module with one function that has the given arguments ("%a: tensor<2xf32>, ...") and body.
inline std::string functionOf(const std::string &arguments, const std::string &body) {
  return "func.func @main(" + arguments + ") {\n" + body + "\nreturn\n}";
}

/// Parses and verifies; `message` receives the diagnostics.
inline mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text, std::string &message) {
  mlir::ScopedDiagnosticHandler handler(context(), [&](mlir::Diagnostic &diagnostic) {
    message += diagnostic.str() + "\n";
    return mlir::success();
  });
  return mlir::parseSourceString<mlir::ModuleOp>(text, context());
}

} // namespace ajour::test

#endif
