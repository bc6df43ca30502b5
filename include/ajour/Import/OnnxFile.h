//===- OnnxFile.h - bytes of an ONNX file as checked messages -*- C++ -*-===//
//
// The door through which untrusted bytes come: sizes, ranges and paths are checked here, so that the rest of
// the importer may trust them.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_IMPORT_ONNXFILE_H
#define AJOUR_IMPORT_ONNXFILE_H

#define ONNX_ML 1
#include <onnx/onnx_pb.h>

#include "mlir/IR/BuiltinTypes.h"

#include <memory>
#include <string>
#include <vector>

namespace ajour::onnx_import {

/// Element types of the format by number; those newer than the schema of the build have no name there.
enum OnnxType : int32_t {
  OnnxFloat8E4M3FN = 17,
  OnnxFloat8E4M3FNUZ = 18,
  OnnxFloat8E5M2 = 19,
  OnnxFloat8E5M2FNUZ = 20,
  OnnxUInt4 = 21,
  OnnxInt4 = 22,
  OnnxFloat4E2M1 = 23,
  OnnxFloat8E8M0 = 24,
  OnnxUInt2 = 25,
  OnnxInt2 = 26,
};

/// "float", "int64", ... as the format's documentation spells them.
std::string onnxTypeName(int32_t type);

/// Bits of a value of this type in a file; 0: not a number, or not known.
unsigned onnxTypeBits(int32_t type);

/// The element type of nn that holds values of this type, or null: 2- and 4-bit integers are held in 8 bits, and 8-
/// and 4-bit floats as f32.
mlir::Type elementTypeOf(int32_t onnxType, mlir::MLIRContext *context);

/// A model file after parsing.
struct ModelFile {
  std::string path;
  std::string directory; ///< canonical; external data must lie inside
  int64_t fileBytes = 0;
  ::onnx::ModelProto proto;
};

/// Reads and parses a file. On failure null, and `error` says why.
std::unique_ptr<ModelFile> readModel(const std::string &path, std::string &error);

/// The values of a tensor, as bytes of the element type that elementTypeOf gives.
struct TensorData {
  mlir::RankedTensorType type;
  std::vector<char> bytes;
};

/// Reads a tensor of the model. Returns false with `error` when its parts do not fit together.
bool readTensor(const ModelFile &model, const ::onnx::TensorProto &tensor, mlir::MLIRContext *context,
                TensorData &data, std::string &error);

/// What a model may ask of us: sizes and strides in bytes then fit 64 bits with room to spare.
constexpr int64_t mostElements = int64_t(1) << 40;
constexpr int64_t mostDimensions = 32;

/// Elements of a shape, or -1 when a size is negative or the sizes (zeros aside) multiply to more than mostElements.
int64_t checkedElements(llvm::ArrayRef<int64_t> dims);

} // namespace ajour::onnx_import

#endif
