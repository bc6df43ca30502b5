//===- Attention.cpp - attention by its kernel ------------------------------------===//
//
// An item is the query heads that share a key and value head, for as many tokens as make a good number of rows; of few tokens it is several
// such heads. The kernel takes it from there; what is written here are the rows that each token attends to.
//
//===----------------------------------------------------------------------===//
#include "Lowering.h"
#include "Strides.h"
#include "ajour/Kernels/AttentionHeads.h"

#include "llvm/Support/MathExtras.h"

#include <array>

using namespace mlir;

namespace ajour::loops {

namespace {

/// Rows of scores of one item: enough that packing a block of keys costs little beside its products.
constexpr int64_t itemRows = 128;

/// How the work is divided.
struct Division {
  int64_t heads;  ///< query heads of an item
  int64_t splits; ///< items that share a key and value head
  int64_t tokens; ///< most tokens of an item
  int64_t joined; ///< key and value heads that one item takes for a call of few tokens, 1: always one
};

/// Bytes of a row of keys, or of values, that are read together: neighbouring lines are fetched faster than lines far apart.
constexpr int64_t joinedBytes = 512;

/// Whether the heads of keys (or values) lie one behind the other.
bool hasNeighbouringHeads(nn::AttentionOp op, unsigned operand) {
  std::optional<StridedView> view = findAttentionView(op, operand);
  nn::Dims dims = nn::getDims(op->getOperand(operand));
  return view && view->strides[dims.size() - 2] == dims.back();
}

Division divide(nn::AttentionOp op) {
  nn::Dims query = nn::getDims(op.getQuery()), key = nn::getDims(op.getKey());
  size_t rank = query.size();
  int64_t groups = *nn::getConstant(key[rank - 2]), heads = *nn::getConstant(query[rank - 2]) / groups;
  // One key and value head for all: two threads then read it together.
  int64_t splits = groups == 1 && heads % 2 == 0 ? 2 : 1;
  Division division{heads / splits, splits, std::max<int64_t>(1, itemRows * splits / heads), 1};
  // At least two items are left, so that two threads have work.
  int64_t headBytes = nn::getConstant(key.back()).value_or(joinedBytes) * nn::elementBytes(Emitter::elementType(op.getKey()));
  if (splits == 1 && division.heads <= AJOUR_ATTENTION_FEW_ROWS && hasNeighbouringHeads(op, 1) && hasNeighbouringHeads(op, 2))
    while (division.joined * headBytes < joinedBytes && groups % (division.joined * 4) == 0)
      division.joined *= 2;
  if (std::optional<int64_t> tokens = nn::getConstant(query[rank - 3]); tokens && *tokens > 0) {
    division.tokens = std::min(division.tokens, *tokens);
    division.tokens = llvm::divideCeil(*tokens, llvm::divideCeil(*tokens, division.tokens));
  }
  return division;
}

/// Strides of a mask along [..., H, T, S]: 0 where it is repeated.
std::vector<AffineExpr> maskStrides(Value mask, size_t rank) {
  nn::Dims dims = nn::getDims(mask);
  MLIRContext *context = mask.getContext();
  std::vector<AffineExpr> strides(rank, getAffineConstantExpr(0, context));
  AffineExpr stride = getAffineConstantExpr(1, context);
  for (size_t i = dims.size(); i-- > 0;) {
    if (nn::getConstant(dims[i]) != 1)
      strides[rank - dims.size() + i] = stride;
    stride = stride * dims[i];
  }
  return strides;
}

} // namespace

/// For each token of an item the first row that it attends to, the one after the last, and its position.
void DispatchLowering::emitRanges(nn::AttentionOp op, Value first, Value count, Value ranges) {
  nn::Dims key = nn::getDims(op.getKey());
  Type i64 = e->b.getI64Type();
  Value rows = e->size(key[key.size() - 3]), zero = e->i64(0);
  e->loop(zero, count, [&](Value t) {
    Value from = zero, to = rows, position = zero;
    if (Value positions = op.getPositions()) {
      Type element = Emitter::elementType(positions);
      position = e->convert(e->loadAt(e->buffer(positions), e->add(first, t), element), element, i64);
      // Compared before 1 is added, which could overflow.
      Value within = e->compare(arith::CmpIPredicate::slt, position, rows);
      to = e->select(within, e->max(e->add(position, e->i64(1)), zero), rows);
      int64_t window = int64_t(op.getWindow());
      Value reaches = e->compare(arith::CmpIPredicate::sge, position, e->i64(window));
      if (window > 0)
        from = e->min(e->select(reaches, e->sub(position, e->i64(window - 1)), zero), rows);
    }
    Value at = e->mul(t, e->i64(3));
    e->storeAt(from, ranges, at, i64);
    e->storeAt(to, ranges, e->add(at, e->i64(1)), i64);
    e->storeAt(position, ranges, e->add(at, e->i64(2)), i64);
  });
}

void DispatchLowering::lowerAttention(nn::AttentionOp op) {
  const ajour_kernel_row *kernel = ajour_find_kernel(AJOUR_KERNEL_attention_f32, level);
  lowered.kernel = kernel->symbol;
  lowered.kernelLevel = kernel->level;
  nn::Dims query = nn::getDims(op.getQuery()), key = nn::getDims(op.getKey()), out = nn::getDims(op.getResult());
  size_t rank = query.size();
  nn::Dims leading(query.begin(), query.end() - 3);
  int64_t heads = *nn::getConstant(query[rank - 2]), groups = *nn::getConstant(key[rank - 2]);
  Division division = divide(op);
  AffineExpr tokens = query[rank - 3], tiles = tokens.ceilDiv(division.tokens), rows = key[rank - 3];
  Type f32 = e->b.getF32Type(), byte = e->b.getI8Type();
  int64_t rangeBytes = llvm::alignTo(division.tokens * 3 * 8, 64);
  // ajour_attention_scratch as an expression.
  auto padded = [](AffineExpr n) { return n.ceilDiv(16) * 16; };
  int64_t joinedRows = division.joined * AJOUR_ATTENTION_FEW_ROWS, itemRowCount = division.tokens * division.heads;
  if (division.joined > 1)
    itemRowCount = std::max(itemRowCount, joinedRows);
  lowered.scratchBytes = ((query.back() + padded(out.back()) + 17) * itemRowCount + (padded(query.back()) + padded(out.back()) + 16) * AJOUR_ATTENTION_BLOCK + 16) * 4 +
                         rangeBytes;
  // What ajour_attention_groups_scratch is more.
  if (division.joined > 1)
    lowered.scratchBytes = lowered.scratchBytes + joinedRows * (AJOUR_ATTENTION_BLOCK + 2) * 4;
  Value size = e->size(query.back()), width = e->size(out.back()), null = LLVM::ZeroOp::create(e->b, e->loc, LLVM::LLVMPointerType::get(context));
  // Queries, keys and values may be views: of a product that makes all three, say.
  std::array<StridedView, 3> views;
  for (unsigned i = 0; i < views.size(); ++i)
    views[i] = *findAttentionView(op, i);
  Type keyType = Emitter::elementType(op.getKey()), valueType = Emitter::elementType(op.getValue());
  auto rowBytes = [&](unsigned operand, Type type) {
    return e->mul(e->size(views[operand].strides[rank - 3]), e->i64(nn::elementBytes(type)));
  };

  nn::Dims space(leading);
  space.append({tiles, getAffineConstantExpr(groups * division.splits, context)});
  items(nn::numElements(space, context), [&](Value item) {
    Index index = e->delinearize(item, space);
    Value batch = e->linearize(ArrayRef(index).drop_back(2), leading);
    Value first = e->mul(index[index.size() - 2], e->i64(division.tokens));
    Value count = e->min(e->sub(e->size(tokens), first), e->i64(division.tokens));
    Value head = e->mul(index.back(), e->i64(division.heads)), group = e->div(index.back(), e->i64(division.splits));
    emitRanges(op, first, count, scratch);
    Value token = e->add(e->mul(batch, e->size(tokens)), first), storedRow = e->mul(batch, e->size(rows));
    auto rowOf = [&](unsigned operand, Value row, Value head) {
      const StridedView &view = views[operand];
      Value offset = e->size(view.offset);
      for (size_t i = 0; i < leading.size(); ++i)
        offset = e->add(offset, e->mul(index[i], e->size(view.strides[i])));
      offset = e->add(offset, e->add(e->mul(row, e->size(view.strides[rank - 3])), e->mul(head, e->size(view.strides[rank - 2]))));
      return e->pointer(e->buffer(view.base), offset, Emitter::elementType(view.base));
    };
    Value result = e->pointer(operandPointer(OperandSpec::Result, 0), e->mul(e->add(e->mul(token, e->i64(heads)), head), width), f32);
    auto scalesAt = [&](Value scales) {
      return scales ? e->pointer(e->buffer(scales), e->add(e->mul(storedRow, e->i64(groups)), group), f32) : null;
    };
    auto ofHead = [&](Value values) { return values ? e->pointer(e->buffer(values), head, f32) : null; };
    Value mask = null, maskToken = e->i64(0), maskHead = e->i64(0), maskRow = e->i64(0);
    if (op.getMask()) {
      std::vector<AffineExpr> strides = maskStrides(op.getMask(), leading.size() + 3);
      maskHead = e->size(strides[leading.size()]), maskToken = e->size(strides[leading.size() + 1]), maskRow = e->size(strides.back());
      Value offset = e->add(e->mul(head, maskHead), e->mul(first, maskToken));
      for (size_t i = 0; i < leading.size(); ++i)
        offset = e->add(offset, e->mul(index[i], e->size(strides[i])));
      mask = e->pointer(e->buffer(op.getMask()), offset, f32);
    }
    auto call = [&](int64_t together) {
      callKernel(kernel->symbol,
                 {rowOf(0, first, head), e->size(views[0].strides[rank - 3]), rowOf(1, e->i64(0), group),
                  rowBytes(1, keyType), scalesAt(op.getKeyScales()), rowOf(2, e->i64(0), group), rowBytes(2, valueType),
                  scalesAt(op.getValueScales()), e->i64(groups), scratch, mask, maskToken, maskHead, maskRow, ofHead(op.getSlopes()),
                  ofHead(op.getSinks()), result, e->mul(e->i64(heads), width), e->pointer(scratch, e->i64(rangeBytes), byte), count,
                  e->i64(ajour_attention_heads(division.heads, together)), size, width, e->i64(nn::getElementTypeId(keyType)),
                  e->i64(nn::getElementTypeId(valueType)), e->constant(f32, op.getScale().convertToFloat()),
                  e->constant(f32, op.getSoftCap().convertToFloat())});
    };
    if (division.joined == 1)
      return call(1);
    // Of few tokens the first item of some heads takes them all.
    Value isFew = e->compare(arith::CmpIPredicate::sle, e->mul(e->size(tokens), e->i64(division.heads)), e->i64(AJOUR_ATTENTION_FEW_ROWS));
    Value isFirst = e->compare(arith::CmpIPredicate::eq, e->rem(group, e->i64(division.joined)), e->i64(0));
    e->ifThenElse(
        isFew, [&] { e->ifThenElse(isFirst, [&] { call(division.joined); }, [] {}); }, [&] { call(1); });
  });
}

} // namespace ajour::loops
