//===- StateSpace.cpp - dispatches of state-space operations -----------------------------------===//
//
// A work item is a block of channels, which goes through all tokens: channels do not depend on each other. Innermost loops run
// along channels, so that they become vectors, and nothing is summed across their lanes.
//
//===----------------------------------------------------------------------===//
#include "Blocking.h"
#include "Lowering.h"

using namespace mlir;

namespace ajour::loops {

namespace {
/// Channels of a convolution's item.
constexpr int64_t convBlock = 256;
/// Heads of a scan's item where a head is one channel: their states and decays stay in the first cache.
constexpr int64_t scanBlock = 64;
/// States that one pass over an item's channels advances: their sum goes to memory once.
constexpr int64_t statesAtOnce = 4;
} // namespace

//===----------------------------------------------------------------------===//
// causal_conv
//===----------------------------------------------------------------------===//

void DispatchLowering::lowerCausalConv(nn::CausalConvOp op) {
  nn::Dims dims = nn::getDims(op.getInput());
  Type element = Emitter::elementType(op.getInput());
  Type real = element.isF64() ? element : Type(Float32Type::get(context));
  int64_t channels = *known(dims[1]), before = cast<RankedTensorType>(op.getFilter().getType()).getDimSize(0) - 1;
  auto read = [&](Value tensor, ArrayRef<Value> at) { return e->toFloat(e->element(tensor, at), element); };
  auto constant = [&](int64_t number) { return getAffineConstantExpr(number, context); };
  items(constant(llvm::divideCeil(channels, convBlock)), [&](Value item) {
    Value first = e->mul(item, e->i64(convBlock)), tokens = e->size(dims[0]);
    Value last = channels % convBlock == 0 ? e->add(first, e->i64(convBlock)) : e->min(e->add(first, e->i64(convBlock)), e->i64(channels));
    // Row `i` of the state before; the rows behind it are the input's.
    auto old = [&](int64_t i, Value c) {
      return op.getInitial() ? e->element(op.getInitial(), {e->i64(i), c}) : e->convert(e->constant(real, 0), real, element);
    };
    // Output of token t, whose first `fromState` taps meet the state.
    auto token = [&](Value t, int64_t fromState) {
      e->loop(first, last, [&](Value c) {
        Value sum = op.getBias() ? read(op.getBias(), {c}) : e->constant(real, 0);
        for (int64_t k = 0; k <= before; ++k) {
          Value x = k < fromState ? e->toFloat(old(before - fromState + k, c), element) : read(op.getInput(), {e->sub(e->add(t, e->i64(k)), e->i64(before)), c});
          sum = e->binary(nn::BinaryKind::add, sum, e->binary(nn::BinaryKind::mul, read(op.getFilter(), {e->i64(k), c}), x, real), real);
        }
        if (op.getSilu())
          sum = e->unary(nn::UnaryKind::silu, sum, real, 0, 0);
        e->storeAt(e->convert(sum, real, element), operandPointer(OperandSpec::Result, 0), e->linearize({t, c}, dims), element);
      });
    };
    for (int64_t t = 0; t < before; ++t)
      e->ifThenElse(e->compare(arith::CmpIPredicate::slt, e->i64(t), tokens), [&] { token(e->i64(t), before - t); }, [] {});
    e->loop(e->i64(before), tokens, [&](Value t) { token(t, 0); });
    // The state behind: the last rows of both.
    for (int64_t i = 0; i < before; ++i) {
      auto copy = [&](function_ref<Value(Value)> source) {
        e->loop(first, last, [&](Value c) {
          e->storeAt(source(c), operandPointer(OperandSpec::Result, 1), e->add(e->i64(i * channels), c), element);
        });
      };
      Value row = e->sub(e->add(tokens, e->i64(i)), e->i64(before));
      // With fewer tokens than that, the row is one of the state before: which, is known for each number of tokens.
      e->ifThenElse(
          e->compare(arith::CmpIPredicate::sge, row, e->i64(0)),
          [&] { copy([&](Value c) { return e->element(op.getInput(), {row, c}); }); },
          [&] {
            for (int64_t given = 0; given < before - i; ++given)
              e->ifThenElse(
                  e->compare(arith::CmpIPredicate::eq, tokens, e->i64(given)), [&] { copy([&](Value c) { return old(given + i, c); }); },
                  [] {});
          });
    }
  });
}

//===----------------------------------------------------------------------===//
// selective_scan
//===----------------------------------------------------------------------===//

class DispatchLowering::SelectiveScan {
public:
  SelectiveScan(DispatchLowering &lowering, nn::SelectiveScanOp op);
  void lower();

private:
  Value read(Value tensor, ArrayRef<Value> at) { return e.toFloat(e.element(tensor, at), element); }
  Value number(double value) { return e.constant(real, value); }
  Value add(Value x, Value y) { return e.binary(nn::BinaryKind::add, x, y, real); }
  Value mul(Value x, Value y) { return e.binary(nn::BinaryKind::mul, x, y, real); }
  Value exp(Value x) { return e.unary(nn::UnaryKind::exp, x, real, 0, 0); }
  void forChannels(function_ref<void(Value c)> body) { e.loop(e.i64(0), count, body); }
  /// Index of the item's channel c in a tensor [T, H, P].
  Index at(Value t, Value c) { return single ? Index{t, e.add(head, c), e.i64(0)} : Index{t, head, c}; }
  Value headOf(Value c) { return single ? e.add(head, c) : head; }
  /// Position of a state's channel in a tensor [N, H, P].
  Value statePlace(Value n, Value c) {
    return e.linearize(single ? Index{n, e.add(head, c), e.i64(0)} : Index{n, head, c}, nn::getDims(op.getFinal()));
  }
  Value step(Value t, Value head);

