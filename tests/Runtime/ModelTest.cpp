// Loading: every way in, every refusal, the choice of variants.
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "Fixture.h"

using namespace ajour;
using namespace ajour::test;

static std::vector<float> runAffine(ajour_model *model) {
  Session session(model);
  EXPECT_EQ(session.set(0, ramp(3, 1, 1), {3, 4}), AJOUR_OK) << ajour_last_message();
  EXPECT_EQ(session.set(1, ramp(3, 2, 3), {3, 4}), AJOUR_OK) << ajour_last_message();
  EXPECT_EQ(ajour_session_run(session.handle), AJOUR_OK) << ajour_last_message();
  return session.output();
}

TEST(Load, AllModesGiveTheSame) {
  const std::string bytes = makeAffine().bytes();
  const std::vector<float> expected = affine(ramp(3, 1, 1), ramp(3, 2, 3));
  std::string path = temporaryPath("modes.ajour");
  writeFile(path, bytes);
  ajour_model *model = nullptr;
  ajour_model_info info = AJOUR_INIT(ajour_model_info);
  for (uint32_t flags : {0, (int)AJOUR_LOAD_COPY, (int)AJOUR_LOAD_SKIP_WEIGHT_CHECKSUMS}) {
    ajour_load_options options = AJOUR_INIT(ajour_load_options);
    options.flags = flags;
    ASSERT_DONE(ajour_model_load_file(path.c_str(), &options, &model));
    ASSERT_DONE(ajour_model_get_info(model, &info));
    EXPECT_EQ(info.mapped, !(flags & AJOUR_LOAD_COPY));
    EXPECT_EQ(runAffine(model), expected);
    ajour_model_destroy(model);
  }
  // Inside another file, at offsets that can and cannot be mapped, with bytes behind it.
  for (size_t offset : {65536, 100}) {
    writeFile(path, std::string(offset, 'x') + bytes + "tail");
    int fd = open(path.c_str(), O_RDONLY);
    ASSERT_GE(fd, 0);
    for (uint64_t size : {uint64_t(0), uint64_t(bytes.size())}) {
      ASSERT_DONE(ajour_model_load_fd(fd, offset, size, nullptr, &model));
      ASSERT_DONE(ajour_model_get_info(model, &info));
      EXPECT_EQ(info.mapped, offset % 65536 == 0);
      EXPECT_EQ(runAffine(model), expected);
      ajour_model_destroy(model);
    }
    close(fd);
  }
  unlink(path.c_str());
  for (size_t shift : {0, 1}) {
    void *memory = nullptr;
    ASSERT_EQ(posix_memalign(&memory, 64, bytes.size() + 1), 0);
    char *data = static_cast<char *>(memory) + shift;
    std::memcpy(data, bytes.data(), bytes.size());
    ASSERT_DONE(ajour_model_load_memory(data, bytes.size(), nullptr, &model));
    EXPECT_EQ(runAffine(model), expected);
    ajour_model_destroy(model);
    free(memory);
  }
}

