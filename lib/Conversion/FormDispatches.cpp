//===- FormDispatches.cpp - which operations run together -------------------------------===//
//
// A dispatch has at most one root (an operation with loops of its own), the element-wise operations after it
// and what only reorders its elements (its epilogue: the root stores where its reader wants them), and the operations
// before it that can be computed where they are read. A group has one live result, so groups cannot depend on each
// other in a circle. docs/decisions/0009-data-movement.md has the rules as a table.
//
//===----------------------------------------------------------------------===//
#include "Loops/Emitter.h"
#include "Loops/Factors.h"
#include "Loops/Strides.h"
#include "ajour/Conversion/Dispatch.h"
#include "ajour/Conversion/LayoutOps.h"
#include "ajour/Conversion/Simplify.h"
#include "ajour/Dialect/Exec/Exec.h"
#include "ajour/Dialect/NN/Weights.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using ajour::loops::Emitter;

namespace ajour {

namespace {

/// The most operations that follow a root in one dispatch.
constexpr size_t maxEpilogue = 32;

bool isConstant(Operation *op) { return isa_and_nonnull<nn::ConstantOp>(op); }
bool isPointwise(Operation *op) { return Emitter::isPointwise(op) && !isConstant(op); }
bool isMovement(Operation *op) { return Emitter::isMovement(op); }
/// Changes only how an index is written; worth computing again for each reader.
bool isTableGather(Operation *op);
bool isView(Operation *op) {
  return isa<nn::TransposeOp, nn::ReshapeOp, nn::BroadcastOp, nn::SliceOp>(op) || isTableGather(op);
}
bool isRoot(Operation *op) { return !Emitter::isPointwise(op) && !isa<func::ReturnOp>(op); }

/// Most indices of a gather that are written into the code.
constexpr int64_t maxTable = 4096;
/// Takes rows in an order that is known now.
bool isTableGather(Operation *op) {
  auto gather = dyn_cast<nn::GatherOp>(op);
  if (!gather || gather.getBatchDims() != 0)
    return false;
  auto indices = cast<RankedTensorType>(gather.getIndices().getType());
  return isConstant(gather.getIndices().getDefiningOp()) && indices.getRank() == 1 && indices.getNumElements() <= maxTable;
}

/// Gives every element of its operand another place, and none twice.
bool isReorder(Operation *op) {
  return isa<nn::TransposeOp, nn::ReshapeOp>(op) ||
         (isTableGather(op) && loops::Emitter::isPermutation(cast<nn::GatherOp>(op)));
}

/// Joins rows, not parts of them: which operand is read is known outside the innermost loop.
bool joinsRows(Operation *op) {
  auto concat = dyn_cast<nn::ConcatOp>(op);
  return concat && concat.getAxis() + 1 < nn::getDims(concat.getResult()).size();
}

/// A nearest resize that leaves the last dimension alone.
bool repeatsRows(Operation *op) {
  auto resize = dyn_cast<nn::ResizeOp>(op);
  return resize && resize.getMode() == nn::ResizeMode::nearest &&
         nn::getDims(resize.getInput()).back() == nn::getDims(resize.getResult()).back();
}

/// Whether an operand of a product or an attention is read once for each row of its results or by rows, so that a view of the stored
/// value serves as well as the value.
bool readsThroughViews(OpOperand &use) {
  Operation *op = use.getOwner();
  if (op->hasAttr(channelMajorAttr))
    return use.getOperandNumber() == 0;
  if (isa<nn::MatmulOp>(op))
    return use.getOperandNumber() < 2;
  if (isa<nn::AttentionOp>(op))
    return use.getOperandNumber() < 3;
  auto conv = dyn_cast<nn::ConvOp>(op);
  if (!conv || use.getOperandNumber() != 0 || conv.getGroups() != 1)
    return false;
  auto filter = cast<RankedTensorType>(conv.getFilter().getType());
  auto isOne = [](int64_t value) { return value == 1; };
  auto isZero = [](int64_t value) { return value == 0; };
  return llvm::all_of(filter.getShape().drop_front().drop_back(), isOne) && llvm::all_of(conv.getStrides(), isOne) &&
         llvm::all_of(conv.getPadsLow(), isZero) && llvm::all_of(conv.getPadsHigh(), isZero);
}

/// Whether the kernel of an attention, which is given strides, reads what `producer` is a view of where an operand leads to it.
bool readsThroughStrides(nn::AttentionOp op, Operation *producer) {
  for (unsigned i = 0; i < 3; ++i) {
    Value value = op->getOperand(i);
    while (value.getDefiningOp() && value.getDefiningOp() != producer && isView(value.getDefiningOp()))
      value = value.getDefiningOp()->getOperand(0);
    if (value.getDefiningOp() == producer && !loops::findAttentionView(op, i, producer->getOperand(0)))
      return false;
  }
  return true;
}

/// Reads each element of its operands about once, in loops along the last dimension.
bool isStateSpace(Operation *op) { return isa<nn::CausalConvOp, nn::SelectiveScanOp>(op); }

/// The transpose in front of an operation that reads [N, C, H, W] stays with it.
bool belongsToReader(Operation *op) {
  return isa<nn::TransposeOp>(op) && llvm::any_of(op->getUses(), [](OpOperand &use) {
           return use.getOwner()->hasAttr(channelMajorAttr) && use.getOperandNumber() == 0;
         });
}

/// Whether what computes the operand stores its result in this order at once.
bool isStoredReordered(Operation *op) {
  Operation *producer = op->getOperand(0).getDefiningOp();
  return isReorder(op) && op->getOperand(0).hasOneUse() && producer && !isMovement(producer) && !isConstant(producer);
}

/// Whether an operation (or null) makes floats of constants of few bits, which the code of products reads as they are.
bool isStored(Operation *op) { return op && nn::isStoredForm(op); }

/// Whether an operand's rows are gathered once, or elements are asked for one by one wherever they are needed.
bool gathersRows(Operation *root) {
  if (auto matmul = dyn_cast<nn::MatmulOp>(root))
    return (isConstant(matmul.getRhs().getDefiningOp()) || isStored(matmul.getRhs().getDefiningOp())) &&
           nn::getDims(matmul.getRhs()).size() == 2 && !matmul.getTransposeLhs();
  return true;
}

/// Whether each of its two readers gathers rows, or joins what is gathered: copying them twice into scratch costs less
/// than writing and reading all of it.
bool isGathered(Operation *op) {
  return std::distance(op->use_begin(), op->use_end()) <= 2 && llvm::all_of(op->getUses(), [](OpOperand &use) {
           if (isa<nn::ConcatOp>(use.getOwner()))
             return use.getOwner()->hasOneUse() && isGathered(use.getOwner());
           return use.getOperandNumber() == 0 && readsThroughViews(use) && gathersRows(use.getOwner()) &&
                  !use.getOwner()->hasAttr(channelMajorAttr);
         });
}

/// Whether finding an element of a view takes a division by a row or a column, which are asked for in inner loops.
bool needsDivision(Operation *view) {
  nn::Dims dims = nn::getDims(view->getResult(0));
  loops::Factors factors(dims);
  factors.followOperands(view->getResult(0));
  for (size_t i = std::max<size_t>(dims.size(), 2) - 2; i < dims.size(); ++i)
    if (factors.of(i).size() > 1)
      return true;
  return false;
}

/// Costs far more than reading a stored value.
bool isExpensive(Operation *op) {
  if (auto unary = dyn_cast<nn::UnaryOp>(op)) {
    switch (unary.getKind()) {
    case nn::UnaryKind::neg:
    case nn::UnaryKind::abs:
    case nn::UnaryKind::relu:
    case nn::UnaryKind::square:
    case nn::UnaryKind::logical_not:
    case nn::UnaryKind::bitwise_not:
    case nn::UnaryKind::leaky_relu:
      return false;
    default:
      return true;
    }
  }
  if (auto binary = dyn_cast<nn::BinaryOp>(op))
    return binary.getKind() == nn::BinaryKind::div || binary.getKind() == nn::BinaryKind::pow;
  return isa<nn::QuantizeOp, nn::RequantizeOp, nn::ResizeOp, nn::GridSampleOp, nn::ConcatOp>(op);
}

/// Makes floats of bytes for readers that can do so themselves, and then read a quarter as much.
bool isWideningForReaders(Operation *op) {
  auto dequantize = dyn_cast<nn::DequantizeOp>(op);
  return dequantize && Emitter::elementType(dequantize.getInput()).isInteger(8) &&
         llvm::all_of(op->getUsers(), [](Operation *user) {
           return isa<nn::ReduceOp>(user) || (isPointwise(user) && !isa<nn::ResizeOp, nn::GridSampleOp>(user));
         });
}

/// Whether a product's weights are a constant of few bits, which its code reads as it is stored.
bool readsStored(Operation *user, Operation *producer) {
  // Filters are unpacked from these forms only.
  auto cast = dyn_cast<nn::CastOp>(producer);
  bool isUnpacked = isa<nn::DequantizeGroupedOp, nn::DequantizeCodebookOp>(producer) ||
                    (cast && Emitter::elementType(cast.getInput()).isF16());
  if (auto conv = dyn_cast<nn::ConvOp>(user))
    return isUnpacked && conv.getFilter().getDefiningOp() == producer && isStored(producer);
  if (auto experts = dyn_cast<nn::ExpertMatmulOp>(user))
    return experts.getRhs().getDefiningOp() == producer && isStored(producer);
  auto matmul = dyn_cast<nn::MatmulOp>(user);
  return matmul && matmul.getRhs().getDefiningOp() == producer && matmul.getLhs().getDefiningOp() != producer &&
         isStored(producer);
}

struct Group {
  llvm::SetVector<Operation *> members;
  Operation *root = nullptr;
  llvm::DenseSet<Operation *> operands; ///< members that the root reads, directly or not
};

class Former {
public:
  explicit Former(ModuleOp module) : module(module), main(module.lookupSymbol<func::FuncOp>("main")) {}

