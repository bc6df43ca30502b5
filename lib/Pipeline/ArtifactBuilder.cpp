//===- ArtifactBuilder.cpp - an exec module as an artifact --------------------------===//
#include "ArtifactBuilder.h"

#include "ajour/ABI/Dispatch.h"
#include "ajour/ABI/StaticCode.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Dialect/NN/State.h"
#include "ajour/Runtime/MemoryPlan.h"
#include "ajour/Support/NodeLocation.h"
#include "ajour/Target/CpuTarget.h"
#include "ajour/ajour.h"

#include "mlir/IR/AffineMap.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace ajour {

/// Segment numbers: constants first, then executables.
static constexpr unsigned constantSegment = 0;

static std::string directoryOf(StringRef path) {
  StringRef parent = llvm::sys::path::parent_path(path);
  return parent.empty() ? "." : parent.str();
}

ArtifactBuilder::ArtifactBuilder(ModuleOp module, const std::string &path)
    : module(module), path(path), main(module.lookupSymbol<func::FuncOp>("main")), store(directoryOf(path)) {
  describeInterface();
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

static void appendExpr(std::vector<int64_t> &code, AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    code.insert(code.end(), {AJOUR_EXPR_CONST, constant.getValue()});
    return;
  }
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    code.insert(code.end(), {AJOUR_EXPR_DIM, int64_t(symbol.getPosition())});
    return;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  appendExpr(code, binary.getLHS());
  appendExpr(code, binary.getRHS());
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    code.insert(code.end(), {AJOUR_EXPR_ADD, 0});
    break;
  case AffineExprKind::Mul:
    code.insert(code.end(), {AJOUR_EXPR_MUL, 0});
    break;
  case AffineExprKind::FloorDiv:
    code.insert(code.end(), {AJOUR_EXPR_FLOORDIV, 0});
    break;
  case AffineExprKind::CeilDiv:
    code.insert(code.end(), {AJOUR_EXPR_CEILDIV, 0});
    break;
  default:
    code.insert(code.end(), {AJOUR_EXPR_MOD, 0});
    break;
  }
}

std::unique_ptr<artifact::ExprT> ArtifactBuilder::expr(AffineExpr e) {
  auto out = std::make_unique<artifact::ExprT>();
  appendExpr(out->code, simplifyAffineExpr(e, 0, model.symbols.size()));
  return out;
}

static AffineExpr bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return nn::numElements(nn::getDims(tensor), type.getContext()) * nn::elementBytes(tensor.getElementType());
}

//===----------------------------------------------------------------------===//
// Inputs, outputs, symbols
//===----------------------------------------------------------------------===//

std::unique_ptr<artifact::TensorT> ArtifactBuilder::tensor(Type type, DictionaryAttr attributes,
                                                           std::string fallbackName, unsigned buffer) {
  auto out = std::make_unique<artifact::TensorT>();
  auto ranked = cast<RankedTensorType>(type);
  out->name = std::move(fallbackName);
  if (attributes) {
    if (auto name = attributes.getAs<StringAttr>("nn.name"))
      out->name = name.str();
    if (auto scale = attributes.getAs<FloatAttr>("nn.scale"))
      out->scale = scale.getValueAsDouble();
    if (auto zeroPoint = attributes.getAs<IntegerAttr>("nn.zero_point"))
      out->zero_point = zeroPoint.getInt();
  }
  out->element_type = nn::getElementTypeId(ranked.getElementType());
  for (AffineExpr dim : nn::getDims(ranked))
    out->shape.push_back(expr(dim));
  out->buffer = buffer;
  return out;
}

