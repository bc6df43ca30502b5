//===- CodePointSet.cpp - sets of code points from Unicode's properties -----------===//
#include "CodePointSet.h"

#include <unicode/uset.h>

namespace ajour::text {

CodePointSet::CodePointSet() : set(uset_openEmpty()) {}
CodePointSet::CodePointSet(const CodePointSet &other) : set(uset_cloneAsThawed(other.set)) {}
CodePointSet &CodePointSet::operator=(const CodePointSet &other) {
  if (this != &other) {
    uset_close(set);
    set = uset_cloneAsThawed(other.set);
  }
  return *this;
}
CodePointSet::~CodePointSet() { uset_close(set); }

void CodePointSet::add(uint32_t first, uint32_t last) { uset_addRange(set, UChar32(first), UChar32(last)); }
void CodePointSet::add(const CodePointSet &other) { uset_addAll(set, other.set); }
void CodePointSet::invert() { uset_complement(set); }

void CodePointSet::ignoreCase() {
  uset_closeOver(set, USET_CASE_INSENSITIVE);
  // Closing over case may add strings ("ss" for a sharp s); a set of a pattern holds code points only.
  uset_removeAllStrings(set);
}

bool CodePointSet::contains(uint32_t codePoint) const { return uset_contains(set, UChar32(codePoint)); }

std::vector<uint32_t> CodePointSet::ranges() const {
  std::vector<uint32_t> result;
  for (int32_t i = 0, n = uset_getItemCount(set); i < n; ++i) {
    UChar32 first, last;
    UErrorCode error = U_ZERO_ERROR;
    if (uset_getItem(set, i, &first, &last, nullptr, 0, &error) == 0 && U_SUCCESS(error)) {
      result.push_back(uint32_t(first));
      result.push_back(uint32_t(last));
    }
  }
  return result;
}

bool CodePointSet::property(const std::string &name, CodePointSet &set) {
  for (char c : name)
    if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'))
      return false;
  std::u16string pattern = u"[\\p{" + std::u16string(name.begin(), name.end()) + u"}]";
  UErrorCode error = U_ZERO_ERROR;
  USet *found = uset_openPattern(reinterpret_cast<const UChar *>(pattern.data()), int32_t(pattern.size()), &error);
  if (U_FAILURE(error)) {
    uset_close(found);
    return false;
  }
  uset_close(set.set);
  set.set = found;
  return true;
}

} // namespace ajour::text
