#include "Normalize.h"

#include "Pattern.h"

#include <algorithm>

namespace ajour::language {

namespace {

using tokenizer::Normal;
using tokenizer::NormalKind;

/// The position of `key` in a sorted vector; its size when it is not there.
template <typename T> uint32_t position(const flatbuffers::Vector<T> &keys, T key) {
  uint32_t low = 0, high = keys.size();
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (keys.Get(middle) < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low < keys.size() && keys.Get(low) == key ? low : keys.size();
}

template <typename T> bool isSorted(const flatbuffers::Vector<T> *keys) {
  for (uint32_t i = 1; i < sizeOf(keys); ++i)
    if (keys->Get(i) <= keys->Get(i - 1))
      return false;
  return true;
}

void replace(Bytes from, Bytes to, const Text &text, Text &result) {
  size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= from.size && std::memcmp(text.data() + at, from.data, from.size) == 0) {
      result.append(to.data, to.size);
      at += from.size;
    } else {
      result.push(text[at++]);
    }
  }
}

/// Hangul syllables are composed and decomposed by arithmetic (Unicode Standard, section 3.12).
constexpr uint32_t syllables = 0xac00, leading = 0x1100, vowels = 0x1161, trailing = 0x11a7;
constexpr uint32_t leadingCount = 19, vowelCount = 21, trailingCount = 28;

void mapCodePoints(const Normal &step, const CodePoints &in, const Text &text, Text &result) {
  for (size_t i = 0; i + 1 < in.starts.size(); ++i) {
    uint32_t c = in.values[i], at = position(*step.keys(), c);
    if (at == step.keys()->size())
      result.append(text.data() + in.starts[i], in.starts[i + 1] - in.starts[i]);
    else
      for (uint32_t v = step.starts()->Get(at); v < step.starts()->Get(at + 1); ++v)
        appendUtf8(step.values()->Get(v), result);
  }
}

/// Canonical ordering: runs of combining marks by their class, stable.
bool reorder(const Normal &step, const CodePoints &text, Text &result) {
  auto classOf = [&](uint32_t c) {
    uint32_t at = position(*step.keys(), c);
    return at == step.keys()->size() ? 0u : step.values()->Get(at);
  };
  // Ordered by class and, within one, by place. A starter's class is 0, so that it parts the runs.
  Buffer<uint64_t> marks;
  size_t count = text.values.size();
  for (size_t i = 0; i < count;) {
    marks.clear();
    for (; i < count; ++i) {
      uint64_t cls = classOf(text.values[i]);
      if (cls == 0)
        break;
      marks.push(cls << 56 | uint64_t(i) << 24 | text.values[i]);
    }
    if (marks.failed())
      return false;
    std::sort(marks.data(), marks.data() + marks.size());
    for (size_t m = 0; m < marks.size(); ++m)
      appendUtf8(uint32_t(marks[m] & 0xffffff), result);
    if (i < count)
      appendUtf8(text.values[i++], result);
  }
  return true;
}

/// The composition of two code points; 0: none.
uint32_t composed(const Normal &step, uint32_t first, uint32_t second) {
  if (first - leading < leadingCount && second - vowels < vowelCount)
    return syllables + ((first - leading) * vowelCount + (second - vowels)) * trailingCount;
  if (first - syllables < leadingCount * vowelCount * trailingCount && (first - syllables) % trailingCount == 0 &&
      second > trailing && second < trailing + trailingCount)
    return first + (second - trailing);
  uint64_t key = uint64_t(first) << 32 | second;
  uint32_t at = position<uint64_t>(*step.pair_keys(), key);
  return at == step.pair_keys()->size() ? 0 : step.values()->Get(at);
}

/// Canonical composition of a decomposed, ordered text (Unicode Standard Annex 15). `keys` and `starts` give the
/// combining classes.
void compose(const Normal &step, CodePoints &text, Text &result) {
  auto classOf = [&](uint32_t c) {
    uint32_t at = position(*step.keys(), c);
    return at == step.keys()->size() ? 0u : step.starts()->Get(at);
  };
  Buffer<uint32_t> &v = text.values;
  size_t written = 0, starter = SIZE_MAX;
  uint32_t lastClass = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    uint32_t c = v[i], cls = classOf(c);
    bool adjacent = starter != SIZE_MAX && written == starter + 1;
    if (starter != SIZE_MAX && (adjacent || (lastClass < cls && lastClass != 0)))
      if (uint32_t joined = composed(step, v[starter], c)) {
        v[starter] = joined;
        continue;
      }
    if (cls == 0)
      starter = written;
    lastClass = cls;
    v[written++] = c;
  }
  for (size_t i = 0; i < written; ++i)
    appendUtf8(v[i], result);
}

void strip(const Normal &step, const CodePoints &in, const Text &text, Text &result) {
  size_t begin = 0, end = in.values.size();
  const auto &ranges = *step.set()->ranges();
  while (step.left() && begin < end && contains(ranges, in.values[begin]))
    ++begin;
  while (step.right() && end > begin && contains(ranges, in.values[end - 1]))
    --end;
  result.append(text.data() + in.starts[begin], in.starts[end] - in.starts[begin]);
}

bool replacePattern(const Normal &step, const CodePoints &in, const Text &text, Text &result) {
  Matcher matcher(*step.pattern(), in.values.data(), in.values.size());
  Bytes to = bytesOf(step.to());
  size_t at = 0, begin, end;
  for (size_t from = 0; matcher.find(from, begin, end);) {
    result.append(text.data() + in.starts[at], in.starts[begin] - in.starts[at]);
    if (end > begin)
      result.append(to.data, to.size);
    at = end;
    from = end > begin ? end : end + 1;
    if (from > in.values.size())
      break;
  }
  if (matcher.exhausted())
    return false;
  result.append(text.data() + in.starts[at], text.size() - in.starts[at]);
  return true;
}

