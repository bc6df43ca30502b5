//===- Shapes.cpp - symbolic dimensions --------------------------------------===//
#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/ABI/ElementTypes.h"
#include "ajour/Dialect/NN/NN.h"

#include "mlir/IR/AffineMap.h"

using namespace mlir;

namespace ajour::nn {

std::optional<int64_t> getConstant(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  return std::nullopt;
}

std::optional<SymbolMultiple> matchSymbol(AffineExpr expr) {
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return SymbolMultiple{symbol.getPosition(), 1};
  auto product = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!product || product.getKind() != AffineExprKind::Mul)
    return std::nullopt;
  // Affine expressions keep the constant on the right.
  auto symbol = dyn_cast<AffineSymbolExpr>(product.getLHS());
  std::optional<int64_t> multiple = getConstant(product.getRHS());
  if (!symbol || !multiple || *multiple < 1)
    return std::nullopt;
  return SymbolMultiple{symbol.getPosition(), *multiple};
}

Dims getDims(RankedTensorType type) {
  Dims dims;
  if (auto attr = dyn_cast_or_null<DimsAttr>(type.getEncoding())) {
    dims.append(attr.getMap().getResults().begin(), attr.getMap().getResults().end());
    return dims;
  }
  for (int64_t size : type.getShape()) {
    assert(!ShapedType::isDynamic(size) && "a dynamic dimension needs #nn.dims");
    dims.push_back(getAffineConstantExpr(size, type.getContext()));
  }
  return dims;
}

/// The number of symbols that an expression needs: its highest symbol plus one.
static unsigned symbolCount(AffineExpr expr) {
  unsigned count = 0;
  expr.walk([&](AffineExpr e) {
    if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
      count = std::max(count, symbol.getPosition() + 1);
  });
  return count;
}

AffineExpr simplifySize(AffineExpr expr) { return simplifyAffineExpr(expr, /*numDims=*/0, symbolCount(expr)); }

/// Stands for sizes that cannot be: it exceeds every limit, so that whoever checks those refuses it.
static constexpr int64_t impossibleSize = std::numeric_limits<int64_t>::max();

RankedTensorType makeTensor(ArrayRef<AffineExpr> dims, Type elementType) {
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> exprs;
  unsigned symbols = 0;
  for (AffineExpr dim : dims) {
    AffineExpr expr = simplifySize(dim);
    exprs.push_back(expr);
    // A size without symbols that is no number did not fit 64 bits, and a negative one is the same, wrapped.
    if (symbolCount(expr) == 0 && getConstant(expr).value_or(-1) < 0)
      exprs.back() = getAffineConstantExpr(impossibleSize, dim.getContext());
    shape.push_back(getConstant(exprs.back()).value_or(ShapedType::kDynamic));
    symbols = std::max(symbols, symbolCount(expr));
  }
  if (symbols == 0)
    return RankedTensorType::get(shape, elementType);
  MLIRContext *context = elementType.getContext();
  return RankedTensorType::get(shape, elementType, DimsAttr::get(context, AffineMap::get(0, symbols, exprs, context)));
}

RankedTensorType makeTensor(ArrayRef<int64_t> dims, Type elementType) {
  SmallVector<int64_t> shape(dims);
  for (int64_t &size : shape)
    size = size < 0 ? impossibleSize : size;
  return RankedTensorType::get(shape, elementType);
}

RankedTensorType withElementType(RankedTensorType type, Type elementType) {
  return RankedTensorType::get(type.getShape(), elementType, type.getEncoding());
}

AffineExpr numElements(ArrayRef<AffineExpr> dims, MLIRContext *context) {
  AffineExpr product = getAffineConstantExpr(1, context);
  for (AffineExpr dim : dims)
    product = product * dim;
  return simplifySize(product);
}

int64_t estimateSize(AffineExpr expr) {
  SmallVector<AffineExpr> values(symbolCount(expr), getAffineConstantExpr(assumedSize, expr.getContext()));
  return getConstant(simplifySize(expr.replaceSymbols(values))).value_or(0);
}

int64_t estimateBytes(RankedTensorType type) {
  return estimateSize(numElements(getDims(type), type.getContext())) * elementBytes(type.getElementType());
}