  LogicalResult run();

private:
  void cloneViews();
  void copyReturnedOperands();
  void growEpilogue(Group &group);
  void assignRest();
  bool acceptsProducer(const Group &group, OpOperand &use, Operation *producer);
  bool acceptsOperand(const Group &group, OpOperand &use, Operation *producer);
  bool becomesAlias(nn::ReshapeOp reshape);
  void outline(Group &group);
  std::string kindOf(const Group &group);

  Group *groupOf(Operation *op) { return groups.lookup(op); }
  void add(Group &group, Operation *op) {
    group.members.insert(op);
    groups[op] = &group;
  }

  ModuleOp module;
  func::FuncOp main;
  bool explicitLayouts = false;
  std::vector<std::unique_ptr<Group>> all;
  llvm::DenseMap<Operation *, Group *> groups;
  llvm::StringMap<std::string> callees; // body text -> symbol
  unsigned counter = 0;
};

/// Views that several operations read, and what dequantises the weights of several products, are repeated for each that can look through them.
void Former::cloneViews() {
  SmallVector<Operation *> views;
  main.walk([&](Operation *op) {
    if (isView(op) || isWideningForReaders(op) || isa<nn::ConcatOp>(op) || repeatsRows(op) || isStored(op))
      views.push_back(op);
  });
  // Later views first, so that a chain of views is repeated as a whole.
  for (Operation *op : llvm::reverse(views)) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : op->getResult(0).getUses())
      uses.push_back(&use);
    if (uses.size() < 2 || isStoredReordered(op) ||
        (!isView(op) && !isWideningForReaders(op) && !isGathered(op) && !isStored(op)))
      continue;
    for (OpOperand *use : ArrayRef(uses).drop_front()) {
      bool isWeight = isStored(op) && !isWideningForReaders(op);
      if (isWeight ? !readsStored(use->getOwner(), op) && !nn::isCodedParameter(use->getOwner(), use->get()) &&
                         !(isa<nn::GatherOp>(use->getOwner()) && use->getOperandNumber() == 0)
                   : isView(op) && !isPointwise(use->getOwner()) && !isStateSpace(use->getOwner()) && !readsThroughViews(*use))
        continue;
      OpBuilder b(op);
      use->set(b.clone(*op)->getResult(0));
    }
  }
}

