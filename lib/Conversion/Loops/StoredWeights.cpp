//===- StoredWeights.cpp - products whose weights keep their few bits --------------------===//
//
// The artifact holds codes, indices or f16. Blocks of 16 columns are unpacked into dense panels in scratch, which the dense
// kernels then read: a panel at a time where one block of rows meets it, or all panels of a group where more rows follow.
// Work items are ordered so that a thread meets all rows of a group one after the other, and unpacks only where its
// group changes.
//
//===----------------------------------------------------------------------===//
#include "Blocking.h"
#include "Lowering.h"

#include "ajour/ABI/Dispatch.h"
#include "ajour/Encoding/PackStored.h"

using namespace mlir;

namespace ajour::loops {

/// Bytes of unpacked panels that a matrix product works on.
static int64_t unpackBudget(ajour_cpu_level level) { return level >= AJOUR_LEVEL_neon ? 256 << 10 : 1 << 20; }

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

/// The operation in the callee that makes a weight of constants; null for others.
Operation *DispatchLowering::storedForm(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<nn::DequantizeGroupedOp, nn::DequantizeCodebookOp, nn::CastOp>(op) ||
      !llvm::all_of(op->getOperands(), [&](Value operand) { return constantArgument(operand).has_value(); }))
    return nullptr;
  if (auto cast = dyn_cast<nn::CastOp>(op); cast && !Emitter::elementType(cast.getInput()).isF16())
    return nullptr;
  if (auto grouped = dyn_cast<nn::DequantizeGroupedOp>(op); grouped && grouped.getOffsets())
    return nullptr;
  return op;
}

/// How many consecutive k of a weight have the same parameters; nothing when they are not in such groups.
static std::optional<int64_t> groupInDepth(RankedTensorType weight, RankedTensorType parameters, int64_t axis,
                                           int64_t group, bool transposed, int64_t k) {
  ArrayRef<int64_t> sizes = parameters.getShape();
  int64_t rank = weight.getRank(), n = transposed ? 0 : 1;
  bool anyInDepth = false;
  for (int64_t d = 0; d < rank; ++d)
    anyInDepth |= d != n && sizes[d] != 1;
  if (!anyInDepth)
    return k;
  // Groups along the last dimension of the depth, alike in the dimensions before it.
  int64_t last = transposed ? rank - 1 : 0;
  for (int64_t d = 0; d < rank; ++d)
    if (d != n && d != last && sizes[d] != 1)
      return std::nullopt;
  if (axis != last || (rank > 2 && weight.getDimSize(last) % group != 0))
    return std::nullopt;
  return std::min(group, k);
}

