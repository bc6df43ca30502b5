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
#include "ajour/Dialect/NN/Weights.h"
#include "ajour/Kernels/GemvBlocks.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace ajour::loops {

using encoding::GemvFormat;

/// Rows of one kernel call.
static constexpr int64_t callRows = 4;
/// Work items that a product should have at most, and blocks that an item should have if there are so many items.
static constexpr int64_t mostGemvItems = 32, wantedItemBlocks = 8, wantedGemvItems = 16;
static_assert(AJOUR_GEMV_STREAMS <= callRows, "blocks of one call share the room of rows of one call");

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

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

/// How weights of so many bits are packed; groups of other lengths than whole steps go with wider values. `group` 0: one group.
static GemvFormat::Values valuesOf(int64_t bits, bool isRounded, int64_t group) {
  if (!isRounded)
    return bits <= 4 ? GemvFormat::Q4 : GemvFormat::Q8;
  for (auto values : {GemvFormat::Q2, GemvFormat::Q4, GemvFormat::Q5, GemvFormat::Q6})
    if (bits <= encoding::gemvBits(values) && group % encoding::gemvStep(values) == 0)
      return values;
  return GemvFormat::Q8;
}

static ajour_kernel_op kernelOf(GemvFormat::Values values, bool isRounded) {
  switch (values) {
  case GemvFormat::Q2:
    return AJOUR_KERNEL_gemv_q2;
  case GemvFormat::Q4:
    return isRounded ? AJOUR_KERNEL_gemv_q4 : AJOUR_KERNEL_gemv_f32_q4;
  case GemvFormat::Q5:
    return AJOUR_KERNEL_gemv_q5;
  case GemvFormat::Q6:
    return AJOUR_KERNEL_gemv_q6;
  default:
    return isRounded ? AJOUR_KERNEL_gemv_q8 : AJOUR_KERNEL_gemv_f32_q8;
  }
}

/// How a weight that is dequantised from constants is packed for the kernels of few rows, of which the one that fits is returned;
/// null: there is none.
const ajour_kernel_row *DispatchLowering::planStoredForm(Operation *stored, bool isRounded, PackSpec &weights) {
  for (Value operand : stored->getOperands()) {
    auto isConstant = [&](Value part) { return constantArgument(part).has_value(); };
    if (!isConstant(operand) && !nn::isCodedParameter(stored, operand, isConstant))
      return nullptr;
  }
  weights.weights = *constantArgument(stored->getOperand(0));
  GemvFormat &format = weights.gemv;
  if (auto cast = dyn_cast<nn::CastOp>(stored)) {
    if (!Emitter::elementType(cast.getInput()).isF16() || isRounded)
      return nullptr;
    format.values = GemvFormat::F16;
    return ajour_find_kernel(AJOUR_KERNEL_gemv_f16, level);
  }
  auto grouped = dyn_cast<nn::DequantizeGroupedOp>(stored);
  if (!grouped || !describeGroups(grouped, weights.transposed, weights.k, weights.n, weights))
    return nullptr;
  format.values = valuesOf(grouped.getBits(), isRounded, format.group < weights.k ? format.group : 0);
  const ajour_kernel_row *kernel = ajour_find_kernel(kernelOf(format.values, isRounded), level);
  // A matrix of one group is padded; other groups must be whole steps.
  int64_t step = encoding::gemvStep(format.values);
  if (format.group >= weights.k)
    format.group = llvm::alignTo(weights.k, step);
  if (!kernel || format.group % step != 0 || !planParameters(grouped, weights, isRounded))
    return nullptr;
  format.signed8 = format.values == GemvFormat::Q8 && kernel->rhs == AJOUR_I8 && !format.zeroPoints;
  return format.signed8 && format.isUnsigned ? nullptr : kernel;
}

