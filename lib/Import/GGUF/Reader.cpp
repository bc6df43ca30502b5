//===- Reader.cpp - a checked GGUF file ---------------------------------------===//
#include "Reader.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <cstring>

using namespace llvm;

namespace ajour::gguf {

namespace {

/// Bytes of a scalar value; 0: strings, arrays.
size_t scalarSize(ValueType type) {
  switch (type) {
  case ValueType::U8:
  case ValueType::I8:
  case ValueType::Bool:
    return 1;
  case ValueType::U16:
  case ValueType::I16:
    return 2;
  case ValueType::U32:
  case ValueType::I32:
  case ValueType::F32:
    return 4;
  case ValueType::U64:
  case ValueType::I64:
  case ValueType::F64:
    return 8;
  case ValueType::String:
  case ValueType::Array:
    return 0;
  }
  return 0;
}

template <typename T> T load(const char *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// A name from the file as it may be printed.
std::string printable(StringRef text) {
  std::string result;
  for (char c : text.take_front(64))
    result += c >= 0x20 && c < 0x7f ? c : '?';
  return text.size() > 64 ? result + "..." : result;
}

} // namespace

const TypeInfo *findType(uint32_t number) {
  static const TypeInfo types[] = {
#define AJOUR_ROW(number, name, elements, bytes) {TensorType::name, #name, elements, bytes},
      AJOUR_GGUF_TENSOR_TYPES(AJOUR_ROW)
#undef AJOUR_ROW
  };
  for (const TypeInfo &info : types)
    if (uint32_t(info.type) == number)
      return &info;
  return nullptr;
}

std::optional<int64_t> Value::integer(size_t i) const {
  if (i >= count)
    return std::nullopt;
  const char *at = scalars + i * scalarSize(type_);
  switch (type_) {
  case ValueType::U8:
  case ValueType::Bool:
    return load<uint8_t>(at);
  case ValueType::I8:
    return load<int8_t>(at);
  case ValueType::U16:
    return load<uint16_t>(at);
  case ValueType::I16:
    return load<int16_t>(at);
  case ValueType::U32:
    return load<uint32_t>(at);
  case ValueType::I32:
    return load<int32_t>(at);
  case ValueType::U64: {
    uint64_t value = load<uint64_t>(at);
    return value <= uint64_t(INT64_MAX) ? std::optional<int64_t>(int64_t(value)) : std::nullopt;
  }
  case ValueType::I64:
    return load<int64_t>(at);
  default:
    return std::nullopt;
  }
}

std::optional<double> Value::number(size_t i) const {
  if (i >= count)
    return std::nullopt;
  if (type_ == ValueType::F32)
    return load<float>(scalars + i * 4);
  if (type_ == ValueType::F64)
    return load<double>(scalars + i * 8);
  if (std::optional<int64_t> value = integer(i))
    return double(*value);
  return std::nullopt;
}

const Tensor *File::findTensor(StringRef name) const {
  for (const Tensor &tensor : tensors)
    if (tensor.name == name)
      return &tensor;
  return nullptr;
}

/// Reads one file from front to back. The first problem ends it.
class Parser {
public:
  Parser(MemoryBufferRef bytes, File &file, std::string &problem)
      : bytes(bytes.getBuffer()), file(file), problem(problem) {}

  bool run() { return header() && metadata() && tensorInfos() && tensorData(); }

private:
  bool fail(const Twine &what) {
    problem = (Twine("byte ") + Twine(position) + ": " + what).str();
    return false;
  }

  bool has(uint64_t count, const char *what) {
    if (count <= bytes.size() - position)
      return true;
    return fail(Twine(what) + " needs " + Twine(count) + " bytes, the file has " + Twine(bytes.size() - position) +
                " left");
  }

  template <typename T> bool read(T &value, const char *what) {
    if (!has(sizeof(T), what))
      return false;
    value = load<T>(bytes.data() + position);
    position += sizeof(T);
    return true;
  }

  bool readString(StringRef &text, const char *what, uint64_t limit) {
    uint64_t length;
    if (!read(length, what))
      return false;
    if (length > limit)
      return fail(Twine(what) + " is " + Twine(length) + " bytes long, at most " + Twine(limit) + " are allowed");
    if (!has(length, what))
      return false;
    text = bytes.substr(position, length);
    position += length;
    return true;
  }

  bool header() {
    if (!has(24, "the header"))
      return false;
    if (bytes.substr(0, 4) != "GGUF")
      return fail("found no GGUF signature");
    position = 4;
    uint32_t version;
    read(version, "the version");
    if (version != 0 && (version & 0xffff) == 0)
      return fail("the file is big-endian; convert it to little-endian first");
    if (version != 2 && version != 3)
      return fail("GGUF version " + Twine(version) + ", versions 2 and 3 are known");
    read(tensorCount, "the number of tensors");
    read(keyCount, "the number of metadata entries");
    // The smallest entry and the smallest tensor take 13 and 24 bytes.
    if (keyCount > bytes.size() / 13)
      return fail(Twine(keyCount) + " metadata entries do not fit into a file of " + Twine(bytes.size()) + " bytes");
    if (tensorCount > bytes.size() / 24)
      return fail(Twine(tensorCount) + " tensors do not fit into a file of " + Twine(bytes.size()) + " bytes");
    return true;
  }

