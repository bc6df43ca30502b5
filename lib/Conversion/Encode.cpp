//===- Encode.cpp - what weights are made of -------------------------------------===//
#include "ajour/Conversion/Encode.h"
#include "PlainWeights.h"
#include "ajour/Dialect/Enc/Enc.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Support/NodeLocation.h"

#include <cmath>

using namespace mlir;

namespace ajour {

using encoding::WeightShape;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

template <typename Op> static void describeConv(Op op, WeightUse &use) {
  auto filter = cast<RankedTensorType>(op.getFilter().getType());
  ArrayRef<int64_t> dims = filter.getShape();
  use.shape.n = dims.front();
  use.shape.k = llvm::product_of(dims.drop_front());
  use.shape.kw = dims[dims.size() - 2];
  use.shape.kh = llvm::product_of(dims.drop_front().drop_back(2));
  use.isConv = true;
  use.isDepthwise = op.getGroups() > 1;
  use.stride = *llvm::max_element(op.getStrides());
  use.isDilated = llvm::any_of(op.getDilations(), [](int64_t d) { return d != 1; });
}

/// The use of a product without what its weights are; nullopt for products whose weights are not one matrix of known size.
static std::optional<WeightUse> describeProduct(Operation *op) {
  Value weights = weightsOf(op);
  if (!weights)
    return std::nullopt;
  auto type = cast<RankedTensorType>(weights.getType());
  if (!type.hasStaticShape() || type.getNumElements() == 0 || type.getRank() < 2)
    return std::nullopt;
  WeightUse use;
  use.lhs = nn::getElementTypeId(cast<RankedTensorType>(op->getOperand(0).getType()).getElementType());
  use.rhs = nn::getElementTypeId(type.getElementType());
  if (auto matmul = dyn_cast<nn::MatmulOp>(op)) {
    if (type.getRank() != 2)
      return std::nullopt;
    bool isTransposed = matmul.getTransposeRhs();
    use.shape = {type.getDimSize(isTransposed ? 0 : 1), type.getDimSize(isTransposed ? 1 : 0)};
  } else if (auto conv = dyn_cast<nn::ConvOp>(op)) {
    describeConv(conv, use);
  } else {
    describeConv(cast<nn::ConvTransposeOp>(op), use);
    use.isDepthwise = true; // Its rows do not run over pixels: no sparse kernel, like a grouped one.
  }
  return use;
}

std::optional<WeightUse> getWeightUse(Operation *product) {
  auto attr = product->getAttrOfType<enc::WeightAttr>(enc::weightAttrName);
  std::optional<WeightUse> use = attr ? describeProduct(product) : std::nullopt;
  if (!use)
    return std::nullopt;
  use->encoding = attr.getEncoding();
  for (auto [density, permille] : llvm::zip_equal(use->densities, attr.getDensities()))
    density = double(permille) / 1000;
  return use;
}

/// Rows of a product: its result's elements without the channels; -1: not known.
static int64_t rowsOf(Operation *op) {
  nn::Dims dims = nn::getDims(op->getResult(0));
  return nn::getConstant(nn::numElements(ArrayRef(dims).drop_back(), op->getContext())).value_or(-1);
}

//===----------------------------------------------------------------------===//
// What the model says
//===----------------------------------------------------------------------===//

/// The structure that an entry names. Tools that prune know less than a table of patterns: the table is then read from the weights, and
/// `entries` says how many positions a pattern may have. `cols` (columns that are pruned together) says nothing that matters here.
static std::string readEntry(DictionaryAttr entry, const encoding::Detected &found, encoding::Structure &structure) {
  StringRef name = entry.getAs<StringAttr>("structure").getValue();
  std::vector<encoding::Parameter> parameters = enc::readParameters(entry);
  int64_t entries = 0;
  llvm::erase_if(parameters, [&](const encoding::Parameter &p) {
    if (name == "pattern" && p.name == "entries" && p.value.size() == 1)
      entries = p.value[0];
    return (name == "pattern" && p.name == "entries") || (name == "block" && p.name == "cols");
  });
  if (name == "unstructured") {
    name = "block";
    parameters = {{"rows", {1}}};
  }
  if (std::string error = encoding::makeStructure(name, parameters, structure); !error.empty())
    return error;
  if (structure.kind == encoding::StructureKind::C4n && !llvm::any_of(parameters, [](auto &p) { return p.name == "n"; }))
    return "n is missing";
  if (structure.kind == encoding::StructureKind::Pattern && structure.patterns.empty()) {
    for (const encoding::Candidate &candidate : found.candidates)
      if (candidate.structure.kind == structure.kind && structure.patterns.empty())
        structure = candidate.structure;
    for (int64_t pattern : structure.patterns)
      if (entries && llvm::popcount(uint64_t(pattern)) > entries)
        return "a kernel keeps " + std::to_string(llvm::popcount(uint64_t(pattern))) + " weights instead of " +
               std::to_string(entries);
  }
  return "";
}

/// Replaces what was found by what the model says, which must be true.
static LogicalResult applyDeclared(Operation *op, DictionaryAttr declared, EncodedWeight &weight,
                                   ArrayRef<uint8_t> mask) {
  DictionaryAttr entry;
  for (const NodeInfo &node : getNodes(op->getLoc()))
    if (auto found = declared.getAs<DictionaryAttr>(node.name))
      entry = found;
  if (!entry)
    return success();
  encoding::Encoding stated = weight.found.encoding;
  std::string error = readEntry(entry, weight.found, stated.structure);
  if (error.empty())
    error = encoding::check(stated.structure, weight.use.shape);
  auto refuse = [&] {
    return op->emitError() << "ajour.encoding says that weights '" << entry.getAs<StringAttr>("weight").getValue()
                           << "' are " << entry.getAs<StringAttr>("structure") << ", but: " << error
                           << "; correct the entry or leave it out, then the structure is read from the zeros";
  };
  if (!error.empty())
    return refuse();
  auto size = encoding::storedSize(stated, weight.use.shape, {mask.data(), mask.size()}, error);
  if (!size)
    return refuse();
  encoding::Candidate candidate = {stated.structure, double(size->kept) / double(weight.use.shape.elements()), ""};
  if (stated.structure != weight.found.encoding.structure)
    weight.found.candidates.front().reason = "the model says otherwise";
  else
    weight.found.candidates.erase(weight.found.candidates.begin());
  weight.found.executed = candidate.executed;
  weight.found.candidates.insert(weight.found.candidates.begin(), std::move(candidate));
  weight.found.encoding = stated;
  weight.found.stored = *size;
  weight.isDeclared = true;
  return success();
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

static std::array<double, 5> groupDensities(const WeightShape &shape, ArrayRef<uint8_t> mask) {
  std::array<double, 5> densities;
  int64_t rows = 1;
  for (double &density : densities) {
    density = encoding::blockDensity(shape, {mask.data(), mask.size()}, rows);
    rows *= 2;
  }
  return densities;
}

static void annotate(EncodedWeight &weight) {
  SmallVector<int64_t> permille;
  for (double density : weight.use.densities)
    permille.push_back(std::llround(density * 1000));
  weight.op->setAttr(enc::weightAttrName,
                     enc::WeightAttr::get(weight.op->getContext(), weight.use.encoding, permille));
}

FailureOr<std::vector<EncodedWeight>> encodeWeights(ModuleOp module) {
  std::vector<EncodedWeight> weights;
  auto declared = module->getAttrOfType<DictionaryAttr>(enc::declaredAttrName);
  auto main = module.lookupSymbol<func::FuncOp>("main");
  WalkResult result = main.walk([&](Operation *op) {
    std::optional<WeightUse> use = describeProduct(op);
    PlainWeight plain;
    if (!use || !readPlainWeight(op, use->shape, plain))
      return WalkResult::advance();
    EncodedWeight weight;
    weight.op = op;
    weight.use = *use;
    weight.givenBytes = plain.bytes;
    weight.rows = rowsOf(op);
    weight.found = encoding::detectStructure(use->shape, plain.mask, plain.values);
    if (declared && failed(applyDeclared(op, declared, weight, plain.mask)))
      return WalkResult::interrupt();
    weight.use.encoding = weight.found.encoding;
    op->removeAttr(enc::weightAttrName);
    if (weight.found.encoding.structure.kind != encoding::StructureKind::Dense) {
      weight.use.densities = groupDensities(weight.use.shape, plain.mask);
      annotate(weight);
    } else {
      weight.use.densities.fill(1);
      weight.use.densities[0] = weight.found.density();
    }
    weights.push_back(std::move(weight));
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return weights;
}

void ignoreZeros(std::vector<EncodedWeight> &weights) {
  for (EncodedWeight &weight : weights) {
    weight.op->removeAttr(enc::weightAttrName);
    weight.use.encoding.structure = {};
    weight.use.densities.fill(1);
  }
}

namespace {
struct EncodePass : PassWrapper<EncodePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EncodePass)
  StringRef getArgument() const final { return "nn-encode"; }
  StringRef getDescription() const final { return "finds how weights are stored"; }
  void runOnOperation() override {
    if (failed(encodeWeights(getOperation())))
      signalPassFailure();
  }
};
} // namespace

std::unique_ptr<Pass> createEncodePass() { return std::make_unique<EncodePass>(); }

} // namespace ajour
