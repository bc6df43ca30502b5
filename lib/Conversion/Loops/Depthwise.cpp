//===- Depthwise.cpp - depthwise convolution by micro-kernel --------------------------===//
#include "Lowering.h"

using namespace mlir;

namespace ajour::loops {

/// Neighbouring output pixels of one kernel call.
static constexpr int64_t tilePixels = 16;

/// Whether every output row has at least one tap inside the input, which the kernel needs.
static bool everyRowHasTaps(nn::ConvOp op) {
  nn::Dims in = nn::getDims(op.getInput()), out = nn::getDims(op.getResult());
  int64_t window = cast<RankedTensorType>(op.getFilter().getType()).getDimSize(1);
  int64_t dilation = op.getDilations()[0], stride = op.getStrides()[0], low = op.getPadsLow()[0];
  auto size = nn::getConstant(in[1]), rows = nn::getConstant(out[1]);
  if (!size || !rows)
    return dilation == 1 && low < window && op.getPadsHigh()[0] < window;
  for (int64_t y = 0; y < *rows; ++y) {
    bool any = false;
    for (int64_t tap = 0; tap < window && !any; ++tap) {
      int64_t x = y * stride - low + tap * dilation;
      any = x >= 0 && x < *size;
    }
    if (!any)
      return false;
  }
  return true;
}

std::optional<DepthwisePlan> DispatchLowering::planDepthwise(nn::ConvOp op) {
  nn::Dims in = nn::getDims(op.getInput());
  auto filter = cast<RankedTensorType>(op.getFilter().getType());
  auto channels = nn::getConstant(in.back());
  if (in.size() != 4 || !channels || int64_t(op.getGroups()) != *channels || filter.getDimSize(0) != *channels ||
      *channels == 0 || *channels == 1 || !isa<BlockArgument>(op.getInput()) || !constantArgument(op.getFilter()) ||
      !everyRowHasTaps(op))
    return std::nullopt;
  Type lhsType = Emitter::elementType(op.getInput()), rhsType = Emitter::elementType(op.getFilter());
  DepthwisePlan plan{};
  plan.conv = op;
  plan.channels = *channels;
  PackSpec weights{};
  weights.weights = *constantArgument(op.getFilter());
  weights.n = *channels;
  weights.kh = filter.getDimSize(1);
  weights.kw = filter.getDimSize(2);
  if (lhsType.isF32() && rhsType.isF32()) {
    plan.kernel = ajour_find_kernel(AJOUR_KERNEL_dwconv_f32, level);
    weights.kind = PackSpec::DepthwiseF32;
    plan.bias = op.getBias();
  } else if (lhsType.isInteger(8) && rhsType.isInteger(8)) {
    plan.kernel = ajour_find_kernel(AJOUR_KERNEL_dwconv_8bit, level);
    weights.kind = PackSpec::Depthwise8;
  }
  if (!plan.kernel)
    return std::nullopt;
  weights.nr = plan.kernel->nr;
  weights.kr = plan.kernel->kr;
  if (weights.kind == PackSpec::DepthwiseF32) {
    plan.weightsPack = addPack(weights);
    return plan;
  }
  // Signed weights with zero points of 0 only; others take the general form.
  std::optional<unsigned> bias = op.getBias() ? constantArgument(op.getBias()) : std::nullopt;
  if (nn::isUnsigned(rhsType) || llvm::any_of(op.getRhsZeroPoints(), [](int32_t z) { return z != 0; }) ||
      (op.getBias() && (!bias || !Emitter::elementType(op.getBias()).isInteger(32))))
    return std::nullopt;
  bool lhsSigned = !nn::isUnsigned(lhsType), wantsSigned = plan.kernel->lhs == AJOUR_I8;
  plan.flip = lhsSigned == wantsSigned ? 0 : 0x80;
  plan.lhsZeroPoint = int32_t(op.getLhsZeroPoint()) + (lhsSigned == wantsSigned ? 0 : lhsSigned ? 128 : -128);
  weights.lhsZeroPoint = plan.lhsZeroPoint;
  plan.weightsPack = addPack(weights);
  PackSpec biasSpec = weights;
  biasSpec.kind = PackSpec::DepthwiseBias;
  biasSpec.bias = bias ? int(*bias) : -1;
  plan.biasPack = addPack(biasSpec);
  return plan;
}

void DispatchLowering::lowerDepthwise(const DepthwisePlan &plan) {
  canFinishRuns = reorders.empty();
  nn::ConvOp op = plan.conv;
  const ajour_kernel_row &kernel = *plan.kernel;
  bool is8 = kernel.lhs != AJOUR_F32;
  Type i8 = IntegerType::get(context, 8), f32 = Float32Type::get(context), i32 = IntegerType::get(context, 32);
  Type lhsType = is8 ? i8 : f32, accType = is8 ? i32 : f32;
  nn::Dims in = nn::getDims(op.getInput()), out = nn::getDims(op.getResult());
  auto filter = cast<RankedTensorType>(op.getFilter().getType());
  int64_t kh = filter.getDimSize(1), kw = filter.getDimSize(2), nr = kernel.nr, channels = plan.channels;
  int64_t blocks = llvm::divideCeil(channels, nr);
  int64_t packedBlock = llvm::divideCeil(kh, kernel.kr) * kernel.kr * kw * nr;

  items(out[0] * out[1] * blocks, [&](Value item) {
    auto c = [&](int64_t value) { return e->i64(value); };
    Value block = e->rem(item, c(blocks)), outputRow = e->div(item, c(blocks));
    Value image = e->div(outputRow, e->size(out[1])), y = e->rem(outputRow, e->size(out[1]));
    Value height = e->size(in[1]), width = e->size(in[2]);
    Value firstChannel = e->mul(block, c(nr));
    Value count = channels % nr == 0 ? c(nr) : e->min(c(nr), e->sub(c(channels), firstChannel));
    int64_t dilationY = op.getDilations()[0], dilationX = op.getDilations()[1];
    Value origin = e->sub(e->mul(y, c(op.getStrides()[0])), c(op.getPadsLow()[0]));
    auto taps = [&](Value room) {
      return dilationY == 1 ? room : e->b.createOrFold<arith::CeilDivSIOp>(e->loc, room, c(dilationY));
    };
    Value ky0 = e->max(c(0), taps(e->sub(c(0), origin)));
    Value ky1 = e->min(c(kh), taps(e->sub(height, origin)));
    Value sourceRow = e->add(origin, e->mul(ky0, c(dilationY)));
    Value offset = e->mul(e->add(e->mul(image, height), sourceRow), e->mul(width, c(channels)));
    Value source = e->pointer(e->buffer(op.getInput()), e->add(offset, firstChannel), lhsType);
    Value rowStride = e->mul(width, c(channels * dilationY));
    Value weights = e->pointer(operandPointer(OperandSpec::Packed, plan.weightsPack), e->mul(block, c(packedBlock)),
                               lhsType);
    Value acc = e->frameArray(accType, tilePixels * nr);
    e->loop(
        c(0), e->size(out[2]),
        [&](Value x) {
          Value pixels = e->min(c(tilePixels), e->sub(e->size(out[2]), x));
          Value left = e->sub(e->mul(x, c(op.getStrides()[1])), c(op.getPadsLow()[1]));
          SmallVector<Value> operands = {source, c(channels), rowStride, weights, acc, pixels, count, c(kh), c(kw), ky0,
                                         ky1,    left,        width,     c(op.getStrides()[1]), c(dilationX)};
          if (is8) {
            operands.push_back(c(plan.lhsZeroPoint & 0xff));
            operands.push_back(c(plan.flip));
          }
          callKernel(kernel.symbol, operands);
          e->loop(c(0), pixels, [&](Value p) {
            Value tileRow = e->mul(p, c(nr));
            e->loop(c(0), count, [&](Value j) {
              Value channel = e->add(firstChannel, j);
              Value value = e->loadAt(acc, e->add(tileRow, j), accType);
              if (plan.biasPack >= 0)
                value = e->add(value, e->loadAt(operandPointer(OperandSpec::Packed, plan.biasPack), channel, i32));
              if (plan.bias)
                value = arith::AddFOp::create(e->b, e->loc, value, e->element(plan.bias, {channel}));
              e->bindElement(op.getResult(), [=](ArrayRef<Value>) { return value; });
              storeResults({image, y, e->add(x, p), channel});
            });
            finishRun({image, y, e->add(x, p), firstChannel}, count);
          });
        },
        tilePixels);
  });
}

} // namespace ajour::loops
