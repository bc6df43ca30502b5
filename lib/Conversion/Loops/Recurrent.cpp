//===- Recurrent.cpp - recurrences over time ----------------------------------------------===//
//
// A work item is a row of the batch, or as many as the kernel takes at once, which goes through all steps. In each
// step a product with the recurrent weights, by micro-kernel where they are constants, is followed by a loop over
// the units.
//
//===----------------------------------------------------------------------===//
#include "Blocking.h"
#include "Lowering.h"

using namespace mlir;

namespace ajour::loops {

RecurrentPlan DispatchLowering::planRecurrent(Operation *op) {
  RecurrentPlan plan{};
  auto pack = [&](Value weights) {
    std::optional<unsigned> argument = weights ? constantArgument(weights) : std::nullopt;
    if (!argument || !Emitter::elementType(weights).isF32() || !plan.kernel)
      return -1;
    auto type = cast<RankedTensorType>(weights.getType());
    PackSpec spec{};
    spec.kind = PackSpec::GemmF32;
    spec.weights = *argument;
    spec.k = type.getDimSize(1);
    spec.n = type.getDimSize(0);
    spec.nr = plan.kernel->nr;
    spec.kr = plan.kernel->kr;
    return int(addPack(spec));
  };
  plan.kernel = ajour_find_kernel(AJOUR_KERNEL_gemm_f32, level);
  plan.recurrentPack = pack(op->getOperand(1));
  if (auto lstm = dyn_cast<nn::LstmOp>(op))
    plan.projectionPack = pack(lstm.getProjection());
  return plan;
}

/// Memory of an item for each of its rows.
struct Area {
  int64_t offset = 0; ///< elements from the start of scratch
  int64_t width = 0;  ///< elements of a row
};

class DispatchLowering::RecurrentCell {
public:
  template <typename Op>
  RecurrentCell(DispatchLowering &lowering, const RecurrentPlan &plan, Op op)
      : l(lowering), e(*lowering.e), plan(plan), input(op.getInput()), recurrent(op.getRecurrent()),
        lengths(op.getLengths()), kinds(op.getActivations()), alphas(op.getAlphas()), betas(op.getBetas()),
        clip(op.getClip().convertToDouble()), reverse(op.getReverse()), element(Emitter::elementType(op.getInput())),
        real(element.isF64() ? element : Type(Float32Type::get(l.context))) {
    state = cast<RankedTensorType>(recurrent.getType()).getDimSize(1);
    steps = nn::getDims(input)[0];
    batch = nn::getDims(input)[1];
    if (std::optional<int64_t> known = loops::known(batch); known && plan.recurrentPack >= 0)
      rows = *known < 1 ? 1 : llvm::divideCeil(*known, llvm::divideCeil(*known, plan.kernel->mr));
    h = area(state);
  }

  void lower(nn::RnnOp op);
  void lower(nn::GruOp op);
  void lower(nn::LstmOp op);

private:
  using At = std::function<void(Value t, Value row, Value place)>;

  Area area(int64_t width) {
    Area made{scratchElements, width};
    // Every area is aligned as a buffer is.
    scratchElements += llvm::alignTo(width * rows, 16);
    return made;
  }
  Value base(const Area &area) { return e.pointer(l.scratch, e.i64(area.offset), real); }
  Value load(const Area &area, Value row, Value unit) {
    return e.loadAt(base(area), e.add(e.mul(row, e.i64(area.width)), unit), real);
  }
  void store(Value x, const Area &area, Value row, Value unit) {
    e.storeAt(x, base(area), e.add(e.mul(row, e.i64(area.width)), unit), real);
  }

  /// Element of an operand as a real; `at` has its rank.
  Value read(Value tensor, ArrayRef<Value> at) { return e.toFloat(e.element(tensor, at), Emitter::elementType(tensor)); }
  Value number(double value) { return e.constant(real, value); }
  Value add(Value x, Value y) { return e.binary(nn::BinaryKind::add, x, y, real); }
  Value sub(Value x, Value y) { return e.binary(nn::BinaryKind::sub, x, y, real); }
  Value mul(Value x, Value y) { return e.binary(nn::BinaryKind::mul, x, y, real); }
  Value limit(Value x, double low, double high) {
    x = e.binary(nn::BinaryKind::max, x, number(low), real);
    return e.binary(nn::BinaryKind::min, x, number(high), real);
  }
  Value limit(Value x, double bound) { return bound == 0 ? x : limit(x, -bound, bound); }
  Value unary(nn::UnaryKind kind, Value x, float alpha = 0, float beta = 0) {
    return e.unary(kind, x, real, alpha, beta);
  }
  Value activate(unsigned i, Value x, bool limited = true);