TEST(Load, Description) {
  Loaded loaded = loadBytes(makeAffine().bytes());
  ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
  ajour_model_info info = AJOUR_INIT(ajour_model_info);
  ASSERT_DONE(ajour_model_get_info(loaded.model, &info));
  EXPECT_STREQ(info.compiler, "0.1.0");
  EXPECT_STREQ(info.source, "affine.onnx");
  EXPECT_STREQ(info.arch, hostName);
  EXPECT_STREQ(info.cpu_level, lowName);
  EXPECT_EQ(info.file_bytes, loaded.bytes.size());
  EXPECT_EQ(info.weight_bytes, 16u);
  EXPECT_GT(info.code_bytes, 0u);
  EXPECT_EQ(info.input_count, 2u);
  EXPECT_EQ(info.dispatch_count, 2u);
  ajour_tensor_info tensor = AJOUR_INIT(ajour_tensor_info);
  ASSERT_DONE(ajour_model_input(loaded.model, 1, &tensor));
  EXPECT_STREQ(tensor.name, "y");
  EXPECT_EQ(tensor.element_type, (uint32_t)AJOUR_F32);
  ASSERT_EQ(tensor.rank, 2u);
  EXPECT_EQ(tensor.dims[0], -1);
  EXPECT_STREQ(tensor.dim_names[0], "N");
  EXPECT_EQ(tensor.dim_min[0], 0);
  EXPECT_EQ(tensor.dim_max[0], 64);
  EXPECT_EQ(tensor.dims[1], 4);
  EXPECT_EQ(tensor.dim_max[1], 4);
  EXPECT_EQ(ajour_model_find_input(loaded.model, "y"), 1);
  EXPECT_EQ(ajour_model_find_input(loaded.model, "z"), -1);
  EXPECT_EQ(ajour_model_find_output(loaded.model, "z"), 0);
  ajour_dispatch_info dispatch = AJOUR_INIT(ajour_dispatch_info);
  ASSERT_DONE(ajour_model_dispatch(loaded.model, 1, &dispatch));
  EXPECT_STREQ(dispatch.name, "scaled");
  EXPECT_EQ(dispatch.node_count, 2u);
  EXPECT_STREQ(ajour_model_dispatch_node(loaded.model, 1, 1), "Mul_2");
  EXPECT_EQ(ajour_model_dispatch_node(loaded.model, 1, 2), nullptr);
  ajour_symbol_info symbol = AJOUR_INIT(ajour_symbol_info);
  ASSERT_DONE(ajour_model_symbol(loaded.model, 0, &symbol));
  EXPECT_STREQ(symbol.name, "N");
}

// A caller compiled against a shorter structure gets what it knows, and nothing behind it is touched.
TEST(Load, StructuresMayGrow) {
  Loaded loaded = loadBytes(makeAffine().bytes());
  ajour_tensor_info tensor;
  std::memset(&tensor, 0x77, sizeof(tensor));
  tensor.struct_size = offsetof(ajour_tensor_info, rank);
  ASSERT_DONE(ajour_model_input(loaded.model, 0, &tensor));
  EXPECT_STREQ(tensor.name, "x");
  EXPECT_EQ(tensor.rank, 0x77777777u);
  tensor.struct_size = 0;
  EXPECT_STATUS(ajour_model_input(loaded.model, 0, &tensor), AJOUR_INVALID_ARGUMENT, "struct_size of the result is 0");
  ajour_load_options options = {};
  EXPECT_STATUS(ajour_model_load_file("x", &options, &loaded.model), AJOUR_INVALID_ARGUMENT,
                "struct_size of the options is 0");
}

