//===- Relayout.cpp - operations computed in another order of dimensions --------===//
#include "Relayout.h"
#include "ajour/Conversion/Simplify.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::simplify {

/// [N, C, spatial...] of what is written [N, spatial..., C].
static Perm channelMajor(int64_t rank) {
  Perm perm{0, rank - 1};
  for (int64_t dim = 1; dim + 1 < rank; ++dim)
    perm.push_back(dim);
  return perm;
}

/// Whether an operation computes each channel by itself over two spatial dimensions.
static bool isPlanar(Operation *op) {
  if (isa<MaxPoolOp, AvgPoolOp>(op))
    return tensorType(op->getOperand(0)).getRank() == 4;
  auto conv = dyn_cast<ConvOp>(op);
  if (!conv || tensorType(conv.getInput()).getRank() != 4)
    return false;
  int64_t channels = tensorType(conv.getInput()).getDimSize(3);
  return int64_t(conv.getGroups()) == channels && tensorType(conv.getFilter()).getDimSize(0) == channels;
}

Relayout::Relayout(Operation *op, bool planes) : op(op) {
  classify();
  if (planes && op->hasAttr(channelMajorAttr))
    kind = Kind::ChannelMajor;
  else if (planes && isPlanar(op))
    kind = Kind::Planes;
  if (kind == Kind::Fixed)
    return;
  if (kind == Kind::Dropping || kind == Kind::Flatten)
    rank = tensorType(op->getOperand(0)).getRank();
  else
    rank = tensorType(op->getResult(0)).getRank();
  if (rank < 2)
    kind = Kind::Fixed;
}

void Relayout::classify() {
  llvm::TypeSwitch<Operation *>(op)
      .Case<UnaryOp, CastOp, ClampOp, QuantizeOp, DequantizeOp, RequantizeOp, LookupOp, PadOp, SliceOp, SoftmaxOp, CumsumOp, TopKOp,
            ResizeOp, ReverseSequenceOp, IotaOp>([&](auto) { kind = Kind::Same; })
      .Case<ConcatOp>([&](auto concat) {
        kind = Kind::Same;
        carries = concat.getInputs().size();
      })
      .Case<BinaryOp, CompareOp, SelectOp, BroadcastOp, LayerNormOp>([&](auto) { kind = Kind::Broadcasting; })
      .Case<ReduceOp>([&](auto reduce) {
        kind = reduce.getKeepDims() ? Kind::Same : Kind::Dropping;
        dropped = Perm(reduce.getAxes());
      })
      .Case<ArgReduceOp>([&](auto reduce) {
        kind = reduce.getKeepDims() ? Kind::Same : Kind::Dropping;
        dropped = {int64_t(reduce.getAxis())};
      })
      .Case<GatherOp>([&](auto gather) {
        int64_t indexRank = tensorType(gather.getIndices()).getRank();
        if (gather.getBatchDims() == 0 && indexRank <= 1)
          kind = indexRank == 1 ? Kind::Same : Kind::Dropping;
        dropped = {int64_t(gather.getAxis())};
      })
      .Case<ReshapeOp>([&](auto reshape) { classifyReshape(reshape); });
}

void Relayout::classifyReshape(ReshapeOp reshape) {
  RankedTensorType in = tensorType(reshape.getInput()), out = tensorType(reshape.getResult());
  auto matched = matchReshape(in, out);
  if (!matched)
    return;
  groups = *matched;
  kind = Kind::Reshape;
  // The rows of products: the last group merges into K.
  if (groups.empty() || out.getRank() < 2 || groups.back().out.size() != 1 ||
      groups.back().out[0] != out.getRank() - 1 || groups.back().in.size() < 2 || !in.hasStaticShape())
    return;
  for (Operation *user : reshape->getUsers()) {
    auto matmul = dyn_cast<MatmulOp>(user);
    if (!matmul || matmul.getLhs() != reshape.getResult() || matmul.getTransposeLhs() ||
        !getConstantValue(matmul.getRhs()) || tensorType(matmul.getRhs()).getRank() != 2)
      return;
  }
  kind = Kind::Flatten;
}

