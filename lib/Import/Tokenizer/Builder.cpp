//===- Builder.cpp - a tokenizer's description, piece by piece ---------------------===//
#include "Builder.h"

#include "CodePointSet.h"
#include "Regex.h"

#include "ajour/ABI/TokenHash.h"
#include "ajour/Import/Tokenizer.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>

#include <algorithm>
#include <map>

using namespace llvm;

namespace ajour::text {

using tokenizer::NormalKind;
using tokenizer::NormalT;

namespace {

std::vector<uint32_t> toCodePoints(const UChar *text, int32_t length) {
  std::vector<uint32_t> result;
  for (int32_t i = 0; i < length;) {
    UChar32 c;
    U16_NEXT(text, i, length, c);
    result.push_back(uint32_t(c));
  }
  return result;
}

std::unique_ptr<tokenizer::PatternT> describe(const CompiledPattern &pattern) {
  auto result = std::make_unique<tokenizer::PatternT>();
  result->code = pattern.code;
  for (const std::vector<uint32_t> &ranges : pattern.sets) {
    auto set = std::make_unique<tokenizer::CharSetT>();
    set->ranges = ranges;
    result->sets.push_back(std::move(set));
  }
  return result;
}

constexpr uint32_t lastCodePoint = 0x10ffff;

} // namespace

void Builder::addToken(StringRef bytes, tokenizer::TokenType type, float score, bool inTable) {
  int32_t id = int32_t(tokens.size());
  tokens.push_back({bytes.str(), inTable});
  t.types.push_back(uint8_t(type));
  t.scores.push_back(score);
  if (inTable && !ids.try_emplace(bytes, id).second && problem.empty())
    problem = "tokens " + std::to_string(ids[bytes]) + " and " + std::to_string(id) + " have the same text '" + bytes.str() + "'";
}

int32_t Builder::find(StringRef bytes) const {
  auto it = ids.find(bytes);
  return it == ids.end() ? -1 : it->second;
}

void Builder::addAdded(tokenizer::AddedTokenT token) {
  t.added.push_back(std::make_unique<tokenizer::AddedTokenT>(std::move(token)));
}

void Builder::addReplace(StringRef from, StringRef to) {
  auto step = std::make_unique<NormalT>();
  step->kind = NormalKind::Replace;
  step->from = from.str();
  step->to = to.str();
  t.normals.push_back(std::move(step));
}

void Builder::addPrepend(StringRef text) {
  auto step = std::make_unique<NormalT>();
  step->kind = NormalKind::Prepend;
  step->to = text.str();
  t.normals.push_back(std::move(step));
}

void Builder::addMap(std::vector<uint32_t> keys, std::vector<std::vector<uint32_t>> values) {
  auto step = std::make_unique<NormalT>();
  step->kind = NormalKind::Map;
  step->keys = std::move(keys);
  for (const std::vector<uint32_t> &sequence : values) {
    step->starts.push_back(uint32_t(step->values.size()));
    step->values.insert(step->values.end(), sequence.begin(), sequence.end());
  }
  step->starts.push_back(uint32_t(step->values.size()));
  t.normals.push_back(std::move(step));
}

void Builder::addForm(Form form) {
  UErrorCode error = U_ZERO_ERROR;
  bool compatible = form == Form::NFKC || form == Form::NFKD;
  const UNormalizer2 *normalizer = compatible ? unorm2_getNFKCInstance(&error) : unorm2_getNFCInstance(&error);
  std::vector<uint32_t> keys, marks, classes;
  std::vector<std::vector<uint32_t>> values;
  std::map<uint64_t, uint32_t> pairs;
  UChar buffer[64];
  for (uint32_t c = 0; c <= lastCodePoint; ++c) {
    error = U_ZERO_ERROR;
    int32_t length = unorm2_getDecomposition(normalizer, UChar32(c), buffer, 64, &error);
    if (length >= 0 && U_SUCCESS(error)) {
      keys.push_back(c);
      values.push_back(toCodePoints(buffer, length));
    }
    if (uint8_t combining = u_getCombiningClass(UChar32(c))) {
      marks.push_back(c);
      classes.push_back(combining);
    }
    // Primary composites; syllables of Hangul are composed by arithmetic.
    length = unorm2_getRawDecomposition(unorm2_getNFCInstance(&error), UChar32(c), buffer, 64, &error);
    bool isSyllable = c >= 0xac00 && c < 0xd7a4;
    if (length < 0 || U_FAILURE(error) || isSyllable)
      continue;
    std::vector<uint32_t> parts = toCodePoints(buffer, length);
    if (parts.size() == 2 &&
        unorm2_composePair(unorm2_getNFCInstance(&error), UChar32(parts[0]), UChar32(parts[1])) == UChar32(c))
      pairs[uint64_t(parts[0]) << 32 | parts[1]] = c;
  }
  addMap(std::move(keys), std::move(values));
  auto order = std::make_unique<NormalT>();
  order->kind = NormalKind::Reorder;
  order->keys = marks;
  order->values = classes;
  t.normals.push_back(std::move(order));
  if (form == Form::NFD || form == Form::NFKD)
    return;
  auto compose = std::make_unique<NormalT>();
  compose->kind = NormalKind::Compose;
  compose->keys = std::move(marks);
  compose->starts = std::move(classes);
  for (auto [pair, joined] : pairs) {
    compose->pair_keys.push_back(pair);
    compose->values.push_back(joined);
  }
  t.normals.push_back(std::move(compose));
}

void Builder::addLowercase() {
  std::vector<uint32_t> keys;
  std::vector<std::vector<uint32_t>> values;
  for (uint32_t c = 0; c <= lastCodePoint; ++c) {
    if (c >= 0xd800 && c < 0xe000)
      continue;
    UChar source[2], lower[16];
    int32_t length = 0;
    U16_APPEND_UNSAFE(source, length, UChar32(c));
    UErrorCode error = U_ZERO_ERROR;
    int32_t lowerLength = u_strToLower(lower, 16, source, length, "", &error);
    std::vector<uint32_t> sequence = toCodePoints(lower, lowerLength);
    if (sequence.size() == 1 && sequence[0] == c)
      continue;
    keys.push_back(c);
    values.push_back(std::move(sequence));
  }
  addMap(std::move(keys), std::move(values));
}

void Builder::addRemoval(StringRef characterClass) {
  CompiledPattern pattern;
  compilePattern(std::string_view(characterClass), pattern);
  std::vector<uint32_t> keys;
  const std::vector<uint32_t> &ranges = pattern.sets.front();
  for (size_t i = 0; i < ranges.size(); i += 2)
    for (uint32_t c = ranges[i]; c <= ranges[i + 1]; ++c)
      keys.push_back(c);
  std::vector<std::vector<uint32_t>> nothing(keys.size());
  addMap(std::move(keys), std::move(nothing));
}

void Builder::addStrip(bool left, bool right) {
  CodePointSet blanks;
  CodePointSet::property("White_Space", blanks);
  auto step = std::make_unique<NormalT>();
  step->kind = NormalKind::Strip;
  step->set = std::make_unique<tokenizer::CharSetT>();
  step->set->ranges = blanks.ranges();
  step->left = left;
  step->right = right;
  t.normals.push_back(std::move(step));
}

std::string Builder::addReplacePattern(StringRef pattern, StringRef to) {
  CompiledPattern compiled;
  if (std::string wrong = compilePattern(std::string_view(pattern), compiled); !wrong.empty())
    return "the expression '" + pattern.str() + "': " + wrong;
  auto step = std::make_unique<NormalT>();
  step->kind = NormalKind::ReplacePattern;
  step->pattern = describe(compiled);
  step->to = to.str();
  t.normals.push_back(std::move(step));
  return "";
}

std::string Builder::addSplit(StringRef pattern, tokenizer::SplitBehavior behavior, bool invert) {
  CompiledPattern compiled;
  if (std::string wrong = compilePattern(std::string_view(pattern), compiled); !wrong.empty())
    return "the expression '" + pattern.str() + "': " + wrong;
  auto split = std::make_unique<tokenizer::SplitT>();
  split->pattern = describe(compiled);
  split->behavior = behavior;
  split->invert = invert;
  t.splits.push_back(std::move(split));
  return "";
}

namespace {

/// All texts of a double-array trie with their values. A unit of the trie: bit 31 marks a value (the low 31 bits), bits 0 to 7
/// the label, bit 8 that a value lies below, bits 10 to 30 an offset, shifted by 8 more when bit 9 is set.
struct Trie {
  ArrayRef<support::ulittle32_t> units;
  std::map<std::string, uint32_t> found;
  bool damaged = false;

