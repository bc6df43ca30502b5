//===- ReportLayout.cpp - the report's section on layouts ------------------------------------===//
#include "ajour/Conversion/LayoutOps.h"
#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Pipeline/Report.h"
#include "ajour/Support/NodeLocation.h"

#include <map>

using namespace mlir;

namespace ajour {

/// Adds NAME_ops and NAME_bytes.
static void addTotals(ReportSection &section, const std::string &name, int64_t ops, int64_t bytes) {
  section.values.push_back({name + "_ops", ops});
  section.values.push_back({name + "_bytes", bytes});
}

void reportImportedLayout(ModuleOp module, CompileReport &report) {
  struct Count {
    int64_t ops = 0, bytes = 0;
  };
  std::map<std::string, Count> kinds;
  Count total, implied;
  for (const LayoutOp &op : findLayoutOps(module.lookupSymbol<func::FuncOp>("main"))) {
    for (Count *count : {&kinds[op.kind], &total, op.implied ? &implied : nullptr})
      if (count) {
        ++count->ops;
        count->bytes += op.bytes;
      }
  }
  ReportSection &section = report.section("layout");
  addTotals(section, "imported", total.ops, total.bytes);
  // Those that the file does not have: its convolutions read and write channels first.
  addTotals(section, "imported_implied", implied.ops, implied.bytes);
  ReportTable table{"imported", {"kind", "ops", "bytes"}, {}};
  for (const auto &[kind, count] : kinds)
    table.rows.push_back({kind, count.ops, count.bytes});
  section.tables.push_back(std::move(table));
}

void reportCompiledLayout(ModuleOp module, function_ref<const LoweredDispatch *(StringRef callee)> lowered,
                          CompileReport &report) {
  ReportSection &section = report.section("layout");
  ReportTable remaining{"remaining", {"step", "kind", "bytes", "border", "nodes", "reason"}, {}};
  int64_t ops[2] = {0, 0}, bytes[2] = {0, 0};
  for (const LayoutOp &op : findLayoutDispatches(module)) {
    ++ops[op.border];
    bytes[op.border] += op.bytes;
    remaining.rows.push_back(
        {op.step, op.kind, op.bytes, std::string(op.border ? "yes" : "no"), reportNodes(op.loc), op.reason});
  }
  ReportTable copies{"copies", {"step", "kind", "copy", "bytes", "nodes"}, {}};
  int64_t step = 0, copied = 0;
  for (auto dispatch : module.lookupSymbol<func::FuncOp>("main").getOps<exec::DispatchOp>()) {
    const LoweredDispatch *code = lowered(dispatch.getCallee());
    if (code && !code->copyKind.empty()) {
      int64_t size = nn::estimateSize(code->copyBytes);
      copied += size;
      copies.rows.push_back({step, dispatch.getKind().str(), code->copyKind, size, reportNodes(dispatch.getLoc())});
    }
    ++step;
  }
  addTotals(section, "remaining", ops[false], bytes[false]);
  addTotals(section, "remaining_border", ops[true], bytes[true]);
  addTotals(section, "scratch_copy", int64_t(copies.rows.size()), copied);
  section.tables.push_back(std::move(remaining));
  section.tables.push_back(std::move(copies));
}

} // namespace ajour
