//===- Reader.cpp - checked safetensors files ---------------------------------------===//
#include "ajour/Import/SafeTensors.h"

#include "ajour/ABI/ElementTypes.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <nlohmann/json.hpp>

#include <set>

using namespace llvm;

namespace ajour::safetensors {

using json = nlohmann::json;

namespace {

constexpr uint64_t headerLimit = 100 << 20;
constexpr size_t rankLimit = 8;

struct TypeRow {
  const char *name;
  uint32_t type;
  uint64_t bytes;
};
const TypeRow types[] = {
    {"F64", AJOUR_F64, 8}, {"F32", AJOUR_F32, 4}, {"F16", AJOUR_F16, 2}, {"BF16", AJOUR_BF16, 2}, {"I64", AJOUR_I64, 8},
    {"I32", AJOUR_I32, 4}, {"I16", AJOUR_I16, 2}, {"I8", AJOUR_I8, 1},   {"U8", AJOUR_U8, 1},     {"BOOL", AJOUR_BOOL, 1},
};

const TypeRow *findType(StringRef name) {
  for (const TypeRow &row : types)
    if (name == row.name)
      return &row;
  return nullptr;
}

/// Numbers that are not negative.
bool readNumbers(const json &value, std::vector<uint64_t> &numbers) {
  if (!value.is_array())
    return false;
  for (const json &entry : value) {
    if (!entry.is_number_unsigned())
      return false;
    numbers.push_back(entry.get<uint64_t>());
  }
  return true;
}

std::string readTensor(const std::string &name, const json &entry, StringRef data, Tensor &tensor) {
  std::string what = "tensor '" + name.substr(0, 128) + "'";
  auto member = [&](const char *key) { return entry.is_object() && entry.contains(key) ? entry[key] : json(); };
  json dtype = member("dtype");
  const TypeRow *type = dtype.is_string() ? findType(dtype.get<std::string>()) : nullptr;
  if (!type)
    return what + " has the dtype " + dtype.dump() + "; F64, F32, F16, BF16, I64, I32, I16, I8, U8 and BOOL are known";
  std::vector<uint64_t> shape, offsets;
  if (!readNumbers(member("shape"), shape) || shape.size() > rankLimit)
    return what + ": its shape is not a list of at most " + std::to_string(rankLimit) + " sizes";
  if (!readNumbers(member("data_offsets"), offsets) || offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data.size())
    return what + ": its data_offsets are not a range within the " + std::to_string(data.size()) + " bytes of data";
  uint64_t bytes = type->bytes;
  for (uint64_t size : shape)
    if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > uint64_t(INT64_MAX))
      return what + ": its shape has more elements than any file can hold";
  if (offsets[1] - offsets[0] != bytes)
    return what + " takes " + std::to_string(bytes) + " bytes by its shape and dtype, its data_offsets give " +
           std::to_string(offsets[1] - offsets[0]);
  tensor.name = name;
  tensor.elementType = type->type;
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.bytes = ArrayRef<char>(data.data() + offsets[0], size_t(bytes));
  return "";
}

} // namespace

std::string parse(StringRef bytes, File &file) {
  if (bytes.size() < 8)
    return "is " + std::to_string(bytes.size()) + " bytes long, a safetensors file has at least 8";
  uint64_t length = support::endian::read64le(bytes.data());
  if (length > bytes.size() - 8 || length > headerLimit)
    return "its header of " + std::to_string(length) + " bytes does not fit (the file has " + std::to_string(bytes.size() - 8) +
           " bytes behind the length, at most " + std::to_string(headerLimit) + " are allowed)";
  StringRef header = bytes.substr(8, length), data = bytes.drop_front(8 + length);
  json root = json::parse(header.begin(), header.end(), nullptr, /*allow_exceptions=*/false);
  if (!root.is_object())
    return "its header is no JSON object";
  for (const auto &[name, entry] : root.items()) {
    if (name == "__metadata__")
      continue;
    Tensor tensor;
    if (std::string problem = readTensor(name, entry, data, tensor); !problem.empty())
      return problem;
    if (!file.byName.try_emplace(name, file.tensors.size()).second)
      return "tensor '" + name.substr(0, 128) + "' is in another file of the model as well";
    file.tensors.push_back(std::move(tensor));
  }
  return "";
}

std::string readFile(const std::string &path, File &file) {
  // Mapped, not read: a model may be larger than memory.
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return path + ": cannot be read: " + buffer.getError().message();
  if (std::string problem = parse((*buffer)->getBuffer(), file); !problem.empty())
    return path + ": " + problem;
  file.parts.push_back(std::move(*buffer));
  return "";
}

const char *nameOfType(uint32_t elementType) {
  for (const TypeRow &row : types)
    if (row.type == elementType)
      return row.name;
  return nullptr;
}

std::string folderOf(const std::string &path) {
  if (sys::fs::is_directory(path))
    return path;
  std::string folder = sys::path::parent_path(path).str();
  return folder.empty() ? "." : folder;
}

std::string findShards(const std::string &folder, std::vector<std::string> &paths) {
  std::string index = folder + "/model.safetensors.index.json";
  if (!sys::fs::exists(index)) {
    paths = {folder + "/model.safetensors"};
    return "";
  }
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(index);
  if (!buffer)
    return index + ": cannot be read: " + buffer.getError().message();
  json root = json::parse((*buffer)->getBufferStart(), (*buffer)->getBufferEnd(), nullptr, /*allow_exceptions=*/false);
  if (!root.is_object() || !root.contains("weight_map") || !root["weight_map"].is_object())
    return index + ": has no weight_map";
  std::set<std::string> names;
  for (const auto &[weight, file] : root["weight_map"].items()) {
    // Files lie in the folder itself: no name may lead out of it.
    std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name.find('/') != std::string::npos || name == "..")
      return index + ": the file of '" + weight + "' is " + file.dump() + ", expected a name within the folder";
    names.insert(name);
  }
  for (const std::string &name : names)
    paths.push_back(folder + "/" + name);
  return "";
}

} // namespace ajour::safetensors