/// Whether the dimensions of each group stand side by side and in order, dimensions of 1 aside.
bool Relayout::keepsGroups(ArrayRef<int64_t> layout, bool ofResult) const {
  SmallVector<int64_t> order;
  RankedTensorType type = tensorType(ofResult ? op->getResult(0) : op->getOperand(0));
  for (int64_t dim : layout)
    if (type.getDimSize(dim) != 1)
      order.push_back(dim);
  for (const ReshapeGroup &group : groups) {
    ArrayRef<int64_t> dims = ofResult ? group.out : group.in;
    auto position = llvm::find(order, dims.front());
    if (size_t(order.end() - position) < dims.size() || !std::equal(dims.begin(), dims.end(), position))
      return false;
  }
  return true;
}

/// The other side's layout: its groups in the same order, dimensions of 1 in front.
Perm Relayout::throughGroups(ArrayRef<int64_t> layout, bool fromResult) const {
  if (isIdentity(layout))
    return identityPerm(tensorType(fromResult ? op->getOperand(0) : op->getResult(0)).getRank());
  RankedTensorType other = tensorType(fromResult ? op->getOperand(0) : op->getResult(0));
  Perm result;
  for (int64_t dim = 0; dim < other.getRank(); ++dim)
    if (other.getDimSize(dim) == 1)
      result.push_back(dim);
  for (int64_t dim : layout)
    for (const ReshapeGroup &group : groups)
      if ((fromResult ? group.out : group.in).front() == dim)
        result.append((fromResult ? group.in : group.out).begin(), (fromResult ? group.in : group.out).end());
  return result;
}

bool Relayout::isFeasible(ArrayRef<int64_t> label) const {
  if (isIdentity(label))
    return true;
  if (int64_t(label.size()) != rank)
    return false;
  if (kind == Kind::Reshape)
    return keepsGroups(label, /*ofResult=*/true);
  if (kind == Kind::Planes || kind == Kind::ChannelMajor)
    return label == ArrayRef<int64_t>(channelMajor(rank));
  if (kind == Kind::Flatten) {
    // Everything before the last group stays where it is.
    RankedTensorType type = tensorType(op->getOperand(0));
    SmallVector<int64_t> order;
    for (int64_t dim : label)
      if (type.getDimSize(dim) != 1)
        order.push_back(dim);
    size_t position = 0;
    for (const ReshapeGroup &group : ArrayRef(groups).drop_back())
      for (int64_t dim : group.in)
        if (order[position++] != dim)
          return false;
    return true;
  }
  if (auto norm = dyn_cast<LayerNormOp>(op)) {
    for (int64_t i = norm.getAxis(); i < rank; ++i)
      if (label[i] < int64_t(norm.getAxis()))
        return false;
    return true;
  }
  return kind != Kind::Fixed;
}

Perm Relayout::initialLabel() const {
  return kind == Kind::ChannelMajor ? channelMajor(rank) : identityPerm(rank);
}

/// The order of an operand's dimensions that are the last ones of a result.
static Perm alignedLayout(ArrayRef<int64_t> label, int64_t operandRank) {
  int64_t offset = int64_t(label.size()) - operandRank;
  Perm layout;
  for (int64_t dim : label)
    if (dim >= offset)
      layout.push_back(dim - offset);
  return layout;
}

Perm Relayout::operandLayout(unsigned operand, ArrayRef<int64_t> label) const {
  int64_t operandRank = tensorType(op->getOperand(operand)).getRank();
  if (kind == Kind::Fixed || isIdentity(label))
    return identityPerm(operandRank);
  if (kind == Kind::Broadcasting)
    return alignedLayout(label, operandRank);
  if (kind == Kind::Reshape)
    return throughGroups(label, /*fromResult=*/true);
  if (operand < carries)
    return Perm(label);
  return identityPerm(operandRank);
}

