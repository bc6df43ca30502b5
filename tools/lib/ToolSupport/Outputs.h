//===- Outputs.h - Answers as lines -----------------------------*- C++ -*-===//

#ifndef AJOUR_TOOLS_OUTPUTS_H
#define AJOUR_TOOLS_OUTPUTS_H

#include "ToolSupport/Files.h"

namespace ajour::tools {

/// One of the largest elements of an output; `score` is the real value (see dequantize).
struct RankedElement {
  int64_t index;
  double score;
};

/// The `count` largest elements, largest first; equal ones by index; NaN last.
std::vector<RankedElement> topElements(const HostTensor &tensor, const TensorInfo &info, int64_t count);

/// Lines "index score label"; without a label for the index, "index score". A list of labels that does not reach an index is an
/// error, so that a wrong file is found out. `labelsFile` is its name in the message.
std::string formatTop(const std::vector<RankedElement> &elements, const std::vector<std::string> &labels,
                      const std::string &labelsFile);

/// One line: name, type, shape, the first values as stored, and "..." if there are more.
std::string formatOutput(const std::string &name, const HostTensor &tensor, int64_t numValues = 8);

/// One value as text that reads back to the same value.
std::string formatElement(const HostTensor &tensor, int64_t index);

/// The name of a tensor as a file name: every character other than letters, digits, '.', '-' and '_' becomes '_', so that no
/// name can leave the directory. Names that become equal are told apart by "_2", "_3", ...
std::vector<std::string> outputFileNames(const std::vector<TensorInfo> &outputs);

} // namespace ajour::tools

#endif
