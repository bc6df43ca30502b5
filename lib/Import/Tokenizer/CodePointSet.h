//===- CodePointSet.h - sets of code points from Unicode's properties --*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_TOKENIZER_CODEPOINTSET_H
#define AJOUR_LIB_IMPORT_TOKENIZER_CODEPOINTSET_H

#include <cstdint>
#include <string>
#include <vector>

struct USet;

namespace ajour::text {

/// A set of code points. Properties are those of the Unicode version of the installed ICU.
class CodePointSet {
public:
  CodePointSet();
  CodePointSet(const CodePointSet &other);
  CodePointSet &operator=(const CodePointSet &other);
  ~CodePointSet();

  void add(uint32_t first, uint32_t last);
  void add(const CodePointSet &other);
  void invert();
  /// Adds the members' other cases.
  void ignoreCase();
  bool contains(uint32_t codePoint) const;
  /// first, last, first, last, ..., sorted.
  std::vector<uint32_t> ranges() const;

  /// The set of a property as regular expressions write it between braces ("L", "Lu", "Han", "White_Space"). False:
  /// there is no such property.
  static bool property(const std::string &name, CodePointSet &set);

private:
  USet *set;
};

} // namespace ajour::text

#endif
