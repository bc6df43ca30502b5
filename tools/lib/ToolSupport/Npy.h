//===- Npy.h - NumPy array files --------------------------------*- C++ -*-===//
//
// The .npy format, versions 1 to 3, as NumPy documents it (numpy.lib.format): magic, version, length of the header, the
// header as a Python dictionary with `descr`, `fortran_order` and `shape`, then the elements.
//
//===----------------------------------------------------------------------===//

#ifndef AJOUR_TOOLS_NPY_H
#define AJOUR_TOOLS_NPY_H

#include "ToolSupport/Files.h"

namespace ajour::tools {

/// Reads an array: every element type of ajour/ABI/ElementTypes.h (bf16 comes as ui16, NumPy has no name for it), either
/// byte order, C or Fortran order; the result is little-endian in C order. Throws ToolError, which names `file`, on
/// anything malformed.
HostTensor parseNpy(std::span<const std::byte> bytes, const std::string &file);
HostTensor readNpy(const std::string &path);

/// Formats an array as .npy version 1.
Bytes formatNpy(const HostTensor &tensor);
void writeNpy(const std::string &path, const HostTensor &tensor);

} // namespace ajour::tools

#endif
