#include "../Kernel.h"

typedef float ajour_unpack_entries_avx2 __attribute__((ext_vector_type(16), aligned(4)));
typedef uint32_t ajour_unpack_indices_avx2 __attribute__((ext_vector_type(16), aligned(1), may_alias));

/* Up to 8 entries lie in a register; more are loaded one by one, which gathers do no faster. */
AJOUR_HELPER AJOUR_TARGET_avx2 ajour_unpack_entries_avx2 ajour_unpack_look_up_avx2(const float *table, const int64_t bits,
                                                                                   ajour_unpack_indices_avx2 indices) {
  ajour_unpack_entries_avx2 x;
  if (bits <= 3) {
    typedef float entries8 __attribute__((ext_vector_type(8), aligned(4)));
    typedef int32_t indices8 __attribute__((ext_vector_type(8)));
    entries8 entries = {0};
    AJOUR_UNROLL
    for (int64_t i = 0; i < (1 << bits); ++i)
      entries[i] = table[i];
    x.lo = (entries8)__builtin_ia32_permvarsf256(entries, (indices8)indices.lo);
    x.hi = (entries8)__builtin_ia32_permvarsf256(entries, (indices8)indices.hi);
    return x;
  }
  AJOUR_UNROLL
  for (int64_t i = 0; i < 16; ++i)
    x[i] = table[indices[i]];
  return x;
}

#define SUFFIX avx2
#define TARGET AJOUR_TARGET_avx2
#include "unpack.inc"
