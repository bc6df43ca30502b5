//===- Utils.cpp - what the simplifying passes share ----------------------------===//
#include "Utils.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::simplify {

Perm identityPerm(int64_t rank) {
  Perm perm;
  for (int64_t i = 0; i < rank; ++i)
    perm.push_back(i);
  return perm;
}

bool isIdentity(ArrayRef<int64_t> perm) {
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != int64_t(i))
      return false;
  return true;
}

Perm invert(ArrayRef<int64_t> perm) {
  Perm inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    inverse[perm[i]] = i;
  return inverse;
}

Perm compose(ArrayRef<int64_t> first, ArrayRef<int64_t> second) {
  Perm perm;
  for (int64_t p : second)
    perm.push_back(first[p]);
  return perm;
}

bool movesOnlyUnits(RankedTensorType input, ArrayRef<int64_t> perm) {
  int64_t last = -1;
  for (int64_t p : perm) {
    if (input.getDimSize(p) == 1)
      continue;
    if (p < last)
      return false;
    last = p;
  }
  return true;
}

Dims permuted(ArrayRef<AffineExpr> dims, ArrayRef<int64_t> perm) {
  Dims result;
  for (int64_t p : perm)
    result.push_back(dims[p]);
  return result;
}

Location fuse(Location a, Location b) { return FusedLoc::get(a.getContext(), {a, b}); }

std::optional<std::vector<float>> f32Constant(Value value) {
  ElementsAttr attr = getConstantValue(value);
  return attr && attr.getElementType().isF32() ? constantFloats(attr) : std::nullopt;
}

template <typename T> static std::optional<T> onlyValue(std::optional<std::vector<T>> values) {
  if (!values || values->empty())
    return std::nullopt;
  for (T value : *values)
    if (memcmp(&value, &values->front(), sizeof(T)) != 0)
      return std::nullopt;
  return values->front();
}

// Weights that are still in a file are not read to see whether they are all one number.
std::optional<float> floatSplat(Value value) {
  ElementsAttr attr = getConstantValue(value);
  return attr && isa<FloatType>(attr.getElementType()) && !isLazyConstant(attr) ? onlyValue(constantFloats(attr)) : std::nullopt;
}

std::optional<int64_t> intSplat(Value value) {
  ElementsAttr attr = getConstantValue(value);
  return attr && isa<IntegerType>(attr.getElementType()) && !isLazyConstant(attr) ? onlyValue(constantInts(attr)) : std::nullopt;
}

template <typename T>
static Value makeConstantOp(OpBuilder &builder, Location loc, Type element, ArrayRef<int64_t> shape,
                            ArrayRef<T> values) {
  ArrayRef<char> bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
  RankedTensorType type = makeTensor(shape, element);
  return ConstantOp::create(builder, loc, type, makeConstant(type, bytes));
}

Value makeF32(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, ArrayRef<float> values) {
  return makeConstantOp(builder, loc, builder.getF32Type(), shape, values);
}

Value makeI32(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, ArrayRef<int32_t> values) {
  return makeConstantOp(builder, loc, builder.getI32Type(), shape, values);
}

std::optional<SmallVector<ReshapeGroup>> matchReshape(RankedTensorType inType, RankedTensorType outType) {
  Dims in = getDims(inType), out = getDims(outType);
  MLIRContext *context = inType.getContext();
  AffineExpr one = getAffineConstantExpr(1, context);
  for (ArrayRef<AffineExpr> dims : {ArrayRef(in), ArrayRef(out)})
    if (llvm::is_contained(dims, getAffineConstantExpr(0, context)))
      return std::nullopt;
  SmallVector<ReshapeGroup> groups;
  size_t i = 0, o = 0;
  while (true) {
    while (i < in.size() && in[i] == one)
      ++i;
    while (o < out.size() && out[o] == one)
      ++o;
    if (i == in.size() && o == out.size())
      return groups;
    ReshapeGroup group;
    AffineExpr left = one, right = one;
    // Extend the side that holds fewer elements; with symbols, the side that is behind in dimensions.
    do {
      std::optional<int64_t> l = getConstant(left), r = getConstant(right);
      bool takeIn = group.in.empty() || (!group.out.empty() && (l && r ? *l < *r : group.in.size() <= group.out.size()));
      if (takeIn && i == in.size())
        takeIn = false;
      if (!takeIn && o == out.size()) {
        if (i == in.size())
          return std::nullopt;
        takeIn = true;
      }
      if (takeIn) {
        if (in[i] != one) {
          left = numElements({left, in[i]}, context);
          group.in.push_back(i);
        }
        ++i;
      } else {
        if (out[o] != one) {
          right = numElements({right, out[o]}, context);
          group.out.push_back(o);
        }
        ++o;
      }
    } while (left != right || group.in.empty() || group.out.empty());
    groups.push_back(group);
  }
}

LogicalResult applyPatterns(Operation *root, RewritePatternSet &&patterns) {
  GreedyRewriteConfig config;
  config.enableConstantCSE(false);
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
  return applyPatternsGreedily(root, std::move(patterns), config);
}

void eraseDeadOps(func::FuncOp function) {
  for (Block &block : function.getBody())
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
}

} // namespace ajour::simplify
