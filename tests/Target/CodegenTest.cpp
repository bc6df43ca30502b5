//===- CodegenTest.cpp - code of small dispatch modules -------------------===//
#include "Harness.h"

#include "ajour/Kernels/Kernels.h"

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


/// A module whose dispatch has the given body.
std::string withBody(const std::string &body, const std::string &rest = "") {
  return "func.func @f(%buffers: !llvm.ptr, %dims: !llvm.ptr, %scratch: !llvm.ptr, %begin: i64, %end: i64) {\n" + body +
         "\nreturn\n}\n" + rest;
}

std::string errorOf(const std::string &text, ajour_cpu_level level, const CpuEmitOptions &options = {}) {
  Session session;
  auto code = session.emit(text, level, options);
  EXPECT_TRUE(failed(code));
  return session.takeErrors();
}

const char *loadBuffers = R"(
  %a = llvm.load %buffers : !llvm.ptr -> !llvm.ptr
  %pb = llvm.getelementptr %buffers[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %b = llvm.load %pb : !llvm.ptr -> !llvm.ptr
  %pc = llvm.getelementptr %buffers[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %c = llvm.load %pc : !llvm.ptr -> !llvm.ptr
)";

TEST(CpuTarget, KernelIsInlined) {
  // acc[r][j] = sum over p of lhs[r][p] * rhs[p][j], 2 rows, 32 columns, k = 3.
  std::string text = withBody(std::string(loadBuffers) + R"(
  %m = arith.constant 2 : i64
  %k = arith.constant 3 : i64
  func.call @ajour_gemm_f32_f32_f32_6x32x1_avx2(%a, %k, %b, %c, %m, %k) : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr, i64, i64) -> ()
)",
                              "func.func private @ajour_gemm_f32_f32_f32_6x32x1_avx2(!llvm.ptr, i64, !llvm.ptr, !llvm.ptr, i64, i64)");
  Session session;
  for (ajour_cpu_level level : {AJOUR_LEVEL_avx2, AJOUR_LEVEL_avx512, AJOUR_LEVEL_avx512vnni}) {
    auto code = session.emit(text, level);
    ASSERT_TRUE(succeeded(code)) << session.takeErrors();
    EXPECT_EQ(readSymbols(code->sharedObject).defined, std::vector<std::string>{"f"});
    if (!cpuHas(level))
      continue;
    std::vector<float> lhs(6 + 64), rhs(96 + 64), acc(6 * 32);
    std::iota(lhs.begin(), lhs.end(), 1.0f);
    std::iota(rhs.begin(), rhs.end(), -5.0f);
    void *buffers[] = {lhs.data(), rhs.data(), acc.data()};
    Loaded loaded(code->sharedObject);
    loaded.find("f")(buffers, nullptr, nullptr, 0, 1);
    for (int r = 0; r < 2; ++r)
      for (int j = 0; j < 32; ++j)
        EXPECT_EQ(acc[r * 32 + j], lhs[r * 3] * rhs[j] + lhs[r * 3 + 1] * rhs[32 + j] + lhs[r * 3 + 2] * rhs[64 + j]);
  }
}

/// The types of a kernel's operands as MLIR writes them, and values of them in `loadBuffers` and for numbers in `realOperand`.
const char *realOperand = "%real = arith.constant 1.0 : f32\n";
template <typename Function> struct Signature;
template <typename... Operands> struct Signature<void(Operands...)> {
  std::string types, values;
  Signature() { (add<Operands>(), ...); }
  template <typename Operand> void add() {
    const char *separator = types.empty() ? "" : ", ";
    bool isPointer = std::is_pointer_v<Operand>, isReal = std::is_floating_point_v<Operand>;
    types += separator + std::string(isPointer ? "!llvm.ptr" : isReal ? "f32" : "i64");
    values += separator + std::string(isPointer ? "%a" : isReal ? "%real" : "%end");
  }
};