  void product(int pack, Value weights, int64_t from, int64_t to, const Area &source, const Area &target);
  void initialise(const Area &area, Value initial);
  void forUnits(int64_t count, function_ref<void(Value)> body) { e.loop(e.i64(0), e.i64(count), body); }
  void forRows(Value step, At body, At ended = nullptr);
  void run(function_ref<void(Value step)> body, ArrayRef<std::pair<Area, Value>> states);
  /// Rounds to the element type, which the next step and the results have, and stores a unit of the output.
  void output(Value x, Value t, Value row, Value place, Value unit);
  void end(Value t, Value place);

  // LSTM.
  Value gate(nn::LstmOp op, int64_t i, Value t, Value row, Value place, Value unit, Value cell);
  void normalise(nn::LstmOp op, int64_t i, const Area &cell, Value t, Value row, Value place);

  DispatchLowering &l;
  Emitter &e;
  const RecurrentPlan &plan;
  Value input, recurrent, lengths;
  ArrayAttr kinds;
  ArrayRef<float> alphas, betas;
  double clip;
  bool reverse;
  Type element, real;
  AffineExpr steps, batch;
  int64_t state = 0, rows = 1, scratchElements = 0;
  Area h, sums;
  Value first, rowCount; ///< of the item: its first row, and how many there are
};

//===----------------------------------------------------------------------===//
// What the cells share
//===----------------------------------------------------------------------===//

Value DispatchLowering::RecurrentCell::activate(unsigned i, Value x, bool limited) {
  float alpha = alphas.empty() ? 0 : alphas[i], beta = betas.empty() ? 0 : betas[i];
  if (limited)
    x = limit(x, clip);
  switch (cast<nn::CellActivationAttr>(kinds[i]).getValue()) {
  case nn::CellActivation::sigmoid:
    return unary(nn::UnaryKind::sigmoid, x);
  case nn::CellActivation::tanh:
    return unary(nn::UnaryKind::tanh, x);
  case nn::CellActivation::relu:
    return unary(nn::UnaryKind::relu, x);
  case nn::CellActivation::affine:
    return add(mul(x, number(alpha)), number(beta));
  case nn::CellActivation::leaky_relu:
    return unary(nn::UnaryKind::leaky_relu, x, alpha);
  case nn::CellActivation::thresholded_relu:
    return unary(nn::UnaryKind::thresholded_relu, x, alpha);
  case nn::CellActivation::scaled_tanh:
    return mul(unary(nn::UnaryKind::tanh, mul(x, number(beta))), number(alpha));
  case nn::CellActivation::hard_sigmoid:
    return unary(nn::UnaryKind::hard_sigmoid, x, alpha, beta);
  case nn::CellActivation::elu:
    return unary(nn::UnaryKind::elu, x, alpha);
  case nn::CellActivation::softsign:
    return unary(nn::UnaryKind::softsign, x);
  case nn::CellActivation::softplus:
    return unary(nn::UnaryKind::softplus, x);
  case nn::CellActivation::relu6:
    return limit(x, 0, 6);
  }
  llvm_unreachable("an unknown activation");
}

/// Columns [from, to) of source times the transposed weights, into the same columns of the target.
void DispatchLowering::RecurrentCell::product(int pack, Value weights, int64_t from, int64_t to, const Area &source,
                                              const Area &target) {
  if (pack < 0) {
    e.loop(e.i64(0), rowCount, [&](Value row) {
      e.loop(e.i64(from), e.i64(to), [&](Value n) {
        Value sum = e.reduce(e.i64(0), e.i64(source.width), {number(0)}, [&](Value k, ArrayRef<Value> sum) -> Index {
          return {add(sum[0], mul(load(source, row, k), read(weights, {n, k})))};
        })[0];
        store(sum, target, row, n);
      });
    });
    return;
  }
  const ajour_kernel_row &kernel = *plan.kernel;
  int64_t nr = kernel.nr, paddedK = llvm::alignTo(source.width, kernel.kr);
  Value packed = l.operandPointer(OperandSpec::Packed, pack), acc = e.frameArray(real, kernel.mr * nr);
  e.loop(e.i64(from / nr), e.i64(llvm::divideCeil(to, nr)), [&](Value panel) {
    Value rhs = e.pointer(packed, e.mul(panel, e.i64(paddedK * nr)), real), column = e.mul(panel, e.i64(nr));
    l.callKernel(kernel.symbol, {base(source), e.i64(source.width), rhs, acc, e.i64(rows), e.i64(paddedK)});
    Value begin = from % nr ? e.max(e.i64(from), column) : column;
    Value end = to % nr ? e.min(e.i64(to), e.add(column, e.i64(nr))) : e.add(column, e.i64(nr));
    e.loop(e.i64(0), rowCount, [&](Value row) {
      e.loop(begin, end, [&](Value n) {
        Value place = e.add(e.mul(row, e.i64(nr)), e.sub(n, column));
        store(e.loadAt(acc, place, real), target, row, n);
      });
    });
  });
}

void DispatchLowering::RecurrentCell::initialise(const Area &area, Value initial) {
  e.loop(e.i64(0), e.i64(area.width * rows), [&](Value i) { e.storeAt(number(0), base(area), i, real); });
  if (initial)
    e.loop(e.i64(0), rowCount, [&](Value row) {
      forUnits(area.width, [&](Value unit) { store(read(initial, {e.add(first, row), unit}), area, row, unit); });
    });
}

/// Calls `body` for each row that has this step, with the time of the step, the row in the item and in the batch.
void DispatchLowering::RecurrentCell::forRows(Value step, At body, At ended) {
  e.loop(e.i64(0), rowCount, [&](Value row) {
    Value place = e.add(first, row), count = e.size(steps);
    if (lengths) {
      Value given = e.convert(e.element(lengths, {place}), Emitter::elementType(lengths), e.b.getI64Type());
      count = e.max(e.i64(0), e.min(count, given));
    }
    auto active = [&] { body(reverse ? e.sub(e.sub(count, e.i64(1)), step) : step, row, place); };
    if (!lengths)
      return active();
    e.ifThenElse(e.compare(arith::CmpIPredicate::slt, step, count), active, [&] {
      if (ended)
        ended(step, row, place);
    });
  });
}

void DispatchLowering::RecurrentCell::run(function_ref<void(Value)> body, ArrayRef<std::pair<Area, Value>> states) {
  l.lowered.scratchBytes = getAffineConstantExpr(scratchElements * nn::elementBytes(real), l.context);
  l.items(nn::simplifySize(batch.ceilDiv(rows)), [&](Value item) {
    first = e.mul(item, e.i64(rows));
    rowCount = loops::known(batch) && *loops::known(batch) % rows == 0
                   ? e.i64(rows)
                   : e.min(e.i64(rows), e.sub(e.size(batch), first));
    for (auto [area, initial] : states)
      initialise(area, initial);
    e.loop(e.i64(0), e.size(steps), [&](Value step) { body(step); });
    auto ret = cast<func::ReturnOp>(l.callee.getBody().front().getTerminator());
    for (auto [i, value] : llvm::enumerate(ret.getOperands())) {
      unsigned number = cast<OpResult>(value).getResultNumber();
      if (number == 0)
        continue;
      const Area &area = states[number - 1].first;
      Value target = l.operandPointer(OperandSpec::Result, i);
      e.loop(e.i64(0), rowCount, [&](Value row) {
        forUnits(area.width, [&](Value unit) {
          Value at = e.add(e.mul(e.add(first, row), e.i64(area.width)), unit);
          e.storeAt(e.convert(load(area, row, unit), real, element), target, at, element);
        });
      });
    }
  });
}

void DispatchLowering::RecurrentCell::output(Value x, Value t, Value row, Value place, Value unit) {
  Value rounded = e.convert(x, real, element);
  store(e.toFloat(rounded, element), h, row, unit);
  Value at = e.add(e.mul(e.add(e.mul(t, e.size(batch)), place), e.i64(state)), unit);
  e.storeAt(rounded, l.operandPointer(OperandSpec::Result, 0), at, element);
}

/// The output of a step that a row no longer has.
void DispatchLowering::RecurrentCell::end(Value t, Value place) {
  forUnits(state, [&](Value unit) {
    Value at = e.add(e.mul(e.add(e.mul(t, e.size(batch)), place), e.i64(state)), unit);
    e.storeAt(e.convert(number(0), real, element), l.operandPointer(OperandSpec::Result, 0), at, element);
  });
}

//===----------------------------------------------------------------------===//
// The cells
//===----------------------------------------------------------------------===//

void DispatchLowering::RecurrentCell::lower(nn::RnnOp op) {
  sums = area(state);
  run(
      [&](Value step) {
        product(plan.recurrentPack, recurrent, 0, state, h, sums);
        forRows(
            step,
            [&](Value t, Value row, Value place) {
              forUnits(state, [&](Value unit) {
                output(activate(0, add(read(input, {t, place, unit}), load(sums, row, unit))), t, row, place, unit);
              });
            },
            [&](Value t, Value, Value place) { end(t, place); });
      },
      {{h, op.getInitial()}});
}

void DispatchLowering::RecurrentCell::lower(nn::GruOp op) {
  bool linear = op.getLinearBeforeReset();
  int64_t hidden = state;
  sums = area(3 * hidden);
  Area resetState = linear ? Area() : area(hidden);
  auto of = [&](int64_t gate, Value unit) { return e.add(unit, e.i64(gate * hidden)); };
  auto x = [&](int64_t gate, Value t, Value place, Value unit) { return read(input, {t, place, of(gate, unit)}); };
  auto sum = [&](int64_t gate, Value row, Value unit) { return load(sums, row, of(gate, unit)); };
  auto bias = [&](Value value, Value unit) {
    return op.getCandidateBias() ? add(value, read(op.getCandidateBias(), {unit})) : value;
  };
  run(
      [&](Value step) {
        product(plan.recurrentPack, recurrent, 0, (linear ? 3 : 2) * hidden, h, sums);
        if (!linear) {
          forRows(step, [&](Value t, Value row, Value place) {
            forUnits(hidden, [&](Value unit) {
              Value r = activate(0, add(x(1, t, place, unit), sum(1, row, unit)));
              store(mul(r, load(h, row, unit)), resetState, row, unit);
            });
          });
          product(plan.recurrentPack, recurrent, 2 * hidden, 3 * hidden, resetState, sums);
        }
        forRows(
            step,
            [&](Value t, Value row, Value place) {
              forUnits(hidden, [&](Value unit) {
                Value z = activate(0, add(x(0, t, place, unit), sum(0, row, unit)));
                Value inner = bias(sum(2, row, unit), unit);
                if (linear)
                  inner = mul(activate(0, add(x(1, t, place, unit), sum(1, row, unit))), inner);
                Value n = activate(1, add(x(2, t, place, unit), inner));
                Value next = add(mul(sub(number(1), z), n), mul(z, load(h, row, unit)));
                output(next, t, row, place, unit);
              });
            },
            [&](Value t, Value, Value place) { end(t, place); });
      },
      {{h, op.getInitial()}});
}

/// The operand of a gate's function; with a norm it is in `sums` already.
Value DispatchLowering::RecurrentCell::gate(nn::LstmOp op, int64_t i, Value t, Value row, Value place, Value unit,
                                            Value cell) {
  Value at = e.add(unit, e.i64(i * (sums.width / 4)));
  Value x = load(sums, row, at);
  if (!op.getNorm()) {
    x = add(read(input, {t, place, at}), x);
    if (op.getPeephole() && i < 3)
      x = add(x, mul(cell, read(op.getPeephole(), {e.i64(i), unit})));
  }
  return op.getNormBias() ? add(x, read(op.getNormBias(), {e.i64(i), unit})) : x;
}

void DispatchLowering::RecurrentCell::normalise(nn::LstmOp op, int64_t i, const Area &cell, Value t, Value row,
                                                Value place) {
  int64_t hidden = sums.width / 4;
  auto at = [&](Value unit) { return e.add(unit, e.i64(i * hidden)); };
  auto meanOf = [&](function_ref<Value(Value)> term) {
    Value sum = e.reduce(e.i64(0), e.i64(hidden), {number(0)}, [&](Value unit, ArrayRef<Value> carried) -> Index {
      return {add(carried[0], term(unit))};
    })[0];
    return mul(sum, number(1.0 / double(hidden)));
  };
  Value mean = meanOf([&](Value unit) {
    Value x = add(read(input, {t, place, at(unit)}), load(sums, row, at(unit)));
    if (op.getPeephole() && i < 3)
      x = add(x, mul(load(cell, row, unit), read(op.getPeephole(), {e.i64(i), unit})));
    store(x, sums, row, at(unit));
    return x;
  });
  Value variance = meanOf([&](Value unit) {
    Value centred = sub(load(sums, row, at(unit)), mean);
    return mul(centred, centred);
  });
  Value factor = unary(nn::UnaryKind::rsqrt, add(variance, number(1e-8)));
  forUnits(hidden, [&](Value unit) {
    Value x = mul(sub(load(sums, row, at(unit)), mean), factor);
    store(mul(x, read(op.getNorm(), {e.i64(i), unit})), sums, row, at(unit));
  });
}

void DispatchLowering::RecurrentCell::lower(nn::LstmOp op) {
  int64_t hidden = cast<RankedTensorType>(recurrent.getType()).getDimSize(0) / 4;
  sums = area(4 * hidden);
  Area c = area(hidden), memory = op.getProjection() ? area(hidden) : Area();
  double cellClip = op.getCellClip().convertToDouble(), projectionClip = op.getProjectionClip().convertToDouble();
  auto nextCell = [&](Value t, Value row, Value place, Value unit) {
    Value old = load(c, row, unit);
    Value i = activate(0, gate(op, 0, t, row, place, unit, old));
    Value f = op.getInputForget() ? sub(number(1), i) : activate(0, gate(op, 2, t, row, place, unit, old));
    Value g = activate(1, gate(op, 3, t, row, place, unit, old));
    Value next = limit(add(mul(f, old), mul(i, g)), cellClip);
    return e.toFloat(e.convert(next, real, element), element);
  };
  auto setState = [&](Value cell, Value t, Value row, Value place, Value unit) {
    Value m = mul(activate(0, gate(op, 1, t, row, place, unit, cell)), activate(2, cell, /*limited=*/false));
    if (op.getProjection())
      return store(m, memory, row, unit);
    output(op.getProjectionBias() ? add(m, read(op.getProjectionBias(), {unit})) : m, t, row, place, unit);
  };
  auto ended = [&](Value t, Value, Value place) { end(t, place); };
  run(
      [&](Value step) {
        product(plan.recurrentPack, recurrent, 0, 4 * hidden, h, sums);
        forRows(
            step,
            [&](Value t, Value row, Value place) {
              if (op.getNorm())
                for (int64_t i : {0, 2, 3})
                  normalise(op, i, c, t, row, place);
              forUnits(hidden, [&](Value unit) {
                Value cell = nextCell(t, row, place, unit);
                store(cell, c, row, unit);
                if (!op.getNorm())
                  setState(cell, t, row, place, unit);
              });
              if (!op.getNorm())
                return;
              normalise(op, 1, c, t, row, place);
              forUnits(hidden, [&](Value unit) { setState(load(c, row, unit), t, row, place, unit); });
            },
            op.getProjection() ? At() : At(ended));
        if (!op.getProjection())
          return;
        // The sums of the gates are done with.
        Area projected{sums.offset, state};
        product(plan.projectionPack, op.getProjection(), 0, state, memory, projected);
        forRows(
            step,
            [&](Value t, Value row, Value place) {
              forUnits(state, [&](Value unit) {
                Value x = load(projected, row, unit);
                if (op.getProjectionBias())
                  x = add(x, read(op.getProjectionBias(), {unit}));
                output(limit(x, projectionClip), t, row, place, unit);
              });
            },
            ended);
      },
      {{h, op.getInitial()}, {c, op.getInitialCell()}});
}

void DispatchLowering::lowerRecurrent(Operation *op, const RecurrentPlan &plan) {
  llvm::TypeSwitch<Operation *>(op).Case<nn::RnnOp, nn::GruOp, nn::LstmOp>(
      [&](auto cell) { RecurrentCell(*this, plan, cell).lower(cell); });
}

} // namespace ajour::loops