/// Weights that the callee dequantises from constants.
bool DispatchLowering::planStoredWeights(GemvPlan &plan, nn::MatmulOp op, PackSpec &weights) {
  Operation *stored = op.getRhs().getDefiningOp();
  if (!stored || !Emitter::elementType(op.getLhs()).isF32() || !Emitter::elementType(op.getRhs()).isF32())
    return false;
  plan.lhsGroup = op.getLhsGroup();
  plan.lhsHalfScales = op.getLhsHalfScales();
  plan.product.kernel = planStoredForm(stored, plan.lhsGroup > 0, weights);
  if (!plan.product.kernel)
    return false;
  if (plan.lhsGroup == 0) {
    storedForms.insert(stored);
    return true;
  }
  // The kernel has one scale of the lhs for each group (or run of them) of the weights.
  const int64_t shared = weights.gemv.group * std::max<int64_t>(weights.gemv.run, 1);
  if (plan.lhsGroup < weights.k ? shared != plan.lhsGroup : shared < weights.k)
    return false;
  plan.lhsGroup = shared;
  storedForms.insert(stored);
  planStructure(plan, op, weights);
  return true;
}

/// Scales, zero points and offsets of a weight as its kernel takes them.
bool DispatchLowering::planParameters(nn::DequantizeGroupedOp op, PackSpec &weights, bool isRounded) {
  GemvFormat &format = weights.gemv;
  bool isUnsigned = nn::isUnsigned(Emitter::elementType(op.getInput()));
  Value zeros = op.getZeroPoints();
  if (auto codes = op.getScales().getDefiningOp<nn::DequantizeGroupedOp>()) {
    if (!isRounded || (zeros && !op.getOffsets()) || !planCodedScales(op, weights))
      return false;
    format.offsets = bool(zeros);
    format.isUnsigned = isUnsigned;
    return true;
  }
  format.halfScales = Emitter::elementType(op.getScales()).isF16();
  weights.scales = *constantArgument(op.getScales());
  if (op.getOffsets()) {
    if (!isRounded || !constantArgument(zeros) || Emitter::elementType(zeros) != Emitter::elementType(op.getScales()))
      return false;
    weights.offsets = *constantArgument(zeros);
    format.offsets = true;
    format.isUnsigned = isUnsigned;
    return true;
  }
  if (zeros) {
    if (!isa<IntegerType>(Emitter::elementType(zeros)))
      return false;
    weights.zeroPoints = *constantArgument(zeros);
  }
  // The code of a signed weight without zero points is shifted so that 0 lies in the middle.
  format.isUnsigned = isRounded && isUnsigned && !zeros;
  format.zeroPoints = zeros || (isUnsigned && !isRounded);
  return true;
}

/// Scales, and offsets if there are any, that are codes with scales of longer groups.
bool DispatchLowering::planCodedScales(nn::DequantizeGroupedOp op, PackSpec &weights) {
  GemvFormat &format = weights.gemv;
  auto scales = op.getScales().getDefiningOp<nn::DequantizeGroupedOp>();
  auto offsets = op.getZeroPoints() ? op.getZeroPoints().getDefiningOp<nn::DequantizeGroupedOp>() : nn::DequantizeGroupedOp();
  if (!weights.transposed || op.getAxis() != 1 || weights.k % format.group != 0 || (op.getZeroPoints() && !offsets))
    return false;
  for (nn::DequantizeGroupedOp codes : {scales, offsets}) {
    if (!codes)
      continue;
    // What is below 128 is the same with and without a sign.
    bool fits = !nn::isUnsigned(Emitter::elementType(codes.getInput())) || codes.getBits() < 8;
    Type element = Emitter::elementType(codes.getScales());
    if (!fits || codes.getZeroPoints() || codes.getAxis() != 1 || codes.getGroup() != scales.getGroup() ||
        element != Emitter::elementType(scales.getScales()) || (!element.isF16() && !element.isF32()) ||
        nn::getConstant(nn::getDims(codes.getScales())[0]) != weights.n)
      return false;
  }
  format.run = scales.getGroup();
  if (weights.k % (format.run * format.group) != 0 || nn::getConstant(nn::getDims(scales.getInput())[0]) != weights.n)
    return false;
  format.halfScales = Emitter::elementType(scales.getScales()).isF16();
  weights.scaleCodes = *constantArgument(scales.getInput());
  weights.scales = *constantArgument(scales.getScales());
  if (offsets) {
    weights.offsetCodes = *constantArgument(offsets.getInput());
    weights.offsets = *constantArgument(offsets.getScales());
  }
  return true;
}

