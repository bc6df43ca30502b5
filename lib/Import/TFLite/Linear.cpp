//===- Linear.cpp - FULLY_CONNECTED and BATCH_MATMUL ---------------------------===//
#include "Importer.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::tflite {

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// [.., K] as [M, K].
Value flattenRows(Node &node, Value x, int64_t k) {
  RankedTensorType type = typeOf(x);
  if (type.getRank() == 2 && type.getDimSize(1) == k)
    return x;
  AffineExpr count = numElements(getDims(x), node.b.getContext());
  std::optional<int64_t> known = getConstant(count);
  if (k < 1 || (known && *known % k) || (!known && type.getShape().back() != k)) {
    node.error() << "input " << nn::toString(type) << " cannot be read as rows of " << k
                 << " elements, which the weights have";
    return {};
  }
  AffineExpr rows = count.floorDiv(k);
  if (!known)
    rows = numElements(ArrayRef<AffineExpr>(getDims(x)).drop_back(), node.b.getContext());
  return node.reshape(x, {rows, node.b.getAffineConstantExpr(k)});
}

LogicalResult importFullyConnected(Node &node) {
  if (!node.has(0) || !node.has(1))
    return node.error() << "operands 0 and 1 are needed";
  const FullyConnected *o = node.options<FullyConnected>();
  if (o && o->weights_format() != 0)
    return node.error() << "weights format " << int(o->weights_format()) << " is not supported, expected 0 (default)";
  Activation activation = o ? o->activation() : Activation::NONE;
  bool integer = node.isIntegerProduct(0, 1);
  Value x = integer ? node.value(0) : node.floatValue(0), w = integer ? node.value(1) : node.floatValue(1);
  if (!x || !w)
    return failure();
  if (typeOf(w).getRank() != 2 || !typeOf(w).hasStaticShape())
    return node.error() << "weights of rank 2 are needed, found " << nn::toString(typeOf(w));
  const TensorData &weights = node.in(1);
  if (integer && !weights.quant->isPerTensor() && weights.quant->axis != 0)
    return node.error() << "weights '" << weights.name << "' are quantised along dimension " << weights.quant->axis
                        << ", expected 0";
  int64_t n = typeOf(w).getDimSize(0), k = typeOf(w).getDimSize(1);
  Dims outer = getDims(x);
  Value rows = flattenRows(node, x, k);
  if (!rows || (integer && failed(node.needPerTensor(node.in(0)))))
    return failure();
  SmallVector<Value> operands{rows, w};
  if (node.has(2)) {
    Value bias = integer ? node.value(2) : node.floatValue(2);
    if (!bias)
      return failure();
    operands.push_back(node.reshape(bias, {typeOf(bias).hasStaticShape() ? typeOf(bias).getNumElements() : 0}));
  }
  MatmulOp::Properties p;
  p.setTransposeRhs(node.b.getUnitAttr());
  if (integer) {
    p.setLhsZeroPoint(node.b.getI32IntegerAttr(node.in(0).quant->zeroPoints[0]));
    p.setRhsZeroPoints(node.b.getDenseI32ArrayAttr(weightZeroPoints(weights)));
  }
  Value result;
  if (!node.isFloatProduct())
    result = node.create<MatmulOp>(p, operands);
  else if ((result = matmulInOrder(node, rows, w)) && operands.size() == 3)
    result = node.binary(BinaryKind::add, result, operands[2]);
  LogicalResult status = integer ? setAccumulator(node, result, 0, 1, activation, n)
                                 : node.setFloatProduct(node.activate(result, activation));
  if (failed(status) || !o || !o->keep_num_dims() || outer.empty())
    return status;
  outer.back() = node.b.getAffineConstantExpr(n);
  return node.set(node.reshape(node.result(), outer));
}

LogicalResult importBatchMatMul(Node &node) {
  const BatchMatMul *o = node.options<BatchMatMul>();
  if (!node.has(0) || !node.has(1))
    return node.error() << "operands 0 and 1 are needed";
  bool integer = node.isIntegerProduct(0, 1);
  Value lhs = integer ? node.value(0) : node.floatValue(0), rhs = integer ? node.value(1) : node.floatValue(1);
  if (!lhs || !rhs)
    return failure();
  MatmulOp::Properties p;
  if (o && o->adj_x())
    p.setTransposeLhs(node.b.getUnitAttr());
  if (o && o->adj_y())
    p.setTransposeRhs(node.b.getUnitAttr());
  if (integer) {
    if (failed(node.needPerTensor(node.in(0))) || failed(node.needPerTensor(node.in(1))))
      return failure();
    p.setLhsZeroPoint(node.b.getI32IntegerAttr(node.in(0).quant->zeroPoints[0]));
    p.setRhsZeroPoints(node.b.getDenseI32ArrayAttr(weightZeroPoints(node.in(1))));
  }
  Value result = node.create<MatmulOp>(p, {lhs, rhs});
  if (!integer)
    return node.setFloatProduct(result);
  return setAccumulator(node, result, 0, 1, Activation::NONE, 1);
}

const OpRow rows[] = {
    {Builtin::FULLY_CONNECTED, 13, 2, 3, importFullyConnected},
    {Builtin::BATCH_MATMUL, 4, 2, 2, importBatchMatMul},
};

} // namespace

ArrayRef<OpRow> linearRows() { return rows; }

} // namespace ajour::tflite