/// Every returned value must be the result of a dispatch of its own.
void Former::copyReturnedOperands() {
  auto ret = cast<func::ReturnOp>(main.getBody().front().getTerminator());
  llvm::DenseSet<Value> seen;
  for (OpOperand &operand : ret->getOpOperands()) {
    Value value = operand.get(), origin = value;
    while (auto reshape = origin.getDefiningOp<nn::ReshapeOp>())
      origin = reshape.getInput();
    Operation *op = origin.getDefiningOp();
    if (op && !isConstant(op) && seen.insert(origin).second)
      continue;
    OpBuilder b(ret);
    // A slice of everything is a copy; canonicalisation has already run.
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> starts(type.getRank(), 0), steps(type.getRank(), 1);
    operand.set(nn::SliceOp::create(b, value.getLoc(), type, value, starts, steps));
  }
}

void Former::growEpilogue(Group &group) {
  if (group.root->getNumResults() != 1 || isa<nn::ScatterElementsOp, nn::ScatterNDOp, nn::AttentionOp>(group.root))
    return;
  // Values behind the root by the order of their elements: 0 is the root's, each reordering makes another.
  llvm::DenseMap<Value, int> orders{{group.root->getResult(0), 0}};
  int orderCount = 1;
  llvm::SetVector<Operation *> tentative;
  tentative.insert(group.root);
  auto isInternal = [&](Value value) { return orders.contains(value); };
  for (Operation *op = group.root->getNextNode(); op && tentative.size() < maxEpilogue; op = op->getNextNode()) {
    if (!llvm::any_of(op->getOperands(), isInternal))
      continue;
    bool eligible = isPointwise(op) && (!isMovement(op) || (isReorder(op) && !explicitLayouts)) && !isa<nn::ResizeOp, nn::GridSampleOp>(op) &&
                    !groupOf(op) && !belongsToReader(op);
    std::optional<int> order;
    for (Value operand : op->getOperands()) {
      if (!eligible || !isInternal(operand))
        continue;
      // Every internal operand must be read element for element.
      int own = orders.lookup(operand);
      eligible = order.value_or(own) == own &&
                 (isReorder(op) || nn::getDims(operand) == nn::getDims(op->getResult(0)));
      order = own;
    }
    if (auto lookup = dyn_cast<nn::LookupOp>(op))
      eligible &= !isInternal(lookup.getTable());
    if (!eligible)
      return;
    tentative.insert(op);
    orders[op->getResult(0)] = isReorder(op) ? orderCount++ : *order;
    // One live value, the newest: the group may end here.
    bool closed = true;
    for (Operation *member : tentative)
      for (Operation *user : member->getUsers())
        closed &= member == op || tentative.contains(user);
    if (closed)
      for (Operation *member : tentative)
        if (!group.members.contains(member))
          add(group, member);
  }
}

