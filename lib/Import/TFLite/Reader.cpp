//===- Reader.cpp - a checked TFLite file ------------------------------------===//
#include "Reader.h"

#include "ajour/Dialect/NN/Shapes.h"
#include "ajour/Support/NodeLocation.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace ajour::tflite {

std::string typeName(TensorType type) {
  const char *name = EnumNameTensorType(type);
  return *name ? name : "type " + std::to_string(int(type));
}

int64_t TensorData::bits() const {
  if (format == TensorType::INT4 || format == TensorType::UINT4)
    return 4;
  return format == TensorType::INT2 ? 2 : 8 * nn::elementBytes(elementType);
}

namespace {

/// The element type in nn, or null.
Type getElementType(MLIRContext *context, TensorType type) {
  switch (type) {
  case TensorType::FLOAT32:
    return Float32Type::get(context);
  case TensorType::FLOAT16:
    return Float16Type::get(context);
  case TensorType::BFLOAT16:
    return BFloat16Type::get(context);
  case TensorType::FLOAT64:
    return Float64Type::get(context);
  case TensorType::INT8:
  case TensorType::INT4:
  case TensorType::INT2:
    return IntegerType::get(context, 8);
  case TensorType::INT16:
    return IntegerType::get(context, 16);
  case TensorType::INT32:
    return IntegerType::get(context, 32);
  case TensorType::INT64:
    return IntegerType::get(context, 64);
  case TensorType::UINT8:
  case TensorType::UINT4:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  case TensorType::UINT16:
    return IntegerType::get(context, 16, IntegerType::Unsigned);
  case TensorType::UINT32:
    return IntegerType::get(context, 32, IntegerType::Unsigned);
  case TensorType::UINT64:
    return IntegerType::get(context, 64, IntegerType::Unsigned);
  case TensorType::BOOL:
    return IntegerType::get(context, 1);
  default:
    return Type();
  }
}

class Reader {
public:
  Reader(MLIRContext *context, const std::string &path) : context(context) { graph.fileName = path; }

  FailureOr<Graph> read() {
    if (failed(open()) || failed(checkLength()))
      return failure();
    flatbuffers::uoffset_t maxTables = 10'000'000;
    flatbuffers::Verifier verifier(bytes(), size(), /*max_depth=*/32, maxTables);
    if (!VerifyModelBuffer(verifier))
      return error() << "the file is damaged: an offset leads outside its " << size() << " bytes";
    model = GetModel(bytes());
    if (model->version() != 3)
      return error() << "schema version " << model->version() << " is not supported, expected 3";
    if (!model->subgraphs() || model->subgraphs()->size() == 0)
      return error() << "the file has no subgraph";
    subgraph = model->subgraphs()->Get(0);
    if (!subgraph)
      return error() << "subgraph 0 is missing";
    if (failed(readTensors()) || failed(readOperators()) || failed(checkDefinitions()) || failed(readInitialisers()))
      return failure();
    return std::move(graph);
  }

private:
  MLIRContext *context;
  Graph graph;
  const Model *model = nullptr;
  const SubGraph *subgraph = nullptr;

  const uint8_t *bytes() const { return reinterpret_cast<const uint8_t *>(graph.file->getBufferStart()); }
  size_t size() const { return graph.file->getBufferSize(); }

  InFlightDiagnostic error() {
    return emitError(FileLineColLoc::get(context, graph.fileName, 0, 0));
  }

  LogicalResult open() {
    // Volatile: copied, not mapped; a file that changes after the checks must not change what was checked.
    auto file = llvm::MemoryBuffer::getFile(graph.fileName, /*IsText=*/false, /*RequiresNullTerminator=*/false,
                                            /*IsVolatile=*/true);
    if (!file)
      return error() << "cannot be read: " << file.getError().message();
    graph.file = std::move(*file);
    return success();
  }