TEST(Load, Arguments) {
  ajour_model *model = nullptr;
  EXPECT_STATUS(ajour_model_load_file(nullptr, nullptr, &model), AJOUR_INVALID_ARGUMENT, "'path' is null");
  EXPECT_STATUS(ajour_model_load_file("/no/such/file.ajour", nullptr, &model), AJOUR_IO,
                "/no/such/file.ajour: cannot open the file: No such file");
  EXPECT_STATUS(ajour_model_load_file("/tmp", nullptr, &model), AJOUR_IO, "/tmp: not a regular file");
  EXPECT_STATUS(ajour_model_load_fd(-1, 0, 0, nullptr, &model), AJOUR_IO, "artifact: cannot examine the file");
  ajour_load_options options = AJOUR_INIT(ajour_load_options);
  options.flags = 64;
  EXPECT_STATUS(ajour_model_load_file("x", &options, &model), AJOUR_INVALID_ARGUMENT, "unknown option flags 0x40");
  std::string path = temporaryPath("range.ajour");
  writeFile(path, "0123456789");
  int fd = open(path.c_str(), O_RDONLY);
  EXPECT_STATUS(ajour_model_load_fd(fd, 5, 100, nullptr, &model), AJOUR_IO,
                "offset 5 and size 100 lie outside the file of 10 bytes");
  EXPECT_STATUS(ajour_model_load_fd(fd, 50, 0, nullptr, &model), AJOUR_IO, "lie outside the file");
  close(fd);
  unlink(path.c_str());
  Loaded loaded = loadBytes(makeAffine().bytes());
  ajour_tensor_info tensor = AJOUR_INIT(ajour_tensor_info);
  ajour_dispatch_info dispatch = AJOUR_INIT(ajour_dispatch_info);
  ajour_symbol_info symbol = AJOUR_INIT(ajour_symbol_info);
  EXPECT_STATUS(ajour_model_input(loaded.model, 2, &tensor), AJOUR_INVALID_ARGUMENT, "there is no input 2; the model has 2");
  EXPECT_STATUS(ajour_model_output(loaded.model, 1, &tensor), AJOUR_INVALID_ARGUMENT, "there is no output 1");
  EXPECT_STATUS(ajour_model_dispatch(loaded.model, 9, &dispatch), AJOUR_INVALID_ARGUMENT, "there is no dispatch 9");
  EXPECT_STATUS(ajour_model_symbol(loaded.model, 1, &symbol), AJOUR_INVALID_ARGUMENT, "there is no symbol 1");
  ajour_model_destroy(nullptr);
  EXPECT_STREQ(ajour_status_text(AJOUR_CANCELLED), "the run was cancelled");
  EXPECT_STREQ(ajour_status_text(12345), "unknown status");
  EXPECT_STREQ(ajour_version(), "0.1.0");
}

TEST(Load, Budget) {
  ajour_load_options options = AJOUR_INIT(ajour_load_options);
  options.memory_budget = 1000;
  Loaded loaded = loadBytes(makeAffine().bytes(), options);
  EXPECT_EQ(loaded.status, AJOUR_OUT_OF_MEMORY);
  EXPECT_NE(loaded.message.find("bytes for weights, code and description; the budget is 1000"), std::string::npos);
  options.memory_budget = 1 << 20;
  EXPECT_EQ(loadBytes(makeAffine().bytes(), options).status, AJOUR_OK);
}

// ---- Variants --------------------------------------------------------------------------------------

/// Two levels of one dispatch that tells its level: 0 or 1.
static TestModel makeLevels() {
  TestModel model = makeAffine();
  model.addExecutable("level1", highLevel);
  auto &variants = model.program().dispatches[1]->variants;
  variants.clear();
  artifact::DispatchT &dispatch = *model.program().dispatches[1];
  model.addVariant(dispatch, highLevel, highFeatures, 1, "test_level_of_code", {2, 4}, symbol(0));
  model.addVariant(dispatch, lowLevel, lowFeatures, 0, "test_level_of_code", {2, 4}, symbol(0));
  return model;
}

static bool hostHas(uint64_t features) { return (features & ~ajour_cpu_feature_bits()) == 0; }

TEST(Variants, FirstThatHoldsAndForced) {
  if (!hostHas(highFeatures))
    GTEST_SKIP() << "this CPU lacks " << highName;
  std::string bytes = makeLevels().bytes();
  EXPECT_EQ(runAffine(loadBytes(bytes).model)[0], 1);
  for (auto [name, value] : {std::pair{lowName, 0}, {highName, 1}}) {
    ajour_load_options options = AJOUR_INIT(ajour_load_options);
    options.cpu_level = name;
    Loaded loaded = loadBytes(bytes, options);
    ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
    ajour_model_info info = AJOUR_INIT(ajour_model_info);
    ajour_model_get_info(loaded.model, &info);
    EXPECT_STREQ(info.cpu_level, name);
    EXPECT_EQ(runAffine(loaded.model)[0], value);
    setenv("AJOUR_CPU", name, 1);
    EXPECT_EQ(runAffine(loadBytes(bytes).model)[0], value);
    unsetenv("AJOUR_CPU");
  }
}