  bool readValue(Value &value, StringRef key) {
    std::string what = "metadata '" + printable(key) + "'";
    uint32_t type;
    if (!read(type, what.c_str()))
      return false;
    value.count = 1;
    if (type == uint32_t(ValueType::Array)) {
      uint64_t count;
      if (!read(type, what.c_str()) || !read(count, what.c_str()))
        return false;
      if (type == uint32_t(ValueType::Array))
        return fail(what + " is an array of arrays, which this format's writers do not use");
      value.isArray_ = true;
      value.count = size_t(count);
    }
    if (type > uint32_t(ValueType::F64))
      return fail(what + " has the unknown type " + Twine(type) + ", 0 to 12 are known");
    value.type_ = ValueType(type);
    if (value.type_ == ValueType::String)
      return readStrings(value, what);
    uint64_t size;
    if (__builtin_mul_overflow(uint64_t(value.count), uint64_t(scalarSize(value.type_)), &size))
      return fail(what + " has " + Twine(uint64_t(value.count)) + " elements, which no file can hold");
    if (!has(size, what.c_str()))
      return false;
    value.scalars = bytes.data() + position;
    position += size;
    return true;
  }

  bool readStrings(Value &value, const std::string &what) {
    // Each string has its length before it.
    if (value.count > (bytes.size() - position) / 8)
      return fail(what + " has " + Twine(uint64_t(value.count)) + " strings, the file has " +
                  Twine(bytes.size() - position) + " bytes left");
    value.strings.resize(value.count);
    for (StringRef &text : value.strings)
      if (!readString(text, what.c_str(), bytes.size()))
        return false;
    return true;
  }

  bool metadata() {
    for (uint64_t i = 0; i < keyCount; ++i) {
      StringRef key;
      if (!readString(key, "a metadata key", Limits::keyLength))
        return false;
      if (key.empty())
        return fail("metadata entry " + Twine(i) + " has an empty key");
      Value value;
      if (!readValue(value, key))
        return false;
      if (!file.metadata.try_emplace(key, std::move(value)).second)
        return fail("metadata '" + printable(key) + "' is there twice");
      file.keys.push_back(key.str());
    }
    return true;
  }

  bool tensorInfos() {
    StringMap<char> names;
    for (uint64_t i = 0; i < tensorCount; ++i) {
      StringRef name;
      if (!readString(name, "a tensor's name", Limits::tensorNameLength))
        return false;
      if (name.empty())
        return fail("tensor " + Twine(i) + " has an empty name");
      if (!names.try_emplace(name).second)
        return fail("two tensors are called '" + printable(name) + "'");
      Tensor tensor;
      tensor.name = name.str();
      if (!tensorInfo(tensor))
        return false;
      file.tensors.push_back(std::move(tensor));
    }
    return true;
  }

  bool tensorInfo(Tensor &tensor) {
    std::string what = "tensor '" + printable(tensor.name) + "'";
    uint32_t dims, number;
    if (!read(dims, what.c_str()))
      return false;
    if (dims > Limits::dimensions)
      return fail(what + " has " + Twine(dims) + " dimensions, at most " + Twine(Limits::dimensions) + " are allowed");
    tensor.shape.assign(dims, 1);
    uint64_t elements = 1;
    for (uint32_t d = 0; d < dims; ++d) {
      uint64_t size;
      if (!read(size, what.c_str()))
        return false;
      if (size == 0)
        return fail(what + ": dimension " + Twine(d) + " is 0");
      if (size > Limits::elements || __builtin_mul_overflow(elements, size, &elements) || elements > Limits::elements)
        return fail(what + ": dimension " + Twine(d) + " is " + Twine(size) + ", which makes more than 2^40 elements");
      tensor.shape[dims - 1 - d] = int64_t(size);
    }
    uint64_t offset;
    if (!read(number, what.c_str()) || !read(offset, what.c_str()))
      return false;
    tensor.type = findType(number);
    if (!tensor.type)
      return fail(what + " has the type number " + Twine(number) + ", which is not supported; supported are F32, F16, "
                  "BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K to Q6_K, IQ4_NL, TQ1_0 and TQ2_0");
    int64_t columns = dims == 0 ? 1 : tensor.shape.back();
    if (columns % tensor.type->blockElements != 0)
      return fail(what + ": its rows have " + Twine(columns) + " elements, " + tensor.type->name +
                  " needs a multiple of " + Twine(tensor.type->blockElements));
    offsets.push_back(offset);
    sizes.push_back(elements / uint64_t(tensor.type->blockElements) * uint64_t(tensor.type->blockBytes));
    return true;
  }