/// Lets the kernel of stored weights skip what is zero in C4^n, if that is expected to be faster for few rows.
void DispatchLowering::planStructure(GemvPlan &plan, nn::MatmulOp op, PackSpec &weights) {
  GemvFormat &format = weights.gemv;
  std::optional<WeightUse> use = getWeightUse(op);
  int64_t rows = known(plan.product.rows).value_or(1);
  if (!use || format.offsets || format.run > 0 || (format.values != GemvFormat::Q8 && format.values != GemvFormat::Q4))
    return;
  KernelChoice choice = selectKernel(*use, std::clamp<int64_t>(rows, 1, callRows), level);
  if (choice.family != KernelFamily::GemvC4n)
    return;
  const int64_t kept = 4 - use->encoding.structure.pruned.front();
  const bool isWhole = format.group >= weights.k || (format.group % 4 == 0 && format.group / 4 * kept % encoding::gemvStep(format.values) == 0);
  const ajour_kernel_row *compress = ajour_find_kernel(AJOUR_KERNEL_compress_c4_8bit, level);
  if (!isWhole || kept < 1 || !compress)
    return;
  format.structure = GemvFormat::C4n;
  format.kept = kept;
  format.patterns = AJOUR_GEMV_ROWS / choice.group;
  plan.compress = compress;
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
  bool hasManyRows = rows && *rows > mostStoredRows && op.getLhsGroup() == 0 && storedForm(op.getRhs());
  if (!hasManyRows && planStoredWeights(plan, op, weights)) {
    plan.product.bias = op.getBias();
    plan.product.weightsPack = addPack(weights);
  } else if (op.getLhsGroup() > 0 || !planSparseWeights(plan, op, weights)) {
    return std::nullopt;
  }
  plan.format = weights.gemv;
  plan.sizes = encoding::gemvSizes(plan.format, *k, *n);
  // A product with patterns of an lhs as it is has its rows padded when they are put together, and their stride does not matter.
  plan.copiesLhs = !plan.product.source || (!(plan.compress && plan.lhsGroup == 0) && copiedElements(plan) != *k);
  return plan;
}

