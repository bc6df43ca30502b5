//===- Layout.cpp - nn-layout: the fewest bytes transposed ----------------------===//
//
// Products and pools work on channels-last tensors; between them stand operations that can be computed
// in any order of dimensions. Each gets a label (Relayout.h); a value that its producer stores in one
// layout and a consumer wants in another is transposed there. The labels are chosen so that the bytes of those
// transposes are fewest: from several starting points, operations and the groups that agree with them change their
// labels as long as it helps. The given function is one of the starting points, so it never gets worse.
//
// After "SmartMem: Layout Transformation Elimination and Adaptation for Efficient DNN Execution on
// Mobile" (ASPLOS 2024), restricted to permutations and the reshapes that commute with them.
//
//===----------------------------------------------------------------------===//
#include "Relayout.h"
#include "ajour/Conversion/Simplify.h"

#include <deque>
#include <set>

using namespace mlir;
using namespace ajour::nn;

namespace ajour {
namespace simplify {
namespace {

/// A value without the transposes above it: value = transpose(root, perm).
struct Resolved {
  Value root;
  Perm perm;
};

Resolved resolve(Value value) {
  Perm perm = identityPerm(tensorType(value).getRank());
  while (auto transpose = value.getDefiningOp<TransposeOp>()) {
    perm = compose(transpose.getPerm(), perm);
    value = transpose.getInput();
  }
  return {value, perm};
}

struct Use {
  int node;
  unsigned operand;
  Perm perm; ///< operand = transpose(root, perm)
};

/// A value that is computed, and who reads it.
struct Root {
  Value value;
  int producer = -1; ///< node, or -1 for arguments
  bool isConstant = false;
  int64_t bytes = 0;
  SmallVector<Use> uses;
};

struct Node {
  Operation *op;
  Relayout relayout;
  SmallVector<int> operandRoots, resultRoots;
  SmallVector<Perm> operandPerms;
};

/// The order of the dimensions that are not 1: layouts with the same key store the same bytes.
Perm layoutKey(RankedTensorType type, ArrayRef<int64_t> layout) {
  Perm key;
  for (int64_t dim : layout)
    if (type.getDimSize(dim) != 1)
      key.push_back(dim);
  return key;
}

using Labels = std::vector<Perm>;

class LayoutProblem {
public:
  LayoutProblem(Block &block, bool planes) : planes(planes) {
    for (Value argument : block.getArguments())
      rootIndex(argument);
    for (Operation &op : block)
      if (!isa<TransposeOp, ConstantOp>(op))
        addNode(&op);
  }

  Labels initialLabels() const {
    Labels labels;
    for (const Node &node : nodes)
      labels.push_back(node.relayout.initialLabel());
    return labels;
  }

  int64_t totalCost(const Labels &labels) const {
    int64_t cost = 0;
    for (const Root &root : roots)
      cost += rootCost(root, labels);
    return cost;
  }

  /// The best labels found from all starting points.
  Labels solve() const {
    Labels best = initialLabels();
    refine(best);
    int64_t bestCost = totalCost(best);
    for (bool forward : {true, false}) {
      if (bestCost == 0)
        break;
      Labels labels = initialLabels();
      sweep(labels, forward);
      refine(labels);
      int64_t cost = totalCost(labels);
      if (cost < bestCost) {
        best = labels;
        bestCost = cost;
      }
    }
    return best;
  }

  void rewrite(const Labels &labels);

private:
  int rootIndex(Value value) {
    auto [entry, isNew] = rootIndices.try_emplace(value, roots.size());
    if (isNew) {
      Root root;
      root.value = value;
      root.isConstant = static_cast<bool>(getConstantValue(value));
      root.bytes = estimateBytes(tensorType(value));
      roots.push_back(root);
    }
    return entry->second;
  }

  void addNode(Operation *op) {
    int index = nodes.size();
    nodes.push_back({op, Relayout(op, planes), {}, {}, {}});
    Node &node = nodes.back();
    for (OpOperand &operand : op->getOpOperands()) {
      Resolved resolved = resolve(operand.get());
      int root = rootIndex(resolved.root);
      roots[root].uses.push_back({index, operand.getOperandNumber(), resolved.perm});
      node.operandRoots.push_back(root);
      node.operandPerms.push_back(resolved.perm);
    }
    for (Value result : op->getResults()) {
      int root = rootIndex(result);
      roots[root].producer = index;
      node.resultRoots.push_back(root);
    }
  }