  bool tensorData() {
    uint64_t alignment = 32;
    if (const Value *value = file.find("general.alignment")) {
      std::optional<int64_t> given = value->isArray() ? std::nullopt : value->integer();
      if (!given || value->type() != ValueType::U32)
        return fail("general.alignment is not an unsigned 32-bit number");
      if (*given <= 0 || (*given & (*given - 1)) != 0)
        return fail("general.alignment is " + Twine(*given) + ", expected a power of two");
      alignment = uint64_t(*given);
    }
    uint64_t start;
    if (__builtin_add_overflow(position, alignment - 1, &start))
      return fail("general.alignment is too large");
    start &= ~(alignment - 1);
    for (size_t i = 0; i < file.tensors.size(); ++i) {
      Tensor &tensor = file.tensors[i];
      std::string what = "tensor '" + printable(tensor.name) + "'";
      uint64_t begin, end;
      if (offsets[i] % alignment != 0)
        return fail(what + ": its offset " + Twine(offsets[i]) + " is not a multiple of the alignment " +
                    Twine(alignment));
      if (__builtin_add_overflow(start, offsets[i], &begin) || __builtin_add_overflow(begin, sizes[i], &end) ||
          end > bytes.size())
        return fail(what + ": its " + Twine(sizes[i]) + " bytes at offset " + Twine(offsets[i]) +
                    " of the data lie outside the file of " + Twine(bytes.size()) + " bytes");
      tensor.bytes = ArrayRef<char>(bytes.data() + begin, size_t(sizes[i]));
    }
    return true;
  }

  StringRef bytes;
  File &file;
  std::string &problem;
  uint64_t position = 0;
  uint64_t tensorCount = 0, keyCount = 0;
  std::vector<uint64_t> offsets, sizes;
};

bool parse(MemoryBufferRef bytes, File &file, std::string &problem) { return Parser(bytes, file, problem).run(); }

namespace {

bool mapPart(const std::string &path, File &part, std::string &problem) {
  // Mapped, not read: a model may be larger than memory.
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    problem = path + ": cannot be read: " + buffer.getError().message();
    return false;
  }
  if (!parse((*buffer)->getMemBufferRef(), part, problem)) {
    problem = path + ": " + problem;
    return false;
  }
  part.parts.push_back(std::move(*buffer));
  return true;
}

/// The number of parts of a split model; 1 when it is not split.
std::optional<int64_t> partCount(const File &file) {
  const Value *count = file.find("split.count");
  return !count ? std::optional<int64_t>(1) : count->isArray() ? std::nullopt : count->integer();
}

} // namespace

bool readFile(const std::string &path, File &file, std::string &problem) {
  if (!mapPart(path, file, problem))
    return false;
  std::optional<int64_t> count = partCount(file);
  if (!count || *count < 0 || *count > int64_t(Limits::parts)) {
    problem = path + ": split.count is not a number of parts from 1 to " + std::to_string(Limits::parts);
    return false;
  }
  if (*count <= 1)
    return true;
  // The parts are numbered from 0 inside, from 1 in their names.
  std::string ending = formatv("-of-{0,0+5}.gguf", *count).str();
  StringRef stem(path);
  if (!stem.consume_back(ending) || stem.size() < 6 || stem[stem.size() - 6] != '-') {
    problem = path + ": the model is split into " + std::to_string(*count) + " files, whose names end in -00001" +
              ending + " and so on; this one does not";
    return false;
  }
  stem = stem.drop_back(5);
  File whole;
  StringMap<char> names;
  for (int64_t i = 1; i <= *count; ++i) {
    std::string name = stem.str() + formatv("{0,0+5}", i).str() + ending;
    File part;
    if (!mapPart(name, part, problem))
      return false;
    const Value *number = part.find("split.no");
    std::optional<int64_t> no = number && !number->isArray() ? number->integer() : std::nullopt;
    if (!no || *no != i - 1 || partCount(part) != count) {
      problem = name + ": is not part " + std::to_string(i) + " of " + std::to_string(*count) +
                " (split.no and split.count say otherwise)";
      return false;
    }
    for (Tensor &tensor : part.tensors) {
      if (!names.try_emplace(tensor.name).second) {
        problem = name + ": tensor '" + tensor.name + "' is in another part as well";
        return false;
      }
      whole.tensors.push_back(std::move(tensor));
    }
    if (i == 1) {
      whole.metadata = std::move(part.metadata);
      whole.keys = std::move(part.keys);
    }
    whole.parts.push_back(std::move(part.parts.front()));
  }
  file = std::move(whole);
  return true;
}

} // namespace ajour::gguf
