//===- Gemv.cpp - products of few rows, and with weights of few bits ---------------------===//
//
// A block of 16 columns is one stream of bytes (ajour/Encoding/PackGemv.h). It is read once; every row meets it while
// it is in the first-level cache. Where its columns skip inputs, what they keep of a row is put together first.
//
//===----------------------------------------------------------------------===//
#include "Blocking.h"
#include "Lowering.h"

#include "ajour/ABI/Dispatch.h"
#include "ajour/Conversion/Encode.h"

using namespace mlir;

namespace ajour::loops {

using encoding::GemvFormat;

/// Rows of one kernel call.
static constexpr int64_t callRows = 4;
/// Rows up to which weights of few bits are read as they are.
static constexpr int64_t mostStoredRows = 16;
/// Work items that a product should have.
static constexpr int64_t wantedGemvItems = 16;

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

static bool isQuantized(const GemvFormat &format) {
  return format.values == GemvFormat::Q8 || format.values == GemvFormat::Q4;
}

/// Where the parameters of a dequantisation lie, seen as [groups of k][n]; false if their groups run along n or are cut
/// otherwise.
static bool describeGroups(nn::DequantizeGroupedOp op, bool transposed, int64_t k, int64_t n, PackSpec &weights) {
  auto scales = cast<RankedTensorType>(op.getScales().getType());
  int64_t kAxis = transposed ? 1 : 0, nAxis = 1 - kAxis;
  int64_t kCount = scales.getDimSize(kAxis), nCount = scales.getDimSize(nAxis);
  if (nCount != 1 && nCount != n)
    return false;
  int64_t group = kCount == 1 ? k : int64_t(op.getAxis()) == kAxis ? int64_t(op.getGroup()) : 1;
  weights.gemv.group = std::min(group, k);
  weights.scaleStrideK = kCount == 1 ? 0 : kAxis == 1 ? 1 : scales.getDimSize(1);
  weights.scaleStrideN = nCount == 1 ? 0 : nAxis == 1 ? 1 : scales.getDimSize(1);
  return true;
}

/// Weights that the callee dequantises from constants.
bool DispatchLowering::planStoredWeights(GemvPlan &plan, nn::MatmulOp op, PackSpec &weights) {
  Operation *stored = op.getRhs().getDefiningOp();
  if (!stored || !Emitter::elementType(op.getLhs()).isF32() || !Emitter::elementType(op.getRhs()).isF32())
    return false;
  for (Value operand : stored->getOperands())
    if (!constantArgument(operand))
      return false;
  plan.stored = stored;
  weights.weights = *constantArgument(stored->getOperand(0));
  GemvFormat &format = weights.gemv;
  if (auto cast = dyn_cast<nn::CastOp>(stored)) {
    if (!Emitter::elementType(cast.getInput()).isF16())
      return false;
    format.values = GemvFormat::F16;
    plan.product.kernel = ajour_find_kernel(AJOUR_KERNEL_gemv_f16, level);
    return plan.product.kernel;
  }
  auto grouped = dyn_cast<nn::DequantizeGroupedOp>(stored);
  if (!grouped || !describeGroups(grouped, weights.transposed, weights.k, weights.n, weights))
    return false;
  bool isNarrow = grouped.getBits() <= 4, isUnsigned = nn::isUnsigned(Emitter::elementType(grouped.getInput()));
  format.values = isNarrow ? GemvFormat::Q4 : GemvFormat::Q8;
  plan.product.kernel = ajour_find_kernel(isNarrow ? AJOUR_KERNEL_gemv_f32_q4 : AJOUR_KERNEL_gemv_f32_q8, level);
  // A matrix of one group is padded; other groups must be whole steps.
  int64_t step = encoding::gemvStep(format.values);
  if (format.group >= weights.k)
    format.group = llvm::alignTo(weights.k, step);
  if (!plan.product.kernel || format.group % step != 0)
    return false;
  format.halfScales = Emitter::elementType(grouped.getScales()).isF16();
  // The code of a signed weight without zero points is shifted so that 0 lies in the middle.
  format.zeroPoints = grouped.getZeroPoints() || isUnsigned;
  if (Value zeros = grouped.getZeroPoints()) {
    if (!isa<IntegerType>(Emitter::elementType(zeros)))
      return false;
    weights.zeroPoints = *constantArgument(zeros);
  }
  weights.scales = *constantArgument(grouped.getScales());
  format.signed8 = format.values == GemvFormat::Q8 && plan.product.kernel->rhs == AJOUR_I8 && !format.zeroPoints;
  return true;
}

/// Constant weights whose zeros a kernel skips, if that is expected to be faster.
bool DispatchLowering::planSparseWeights(GemvPlan &plan, nn::MatmulOp op, PackSpec &weights) {
  std::optional<WeightUse> use = getWeightUse(op);
  std::optional<int64_t> rows = known(plan.product.rows);
  if (!use || !rows || *rows < 1 || *rows > callRows || !constantArgument(op.getRhs()))
    return false;
  KernelChoice choice = selectKernel(*use, *rows, level);
  if (choice.family != KernelFamily::GemvC4n && choice.family != KernelFamily::GemvColumns)
    return false;
  bool is8 = use->lhs != AJOUR_F32;
  // What an input that is skipped would add is 0 only where the zero point of the weights is.
  int32_t shift = nn::isUnsigned(Emitter::elementType(op.getRhs())) ? -128 : 0;
  ArrayRef<int32_t> zeroPoints = op.getRhsZeroPoints();
  if (is8 && (zeroPoints.empty() ? shift != 0 : llvm::any_of(zeroPoints, [&](int32_t z) { return z + shift != 0; })))
    return false;
  GemvFormat &format = weights.gemv;
  format.values = is8 ? GemvFormat::I8 : GemvFormat::F32;
  format.patterns = AJOUR_GEMV_ROWS / choice.group;
  format.structure = GemvFormat::Columns;
  if (is8 && choice.family == KernelFamily::GemvC4n) {
    format.structure = GemvFormat::C4n;
    format.kept = 4 - use->encoding.structure.pruned.front();
  }
  const ajour_kernel_row *kernel = ajour_find_kernel(is8 ? AJOUR_KERNEL_gemv_8bit : AJOUR_KERNEL_gemv_f32, level);
  plan.compress = ajour_find_kernel(!is8                                  ? AJOUR_KERNEL_compress_f32
                                    : format.structure == GemvFormat::C4n ? AJOUR_KERNEL_compress_c4_8bit
                                                                          : AJOUR_KERNEL_compress_8bit,
                                    level);
  if (!kernel || !plan.compress ||
      !planZeroPoints(plan.product, op.getLhs(), op.getRhs(), op.getBias(), op.getLhsZeroPoint(), zeroPoints, weights))
    return false;
  // Types, zero points and bias are those of the dense product; the weights are packed in another way.
  plan.product.kernel = kernel;
  PackSpec &pack = lowered.packs[plan.product.weightsPack];
  pack.kind = PackSpec::Gemv;
  pack.nr = pack.kr = 0;
  return true;
}

std::optional<GemvPlan> DispatchLowering::planGemv(nn::MatmulOp op) {
  nn::Dims lhs = nn::getDims(op.getLhs()), rhs = nn::getDims(op.getRhs());
  if (rhs.size() != 2 || op.getTransposeLhs())
    return std::nullopt;
  auto k = nn::getConstant(lhs.back()), n = nn::getConstant(nn::getDims(op.getResult()).back());
  if (!k || !n || *k == 0 || *n == 0)
    return std::nullopt;
  GemvPlan plan{};
  plan.product.root = op;
  if (!planLhs(plan.product, op.getLhs()))
    return std::nullopt;
  plan.product.result = op.getResult();
  plan.product.k = *k;
  plan.product.n = *n;
  plan.product.rows = nn::numElements(ArrayRef(lhs).drop_back(), context);
  PackSpec weights{};
  weights.kind = PackSpec::Gemv;
  weights.k = *k;
  weights.n = *n;
  weights.transposed = op.getTransposeRhs();
  // Many rows: weights are unpacked into panels once, for the dense kernel.
  std::optional<int64_t> rows = known(plan.product.rows);
  bool hasManyRows = rows && *rows > mostStoredRows && storedForm(op.getRhs());
  if (!hasManyRows && planStoredWeights(plan, op, weights)) {
    plan.product.bias = op.getBias();
    plan.product.weightsPack = addPack(weights);
  } else if (!planSparseWeights(plan, op, weights)) {
    return std::nullopt;
  }
  plan.format = weights.gemv;
  plan.sizes = encoding::gemvSizes(plan.format, *k, *n);
  return plan;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// Elements from row to row of what the patterns of a block keep, if they keep everything.
static int64_t keptStride(const GemvFormat &format, int64_t k) { return llvm::alignTo(k, 64) * format.patterns; }

/// Copies all rows into scratch, `stride` elements apart, with zeros behind each.
void DispatchLowering::copyPadded(const GemmPlan &product, int64_t stride) {
  nn::Dims dims = nn::getDims(product.lhs), rowDims(dims.begin(), dims.end() - 1);
  Type type = lhsType(product);
  e->loop(e->i64(0), e->size(product.rows), [&](Value r) {
    Index prefix = e->delinearize(r, rowDims);
    Value to = e->mul(r, e->i64(stride));
    e->loop(e->i64(0), e->i64(product.k), [&](Value p) {
      Index index = prefix;
      index.push_back(p);
      e->storeAt(e->element(product.lhs, index), scratch, e->add(to, p), type);
    });
    e->loop(e->i64(product.k), e->i64(stride),
            [&](Value p) { e->storeAt(e->constant(type, 0), scratch, e->add(to, p), type); });
  });
}

/// One call of the kernel: `block` points at the values.
void DispatchLowering::callGemv(const GemvPlan &plan, Value lhs, Value lda, Value block, Value groupKept, Value acc,
                                Value rows) {
  const GemvFormat &format = plan.format;
  SmallVector<Value> operands = {lhs, lda, block, acc, rows, e->i64(format.patterns)};
  if (isQuantized(format)) {
    int64_t flags = (format.halfScales ? 0 : AJOUR_GEMV_F32_SCALES) | (format.zeroPoints ? AJOUR_GEMV_ZERO_POINTS : 0);
    operands.append({e->i64(plan.sizes.groups), groupKept, e->i64(flags)});
  } else {
    operands.push_back(groupKept);
  }
  callKernel(plan.product.kernel->symbol, operands);
}

/// Puts together what each pattern of a block keeps of a row. `target` has room for all patterns, and behind that as
/// much again.
void DispatchLowering::keepColumns(const GemvPlan &plan, Value block, Value groupKept, Value row, Value target) {
  const GemvFormat &format = plan.format;
  bool is8 = plan.product.kernel->lhs != AJOUR_F32;
  Type i8 = IntegerType::get(context, 8), type = is8 ? i8 : Type(Float32Type::get(context));
  int64_t k = plan.product.k, patterns = format.patterns;
  Value flip = e->i64(plan.product.flip);
  if (format.structure == GemvFormat::C4n) {
    callKernel(plan.compress->symbol,
               {row, block, target, e->i64(llvm::alignTo(k, 64)), e->i64(format.kept), e->i64(patterns), flip});
    return;
  }
  int64_t columns = llvm::alignTo(k, 8), stride = keptStride(format, k) / patterns;
  Value apart = patterns == 1 ? target : e->pointer(target, e->i64(patterns * stride), type);
  for (int64_t q = 0; q < patterns; ++q) {
    SmallVector<Value> operands = {row,
                                   e->pointer(block, e->i64(q * llvm::alignTo(k, 64) / 8), i8),
                                   e->pointer(apart, e->i64(q * stride), type),
                                   e->i64(1),
                                   e->i64(columns),
                                   groupKept,
                                   e->i64(0)};
    if (is8)
      operands.push_back(flip);
    callKernel(plan.compress->symbol, operands);
  }
  if (patterns > 1) {
    int64_t wordElements = is8 ? 4 : 1;
    callKernel("ajour_interleave_words", {apart, e->i64(stride / wordElements), target, e->i64(patterns),
                                          e->div(groupKept, e->i64(wordElements))});
  }
}

void DispatchLowering::lowerGemv(const GemvPlan &plan) {
  const GemmPlan &product = plan.product;
  const GemvFormat &format = plan.format;
  Type i8 = IntegerType::get(context, 8), i64 = IntegerType::get(context, 64), type = lhsType(product);
  std::optional<int64_t> rows = known(product.rows);
  int64_t elementSize = product.kernel->lhs == AJOUR_F32 ? 4 : 1;
  int64_t blocksPerItem = std::max<int64_t>(1, llvm::divideCeil(plan.sizes.blocks, wantedGemvItems));
  // Rows that are not stored are gathered; where the last group is not whole they are copied so that zeros follow: any
  // number times an absent weight of 0 would do, but not a NaN.
  int64_t stride = plan.compress ? keptStride(format, product.k) : plan.sizes.groups * plan.sizes.groupKept;
  int64_t copyStride = plan.compress ? llvm::alignTo(product.k, 64) : stride;
  bool copies = !product.source || (!plan.compress && stride != product.k);
  AffineExpr copied = copies ? product.rows * (copyStride * elementSize) : getAffineConstantExpr(0, context);
  if (plan.compress)
    lowered.scratchBytes = copied + (*rows + 1) * stride * elementSize + AJOUR_BUFFER_SLACK;
  else if (copies)
    lowered.scratchBytes = copied + AJOUR_BUFFER_SLACK;
  if (copies)
    lowered.copyKind = product.source ? "rows" : "gather";

  items(getAffineConstantExpr(llvm::divideCeil(plan.sizes.blocks, blocksPerItem), context), [&](Value item) {
    Value source, sourceStride = e->i64(copies ? copyStride : product.pixelStride);
    if (copies) {
      copyPadded(product, copyStride);
      source = scratch;
    } else {
      source = e->pointer(e->buffer(product.source), e->i64(product.offset), type);
    }
    Value lhs = source, lda = sourceStride;
    if (plan.compress) {
      lhs = copies ? e->pointer(scratch, e->i64(*rows * copyStride), type) : scratch;
      lda = e->i64(stride);
    }
    Value acc = e->frameArray(accType(product), callRows * AJOUR_GEMV_ROWS);
    Value first = e->mul(item, e->i64(blocksPerItem));
    Value last = e->min(e->i64(plan.sizes.blocks), e->add(first, e->i64(blocksPerItem)));
    Value packed = operandPointer(OperandSpec::Packed, product.weightsPack);
    e->loop(first, last, [&](Value block) {
      Value offset = e->mul(block, e->i64(plan.sizes.blockBytes)), groupKept = e->i64(plan.sizes.groupKept);
      if (format.structure == GemvFormat::Columns) {
        offset = e->loadAt(packed, e->mul(block, e->i64(2)), i64);
        groupKept = e->loadAt(packed, e->add(e->mul(block, e->i64(2)), e->i64(1)), i64);
      }
      Value codes = e->pointer(packed, offset, i8), values = e->pointer(codes, e->i64(plan.sizes.codeBytes), i8);
      if (plan.compress) {
        e->loop(e->i64(0), e->i64(*rows), [&](Value row) {
          keepColumns(plan, codes, groupKept, e->pointer(source, e->mul(row, sourceStride), type),
                      e->pointer(lhs, e->mul(row, lda), type));
        });
      }
      auto call = [&](Value row, Value count) {
        callGemv(plan, e->pointer(lhs, e->mul(row, lda), type), lda, values, groupKept, acc, count);
        emitTileEpilogue(product, {acc}, Value(), block, row, count);
      };
      int64_t whole = rows ? *rows / callRows * callRows : 0;
      Value rowCount = e->size(product.rows);
      Value wholeRows = rows ? e->i64(whole) : e->mul(e->div(rowCount, e->i64(callRows)), e->i64(callRows));
      if (!rows || whole > 0)
        e->loop(e->i64(0), wholeRows, [&](Value row) { call(row, e->i64(callRows)); }, callRows);
      if (rows && *rows > whole)
        call(wholeRows, e->i64(*rows - whole));
      if (!rows)
        for (int64_t rest = 1; rest < callRows; ++rest)
          e->ifThenElse(
              e->compare(arith::CmpIPredicate::eq, e->sub(rowCount, wholeRows), e->i64(rest)),
              [&] { call(wholeRows, e->i64(rest)); }, [] {});
    });
  });
}

} // namespace ajour::loops
