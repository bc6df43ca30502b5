//===- Emitter.cpp - scalars, control, memory ------------------------------------===//
#include "Emitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/AffineMap.h"

using namespace mlir;

namespace ajour::loops {

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value Emitter::i64(int64_t value) { return integer(b.getI64Type(), value); }
Value Emitter::i32(int32_t value) { return integer(b.getI32Type(), value); }

// Constants stand at the function's entry, one of each, so that equal indices are equal values.
Value Emitter::integer(Type type, int64_t value) {
  Value &cached = integers[{type.getAsOpaquePointer(), value}];
  if (!cached) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(entry);
    cached = arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  }
  return cached;
}

Value Emitter::constant(Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  return integer(type, static_cast<int64_t>(value));
}

Value Emitter::size(AffineExpr expr) {
  if (auto constant = nn::getConstant(expr))
    return i64(*constant);
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = size(binary.getLHS()), rhs = size(binary.getRHS());
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return add(lhs, rhs);
  case AffineExprKind::Mul:
    return mul(lhs, rhs);
  case AffineExprKind::FloorDiv:
    return b.createOrFold<arith::FloorDivSIOp>(loc, lhs, rhs);
  case AffineExprKind::CeilDiv:
    return b.createOrFold<arith::CeilDivSIOp>(loc, lhs, rhs);
  default:
    return rem(lhs, rhs);
  }
}

Value Emitter::product(ArrayRef<AffineExpr> dims) {
  return size(nn::numElements(dims, b.getContext()));
}

Type Emitter::scalarType(Type elementType) {
  if (auto integer = dyn_cast<IntegerType>(elementType))
    return IntegerType::get(b.getContext(), integer.getWidth());
  return elementType;
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void Emitter::loop(Value from, Value to, function_ref<void(Value)> body, int64_t step) {
  scf::ForOp::create(b, loc, from, to, i64(step), ValueRange{},
                     [&](OpBuilder &, Location, Value iv, ValueRange) {
                       scoped([&] { body(iv); });
                       scf::YieldOp::create(b, loc);
                     });
}

Index Emitter::reduce(Value from, Value to, ArrayRef<Value> initial,
                      function_ref<Index(Value, ArrayRef<Value>)> body, int64_t step) {
  auto forOp = scf::ForOp::create(b, loc, from, to, i64(step), ValueRange(initial),
                                  [&](OpBuilder &, Location, Value iv, ValueRange args) {
                                    Index carried(args.begin(), args.end());
                                    Index next = scoped([&] { return body(iv, carried); });
                                    scf::YieldOp::create(b, loc, ValueRange(next));
                                  });
  return Index(forOp.getResults().begin(), forOp.getResults().end());
}

Value Emitter::ifElse(Value condition, function_ref<Value()> then, function_ref<Value()> otherwise) {
  auto ifOp = scf::IfOp::create(
      b, loc, condition,
      [&](OpBuilder &, Location) { scf::YieldOp::create(b, loc, scoped([&] { return then(); })); },
      [&](OpBuilder &, Location) { scf::YieldOp::create(b, loc, scoped([&] { return otherwise(); })); });
  return ifOp.getResult(0);
}

void Emitter::ifThenElse(Value condition, function_ref<void()> then, function_ref<void()> otherwise) {
  scf::IfOp::create(
      b, loc, condition,
      [&](OpBuilder &, Location) {
        scoped([&] { then(); });
        scf::YieldOp::create(b, loc);
      },
      [&](OpBuilder &, Location) {
        scoped([&] { otherwise(); });
        scf::YieldOp::create(b, loc);
      });
}

void Emitter::nest(ArrayRef<AffineExpr> dims, function_ref<void(ArrayRef<Value>)> body) {
  Index index;
  std::function<void(size_t)> level = [&](size_t i) {
    if (i == dims.size())
      return body(index);
    if (nn::getConstant(dims[i]) == 1) {
      index.push_back(i64(0));
      level(i + 1);
      index.pop_back();
      return;
    }
    loop(i64(0), size(dims[i]), [&](Value iv) {
      index.push_back(iv);
      level(i + 1);
      index.pop_back();
    });
  };
  level(0);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// The type of an element in memory: a boolean takes a byte.
static Type storageType(Type elementType, MLIRContext *context) {
  if (auto integer = dyn_cast<IntegerType>(elementType))
    return IntegerType::get(context, std::max(8u, integer.getWidth()));
  return elementType;
}

Value Emitter::pointer(Value base, Value offset, Type elementType) {
  Type storage = storageType(elementType, b.getContext());
  return LLVM::GEPOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), storage, base,
                             ArrayRef<LLVM::GEPArg>{offset}, LLVM::GEPNoWrapFlags::inbounds);
}