// A level that adds nothing is left out of an artifact; asking for it gives the code below it.
TEST(Variants, ForcedLevelTakesLowerCode) {
  if (!hostHas(highFeatures))
    GTEST_SKIP() << "this CPU lacks " << highName;
  ajour_load_options options = AJOUR_INIT(ajour_load_options);
  options.cpu_level = highName;
  Loaded loaded = loadBytes(makeAffine().bytes(), options);
  ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
  ajour_model_info info = AJOUR_INIT(ajour_model_info);
  ajour_model_get_info(loaded.model, &info);
  EXPECT_STREQ(info.cpu_level, lowName);
}

// Code of a level that is not used is neither read nor loaded.
TEST(Variants, OnlyTheChosenCodeIsLoaded) {
  TestModel model = makeLevels();
  model.segmentBytes[model.program().executables[1]->segment] = "not code at all";
  ajour_load_options options = AJOUR_INIT(ajour_load_options);
  options.cpu_level = lowName;
  if (!hostHas(lowFeatures))
    GTEST_SKIP() << "this CPU lacks " << lowName;
  Loaded loaded = loadBytes(model.bytes(), options);
  ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
  EXPECT_EQ(runAffine(loaded.model)[0], 0);
}

TEST(Variants, Refused) {
  ajour_load_options options = AJOUR_INIT(ajour_load_options);
  auto expect = [&](TestModel model, ajour_status_code status, const std::string &message) {
    Loaded loaded = loadBytes(model.bytes(), options);
    EXPECT_EQ(loaded.status, status);
    EXPECT_NE(loaded.message.find(message), std::string::npos) << loaded.message;
  };
  options.cpu_level = "pentium";
  expect(makeAffine(), AJOUR_INVALID_ARGUMENT,
         std::string("the option cpu_level asks for 'pentium', which is no code level of ") + hostName);
  if (hostHas(highFeatures)) {
    options.cpu_level = lowName;
    TestModel high = makeAffine();
    high.program().executables[0]->level = highLevel;
    for (auto &dispatch : high.program().dispatches) {
      dispatch->variants[0]->level = highLevel;
      dispatch->variants[0]->features = highFeatures;
    }
    expect(std::move(high), AJOUR_NO_VARIANT, "the artifact has code for higher levels only");
  }
  options.cpu_level = nullptr;
  setenv("AJOUR_CPU", "sparc", 1);
  expect(makeAffine(), AJOUR_INVALID_ARGUMENT, "the environment variable AJOUR_CPU asks for 'sparc'");
  unsetenv("AJOUR_CPU");
  TestModel model = makeAffine();
  model.program().dispatches[0]->variants[0]->features = uint64_t(1) << 63;
  expect(std::move(model), AJOUR_NO_VARIANT, "dispatch 'sum' has no code for this CPU");
  model = makeAffine();
  model.program().arch = otherArch;
  for (auto &dispatch : model.program().dispatches)
    dispatch->variants[0]->level = otherArch == AJOUR_ARCH_X86_64 ? AJOUR_LEVEL_avx2 : AJOUR_LEVEL_neon;
  model.program().executables[0]->level = otherArch == AJOUR_ARCH_X86_64 ? AJOUR_LEVEL_avx2 : AJOUR_LEVEL_neon;
  expect(std::move(model), AJOUR_NO_VARIANT,
         std::string("has no code for ") + hostName + "; it has code for " + otherName);
}

// ---- Descriptions that are refused --------------------------------------------------------------------

static void expectBad(const std::function<void(TestModel &)> &change, const std::string &message,
                      ajour_status_code status = AJOUR_BAD_FILE) {
  TestModel model = makeAffine();
  change(model);
  Loaded loaded = loadBytes(model.bytes());
  EXPECT_EQ(loaded.status, status) << message;
  EXPECT_NE(loaded.message.find(message), std::string::npos) << "found: " << loaded.message << "\nexpected: " << message;
}

using M = TestModel;