TEST(CpuTarget, EveryKernelLinksAtItsLevel) {
  struct Kernel {
    const char *symbol;
    ajour_cpu_level level;
    std::string types, values;
  };
  std::vector<Kernel> kernels;
#define AJOUR_ROW(op, symbol, level, mr, nr, kr, lhs, rhs, acc) \
  if (Signature<ajour_##op##_fn> s; true)                       \
    kernels.push_back({#symbol, AJOUR_LEVEL_##level, s.types, s.values});
  AJOUR_CPU_KERNELS_X86_64(AJOUR_ROW)
  AJOUR_CPU_KERNELS_AARCH64(AJOUR_ROW)
  AJOUR_GEMM_SPARSE_KERNELS_X86_64(AJOUR_ROW)
  AJOUR_GEMM_SPARSE_KERNELS_AARCH64(AJOUR_ROW)
  AJOUR_GEMV_KERNELS_X86_64(AJOUR_ROW)
  AJOUR_GEMV_KERNELS_AARCH64(AJOUR_ROW)
  AJOUR_WINOGRAD_KERNELS_X86_64(AJOUR_ROW)
  AJOUR_WINOGRAD_KERNELS_AARCH64(AJOUR_ROW)
  AJOUR_UNPACK_KERNELS_X86_64(AJOUR_ROW)
  AJOUR_UNPACK_KERNELS_AARCH64(AJOUR_ROW)
  AJOUR_ATTENTION_KERNELS_X86_64(AJOUR_ROW)
  AJOUR_ATTENTION_KERNELS_AARCH64(AJOUR_ROW)
#undef AJOUR_ROW
  ASSERT_EQ(int32_t(kernels.size()), ajour_kernel_count());
  for (const Kernel &kernel : kernels) {
    std::string name = std::string("@") + kernel.symbol;
    Session session;
    auto code = session.emit(withBody(std::string(loadBuffers) + realOperand + "func.call " + name + "(" + kernel.values + ") : (" + kernel.types + ") -> ()",
                                      "func.func private " + name + "(" + kernel.types + ")"),
                             kernel.level);
    ASSERT_TRUE(succeeded(code)) << kernel.symbol << ": " << session.takeErrors();
    EXPECT_TRUE(readSymbols(code->sharedObject).undefined.empty()) << kernel.symbol;
  }
}

TEST(CpuTarget, BadKernelsAreRefused) {
  auto call = [](const std::string &name, const std::string &types, const std::string &operands) {
    return withBody("func.call @" + name + "(" + operands + ") : (" + types + ") -> ()",
                    "func.func private @" + name + "(" + types + ")");
  };
  EXPECT_NE(errorOf(call("ajour_nothing", "i64", "%begin"), AJOUR_LEVEL_avx2)
                .find("no kernel is called 'ajour_nothing' for the architecture of level 'avx2'"),
            std::string::npos);
  std::string error = errorOf(call("ajour_gemm_f32_f32_f32_6x32x1_avx2", "i64", "%begin"), AJOUR_LEVEL_avx2);
  EXPECT_NE(error.find("is declared as void (i64), expected void (ptr, i64, ptr, ptr, i64, i64)"), std::string::npos) << error;
  error = errorOf(call("ajour_gemm_f32_f32_f32_14x32x1_avx512", "!llvm.ptr, i64, !llvm.ptr, !llvm.ptr, i64, i64",
                       "%buffers, %begin, %dims, %scratch, %begin, %end"),
                  AJOUR_LEVEL_avx2);
  EXPECT_NE(error.find("needs CPU feature 'avx512"), std::string::npos) << error;
  EXPECT_NE(error.find("which level 'avx2' does not have"), std::string::npos) << error;
}

TEST(CpuTarget, BadModulesAreRefused) {
  EXPECT_NE(errorOf("func.func @f(%a: i64) { return }", AJOUR_LEVEL_avx2)
                .find("dispatch 'f' has type '(i64) -> ()', expected (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64)"),
            std::string::npos);
  EXPECT_NE(errorOf("", AJOUR_LEVEL_avx2).find("no dispatch function"), std::string::npos);
  EXPECT_NE(errorOf(addModule, ajour_cpu_level(99)).find("CPU level 99 is not known"), std::string::npos);
  CpuEmitOptions ios;
  ios.platform = CpuPlatform::IOS;
  EXPECT_NE(errorOf(addModule, AJOUR_LEVEL_neon, ios).find("for iOS only objects"), std::string::npos);
}

/// An instruction that the level lacks ends LLVM's code generation in a fatal error; here it must not end
/// the process, and the next call must work.
TEST(CpuTarget, FailureInsideLLVMIsAnError) {
  std::string text = withBody(R"(
  %acc = llvm.load %buffers : !llvm.ptr -> vector<16xi32>
  %x = llvm.load %dims : !llvm.ptr -> vector<64xi8>
  %r = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%acc, %x, %x) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
  llvm.store %r, %scratch : vector<16xi32>, !llvm.ptr
)");
  std::string error = errorOf(text, AJOUR_LEVEL_avx2);
  EXPECT_NE(error.find("LLVM failed for level 'avx2': "), std::string::npos) << error;
  Session session;
  EXPECT_TRUE(succeeded(session.emit(text, AJOUR_LEVEL_avx512vnni))) << session.takeErrors();
}

TEST(CpuTarget, MemoryOperationsAreNotCalled) {
  Session session;
  // A clearing loop, which LLVM knows as memset, and explicit operations of variable and constant size.
  std::string text = withBody(std::string(loadBuffers) + R"(
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : i8
  %fixed = arith.constant 1000 : i64
  scf.for %i = %begin to %end step %one : i64 {
    %q = llvm.getelementptr %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    llvm.store %zero, %q : i8, !llvm.ptr
  }
  "llvm.intr.memcpy"(%b, %c, %end) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  "llvm.intr.memset"(%c, %zero, %fixed) <{isVolatile = false}> : (!llvm.ptr, i8, i64) -> ()
  "llvm.intr.memmove"(%a, %b, %end) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
)");
  for (const CpuLevelInfo &level : cpuLevels()) {
    auto code = session.emit(text, level.level);
    ASSERT_TRUE(succeeded(code)) << level.name << ": " << session.takeErrors();
  }
}

TEST(CpuTarget, StaticObjectsOfPhones) {
  Session session;
  auto module = session.parse(addModule);
  CpuEmitOptions options;
  options.platform = CpuPlatform::IOS;
  StaticLevel neon = {*module, AJOUR_LEVEL_neon}, dotprod = {*module, AJOUR_LEVEL_dotprod}, avx2 = {*module, AJOUR_LEVEL_avx2};
  auto ios = emitStaticObject({neon, dotprod}, "net_code", options);
  ASSERT_TRUE(succeeded(ios)) << session.takeErrors();
  EXPECT_EQ(std::string(ios->object.data(), 4), "\xcf\xfa\xed\xfe");
  options.platform = CpuPlatform::Android;
  auto android = emitStaticObject({neon, dotprod}, "net_code", options);
  ASSERT_TRUE(succeeded(android)) << session.takeErrors();
  EXPECT_EQ(std::string(android->object.data(), 4), "\x7f" "ELF");
  auto one = emitStaticObject({dotprod}, "net_code", options);
  ASSERT_TRUE(succeeded(one)) << session.takeErrors();
  EXPECT_NE(one->identity, android->identity);
  EXPECT_EQ(emitStaticObject({dotprod}, "net_code", options)->object, one->object);
  EXPECT_TRUE(failed(emitStaticObject({avx2, neon}, "net_code", options)));
  EXPECT_NE(session.takeErrors().find("a static object is for one architecture"), std::string::npos);
  options.platform = CpuPlatform::IOS;
  EXPECT_TRUE(failed(emitStaticObject({avx2}, "net_code", options)));
  EXPECT_NE(session.takeErrors().find("for iOS only objects of an aarch64 level can be made"), std::string::npos);
}

TEST(CpuTarget, ThreadsShareAContext) {
  Session session;
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
  for (int i = 0; i < 4; ++i)
    modules.push_back(session.parse(addModule));
  auto expected = emitCpuCode(*modules[0], AJOUR_LEVEL_avx512);
  ASSERT_TRUE(succeeded(expected));
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) {
        auto code = emitCpuCode(*modules[i], AJOUR_LEVEL_avx512);
        wrong[i] += failed(code) || code->object != expected->object || code->sharedObject != expected->sharedObject;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

} // namespace