/// Elements of a row that is copied.
int64_t DispatchLowering::copiedElements(const GemvPlan &plan) {
  if (plan.lhsGroup > 0)
    return plan.sizes.groups * plan.format.group;
  return plan.compress ? llvm::alignTo(plan.product.k, 64) : plan.sizes.groups * plan.sizes.groupKept;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// Elements from row to row of what the patterns of a block keep, if they keep everything.
static int64_t keptStride(const GemvFormat &format, int64_t k) { return llvm::alignTo(k, 64) * format.patterns; }

/// Copies all rows to `target`, `stride` elements apart, with zeros behind each.
void DispatchLowering::copyPadded(const GemmPlan &product, int64_t stride, Type type, Value target) {
  nn::Dims dims = nn::getDims(product.lhs), rowDims(dims.begin(), dims.end() - 1);
  e->loop(e->i64(0), e->size(product.rows), [&](Value r) {
    Index prefix = e->delinearize(r, rowDims);
    Value to = e->mul(r, e->i64(stride));
    e->loop(e->i64(0), e->i64(product.k), [&](Value p) {
      Index index = prefix;
      index.push_back(p);
      e->storeAt(e->element(product.lhs, index), target, e->add(to, p), type);
    });
    e->loop(e->i64(product.k), e->i64(stride),
            [&](Value p) { e->storeAt(e->constant(type, 0), target, e->add(to, p), type); });
  });
}

/// Bytes of a row of an lhs that is rounded, and the numbers of its scales and sums.
static RoundedLhs sizesOfRounded(const GemvPlan &plan) {
  RoundedLhs lhs;
  lhs.stride = llvm::alignTo(plan.sizes.groups * plan.format.group, 64);
  lhs.scaleCount = plan.sizes.groups / std::max<int64_t>(plan.format.run, 1);
  lhs.sumCount = plan.sizes.groups;
  return lhs;
}

/// Rounds all rows of `source` to 8 bits into `target`.
RoundedLhs DispatchLowering::roundLhs(const GemvPlan &plan, Value source, Value sourceStride, Value target) {
  Type i8 = IntegerType::get(context, 8), f16 = Float16Type::get(context), f32 = Float32Type::get(context);
  RoundedLhs lhs = sizesOfRounded(plan);
  Value rows = e->size(plan.product.rows);
  lhs.bytes = target;
  lhs.scales = e->pointer(lhs.bytes, e->mul(rows, e->i64(lhs.stride)), i8);
  lhs.sums = e->pointer(lhs.scales, e->mul(rows, e->i64(lhs.scaleCount * 4)), i8);
  // Contents of scratch stay from call to call of a run, and its first word is 0 before the first.
  Type i64 = IntegerType::get(context, 64);
  Value isFirst = e->compare(arith::CmpIPredicate::eq, e->loadAt(scratch, e->i64(0), i64), e->i64(0));
  e->ifThenElse(isFirst, [&] {
    e->storeAt(e->i64(1), scratch, e->i64(0), i64);
    if (!plan.product.source || plan.copiesLhs)
      copyPadded(plan.product, plan.sizes.groups * plan.format.group, f32, source);
    e->loop(e->i64(0), rows, [&](Value row) {
      Value bytes = e->pointer(lhs.bytes, e->mul(row, e->i64(lhs.stride)), i8);
      Value scales = e->pointer(lhs.scales, e->mul(row, e->i64(lhs.scaleCount)), f32);
      callKernel("ajour_quantize_groups_8bit", {e->pointer(source, e->mul(row, sourceStride), f32), bytes, scales,
                                                e->i64(lhs.scaleCount), e->i64(plan.lhsGroup)});
      if (plan.lhsHalfScales)
        e->loop(e->i64(0), e->i64(lhs.scaleCount), [&](Value g) {
          Value rounded = e->convert(e->convert(e->loadAt(scales, g, f32), f32, f16), f16, f32);
          e->storeAt(rounded, scales, g, f32);
        });
      if (!plan.compress)
        callKernel("ajour_sum_groups_8bit", {bytes, e->pointer(lhs.sums, e->mul(row, e->i64(lhs.sumCount)), f32),
                                             e->i64(lhs.sumCount), e->i64(plan.format.group)});
    });
  }, [] {});
  return lhs;
}

int64_t gemvFlags(const GemvFormat &format) {
  return (format.halfScales ? 0 : AJOUR_GEMV_F32_SCALES) | (format.zeroPoints ? AJOUR_GEMV_ZERO_POINTS : 0) |
         (format.offsets ? AJOUR_GEMV_OFFSETS : 0) | (format.isUnsigned ? AJOUR_GEMV_UNSIGNED : 0) |
         format.run << AJOUR_GEMV_RUN_SHIFT;
}

/// What the blocks of a work item share.
struct DispatchLowering::GemvOperands {
  Value rows, rowStride; ///< of the lhs as the kernel (or what keeps columns) reads it
  Type type;             ///< of its elements
  RoundedLhs rounded;    ///< of an lhs that was rounded
  Value kept;            ///< room for what the patterns of a block keep of the rows of one call
  int64_t keptElements;  ///< from one such row to the next
  Value packed, acc;
};

/// One call of the kernel for `rows` rows from `row` on; `block` points at the values.
void DispatchLowering::callGemv(const GemvPlan &plan, const GemvOperands &shared, Value lhs, Value lda, Value row, Value block,
                                Value groupKept, Value rows, Value flags) {
  const GemvFormat &format = plan.format;
  SmallVector<Value> operands = {lhs, lda};
  if (plan.lhsGroup > 0) {
    const RoundedLhs &rounded = shared.rounded;
    Type f32 = Float32Type::get(context);
    operands.push_back(e->pointer(rounded.scales, e->mul(row, e->i64(rounded.scaleCount)), f32));
    operands.push_back(plan.compress ? LLVM::ZeroOp::create(e->b, e->loc, scratch.getType()).getResult()
                                     : e->pointer(rounded.sums, e->mul(row, e->i64(rounded.sumCount)), f32));
  }
  operands.append({block, shared.acc, rows, e->i64(format.patterns)});
  if (encoding::isQuantized(format)) {
    operands.append({e->i64(plan.sizes.groups), groupKept, flags});
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

/// Whether one row meets AJOUR_GEMV_STREAMS blocks at once. On x86-64, where this was seen to be faster.
bool DispatchLowering::readsStreams(const GemvPlan &plan) {
  std::optional<int64_t> rows = known(plan.product.rows);
  return plan.lhsGroup > 0 && (!rows || *rows == 1) && plan.sizes.blocks >= 4 * AJOUR_GEMV_STREAMS && level < AJOUR_LEVEL_neon;
}

/// Blocks of a stream in an item, about `wanted`: streams that cross the boundaries of pages at the same time would all wait.
static int64_t streamBlocks(int64_t wanted, int64_t blockBytes) {
  constexpr int64_t page = 4096, apart = 512;
  for (int64_t count = wanted; count > 0 && count > wanted - 4; --count)
    if (int64_t phase = count * blockBytes % page; phase >= apart && phase <= page - apart)
      return count;
  return wanted;
}

/// The only row and AJOUR_GEMV_STREAMS blocks, `apart` blocks from one to the next: each is followed by the next of its stream.
void DispatchLowering::lowerGemvStreams(const GemvPlan &plan, const GemvOperands &operands, Value block, Value apart) {
  const GemmPlan &product = plan.product;
  Type i8 = IntegerType::get(context, 8);
  Value row = e->i64(0), groupKept = e->i64(plan.sizes.groupKept), blockBytes = e->i64(plan.sizes.blockBytes);
  Value codes = e->pointer(operands.packed, e->mul(block, blockBytes), i8), stride = e->mul(apart, blockBytes);
  Value lhs = plan.compress ? operands.kept : operands.rows, lda = e->i64(plan.compress ? operands.keptElements : 0);
  if (plan.compress)
    e->loop(e->i64(0), e->i64(AJOUR_GEMV_STREAMS), [&](Value b) {
      keepColumns(plan, e->pointer(codes, e->mul(b, stride), i8), groupKept, operands.rows,
                  e->pointer(operands.kept, e->mul(b, lda), operands.type));
    });
  // The stride stands above the other flags, which are constants.
  const int64_t one = ajour_gemv_many_blocks(0, 1) - ajour_gemv_many_blocks(0, 0);
  Value flags = arith::OrIOp::create(e->b, e->loc, e->i64(ajour_gemv_many_blocks(gemvFlags(plan.format), 0)),
                                     e->mul(stride, e->i64(one)));
  callGemv(plan, operands, lhs, lda, row, e->pointer(codes, e->i64(plan.sizes.codeBytes), i8), groupKept, e->i64(1), flags);
  e->loop(e->i64(0), e->i64(AJOUR_GEMV_STREAMS), [&](Value b) {
    Value acc = e->pointer(operands.acc, e->mul(b, e->i64(AJOUR_GEMV_ROWS)), accType(product));
    emitTileEpilogue(product, {acc}, Value(), e->add(block, e->mul(b, apart)), row, e->i64(1));
  });
}

/// All rows and one block.
void DispatchLowering::lowerGemvRows(const GemvPlan &plan, const GemvOperands &operands, Value block) {
  const GemmPlan &product = plan.product;
  Type i8 = IntegerType::get(context, 8), i64 = IntegerType::get(context, 64);
  std::optional<int64_t> rows = known(product.rows);
  Value offset = e->mul(block, e->i64(plan.sizes.blockBytes)), groupKept = e->i64(plan.sizes.groupKept);
  if (plan.format.structure == GemvFormat::Columns) {
    offset = e->loadAt(operands.packed, e->mul(block, e->i64(2)), i64);
    groupKept = e->loadAt(operands.packed, e->add(e->mul(block, e->i64(2)), e->i64(1)), i64);
  }
  Value codes = e->pointer(operands.packed, offset, i8), values = e->pointer(codes, e->i64(plan.sizes.codeBytes), i8);
  auto call = [&](Value row, Value count) {
    auto rowAt = [&](Value r) { return e->pointer(operands.rows, e->mul(r, operands.rowStride), operands.type); };
    Value lhs = plan.compress ? operands.kept : rowAt(row);
    Value lda = plan.compress ? e->i64(operands.keptElements) : operands.rowStride;
    if (plan.compress)
      e->loop(e->i64(0), count, [&](Value r) {
        keepColumns(plan, codes, groupKept, rowAt(e->add(row, r)), e->pointer(operands.kept, e->mul(r, lda), operands.type));
      });
    callGemv(plan, operands, lhs, lda, row, values, groupKept, count, e->i64(gemvFlags(plan.format)));
    emitTileEpilogue(product, {operands.acc}, Value(), block, row, count);
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
}

void DispatchLowering::lowerGemv(const GemvPlan &plan) {
  const GemmPlan &product = plan.product;
  const GemvFormat &format = plan.format;
  Type i8 = IntegerType::get(context, 8), f32 = Float32Type::get(context);
  Type type = lhsType(product), sourceType = plan.lhsGroup > 0 ? f32 : type;
  std::optional<int64_t> rows = known(product.rows);
  int64_t sourceBytes = nn::elementBytes(sourceType), elementBytes = nn::elementBytes(type);
  const int64_t blocks = plan.sizes.blocks;
  int64_t blocksPerItem = std::max<int64_t>(llvm::divideCeil(blocks, mostGemvItems),
                                            std::min<int64_t>(wantedItemBlocks, llvm::divideCeil(blocks, wantedGemvItems)));
  const bool streams = readsStreams(plan);
  if (streams)
    blocksPerItem = AJOUR_GEMV_STREAMS * streamBlocks(llvm::divideCeil(blocksPerItem, AJOUR_GEMV_STREAMS), plan.sizes.blockBytes);
  // Rows that are not stored are gathered; where the last group is not whole they are copied so that zeros follow: any
  // number times an absent weight of 0 would do, but not a NaN. Scratch holds the copies, rows of 8 bits with their
  // scales and sums, and what the patterns of a block keep of the rows of one call.
  int64_t copyStride = copiedElements(plan), keptElements = plan.compress ? keptStride(format, product.k) : 0;
  AffineExpr mostRows = rows || !itemsBefore ? product.rows : getAffineConstantExpr(mostFewRows, context);
  AffineExpr zero = getAffineConstantExpr(0, context), flag = getAffineConstantExpr(plan.lhsGroup > 0 ? 64 : 0, context);
  AffineExpr copied = plan.copiesLhs ? mostRows * llvm::alignTo(copyStride * sourceBytes, 64) : zero, rounded = zero;
  if (plan.lhsGroup > 0) {
    RoundedLhs lhs = sizesOfRounded(plan);
    rounded = mostRows * llvm::alignTo(lhs.stride + 4 * (lhs.scaleCount + lhs.sumCount), 64) + 64;
  }
  if (plan.compress || plan.copiesLhs || plan.lhsGroup > 0)
    lowered.scratchBytes = flag + copied + rounded + (callRows + 1) * keptElements * elementBytes + AJOUR_BUFFER_SLACK;
  if (plan.copiesLhs) {
    lowered.copyKind = product.source ? "rows" : "gather";
    lowered.copyBytes = copied;
  }

  Value copyTarget = e->pointer(scratch, e->size(flag), i8), roundTarget = e->pointer(copyTarget, e->size(copied), i8);
  Value kept = e->pointer(roundTarget, e->size(rounded), i8);
  GemvOperands operands;
  operands.type = type;
  operands.kept = kept;
  operands.keptElements = keptElements;
  operands.rows = copyTarget;
  operands.rowStride = e->i64(plan.copiesLhs ? copyStride : product.pixelStride);
  if (!plan.copiesLhs)
    operands.rows = e->pointer(e->buffer(product.source), e->i64(product.offset), sourceType);
  if (plan.lhsGroup > 0) {
    operands.rounded = roundLhs(plan, operands.rows, operands.rowStride, roundTarget);
    operands.rows = operands.rounded.bytes;
    operands.rowStride = e->i64(operands.rounded.stride);
  }

  items(getAffineConstantExpr(llvm::divideCeil(blocks, blocksPerItem), context), [&](Value item) {
    if (plan.copiesLhs && plan.lhsGroup == 0)
      copyPadded(product, copyStride, type, copyTarget);
    operands.acc = e->frameArray(accType(product), callRows * AJOUR_GEMV_ROWS);
    operands.packed = operandPointer(OperandSpec::Packed, product.weightsPack);
    Value first = e->mul(item, e->i64(blocksPerItem));
    Value last = e->min(e->i64(blocks), e->add(first, e->i64(blocksPerItem)));
    if (streams) {
      Value isOne = e->compare(arith::CmpIPredicate::eq, e->size(product.rows), e->i64(1));
      Value apart = e->select(isOne, e->div(e->sub(last, first), e->i64(AJOUR_GEMV_STREAMS)), e->i64(0));
      e->loop(first, e->add(first, apart), [&](Value block) { lowerGemvStreams(plan, operands, block, apart); });
      first = e->add(first, e->mul(apart, e->i64(AJOUR_GEMV_STREAMS)));
    }
    e->loop(first, last, [&](Value block) { lowerGemvRows(plan, operands, block); });
  });
}

} // namespace ajour::loops
