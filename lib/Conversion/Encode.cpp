//===- Encode.cpp - what weights are made of -------------------------------------===//
#include "ajour/Conversion/Encode.h"
#include "ajour/Dialect/Enc/Enc.h"
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Support/NodeLocation.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace ajour {

using encoding::WeightShape;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The operand of a product that holds its weights; null for other operations.
static Value weightsOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([](nn::MatmulOp matmul) { return matmul.getRhs(); })
      .Case([](nn::ConvOp conv) { return conv.getFilter(); })
      .Case([](nn::ConvTransposeOp conv) { return conv.getFilter(); })
      .Default([](Operation *) { return Value(); });
}

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
// Weights
//===----------------------------------------------------------------------===//

/// [k][n] to [n][k].
template <typename T> static std::vector<T> transposed(const std::vector<T> &data, int64_t n, int64_t k) {
  std::vector<T> result(data.size());
  for (int64_t p = 0; p < k; ++p)
    for (int64_t j = 0; j < n; ++j)
      result[j * k + p] = data[p * n + j];
  return result;
}

static ArrayRef<int32_t> zeroPointsOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, ArrayRef<int32_t>>(op)
      .Case<nn::MatmulOp, nn::ConvOp, nn::ConvTransposeOp>([](auto product) { return product.getRhsZeroPoints(); })
      .Default([](Operation *) { return ArrayRef<int32_t>(); });
}

static void detectFloats(std::span<const float> numbers, EncodedWeight &weight, std::vector<uint8_t> &mask) {
  mask = encoding::nonzeroMask(numbers);
  weight.found =
      encoding::detectStructure(weight.use.shape, mask, encoding::detectValues(weight.use.shape, numbers));
}

static encoding::Detected detectCodes(Operation *op, const WeightShape &shape, const std::vector<int64_t> &codes,
                                      bool isSigned, std::vector<uint8_t> &mask) {
  ArrayRef<int32_t> zeroPoints = zeroPointsOf(op);
  encoding::Values values;
  values.kind = encoding::ValuesKind::Int;
  values.bits = 8;
  values.isSigned = isSigned;
  values.hasZeroPoints = llvm::any_of(zeroPoints, [](int32_t z) { return z != 0; });
  // Scales are part of the requantisation; as many as there are zero points, or one a row.
  values.granularity = zeroPoints.size() > 1 ? encoding::Granularity::Channel : encoding::Granularity::Tensor;
  mask.resize(codes.size());
  std::vector<int8_t> narrow(isSigned ? codes.size() : 0);
  for (size_t i = 0; i < codes.size(); ++i) {
    int32_t zero = zeroPoints.empty() ? 0 : zeroPoints[zeroPoints.size() == 1 ? 0 : i / shape.k];
    mask[i] = codes[i] != zero;
    if (isSigned)
      narrow[i] = static_cast<int8_t>(codes[i]);
  }
  if (isSigned && !values.hasZeroPoints)
    values = encoding::detectValues(narrow, values);
  return encoding::detectStructure(shape, mask, values);
}

/// Fills in what was found in a product's constant; false for element types that are no weights of ours.
static bool detect(Operation *op, ElementsAttr constant, EncodedWeight &weight, std::vector<uint8_t> &mask) {
  const WeightShape &shape = weight.use.shape;
  auto matmul = dyn_cast<nn::MatmulOp>(op);
  bool isTurned = matmul && !matmul.getTransposeRhs();
  std::vector<char> storage;
  ArrayRef<char> bytes = nn::constantBytes(constant, storage);
  if (constant.getElementType().isF32() && !isTurned && reinterpret_cast<uintptr_t>(bytes.data()) % sizeof(float) == 0) {
    // Large weights are looked at where they are.
    detectFloats({reinterpret_cast<const float *>(bytes.data()), bytes.size() / sizeof(float)}, weight, mask);
    return true;
  }
  if (auto numbers = nn::constantFloats(constant)) {
    if (isTurned)
      numbers = transposed(*numbers, shape.n, shape.k);
    detectFloats(*numbers, weight, mask);
    return true;
  }
  if (!constant.getElementType().isInteger(8))
    return false;
  auto codes = nn::constantInts(constant);
  if (isTurned)
    codes = transposed(*codes, shape.n, shape.k);
  weight.found = detectCodes(op, shape, *codes, !nn::isUnsigned(constant.getElementType()), mask);
  return true;
}

//===----------------------------------------------------------------------===//
// What the model says
//===----------------------------------------------------------------------===//

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
  std::string error = encoding::makeStructure(entry.getAs<StringAttr>("structure").getValue(), enc::readParameters(entry),
                                              stated.structure);
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
    ElementsAttr constant = use ? nn::getConstantValue(weightsOf(op)) : ElementsAttr();
    if (!constant)
      return WalkResult::advance();
    EncodedWeight weight;
    weight.op = op;
    weight.use = *use;
    weight.givenBytes = constant.getNumElements() * nn::elementBytes(constant.getElementType());
    weight.rows = rowsOf(op);
    std::vector<uint8_t> mask;
    if (!detect(op, constant, weight, mask))
      return WalkResult::advance();
    if (declared && failed(applyDeclared(op, declared, weight, mask)))
      return WalkResult::interrupt();
    weight.use.encoding = weight.found.encoding;
    op->removeAttr(enc::weightAttrName);
    if (weight.found.encoding.structure.kind != encoding::StructureKind::Dense) {
      weight.use.densities = groupDensities(weight.use.shape, mask);
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
