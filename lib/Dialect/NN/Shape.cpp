//===- Shape.cpp - types and checks of data movement ---------------------------===//
#include "ajour/Dialect/NN/NN.h"
#include "ajour/Dialect/NN/Shapes.h"

using namespace mlir;
using namespace ajour::nn;

static RankedTensorType tensor(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Axis checks shared by this file; `constraint` names the operation's own rule.
static LogicalResult checkAxis(std::optional<Location> loc, StringRef op, StringRef constraint, RankedTensorType type,
                               int64_t axis, int64_t low = 0) {
  if (axis < low || axis >= type.getRank())
    return emitOptionalError(loc, op, ": ", constraint, ": axis ", axis, " is outside ", toString(type));
  return success();
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  RankedTensorType input = tensor(adaptor.getInput());
  Dims in = getDims(input), dims;
  SmallVector<bool> seen(in.size(), false);
  for (int64_t p : adaptor.getPerm()) {
    if (p < 0 || p >= int64_t(in.size()) || seen[p])
      return emitOptionalError(loc, "nn.transpose: C1: not a permutation of the dimensions of ", toString(input));
    seen[p] = true;
    dims.push_back(in[p]);
  }
  if (dims.size() != in.size())
    return emitOptionalError(loc, "nn.transpose: C1: not a permutation of the dimensions of ", toString(input));
  types.push_back(makeTensor(dims, input.getElementType()));
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  for (auto [i, p] : llvm::enumerate(getPerm()))
    if (int64_t(i) != p)
      return {};
  return getInput();
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType in = tensor(getInput()), out = tensor(getResult());
  if (in.getElementType() != out.getElementType())
    return emitOpError() << "C1: element types differ: " << toString(in) << " and " << toString(out);
  std::optional<int64_t> a = getConstant(numElements(getDims(in), getContext()));
  std::optional<int64_t> b = getConstant(numElements(getDims(out), getContext()));
  if (a && b && *a != *b)
    return emitOpError() << "C2: " << *a << " elements cannot take the shape " << toString(out);
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) { return getInput().getType() == getType() ? getInput() : Value(); }

LogicalResult BroadcastOp::verify() {
  RankedTensorType in = tensor(getInput()), out = tensor(getResult());
  if (in.getElementType() != out.getElementType())
    return emitOpError() << "C1: element types differ: " << toString(in) << " and " << toString(out);
  std::optional<Dims> joined = broadcastDims(getDims(out), getDims(in));
  if (!joined || *joined != getDims(out) || in.getRank() > out.getRank())
    return emitOpError() << "C2: " << toString(in) << " does not broadcast to " << toString(out);
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) { return getInput().getType() == getType() ? getInput() : Value(); }

LogicalResult SliceOp::verify() {
  RankedTensorType in = tensor(getInput()), out = tensor(getResult());
  size_t rank = in.getRank();
  if (getStarts().size() != rank || getSteps().size() != rank || size_t(out.getRank()) != rank)
    return emitOpError() << "C1: one start and one step is needed for each dimension of " << toString(in);
  if (in.getElementType() != out.getElementType())
    return emitOpError() << "C2: element types differ: " << toString(in) << " and " << toString(out);
  for (size_t i = 0; i < rank; ++i) {
    if (getSteps()[i] == 0)
      return emitOpError() << "C1: step 0 in dimension " << i;
    if (out.isDynamicDim(i) || in.isDynamicDim(i) || out.getDimSize(i) == 0)
      continue;
    int64_t first = getStarts()[i], steps = out.getDimSize(i) - 1, last;
    if (llvm::MulOverflow(steps, getSteps()[i], last) || llvm::AddOverflow(first, last, last) ||
        std::min(first, last) < 0 || std::max(first, last) >= in.getDimSize(i))
      return emitOpError() << "C3: dimension " << i << " reads " << out.getDimSize(i) << " elements from " << first
                           << " in steps of " << getSteps()[i] << " of " << in.getDimSize(i);
  }
  return success();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  bool whole = getInput().getType() == getType() && llvm::all_of(getStarts(), [](int64_t s) { return s == 0; }) &&
               llvm::all_of(getSteps(), [](int64_t s) { return s == 1; });
  return whole ? getInput() : Value();
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  if (adaptor.getInputs().empty())
    return emitOptionalError(loc, "nn.concat: C1: no operand");
  RankedTensorType first = tensor(adaptor.getInputs()[0]);
  int64_t axis = adaptor.getAxis();
  if (failed(checkAxis(loc, "nn.concat", "C3", first, axis)))
    return failure();
  Dims dims = getDims(first);
  for (Value value : adaptor.getInputs().drop_front()) {
    RankedTensorType type = tensor(value);
    Dims other = getDims(type);
    if (type.getElementType() != first.getElementType() || other.size() != dims.size())
      return emitOptionalError(loc, "nn.concat: C2: ", toString(first), " and ", toString(type));
    AffineExpr sum = dims[axis] + other[axis];
    other[axis] = dims[axis];
    if (other != dims)
      return emitOptionalError(loc, "nn.concat: C2: ", toString(first), " and ", toString(type));
    dims[axis] = sum;
  }
  types.push_back(makeTensor(dims, first.getElementType()));
  return success();
}

LogicalResult PadOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  RankedTensorType input = tensor(adaptor.getInput());
  Dims dims = getDims(input);
  ArrayRef<int64_t> low = adaptor.getLow(), high = adaptor.getHigh();
  if (low.size() != dims.size() || high.size() != dims.size())
    return emitOptionalError(loc, "nn.pad: C1: ", low.size(), " low and ", high.size(), " high amounts for ",
                             toString(input));
  // Amounts up to this leave room for sums in 64 bits.
  constexpr int64_t most = int64_t(1) << 40;
  for (int64_t amount : llvm::concat<const int64_t>(low, high))
    if (amount < -most || amount > most)
      return emitOptionalError(loc, "nn.pad: C1: amount ", amount, " is beyond what a tensor can have");
  PadMode mode = adaptor.getMode();
  for (size_t i = 0; i < dims.size(); ++i) {
    std::optional<int64_t> size = getConstant(dims[i]);
    dims[i] = dims[i] + (low[i] + high[i]);
    if (!size)
      continue;
    int64_t cropped = *size + std::min<int64_t>(low[i], 0) + std::min<int64_t>(high[i], 0);
    if (cropped < 0 || *size + low[i] + high[i] < 0)
      return emitOptionalError(loc, "nn.pad: C2: amounts ", low[i], " and ", high[i], " remove more than dimension ", i,
                               " of ", toString(input), " has");
    int64_t added = std::max(low[i], high[i]);
    int64_t allowed = mode == PadMode::reflect ? cropped - 1 : cropped;
    if (mode != PadMode::constant && added > 0 &&
        ((mode == PadMode::edge && cropped == 0) || (mode != PadMode::edge && added > allowed)))
      return emitOptionalError(loc, "nn.pad: C3: ", stringifyPadMode(mode), " adds ", added, " to dimension ", i, " of ",
                               toString(input), ", at most ", std::max<int64_t>(allowed, 0), " is possible");
  }
  if (Value value = adaptor.getValue()) {
    RankedTensorType type = tensor(value);
    if (type.getElementType() != input.getElementType() || !type.hasStaticShape() || type.getNumElements() != 1)
      return emitOptionalError(loc, "nn.pad: C4: value ", toString(type), " for ", toString(input));
  }
  types.push_back(makeTensor(dims, input.getElementType()));
  return success();
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  RankedTensorType data = tensor(adaptor.getData()), indices = tensor(adaptor.getIndices());
  int64_t axis = adaptor.getAxis(), batch = adaptor.getBatchDims();
  if (batch < 0 || batch > indices.getRank() || failed(checkAxis(loc, "nn.gather", "C1", data, axis, batch)))
    return emitOptionalError(loc, "nn.gather: C1: ", batch, " batch dimensions for ", toString(data), " and ",
                             toString(indices));
  Dims d = getDims(data), i = getDims(indices);
  if (ArrayRef(d).take_front(batch) != ArrayRef(i).take_front(batch))
    return emitOptionalError(loc, "nn.gather: C2: batch dimensions differ: ", toString(data), " and ",
                             toString(indices));
  Dims dims(d.begin(), d.begin() + axis);
  dims.append(i.begin() + batch, i.end());
  dims.append(d.begin() + axis + 1, d.end());
  types.push_back(makeTensor(dims, data.getElementType()));
  return success();
}