  using Load = function_ref<Value(Value n, Value c)>;
  using Store = function_ref<void(Value state, Value n, Value c)>;
  void token(Value t, Load load, Store store);
  void advance(Value t, Value n, int64_t many, Value step, Value decay, Load load, Store store);

  DispatchLowering &l;
  Emitter &e;
  nn::SelectiveScanOp op;
  Type element, real;
  int64_t heads, size, states, groups, width;
  bool single;       ///< a head is one channel: an item is a block of heads; else it is a head
  bool sharedDecay;  ///< by all states of a head
  Value head, group, count; ///< of the item: its first head, and how many channels it has
  Value steps, inputs, sums; ///< of each channel: d, or what the state decays by; d x; y
};

DispatchLowering::SelectiveScan::SelectiveScan(DispatchLowering &lowering, nn::SelectiveScanOp op)
    : l(lowering), e(*lowering.e), op(op), element(Emitter::elementType(op.getX())),
      real(element.isF64() ? element : Type(Float32Type::get(l.context))) {
  nn::Dims x = nn::getDims(op.getX()), b = nn::getDims(op.getB());
  heads = *known(x[1]);
  size = *known(x[2]);
  states = *known(b[2]);
  groups = *known(b[1]);
  single = size == 1;
  sharedDecay = *known(nn::getDims(op.getA())[0]) == 1;
  width = single ? std::min(scanBlock, heads / groups) : size;
}

/// d of a token and head.
Value DispatchLowering::SelectiveScan::step(Value t, Value head) {
  Value d = read(op.getDelta(), {t, head});
  if (op.getDeltaBias())
    d = add(d, read(op.getDeltaBias(), {head}));
  if (op.getSoftplus())
    d = e.unary(nn::UnaryKind::softplus, d, real, 0, 0);
  if (APFloat low = op.getDeltaMin(); !low.isInfinity())
    d = e.binary(nn::BinaryKind::max, d, number(low.convertToDouble()), real);
  if (APFloat high = op.getDeltaMax(); !high.isInfinity())
    d = e.binary(nn::BinaryKind::min, d, number(high.convertToDouble()), real);
  return d;
}

/// Advances `many` states from n on of all channels by one token. `step` and `decay` are those of the head, or null where
/// each channel has its own.
void DispatchLowering::SelectiveScan::advance(Value t, Value n, int64_t many, Value step, Value decay, Load load, Store store) {
  SmallVector<Value> numbers, in, out, decays;
  for (int64_t i = 0; i < many; ++i) {
    numbers.push_back(e.add(n, e.i64(i)));
    in.push_back(read(op.getB(), {t, group, numbers[i]}));
    out.push_back(read(op.getC(), {t, group, numbers[i]}));
    decays.push_back(decay || !step ? decay : exp(mul(step, read(op.getA(), {numbers[i], head}))));
  }
  forChannels([&](Value c) {
    Value sum = e.loadAt(sums, c, real), input = e.loadAt(inputs, c, real);
    for (int64_t i = 0; i < many; ++i) {
      Value factor = decays[i];
      if (!factor)
        factor = sharedDecay ? e.loadAt(steps, c, real) : exp(mul(e.loadAt(steps, c, real), read(op.getA(), {numbers[i], headOf(c)})));
      Value state = add(mul(factor, load(numbers[i], c)), mul(input, in[i]));
      store(state, numbers[i], c);
      sum = add(sum, mul(state, out[i]));
    }
    e.storeAt(sum, sums, c, real);
  });
}

void DispatchLowering::SelectiveScan::token(Value t, Load load, Store store) {
  Value headStep = single ? Value() : step(t, head);
  auto decayOf = [&](Value d, Value head) { return exp(mul(d, read(op.getA(), {e.i64(0), head}))); };
  Value headDecay = !single && sharedDecay ? decayOf(headStep, head) : Value();
  forChannels([&](Value c) {
    Value x = read(op.getX(), at(t, c)), d = single ? step(t, headOf(c)) : headStep;
    e.storeAt(mul(d, x), inputs, c, real);
    e.storeAt(op.getSkip() ? mul(x, read(op.getSkip(), {headOf(c)})) : number(0), sums, c, real);
    if (single)
      e.storeAt(sharedDecay ? decayOf(d, headOf(c)) : d, steps, c, real);
  });
  int64_t whole = states / statesAtOnce * statesAtOnce;
  e.loop(e.i64(0), e.i64(whole), [&](Value n) { advance(t, n, statesAtOnce, headStep, headDecay, load, store); }, statesAtOnce);
  if (whole < states)
    advance(t, e.i64(whole), states - whole, headStep, headDecay, load, store);
  forChannels([&](Value c) {
    Value y = e.loadAt(sums, c, real);
    if (op.getGate())
      y = mul(y, e.unary(nn::UnaryKind::silu, read(op.getGate(), at(t, c)), real, 0, 0));
    e.storeAt(e.convert(y, real, element), l.operandPointer(OperandSpec::Result, 0), e.linearize(at(t, c), nn::getDims(op.getX())), element);
  });
}

void DispatchLowering::SelectiveScan::lower() {
  int64_t perGroup = heads / groups, blocks = single ? llvm::divideCeil(perGroup, width) : perGroup;
  auto constant = [&](int64_t number) { return getAffineConstantExpr(number, l.context); };
  l.lowered.scratchBytes = constant(states * width * nn::elementBytes(real));
  steps = e.frameArray(real, width);
  inputs = e.frameArray(real, width);
  sums = e.frameArray(real, width);
  l.items(constant(groups * blocks), [&](Value item) {
    group = e.div(item, e.i64(blocks));
    count = e.i64(width);
    head = item;
    if (single) {
      Value block = e.rem(item, e.i64(blocks));
      head = e.add(e.mul(group, e.i64(perGroup)), e.mul(block, e.i64(width)));
      if (perGroup % width != 0)
        count = e.min(count, e.sub(e.i64(perGroup), e.mul(block, e.i64(width))));
    }
    Value tokens = e.size(nn::getDims(op.getX())[0]), final = l.operandPointer(OperandSpec::Result, 1);
    auto before = [&](Value n, Value c) {
      return op.getInitial() ? read(op.getInitial(), single ? Index{n, e.add(head, c), e.i64(0)} : Index{n, head, c}) : number(0);
    };
    auto after = [&](Value state, Value n, Value c) { e.storeAt(e.convert(state, real, element), final, statePlace(n, c), element); };
    auto place = [&](Value n, Value c) { return e.add(e.mul(n, e.i64(width)), c); };
    auto load = [&](Value n, Value c) { return e.loadAt(l.scratch, place(n, c), real); };
    auto store = [&](Value state, Value n, Value c) { e.storeAt(state, l.scratch, place(n, c), real); };
    auto forStates = [&](function_ref<void(Value, Value)> body) {
      e.loop(e.i64(0), e.i64(states), [&](Value n) { forChannels([&](Value c) { body(n, c); }); });
    };
    // One token goes from state to state; for more, the states stay together in scratch meanwhile.
    e.ifThenElse(
        e.compare(arith::CmpIPredicate::eq, tokens, e.i64(1)), [&] { token(e.i64(0), before, after); },
        [&] {
          forStates([&](Value n, Value c) { store(before(n, c), n, c); });
          e.loop(e.i64(0), tokens, [&](Value t) { token(t, load, store); });
          forStates([&](Value n, Value c) { after(load(n, c), n, c); });
        });
  });
}

void DispatchLowering::lowerSelectiveScan(nn::SelectiveScanOp op) { SelectiveScan(*this, op).lower(); }

} // namespace ajour::loops
