//===- LowerDispatch.cpp - one dispatch as a function over work items ---------------===//
#include "Blocking.h"
#include "Lowering.h"

using namespace mlir;

namespace ajour::loops {

/// Elements of one work item where a dispatch has only one dimension.
static constexpr int64_t flatItem = 4096;
/// Innermost dimensions below this are too short for vectors.
static constexpr int64_t shortDimension = 8;

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

std::optional<unsigned> DispatchLowering::constantArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &callee.getBody().front() ||
      !callee.getArgAttr(argument.getArgNumber(), "exec.constant"))
    return std::nullopt;
  return argument.getArgNumber();
}

unsigned DispatchLowering::addPack(PackSpec spec) {
  unsigned position = lowered.packs.size();
  lowered.packs.push_back(std::move(spec));
  lowered.operands.push_back({OperandSpec::Packed, position});
  return position;
}

Value DispatchLowering::operandPointer(OperandSpec::Kind kind, unsigned index) {
  for (auto [i, spec] : llvm::enumerate(lowered.operands))
    if (spec.kind == kind && spec.index == index)
      return pointers[i];
  llvm_unreachable("an operand that was not declared");
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

Operation *DispatchLowering::findRoot() {
  Operation *root = nullptr;
  callee.walk([&](Operation *op) {
    if (!Emitter::isPointwise(op) && !isa<func::ReturnOp, func::FuncOp>(op)) {
      assert(!root && "a dispatch has one root");
      root = op;
    }
  });
  return root;
}

void DispatchLowering::findReorders(Operation *root) {
  llvm::SmallDenseSet<Value> behind(root->result_begin(), root->result_end());
  for (Operation &op : callee.getBody().front().without_terminator()) {
    if (!llvm::any_of(op.getOperands(), [&](Value operand) { return behind.contains(operand); }))
      continue;
    behind.insert(op.result_begin(), op.result_end());
    if (Emitter::isMovement(&op))
      reorders.push_back(&op);
  }
}

/// Whether rounding must stay as written: what quantisation rounds would otherwise differ from the reference.
static bool needsStrictRounding(func::FuncOp callee) {
  bool strict = false;
  callee.walk([&](Operation *op) {
    strict |= isa<nn::QuantizeOp, nn::RequantizeOp>(op);
    if (auto matmul = dyn_cast<nn::MatmulOp>(op))
      strict |= matmul.getLhsGroup() > 0;
    if (auto unary = dyn_cast<nn::UnaryOp>(op))
      strict |= unary.getKind() == nn::UnaryKind::round || unary.getKind() == nn::UnaryKind::floor ||
                unary.getKind() == nn::UnaryKind::ceil || unary.getKind() == nn::UnaryKind::trunc;
    if (auto cast = dyn_cast<nn::CastOp>(op))
      strict |= isa<IntegerType>(cast.getType().getElementType());
  });
  return strict;
}

/// Whether an operation makes a packed weight, or only scales or offsets of one.
bool DispatchLowering::isStoredForm(Operation *op) {
  return storedForms.contains(op) ||
         (isa<nn::DequantizeGroupedOp>(op) && op->hasOneUse() && storedForms.contains(*op->user_begin()));
}

FailureOr<LoweredDispatch> DispatchLowering::run() {
  OpBuilder b(context);
  Location loc = callee.getLoc();
  lowered.symbol = callee.getName().str();
  lowered.scratchBytes = getAffineConstantExpr(0, context);

  Operation *root = findRoot();
  if (root)
    findReorders(root);
  std::optional<GemmPlan> gemm;
  std::optional<DepthwisePlan> depthwise;
  std::optional<GemvPlan> gemv;
  std::optional<TilePlan> tiles;
  std::optional<GemmPlan> unpacked;
  std::optional<SparseConvPlan> sparse;
  if (auto conv = dyn_cast_or_null<nn::ConvOp>(root))
    sparse = planSparseConv(conv);
  bool planar = root && !sparse && isPlanar(root);
  if (auto conv = dyn_cast_or_null<nn::ConvOp>(root); conv && !sparse && !planar) {
    depthwise = planDepthwise(conv);
    if (!depthwise)
      gemm = planConv(conv);
  } else if (auto matmul = dyn_cast_or_null<nn::MatmulOp>(root)) {
    gemv = planGemv(matmul);
    if (gemv) {
      tiles = planRowTiles(*gemv);
      unpacked = planUnpackedRows(*gemv);
    } else
      gemm = planMatmul(matmul);
  }
  if (!root)
    planGathers();
  RecurrentPlan recurrent{};
  if (isa_and_nonnull<nn::RnnOp, nn::GruOp, nn::LstmOp>(root))
    recurrent = planRecurrent(root);
  const ajour_kernel_row *kernel = gemv                           ? gemv->product.kernel
                                   : gemm                         ? gemm->kernel
                                   : depthwise                    ? depthwise->kernel
                                   : sparse                       ? sparse->kernel
                                   : recurrent.recurrentPack >= 0 ? recurrent.kernel
                                                                  : nullptr;
  lowered.kernel = gemm && gemm->winograd ? gemm->winograd->input->symbol : kernel ? kernel->symbol : "";
  lowered.kernelLevel = kernel ? kernel->level : 0;
  if (gemv && gemv->compress)
    lowered.kernelLevel = std::max<unsigned>(lowered.kernelLevel, gemv->compress->level);
  if (tiles)
    lowered.kernelLevel = std::max<unsigned>(lowered.kernelLevel, tiles->kernel->level);
  if (unpacked)
    lowered.kernelLevel = std::max<unsigned>(lowered.kernelLevel, unpacked->kernel->level);
  llvm::SmallDenseSet<unsigned> packedArguments;
  for (const PackSpec &pack : lowered.packs) {
    packedArguments.insert(pack.weights);
    for (int argument : {pack.bias, pack.scales, pack.zeroPoints, pack.offsets, pack.scaleCodes, pack.offsetCodes, pack.stored.scales, pack.stored.zeroPoints, pack.stored.codebook})
      if (argument >= 0)
        packedArguments.insert(argument);
  }
  for (BlockArgument argument : callee.getArguments()) {
    // An argument that only went into a pack is not an operand.
    bool onlyPacked = packedArguments.contains(argument.getArgNumber()) &&
                      llvm::all_of(argument.getUsers(), [&](Operation *user) {
                        return user == root || isStoredForm(user) ||
                               (gemm && gemm->unpack && user == gemm->unpack->form);
                      }) &&
                      !(gemv && (gemv->product.bias == argument || gemv->product.source == argument)) &&
                      !(gemm && gemm->bias == argument) && !(depthwise && depthwise->bias == argument) &&
                      !(gemm && gemm->source == argument) && !(sparse && sparse->bias == argument);
    if (!onlyPacked)
      lowered.operands.push_back({OperandSpec::Argument, argument.getArgNumber()});
  }
  for (unsigned i = 0; i < callee.getNumResults(); ++i)
    lowered.operands.push_back({OperandSpec::Result, i});

  // The body takes each operand as an argument of its own, which promises that they do not overlap.
  Type ptr = LLVM::LLVMPointerType::get(context), i64 = b.getI64Type();
  SmallVector<Type> types(lowered.operands.size(), ptr);
  types.append({ptr, ptr, i64, i64});
  b.setInsertionPointToEnd(module.getBody());
  auto voidType = LLVM::LLVMVoidType::get(context);
  auto body = LLVM::LLVMFuncOp::create(b, loc, lowered.symbol + "_body", LLVM::LLVMFunctionType::get(voidType, types));
  body.setVisibility(SymbolTable::Visibility::Private);
  body.setLinkage(LLVM::Linkage::Internal);
  for (size_t i = 0; i < lowered.operands.size(); ++i)
    body.setArgAttr(i, "llvm.noalias", b.getUnitAttr());
  Block *entry = body.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  pointers.assign(entry->args_begin(), entry->args_begin() + lowered.operands.size());
  Value dims = entry->getArgument(lowered.operands.size());
  scratch = entry->getArgument(lowered.operands.size() + 1);
  begin = entry->getArgument(lowered.operands.size() + 2);
  end = entry->getArgument(lowered.operands.size() + 3);
  std::vector<Value> symbols;
  for (unsigned i = 0; i < symbolCount; ++i) {
    Value address = LLVM::GEPOp::create(b, loc, ptr, i64, dims, ArrayRef<LLVM::GEPArg>{int32_t(i)});
    symbols.push_back(LLVM::LoadOp::create(b, loc, i64, address));
  }
  Emitter emitter(b, loc, module, entry, symbols);
  e = &emitter;
  for (auto [i, spec] : llvm::enumerate(lowered.operands))
    if (spec.kind == OperandSpec::Argument)
      e->bindBuffer(callee.getArgument(spec.index), pointers[i]);

  bindPackedTables();
  if (tiles && !known(gemv->product.rows))
    lowerByRows(*gemv, mostRowsOfRounded, [&] { lowerTiles(*gemv, *tiles); });
  else if (tiles)
    lowerTiles(*gemv, *tiles);
  else if (unpacked)
    lowerByRows(*gemv, mostStoredRows, [&] { lowerGemm(*unpacked); });
  else if (gemv)
    lowerGemv(*gemv);
  else if (gemm)
    lowerGemm(*gemm);
  else if (depthwise)
    lowerDepthwise(*depthwise);
  else if (sparse)
    lowerSparseConv(*sparse);
  else if (planar)
    lowerPlanes(root);
  else if (!root)
    lowerPointwise();
  else
    llvm::TypeSwitch<Operation *>(root)
        .Case([&](nn::ReduceOp op) { lowerReduce(op); })
        .Case<nn::MaxPoolOp, nn::AvgPoolOp>([&](Operation *op) { lowerPool(op); })
        .Case([&](nn::ArgReduceOp op) { lowerArgReduce(op); })
        .Case([&](nn::SoftmaxOp op) { lowerSoftmax(op); })
        .Case([&](nn::LayerNormOp op) { lowerLayerNorm(op); })
        .Case([&](nn::CumsumOp op) { lowerCumsum(op); })
        .Case([&](nn::TopKOp op) { lowerTopK(op); })
        .Case<nn::ScatterElementsOp, nn::ScatterNDOp>([&](Operation *op) { lowerScatter(op); })
        .Case([&](nn::AttentionOp op) { lowerAttention(op); })
        .Case<nn::RnnOp, nn::GruOp, nn::LstmOp>([&](Operation *op) { lowerRecurrent(op, recurrent); })
        .Case([&](nn::CausalConvOp op) { lowerCausalConv(op); })
        .Case([&](nn::SelectiveScanOp op) { lowerSelectiveScan(op); })
        .Default([&](Operation *op) {
          bindContraction(op);
          reorders.clear(); // its loops are the result's
          lowerPointwise();
        });
  LLVM::ReturnOp::create(b, loc, ValueRange{});

  // The entry point unpacks the operands.
  b.setInsertionPointToEnd(module.getBody());
  auto function = LLVM::LLVMFuncOp::create(b, loc, lowered.symbol,
                                           LLVM::LLVMFunctionType::get(voidType, {ptr, ptr, ptr, i64, i64}));
  Block *outer = function.addEntryBlock(b);
  b.setInsertionPointToStart(outer);
  SmallVector<Value> arguments;
  for (size_t i = 0; i < lowered.operands.size(); ++i) {
    Value address = LLVM::GEPOp::create(b, loc, ptr, ptr, outer->getArgument(0), ArrayRef<LLVM::GEPArg>{int32_t(i)});
    arguments.push_back(LLVM::LoadOp::create(b, loc, ptr, address));
  }
  arguments.append(outer->args_begin() + 1, outer->args_end());
  LLVM::CallOp::create(b, loc, body, arguments);
  LLVM::ReturnOp::create(b, loc, ValueRange{});
  if (needsStrictRounding(callee)) {
    function->setAttr("strict_fp", b.getUnitAttr());
    body->setAttr("strict_fp", b.getUnitAttr());
  }
  return std::move(lowered);
}

void DispatchLowering::items(AffineExpr count, function_ref<void(Value)> body) {
  lowered.work = count;
  if (!itemsBefore)
    return e->loop(begin, end, body);
  // This form of the product has items of its own behind those of another.
  Value before = e->size(*itemsBefore), wholeBegin = begin, wholeEnd = end;
  begin = e->sub(e->max(begin, before), before);
  end = e->min(e->sub(end, before), e->size(count));
  e->loop(begin, end, body);
  begin = wholeBegin;
  end = wholeEnd;
}

/// The table that an 8-bit result is looked up in at last, from 8 bits: what comes before it becomes vectors, the table does
/// not, so it has a loop of its own. Null where `finishRun` does not follow.
nn::LookupOp DispatchLowering::deferredLookup() {
  auto ret = cast<func::ReturnOp>(callee.getBody().front().getTerminator());
  if (!canFinishRuns || ret.getNumOperands() != 1)
    return nullptr;
  auto lookup = ret.getOperand(0).getDefiningOp<nn::LookupOp>();
  auto is8 = [](Value value) { return Emitter::elementType(value).isInteger(8); };
  return lookup && is8(lookup.getInput()) && is8(lookup.getResult()) && e->buffer(lookup.getTable()) ? lookup : nullptr;
}

/// What is left to do for `count` results that lie one behind the other and have been stored.
void DispatchLowering::finishRun(ArrayRef<Value> first, Value count) {
  nn::LookupOp lookup = deferredLookup();
  if (!lookup)
    return;
  Value run = e->pointer(operandPointer(OperandSpec::Result, 0), e->linearize(first, nn::getDims(lookup.getResult())),
                         Emitter::elementType(lookup.getResult()));
  int64_t flip = nn::isUnsigned(Emitter::elementType(lookup.getInput())) ? 0 : 0x80;
  callKernel("ajour_lookup_8bit", {run, e->buffer(lookup.getTable()), count, e->i64(flip)});
}

void DispatchLowering::storeResults(ArrayRef<Value> index) {
  auto ret = cast<func::ReturnOp>(callee.getBody().front().getTerminator());
  if (nn::LookupOp lookup = deferredLookup()) {
    e->storeAt(e->element(lookup.getInput(), index), operandPointer(OperandSpec::Result, 0),
               e->linearize(index, nn::getDims(lookup.getResult())), Emitter::elementType(lookup.getInput()));
    return;
  }
  Index at(index.begin(), index.end());
  for (Operation *op : reorders) {
    if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
      Index permuted;
      for (int64_t dim : transpose.getPerm())
        permuted.push_back(at[dim]);
      at = std::move(permuted);
    } else if (auto gather = dyn_cast<nn::GatherOp>(op)) {
      at[gather.getAxis()] = e->gatherIndex(gather, at[gather.getAxis()], /*inverse=*/true);
    } else {
      at = e->reshapeIndex(at, nn::getDims(op->getOperand(0)), nn::getDims(op->getResult(0)));
    }
  }
  SmallVector<Value> values;
  for (Value result : ret.getOperands())
    values.push_back(e->element(result, at));
  for (auto [i, result] : llvm::enumerate(ret.getOperands()))
    e->storeAt(values[i], operandPointer(OperandSpec::Result, i), e->linearize(at, nn::getDims(result)),
               Emitter::elementType(result));
}