/// Whether the root of a group can compute `producer` where it reads it; `use` is the root's or that of one of
/// its `operands`.
bool Former::acceptsOperand(const Group &group, OpOperand &use, Operation *producer) {
  if ((use.getOwner() == group.root && readsStored(group.root, producer)) || nn::isCodedParameter(use.getOwner(), use.get()))
    return true;
  if (isa<nn::ReduceOp, nn::SoftmaxOp, nn::LayerNormOp, nn::CumsumOp>(group.root))
    return use.getOwner() != group.root || !isa<nn::PadOp, nn::ConcatOp>(producer) || !isExpensive(producer);
  // Updates are read once each, indices for each update; the data is copied, or is where the result goes.
  if (isa<nn::ScatterNDOp>(group.root))
    return use.getOwner() != group.root || use.getOperandNumber() == 2 || (use.getOperandNumber() == 1 && isView(producer));
  if (isStateSpace(group.root))
    return isView(producer) && !needsDivision(producer);
  if (group.root->hasAttr(channelMajorAttr))
    return use.getOwner() == group.root && readsThroughViews(use) && isa<nn::TransposeOp>(producer);
  if (use.getOwner() == group.root && !readsThroughViews(use))
    return false;
  if (auto attention = dyn_cast<nn::AttentionOp>(group.root))
    return isView(producer) && readsThroughStrides(attention, producer);
  if (gathersRows(group.root))
    return use.getOwner() != group.root || use.getOperandNumber() == 0
               ? isView(producer) || isa<nn::ConcatOp>(producer) || repeatsRows(producer)
               : false;
  return isView(producer) && !needsDivision(producer);
}

