//===- Reader.cpp - bytes of an ONNX file as checked messages -----------------===//
#include "ajour/Import/OnnxFile.h"

#include "ajour/Dialect/NN/Shapes.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstring>
#include <filesystem>
#include <fstream>

using namespace mlir;
namespace fs = std::filesystem;

namespace ajour::onnx_import {

namespace {

/// One row for each element type: its name, the MLIR-side width in bits as stored in the file, and whether the
/// typed list that holds it (when there are no raw bytes) is int32_data.
struct TypeRow {
  int32_t type;
  const char *name;
  unsigned fileBits; ///< 0: not a number
};
constexpr TypeRow typeRows[] = {
    {1, "float", 32},         {2, "uint8", 8},           {3, "int8", 8},         {4, "uint16", 16},
    {5, "int16", 16},         {6, "int32", 32},          {7, "int64", 64},       {8, "string", 0},
    {9, "bool", 8},           {10, "float16", 16},       {11, "double", 64},     {12, "uint32", 32},
    {13, "uint64", 64},       {14, "complex64", 0},      {15, "complex128", 0},  {16, "bfloat16", 16},
    {17, "float8e4m3fn", 8},  {18, "float8e4m3fnuz", 8}, {19, "float8e5m2", 8},  {20, "float8e5m2fnuz", 8},
    {21, "uint4", 4},         {22, "int4", 4},           {23, "float4e2m1", 4},  {24, "float8e8m0", 8},
    {25, "uint2", 2},         {26, "int2", 2},
};

const TypeRow *findType(int32_t type) {
  for (const TypeRow &row : typeRows)
    if (row.type == type)
      return &row;
  return nullptr;
}

const llvm::fltSemantics *smallFloat(int32_t type) {
  switch (type) {
  case OnnxFloat8E4M3FN:
    return &llvm::APFloat::Float8E4M3FN();
  case OnnxFloat8E4M3FNUZ:
    return &llvm::APFloat::Float8E4M3FNUZ();
  case OnnxFloat8E5M2:
    return &llvm::APFloat::Float8E5M2();
  case OnnxFloat8E5M2FNUZ:
    return &llvm::APFloat::Float8E5M2FNUZ();
  case OnnxFloat4E2M1:
    return &llvm::APFloat::Float4E2M1FN();
  case OnnxFloat8E8M0:
    return &llvm::APFloat::Float8E8M0FNU();
  default:
    return nullptr;
  }
}

float decodeSmallFloat(const llvm::fltSemantics &semantics, unsigned bits, uint8_t code) {
  llvm::APFloat value(semantics, llvm::APInt(bits, code));
  bool losesInfo;
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToFloat();
}

template <typename T> void append(std::vector<char> &bytes, T value) {
  const char *p = reinterpret_cast<const char *>(&value);
  bytes.insert(bytes.end(), p, p + sizeof(T));
}

/// Turns the file's bytes of an element type into nn's: unpacks 2- and 4-bit values (lowest bits first), decodes small floats, and makes
/// booleans 0 or 1.
std::vector<char> widen(int32_t type, unsigned fileBits, int64_t count, ArrayRef<char> raw) {
  std::vector<char> out;
  const llvm::fltSemantics *semantics = smallFloat(type);
  if (type == 9) {
    out.assign(raw.begin(), raw.end());
    for (char &value : out)
      value = value != 0;
    return out;
  }
  if (fileBits >= 8 && !semantics) {
    out.assign(raw.begin(), raw.end());
    return out;
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t perByte = 8 / fileBits, values = int64_t(1) << fileBits;
    auto code = uint8_t((uint8_t(raw[i / perByte]) >> (i % perByte * fileBits)) & (values - 1));
    bool isSigned = type == OnnxInt4 || type == OnnxInt2;
    if (semantics)
      append(out, decodeSmallFloat(*semantics, fileBits, code));
    else
      out.push_back(isSigned && code >= values / 2 ? char(code - values) : char(code));
  }
  return out;
}

/// The typed lists (float_data and so on) as the bytes that raw_data would have.
bool typedToRaw(const ::onnx::TensorProto &tensor, const TypeRow &row, int64_t count, std::vector<char> &raw,
                std::string &error) {
  auto wrongCount = [&](const char *list, int64_t found, int64_t expected) {
    error = std::string("has ") + std::to_string(found) + " values in " + list + ", its dimensions need " +
            std::to_string(expected);
    return false;
  };
  switch (row.type) {
  case 1:
    if (tensor.float_data_size() != count)
      return wrongCount("float_data", tensor.float_data_size(), count);
    for (float value : tensor.float_data())
      append(raw, value);
    return true;
  case 11:
    if (tensor.double_data_size() != count)
      return wrongCount("double_data", tensor.double_data_size(), count);
    for (double value : tensor.double_data())
      append(raw, value);
    return true;
  case 7:
    if (tensor.int64_data_size() != count)
      return wrongCount("int64_data", tensor.int64_data_size(), count);
    for (int64_t value : tensor.int64_data())
      append(raw, value);
    return true;
  case 12:
  case 13:
    if (tensor.uint64_data_size() != count)
      return wrongCount("uint64_data", tensor.uint64_data_size(), count);
    for (uint64_t value : tensor.uint64_data())
      row.type == 12 ? append(raw, uint32_t(value)) : append(raw, value);
    return true;
  default: {
    int64_t words = row.fileBits < 8 ? int64_t(llvm::divideCeil(count * row.fileBits, 8)) : count;
    if (tensor.int32_data_size() != words)
      return wrongCount("int32_data", tensor.int32_data_size(), words);
    for (int32_t value : tensor.int32_data()) {
      if (row.fileBits == 32)
        append(raw, value);
      else if (row.fileBits == 16)
        append(raw, uint16_t(value));
      else
        append(raw, uint8_t(value));
    }
    return true;
  }
  }
}

bool parseSize(const std::string &text, int64_t &value) {
  return !StringRef(text).getAsInteger(10, value) && value >= 0;
}

/// Reads `bytes` bytes that lie in another file inside the model's directory.
bool readExternal(const ModelFile &model, const ::onnx::TensorProto &tensor, int64_t bytes, std::vector<char> &raw,
                  std::string &error) {
  std::string location;
  int64_t offset = 0, length = bytes;
  for (const auto &entry : tensor.external_data()) {
    bool sized = true;
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset")
      sized = parseSize(entry.value(), offset);
    else if (entry.key() == "length")
      sized = parseSize(entry.value(), length);
    if (!sized) {
      error = "has external data with " + entry.key() + " '" + entry.value() + "', expected a number of bytes";
      return false;
    }
  }
  fs::path relative(location);
  bool climbs = llvm::any_of(relative, [](const fs::path &part) { return part == ".."; });
  if (location.empty() || relative.is_absolute() || climbs || location.find('\0') != std::string::npos) {
    error = "names external data at '" + location + "', expected a file inside the model's folder";
    return false;
  }
  std::error_code ec;
  fs::path file = fs::canonical(fs::path(model.directory) / relative, ec);
  if (ec || !fs::is_regular_file(file, ec)) {
    error = "names external data at '" + location + "', which is not a file next to the model";
    return false;
  }
  fs::path inside = file.lexically_relative(model.directory);
  if (inside.empty() || *inside.begin() == "..") {
    error = "names external data at '" + location + "', a link that leads out of the model's folder";
    return false;
  }
  int64_t fileBytes = int64_t(fs::file_size(file, ec));
  if (ec || length != bytes || offset > fileBytes || bytes > fileBytes - offset) {
    error = "needs " + std::to_string(bytes) + " bytes of external data, found length " + std::to_string(length) +
            " at offset " + std::to_string(offset) + " of '" + location + "', which has " +
            std::to_string(fileBytes);
    return false;
  }
  raw.resize(bytes);
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(offset);
  stream.read(raw.data(), bytes);
  if (!stream) {
    error = "has external data in '" + location + "' that cannot be read";
    return false;
  }
  return true;
}

} // namespace

std::string onnxTypeName(int32_t type) {
  const TypeRow *row = findType(type);
  return row ? row->name : "type " + std::to_string(type);
}

unsigned onnxTypeBits(int32_t type) {
  const TypeRow *row = findType(type);
  return row ? row->fileBits : 0;
}

Type elementTypeOf(int32_t type, MLIRContext *context) {
  auto integer = [&](unsigned width, bool isUnsigned) -> Type {
    return IntegerType::get(context, width, isUnsigned ? IntegerType::Unsigned : IntegerType::Signless);
  };
  switch (type) {
  case 1:
  case OnnxFloat8E4M3FN:
  case OnnxFloat8E4M3FNUZ:
  case OnnxFloat8E5M2:
  case OnnxFloat8E5M2FNUZ:
  case OnnxFloat4E2M1:
  case OnnxFloat8E8M0:
    return Float32Type::get(context);
  case 10:
    return Float16Type::get(context);
  case 16:
    return BFloat16Type::get(context);
  case 11:
    return Float64Type::get(context);
  case 2:
  case OnnxUInt4:
  case OnnxUInt2:
    return integer(8, true);
  case 3:
  case OnnxInt4:
  case OnnxInt2:
    return integer(8, false);
  case 4:
    return integer(16, true);
  case 5:
    return integer(16, false);
  case 6:
    return integer(32, false);
  case 12:
    return integer(32, true);
  case 7:
    return integer(64, false);
  case 13:
    return integer(64, true);
  case 9:
    return integer(1, false);
  default:
    return nullptr;
  }
}

std::unique_ptr<ModelFile> readModel(const std::string &path, std::string &error) {
  // Volatile: copied, not mapped; a file that changes after the checks must not change what was checked.
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false,
                                          /*IsVolatile=*/true);
  if (!buffer) {
    error = "cannot be read: " + buffer.getError().message();
    return nullptr;
  }
  auto model = std::make_unique<ModelFile>();
  model->path = path;
  model->fileBytes = int64_t((*buffer)->getBufferSize());
  if (model->fileBytes > std::numeric_limits<int32_t>::max()) {
    error = "has " + std::to_string(model->fileBytes) +
            " bytes, an ONNX file has at most 2147483647 (larger weights go into external data)";
    return nullptr;
  }
  std::error_code ec;
  model->directory = fs::canonical(fs::absolute(fs::path(path)).parent_path(), ec).string();
  google::protobuf::io::ArrayInputStream array((*buffer)->getBufferStart(), int(model->fileBytes));
  google::protobuf::io::CodedInputStream coded(&array);
  coded.SetTotalBytesLimit(std::numeric_limits<int32_t>::max());
  if (!model->proto.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) {
    error = "is not an ONNX model or is damaged: its " + std::to_string(model->fileBytes) +
            " bytes do not parse after offset " + std::to_string(coded.CurrentPosition());
    return nullptr;
  }
  return model;
}

