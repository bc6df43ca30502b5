// Artifacts whose code is linked into the application.
#include "Fixture.h"

using namespace ajour::test;

namespace {

void add(void *const *buffers, const int64_t *, void *, int64_t begin, int64_t end) {
  auto *x = static_cast<const float *>(buffers[0]), *y = static_cast<const float *>(buffers[1]);
  for (int64_t i = begin * 4; i < end * 4; ++i)
    static_cast<float *>(buffers[2])[i] = x[i] + y[i];
}

void scale(void *const *buffers, const int64_t *, void *, int64_t begin, int64_t end) {
  auto *sum = static_cast<const float *>(buffers[0]), *w = static_cast<const float *>(buffers[1]);
  for (int64_t i = begin * 4; i < end * 4; ++i)
    static_cast<float *>(buffers[2])[i] = sum[i] * w[i % 4];
}

/// What `count` was asked for: its calls, and the most items of one.
int64_t calls, mostItems;
ajour_session *cancelledByCount;

void count(void *const *, const int64_t *, void *, int64_t begin, int64_t end) {
  ++calls;
  mostItems = std::max(mostItems, end - begin);
  ajour_session_cancel(cancelledByCount);
}

constexpr uint64_t identity = 0x1234567890abcdefull;

/// makeAffine's model with its code in `functions`.
struct StaticCode : testing::Test {
  StaticCode() : model(makeAffine()) {
    ajour::artifact::ExecutableT &executable = *model.program().executables[0];
    executable.segment = AJOUR_STATIC_CODE_SEGMENT;
    executable.identity = identity;
    functions[0] = {"test_scale", executable.level, 0, scale};
    functions[1] = {"test_add", executable.level, 0, add};
    code = {AJOUR_STATIC_CODE_VERSION, model.program().arch, identity, 2, functions};
  }

  Loaded load(const ajour_static_code *table) {
    ajour_load_options options = AJOUR_INIT(ajour_load_options);
    options.static_code = table;
    return loadBytes(model.bytes(), options);
  }

  void expectRefused(const ajour_static_code *table, ajour_status_code status, const char *part) {
    Loaded loaded = load(table);
    EXPECT_EQ(loaded.status, status);
    EXPECT_NE(loaded.message.find(part), std::string::npos) << loaded.message;
  }

  TestModel model;
  ajour_static_function functions[2];
  ajour_static_code code;
};

TEST_F(StaticCode, Runs) {
  Loaded loaded = load(&code);
  ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
  Session session(loaded.model);
  std::vector<float> x = ramp(3, 0, 1), y = ramp(3, 5, -0.5f);
  ASSERT_DONE(session.set(0, x, {3, 4}));
  ASSERT_DONE(session.set(1, y, {3, 4}));
  ASSERT_DONE(ajour_session_run(session.handle));
  EXPECT_EQ(session.output(), affine(x, y));
  ajour_model_info info = AJOUR_INIT(ajour_model_info);
  ASSERT_DONE(ajour_model_get_info(loaded.model, &info));
  EXPECT_EQ(info.code_bytes, 0u);
}

// What an uncancellable piece may cost is counted in multiply-accumulates, on one thread too. A prompt of 512 tokens and a layer of 2048 x 5632 was in six pieces
// of 50 ms once.
TEST_F(StaticCode, PiecesOfOneThreadAreSmall) {
  functions[1].function = count;
  model = makeAffine(1, 512);
  auto &executable = *model.program().executables[0];
  executable.segment = AJOUR_STATIC_CODE_SEGMENT, executable.identity = identity;
  ajour::artifact::DispatchT &dispatch = *model.program().dispatches[0];
  auto run = [&](bool cancel) {
    Loaded loaded = load(&code);
    ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
    Session session(loaded.model, 1);
    std::vector<float> x = ramp(512, 0, 1);
    ASSERT_DONE(session.set(0, x, {512, 4}));
    ASSERT_DONE(session.set(1, x, {512, 4}));
    calls = mostItems = 0;
    cancelledByCount = cancel ? session.handle : nullptr;
    EXPECT_EQ(ajour_session_run(session.handle), cancel ? AJOUR_CANCELLED : AJOUR_OK);
  };
  constexpr int64_t macsOfItem = 2048 * 5632;
  dispatch.macs = expr(times(0, macsOfItem));
  for (bool cancel : {false, true}) {
    run(cancel);
    EXPECT_EQ(calls, cancel ? 1 : 256);
    EXPECT_LE(mostItems * macsOfItem, int64_t(1) << 25);
  }
  // How many places attention looks at is known only when it runs.
  dispatch.macs.reset();
  dispatch.kind = "attention";
  run(false);
  EXPECT_EQ(mostItems, 1);
  // Cheap items are not called for one by one.
  dispatch.kind = "elementwise";
  run(false);
  EXPECT_EQ(mostItems, 512 / 6);
}

TEST_F(StaticCode, NeedsItsTable) {
  expectRefused(nullptr, AJOUR_INVALID_ARGUMENT, "artifact: its code is in an object file for the application; give the table in the option static_code");
  ajour_static_code other = code;
  other.identity ^= 1;
  expectRefused(&other, AJOUR_INVALID_ARGUMENT, "static_code is of another compilation (1234567890abcdee, expected 1234567890abcdef)");
  other = code;
  other.arch = 3 - other.arch;
  expectRefused(&other, AJOUR_INVALID_ARGUMENT, "static_code is of another compilation");
  other = code;
  other.version = 9;
  expectRefused(&other, AJOUR_VERSION, "static_code has version 9, expected 1");
  other = code;
  other.count = 1;
  expectRefused(&other, AJOUR_BAD_FILE, "dispatch 'sum': the code has no function 'test_add'");
  functions[1].level ^= 1;
  expectRefused(&code, AJOUR_BAD_FILE, "dispatch 'sum': the code has no function 'test_add'");
}

TEST_F(StaticCode, IsNotForArtifactsWithCode) {
  model = makeAffine();
  expectRefused(&code, AJOUR_INVALID_ARGUMENT, "static_code is given, but the artifact carries its own code");
}

TEST_F(StaticCode, OtherSegmentsAreStillChecked) {
  model.program().executables[0]->segment = AJOUR_STATIC_CODE_SEGMENT - 1;
  expectRefused(&code, AJOUR_BAD_FILE, "executables: segment is 4294967294, allowed below 2");
}

TEST_F(StaticCode, MacTypesAreChecked) {
  model.program().dispatches[0]->mac_type = AJOUR_I8;
  Loaded loaded = load(&code);
  ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
  Session session(loaded.model);
  ajour_profile_entry entry = AJOUR_INIT(ajour_profile_entry);
  ASSERT_DONE(ajour_session_profile(session.handle, 0, &entry));
  EXPECT_EQ(entry.mac_type, static_cast<uint32_t>(AJOUR_I8));
  model.program().dispatches[0]->mac_type = 77;
  expectRefused(&code, AJOUR_BAD_FILE, "programs[0].dispatches[0].mac_type is 77, which is unknown");
}

} // namespace