/// Whether the owner of `use`, a member of a group, can compute `producer` where it reads it.
bool Former::acceptsProducer(const Group &group, OpOperand &use, Operation *producer) {
  Operation *user = use.getOwner();
  if (explicitLayouts && (isMovement(producer) || isMovement(user)))
    return false;
  if (user == group.root || group.operands.contains(user))
    if (!acceptsOperand(group, use, producer))
      return false;
  if (user == group.root || group.operands.contains(user))
    return true;
  if ((isExpensive(producer) || isa<nn::PadOp>(producer)) && !isa<nn::ConcatOp>(user)) {
    // Not where each value is read many times.
    auto own = nn::numElements(nn::getDims(producer->getResult(0)), producer->getContext());
    auto read = nn::numElements(nn::getDims(user->getResult(0)), producer->getContext());
    if (own != read)
      return false;
  }
  if (isa<nn::ConcatOp>(producer))
    return joinsRows(producer) || isa<nn::ConcatOp>(user);
  // Resampling reads several neighbours; gathers and concatenations read their operand once.
  if (isa<nn::ResizeOp, nn::GridSampleOp>(user))
    return isView(producer);
  return true;
}

/// A reshape is the same buffer under another name, unless it stands among other data movement.
bool Former::becomesAlias(nn::ReshapeOp reshape) {
  bool readInPlace = llvm::all_of(reshape->getUsers(), [&](Operation *user) {
    return isPointwise(user) && isMovement(user) && !isa<nn::ReshapeOp>(user);
  });
  Operation *producer = reshape.getInput().getDefiningOp();
  bool afterMovement = producer && isMovement(producer) && !groupOf(producer) && producer->hasOneUse() &&
                       !isa<nn::PadOp, nn::ConcatOp>(producer);
  bool usersPointwise = llvm::all_of(reshape->getUses(), [](OpOperand &use) {
    return isPointwise(use.getOwner()) || isStateSpace(use.getOwner()) || readsThroughViews(use);
  });
  // What is computed only to be joined is computed where it is joined: the halves of rotated pairs, say.
  bool isJoined = producer && isPointwise(producer) && !isMovement(producer) && !groupOf(producer) && producer->hasOneUse() &&
                  llvm::all_of(reshape->getUsers(), [](Operation *user) { return isa<nn::ConcatOp>(user); });
  return !isJoined && !(afterMovement && (readInPlace || usersPointwise));
}

void Former::assignRest() {
  SmallVector<Operation *> order;
  for (Operation &op : main.getBody().front())
    if (isPointwise(&op) && !groupOf(&op))
      order.push_back(&op);
  for (Operation *op : llvm::reverse(order)) {
    if (auto reshape = dyn_cast<nn::ReshapeOp>(op); reshape && (explicitLayouts || becomesAlias(reshape)))
      continue;
    Group *target = nullptr;
    bool inlined = !op->use_empty();
    for (OpOperand &use : op->getUses()) {
      Group *group = groupOf(use.getOwner());
      inlined &= group && (!target || group == target) && acceptsProducer(*group, use, op);
      target = group;
    }
    if (!inlined) {
      all.push_back(std::make_unique<Group>());
      target = all.back().get();
    }
    add(*target, op);
    if (target->root && llvm::any_of(op->getUsers(), [&](Operation *user) {
          return user == target->root || target->operands.contains(user);
        }))
      target->operands.insert(op);
  }
}

std::string Former::kindOf(const Group &group) {
  if (group.root) {
    if (auto conv = dyn_cast<nn::ConvOp>(group.root)) {
      auto channels = nn::getConstant(nn::getDims(conv.getInput()).back());
      if (channels && int64_t(conv.getGroups()) == *channels && *channels > 1)
        return "depthwise_conv";
    }
    return group.root->getName().stripDialect().str();
  }
  bool moves = llvm::all_of(group.members, [](Operation *op) { return isMovement(op); });
  if (!moves)
    return "elementwise";
  for (Operation *op : group.members)
    if (op->getName().stripDialect() != "reshape")
      return op->getName().stripDialect().str();
  return "copy";
}