/// The plan of f32 weights that are stored in another form. Completes `weights` and adds it.
bool DispatchLowering::planUnpack(GemmPlan &plan, Value rhs, PackSpec weights) {
  Operation *form = storedForm(rhs);
  plan.kernel = ajour_find_kernel(AJOUR_KERNEL_gemm_f32, level);
  if (!form || !plan.kernel || plan.kernel->kr != 1)
    return false;
  auto find = [&](ajour_kernel_op op) {
    const ajour_kernel_row *row = ajour_find_kernel(op, level);
    return row ? row->symbol : nullptr;
  };
  UnpackPlan unpack{form, nullptr, 0, plan.k, -1, {}};
  weights.weights = *constantArgument(form->getOperand(0));
  weights.nr = plan.kernel->nr;
  weights.kr = 1;
  if (isa<nn::CastOp>(form)) {
    weights.kind = PackSpec::StoredHalf;
    unpack.symbol = find(AJOUR_KERNEL_unpack_f16_f32);
    unpack.blockBytes = plan.k * encoding::storedColumns * 2;
    unpack.arguments = {plan.k};
  } else {
    auto grouped = dyn_cast<nn::DequantizeGroupedOp>(form);
    auto codebook = dyn_cast<nn::DequantizeCodebookOp>(form);
    Value scales = grouped ? grouped.getScales() : codebook.getScales();
    auto type = cast<RankedTensorType>(form->getOperand(0).getType());
    StoredSpec &stored = weights.stored;
    stored.isCodes = true;
    stored.axis = grouped ? grouped.getAxis() : codebook.getAxis();
    stored.sourceGroup = grouped ? grouped.getGroup() : codebook.getGroup();
    stored.group = plan.k;
    if (scales) {
      auto group = groupInDepth(type, cast<RankedTensorType>(scales.getType()), stored.axis, stored.sourceGroup,
                                weights.transposed, plan.k);
      if (!group)
        return false;
      stored.group = *group;
      stored.scales = *constantArgument(scales);
      stored.halfScales = Emitter::elementType(scales).isF16();
    }
    int64_t flags = (scales ? AJOUR_UNPACK_SCALES : 0) | (stored.halfScales || !scales ? 0 : AJOUR_UNPACK_F32_SCALES);
    encoding::StoredFormat format;
    if (grouped) {
      stored.bits = grouped.getBits();
      weights.kind = PackSpec::StoredInt;
      unpack.symbol = find(AJOUR_KERNEL_unpack_int_f32);
      if (Value zeros = grouped.getZeroPoints()) {
        stored.zeroPoints = *constantArgument(zeros);
        stored.realZeros = isa<FloatType>(Emitter::elementType(zeros));
        flags |= stored.realZeros ? AJOUR_UNPACK_REAL_ZEROS : AJOUR_UNPACK_ZERO_POINTS;
        format.zeros = stored.realZeros ? encoding::StoredFormat::RealZeros : encoding::StoredFormat::ByteZeros;
      }
    } else {
      auto table = cast<RankedTensorType>(codebook.getTable().getType());
      if (table.getRank() != 1)
        return false;
      stored.bits = std::max<int64_t>(1, llvm::Log2_64_Ceil(table.getDimSize(0)));
      stored.codebook = *constantArgument(codebook.getTable());
      weights.kind = PackSpec::StoredCodebook;
      unpack.symbol = find(AJOUR_KERNEL_unpack_codebook_f32);
    }
    // A panel has no gaps between groups, so a group is whole steps: of more bits, they are shorter.
    while (stored.group < plan.k && stored.group % encoding::storedStep(stored.bits) != 0 && stored.bits < 8)
      ++stored.bits;
    if (stored.group < plan.k && stored.group % encoding::storedStep(stored.bits) != 0)
      return false;
    format.bits = stored.bits;
    format.group = stored.group;
    format.scales = !scales              ? encoding::StoredFormat::NoScales
                    : stored.halfScales ? encoding::StoredFormat::HalfScales
                                        : encoding::StoredFormat::FloatScales;
    int64_t groups = encoding::storedGroups(format, plan.k), group = encoding::storedGroup(format);
    unpack.blockBytes = encoding::storedBlockBytes(format, plan.k);
    unpack.rows = groups * group;
    unpack.arguments = {groups, group, stored.bits, flags};
    if (grouped)
      unpack.arguments.push_back(nn::isUnsigned(type.getElementType()) ? 0 : int64_t(1) << (stored.bits - 1));
    if (codebook) {
      PackSpec table = weights;
      table.kind = PackSpec::Codebook;
      table.weights = *constantArgument(codebook.getTable());
      unpack.codebookPack = addPack(table);
    }
  }
  if (!unpack.symbol)
    return false;
  plan.weightsPack = addPack(weights);
  plan.unpack = unpack;
  return true;
}

int64_t panelsOfBlock(const GemmPlan &plan) { return std::max<int64_t>(1, encoding::storedColumns / plan.kernel->nr); }