//===----------------------------------------------------------------------===//
// Element by element
//===----------------------------------------------------------------------===//

/// Merges neighbouring dimensions that every value of an element-wise callee treats alike, by rewriting
/// the types in it. Returns false (and changes nothing) when the callee also moves data.
bool DispatchLowering::collapse() {
  auto ret = cast<func::ReturnOp>(callee.getBody().front().getTerminator());
  nn::Dims out = nn::getDims(ret.getOperand(0));
  size_t rank = out.size();
  if (rank < 2)
    return false;
  SmallVector<Value> values;
  for (BlockArgument argument : callee.getArguments()) {
    // A table that is only looked up in is not laid out along the result.
    bool isTable = llvm::all_of(argument.getUses(), [](OpOperand &use) {
      return isa<nn::LookupOp>(use.getOwner()) && use.getOperandNumber() == 1;
    });
    if (!isTable)
      values.push_back(argument);
  }
  SmallVector<bool> separate(rank, false); // a boundary before this dimension must stay
  for (Operation &op : callee.getBody().front().without_terminator()) {
    if (Emitter::isMovement(&op) || !Emitter::isPointwise(&op) || isa<nn::ResizeOp, nn::GridSampleOp, nn::DequantizeGroupedOp, nn::DequantizeCodebookOp>(op))
      return false;
    values.append(op.result_begin(), op.result_end());
    std::optional<int64_t> axis;
    if (auto q = dyn_cast<nn::QuantizeOp>(op); q && q.getScales().size() > 1)
      axis = q.getAxis();
    if (auto q = dyn_cast<nn::DequantizeOp>(op); q && q.getScales().size() > 1)
      axis = q.getAxis();
    if (auto q = dyn_cast<nn::RequantizeOp>(op);
        q && (q.getScales() ? q.getScales()->size() : q.getMultipliers()->size()) > 1)
      axis = q.getAxis();
    if (axis) {
      size_t at = *axis < 0 ? *axis + rank : *axis;
      separate[at] = true;
      if (at + 1 < rank)
        separate[at + 1] = true;
    }
  }
  auto one = getAffineConstantExpr(1, context);
  auto aligned = [&](Value value) {
    nn::Dims dims = nn::getDims(value);
    dims.insert(dims.begin(), rank - dims.size(), one);
    return dims;
  };
  // A value runs along all dimensions of a group or along none; those of size 1 fit anywhere.
  std::optional<size_t> last; // the newest dimension of the group other than 1
  for (size_t i = 0; i < rank; ++i) {
    if (separate[i])
      last = std::nullopt;
    if (out[i] == one)
      continue;
    if (last)
      separate[i] = llvm::any_of(values, [&](Value value) {
        nn::Dims dims = aligned(value);
        return (dims[*last] == out[*last]) != (dims[i] == out[i]);
      });
    last = i;
  }
  SmallVector<unsigned> group(rank, 0);
  for (size_t i = 1; i < rank; ++i)
    group[i] = group[i - 1] + separate[i];
  if (group.back() + 1 == rank)
    return false;
  for (Operation &op : callee.getBody().front().without_terminator()) {
    auto remap = [&](int64_t axis) { return int64_t(group[axis < 0 ? axis + rank : axis]); };
    if (auto q = dyn_cast<nn::QuantizeOp>(op))
      q.setAxis(remap(q.getAxis()));
    if (auto q = dyn_cast<nn::DequantizeOp>(op))
      q.setAxis(remap(q.getAxis()));
    if (auto q = dyn_cast<nn::RequantizeOp>(op))
      q.setAxis(remap(q.getAxis()));
  }
  for (Value value : values) {
    nn::Dims dims = aligned(value), merged(group.back() + 1, one);
    for (size_t i = 0; i < rank; ++i)
      merged[group[i]] = merged[group[i]] * dims[i];
    value.setType(nn::makeTensor(merged, Emitter::elementType(value)));
  }
  return true;
}