  /// The header: 4 bytes of root offset, 4 of identifier. Finds cut files before the general check, so that
  /// the message can say how many bytes are missing.
  LogicalResult checkLength() {
    if (size() < 8)
      return error() << "not a TFLite file: needs at least 8 bytes, has " << size();
    if (!flatbuffers::BufferHasIdentifier(bytes(), ModelIdentifier()))
      return error() << "not a TFLite file: bytes 4 to 7 are not 'TFL3'";
    if (size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
      return error() << "the file has " << size() << " bytes, at most " << FLATBUFFERS_MAX_BUFFER_SIZE - 1
                     << " are supported";
    uint64_t root = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(bytes());
    if (root + 4 > size())
      return error() << "the file is cut off: its root table at offset " << root << " needs " << root + 4
                     << " bytes, has " << size();
    if (uint64_t needed = measureBuffers(root); needed > size())
      return error() << "the file is cut off: needs " << needed << " bytes, has " << size();
    return success();
  }

  /// Reads a scalar that may lie outside the file.
  template <typename T> std::optional<T> peek(uint64_t offset) const {
    if (offset > size() || size() - offset < sizeof(T))
      return std::nullopt;
    return flatbuffers::ReadScalar<T>(bytes() + offset);
  }

  /// The place of field `id` of the table at `table`, or nothing.
  std::optional<uint64_t> peekField(uint64_t table, unsigned id) const {
    auto toVtable = peek<int32_t>(table);
    if (!toVtable)
      return std::nullopt;
    int64_t vtable = int64_t(table) - *toVtable;
    if (vtable < 0)
      return std::nullopt;
    auto length = peek<uint16_t>(vtable);
    if (!length || 4 + 2 * id + 2 > *length)
      return std::nullopt;
    auto offset = peek<uint16_t>(vtable + 4 + 2 * id);
    return offset && *offset ? std::optional<uint64_t>(table + *offset) : std::nullopt;
  }

  std::optional<uint64_t> peekReference(std::optional<uint64_t> place) const {
    if (!place)
      return std::nullopt;
    auto offset = peek<uint32_t>(*place);
    return offset ? std::optional<uint64_t>(*place + *offset) : std::nullopt;
  }

  /// Where the last byte of the constants would be, as far as what is there tells. Reads nothing outside.
  uint64_t measureBuffers(uint64_t root) const {
    uint64_t most = 0;
    for (unsigned field = 0; field < 8; ++field) {
      constexpr unsigned scalarFields = 1; // field 0 is the version
      if (field < scalarFields)
        continue;
      if (auto place = peekReference(peekField(root, field)))
        most = std::max(most, *place + 4);
    }
    auto buffers = peekReference(peekField(root, 4));
    auto count = buffers ? peek<uint32_t>(*buffers) : std::nullopt;
    if (!count)
      return most;
    most = std::max(most, *buffers + 4 + 4 * uint64_t(*count));
    for (uint64_t i = 0; i < *count && *buffers + 8 + 4 * i <= size(); ++i) {
      auto buffer = peekReference(*buffers + 4 + 4 * i);
      if (!buffer)
        continue;
      most = std::max(most, *buffer + 4);
      auto data = peekReference(peekField(*buffer, 0));
      if (!data)
        continue;
      most = std::max(most, *data + 4);
      if (auto length = peek<uint32_t>(*data))
        most = std::max(most, *data + 4 + *length);
    }
    return most;
  }

  //===--------------------------------------------------------------------===//
  // Tensors
  //===--------------------------------------------------------------------===//

  LogicalResult readTensors() {
    if (!subgraph->tensors())
      return error() << "subgraph 0 has no tensors";
    if (subgraph->tensors()->size() > Limits::tensors)
      return error() << subgraph->tensors()->size() << " tensors, at most " << Limits::tensors << " are supported";
    graph.tensors.resize(subgraph->tensors()->size());
    for (size_t i = 0; i < graph.tensors.size(); ++i) {
      const Tensor *table = subgraph->tensors()->Get(i);
      if (!table)
        return error() << "tensor #" << i << " is missing";
      if (failed(readTensor(*table, graph.tensors[i], i)))
        return failure();
    }
    for (TensorData &tensor : graph.tensors)
      if (tensor.blocks && tensor.problem.empty())
        checkBlocks(tensor);
    return success();
  }

  InFlightDiagnostic tensorError(const TensorData &tensor) { return error() << "tensor '" << tensor.name << "': "; }

  LogicalResult readTensor(const Tensor &table, TensorData &tensor, size_t index) {
    if (table.name())
      tensor.name = table.name()->str();
    if (tensor.name.empty())
      tensor.name = "tensor" + std::to_string(index);
    tensor.format = table.type();
    tensor.elementType = getElementType(context, table.type());
    tensor.isVariable = table.is_variable();
    if (failed(readShape(table, tensor)))
      return failure();
    readQuantization(table, tensor);
    return readConstant(table, tensor);
  }

  LogicalResult readShape(const Tensor &table, TensorData &tensor) {
    if (!table.shape())
      return success();
    if (table.shape()->size() > Limits::rank)
      return tensorError(tensor) << "rank " << table.shape()->size() << ", at most " << Limits::rank
                                 << " is supported";
    int64_t elements = 1;
    for (int32_t dim : *table.shape()) {
      // Old files write an open dimension as -1 in the shape itself.
      bool open = dim == -1;
      if (dim < -1)
        return tensorError(tensor) << "dimension " << dim << " is negative";
      tensor.shape.push_back(open ? 1 : dim);
      tensor.isDynamic.push_back(open);
      // The other sizes of an empty tensor are limited too: strides are products of them.
      int64_t factor = std::max<int64_t>(tensor.shape.back(), 1);
      if (llvm::MulOverflow(elements, factor, elements) || elements > Limits::elements)
        return tensorError(tensor) << "more than " << Limits::elements << " elements";
    }
    if (const auto *signature = table.shape_signature(); signature && signature->size() == tensor.shape.size())
      for (size_t i = 0; i < tensor.shape.size(); ++i)
        tensor.isDynamic[i] = tensor.isDynamic[i] || signature->Get(i) == -1;
    return success();
  }

  void readQuantization(const Tensor &table, TensorData &tensor) {
    const Quantization *quantization = table.quantization();
    if (!quantization)
      return;
    if (const BlockwiseQuantization *details = quantization->details_as_BlockwiseQuantization()) {
      tensor.blocks = BlockQuantInfo{details->scales(), details->zero_points(), 0, details->block_size()};
      return;
    }
    if (quantization->details_type() != QuantizationDetails::NONE) {
      tensor.problem = "custom quantisation is not supported";
      return;
    }
    if (!quantization->scale() || quantization->scale()->size() == 0)
      return;
    QuantInfo info;
    info.scales.assign(quantization->scale()->begin(), quantization->scale()->end());
    info.axis = quantization->quantized_dimension();
    info.zeroPoints.assign(info.scales.size(), 0);
    const auto *zeroPoints = quantization->zero_point();
    size_t count = zeroPoints ? zeroPoints->size() : 0;
    if (count > 1 && count != info.scales.size())
      tensor.problem = std::to_string(count) + " zero points for " + std::to_string(info.scales.size()) + " scales";
    for (size_t i = 0; i < info.scales.size() && count; ++i) {
      // A damaged file has them at any address; the generated verifier asks for the alignment of their count alone.
      int64_t zeroPoint;
      std::memcpy(&zeroPoint, zeroPoints->Data() + sizeof(zeroPoint) * (i < count ? i : 0), sizeof(zeroPoint));
      if (zeroPoint != int32_t(zeroPoint))
        tensor.problem = "zero point " + std::to_string(zeroPoint) + " does not fit 32 bits";
      info.zeroPoints[i] = int32_t(zeroPoint);
    }
    checkQuantization(tensor, info);
    tensor.quant = std::move(info);
  }

  /// Looks up the parameters of blocks and finds the axis along which they lie.
  void checkBlocks(TensorData &tensor) {
    BlockQuantInfo &blocks = *tensor.blocks;
    auto integer = dyn_cast_or_null<IntegerType>(tensor.elementType);
    if (!integer || integer.getWidth() != 8 || !tensor.isConstant) {
      tensor.problem = "quantisation in blocks is read of constant 2- to 8-bit integers only, found " + typeName(tensor.format);
      return;
    }
    auto constantAt = [&](int32_t index) {
      return index >= 0 && index < int64_t(graph.tensors.size()) && graph.tensors[index].isConstant ? &graph.tensors[index]
                                                                                                    : nullptr;
    };
    const TensorData *scales = constantAt(blocks.scales);
    if (!scales || !isa_and_nonnull<FloatType>(scales->elementType) || scales->elementType.isF64()) {
      tensor.problem = "scales of its blocks must be a constant of floats, found tensor #" + std::to_string(blocks.scales);
      return;
    }
    blocks.axis = blockAxis(tensor.shape, scales->shape, blocks.size);
    if (blocks.axis < 0) {
      tensor.problem = "scales " + shapeText(scales->shape) + " for blocks of " + std::to_string(blocks.size) + " in " +
                       shapeText(tensor.shape);
      return;
    }
    // An absent reference is -1, or 0 where the field was left out; tensor 0 is then something else.
    const TensorData *zeros = constantAt(blocks.zeroPoints);
    bool fits = zeros && isa_and_nonnull<IntegerType>(zeros->elementType) && zeros->shape == scales->shape;
    if (blocks.zeroPoints > 0 && !fits)
      tensor.problem = "zero points of its blocks must be constant integers " + shapeText(scales->shape) +
                       ", found tensor #" + std::to_string(blocks.zeroPoints);
    if (!fits)
      blocks.zeroPoints = -1;
  }

  static std::string shapeText(ArrayRef<int64_t> shape) {
    std::string text = "[";
    for (auto [i, size] : llvm::enumerate(shape))
      text += (i ? ", " : "") + std::to_string(size);
    return text + "]";
  }

  /// The last dimension that blocks can divide so that `scales` has one element for each; -1: none.
  static int64_t blockAxis(ArrayRef<int64_t> shape, ArrayRef<int64_t> scales, int64_t block) {
    if (block < 1 || shape.size() != scales.size())
      return -1;
    for (int64_t axis = shape.size(); axis-- > 0;) {
      SmallVector<int64_t> expected(shape);
      expected[axis] = llvm::divideCeil(expected[axis], block);
      if (ArrayRef<int64_t>(expected) == scales)
        return axis;
    }
    return -1;
  }

  void checkQuantization(TensorData &tensor, const QuantInfo &info) {
    auto integer = dyn_cast_or_null<IntegerType>(tensor.elementType);
    if (!integer || integer.getWidth() == 1)
      return; // leftovers of a converter on a float tensor
    for (float scale : info.scales)
      if (!(scale > 0) || !std::isfinite(scale))
        tensor.problem = "scale " + std::to_string(scale) + " is not positive and finite";
    if (integer.getWidth() < 32)
      for (int32_t zeroPoint : info.zeroPoints)
        if (auto [low, high] = nn::integerRange(integer); zeroPoint < low || zeroPoint > high)
          tensor.problem = "zero point " + std::to_string(zeroPoint) + " is outside " + typeName(tensor.format);
    if (info.scales.size() == 1)
      return;
    if (info.axis < 0 || info.axis >= int64_t(tensor.shape.size()))
      tensor.problem = "quantised dimension " + std::to_string(info.axis) + " of a tensor of rank " +
                       std::to_string(tensor.shape.size());
    else if (tensor.shape[info.axis] != int64_t(info.scales.size()))
      tensor.problem = std::to_string(info.scales.size()) + " scales for " + std::to_string(tensor.shape[info.axis]) +
                       " channels in dimension " + std::to_string(info.axis);
  }

  /// The stored bytes of a buffer, also those of large files that stand behind the tables.
  LogicalResult readBuffer(const Tensor &table, const TensorData &tensor, ArrayRef<char> &data) {
    uint32_t index = table.buffer();
    if (index == 0)
      return success();
    size_t count = model->buffers() ? model->buffers()->size() : 0;
    if (index >= count)
      return tensorError(tensor) << "buffer #" << index << " of " << count;
    const Buffer *buffer = model->buffers()->Get(index);
    if (!buffer)
      return success();
    if (buffer->offset() > 1) {
      if (buffer->offset() > size() || buffer->size() > size() - buffer->offset())
        return tensorError(tensor) << "the file is cut off: needs " << buffer->offset() << " + " << buffer->size()
                                   << " bytes, has " << size();
      data = ArrayRef(graph.file->getBufferStart() + buffer->offset(), buffer->size());
    } else if (buffer->data()) {
      data = ArrayRef(reinterpret_cast<const char *>(buffer->data()->data()), buffer->data()->size());
    }
    return success();
  }

  /// Elements of less than a byte, the lowest bits first.
  static void unpackBits(ArrayRef<char> data, int64_t bits, bool isSigned, int64_t count, std::vector<char> &values) {
    int64_t perByte = 8 / bits, range = int64_t(1) << bits;
    for (int64_t i = 0; i < count; ++i) {
      int64_t code = (uint8_t(data[i / perByte]) >> (i % perByte * bits)) & (range - 1);
      values.push_back(char(isSigned && code >= range / 2 ? code - range : code));
    }
  }

  LogicalResult readConstant(const Tensor &table, TensorData &tensor) {
    ArrayRef<char> data;
    if (failed(readBuffer(table, tensor, data)))
      return failure();
    bool empty = llvm::is_contained(tensor.shape, 0);
    if (data.empty() && !(empty && table.buffer() != 0 && table.shape() && !table.sparsity()))
      return success();
    tensor.isConstant = true;
    if (!tensor.elementType) // reported at the user
      return success();
    int64_t elementBytes = nn::elementBytes(tensor.elementType), needed = elementBytes;
    for (int64_t dim : tensor.shape)
      needed *= dim;
    if (const Sparsity *sparsity = table.sparsity()) {
      if (tensor.bits() < 8)
        return tensorError(tensor) << "a sparse constant of " << typeName(tensor.format)
                                   << " is not supported, expected elements of 8 bits or more";
      // Each stored byte may stand for many zeros, but not for any number of them.
      if (needed > (int64_t(size()) << 10) + (1 << 20))
        return tensorError(tensor) << "a sparse constant of " << needed << " bytes in a file of " << size();
      std::string problem = decodeSparse(*sparsity, tensor.shape, elementBytes, data, tensor.storage);
      if (!problem.empty())
        return tensorError(tensor) << problem;
      tensor.bytes = tensor.storage;
      return success();
    }
    if (tensor.bits() < 8) {
      int64_t packed = llvm::divideCeil(needed * tensor.bits(), 8);
      if (int64_t(data.size()) != packed)
        return tensorError(tensor) << "its shape and type " << typeName(tensor.format) << " need " << packed
                                   << " bytes, buffer #" << table.buffer() << " has " << data.size();
      unpackBits(data, tensor.bits(), !nn::isUnsigned(tensor.elementType), needed, tensor.storage);
      tensor.bytes = tensor.storage;
      return success();
    }
    if (int64_t(data.size()) != needed)
      return tensorError(tensor) << "its shape and type " << typeName(tensor.format) << " need " << needed
                                 << " bytes, buffer #" << table.buffer() << " has " << data.size();
    tensor.bytes = data;
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Other subgraphs
  //===--------------------------------------------------------------------===//

  /// Reads the subgraphs that CALL_ONCE names, each once; one that does not exist is reported at the operator.
  LogicalResult readInitialisers() {
    std::map<int32_t, std::shared_ptr<Graph>> initialisers;
    for (const OperatorData &op : graph.operators) {
      const CallOnce *options = op.code == Builtin::CALL_ONCE ? op.table->options_as<CallOnce>() : nullptr;
      int32_t index = options ? options->init_subgraph_index() : 0;
      if (index < 1 || index >= int64_t(model->subgraphs()->size()) || !model->subgraphs()->Get(index) ||
          initialisers.count(index))
        continue;
      const SubGraph *outer = subgraph;
      Graph first = std::move(graph);
      graph = Graph();
      graph.fileName = first.fileName;
      graph.file = std::move(first.file);
      subgraph = model->subgraphs()->Get(index);
      LogicalResult status =
          subgraph->tensors() && subgraph->tensors()->size() ? readTensors() : LogicalResult::success();
      if (succeeded(status))
        status = readOperators();
      if (succeeded(status))
        status = checkDefinitions();
      first.file = std::move(graph.file);
      initialisers[index] = std::make_shared<Graph>(std::move(graph));
      graph = std::move(first);
      subgraph = outer;
      if (failed(status))
        return failure();
    }
    graph.initialisers = std::move(initialisers);
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Operators
  //===--------------------------------------------------------------------===//

  LogicalResult readIndices(const flatbuffers::Vector<int32_t> *from, std::vector<int32_t> &to, bool optional,
                            const std::string &what) {
    if (!from)
      return success();
    for (int32_t index : *from) {
      bool good = index >= 0 && index < int64_t(graph.tensors.size());
      if (!good && !(optional && index == -1))
        return error() << what << " names tensor #" << index << " of " << graph.tensors.size();
      to.push_back(index);
    }
    return success();
  }

  LogicalResult readOperators() {
    size_t count = subgraph->operators() ? subgraph->operators()->size() : 0;
    if (count > Limits::operators)
      return error() << count << " operators, at most " << Limits::operators << " are supported";
    if (failed(readIndices(subgraph->inputs(), graph.inputs, false, "the input list")) ||
        failed(readIndices(subgraph->outputs(), graph.outputs, false, "the output list")))
      return failure();
    graph.operators.resize(count);
    for (size_t i = 0; i < count; ++i)
      if (failed(readOperator(subgraph->operators()->Get(i), graph.operators[i], i)))
        return failure();
    return success();
  }

  LogicalResult readOperator(const Operator *table, OperatorData &op, size_t index) {
    std::string what = "operator #" + std::to_string(index);
    if (!table)
      return error() << what << " is missing";
    size_t codes = model->operator_codes() ? model->operator_codes()->size() : 0;
    if (table->opcode_index() >= codes || !model->operator_codes()->Get(table->opcode_index()))
      return error() << what << " has operator code #" << table->opcode_index() << " of " << codes;
    const OperatorCode *code = model->operator_codes()->Get(table->opcode_index());
    // Files from before the code outgrew a byte leave the wide field at 0.
    op.code = Builtin(std::max<int32_t>(int32_t(code->code()), code->short_code()));
    op.version = code->version();
    op.table = table;
    if (op.code == Builtin::CUSTOM)
      op.type = code->custom_code() ? code->custom_code()->str() : "CUSTOM";
    else
      op.type = EnumNameBuiltin(op.code);
    if (op.type.empty())
      op.type = "builtin operator " + std::to_string(int(op.code));
    return success(succeeded(readIndices(table->inputs(), op.inputs, true, what + " (" + op.type + ")")) &&
                   succeeded(readIndices(table->intermediates(), op.intermediates, true, what + " (" + op.type + ")")) &&
                   succeeded(readIndices(table->outputs(), op.outputs, false, what + " (" + op.type + ")")));
  }

  /// Every tensor has one producer, and comes before its users: operators are in execution order, which
  /// also excludes cycles.
  LogicalResult checkDefinitions() {
    std::vector<bool> defined(graph.tensors.size(), false), isInput(graph.tensors.size(), false);
    for (size_t i = 0; i < graph.tensors.size(); ++i)
      defined[i] = graph.tensors[i].isConstant || graph.tensors[i].isVariable;
    for (int32_t input : graph.inputs) {
      if (isInput[input])
        return error() << "tensor '" << graph.tensors[input].name << "' is listed as an input twice";
      isInput[input] = defined[input] = true;
    }
    for (size_t i = 0; i < graph.operators.size(); ++i) {
      const OperatorData &op = graph.operators[i];
      for (int32_t input : op.inputs)
        if (input >= 0 && !defined[input])
          return error() << "operator #" << i << " (" << op.type << ") reads tensor '" << graph.tensors[input].name
                         << "', which nothing before it computes";
      for (int32_t output : op.outputs) {
        if (defined[output])
          return error() << "operator #" << i << " (" << op.type << ") writes tensor '" << graph.tensors[output].name
                         << "', which has a value already";
        defined[output] = true;
      }
    }
    for (int32_t output : graph.outputs)
      if (!defined[output])
        return error() << "output '" << graph.tensors[output].name << "' is never computed";
    return success();
  }
};

} // namespace

FailureOr<Graph> readGraph(MLIRContext *context, const std::string &path) { return Reader(context, path).read(); }

} // namespace ajour::tflite
