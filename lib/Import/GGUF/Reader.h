//===- Reader.h - a checked GGUF file ---------------------------*- C++ -*-===//
//
// The door for untrusted bytes: behind it every count, name, type, shape and offset is known to be good.
// Versions 2 and 3, little endian, in one file or split over several. Source of the layout: the format's
// published specification.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_LIB_IMPORT_GGUF_READER_H
#define AJOUR_LIB_IMPORT_GGUF_READER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ajour::gguf {

/// What a file may ask of us.
struct Limits {
  static constexpr uint64_t keyLength = 65535;
  static constexpr uint64_t tensorNameLength = 64;
  static constexpr uint64_t dimensions = 4;
  static constexpr uint64_t elements = uint64_t(1) << 40;
  static constexpr uint64_t parts = 4096;
};

/// Types of metadata values; numbers are the format's.
enum class ValueType : uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };

/// Columns: number in the format, enumerator, elements of a block, bytes of a block.
#define AJOUR_GGUF_TENSOR_TYPES(ROW) \
  ROW(0, F32, 1, 4)                  \
  ROW(1, F16, 1, 2)                  \
  ROW(2, Q4_0, 32, 18)               \
  ROW(3, Q4_1, 32, 20)               \
  ROW(6, Q5_0, 32, 22)               \
  ROW(7, Q5_1, 32, 24)               \
  ROW(8, Q8_0, 32, 34)               \
  ROW(10, Q2_K, 256, 84)             \
  ROW(11, Q3_K, 256, 110)            \
  ROW(12, Q4_K, 256, 144)            \
  ROW(13, Q5_K, 256, 176)            \
  ROW(14, Q6_K, 256, 210)            \
  ROW(20, IQ4_NL, 32, 18)            \
  ROW(30, BF16, 1, 2)                \
  ROW(34, TQ1_0, 256, 54)            \
  ROW(35, TQ2_0, 256, 66)

enum class TensorType : uint32_t {
#define AJOUR_ROW(number, name, elements, bytes) name = number,
  AJOUR_GGUF_TENSOR_TYPES(AJOUR_ROW)
#undef AJOUR_ROW
};

struct TypeInfo {
  TensorType type;
  const char *name;
  int64_t blockElements, blockBytes;
};
/// The row of a type number; null for types that are not known.
const TypeInfo *findType(uint32_t number);

/// One metadata value. Arrays hold scalars or strings; arrays of arrays are refused.
class Value {
public:
  ValueType type() const { return type_; }
  bool isArray() const { return isArray_; }
  /// Elements of an array, 1 of a scalar.
  size_t size() const { return count; }
  /// Element `i` of any integer type or a boolean; nothing for other types or, unsigned, above int64.
  std::optional<int64_t> integer(size_t i = 0) const;
  /// Element `i` of any number type.
  std::optional<double> number(size_t i = 0) const;
  /// Element `i` of a string (array); the type must be String.
  llvm::StringRef string(size_t i = 0) const { return strings[i]; }

private:
  friend class Parser;
  ValueType type_ = ValueType::U8;
  bool isArray_ = false;
  size_t count = 0;
  const char *scalars = nullptr; ///< in the file, not aligned
  std::vector<llvm::StringRef> strings;
};

struct Tensor {
  std::string name;
  const TypeInfo *type = nullptr;
  std::vector<int64_t> shape; ///< outermost first (the file has the innermost first)
  llvm::ArrayRef<char> bytes; ///< in the mapped file
};

/// A model's files, mapped. Values and bytes point into them.
struct File {
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> parts;
  llvm::StringMap<Value> metadata;
  std::vector<std::string> keys; ///< in the file's order
  std::vector<Tensor> tensors;

  const Value *find(llvm::StringRef key) const {
    auto it = metadata.find(key);
    return it == metadata.end() ? nullptr : &it->second;
  }
  const Tensor *findTensor(llvm::StringRef name) const;
};

/// Parses one file in memory; `problem` says where and what on failure.
bool parse(llvm::MemoryBufferRef bytes, File &file, std::string &problem);

/// Maps and parses a file and, when it is the first of a split model (NAME-00001-of-0000N.gguf), the others
/// beside it. On failure `problem` names the file.
bool readFile(const std::string &path, File &file, std::string &problem);

} // namespace ajour::gguf

#endif