void DispatchLowering::lowerPointwise() {
  auto ret = cast<func::ReturnOp>(callee.getBody().front().getTerminator());
  if (ret.getNumOperands() == 1)
    if (auto concat = ret.getOperand(0).getDefiningOp<nn::ConcatOp>())
      return lowerConcat(concat);
  collapse();
  nn::Dims dims = nn::getDims(ret.getOperand(0)), parts;
  Factors factors(dims);
  factors.followOperands(ret.getOperand(0));
  for (size_t i = 0; i < dims.size(); ++i)
    parts.append(factors.of(i));
  if (parts.size() <= 1) {
    AffineExpr count = dims.empty() ? getAffineConstantExpr(1, context) : dims[0];
    items(count.ceilDiv(flatItem), [&](Value item) {
      Value from = e->mul(item, e->i64(flatItem));
      Value to = e->min(e->add(from, e->i64(flatItem)), e->size(count));
      canFinishRuns = !dims.empty();
      e->loop(from, to, [&](Value i) {
        if (dims.empty())
          storeResults({});
        else
          storeResults({i});
      });
      if (!dims.empty())
        finishRun({from}, e->sub(to, from));
    });
    return;
  }
  // A short last part (channels of a picture) is unrolled inside a loop over the one before it, which
  // then is what vectors run along.
  std::optional<int64_t> last = nn::getConstant(parts.back());
  size_t inner = last && *last < shortDimension && parts.size() > 2 ? 2 : 1;
  nn::Dims outer(parts.begin(), parts.end() - inner);
  canFinishRuns = true;
  items(nn::numElements(outer, context), [&](Value item) {
    Index index = e->delinearize(item, outer);
    e->nest(ArrayRef(parts).take_back(inner), [&](ArrayRef<Value> rest) {
      Index whole = index;
      whole.append(rest.begin(), rest.end());
      storeResults(joinParts(whole, factors, dims.size()));
    });
    index.append(inner, e->i64(0));
    finishRun(joinParts(index, factors, dims.size()), e->product(ArrayRef(parts).take_back(inner)));
  });
}