TEST(Refused, Tensors) {
  expectBad([](M &m) { m.description.inputs[1]->name = "x"; }, "inputs[0] and inputs[1] have the same name 'x'");
  expectBad([](M &m) { m.description.inputs[1]->name = ""; }, "inputs[1].name is empty");
  expectBad([](M &m) { m.description.outputs[0]->name = std::string(5000, 'n'); }, "has 5000 bytes, allowed 4096");
  expectBad([](M &m) { m.description.outputs[0]->name = std::string("a\0b", 3); }, "contains a zero byte");
  expectBad([](M &m) { m.description.inputs[0]->element_type = 99; }, "inputs[0].element_type is 99, which is unknown");
  expectBad(
      [](M &m) {
        for (int i = 0; i < 7; ++i)
          m.description.outputs[0]->shape.push_back(expr(constant(1)));
      },
      "outputs[0].shape has 9 entries, allowed 0 to 8");
  expectBad([](M &m) { m.description.outputs[0]->shape[0] = expr(symbol(1)); },
            "expression outputs[0].shape names a symbol that does not exist");
}

TEST(Refused, TensorsAndBuffersDisagree) {
  expectBad([](M &m) { m.description.outputs[0]->shape[0] = expr(times(0, 2)); },
            "tensor 'z' takes 2048 bytes, but its buffer has 1024");
  expectBad([](M &m) { m.description.inputs[0]->buffer = 2; }, "buffer 2 of input 'x' is not an input buffer of its own");
  expectBad([](M &m) { m.description.inputs[0]->buffer = 1; }, "buffer 1 of input 'y' is not an input buffer of its own");
  expectBad([](M &m) { m.description.inputs[0]->buffer = 77; }, "buffer 77 of input 'x'");
  expectBad([](M &m) { m.description.outputs[0]->buffer = 2; }, "buffer 2 of output 'z' does not outlive the run");
  expectBad([](M &m) { m.description.outputs.clear(); }, "programs[0].buffers[4] is an output without a tensor");
  expectBad([](M &m) { m.program().dispatches.pop_back(), m.program().buffers[2]->last_use = 0; },
            "output 'z' is written by no dispatch");
}

TEST(Refused, Symbols) {
  expectBad([](M &m) { m.description.symbols[0]->min = -1; }, "symbol 'N' has bounds -1 to 64");
  expectBad([](M &m) { m.description.symbols[0]->max = -2; }, "symbol 'N' has bounds 0 to -2");
  expectBad([](M &m) { m.description.symbols[0]->min = 65; }, "symbol 'N' has bounds 65 to 64");
  expectBad([](M &m) { m.description.symbols[0]->input = 2; }, "symbols[0].input is 2, allowed below 2");
  expectBad([](M &m) { m.description.symbols[0]->dim = 2; }, "symbols[0].dim is 2, allowed below 2");
  expectBad([](M &m) { m.description.symbols[0]->dim = 1; }, "symbol 'N' times 1 is not dimension 1 of input 'x'");
  expectBad([](M &m) { m.description.symbols[0]->multiple = 2; }, "symbol 'N' times 2 is not dimension 0 of input 'x'");
  expectBad([](M &m) { m.description.inputs[0]->shape[0] = expr(times(0, 2)); },
            "symbol 'N' times 1 is not dimension 0 of input 'x'");
  expectBad([](M &m) { m.description.symbols[0]->multiple = 0; }, "symbol 'N' with bounds 0 to 64 has multiple 0, allowed 1 to");
  expectBad([](M &m) { m.description.symbols[0]->multiple = int64_t(1) << 42; },
            "symbol 'N' with bounds 0 to 64 has multiple 4398046511104, allowed 1 to");
  expectBad([](M &m) { m.addSymbol("N", 0, 1, 0, 0); }, "symbol 'N' times 1 is not dimension 0 of input 'x'");
  expectBad(
      [](M &m) {
        m.addSymbol("N", 0, 1, 1, 0);
        m.description.inputs[1]->shape[0] = expr(symbol(1));
      },
      "two symbols have the name 'N'");
  expectBad(
      [](M &m) {
        for (int i = 0; i < 256; ++i)
          m.addSymbol("s", 0, 1, 0, 0);
      },
      "symbols has 257 entries, allowed 0 to 256");
}

