// CPU levels and core counts.
#include <filesystem>
#include <unistd.h>

#include "Cpu.h"
#include "Fixture.h"

using namespace ajour::test;
using namespace ajour::runtime;

namespace {

/// A directory in the form of /sys/devices/system/cpu.
class FakeCpus {
public:
  FakeCpus() : root(temporaryPath("cpus")) { std::filesystem::create_directories(root); }
  ~FakeCpus() { std::filesystem::remove_all(root); }
  void add(const std::string &file, uint64_t value, int count, int threadsPerCore = 1) {
    for (int i = 0; i < count; ++i, ++next) {
      std::string cpu = root + "/cpu" + std::to_string(next);
      std::filesystem::create_directories(cpu + "/cpufreq");
      std::filesystem::create_directories(cpu + "/topology");
      if (!file.empty())
        writeFile(cpu + "/" + file, std::to_string(value) + "\n");
      int first = next - next % threadsPerCore;
      writeFile(cpu + "/topology/thread_siblings_list",
                threadsPerCore == 1 ? std::to_string(next)
                                    : std::to_string(first) + "-" + std::to_string(first + threadsPerCore - 1));
    }
  }
  uint32_t cores() const { return performanceCores(root.c_str(), false); }

private:
  std::string root;
  int next = 0;
};

const std::string capacity = "cpu_capacity", frequency = "cpufreq/cpuinfo_max_freq";

} // namespace

TEST(Topology, FourAndFour) {
  FakeCpus cpus;
  cpus.add(capacity, 381, 4);
  cpus.add(capacity, 1024, 4);
  EXPECT_EQ(cpus.cores(), 4u);
}

TEST(Topology, OneThreeAndFour) {
  FakeCpus cpus;
  cpus.add(capacity, 250, 4);
  cpus.add(capacity, 800, 3);
  cpus.add(capacity, 1024, 1);
  EXPECT_EQ(cpus.cores(), 4u);
}

TEST(Topology, TwoAndSix) {
  FakeCpus cpus;
  cpus.add(capacity, 320, 6);
  cpus.add(capacity, 1024, 2);
  EXPECT_EQ(cpus.cores(), 2u);
}

TEST(Topology, FrequenciesWithoutCapacities) {
  FakeCpus cpus;
  cpus.add(frequency, 1804800, 4);
  cpus.add(frequency, 2419200, 3);
  cpus.add(frequency, 2841600, 1);
  EXPECT_EQ(cpus.cores(), 4u);
}

TEST(Topology, EqualCoresAllCount) {
  FakeCpus cpus;
  cpus.add("", 0, 6);
  EXPECT_EQ(cpus.cores(), 6u);
}

TEST(Topology, HardwareThreadsCountOnce) {
  FakeCpus cpus;
  cpus.add(frequency, 4000000, 8, 2);
  EXPECT_EQ(cpus.cores(), 4u);
}

TEST(Topology, NothingThere) {
  EXPECT_EQ(performanceCores("/no/such/directory", false), 1u);
  EXPECT_GE(ajour_cpu_performance_cores(), 1u);
}

TEST(Cpu, Levels) {
  EXPECT_EQ(findLevel("no such level"), nullptr);
  EXPECT_EQ(findLevel(0u), nullptr);
  ASSERT_NE(findLevel("avx512vnni"), nullptr);
  EXPECT_EQ(findLevel("avx512vnni")->id, (uint32_t)AJOUR_LEVEL_avx512vnni);
  EXPECT_EQ(bestLevel(AJOUR_ARCH_X86_64, 0), nullptr);
  EXPECT_STREQ(bestLevel(AJOUR_ARCH_X86_64, AJOUR_CPU_SET_AVX2)->name, "avx2");
  EXPECT_STREQ(bestLevel(AJOUR_ARCH_X86_64, AJOUR_CPU_SET_AVX512)->name, "avx512");
  EXPECT_STREQ(bestLevel(AJOUR_ARCH_AARCH64, AJOUR_CPU_SET_I8MM)->name, "i8mm");
  EXPECT_STREQ(bestLevel(AJOUR_ARCH_AARCH64, AJOUR_CPU_SET_NEON | AJOUR_CPU_I8MM)->name, "neon");
}

TEST(Cpu, DetectionAgreesWithTheSystem) {
  std::string info = readFile("/proc/cpuinfo");
  uint64_t features = ajour_cpu_feature_bits();
#if defined(__x86_64__)
  auto has = [&](const char *flag) { return info.find(std::string(" ") + flag + " ") != std::string::npos; };
  EXPECT_EQ((features & AJOUR_CPU_AVX2) != 0, has("avx2"));
  EXPECT_EQ((features & AJOUR_CPU_FMA) != 0, has("fma"));
  EXPECT_EQ((features & AJOUR_CPU_AVX512F) != 0, has("avx512f"));
  EXPECT_EQ((features & AJOUR_CPU_AVX512VNNI) != 0, has("avx512_vnni"));
#else
  EXPECT_NE(features & AJOUR_CPU_NEON, 0u);
#endif
}