Perm Relayout::resultLayout(unsigned result, ArrayRef<int64_t> label) const {
  int64_t resultRank = tensorType(op->getResult(result)).getRank();
  if (kind == Kind::Fixed || kind == Kind::Flatten || isIdentity(label))
    return identityPerm(resultRank);
  if (kind != Kind::Dropping)
    return Perm(label);
  Perm layout;
  for (int64_t dim : label) {
    if (llvm::is_contained(dropped, dim))
      continue;
    int64_t before = llvm::count_if(dropped, [&](int64_t axis) { return axis < dim; });
    layout.push_back(dim - before);
  }
  return layout;
}

std::optional<Perm> Relayout::labelForOperand(unsigned operand, ArrayRef<int64_t> layout) const {
  Perm label;
  switch (kind) {
  case Kind::Fixed:
  case Kind::ChannelMajor:
    return std::nullopt;
  case Kind::Same:
  case Kind::Planes:
  case Kind::Dropping:
  case Kind::Flatten:
    if (operand >= carries)
      return std::nullopt;
    label = Perm(layout);
    break;
  case Kind::Broadcasting:
    label = Perm(layout);
    break;
  case Kind::Reshape:
    if (!keepsGroups(layout, /*ofResult=*/false))
      return std::nullopt;
    label = throughGroups(layout, /*fromResult=*/false);
    break;
  }
  if (int64_t(label.size()) != rank || !isFeasible(label))
    return std::nullopt;
  return label;
}

std::optional<Perm> Relayout::labelForResult(ArrayRef<int64_t> layout) const {
  if (!isFlexible() || kind == Kind::Flatten)
    return std::nullopt;
  if (kind != Kind::Dropping)
    return isFeasible(layout) ? std::optional(Perm(layout)) : std::nullopt;
  // The dropped axes go in front of the last dimension that stays.
  Perm kept, label;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(dropped, dim))
      kept.push_back(dim);
  for (auto [i, dim] : llvm::enumerate(layout)) {
    if (i + 1 == layout.size())
      label.append(dropped.begin(), dropped.end());
    label.push_back(kept[dim]);
  }
  if (layout.empty())
    return std::nullopt;
  return label;
}

static Perm permuteValues(ArrayRef<int64_t> values, ArrayRef<int64_t> label) {
  Perm result;
  for (int64_t dim : label)
    result.push_back(values[dim]);
  return result;
}

void Relayout::permuteAttributes(Operation *clone, ArrayRef<int64_t> label) const {
  Perm position = invert(label);
  auto moveAxis = [&](auto typed) {
    int64_t axis = typed.getAxis();
    typed.setAxis(position[axis < 0 ? axis + rank : axis]);
  };
  llvm::TypeSwitch<Operation *>(clone)
      .Case<QuantizeOp, DequantizeOp>([&](auto typed) {
        if (typed.getScales().size() > 1)
          moveAxis(typed);
      })
      .Case<RequantizeOp>([&](auto typed) {
        if ((typed.getScales() ? typed.getScales()->size() : typed.getMultipliers()->size()) > 1)
          moveAxis(typed);
      })
      .Case<ConcatOp, SoftmaxOp, CumsumOp, TopKOp, IotaOp, GatherOp, ArgReduceOp>(
          [&](auto typed) { moveAxis(typed); })
      .Case<ReverseSequenceOp>([&](auto typed) {
        typed.setBatchAxis(position[typed.getBatchAxis()]);
        typed.setTimeAxis(position[typed.getTimeAxis()]);
      })
      .Case<SliceOp>([&](auto typed) {
        typed.setStarts(permuteValues(typed.getStarts(), label));
        typed.setSteps(permuteValues(typed.getSteps(), label));
      })
      .Case<PadOp>([&](auto typed) {
        typed.setLow(permuteValues(typed.getLow(), label));
        typed.setHigh(permuteValues(typed.getHigh(), label));
      })
      .Case<ReduceOp>([&](auto typed) {
        Perm axes = permuteValues(position, typed.getAxes());
        llvm::sort(axes);
        typed.setAxes(axes);
      })
      .Case<ResizeOp>([&](auto typed) {
        SmallVector<float> scales, roi;
        if (!typed.getScales().empty())
          for (int64_t dim : label)
            scales.push_back(typed.getScales()[dim]);
        if (!typed.getRoi().empty())
          for (int64_t half : {int64_t(0), rank})
            for (int64_t dim : label)
              roi.push_back(typed.getRoi()[half + dim]);
        typed.setScales(scales);
        typed.setRoi(roi);
      });
}