TEST(Refused, Programs) {
  expectBad([](M &m) { m.description.programs.clear(); }, "programs has 0 entries, allowed 1 to 16");
  expectBad([](M &m) { m.program().arch = 9; }, "programs[0].arch is 9, allowed 1 or 2");
  expectBad(
      [](M &m) {
        m.description.programs.push_back(std::make_unique<artifact::ProgramT>(*m.description.programs[0]));
      },
      std::string("programs 0 and 1 are both for ") + hostName);
  expectBad([](M &m) { m.program().executables[0]->segment = 9; }, "executables: segment is 9, allowed below 2");
  expectBad([](M &m) { m.program().executables[0]->level = 0; }, "executables[0].level is 0, which is no level of");
}

TEST(Refused, Buffers) {
  expectBad([](M &m) { m.program().buffers[2]->size = nullptr; }, "expression programs[0].buffers[2].size is empty");
  expectBad([](M &m) { m.program().buffers[2]->last_use = 2; }, "first_use 0 and last_use 2 are not in order below 2");
  expectBad([](M &m) { m.program().buffers[2]->first_use = 2; }, "first_use 2 and last_use 1 are not in order");
  expectBad([](M &m) { m.program().buffers[2]->offset = 32; }, "offset is 32, expected -1 or a multiple of 64");
  expectBad([](M &m) { m.program().buffers[2]->offset = -2; }, "offset is -2");
  expectBad([](M &m) { m.program().buffers[2]->offset = 0; }, "the memory plan is wrong");
  expectBad([](M &m) { m.program().buffers[2]->kind = static_cast<artifact::BufferKind>(7); }, "kind is 7, allowed 0 to 4");
  expectBad([](M &m) { m.program().buffers[3]->size = expr(symbol(0)); }, "size of a constant depends on a symbol");
  expectBad([](M &m) { m.program().buffers[3]->size = expr(constant(-4)); }, "buffers[3].size is negative");
  expectBad([](M &m) { m.program().buffers[3]->segment = 2; }, "buffers[3].segment is 2, allowed below 2");
  expectBad([](M &m) { m.program().buffers[3]->size = expr(constant(17)); },
            "segment_offset 0 of a constant of 17 bytes: expected a multiple of 64 inside a segment of 16 bytes");
  expectBad([](M &m) { m.program().buffers[3]->segment_offset = 4; }, "segment_offset 4 of a constant");
  expectBad([](M &m) { m.program().buffers[2]->size = expr({AJOUR_EXPR_CONST, 1, AJOUR_EXPR_CONST, 0, AJOUR_EXPR_MOD, 0}); },
            "size of buffer 2 divides by zero");
  expectBad([](M &m) { m.program().buffers[2]->size = expr(times(0, int64_t(1) << 60)); }, "size of buffer 2 overflows");
}

TEST(Refused, ArenaPlanOfTheFile) {
  // A right plan is taken over.
  TestModel model = makeAffine();
  model.program().buffers[2]->offset = 64;
  model.program().arena_bytes = 64 + 1088;
  Loaded loaded = loadBytes(model.bytes());
  ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
  ajour_memory_info info = AJOUR_INIT(ajour_memory_info);
  ASSERT_DONE(ajour_model_memory(loaded.model, nullptr, nullptr, &info));
  EXPECT_EQ(info.arena_bytes, 64u + 1088u);
  EXPECT_EQ(runAffine(loaded.model), affine(ramp(3, 1, 1), ramp(3, 2, 3)));
  expectBad(
      [](M &m) {
        m.program().buffers[2]->offset = 0;
        m.program().arena_bytes = uint64_t(1) << 62;
      },
      "the tensors take more than");
}