void Former::outline(Group &group) {
  SmallVector<Operation *> ordered(group.members.begin(), group.members.end());
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  Operation *last = ordered.back();
  llvm::SetVector<Value> inputs;
  SmallVector<Operation *> cloned; // constants of one element are written into the code
  SmallVector<Location> locations;
  for (Operation *op : ordered) {
    locations.push_back(op->getLoc());
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (producer && group.members.contains(producer))
        continue;
      auto type = cast<RankedTensorType>(operand.getType());
      bool isTable = isTableGather(op) && operand == op->getOperand(1);
      bool isNumber = type.hasStaticShape() && type.getNumElements() == 1 && !isStored(op);
      if (producer && isConstant(producer) && (isNumber || isTable) && isPointwise(op)) {
        if (!llvm::is_contained(cloned, producer))
          cloned.push_back(producer);
        continue;
      }
      inputs.insert(operand);
    }
  }
  SmallVector<Value> outputs(last->getResults());
  MLIRContext *context = module.getContext();
  OpBuilder b(context);
  b.setInsertionPointToEnd(module.getBody());
  Location loc = FusedLoc::get(context, locations);
  SmallVector<Type> inputTypes, outputTypes;
  for (Value input : inputs)
    inputTypes.push_back(input.getType());
  for (Value output : outputs)
    outputTypes.push_back(output.getType());
  std::string kind = kindOf(group);
  auto callee = func::FuncOp::create(b, loc, "callee", FunctionType::get(context, inputTypes, outputTypes));
  callee.setPrivate();
  for (auto [i, input] : llvm::enumerate(inputs))
    if (input.getDefiningOp() && isConstant(input.getDefiningOp()))
      callee.setArgAttr(i, "exec.constant", b.getUnitAttr());
  Block *entry = callee.addEntryBlock();
  b.setInsertionPointToStart(entry);
  IRMapping mapping;
  for (auto [input, argument] : llvm::zip_equal(inputs, entry->getArguments()))
    mapping.map(input, argument);
  for (Operation *op : cloned)
    b.clone(*op, mapping);
  for (Operation *op : ordered)
    b.clone(*op, mapping);
  SmallVector<Value> returned;
  for (Value output : outputs)
    returned.push_back(mapping.lookup(output));
  func::ReturnOp::create(b, loc, returned);

  std::string text;
  llvm::raw_string_ostream os(text);
  callee->print(os, OpPrintingFlags().useLocalScope());
  auto [known, isNew] = callees.try_emplace(text);
  if (isNew) {
    known->second = "d" + std::to_string(counter++) + "_" + kind;
    callee.setName(known->second);
  } else {
    callee.erase();
  }
  b.setInsertionPoint(last);
  auto dispatch = exec::DispatchOp::create(b, loc, outputTypes, FlatSymbolRefAttr::get(context, known->second),
                                           b.getStringAttr(kind), inputs.getArrayRef());
  for (auto [output, result] : llvm::zip_equal(outputs, dispatch.getOutputs()))
    output.replaceAllUsesWith(result);
  for (Operation *op : llvm::reverse(ordered))
    op->erase();
}

LogicalResult Former::run() {
  if (!main || main.isExternal() || !llvm::hasSingleElement(main.getBody()))
    return module.emitError("a function `main` of one block is needed");
  explicitLayouts = module->hasAttr(explicitLayoutsAttr);
  if (!explicitLayouts)
    cloneViews();
  copyReturnedOperands();
  for (Operation &op : main.getBody().front()) {
    if (!isRoot(&op) || groupOf(&op))
      continue;
    all.push_back(std::make_unique<Group>());
    all.back()->root = &op;
    add(*all.back(), &op);
    growEpilogue(*all.back());
  }
  assignRest();
  // Outlining moves nothing: a group stands where its last member stood, after all that it reads.
  for (std::unique_ptr<Group> &group : all)
    outline(*group);
  SmallVector<nn::ReshapeOp> reshapes;
  main.walk([&](nn::ReshapeOp reshape) { reshapes.push_back(reshape); });
  for (nn::ReshapeOp reshape : reshapes) {
    OpBuilder b(reshape);
    auto alias = exec::AliasOp::create(b, reshape.getLoc(), reshape.getType(), reshape.getInput());
    reshape.getResult().replaceAllUsesWith(alias.getResult());
    reshape.erase();
  }
  SmallVector<Operation *> dead;
  main.walk([&](nn::ConstantOp op) {
    if (op->use_empty())
      dead.push_back(op);
  });
  for (Operation *op : dead)
    op->erase();
  return success();
}

} // namespace

LogicalResult formDispatches(ModuleOp module) { return Former(module).run(); }

