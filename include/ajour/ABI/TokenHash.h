/* The hashes by which a tokenizer's tables are laid out. */
#ifndef AJOUR_ABI_TOKENHASH_H
#define AJOUR_ABI_TOKENHASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a, folded. */
static inline uint32_t ajour_token_hash(const char *bytes, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; ++i)
    hash = (hash ^ (uint8_t)bytes[i]) * 0x100000001b3u;
  return (uint32_t)(hash ^ hash >> 32);
}

static inline uint32_t ajour_merge_hash(uint64_t key) {
  key *= 0x9e3779b97f4a7c15u;
  return (uint32_t)(key >> 32);
}

#endif
