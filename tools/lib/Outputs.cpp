//===- Outputs.cpp - Answers as lines -------------------------------------===//

#include "ToolSupport/Outputs.h"
#include "ajour/Support/Printable.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>

namespace ajour::tools {

std::vector<RankedElement> topElements(const HostTensor &tensor, const TensorInfo &info, int64_t count) {
  std::vector<RankedElement> elements(static_cast<size_t>(tensor.numElements()));
  for (size_t i = 0; i < elements.size(); ++i) {
    int64_t index = static_cast<int64_t>(i);
    elements[i] = {index, dequantize(info, getReal(tensor, index))};
  }
  auto precedes = [](const RankedElement &a, const RankedElement &b) {
    if (std::isnan(a.score) || std::isnan(b.score))
      return std::isnan(a.score) == std::isnan(b.score) ? a.index < b.index : std::isnan(b.score);
    return a.score != b.score ? a.score > b.score : a.index < b.index;
  };
  size_t kept = static_cast<size_t>(std::clamp<int64_t>(count, 0, tensor.numElements()));
  std::partial_sort(elements.begin(), elements.begin() + static_cast<ptrdiff_t>(kept), elements.end(), precedes);
  elements.resize(kept);
  return elements;
}

std::string formatTop(const std::vector<RankedElement> &elements, const std::vector<std::string> &labels,
                      const std::string &labelsFile) {
  std::string text;
  for (const RankedElement &element : elements) {
    char line[64];
    std::snprintf(line, sizeof(line), "%lld %.6g", static_cast<long long>(element.index), element.score);
    text += line;
    if (!labels.empty()) {
      if (static_cast<size_t>(element.index) >= labels.size())
        throw ToolError(labelsFile + ": has " + std::to_string(labels.size()) + " labels, the answer is number " +
                        std::to_string(element.index) + " counted from 0");
      text += ' ' + printable(labels[static_cast<size_t>(element.index)]);
    }
    text += '\n';
  }
  return text;
}

std::string formatElement(const HostTensor &tensor, int64_t index) {
  if (tensor.type == AJOUR_U64)
    return std::to_string(static_cast<uint64_t>(getInteger(tensor, index)));
  if (isIntegerType(tensor.type))
    return std::to_string(getInteger(tensor, index));
  char buffer[40];
  double value = getReal(tensor, index);
  auto end = tensor.type == AJOUR_F64 ? std::to_chars(buffer, buffer + sizeof(buffer), value)
                                      : std::to_chars(buffer, buffer + sizeof(buffer), static_cast<float>(value));
  return std::string(buffer, end.ptr);
}

std::string formatOutput(const std::string &name, const HostTensor &tensor, int64_t numValues) {
  std::string line = name + ' ' + ajour_element_name(tensor.type) + ' ' + shapeText(tensor.shape);
  for (int64_t i = 0; i < std::min(numValues, tensor.numElements()); ++i)
    line += ' ' + formatElement(tensor, i);
  return line + (tensor.numElements() > numValues ? " ...\n" : "\n");
}

std::vector<std::string> outputFileNames(const std::vector<TensorInfo> &outputs) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const TensorInfo &info : outputs) {
    std::string base = info.name;
    for (char &c : base)
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_')
        c = '_';
    if (base.empty() || base[0] == '.')
      base.insert(base.begin(), '_');
    if (base.size() > 200)
      base.resize(200);
    std::string name = base;
    for (int i = 2; !taken.insert(name).second; ++i)
      name = base + "_" + std::to_string(i);
    names.push_back(name);
  }
  return names;
}

} // namespace ajour::tools