  Perm storedLayout(const Root &root, const Labels &labels) const {
    if (root.producer < 0)
      return identityPerm(tensorType(root.value).getRank());
    unsigned result = cast<OpResult>(root.value).getResultNumber();
    return nodes[root.producer].relayout.resultLayout(result, labels[root.producer]);
  }
  Perm wantedLayout(const Use &use, const Labels &labels) const {
    return compose(use.perm, nodes[use.node].relayout.operandLayout(use.operand, labels[use.node]));
  }

  /// Bytes of the transposes of one value: each layout that is wanted is made once.
  int64_t rootCost(const Root &root, const Labels &labels) const {
    if (root.isConstant || root.uses.empty())
      return 0;
    RankedTensorType type = tensorType(root.value);
    Perm stored = layoutKey(type, storedLayout(root, labels));
    std::set<Perm, bool (*)(const Perm &, const Perm &)> others(
        [](const Perm &a, const Perm &b) { return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end()); });
    for (const Use &use : root.uses)
      if (Perm wanted = layoutKey(type, wantedLayout(use, labels)); wanted != stored)
        others.insert(wanted);
    return root.bytes * static_cast<int64_t>(others.size());
  }

  /// Labels that would spare a transpose at one of the node's operands or results.
  SmallVector<Perm> candidates(int index, const Labels &labels, bool fromOperands, bool fromUses) const {
    const Node &node = nodes[index];
    SmallVector<Perm> found;
    auto add = [&](std::optional<Perm> label) {
      if (label && !llvm::is_contained(found, *label))
        found.push_back(*label);
    };
    if (fromOperands)
      for (unsigned i = 0; i < node.operandRoots.size(); ++i)
        if (!roots[node.operandRoots[i]].isConstant)
          add(node.relayout.labelForOperand(
              i, compose(invert(node.operandPerms[i]), storedLayout(roots[node.operandRoots[i]], labels))));
    if (fromUses)
      for (int root : node.resultRoots)
        for (const Use &use : roots[root].uses)
          add(node.relayout.labelForResult(wantedLayout(use, labels)));
    add(identityPerm(node.relayout.labelRank()));
    return found;
  }

  int64_t localCost(int index, const Labels &labels) const {
    int64_t cost = 0;
    SmallVector<int> seen;
    for (ArrayRef<int> list : {ArrayRef(nodes[index].operandRoots), ArrayRef(nodes[index].resultRoots)})
      for (int root : list)
        if (!llvm::is_contained(seen, root)) {
          seen.push_back(root);
          cost += rootCost(roots[root], labels);
        }
    return cost;
  }

  /// Bytes transposed at the node's operands alone, or at its results alone.
  int64_t sideCost(int index, const Labels &labels, bool operands) const {
    int64_t cost = 0;
    const Node &node = nodes[index];
    if (!operands) {
      for (int root : node.resultRoots)
        cost += rootCost(roots[root], labels);
      return cost;
    }
    for (unsigned i = 0; i < node.operandRoots.size(); ++i) {
      const Root &root = roots[node.operandRoots[i]];
      RankedTensorType type = tensorType(root.value);
      Use use{index, i, node.operandPerms[i]};
      if (!root.isConstant &&
          layoutKey(type, wantedLayout(use, labels)) != layoutKey(type, storedLayout(root, labels)))
        cost += root.bytes;
    }
    return cost;
  }

  /// Lets transposes sink as far as they can (forward), or rise.
  void sweep(Labels &labels, bool forward) const {
    for (size_t step = 0; step < nodes.size(); ++step) {
      int index = forward ? step : nodes.size() - 1 - step;
      if (!nodes[index].relayout.isFlexible())
        continue;
      Perm best = labels[index];
      int64_t bestCost = std::numeric_limits<int64_t>::max();
      for (const Perm &label : candidates(index, labels, forward, !forward)) {
        labels[index] = label;
        int64_t cost = sideCost(index, labels, forward);
        if (cost < bestCost) {
          bestCost = cost;
          best = label;
        }
      }
      labels[index] = best;
    }
  }

  void refine(Labels &labels) const {
    constexpr int maxRounds = 16;
    for (int round = 0; round < maxRounds; ++round) {
      bool changed = false;
      for (int index = 0, count = nodes.size(); index < count; ++index) {
        if (!nodes[index].relayout.isFlexible() || localCost(index, labels) == 0)
          continue;
        changed |= improveNode(index, labels) || improveGroup(index, labels);
      }
      if (!changed)
        return;
    }
  }