LogicalResult GatherElementsOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                                 SmallVectorImpl<Type> &types) {
  RankedTensorType data = tensor(adaptor.getData()), indices = tensor(adaptor.getIndices());
  if (data.getRank() != indices.getRank())
    return emitOptionalError(loc, "nn.gather_elements: C1: ranks differ: ", toString(data), " and ", toString(indices));
  if (failed(checkAxis(loc, "nn.gather_elements", "C2", data, adaptor.getAxis())))
    return failure();
  for (int64_t i = 0; i < data.getRank(); ++i)
    if (i != int64_t(adaptor.getAxis()) && !data.isDynamicDim(i) && !indices.isDynamicDim(i) &&
        indices.getDimSize(i) > data.getDimSize(i))
      return emitOptionalError(loc, "nn.gather_elements: C3: ", toString(indices), " exceeds ", toString(data));
  types.push_back(makeTensor(getDims(indices), data.getElementType()));
  return success();
}

/// The number of dimensions that an index tuple addresses, or nothing.
static std::optional<int64_t> tupleSize(RankedTensorType indices, int64_t most) {
  if (indices.getRank() < 1 || indices.isDynamicDim(indices.getRank() - 1))
    return std::nullopt;
  int64_t size = indices.getShape().back();
  return size >= 1 && size <= most ? std::optional(size) : std::nullopt;
}