/// Whether all panels of an item are unpacked at once, and how many those are.
void DispatchLowering::scheduleUnpack(const GemmPlan &plan, GemmSchedule &schedule) {
  if (!plan.unpack)
    return;
  std::optional<int64_t> rows = known(plan.rows), images = known(plan.images);
  schedule.unpackAll = !rows || !images || *images * *rows > schedule.tiles * plan.kernel->mr;
  int64_t panels = llvm::divideCeil(plan.n, plan.kernel->nr), unit = panelsOfBlock(plan);
  int64_t perItem = schedule.panelsPerItem ? schedule.panelsPerItem : panels;
  if (schedule.unpackAll && !schedule.rowsOuter && isa<nn::MatmulOp>(plan.root))
    perItem = std::min(perItem, std::max<int64_t>(1, unpackBudget(level) / (panelElements(plan) * 4)));
  schedule.panelsPerItem = llvm::alignTo(perItem, unit);
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// Elements from one panel of weights to the next.
int64_t DispatchLowering::panelElements(const GemmPlan &plan) {
  return (plan.unpack ? plan.unpack->rows : llvm::alignTo(plan.k, plan.kernel->kr)) * plan.kernel->nr;
}

Value DispatchLowering::panelPointer(const GemmPlan &plan, const GemmBlock &part, Value panel) {
  Value base = plan.unpack ? part.unpacked : operandPointer(OperandSpec::Packed, plan.weightsPack);
  Value position = plan.unpack ? e->sub(panel, part.firstUnpacked) : panel;
  return e->pointer(base, e->mul(position, e->i64(panelElements(plan))), lhsType(plan));
}

/// The group of panels and the block of rows of a work item; with `groupsOuter` the blocks of a group follow each other.
std::pair<Value, Value> DispatchLowering::splitItem(Value item, AffineExpr blocks, int64_t groups, bool groupsOuter) {
  if (!groupsOuter)
    return {e->rem(item, e->i64(groups)), e->div(item, e->i64(groups))};
  Value count = e->size(blocks);
  return {e->div(item, count), e->rem(item, count)};
}

/// Room for unpacked panels behind what scratch holds already.
void DispatchLowering::reserveUnpacked(const GemmPlan &plan, GemmBlock &part, int64_t panels) {
  int64_t before = llvm::alignTo(*known(lowered.scratchBytes), 64);
  int64_t bytes = llvm::alignTo(panels, panelsOfBlock(plan)) * panelElements(plan) * 4;
  lowered.scratchBytes = getAffineConstantExpr(before + bytes + AJOUR_BUFFER_SLACK, context);
  part.unpacked = e->pointer(scratch, e->i64(before), e->b.getI8Type());
  part.firstUnpacked = part.firstPanel;
}

/// Unpacks panels [first, last) to where panelPointer finds them.
void DispatchLowering::unpackPanels(const GemmPlan &plan, const GemmBlock &part, Value first, Value last) {
  const UnpackPlan &unpack = *plan.unpack;
  int64_t nr = plan.kernel->nr, columns = encoding::storedColumns, panel = panelElements(plan);
  int64_t blocks = llvm::divideCeil(plan.n, columns), high = nr < columns ? panel : columns / 2;
  Value packed = operandPointer(OperandSpec::Packed, plan.weightsPack);
  Value from, to;
  if (nr < columns) { // a block is two panels
    from = e->div(first, e->i64(columns / nr));
    to = e->div(e->add(last, e->i64(columns / nr - 1)), e->i64(columns / nr));
  } else {
    from = e->mul(first, e->i64(nr / columns));
    to = e->min(e->i64(blocks), e->mul(last, e->i64(nr / columns)));
  }
  e->loop(from, to, [&](Value block) {
    Value source = e->pointer(packed, e->mul(block, e->i64(unpack.blockBytes)), e->b.getI8Type()), position;
    Value base = part.firstUnpacked;
    if (nr < columns) {
      position = e->mul(e->sub(e->mul(block, e->i64(columns / nr)), base), e->i64(panel));
    } else {
      Value own = e->div(block, e->i64(nr / columns)), within = e->rem(block, e->i64(nr / columns));
      position = e->add(e->mul(e->sub(own, base), e->i64(panel)), e->mul(within, e->i64(columns)));
    }
    SmallVector<Value> operands{source};
    if (unpack.codebookPack >= 0)
      operands.push_back(operandPointer(OperandSpec::Packed, unpack.codebookPack));
    operands.push_back(e->pointer(part.unpacked, position, lhsType(plan)));
    operands.append({e->i64(nr), e->i64(high)});
    for (int64_t argument : unpack.arguments)
      operands.push_back(e->i64(argument));
    callKernel(unpack.symbol, operands);
  });
}

/// Unpacks the item's panels unless the item before it, of the same call, had the same ones.
void DispatchLowering::unpackOnce(const GemmPlan &plan, GemmBlock &part, Value item, Value block) {
  Value isFirst = e->compare(arith::CmpIPredicate::eq, item, begin);
  Value isNew = e->compare(arith::CmpIPredicate::eq, block, e->i64(0));
  Value unpacks = arith::OrIOp::create(e->b, e->loc, isFirst, isNew);
  e->ifThenElse(unpacks, [&] { unpackPanels(plan, part, part.firstPanel, part.lastPanel); }, [] {});
}

/// Loops over the panels of an item, whose weights are where panelPointer finds them.
void DispatchLowering::emitPanels(const GemmPlan &plan, const GemmSchedule &schedule, GemmBlock &part,
                                  function_ref<void(Value)> body) {
  if (!plan.unpack || schedule.unpackAll)
    return e->loop(part.firstPanel, part.lastPanel, body);
  e->loop(
      part.firstPanel, part.lastPanel,
      [&](Value first) {
        Value last = e->min(part.lastPanel, e->add(first, e->i64(panelsOfBlock(plan))));
        part.firstUnpacked = first;
        unpackPanels(plan, part, first, last);
        e->loop(first, last, body);
      },
      panelsOfBlock(plan));
}

} // namespace ajour::loops