  bool improveNode(int index, Labels &labels) const {
    Perm original = labels[index], best = original;
    int64_t bestCost = localCost(index, labels);
    bool improved = false;
    for (const Perm &label : candidates(index, labels, true, true)) {
      labels[index] = label;
      int64_t cost = localCost(index, labels);
      if (cost < bestCost) {
        bestCost = cost;
        best = label;
        improved = true;
      }
    }
    labels[index] = best;
    return improved;
  }

  /// Changes a node and every node that must follow so that edges without a transpose stay so.
  bool improveGroup(int index, Labels &labels) const {
    int64_t before = totalCost(labels);
    for (const Perm &label : candidates(index, labels, true, true)) {
      if (label == labels[index])
        continue;
      Labels trial = labels;
      propagate(index, label, trial);
      if (totalCost(trial) < before) {
        labels = std::move(trial);
        return true;
      }
    }
    return false;
  }

  void propagate(int start, const Perm &label, Labels &labels) const {
    std::deque<int> queue{start};
    std::vector<char> done(nodes.size(), 0);
    Labels old = labels;
    labels[start] = label;
    done[start] = 1;
    auto follow = [&](int other, std::optional<Perm> wanted) {
      if (other < 0 || done[other] || !nodes[other].relayout.isFlexible() || !wanted)
        return;
      done[other] = 1;
      labels[other] = *wanted;
      queue.push_back(other);
    };
    while (!queue.empty()) {
      int index = queue.front();
      queue.pop_front();
      const Node &node = nodes[index];
      for (unsigned i = 0; i < node.operandRoots.size(); ++i) {
        const Root &root = roots[node.operandRoots[i]];
        Use use{index, i, node.operandPerms[i]};
        RankedTensorType type = tensorType(root.value);
        if (root.producer >= 0 && layoutKey(type, wantedLayout(use, old)) == layoutKey(type, storedLayout(root, old)))
          follow(root.producer, nodes[root.producer].relayout.labelForResult(wantedLayout(use, labels)));
      }
      for (int rootNumber : node.resultRoots) {
        const Root &root = roots[rootNumber];
        RankedTensorType type = tensorType(root.value);
        Perm stored = storedLayout(root, labels), storedBefore = layoutKey(type, storedLayout(root, old));
        for (const Use &use : root.uses)
          if (layoutKey(type, wantedLayout(use, old)) == storedBefore)
            follow(use.node,
                   nodes[use.node].relayout.labelForOperand(use.operand, compose(invert(use.perm), stored)));
      }
    }
  }

  bool planes;
  std::vector<Node> nodes;
  std::vector<Root> roots;
  llvm::DenseMap<Value, int> rootIndices;
};

/// The stored form of each value while a function is rewritten.
struct Store {
  /// transpose(root, layout), from what is stored.
  Value get(OpBuilder &builder, Location loc, Value root, ArrayRef<int64_t> layout) {
    Stored &stored = values.try_emplace(root, Stored{root, identityPerm(tensorType(root).getRank()), {}}).first->second;
    Perm relative = compose(invert(stored.layout), layout);
    if (isIdentity(relative))
      return stored.value;
    for (auto &[perm, value] : stored.transposed)
      if (perm == relative)
        return value;
    RankedTensorType type = tensorType(stored.value);
    Value made;
    if (movesOnlyUnits(type, relative))
      made = ReshapeOp::create(builder, loc, makeTensor(permuted(getDims(type), relative), type.getElementType()),
                               stored.value);
    else
      made = TransposeOp::create(builder, loc, stored.value, relative);
    stored.transposed.push_back({relative, made});
    return made;
  }
  void set(Value root, Value value, const Perm &layout) { values[root] = Stored{value, layout, {}}; }