  static uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }

  void walk(uint32_t node, std::string &prefix) {
    // A text of a map is short; a longer path is a circle of a damaged trie.
    if (prefix.size() > 64 || found.size() > units.size()) {
      damaged = true;
      return;
    }
    uint32_t base = node ^ offset(units[node]);
    for (uint32_t label = 1; label < 256 && !damaged; ++label) {
      uint32_t child = base ^ label;
      if (child >= units.size() || (units[child] & 0x800000ffu) != label)
        continue;
      prefix.push_back(char(label));
      uint32_t value = child ^ offset(units[child]);
      if (units[child] >> 8 & 1) {
        if (value >= units.size())
          damaged = true;
        else
          found[prefix] = units[value] & 0x7fffffffu;
      }
      if (!damaged)
        walk(child, prefix);
      prefix.pop_back();
    }
  }
};

} // namespace

std::string Builder::addCharsMap(StringRef bytes) {
  if (bytes.empty())
    return "";
  uint32_t size = bytes.size() < 4 ? UINT32_MAX : support::endian::read32le(bytes.data());
  if (size > bytes.size() - 4 || size % 4 != 0 || size == 0)
    return "the map of characters is damaged: its trie of " + std::to_string(size) + " bytes is not within " +
           std::to_string(bytes.size());
  StringRef texts = bytes.drop_front(4 + size);
  Trie trie{ArrayRef(reinterpret_cast<const support::ulittle32_t *>(bytes.data() + 4), size / 4), {}};
  std::string prefix;
  trie.walk(0, prefix);
  auto step = std::make_unique<NormalT>();
  step->kind = NormalKind::MapLongest;
  for (auto &[text, at] : trie.found) {
    if (at >= texts.size())
      trie.damaged = true;
    else {
      step->texts.push_back(text);
      step->replacements.push_back(texts.drop_front(at).take_until([](char c) { return c == 0; }).str());
    }
  }
  if (trie.damaged)
    return "the map of characters is damaged: its trie leads outside";
  t.normals.push_back(std::move(step));
  return "";
}

