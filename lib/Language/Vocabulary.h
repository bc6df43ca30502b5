/// Tokens by their bytes and merges by their halves: look-ups in the tables of a description.
#ifndef AJOUR_LIB_LANGUAGE_VOCABULARY_H
#define AJOUR_LIB_LANGUAGE_VOCABULARY_H

#include "Flat.h"
#include "ajour/Language/Text.h"

#include "ajour/ABI/TokenHash.h"

namespace ajour::language {

/// The bytes of a token; `id` must be one.
inline Bytes tokenBytes(const tokenizer::Tokenizer &t, int32_t id) {
  uint32_t begin = t.token_starts()->Get(uint32_t(id)), end = t.token_starts()->Get(uint32_t(id) + 1);
  return {reinterpret_cast<const char *>(t.token_bytes()->data()) + begin, end - begin};
}

/// The token with these bytes, -1: none.
inline int32_t findToken(const tokenizer::Tokenizer &t, Bytes text) {
  const auto &table = *t.token_table();
  uint32_t mask = table.size() - 1;
  // At most all entries are looked at, so that a table without a free one ends too.
  for (uint32_t i = 0, at = ajour_token_hash(text.data, text.size) & mask; i <= mask; ++i, at = (at + 1) & mask) {
    uint32_t entry = table.Get(at);
    if (entry == 0)
      return -1;
    if (tokenBytes(t, int32_t(entry - 1)) == text)
      return int32_t(entry - 1);
  }
  return -1;
}

/// What joining two tokens gives: rank << 32 | id; all ones: they do not join.
inline uint64_t findMerge(const tokenizer::Tokenizer &t, int32_t left, int32_t right) {
  if (sizeOf(t.merge_keys()) == 0 || left < 0 || right < 0)
    return UINT64_MAX;
  const auto &table = *t.merge_keys();
  uint32_t mask = table.size() - 1;
  uint64_t key = (uint64_t(uint32_t(left)) << 32 | uint32_t(right)) + 1;
  for (uint32_t i = 0, at = ajour_merge_hash(key) & mask; i <= mask; ++i, at = (at + 1) & mask) {
    uint64_t entry = table.Get(at);
    if (entry == 0)
      return UINT64_MAX;
    if (entry == key)
      return t.merge_values()->Get(at);
  }
  return UINT64_MAX;
}

} // namespace ajour::language

#endif