int64_t checkedElements(ArrayRef<int64_t> dims) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t dim : dims) {
    empty |= dim == 0;
    // The other sizes of an empty tensor are limited too: strides are products of them.
    if (dim < 0 || (dim != 0 && llvm::MulOverflow(count, dim, count)) || count > mostElements)
      return -1;
  }
  return empty ? 0 : count;
}

bool readTensor(const ModelFile &model, const ::onnx::TensorProto &tensor, MLIRContext *context, TensorData &data,
                std::string &error) {
  const TypeRow *row = findType(tensor.data_type());
  Type element = elementTypeOf(tensor.data_type(), context);
  if (!row || !element) {
    error = "has elements of " + onnxTypeName(tensor.data_type()) + ", expected numbers or booleans";
    return false;
  }
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  int64_t count = checkedElements(dims);
  if (count < 0 || dims.size() > mostDimensions) {
    error = "has dimensions [" + llvm::join(llvm::map_range(dims, [](int64_t d) { return std::to_string(d); }), ", ") +
            "], which no tensor can have";
    return false;
  }
  if (tensor.has_segment()) {
    error = "is stored in segments, which nothing writes any more";
    return false;
  }
  int64_t bytes = llvm::divideCeil(count * row->fileBits, 8);
  std::vector<char> raw;
  ArrayRef<char> view;
  if (tensor.data_location() == ::onnx::TensorProto::EXTERNAL) {
    if (!readExternal(model, tensor, bytes, raw, error))
      return false;
    view = raw;
  } else if (tensor.has_raw_data()) {
    if (int64_t(tensor.raw_data().size()) != bytes) {
      error = "has " + std::to_string(tensor.raw_data().size()) + " bytes, its dimensions and type need " +
              std::to_string(bytes);
      return false;
    }
    view = ArrayRef<char>(tensor.raw_data().data(), tensor.raw_data().size());
  } else {
    if (!typedToRaw(tensor, *row, count, raw, error))
      return false;
    view = raw;
  }
  data.type = RankedTensorType::get(dims, element);
  data.bytes = widen(row->type, row->fileBits, count, view);
  return true;
}

} // namespace ajour::onnx_import
