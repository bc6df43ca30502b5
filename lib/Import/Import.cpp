//===- Import.cpp - which importer reads a file ------------------------------------===//
#include "ajour/Import/Import.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringRef.h"

#include <fstream>

using namespace mlir;

namespace ajour {

namespace {

/// The first bytes of a file; fewer when it is shorter.
bool readHead(const std::string &path, std::string &head) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return false;
  head.resize(16);
  stream.read(head.data(), std::streamsize(head.size()));
  head.resize(size_t(stream.gcount()));
  return !stream.bad();
}

/// A TFLite file names its format in bytes 4 to 7.
bool looksLikeTFLite(StringRef head) { return head.size() >= 8 && head.substr(4, 3) == "TFL"; }

/// An ONNX file begins with ModelProto's IR version (field 1, a small number), as every writer puts it first, or
/// with another of its first fields.
bool looksLikeONNX(StringRef head) {
  return head.size() >= 4 && head[0] == 0x08 && uint8_t(head[1]) < 0x20 &&
         (head[2] == 0x12 || head[2] == 0x1a || head[2] == 0x22 || head[2] == 0x3a || head[2] == 0x42 || head[2] == 0x28 ||
          head[2] == 0x32);
}

} // namespace

OwningOpRef<ModuleOp> importModel(MLIRContext *context, const std::string &path, const ImportOptions &options) {
  Location loc = FileLineColLoc::get(context, path, 0, 0);
  std::string head;
  if (!readHead(path, head)) {
    emitError(loc) << "cannot be read";
    return nullptr;
  }
  if (head.empty()) {
    emitError(loc) << "is empty, expected an ONNX or TFLite model";
    return nullptr;
  }
  if (looksLikeTFLite(head))
    return importTFLite(context, path, options);
  if (looksLikeONNX(head))
    return importONNX(context, path, options);
  StringRef name(path);
  if (name.ends_with_insensitive(".tflite"))
    return importTFLite(context, path, options);
  if (name.ends_with_insensitive(".onnx"))
    return importONNX(context, path, options);
  emitError(loc) << "is of no known format: neither its content nor its name is that of an ONNX (.onnx) or TFLite "
                    "(.tflite) model";
  return nullptr;
}

} // namespace ajour
