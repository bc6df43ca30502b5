//===- Factors.cpp - index spaces without divisions --------------------------------------===//
#include "Factors.h"
#include "Emitter.h"

using namespace mlir;

namespace ajour::loops {

Factors::Factors(ArrayRef<AffineExpr> dims) { own = fresh(dims); }

Factors::Factor *Factors::make(AffineExpr size) {
  storage.push_back({size});
  return &storage.back();
}

Factors::Space Factors::fresh(ArrayRef<AffineExpr> dims) {
  Space space;
  for (AffineExpr dim : dims)
    space.push_back({make(dim)});
  return space;
}

void Factors::collect(Factor *factor, List &leaves) {
  if (!factor->outer) {
    leaves.push_back(factor);
    return;
  }
  collect(factor->outer, leaves);
  collect(factor->inner, leaves);
}

Factors::List Factors::leaves(const List &list) {
  List result;
  for (Factor *factor : list)
    collect(factor, result);
  return result;
}

nn::Dims Factors::of(size_t dim) const {
  nn::Dims sizes;
  for (Factor *leaf : leaves(own[dim]))
    sizes.push_back(leaf->size);
  return sizes;
}

std::optional<Factors::Space> Factors::regroup(const Space &space, ArrayRef<AffineExpr> dims) {
  std::deque<Factor *> rest;
  for (const List &list : space)
    for (Factor *leaf : leaves(list))
      if (nn::getConstant(leaf->size) != 1)
        rest.push_back(leaf);
  Space result;
  for (AffineExpr dim : dims) {
    List list;
    AffineExpr need = dim;
    while (nn::getConstant(need) != 1) {
      if (rest.empty())
        return std::nullopt;
      Factor *next = rest.front();
      rest.pop_front();
      if (next->size == need) {
        list.push_back(next);
        break;
      }
      auto have = nn::getConstant(next->size), wanted = nn::getConstant(need);
      if (!have || !wanted || *have == 0 || *wanted == 0)
        return std::nullopt;
      if (*wanted % *have == 0) {
        list.push_back(next);
        need = getAffineConstantExpr(*wanted / *have, need.getContext());
      } else if (*have % *wanted == 0) {
        next->outer = make(need);
        next->inner = make(getAffineConstantExpr(*have / *wanted, need.getContext()));
        list.push_back(next->outer);
        rest.push_front(next->inner);
        break;
      } else {
        return std::nullopt;
      }
    }
    if (list.empty())
      list.push_back(make(getAffineConstantExpr(1, dim.getContext())));
    result.push_back(std::move(list));
  }
  return rest.empty() ? std::optional(result) : std::nullopt;
}

void Factors::followOperands(Value value) { follow(value, own); }

void Factors::followReaders(ArrayRef<Operation *> chain) {
  Space space = own;
  reached.clear();
  for (Operation *op : chain) {
    if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
      Space next;
      for (int64_t dim : transpose.getPerm())
        next.push_back(space[dim]);
      space = std::move(next);
    } else if (isa<nn::GatherOp>(op)) {
      space[cast<nn::GatherOp>(op).getAxis()] = {make(nn::getDims(op->getResult(0))[cast<nn::GatherOp>(op).getAxis()])};
    } else if (auto next = regroup(space, nn::getDims(op->getResult(0)))) {
      space = std::move(*next);
    } else {
      return;
    }
  }
  reached = std::move(space);
}

bool Factors::endsWith(size_t dim) const {
  for (const List &list : llvm::reverse(reached))
    for (Factor *leaf : llvm::reverse(leaves(list)))
      if (nn::getConstant(leaf->size) != 1)
        return llvm::is_contained(leaves(own[dim]), leaf);
  return true;
}

void Factors::follow(Value value, const Space &space) {
  Operation *op = value.getDefiningOp();
  if (!op || !Emitter::isPointwise(op) || isa<nn::ConstantOp>(op))
    return;
  if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    Space in(space.size());
    for (auto [i, dim] : llvm::enumerate(transpose.getPerm()))
      in[dim] = space[i];
    return follow(transpose.getInput(), in);
  }
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op)) {
    if (auto in = regroup(space, nn::getDims(reshape.getInput())))
      follow(reshape.getInput(), *in);
    return;
  }
  if (auto concat = dyn_cast<nn::ConcatOp>(op)) {
    for (Value operand : concat.getInputs()) {
      Space in = space;
      in[concat.getAxis()] = {make(nn::getDims(operand)[concat.getAxis()])};
      follow(operand, in);
    }
    return;
  }
  if (isa<nn::SliceOp, nn::PadOp>(op)) {
    // A dimension that is not taken whole has an index of its own below.
    nn::Dims in = nn::getDims(op->getOperand(0)), out = nn::getDims(op->getResult(0));
    Space below = space;
    auto slice = dyn_cast<nn::SliceOp>(op);
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i] != out[i] || (slice && (slice.getStarts()[i] != 0 || slice.getSteps()[i] != 1)))
        below[i] = {make(in[i])};
    return follow(op->getOperand(0), below);
  }
  if (auto gather = dyn_cast<nn::GatherOp>(op); gather && nn::getConstantValue(gather.getIndices()) &&
                                                nn::getDims(gather.getIndices()).size() == 1) {
    Space in = space;
    in[gather.getAxis()] = {make(nn::getDims(gather.getData())[gather.getAxis()])};
    return follow(gather.getData(), in);
  }
  if (Emitter::isMovement(op) && !isa<nn::BroadcastOp>(op))
    return; // other gathers compute their index
  if (isa<nn::ResizeOp, nn::GridSampleOp>(op))
    return;
  for (Value operand : op->getOperands()) {
    nn::Dims dims = nn::getDims(operand);
    if (dims.size() > space.size())
      continue;
    Space in;
    for (size_t i = 0; i < dims.size(); ++i)
      in.push_back(nn::getConstant(dims[i]) == 1 ? List{make(dims[i])} : space[space.size() - dims.size() + i]);
    follow(operand, in);
  }
}

} // namespace ajour::loops
