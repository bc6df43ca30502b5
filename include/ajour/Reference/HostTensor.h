//===- HostTensor.h - a tensor in host memory -----------------*- C++ -*-===//
#ifndef AJOUR_REFERENCE_HOSTTENSOR_H
#define AJOUR_REFERENCE_HOSTTENSOR_H

#include "ajour/ABI/ElementTypes.h"

#include <cstdint>
#include <vector>

namespace ajour {

/// A dense row-major tensor with its bytes (one byte for a boolean).
struct HostTensor {
  uint32_t elementType = 0; ///< ajour_element_type
  std::vector<int64_t> shape;
  std::vector<char> data;

  int64_t numElements() const {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    return count;
  }
  template <typename T> T *as() { return reinterpret_cast<T *>(data.data()); }
  template <typename T> const T *as() const { return reinterpret_cast<const T *>(data.data()); }
};

} // namespace ajour

#endif
