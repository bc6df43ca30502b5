//===- SafeTensors.h - checked safetensors files ---------------*- C++ -*-===//
#ifndef AJOUR_IMPORT_SAFETENSORS_H
#define AJOUR_IMPORT_SAFETENSORS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ajour::safetensors {

struct Tensor {
  std::string name;
  uint32_t elementType = 0; ///< ajour_element_type
  std::vector<int64_t> shape;
  llvm::ArrayRef<char> bytes; ///< in the mapped file
};

/// One or several files, mapped.
struct File {
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> parts;
  std::vector<Tensor> tensors;
  llvm::StringMap<size_t> byName;
};

/// Parses one file in memory and adds its tensors: 8 bytes length, that many bytes of JSON, data. Returns an empty string, or what is
/// wrong. Source of the layout: the format's published description.
std::string parse(llvm::StringRef bytes, File &file);

/// Maps and parses `path` and adds its tensors. Messages begin with the file's name.
std::string readFile(const std::string &path, File &file);

/// "F16": what files call an element type; null for one that they do not have.
const char *nameOfType(uint32_t elementType);

/// The folder of a Hugging Face model, which `path` or a file in it names.
std::string folderOf(const std::string &path);
/// The files of a folder: those that its index names, or the only one. Returns an empty string, or what is wrong with the index.
std::string findShards(const std::string &folder, std::vector<std::string> &paths);

} // namespace ajour::safetensors

#endif