std::optional<Dims> broadcastDims(ArrayRef<AffineExpr> lhs, ArrayRef<AffineExpr> rhs) {
  if (lhs.size() < rhs.size())
    std::swap(lhs, rhs);
  Dims result(lhs.begin(), lhs.end());
  size_t offset = lhs.size() - rhs.size();
  for (size_t i = 0; i < rhs.size(); ++i) {
    AffineExpr a = lhs[offset + i], b = rhs[i];
    if (a == b || getConstant(b) == 1)
      continue;
    if (getConstant(a) != 1)
      return std::nullopt;
    result[offset + i] = b;
  }
  return result;
}

std::string elementName(Type type) {
  const char *name = ajour_element_name(getElementTypeId(type));
  if (name)
    return name;
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static void printExpr(llvm::raw_ostream &os, AffineExpr expr, ArrayRef<std::string> names) {
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    if (symbol.getPosition() < names.size())
      os << names[symbol.getPosition()];
    else
      os << "s" << symbol.getPosition();
    return;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary) {
    os << expr;
    return;
  }
  const char *op = binary.getKind() == AffineExprKind::Add        ? " + "
                   : binary.getKind() == AffineExprKind::Mul      ? " * "
                   : binary.getKind() == AffineExprKind::FloorDiv ? " / "
                   : binary.getKind() == AffineExprKind::CeilDiv  ? " ceildiv "
                                                                  : " mod ";
  os << "(";
  printExpr(os, binary.getLHS(), names);
  os << op;
  printExpr(os, binary.getRHS(), names);
  os << ")";
}

std::string toString(ArrayRef<AffineExpr> dims, ArrayRef<std::string> symbolNames) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    os << (i ? ", " : "");
    printExpr(os, dims[i], symbolNames);
  }
  os << "]";
  return text;
}

std::string toString(RankedTensorType type, ArrayRef<std::string> symbolNames) {
  return elementName(type.getElementType()) + toString(getDims(type), symbolNames);
}

uint32_t getElementTypeId(Type type) {
  if (type.isF32())
    return AJOUR_F32;
  if (type.isF16())
    return AJOUR_F16;
  if (type.isBF16())
    return AJOUR_BF16;
  if (type.isF64())
    return AJOUR_F64;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer || integer.isSigned())
    return 0;
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 1:
    return AJOUR_BOOL;
  case 8:
    return isUnsigned ? AJOUR_U8 : AJOUR_I8;
  case 16:
    return isUnsigned ? AJOUR_U16 : AJOUR_I16;
  case 32:
    return isUnsigned ? AJOUR_U32 : AJOUR_I32;
  case 64:
    return isUnsigned ? AJOUR_U64 : AJOUR_I64;
  default:
    return 0;
  }
}

Type getElementType(uint32_t id, MLIRContext *context) {
  auto integer = [&](unsigned width, bool isUnsigned) -> Type {
    return IntegerType::get(context, width, isUnsigned ? IntegerType::Unsigned : IntegerType::Signless);
  };
  switch (id) {
  case AJOUR_F32:
    return Float32Type::get(context);
  case AJOUR_F16:
    return Float16Type::get(context);
  case AJOUR_BF16:
    return BFloat16Type::get(context);
  case AJOUR_F64:
    return Float64Type::get(context);
  case AJOUR_I8:
  case AJOUR_U8:
    return integer(8, id == AJOUR_U8);
  case AJOUR_I16:
  case AJOUR_U16:
    return integer(16, id == AJOUR_U16);
  case AJOUR_I32:
  case AJOUR_U32:
    return integer(32, id == AJOUR_U32);
  case AJOUR_I64:
  case AJOUR_U64:
    return integer(64, id == AJOUR_U64);
  case AJOUR_BOOL:
    return integer(1, false);
  default:
    return nullptr;
  }
}

int64_t elementBytes(Type type) { return ajour_element_size(getElementTypeId(type)); }

bool isUnsigned(Type type) { return type.isUnsignedInteger() || type.isInteger(1); }

std::pair<int64_t, int64_t> integerRange(Type type) {
  unsigned width = cast<IntegerType>(type).getWidth();
  assert(width <= 32 && "ranges of wider types do not fit");
  if (isUnsigned(type))
    return {0, (int64_t(1) << width) - 1};
  return {-(int64_t(1) << (width - 1)), (int64_t(1) << (width - 1)) - 1};
}

} // namespace ajour::nn