  struct Stored {
    Value value;
    Perm layout;
    SmallVector<std::pair<Perm, Value>> transposed;
  };
  llvm::DenseMap<Value, Stored> values;
};

void LayoutProblem::rewrite(const Labels &labels) {
  Store store;
  for (size_t index = 0; index < nodes.size(); ++index) {
    Node &node = nodes[index];
    Operation *op = node.op;
    OpBuilder builder(op);
    const Perm &label = labels[index];
    SmallVector<Value> operands;
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      Resolved resolved = resolve(op->getOperand(i));
      Perm wanted = compose(resolved.perm, node.relayout.operandLayout(i, label));
      Location loc = op->getOperand(i).getDefiningOp<TransposeOp>() ? op->getOperand(i).getLoc() : op->getLoc();
      operands.push_back(store.get(builder, loc, resolved.root, wanted));
    }
    if (isIdentity(label)) {
      op->setOperands(operands);
      continue;
    }
    Operation *made = node.relayout.rebuild(builder, label, operands);
    for (auto [before, after] : llvm::zip_equal(op->getResults(), made->getResults())) {
      Perm layout = node.relayout.resultLayout(before.getResultNumber(), label);
      store.set(before, after, layout);
      // A flattened operation keeps its result.
      if (isIdentity(layout)) {
        before.replaceAllUsesWith(after);
        store.set(after, after, layout);
      }
    }
  }
  // Old operations are now read by dead transposes and by each other alone.
}

} // namespace
} // namespace simplify

namespace {

struct LayoutPass : PassWrapper<LayoutPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LayoutPass)

  StringRef getArgument() const override { return "nn-layout"; }
  StringRef getDescription() const override { return "choose the order of dimensions so that least is transposed"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<NNDialect>(); }

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!llvm::hasSingleElement(function.getBody()))
      return;
    simplify::LayoutProblem problem(function.getBody().front(), /*planes=*/false);
    simplify::Labels labels = problem.solve();
    if (problem.totalCost(labels) < problem.totalCost(problem.initialLabels()))
      problem.rewrite(labels);
    simplify::eraseDeadOps(function);
  }
};

/// Marks the convolutions, which then stand between transposes, and lets what is between them follow.
struct ChannelMajorPass : PassWrapper<ChannelMajorPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChannelMajorPass)

  explicit ChannelMajorPass(std::function<bool(ConvOp)> wanted) : wanted(std::move(wanted)) {}

  StringRef getArgument() const override { return "nn-channel-major"; }
  StringRef getDescription() const override { return "store the tensors between chosen convolutions channel-major"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<NNDialect>(); }

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!llvm::hasSingleElement(function.getBody()))
      return;
    bool any = false;
    for (ConvOp conv : function.getOps<ConvOp>())
      if (!conv->hasAttr(channelMajorAttr) && simplify::tensorType(conv.getInput()).getRank() == 4 && wanted(conv)) {
        conv->setAttr(channelMajorAttr, UnitAttr::get(&getContext()));
        any = true;
      }
    if (!any)
      return;
    simplify::LayoutProblem problem(function.getBody().front(), /*planes=*/true);
    problem.rewrite(problem.solve());
    simplify::eraseDeadOps(function);
  }

  std::function<bool(ConvOp)> wanted;
};

/// Whether a value comes from, or goes to, the function's border through operations that only map or join elements.
bool comesFromArgument(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return true;
  return isa<QuantizeOp, DequantizeOp, CastOp, UnaryOp, ReshapeOp, RequantizeOp, TransposeOp>(op) &&
         comesFromArgument(op->getOperand(0));
}
bool goesToReturn(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<func::ReturnOp>(user) ||
           (isa<QuantizeOp, DequantizeOp, CastOp, UnaryOp, ReshapeOp, RequantizeOp, TransposeOp, ConcatOp>(user) &&
            goesToReturn(user->getResult(0)));
  });
}

} // namespace

std::unique_ptr<Pass> createLayoutPass() { return std::make_unique<LayoutPass>(); }

std::unique_ptr<Pass> createChannelMajorPass(std::function<bool(ConvOp)> wanted) {
  return std::make_unique<ChannelMajorPass>(std::move(wanted));
}

LayoutReport countLayoutOps(func::FuncOp function) {
  LayoutReport report;
  function.walk([&](Operation *op) {
    if (isa<ReshapeOp>(op))
      ++report.reshapes;
    auto transpose = dyn_cast<TransposeOp>(op);
    if (!transpose || simplify::movesOnlyUnits(simplify::tensorType(transpose.getInput()), transpose.getPerm()))
      return;
    int64_t bytes = estimateBytes(simplify::tensorType(transpose.getResult()));
    bool border = comesFromArgument(transpose.getInput()) || goesToReturn(transpose.getResult());
    (border ? report.borderTransposes : report.transposes) += 1;
    (border ? report.borderBytes : report.transposeBytes) += bytes;
  });
  return report;
}

} // namespace ajour