void ArtifactBuilder::describeInterface() {
  if (auto source = module->getAttrOfType<StringAttr>("nn.source"))
    model.source = source.str();
  if (auto count = module->getAttrOfType<IntegerAttr>(weightCountAttrName))
    model.weight_count = count.getValue().getZExtValue();
  model.compiler = std::string("ajour ") + ajour_version();
  if (auto symbols = module->getAttrOfType<ArrayAttr>("nn.symbols"))
    for (auto symbol : symbols.getAsRange<nn::SymbolAttr>()) {
      auto out = std::make_unique<artifact::SymbolT>();
      out->name = symbol.getName().str();
      out->min = symbol.getMin();
      out->max = symbol.getMax();
      model.symbols.push_back(std::move(out));
    }
  // A symbol's value is read where an input's dimension is the symbol, or a multiple of it.
  llvm::SmallDenseSet<unsigned> seen;
  std::vector<unsigned> inputs = nn::inputArguments(main), outputs = nn::outputResults(main);
  for (auto [i, argument] : llvm::enumerate(inputs))
    for (auto [d, dim] : llvm::enumerate(nn::getDims(cast<RankedTensorType>(main.getArgumentTypes()[argument]))))
      if (auto symbol = nn::matchSymbol(dim); symbol && seen.insert(symbol->position).second) {
        artifact::SymbolT &out = *model.symbols[symbol->position];
        out.input = i;
        out.dim = d;
        out.multiple = symbol->multiple;
      }
  // The first buffers are the arguments', then come the results'.
  unsigned arguments = main.getNumArguments();
  for (auto [i, argument] : llvm::enumerate(inputs))
    model.inputs.push_back(tensor(main.getArgumentTypes()[argument], main.getArgAttrDict(argument),
                                  "input" + std::to_string(i), argument));
  for (auto [i, result] : llvm::enumerate(outputs))
    model.outputs.push_back(tensor(main.getResultTypes()[result], main.getResultAttrDict(result),
                                   "output" + std::to_string(i), arguments + result));
  describeStates();
}

bool ArtifactBuilder::isInPlace(unsigned result) {
  Value value = main.getBody().front().getTerminator()->getOperand(result);
  auto dispatch = value.getDefiningOp<exec::DispatchOp>();
  return nn::isStateResult(main, result) && dispatch && inPlaceArgument(module.lookupSymbol<func::FuncOp>(dispatch.getCallee()));
}