/// The longest entry of `texts` that `at` begins with; its size when none does.
uint32_t longestPrefix(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> &texts, Bytes at) {
  // Entries that are prefixes of `at` sort at or before it: narrow down one byte at a time.
  uint32_t low = 0, high = texts.size(), best = texts.size();
  for (size_t depth = 0; depth <= at.size && low < high; ++depth) {
    if (texts.Get(low)->size() == depth)
      best = low++;
    if (depth == at.size)
      break;
    uint8_t byte = uint8_t(at.data[depth]);
    auto less = [&](uint32_t i, unsigned bound) { return uint8_t(texts.Get(i)->c_str()[depth]) < bound; };
    auto bound = [&](unsigned value) {
      uint32_t from = low, to = high;
      while (from < to) {
        uint32_t middle = (from + to) / 2;
        if (less(middle, value))
          from = middle + 1;
        else
          to = middle;
      }
      return from;
    };
    uint32_t newLow = bound(byte), newHigh = bound(unsigned(byte) + 1);
    low = newLow, high = newHigh;
  }
  return best;
}

void mapLongest(const Normal &step, const Text &text, Text &result) {
  for (size_t at = 0; at < text.size();) {
    uint32_t found = longestPrefix(*step.texts(), {text.data() + at, text.size() - at});
    if (found != step.texts()->size()) {
      Bytes to = bytesOf(step.replacements()->Get(found));
      result.append(to.data, to.size);
      at += step.texts()->Get(found)->size();
      continue;
    }
    unsigned length;
    decodeUtf8(text.data() + at, text.size() - at, length);
    result.append(text.data() + at, length);
    at += length;
  }
}

} // namespace

const char *checkNormal(const Normal &step) {
  switch (step.kind()) {
  case NormalKind::Replace:
    return sizeOf(step.from()) > 0 ? nullptr : "a replacement has nothing to replace";
  case NormalKind::Prepend:
    return nullptr;
  case NormalKind::Map: {
    if (!step.keys() || !isSorted(step.keys()) || sizeOf(step.starts()) != step.keys()->size() + 1)
      return "a map of code points has no sorted keys, or not one sequence for each";
    for (uint32_t i = 0; i < step.starts()->size(); ++i)
      if (step.starts()->Get(i) > sizeOf(step.values()) || (i > 0 && step.starts()->Get(i) < step.starts()->Get(i - 1)))
        return "a sequence of a map of code points lies outside";
    return nullptr;
  }
  case NormalKind::Reorder:
    return step.keys() && isSorted(step.keys()) && sizeOf(step.values()) == step.keys()->size()
               ? nullptr
               : "combining classes are not one for each of sorted code points";
  case NormalKind::Compose:
    return step.keys() && isSorted(step.keys()) && sizeOf(step.starts()) == step.keys()->size() && step.pair_keys() &&
                   isAligned(step.pair_keys()) && isSorted(step.pair_keys()) && sizeOf(step.values()) == step.pair_keys()->size()
               ? nullptr
               : "compositions are not one for each of sorted pairs";
  case NormalKind::Strip:
    return checkSet(step.set());
  case NormalKind::ReplacePattern:
    return step.pattern() ? checkPattern(*step.pattern()) : "a replacement has no pattern";
  case NormalKind::MapLongest: {
    if (!step.texts() || sizeOf(step.replacements()) != step.texts()->size())
      return "a map of texts has not one replacement for each";
    for (uint32_t i = 0; i < step.texts()->size(); ++i) {
      Bytes text = bytesOf(step.texts()->Get(i));
      if (text.size == 0)
        return "a map of texts has an empty text";
      if (i > 0) {
        Bytes before = bytesOf(step.texts()->Get(i - 1));
        size_t common = std::min(before.size, text.size);
        int order = std::memcmp(before.data, text.data, common);
        if (order > 0 || (order == 0 && before.size >= text.size))
          return "a map of texts is not sorted";
      }
    }
    return nullptr;
  }
  }
  return "a normalisation step is of an unknown kind";
}

TextStatus normalize(const tokenizer::Tokenizer &tokenizer, Text &text) {
  CodePoints points;
  for (uint32_t i = 0; i < sizeOf(tokenizer.normals()); ++i) {
    const Normal &step = *tokenizer.normals()->Get(i);
    Text result;
    points.assign(bytesOf(text));
    switch (step.kind()) {
    case NormalKind::Replace:
      replace(bytesOf(step.from()), bytesOf(step.to()), text, result);
      break;
    case NormalKind::Prepend:
      if (text.size() > 0)
        result.append(bytesOf(step.to()).data, bytesOf(step.to()).size);
      result.append(text.data(), text.size());
      break;
    case NormalKind::Map:
      mapCodePoints(step, points, text, result);
      break;
    case NormalKind::Reorder:
      if (!reorder(step, points, result))
        return TextStatus::OutOfMemory;
      break;
    case NormalKind::Compose:
      compose(step, points, result);
      break;
    case NormalKind::Strip:
      strip(step, points, text, result);
      break;
    case NormalKind::ReplacePattern:
      if (!replacePattern(step, points, text, result))
        return TextStatus::TooComplex;
      break;
    case NormalKind::MapLongest:
      mapLongest(step, text, result);
      break;
    }
    if (result.failed() || points.failed())
      return TextStatus::OutOfMemory;
    text.swap(result);
  }
  return TextStatus::Ok;
}

} // namespace ajour::language
