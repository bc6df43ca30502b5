// Fuzzes the ONNX importer and, with every module that it makes, the passes up to dispatches.
#include "FuzzModel.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return ajour::fuzz::importBytes(ajour::importONNX, data, size);
}