TEST(Refused, Dispatches) {
  expectBad([](M &m) { m.program().dispatches[1]->name = "sum"; }, "have the same name 'sum'");
  expectBad([](M &m) { m.program().dispatches[1]->name = ""; }, "programs[0].dispatches[1].name is empty");
  expectBad([](M &m) { m.program().dispatches[1]->nodes[0] = ""; }, "dispatches[1].nodes is empty");
  expectBad([](M &m) { m.program().dispatches[1]->variants.clear(); }, "variants has 0 entries, allowed 1 to 64");
  expectBad([](M &m) { m.program().dispatches[0]->macs = expr({}); }, "dispatches[0].macs is empty");
  auto variant = [](M &m) -> artifact::VariantT & { return *m.program().dispatches[1]->variants[0]; };
  expectBad([&](M &m) { variant(m).level = 99; }, "dispatches[1].variants[0].level is 99, which is no level of");
  expectBad([&](M &m) { variant(m).executable = 3; }, "variants[0].executable is 3, allowed below 1");
  expectBad([&](M &m) { variant(m).symbol = ""; }, "variants[0].symbol is empty");
  expectBad([&](M &m) { variant(m).symbol = "nowhere"; }, "dispatch 'scaled': the code has no function 'nowhere'");
  expectBad([&](M &m) { variant(m).operands[1] = 5; }, "operands is 5, allowed below 5");
  expectBad([&](M &m) { m.program().buffers[2]->last_use = 0; },
            "operands[0] is buffer 2, which lives from dispatch 0 to 0");
  expectBad([&](M &m) { variant(m).work = nullptr; }, "variants[0].work is empty");
  expectBad([&](M &m) { variant(m).scratch = expr({AJOUR_EXPR_ADD, 0}); }, "variants[0].scratch takes a value");
  expectBad([&](M &m) { variant(m).work = expr(constant(-3)); }, "work of dispatch 'scaled' is negative");
}

TEST(Refused, Segments) {
  expectBad([](M &m) { m.segmentNames[1] = ""; }, "segments[1].name is empty");
  // The writer lays segments out itself; wrong places are patched into the bytes.
  TestModel model = makeAffine();
  std::string good = model.bytes();
  const auto &segments = model.description.segments;
  auto patch = [&](uint64_t from, uint64_t to, const std::string &message, ajour_status_code status) {
    std::string bytes = good, old(8, 0), fresh(8, 0);
    std::memcpy(old.data(), &from, 8);
    std::memcpy(fresh.data(), &to, 8);
    size_t at = bytes.find(old, 64);
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, 8, fresh);
    refreshHeader(bytes);
    Loaded loaded = loadBytes(bytes);
    EXPECT_EQ(loaded.status, status);
    EXPECT_NE(loaded.message.find(message), std::string::npos) << loaded.message;
  };
  patch(segments[1]->offset, segments[1]->offset + 64, "segment 1 ('weights')", AJOUR_BAD_FILE);
  patch(segments[1]->offset, segments[0]->offset, "segment 1 ('weights')", AJOUR_BAD_FILE);
  patch(segments[1]->offset, segments[1]->offset + 65536, "inside the file of", AJOUR_BAD_FILE);
  patch(segments[1]->checksum, segments[1]->checksum ^ 1, "segment 'weights' at file offset", AJOUR_CHECKSUM);
  patch(segments[0]->checksum, segments[0]->checksum ^ 1, "segment 'code-level0'", AJOUR_CHECKSUM);
}

TEST(Refused, ConstantsWithoutSlack) {
  TestModel model = makeAffine();
  std::string bytes = model.bytes();
  bytes.resize(bytes.size() - 1);
  ajour_artifact_header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.file_size -= 1;
  std::memcpy(bytes.data(), &header, sizeof(header));
  refreshHeader(bytes);
  EXPECT_NE(loadBytes(bytes).message.find("fewer than 64 bytes follow segment 'weights'"), std::string::npos);
}

TEST(Refused, BadCode) {
  expectBad([](M &m) { m.segmentBytes[0] = "rubbish"; }, "artifact: segment 'code-level0': too short for an ELF file");
}