Index DispatchLowering::joinParts(ArrayRef<Value> parts, const Factors &factors, size_t rank) {
  Index index;
  for (size_t i = 0; i < rank; ++i) {
    nn::Dims own = factors.of(i);
    index.push_back(e->linearize(parts.take_front(own.size()), own));
    parts = parts.drop_front(own.size());
  }
  return index;
}

/// Each operand of a concatenation is copied by a loop of its own, so that none asks at each element
/// where it belongs. What is too short for vectors is copied for all of the dimension before it.
void DispatchLowering::lowerConcat(nn::ConcatOp op) {
  nn::Dims dims = nn::getDims(op.getResult());
  size_t axis = op.getAxis(), inner = axis;
  std::optional<int64_t> joined = nn::getConstant(nn::numElements(ArrayRef(dims).drop_front(axis), context));
  if (axis > 1 && joined && *joined < shortDimension)
    --inner;
  nn::Dims outer(dims.begin(), dims.begin() + inner);
  items(nn::numElements(outer, context), [&](Value item) {
    Index prefix = e->delinearize(item, outer);
    Value offset = e->i64(0);
    for (Value operand : op.getInputs()) {
      nn::Dims own = nn::getDims(operand);
      e->nest(ArrayRef(own).drop_front(inner), [&](ArrayRef<Value> rest) {
        Index source = prefix;
        source.append(rest.begin(), rest.end());
        Index target = source;
        target[axis] = e->add(target[axis], offset);
        e->storeAt(e->element(operand, source), operandPointer(OperandSpec::Result, 0), e->linearize(target, dims),
                   Emitter::elementType(operand));
      });
      offset = e->add(offset, e->size(own[axis]));
    }
  });
}

void DispatchLowering::callKernel(StringRef symbol, ArrayRef<Value> operands) {
  auto declaration = module.lookupSymbol<func::FuncOp>(symbol);
  if (!declaration) {
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    SmallVector<Type> types;
    for (Value operand : operands)
      types.push_back(operand.getType());
    declaration = func::FuncOp::create(b, e->loc, symbol, FunctionType::get(context, types, {}));
    declaration.setPrivate();
  }
  func::CallOp::create(e->b, e->loc, declaration, operands);
}

} // namespace ajour::loops

mlir::FailureOr<ajour::LoweredDispatch> ajour::lowerDispatch(func::FuncOp callee, ajour_cpu_level level,
                                                             unsigned symbolCount, ModuleOp destination,
                                                             const LoweringOptions &options) {
  func::FuncOp clone = callee.clone();
  auto lowered = loops::DispatchLowering(clone, level, symbolCount, destination, options).run();
  clone.erase();
  return lowered;
}