/// A weight's rows in the order in which the flattened elements now come.
void Relayout::permuteWeights(ArrayRef<int64_t> label) const {
  RankedTensorType in = tensorType(op->getOperand(0));
  ArrayRef<int64_t> group = groups.back().in;
  Perm sizes, order;
  for (int64_t dim : group)
    sizes.push_back(in.getDimSize(dim));
  for (int64_t dim : label)
    if (auto found = llvm::find(group, dim); found != group.end())
      order.push_back(found - group.begin());
  if (isIdentity(order))
    return;
  for (Operation *user : op->getUsers()) {
    auto matmul = cast<MatmulOp>(user);
    RankedTensorType type = tensorType(matmul.getRhs());
    Perm split = sizes, perm = order;
    if (matmul.getTransposeRhs()) {
      split.insert(split.begin(), type.getDimSize(0));
      for (int64_t &dim : perm)
        ++dim;
      perm.insert(perm.begin(), 0);
    } else {
      split.push_back(type.getDimSize(1));
      perm.push_back(order.size());
    }
    Location loc = matmul.getLoc();
    // The weight may be defined behind the flattening.
    OpBuilder builder(matmul);
    Value rhs = ReshapeOp::create(builder, loc, makeTensor(ArrayRef<int64_t>(split), type.getElementType()), matmul.getRhs());
    rhs = TransposeOp::create(builder, loc, rhs, perm);
    rhs = ReshapeOp::create(builder, loc, type, rhs);
    matmul.getRhsMutable().assign(rhs);
  }
}

Operation *Relayout::rebuild(OpBuilder &builder, ArrayRef<int64_t> label, ArrayRef<Value> operands) const {
  assert(kind != Kind::Fixed && "only flexible operations are rebuilt");
  SmallVector<Value> values(operands);
  if (kind == Kind::Broadcasting && !isIdentity(label)) {
    for (auto [i, value] : llvm::enumerate(values)) {
      Dims dims = getDims(op->getOperand(i)), expanded;
      int64_t offset = rank - int64_t(dims.size());
      if (offset == 0)
        continue;
      for (int64_t dim : label)
        expanded.push_back(dim < offset ? builder.getAffineConstantExpr(1) : dims[dim - offset]);
      value = ReshapeOp::create(builder, op->getLoc(), makeTensor(expanded, elementType(value)), value);
    }
  }
  if (kind == Kind::Planes || kind == Kind::ChannelMajor) {
    values[0] = TransposeOp::create(builder, op->getLoc(), values[0], invert(label));
    Operation *inner = builder.clone(*op);
    inner->setOperands(values);
    inner->setAttr(channelMajorAttr, builder.getUnitAttr());
    return TransposeOp::create(builder, op->getLoc(), inner->getResult(0), label);
  }
  Operation *clone = builder.clone(*op);
  clone->setOperands(values);
  if (kind == Kind::Flatten) {
    permuteWeights(label);
    return clone;
  }
  for (OpResult result : clone->getResults()) {
    Perm layout = resultLayout(result.getResultNumber(), label);
    result.setType(makeTensor(permuted(getDims(result), layout), elementType(result)));
  }
  if (!isIdentity(label))
    permuteAttributes(clone, label);
  return clone;
}

} // namespace ajour::simplify
