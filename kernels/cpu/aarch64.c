/* All kernels for AArch64, as one translation unit. */
#include "copy/copy.c"
#include "dwconv_8bit/dotprod.c"
#include "dwconv_8bit/neon.c"
#include "dwconv_f32/neon.c"
#include "gemm_8bit/dotprod.c"
#include "gemm_8bit/i8mm.c"
#include "gemm_8bit/neon.c"
#include "gemm_f32/neon.c"
