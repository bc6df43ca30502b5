//===- Attention.cpp - type and checks of attention ----------------------------===//
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

using namespace mlir;
using namespace ajour::nn;

namespace {

class AttentionCheck {
public:
  AttentionCheck(std::optional<Location> loc, AttentionOp::Adaptor op) : loc(loc), op(op) {}

  LogicalResult run(Dims &result) {
    Dims query = getDims(op.getQuery()), key = getDims(op.getKey()), value = getDims(op.getValue());
    size_t rank = query.size();
    if (rank < 3 || key.size() != rank || value.size() != rank)
      return wrong("C1: query, key and value need one rank of at least 3, found ", op.getQuery(), op.getKey(), op.getValue());
    tokens = query[rank - 3], heads = query[rank - 2], rows = key[rank - 3], groups = key[rank - 2];
    leading = Dims(query.begin(), query.end() - 3);
    std::optional<AffineExpr> size = sizeOf("key", op.getKey(), op.getKeyScales());
    std::optional<AffineExpr> width = sizeOf("value", op.getValue(), op.getValueScales());
    if (!size || !width)
      return failure();
    if (*size != query.back() || value[rank - 3] != rows || value[rank - 2] != groups ||
        Dims(key.begin(), key.end() - 3) != leading || Dims(value.begin(), value.end() - 3) != leading)
      return wrong("C1: query [..., T, H, D], key [..., S, K, D] and value [..., S, K, E] do not fit: ", op.getQuery(), op.getKey(), op.getValue());
    std::optional<int64_t> h = getConstant(heads), k = getConstant(groups);
    if (!h || !k || *k == 0 || *h % *k)
      return emitOptionalError(loc, "nn.attention: C2: ", toString({heads}), " query heads are no multiple of ", toString({groups}),
                               " key heads");
    if (failed(checkFloats()) || failed(checkPositions()))
      return failure();
    result = query;
    result.back() = *width;
    return success();
  }

private:
  LogicalResult wrong(const Twine &what, Value a, Value b, Value c) {
    auto text = [](Value v) { return toString(cast<RankedTensorType>(v.getType())); };
    return emitOptionalError(loc, "nn.attention: ", what, text(a), ", ", text(b), ", ", text(c));
  }

  /// How many elements a head has that is stored like this.
  std::optional<AffineExpr> sizeOf(StringRef name, Value stored, Value scales) {
    Type type = cast<RankedTensorType>(stored.getType()).getElementType();
    bool isPacked = type.isUnsignedInteger(8), isQuantized = isPacked || type.isSignlessInteger(8);
    if ((!isQuantized && !type.isF32() && !type.isF16()) || isQuantized != bool(scales)) {
      (void)emitOptionalError(loc, "nn.attention: C4: ", name, " must be f32 or f16, or i8 or ui8 with scales, found ", elementName(type),
                              scales ? " with scales" : " without scales");
      return std::nullopt;
    }
    Dims dims = getDims(stored), wanted(leading);
    wanted.append({rows, groups});
    if (scales && getDims(scales) != wanted) {
      (void)emitOptionalError(loc, "nn.attention: C1: scales of ", name, " must be ", toString(wanted), ", found ",
                              toString(cast<RankedTensorType>(scales.getType())));
      return std::nullopt;
    }
    return isPacked ? dims.back() * 2 : dims.back();
  }

  LogicalResult checkFloats() {
    for (Value operand : {op.getQuery(), op.getMask(), op.getSlopes(), op.getSinks(), op.getKeyScales(), op.getValueScales()})
      if (operand && !cast<RankedTensorType>(operand.getType()).getElementType().isF32())
        return emitOptionalError(loc, "nn.attention: C3: f32 is needed, found ", toString(cast<RankedTensorType>(operand.getType())));
    for (Value operand : {op.getSlopes(), op.getSinks()})
      if (operand && getDims(operand) != Dims{heads})
        return emitOptionalError(loc, "nn.attention: C1: slopes and sinks must be ", toString({heads}), ", found ",
                                 toString(cast<RankedTensorType>(operand.getType())));
    if (!op.getMask())
      return success();
    Dims scores = leading;
    scores.append({heads, tokens, rows});
    std::optional<Dims> joined = broadcastDims(scores, getDims(op.getMask()));
    if (!joined || *joined != scores)
      return emitOptionalError(loc, "nn.attention: C1: mask ", toString(cast<RankedTensorType>(op.getMask().getType())),
                               " does not broadcast to ", toString(scores));
    return success();
  }

  LogicalResult checkPositions() {
    if (Value positions = op.getPositions()) {
      auto type = cast<RankedTensorType>(positions.getType());
      if (getDims(type) != Dims{tokens} || !(type.getElementType().isSignlessInteger(32) || type.getElementType().isSignlessInteger(64)))
        return emitOptionalError(loc, "nn.attention: C5: positions must be i32 or i64 ", toString({tokens}), ", found ", toString(type));
    } else if (op.getSlopes() || op.getWindow() != 0) {
      return emitOptionalError(loc, "nn.attention: C6: window and slopes need positions");
    }
    if (int64_t(op.getWindow()) < 0 || !(op.getSoftCap().convertToFloat() >= 0))
      return emitOptionalError(loc, "nn.attention: C6: window and soft_cap must not be negative");
    return success();
  }

  std::optional<Location> loc;
  AttentionOp::Adaptor op;
  AffineExpr tokens, heads, rows, groups;
  Dims leading;
};

} // namespace

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor, SmallVectorImpl<Type> &types) {
  Dims dims;
  if (failed(AttentionCheck(loc, adaptor).run(dims)))
    return failure();
  types.push_back(makeTensor(dims, cast<RankedTensorType>(adaptor.getQuery().getType()).getElementType()));
  return success();
}