LogicalResult GatherNDOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  RankedTensorType data = tensor(adaptor.getData()), indices = tensor(adaptor.getIndices());
  int64_t batch = adaptor.getBatchDims();
  std::optional<int64_t> tuple;
  if (batch >= 0 && batch < indices.getRank())
    tuple = tupleSize(indices, data.getRank() - batch);
  if (!tuple)
    return emitOptionalError(loc, "nn.gather_nd: C1: indices ", toString(indices), " for ", toString(data));
  Dims d = getDims(data), i = getDims(indices);
  if (ArrayRef(d).take_front(batch) != ArrayRef(i).take_front(batch))
    return emitOptionalError(loc, "nn.gather_nd: C2: batch dimensions differ: ", toString(data), " and ",
                             toString(indices));
  Dims dims(i.begin(), i.end() - 1);
  dims.append(d.begin() + batch + *tuple, d.end());
  types.push_back(makeTensor(dims, data.getElementType()));
  return success();
}

LogicalResult ScatterElementsOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                                  SmallVectorImpl<Type> &types) {
  RankedTensorType data = tensor(adaptor.getData()), indices = tensor(adaptor.getIndices());
  RankedTensorType updates = tensor(adaptor.getUpdates());
  if (data.getRank() != indices.getRank() || getDims(indices) != getDims(updates))
    return emitOptionalError(loc, "nn.scatter_elements: C1: data ", toString(data), ", indices ", toString(indices),
                             ", updates ", toString(updates));
  if (failed(checkAxis(loc, "nn.scatter_elements", "C2", data, adaptor.getAxis())))
    return failure();
  if (data.getElementType() != updates.getElementType())
    return emitOptionalError(loc, "nn.scatter_elements: C3: element types differ: ", toString(data), " and ",
                             toString(updates));
  types.push_back(data);
  return success();
}

LogicalResult ScatterNDOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  RankedTensorType data = tensor(adaptor.getData()), indices = tensor(adaptor.getIndices());
  RankedTensorType updates = tensor(adaptor.getUpdates());
  std::optional<int64_t> tuple = tupleSize(indices, data.getRank());
  if (!tuple)
    return emitOptionalError(loc, "nn.scatter_nd: C1: indices ", toString(indices), " for ", toString(data));
  Dims d = getDims(data), i = getDims(indices), expected(i.begin(), i.end() - 1);
  expected.append(d.begin() + *tuple, d.end());
  if (expected != getDims(updates))
    return emitOptionalError(loc, "nn.scatter_nd: C2: updates ", toString(updates), ", expected shape ",
                             toString(expected));
  if (data.getElementType() != updates.getElementType())
    return emitOptionalError(loc, "nn.scatter_nd: C3: element types differ: ", toString(data), " and ",
                             toString(updates));
  types.push_back(data);
  return success();
}

LogicalResult ReverseSequenceOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                                  SmallVectorImpl<Type> &types) {
  RankedTensorType input = tensor(adaptor.getInput()), lengths = tensor(adaptor.getLengths());
  int64_t batch = adaptor.getBatchAxis(), time = adaptor.getTimeAxis();
  if (failed(checkAxis(loc, "nn.reverse_sequence", "C1", input, batch)) ||
      failed(checkAxis(loc, "nn.reverse_sequence", "C1", input, time)))
    return failure();
  if (batch == time)
    return emitOptionalError(loc, "nn.reverse_sequence: C1: both axes are ", batch);
  if (lengths.getRank() != 1 || getDims(lengths)[0] != getDims(input)[batch])
    return emitOptionalError(loc, "nn.reverse_sequence: C2: lengths ", toString(lengths), " for ", toString(input));
  types.push_back(input);
  return success();
}

LogicalResult IotaOp::verify() {
  if (int64_t(getAxis()) < 0 || int64_t(getAxis()) >= tensor(getResult()).getRank())
    return emitOpError() << "C1: axis " << getAxis() << " is outside " << toString(tensor(getResult()));
  return success();
}