std::string Builder::finish(std::vector<uint8_t> &description) {
  if (!problem.empty())
    return problem;
  if (tokens.empty())
    return "the vocabulary is empty";
  size_t tableSize = PowerOf2Ceil(tokens.size() * 2), mergeSize = merges.empty() ? 0 : PowerOf2Ceil(merges.size() * 2);
  t.token_table.assign(tableSize, 0);
  t.worst_score = *std::min_element(t.scores.begin(), t.scores.end());
  for (size_t id = 0; id < tokens.size(); ++id) {
    const Token &token = tokens[id];
    t.token_starts.push_back(uint32_t(t.token_bytes.size()));
    t.token_bytes.insert(t.token_bytes.end(), token.bytes.begin(), token.bytes.end());
    if (!token.inTable)
      continue;
    t.longest_token = std::max(t.longest_token, uint32_t(token.bytes.size()));
    size_t at = ajour_token_hash(token.bytes.data(), token.bytes.size()) & (tableSize - 1);
    while (t.token_table[at] != 0)
      at = (at + 1) & (tableSize - 1);
    t.token_table[at] = uint32_t(id + 1);
  }
  t.token_starts.push_back(uint32_t(t.token_bytes.size()));
  t.merge_keys.assign(mergeSize, 0);
  t.merge_values.assign(mergeSize, 0);
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge &merge = merges[rank];
    uint64_t key = (uint64_t(uint32_t(merge.left)) << 32 | uint32_t(merge.right)) + 1;
    size_t at = ajour_merge_hash(key) & (mergeSize - 1);
    while (t.merge_keys[at] != 0 && t.merge_keys[at] != key)
      at = (at + 1) & (mergeSize - 1);
    // The first of two equal merges counts.
    if (t.merge_keys[at] == 0) {
      t.merge_keys[at] = key;
      t.merge_values[at] = uint64_t(rank) << 32 | uint32_t(merge.merged);
    }
  }
  flatbuffers::FlatBufferBuilder fbb(1 << 20);
  fbb.Finish(tokenizer::Tokenizer::Pack(fbb, &t), tokenizer::TokenizerIdentifier());
  description.assign(fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize());
  return "";
}

int byteOfAlphabet(uint32_t c) {
  // Bytes that print stand for themselves; the others, in order, for code points from 256 on.
  auto prints = [](uint32_t b) { return (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff); };
  if (c < 256)
    return prints(c) ? int(c) : -1;
  uint32_t left = c - 256;
  for (uint32_t b = 0; b < 256; ++b)
    if (!prints(b) && left-- == 0)
      return int(b);
  return -1;
}

bool decodeAlphabet(StringRef token, std::string &bytes) {
  bytes.clear();
  for (size_t i = 0; i < token.size();) {
    uint32_t lead = uint8_t(token[i]), c;
    if (lead < 0x80) {
      c = lead;
      i += 1;
    } else if (lead >= 0xc2 && lead < 0xe0 && i + 1 < token.size()) {
      c = (lead & 0x1f) << 6 | (uint8_t(token[i + 1]) & 0x3f);
      i += 2;
    } else {
      return false;
    }
    int byte = byteOfAlphabet(c);
    if (byte < 0)
      return false;
    bytes.push_back(char(byte));
  }
  return true;
}

} // namespace ajour::text
