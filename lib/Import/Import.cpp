//===- Import.cpp - which importer reads a file ------------------------------------===//
#include "ajour/Import/Import.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringRef.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <sys/stat.h>

using namespace mlir;

namespace ajour {

namespace {

/// The first bytes of a file; fewer when it is shorter. Returns why they cannot be had. Only regular files are
/// opened: a pipe would wait, and a device may have no end.
std::string readHead(const std::string &path, std::string &head) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    return std::string("cannot be read: ") + strerror(errno);
  if (!S_ISREG(status.st_mode))
    return S_ISDIR(status.st_mode) ? "is a directory, expected a file"
                                   : "is a pipe or device, expected a regular file";
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return std::string("cannot be read: ") + strerror(errno);
  head.resize(16);
  stream.read(head.data(), std::streamsize(head.size()));
  head.resize(size_t(stream.gcount()));
  return stream.bad() ? "cannot be read" : "";
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

/// Tokens and positions of a language model change from call to call.
static bool hasNoBindings(Location loc, const ImportOptions &options) {
  if (options.bindings.empty())
    return true;
  emitError(loc) << "is a language model, whose inputs cannot be made constants; leave out '" << options.bindings.begin()->first << "'";
  return false;
}

OwningOpRef<ModuleOp> importModel(MLIRContext *context, const std::string &path, const ImportOptions &options) {
  Location loc = FileLineColLoc::get(context, path, 0, 0);
  struct stat status;
  if (stat((path + "/config.json").c_str(), &status) == 0)
    return hasNoBindings(loc, options) ? importHuggingFace(context, path, options) : nullptr;
  std::string head;
  if (std::string problem = readHead(path, head); !problem.empty()) {
    emitError(loc) << problem;
    return nullptr;
  }
  if (head.empty()) {
    emitError(loc) << "is empty, expected an ONNX, TFLite, GGUF or safetensors model";
    return nullptr;
  }
  if (StringRef(head).starts_with("GGUF"))
    return hasNoBindings(loc, options) ? importGGUF(context, path, options) : nullptr;
  if (StringRef(path).ends_with_insensitive(".safetensors"))
    return hasNoBindings(loc, options) ? importHuggingFace(context, path, options) : nullptr;
  if (looksLikeTFLite(head))
    return importTFLite(context, path, options);
  if (looksLikeONNX(head))
    return importONNX(context, path, options);
  StringRef name(path);
  if (name.ends_with_insensitive(".tflite"))
    return importTFLite(context, path, options);
  if (name.ends_with_insensitive(".onnx"))
    return importONNX(context, path, options);
  emitError(loc) << "is of no known format: neither its content nor its name is that of an ONNX (.onnx), TFLite "
                    "(.tflite), GGUF (.gguf) or safetensors (.safetensors) model";
  return nullptr;
}

} // namespace ajour
