#include "Cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace ajour::runtime {

static const CpuLevel levels[] = {
#define AJOUR_ROW(id, name, arch, features, cpu, attrs) {id, #name, arch, features},
    AJOUR_CPU_LEVELS(AJOUR_ROW)
#undef AJOUR_ROW
};

uint32_t hostArch() {
#if defined(__x86_64__)
  return AJOUR_ARCH_X86_64;
#elif defined(__aarch64__)
  return AJOUR_ARCH_AARCH64;
#else
  return 0;
#endif
}

const char *archName(uint32_t arch) {
  return arch == AJOUR_ARCH_X86_64 ? "x86-64" : arch == AJOUR_ARCH_AARCH64 ? "aarch64" : "unknown";
}

#if defined(__x86_64__)
/// The state that the operating system saves (XCR0).
static uint64_t savedState() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

uint64_t hostFeatures() {
  uint32_t a, b, c, d, b7, c7, extended = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1))
    return 0;
  uint32_t basic = c;
  if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d))
    return 0;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d))
    extended = c;
  uint64_t saved = savedState();
  if ((saved & 0x06) != 0x06 || !(basic >> 28 & 1))
    return 0;
  uint64_t features = 0;
  auto add = [&](bool present, uint64_t bit) { features |= present ? bit : 0; };
  add(b7 >> 5 & 1, AJOUR_CPU_AVX2);
  add(basic >> 12 & 1, AJOUR_CPU_FMA);
  add(basic >> 29 & 1, AJOUR_CPU_F16C);
  // Code for x86-64-v3 may also use BMI1, LZCNT and MOVBE; they come together with BMI2.
  add((b7 >> 8 & 1) && (b7 >> 3 & 1) && (extended >> 5 & 1) && (basic >> 22 & 1), AJOUR_CPU_BMI2);
  if ((saved & 0xe6) == 0xe6 && (b7 >> 16 & 1)) {
    add(true, AJOUR_CPU_AVX512F);
    add(b7 >> 17 & 1, AJOUR_CPU_AVX512DQ);
    add(b7 >> 28 & 1, AJOUR_CPU_AVX512CD);
    add(b7 >> 30 & 1, AJOUR_CPU_AVX512BW);
    add(b7 >> 31 & 1, AJOUR_CPU_AVX512VL);
    add(c7 >> 1 & 1, AJOUR_CPU_AVX512VBMI);
    add(c7 >> 11 & 1, AJOUR_CPU_AVX512VNNI);
  }
  return features;
}
#elif defined(__aarch64__) && defined(__linux__)
uint64_t hostFeatures() {
  unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  uint64_t features = 0;
  auto add = [&](bool present, uint64_t bit) { features |= present ? bit : 0; };
  add(first >> 1 & 1, AJOUR_CPU_NEON);     // HWCAP_ASIMD
  add(first >> 20 & 1, AJOUR_CPU_DOTPROD); // HWCAP_ASIMDDP
  add(first >> 10 & 1, AJOUR_CPU_FP16);    // HWCAP_ASIMDHP
  add(second >> 13 & 1, AJOUR_CPU_I8MM);   // HWCAP2_I8MM
  return features;
}
#elif defined(__aarch64__)
uint64_t hostFeatures() { return AJOUR_CPU_NEON; }
#else
uint64_t hostFeatures() { return 0; }
#endif

const CpuLevel *findLevel(uint32_t id) {
  for (const CpuLevel &level : levels)
    if (level.id == id)
      return &level;
  return nullptr;
}

const CpuLevel *findLevel(const char *name) {
  for (const CpuLevel &level : levels)
    if (std::strcmp(level.name, name) == 0)
      return &level;
  return nullptr;
}

const CpuLevel *bestLevel(uint32_t arch, uint64_t features) {
  const CpuLevel *best = nullptr;
  for (const CpuLevel &level : levels)
    if (level.arch == arch && (level.features & ~features) == 0)
      best = &level;
  return best;
}

} // namespace ajour::runtime
