/// The kernels that this machine's architecture has, by op, and which of them its CPU can run.
#ifndef AJOUR_TESTS_KERNELS_NATIVEKERNELS_H
#define AJOUR_TESTS_KERNELS_NATIVEKERNELS_H

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "ajour/Kernels/Kernels.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace ajour::test {

inline bool cpuHas(ajour_cpu_level level) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
  switch (level) {
  case AJOUR_LEVEL_avx2:
    return avx2;
  case AJOUR_LEVEL_avx512:
    return avx512;
  case AJOUR_LEVEL_avx512vnni:
    return avx512 && __builtin_cpu_supports("avx512vnni");
  case AJOUR_LEVEL_avx512vbmi:
    return avx512 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
  default:
    return false;
  }
#elif defined(__aarch64__)
  const bool dotprod = getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
  switch (level) {
  case AJOUR_LEVEL_neon:
    return true;
  case AJOUR_LEVEL_dotprod:
    return dotprod;
  case AJOUR_LEVEL_i8mm:
    return dotprod && (getauxval(AT_HWCAP2) & HWCAP2_I8MM);
  default:
    return false;
  }
#else
  return false;
#endif
}

inline const char *levelName(ajour_cpu_level level) {
  switch (level) {
#define AJOUR_ROW(id, name, arch, features, cpu, attrs) \
  case AJOUR_LEVEL_##name:                              \
    return #name;
    AJOUR_CPU_LEVELS(AJOUR_ROW)
#undef AJOUR_ROW
  }
  return "?";
}

/// A table row with its function; the function type follows from the op.
struct NativeKernel {
  ajour_kernel_row row;
  void (*function)();

  template <typename Fn> Fn *as() const { return reinterpret_cast<Fn *>(function); }
};

inline std::ostream &operator<<(std::ostream &os, const NativeKernel &kernel) { return os << kernel.row.symbol; }

inline std::vector<NativeKernel> nativeKernels(ajour_kernel_op op) {
  std::vector<NativeKernel> kernels;
#define AJOUR_ROW(op_, symbol, level, mr, nr, kr, lhs, rhs, acc)                                                 \
  if (AJOUR_KERNEL_##op_ == op)                                                                                  \
    kernels.push_back({{op, #symbol, AJOUR_LEVEL_##level, mr, nr, kr, AJOUR_##lhs, AJOUR_##rhs, AJOUR_##acc},    \
                       reinterpret_cast<void (*)()>(&symbol)});
  AJOUR_CPU_KERNELS_NATIVE(AJOUR_ROW)
  AJOUR_GEMM_SPARSE_KERNELS_NATIVE(AJOUR_ROW)
  AJOUR_GEMV_KERNELS_NATIVE(AJOUR_ROW)
  AJOUR_WINOGRAD_KERNELS_NATIVE(AJOUR_ROW)
  AJOUR_UNPACK_KERNELS_NATIVE(AJOUR_ROW)
  AJOUR_ATTENTION_KERNELS_NATIVE(AJOUR_ROW)
#undef AJOUR_ROW
  return kernels;
}

/// First statement of a test on a kernel.
#define AJOUR_SKIP_UNLESS_CPU_HAS(kernel)                                                           \
  if (!ajour::test::cpuHas((kernel).row.level))                                                     \
  GTEST_SKIP() << "this CPU lacks the level '" << ajour::test::levelName((kernel).row.level) << "'"

} // namespace ajour::test

#endif