void ArtifactBuilder::describeStates() {
  FailureOr<std::vector<nn::State>> states = nn::getStates(main);
  assert(succeeded(states) && "writeModule has checked them");
  for (const nn::State &state : *states) {
    auto out = std::make_unique<artifact::StateT>();
    auto type = cast<RankedTensorType>(main.getArgumentTypes()[state.argument]);
    out->name = state.name.str();
    out->element_type = nn::getElementTypeId(type.getElementType());
    out->shape.assign(type.getShape().begin(), type.getShape().end());
    out->buffer = state.argument;
    out->next = isInPlace(state.result) ? state.argument : main.getNumArguments() + state.result;
    if (state.initial) {
      out->initial_segment = constantSegment;
      out->initial_offset = store.append(nn::constantBytes(state.initial));
    }
    model.states.push_back(std::move(out));
  }
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

unsigned ArtifactBuilder::constantBuffer(artifact::ProgramT &program, const std::string &key,
                                         function_ref<std::vector<char>()> make) {
  auto [known, isNew] = constantBuffers.try_emplace(key, program.buffers.size());
  if (!isNew)
    return known->second;
  auto [place, isNewPlace] = constantPlaces.try_emplace(key);
  if (isNewPlace) {
    std::vector<char> bytes = make();
    uint64_t size = bytes.size();
    place->second = {store.append(std::move(bytes)), size};
  }
  auto buffer = std::make_unique<artifact::BufferT>();
  buffer->kind = artifact::BufferKind::Constant;
  buffer->size = expr(getAffineConstantExpr(place->second.second, module.getContext()));
  buffer->segment = constantSegment;
  buffer->segment_offset = place->second.first;
  program.buffers.push_back(std::move(buffer));
  return known->second;
}

bool ArtifactBuilder::readConstants(void *context, uint64_t offset, void *to, size_t bytes) {
  return static_cast<ArtifactBuilder *>(context)->store.read(offset, to, bytes);
}

static std::string packKey(const PackSpec &spec, ArrayRef<ElementsAttr> constants) {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << "pack " << int(spec.kind) << " " << constants[spec.weights].getAsOpaquePointer() << " "
     << (spec.bias >= 0 ? constants[spec.bias].getAsOpaquePointer() : nullptr) << " " << spec.k << " " << spec.n << " "
     << spec.transposed << " " << spec.kh << " " << spec.kw << " " << spec.tile << " "
     << spec.nr << " " << spec.kr << " "
     << spec.lhsZeroPoint;
  if (spec.kind == PackSpec::Gemv) {
    const encoding::GemvFormat &format = spec.gemv;
    os << " " << format.structure << " " << format.values << " " << format.patterns << " " << format.kept << " "
       << format.group << " " << format.run << " " << format.halfScales << format.zeroPoints << format.offsets << format.isUnsigned
       << format.signed8 << " ";
    for (int other : {spec.scales, spec.zeroPoints, spec.offsets, spec.scaleCodes, spec.offsetCodes})
      os << (other >= 0 ? constants[other].getAsOpaquePointer() : nullptr) << " ";
    os << spec.scaleStrideK << " " << spec.scaleStrideN;
  }
  for (int32_t zero : spec.rhsZeroPoints)
    os << "," << zero;
  const encoding::PanelPlan &panels = spec.panels;
  os << " panels";
  for (int64_t value : {panels.k, panels.n, panels.parts, panels.lanes, panels.share, panels.kr, panels.window})
    os << " " << value;
  const encoding::SparsePlan &sparse = spec.sparse;
  os << " sparse";
  for (int64_t value : {sparse.filters, sparse.kh, sparse.kw, sparse.channels, sparse.group, sparse.chunk, sparse.channelUnits,
                        sparse.columnUnits, sparse.phaseUnits, sparse.dilationY, sparse.strideY, int64_t(sparse.runs)})
    os << " " << value;
  const StoredSpec &stored = spec.stored;
  os << " " << stored.axis << " " << stored.sourceGroup << " " << stored.bits << " " << stored.group << " "
     << stored.halfScales << " " << stored.realZeros;
  for (int other : {stored.scales, stored.zeroPoints, stored.codebook})
    os << " " << (other >= 0 ? constants[other].getAsOpaquePointer() : nullptr);
  return key;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

void ArtifactBuilder::addProgram(ajour_arch arch, std::vector<LevelCode> levels) {
  auto program = std::make_unique<artifact::ProgramT>();
  program->arch = arch;
  constantBuffers.clear();

  llvm::DenseMap<Value, unsigned> buffers;
  llvm::DenseMap<Value, ElementsAttr> constants;
  auto addBuffer = [&](artifact::BufferKind kind, Type type) {
    auto buffer = std::make_unique<artifact::BufferT>();
    buffer->kind = kind;
    buffer->size = expr(bytesOf(type));
    program->buffers.push_back(std::move(buffer));
    return unsigned(program->buffers.size() - 1);
  };
  for (BlockArgument argument : main.getArguments()) {
    bool isState = nn::isStateArgument(main, argument.getArgNumber());
    buffers[argument] = addBuffer(isState ? artifact::BufferKind::State : artifact::BufferKind::Input, argument.getType());
  }
  auto ret = cast<func::ReturnOp>(main.getBody().front().getTerminator());
  for (auto [i, value] : llvm::enumerate(ret.getOperands())) {
    bool isState = nn::isStateResult(main, i);
    if (isInPlace(i)) {
      // Buffers of results are counted, so that its number stays; nothing uses it.
      program->buffers[addBuffer(artifact::BufferKind::Arena, value.getType())]->size = expr(getAffineConstantExpr(0, main.getContext()));
      continue;
    }
    buffers[exec::resolveAlias(value)] =
        addBuffer(isState ? artifact::BufferKind::State : artifact::BufferKind::Output, value.getType());
  }

  for (LevelCode &level : levels) {
    auto executable = std::make_unique<artifact::ExecutableT>();
    bool isLinked = level.sharedObject.empty();
    executable->segment = isLinked ? AJOUR_STATIC_CODE_SEGMENT : 1 + executables.size();
    executable->level = level.level;
    executable->identity = level.identity;
    program->executables.push_back(std::move(executable));
    if (isLinked)
      continue;
    executableNames.push_back(std::string("code ") + lookupCpuLevel(level.level)->name);
    executables.push_back(std::move(level.sharedObject));
  }

  unsigned step = 0;
  for (Operation &op : main.getBody().front()) {
    if (auto constant = dyn_cast<nn::ConstantOp>(op))
      constants[constant.getResult()] = constant.getValue();
    auto dispatch = dyn_cast<exec::DispatchOp>(op);
    if (!dispatch)
      continue;
    auto out = std::make_unique<artifact::DispatchT>();
    out->name = "#" + std::to_string(step) + " " + dispatch.getKind().str();
    out->kind = dispatch.getKind().str();
    for (const NodeInfo &node : getNodes(dispatch.getLoc()))
      out->nodes.push_back(node.name);
    auto callee = module.lookupSymbol<func::FuncOp>(dispatch.getCallee());
    out->macs = expr(countMacs(callee));
    out->mac_type = macElementType(callee);
    if (std::optional<unsigned> argument = inPlaceArgument(callee))
      buffers[dispatch.getOutputs()[0]] = buffers[dispatch.getInputs()[*argument]];
    for (Value result : dispatch.getOutputs()) {
      auto known = buffers.find(result);
      if (known == buffers.end()) {
        unsigned index = addBuffer(artifact::BufferKind::Arena, result.getType());
        program->buffers[index]->first_use = program->buffers[index]->last_use = step;
        buffers[result] = index;
      } else {
        program->buffers[known->second]->first_use = program->buffers[known->second]->last_use = step;
      }
    }
    SmallVector<ElementsAttr> constantArguments;
    for (Value input : dispatch.getInputs()) {
      Value origin = exec::resolveAlias(input);
      constantArguments.push_back(constants.lookup(origin));
      if (auto known = buffers.find(origin); known != buffers.end())
        program->buffers[known->second]->last_use = step;
    }
    // Best level first.
    for (size_t i = levels.size(); i-- > 0;) {
      auto found = levels[i].dispatches.find(dispatch.getCallee());
      if (found == levels[i].dispatches.end())
        continue;
      const LoweredDispatch &lowered = found->second;
      auto variant = std::make_unique<artifact::VariantT>();
      variant->features = lookupCpuLevel(levels[i].level)->featureSet;
      variant->level = levels[i].level;
      variant->executable = i;
      variant->symbol = lowered.symbol;
      variant->work = expr(lowered.work);
      variant->scratch = expr(lowered.scratchBytes);
      for (const OperandSpec &operand : lowered.operands) {
        if (operand.kind == OperandSpec::Result) {
          variant->operands.push_back(buffers[dispatch.getOutputs()[operand.index]]);
        } else if (operand.kind == OperandSpec::Packed) {
          const PackSpec &spec = lowered.packs[operand.index];
          variant->operands.push_back(constantBuffer(*program, packKey(spec, constantArguments),
                                                     [&] { return packOperand(spec, constantArguments); }));
        } else if (ElementsAttr constant = constantArguments[operand.index]) {
          std::string key = "raw " + std::to_string(reinterpret_cast<uintptr_t>(constant.getAsOpaquePointer()));
          variant->operands.push_back(constantBuffer(*program, key, [&] { return nn::constantBytes(constant); }));
        } else {
          variant->operands.push_back(buffers[exec::resolveAlias(dispatch.getInputs()[operand.index])]);
        }
      }
      out->variants.push_back(std::move(variant));
    }
    program->dispatches.push_back(std::move(out));
    ++step;
  }
  planBuffers(*program);
  model.programs.push_back(std::move(program));
}

void ArtifactBuilder::planBuffers(artifact::ProgramT &program) {
  std::vector<PlannedBuffer> planned;
  std::vector<artifact::BufferT *> arena;
  for (auto &buffer : program.buffers) {
    if (buffer->kind != artifact::BufferKind::Arena)
      continue;
    // Rebuild the expression's value from its code: static sizes are one constant.
    if (buffer->size->code.size() != 2 || buffer->size->code[0] != AJOUR_EXPR_CONST)
      return;
    PlannedBuffer p;
    p.size = buffer->size->code[1];
    p.firstUse = buffer->first_use;
    p.lastUse = buffer->last_use;
    planned.push_back(p);
    arena.push_back(buffer.get());
  }
  uint64_t total = 0;
  if (!planMemory(planned.data(), planned.size(), total))
    return;
  for (auto [buffer, plan] : llvm::zip_equal(arena, planned))
    buffer->offset = plan.offset;
  program.arena_bytes = total;
}

std::string ArtifactBuilder::write() {
  std::vector<SegmentSource> segments;
  SegmentSource weights;
  weights.name = "constants";
  weights.size = store.size();
  weights.read = readConstants;
  weights.context = this;
  segments.push_back(weights);
  for (size_t i = 0; i < executables.size(); ++i) {
    SegmentSource code;
    code.name = executableNames[i];
    code.data = executables[i].data();
    code.size = executables[i].size();
    segments.push_back(code);
  }
  std::vector<std::vector<char>> attached;
  if (auto attachments = module->getAttrOfType<DictionaryAttr>("nn.attachments"))
    for (NamedAttribute entry : attachments) {
      attached.push_back(nn::constantBytes(cast<ElementsAttr>(entry.getValue())));
      auto attachment = std::make_unique<artifact::AttachmentT>();
      attachment->name = entry.getName().str();
      attachment->segment = segments.size();
      model.attachments.push_back(std::move(attachment));
      SegmentSource segment;
      segment.name = entry.getName().str();
      segment.data = attached.back().data();
      segment.size = attached.back().size();
      segments.push_back(segment);
    }
  return writeArtifact(path, model, segments);
}

} // namespace ajour
