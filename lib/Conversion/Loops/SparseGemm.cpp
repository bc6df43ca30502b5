//===- SparseGemm.cpp - products whose weights are lists for each lane ------------------===//
//
// Rows of activations meet panels of sparse weights: like a dense product in all but the kernel and what it reads, so
// nothing around it changes its layout. Which inputs a lane takes stands in the packed weights (ajour/Encoding/PackSparse.h).
//
//===----------------------------------------------------------------------===//
#include "Lowering.h"
#include "ajour/Conversion/Encode.h"

using namespace mlir;

namespace ajour::loops {

/// Chooses sparse panels for a dense plan whose weights are constants without zero points, where they win. `weights` is complete.
void DispatchLowering::planSparsePanels(GemmPlan &plan, PackSpec weights) {
  std::optional<WeightUse> use = getWeightUse(plan.root);
  if (!use)
    return;
  std::optional<int64_t> rows = nn::getConstant(nn::simplifySize(
      nn::numElements(ArrayRef(nn::getDims(plan.root->getResult(0))).drop_back(), context)));
  KernelChoice choice = selectKernel(*use, rows.value_or(-1), level, /*overPixels=*/false);
  if (choice.family != KernelFamily::GemmSparse)
    return;
  const ajour_kernel_row *kernel = findSparseGemm(choice.group, plan.kernel->lhs == AJOUR_F32, level);
  assert(kernel && kernel->lhs == plan.kernel->lhs && "a family without a kernel was chosen");
  int64_t lanes = kernel->nr / 4;
  SparsePanels sparse;
  sparse.density = use->groupDensity(choice.group);
  sparse.panels.k = plan.k, sparse.panels.n = plan.n;
  sparse.panels.lanes = lanes, sparse.panels.share = choice.group, sparse.panels.kr = kernel->kr;
  sparse.panels.window = ajour_gemm_sparse_window(lanes, kernel->lhs);
  weights.panels = sparse.panels;
  auto add = [&](PackSpec::Kind kind) {
    weights.kind = kind;
    return addPack(weights);
  };
  plan.weightsPack = add(PackSpec::PanelWeights);
  sparse.offsetsPack = add(PackSpec::PanelOffsets);
  sparse.picksPack = add(PackSpec::PanelPicks);
  sparse.indexPack = add(PackSpec::PanelIndex);
  plan.kernel = kernel;
  plan.sparse = sparse;
}

/// The product of `rows` rows with one panel; of a sparse one, with a part of it. `dense`: where a dense panel lies.
void DispatchLowering::callGemm(const GemmPlan &plan, Value panel, int64_t part, Value lhs, Value lda, Value dense, Value acc,
                                Value rows, Value depth) {
  if (!plan.sparse)
    return callKernel(plan.kernel->symbol, {lhs, lda, dense, acc, rows, depth});
  const encoding::PanelPlan &panels = lowered.packs[plan.weightsPack].panels;
  Type i8 = e->b.getI8Type(), i16 = e->b.getI16Type(), i32 = e->b.getI32Type(), i64 = e->b.getI64Type();
  auto step = [&](Value position) -> Value {
    Value entry = e->loadAt(operandPointer(OperandSpec::Packed, plan.sparse->indexPack), position, i32);
    return arith::ExtUIOp::create(e->b, e->loc, i64, entry);
  };
  auto at = [&](unsigned pack, Value position, Type type) {
    return e->pointer(operandPointer(OperandSpec::Packed, pack), position, type);
  };
  // A panel of the product is four columns for each lane, whether they keep their inputs together or not.
  int64_t pieces = 4 / panels.share, slots = panels.lanes * panels.kr;
  Value firstPiece = e->mul(panel, e->i64(pieces));
  auto multiply = [&](Value piece) {
    Value list = e->add(e->mul(e->add(firstPiece, piece), e->i64(panels.parts)), e->i64(part));
    Value first = step(list), count = e->sub(step(e->add(list, e->i64(1))), first);
    callKernel(plan.kernel->symbol,
               {lhs, lda, at(plan.sparse->offsetsPack, first, i16), at(plan.sparse->picksPack, e->mul(first, e->i64(slots)), i8),
                at(plan.weightsPack, e->mul(first, e->i64(slots * panels.share)), lhsType(plan)),
                e->pointer(acc, e->mul(piece, e->i64(panels.lanes * panels.share)), accType(plan)), rows, count});
  };
  if (pieces == 1)
    return multiply(e->i64(0));
  e->loop(e->i64(0), e->min(e->i64(pieces), e->sub(e->i64(panels.panels()), firstPiece)), multiply);
}

} // namespace ajour::loops
