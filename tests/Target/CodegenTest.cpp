//===- CodegenTest.cpp - code of small dispatch modules -------------------===//
#include "Harness.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

using namespace ajour;
using namespace ajour::test;

namespace {

/// out[i] = a[i] + b[i] for begin <= i < end, as a scalar loop that LLVM has to vectorise.
const char *addModule = R"(
func.func @add(%buffers: !llvm.ptr, %dims: !llvm.ptr, %scratch: !llvm.ptr, %begin: i64, %end: i64) {
  %a = llvm.load %buffers : !llvm.ptr -> !llvm.ptr
  %pb = llvm.getelementptr %buffers[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %b = llvm.load %pb : !llvm.ptr -> !llvm.ptr
  %pc = llvm.getelementptr %buffers[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %c = llvm.load %pc : !llvm.ptr -> !llvm.ptr
  func.call @body(%a, %b, %c, %begin, %end) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64) -> ()
  return
}
func.func private @body(%a: !llvm.ptr {llvm.noalias}, %b: !llvm.ptr {llvm.noalias}, %c: !llvm.ptr {llvm.noalias},
                        %begin: i64, %end: i64) attributes {passthrough = ["alwaysinline"]} {
  %one = arith.constant 1 : i64
  scf.for %i = %begin to %end step %one : i64 {
    %qa = llvm.getelementptr %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %qb = llvm.getelementptr %b[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %qc = llvm.getelementptr %c[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %x = llvm.load %qa : !llvm.ptr -> f32
    %y = llvm.load %qb : !llvm.ptr -> f32
    %p = arith.mulf %x, %y : f32
    %z = arith.addf %p, %y : f32
    llvm.store %z, %qc : f32, !llvm.ptr
  }
  return
}
)";

TEST(CpuTarget, EveryLevelGivesSelfContainedCode) {
  Session session;
  for (const CpuLevelInfo &level : cpuLevels()) {
    auto code = session.emit(addModule, level.level);
    ASSERT_TRUE(succeeded(code)) << level.name << ": " << session.takeErrors();
    Symbols symbols = readSymbols(code->sharedObject);
    EXPECT_EQ(symbols.defined, std::vector<std::string>{"add"}) << level.name;
    EXPECT_TRUE(symbols.undefined.empty()) << level.name << ": " << symbols.undefined.front();
  }
}

TEST(CpuTarget, RunsNatively) {
  Session session;
  std::vector<float> a(1000), b(1000), c(1000);
  std::iota(a.begin(), a.end(), 0.5f);
  std::iota(b.begin(), b.end(), -300.0f);
  for (ajour_cpu_level level : runnableLevels()) {
    auto code = session.emit(addModule, level);
    ASSERT_TRUE(succeeded(code)) << session.takeErrors();
    Loaded loaded(code->sharedObject);
    ajour_dispatch_fn add = loaded.find("add");
    ASSERT_NE(add, nullptr);
    std::fill(c.begin(), c.end(), -1.0f);
    void *buffers[] = {a.data(), b.data(), c.data()};
    add(buffers, nullptr, nullptr, 3, 999);
    for (int i = 0; i < 1000; ++i)
      ASSERT_EQ(c[i], i < 3 || i == 999 ? -1.0f : a[i] * b[i] + b[i]) << i;
  }
}

TEST(CpuTarget, LoopsAreVectorised) {
  Session session;
  CpuEmitOptions options;
  options.wantAssembly = true;
  auto assembly = [&](ajour_cpu_level level) {
    auto code = session.emit(addModule, level, options);
    return succeeded(code) ? code->assembly : session.takeErrors();
  };
  std::string avx2 = assembly(AJOUR_LEVEL_avx2), avx512 = assembly(AJOUR_LEVEL_avx512), neon = assembly(AJOUR_LEVEL_neon);
  EXPECT_TRUE(avx2.find("vfmadd") != std::string::npos && avx2.find("%ymm") != std::string::npos) << avx2;
  EXPECT_EQ(avx2.find("%zmm"), std::string::npos);
  EXPECT_TRUE(avx512.find("vfmadd") != std::string::npos && avx512.find("%zmm") != std::string::npos) << avx512;
  EXPECT_TRUE(neon.find("fmla\tv") != std::string::npos) << neon;
  options.contract = false;
  avx2 = assembly(AJOUR_LEVEL_avx2), neon = assembly(AJOUR_LEVEL_neon);
  EXPECT_TRUE(avx2.find("vfmadd") == std::string::npos && avx2.find("vmulps") != std::string::npos) << avx2;
  EXPECT_TRUE(neon.find("fmla\tv") == std::string::npos && neon.find("fmul\tv") != std::string::npos) << neon;
}

} // namespace
