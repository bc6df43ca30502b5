#include "../Kernel.h"

typedef float ajour_unpack_entries_avx512 __attribute__((ext_vector_type(16), aligned(4)));
typedef uint32_t ajour_unpack_indices_avx512 __attribute__((ext_vector_type(16), aligned(1), may_alias));

/* Up to 16 entries lie in a register. */
AJOUR_HELPER AJOUR_TARGET_avx512 ajour_unpack_entries_avx512 ajour_unpack_look_up_avx512(
    const float *table, const int64_t bits, ajour_unpack_indices_avx512 indices) {
  ajour_unpack_entries_avx512 x;
  if (bits <= 4) {
    ajour_unpack_entries_avx512 entries = (ajour_unpack_entries_avx512)(0.0f);
    AJOUR_UNROLL
    for (int64_t i = 0; i < (1 << bits); ++i)
      entries[i] = table[i];
    typedef int32_t indices16 __attribute__((ext_vector_type(16)));
    return (ajour_unpack_entries_avx512)__builtin_ia32_permvarsf512(entries, (indices16)indices);
  }
  AJOUR_UNROLL
  for (int64_t i = 0; i < 16; ++i)
    x[i] = table[indices[i]];
  return x;
}

#define SUFFIX avx512
#define TARGET AJOUR_TARGET_avx512
#include "unpack.inc"