Value Emitter::loadAt(Value base, Value offset, Type elementType) {
  Type storage = storageType(elementType, b.getContext());
  Value value = LLVM::LoadOp::create(b, loc, storage, pointer(base, offset, elementType));
  if (elementType.isInteger(1))
    value = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, integer(storage, 0));
  return value;
}

void Emitter::storeAt(Value scalar, Value base, Value offset, Type elementType) {
  if (elementType.isInteger(1))
    scalar = arith::ExtUIOp::create(b, loc, b.getI8Type(), scalar);
  LLVM::StoreOp::create(b, loc, scalar, pointer(base, offset, elementType));
}

void Emitter::prefetch(Value pointer, int level) { LLVM::Prefetch::create(b, loc, pointer, /*rw=*/0, /*hint=*/4 - level, /*cache=*/1); }

Value Emitter::frameArray(Type elementType, int64_t count) {
  Value size = i64(count);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(size);
  return LLVM::AllocaOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()),
                                storageType(elementType, b.getContext()), size, /*alignment=*/64);
}

Value Emitter::global(Type elementType, DenseElementsAttr values) {
  std::string name = "table_" + std::to_string(hash_value(values) & 0xffffffff) + "_" +
                     std::to_string(values.getNumElements());
  auto arrayType = LLVM::LLVMArrayType::get(elementType, values.getNumElements());
  auto existing = module.lookupSymbol<LLVM::GlobalOp>(name);
  for (int suffix = 0; existing && existing.getValueAttr() != values; ++suffix) {
    name += "_" + std::to_string(suffix);
    existing = module.lookupSymbol<LLVM::GlobalOp>(name);
  }
  if (!existing) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(b, loc, arrayType, /*isConstant=*/true, LLVM::Linkage::Internal, name, values,
                           /*alignment=*/64);
  }
  return LLVM::AddressOfOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), name);
}

Value Emitter::table(ArrayRef<int32_t> values) {
  auto type = RankedTensorType::get({int64_t(values.size())}, b.getI32Type());
  return global(b.getI32Type(), DenseElementsAttr::get(type, values));
}

Value Emitter::table(ArrayRef<float> values) {
  auto type = RankedTensorType::get({int64_t(values.size())}, b.getF32Type());
  return global(b.getF32Type(), DenseElementsAttr::get(type, values));
}

Value Emitter::linearize(ArrayRef<Value> index, ArrayRef<AffineExpr> dims) {
  Value linear = i64(0);
  for (size_t i = 0; i < index.size();) {
    // A run that came apart from a position goes back to it without arithmetic.
    const Split *longest = nullptr;
    for (const Split &split : llvm::reverse(splits)) {
      size_t count = split.index.size();
      if (count <= index.size() - i && (!longest || count > longest->index.size()) &&
          index.slice(i, count) == ArrayRef<Value>(split.index) &&
          dims.slice(i, count) == ArrayRef<AffineExpr>(split.dims))
        longest = &split;
    }
    if (longest) {
      size_t count = longest->index.size();
      linear = add(i == 0 ? linear : mul(linear, product(dims.slice(i, count))), longest->linear);
      i += count;
    } else {
      linear = add(i == 0 ? linear : mul(linear, size(dims[i])), index[i]);
      ++i;
    }
  }
  noteJoin(linear, index, dims);
  return linear;
}

void Emitter::noteJoin(Value linear, ArrayRef<Value> index, ArrayRef<AffineExpr> dims) {
  Join join;
  for (auto [part, dim] : llvm::zip_equal(index, dims)) {
    auto size = nn::getConstant(dim);
    if (size == 0)
      return;
    if (size == 1)
      continue;
    auto inner = joins.find(part);
    if (inner != joins.end() && nn::numElements(inner->second.dims, b.getContext()) == dim) {
      join.index.append(inner->second.index);
      join.dims.append(inner->second.dims);
    } else {
      join.index.push_back(part);
      join.dims.push_back(dim);
    }
  }
  if (join.index.size() > 1)
    joins.try_emplace(linear, std::move(join));
}

