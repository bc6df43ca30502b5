//===- Npz.h - NumPy archives with expected values --------------*- C++ -*-===//

#ifndef AJOUR_TESTS_TOOLS_NPZ_H
#define AJOUR_TESTS_TOOLS_NPZ_H

#include "ToolSupport/Npy.h"

#include <map>

namespace ajour::tools {

/// The arrays of an .npz file (a ZIP archive of .npy files, stored or deflated), by name. Throws ToolError.
std::map<std::string, HostTensor> readNpz(const std::string &path);

} // namespace ajour::tools

#endif