AffineExpr countMacs(func::FuncOp callee) {
  MLIRContext *context = callee.getContext();
  AffineExpr total = getAffineConstantExpr(0, context);
  callee.walk([&](Operation *op) {
    if (auto conv = dyn_cast<nn::ConvOp>(op)) {
      auto filter = cast<RankedTensorType>(conv.getFilter().getType());
      int64_t depth = filter.getNumElements() / std::max<int64_t>(filter.getDimSize(0), 1);
      total = total + nn::numElements(nn::getDims(conv.getResult()), context) * depth;
    } else if (auto conv = dyn_cast<nn::ConvTransposeOp>(op)) {
      auto filter = cast<RankedTensorType>(conv.getFilter().getType());
      auto perPixel = filter.getNumElements();
      total = total + nn::numElements(ArrayRef(nn::getDims(conv.getInput())).drop_back(), context) * perPixel;
    } else if (auto matmul = dyn_cast<nn::MatmulOp>(op)) {
      nn::Dims lhs = nn::getDims(matmul.getLhs());
      AffineExpr depth = matmul.getTransposeLhs() ? lhs[lhs.size() - 2] : lhs.back();
      total = total + nn::numElements(nn::getDims(matmul.getResult()), context) * depth;
    } else if (auto experts = dyn_cast<nn::ExpertMatmulOp>(op)) {
      total = total + nn::numElements(nn::getDims(experts.getResult()), context) * nn::getDims(experts.getLhs())[2];
    } else if (auto attention = dyn_cast<nn::AttentionOp>(op); attention && !attention.getPositions()) {
      // With positions the number of rows that count is known to the runtime only.
      nn::Dims query = nn::getDims(attention.getQuery()), out = nn::getDims(attention.getResult()), key = nn::getDims(attention.getKey());
      total = total + nn::numElements(ArrayRef(query).drop_back(), context) * key[key.size() - 3] * (query.back() + out.back());
    } else if (isa<nn::RnnOp, nn::GruOp, nn::LstmOp>(op)) {
      // Each row of each step meets all recurrent weights.
      nn::Dims input = nn::getDims(op->getOperand(0));
      total = total + input[0] * input[1] * cast<RankedTensorType>(op->getOperand(1).getType()).getNumElements();
      if (auto lstm = dyn_cast<nn::LstmOp>(op); lstm && lstm.getProjection())
        total = total + input[0] * input[1] * cast<RankedTensorType>(lstm.getProjection().getType()).getNumElements();
    } else if (auto scan = dyn_cast<nn::SelectiveScanOp>(op)) {
      // Each state of each channel is advanced and read.
      total = total + nn::numElements(nn::getDims(scan.getX()), context) * nn::getDims(scan.getB())[2] * 2;
    } else if (auto conv = dyn_cast<nn::CausalConvOp>(op)) {
      total = total + nn::numElements(nn::getDims(conv.getInput()), context) * nn::getDims(conv.getFilter())[0];
    }
  });
  return total;
}

unsigned macElementType(func::FuncOp callee) {
  Type widest;
  auto add = [&](Value factor) {
    Type type = cast<RankedTensorType>(factor.getType()).getElementType();
    if (!widest || type.getIntOrFloatBitWidth() > widest.getIntOrFloatBitWidth())
      widest = type;
  };
  callee.walk([&](Operation *op) {
    if (auto conv = dyn_cast<nn::ConvOp>(op)) {
      add(conv.getInput());
      add(conv.getFilter());
    } else if (auto conv = dyn_cast<nn::ConvTransposeOp>(op)) {
      add(conv.getInput());
      add(conv.getFilter());
    } else if (isa<nn::RnnOp, nn::GruOp, nn::LstmOp>(op)) {
      add(op->getOperand(1));
    } else if (auto experts = dyn_cast<nn::ExpertMatmulOp>(op)) {
      add(experts.getLhs());
    } else if (isa<nn::AttentionOp>(op) || isStateSpace(op)) {
      add(op->getOperand(0));
    } else if (auto matmul = dyn_cast<nn::MatmulOp>(op)) {
      add(matmul.getLhs());
      add(matmul.getRhs());
    }
  });
  return widest ? nn::getElementTypeId(widest) : 0;
}

} // namespace ajour