std::optional<Index> Emitter::regroup(const Join &join, ArrayRef<AffineExpr> dims) {
  Index result;
  size_t next = 0;
  for (AffineExpr dim : dims) {
    size_t from = next;
    AffineExpr have = getAffineConstantExpr(1, b.getContext());
    while (have != dim && next < join.dims.size())
      have = nn::simplifySize(have * join.dims[next++]);
    if (have != dim)
      return std::nullopt;
    if (next == from)
      result.push_back(i64(0));
    else
      result.push_back(linearize(ArrayRef(join.index).slice(from, next - from),
                                 ArrayRef(join.dims).slice(from, next - from)));
  }
  return next == join.dims.size() ? std::optional(result) : std::nullopt;
}

Index Emitter::delinearize(Value linear, ArrayRef<AffineExpr> dims) {
  if (auto found = joins.find(linear); found != joins.end()) {
    Join join = found->second; // putting parts together may add to the table
    if (auto index = regroup(join, dims))
      return *index;
  }
  Index index(dims.size());
  Value rest = linear;
  size_t first = 0;
  while (first < dims.size() && nn::getConstant(dims[first]) == 1)
    index[first++] = i64(0);
  for (size_t i = dims.size(); i-- > first;) {
    if (i == first) {
      index[i] = rest;
      break;
    }
    Value extent = size(dims[i]);
    index[i] = rem(rest, extent);
    rest = div(rest, extent);
  }
  // Also without the dimensions of 1 in front, since a position among others may lack them.
  if (dims.size() > first + 1)
    splits.push_back({Index(ArrayRef(index).drop_front(first)), nn::Dims(dims.begin() + first, dims.end()), linear});
  return index;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

bool Emitter::isMovement(Operation *op) {
  return isa<nn::TransposeOp, nn::ReshapeOp, nn::BroadcastOp, nn::SliceOp, nn::PadOp, nn::ConcatOp, nn::GatherOp,
             nn::GatherElementsOp, nn::GatherNDOp, nn::ReverseSequenceOp, nn::IotaOp>(op);
}

bool Emitter::isPointwise(Operation *op) {
  return isMovement(op) ||
         isa<nn::ConstantOp, nn::UnaryOp, nn::BinaryOp, nn::CompareOp, nn::SelectOp, nn::CastOp, nn::ClampOp,
             nn::QuantizeOp, nn::DequantizeOp, nn::RequantizeOp, nn::LookupOp, nn::ResizeOp, nn::GridSampleOp, nn::DequantizeGroupedOp,
             nn::DequantizeCodebookOp>(op);
}

Value Emitter::element(Value tensor, ArrayRef<Value> index) {
  std::vector<void *> key;
  for (Value i : index)
    key.push_back(i.getAsOpaquePointer());
  std::pair<void *, std::vector<void *>> entry{tensor.getAsOpaquePointer(), key};
  for (Scope &scope : llvm::reverse(scopes))
    if (auto found = scope.elements.find(entry); found != scope.elements.end())
      return found->second;
  Value value;
  if (auto fn = bound.find(tensor); fn != bound.end())
    value = fn->second(index);
  else if (Value base = buffers.lookup(tensor))
    value = loadAt(base, linearize(index, nn::getDims(tensor)), elementType(tensor));
  else
    value = compute(tensor.getDefiningOp(), index);
  scopes.back().elements[entry] = value;
  return value;
}

Value Emitter::broadcastElement(Value operand, ArrayRef<Value> index) {
  nn::Dims dims = nn::getDims(operand);
  Index own;
  for (size_t i = 0; i < dims.size(); ++i)
    own.push_back(nn::getConstant(dims[i]) == 1 ? i64(0) : index[index.size() - dims.size() + i]);
  return element(operand, own);
}

Value Emitter::compute(Operation *op, ArrayRef<Value> index) {
  if (isMovement(op))
    return computeMovement(op, index);
  if (auto resize = dyn_cast<nn::ResizeOp>(op))
    return computeResize(resize, index);
  if (auto sample = dyn_cast<nn::GridSampleOp>(op))
    return computeGridSample(sample, index);
  if (auto grouped = dyn_cast<nn::DequantizeGroupedOp>(op))
    return computeGrouped(grouped, index);
  if (auto codebook = dyn_cast<nn::DequantizeCodebookOp>(op))
    return computeCodebook(codebook, index);
  return computeElementwise(op, index);
}

} // namespace ajour::loops
