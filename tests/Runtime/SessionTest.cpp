// Sessions: shapes, memory, threads, cancelling.
#include <atomic>
#include <cstring>
#include <fstream>
#include <malloc.h>
#include <thread>
#include <unistd.h>

#include "Fixture.h"

using namespace ajour;
using namespace ajour::test;

TEST(Session, EveryBatchFromNothingToTheBound) {
  for (int64_t max : {64, -1}) {
    Loaded loaded = loadBytes(makeAffine(0, max).bytes());
    ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
    for (uint32_t threads : {1u, 3u}) {
      Session session(loaded.model, threads);
      for (int64_t rows : {1, 3, 64, 0, 2, 63, 1}) {
        std::vector<float> x = ramp(rows, 1, 1), y = ramp(rows, 5, -2);
        ASSERT_DONE(session.set(0, x, {rows, 4}));
        ASSERT_DONE(session.set(1, y, {rows, 4}));
        ASSERT_DONE(ajour_session_run(session.handle));
        ASSERT_EQ(session.output(), affine(x, y)) << rows << " rows";
      }
    }
  }
}

/// The affine model where the number of rows counts in fours: 4 to 64.
static TestModel makeFours() {
  TestModel model = makeAffine(1, 16);
  for (uint32_t i : {0, 1, 2, 4})
    model.program().buffers[i]->size = expr(times(0, 64));
  for (auto *tensors : {&model.description.inputs, &model.description.outputs})
    for (auto &tensor : *tensors)
      tensor->shape[0] = expr(times(0, 4));
  for (auto &dispatch : model.program().dispatches)
    dispatch->variants[0]->work = expr(times(0, 4));
  model.description.symbols[0]->multiple = 4;
  return model;
}

TEST(Session, MultiplesOfADimension) {
  Loaded loaded = loadBytes(makeFours().bytes());
  ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
  ajour_tensor_info info = AJOUR_INIT(ajour_tensor_info);
  ASSERT_DONE(ajour_model_input(loaded.model, 0, &info));
  EXPECT_STREQ(info.dim_names[0], "N");
  EXPECT_EQ(info.dim_min[0], 4);
  EXPECT_EQ(info.dim_max[0], 64);
  EXPECT_EQ(info.dim_multiple[0], 4);
  EXPECT_EQ(info.dim_multiple[1], 1);
  ajour_symbol_info symbol = AJOUR_INIT(ajour_symbol_info);
  ASSERT_DONE(ajour_model_symbol(loaded.model, 0, &symbol));
  EXPECT_EQ(symbol.min, 4);
  EXPECT_EQ(symbol.max, 64);
  EXPECT_EQ(symbol.multiple, 4);
  ajour_memory_info memory = AJOUR_INIT(ajour_memory_info);
  int64_t eight = 8, seven = 7, many = 68;
  ASSERT_DONE(ajour_model_memory(loaded.model, nullptr, &eight, &memory));
  EXPECT_STATUS(ajour_model_memory(loaded.model, nullptr, &seven, &memory), AJOUR_SHAPE,
                "dimension 'N' is 7, expected a multiple of 4");
  EXPECT_STATUS(ajour_model_memory(loaded.model, nullptr, &many, &memory), AJOUR_SHAPE,
                "dimension 'N' is 68, allowed 4 to 64");
  Session session(loaded.model);
  for (int64_t rows : {64, 4, 8}) {
    std::vector<float> x = ramp(rows, 1, 1), y = ramp(rows, 5, -2);
    ASSERT_DONE(session.set(0, x, {rows, 4}));
    ASSERT_DONE(session.set(1, y, {rows, 4}));
    ASSERT_DONE(ajour_session_run(session.handle));
    ASSERT_EQ(session.output(), affine(x, y)) << rows << " rows";
  }
  auto shape = [&](int64_t rows) {
    int64_t dims[] = {rows, 4};
    return ajour_session_set_input_shape(session.handle, 0, dims, 2);
  };
  EXPECT_STATUS(shape(6), AJOUR_SHAPE, "input 'x': dimension 0 ('N') is 6, expected a multiple of 4");
  EXPECT_STATUS(shape(3), AJOUR_SHAPE, "input 'x': dimension 0 ('N') is 3, allowed 4 to 64");
  EXPECT_STATUS(shape(68), AJOUR_SHAPE, "input 'x': dimension 0 ('N') is 68, allowed 4 to 64");
  EXPECT_STATUS(shape(-4), AJOUR_SHAPE, "input 'x': dimension 0 ('N') is -4, allowed 4 to 64");
}

TEST(Session, InputsInAnyOrderAndInPlace) {
  Loaded loaded = loadBytes(makeAffine(0, -1).bytes());
  Session session(loaded.model);
  int64_t shape[] = {2, 4};
  ASSERT_DONE(ajour_session_set_input_shape(session.handle, 1, shape, 2));
  ASSERT_DONE(ajour_session_set_input_shape(session.handle, 0, shape, 2));
  std::vector<float> x = ramp(2, 1, 1), y = ramp(2, 3, 1);
  for (uint32_t i = 0; i < 2; ++i) {
    void *data = nullptr;
    size_t bytes = 0;
    ASSERT_DONE(ajour_session_input_data(session.handle, i, &data, &bytes));
    ASSERT_EQ(bytes, 32u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % AJOUR_BUFFER_ALIGNMENT, 0u);
    std::memcpy(data, (i == 0 ? x : y).data(), bytes);
  }
  ASSERT_DONE(ajour_session_run(session.handle));
  EXPECT_EQ(session.output(), affine(x, y));
  // Inputs stay; a null shape means the last one.
  ASSERT_DONE(ajour_session_set_input(session.handle, 1, x.data(), nullptr, 0));
  ASSERT_DONE(ajour_session_run(session.handle));
  EXPECT_EQ(session.output(), affine(x, x));
}

TEST(Session, ShapesAreRefused) {
  Loaded loaded = loadBytes(makeAffine(1, 64).bytes());
  Session session(loaded.model);
  auto shape = [&](uint32_t input, std::vector<int64_t> dims) {
    return ajour_session_set_input_shape(session.handle, input, dims.data(), static_cast<uint32_t>(dims.size()));
  };
  EXPECT_STATUS(shape(0, {4}), AJOUR_SHAPE, "input 'x': rank is 1, expected 2");
  EXPECT_STATUS(shape(0, {2, 5}), AJOUR_SHAPE, "input 'x': dimension 1 is 5, expected 4");
  EXPECT_STATUS(shape(0, {0, 4}), AJOUR_SHAPE, "input 'x': dimension 0 ('N') is 0, allowed 1 to 64");
  EXPECT_STATUS(shape(0, {65, 4}), AJOUR_SHAPE, "input 'x': dimension 0 ('N') is 65, allowed 1 to 64");
  EXPECT_STATUS(shape(1, {-1, 4}), AJOUR_SHAPE, "input 'y': dimension 0 (-1) is negative or too large");
  EXPECT_STATUS(shape(2, {1, 4}), AJOUR_INVALID_ARGUMENT, "there is no input 2; the model has 2");
  EXPECT_STATUS(ajour_session_set_input_shape(session.handle, 0, nullptr, 2), AJOUR_INVALID_ARGUMENT, "'shape' is null");
  EXPECT_STATUS(ajour_session_run(session.handle), AJOUR_STATE, "input 'x' has not been set");
  // Inputs that contradict each other are reported when the model is to run; then put right.
  std::vector<float> two = ramp(2, 1, 1), three = ramp(3, 1, 1);
  ASSERT_DONE(session.set(0, two, {2, 4}));
  ASSERT_DONE(session.set(1, three, {3, 4}));
  EXPECT_STATUS(ajour_session_run(session.handle), AJOUR_SHAPE,
                "input 'y': dimension 0 is 3, expected 2 to fit the other inputs");
  ajour_tensor_view view = AJOUR_INIT(ajour_tensor_view);
  EXPECT_STATUS(ajour_session_output(session.handle, 0, &view), AJOUR_STATE, "do not fit each other");
  ASSERT_DONE(session.set(0, three, {3, 4}));
  ASSERT_DONE(ajour_session_run(session.handle));
  EXPECT_EQ(session.output(), affine(three, three));
  EXPECT_STATUS(ajour_session_set_input(session.handle, 0, nullptr, nullptr, 0), AJOUR_INVALID_ARGUMENT, "'data' is null");
  EXPECT_STATUS(ajour_session_output(session.handle, 1, &view), AJOUR_INVALID_ARGUMENT, "there is no output 1");
}

// A refused shape changes nothing: the session goes on with the shapes that it had.
TEST(Session, RefusedShapesLeaveNoTrace) {
  Loaded loaded = loadBytes(makeAffine(1, -1).bytes());
  Session session(loaded.model);
  std::vector<float> x = ramp(3, 1, 1);
  ASSERT_DONE(session.set(0, x, {3, 4}));
  ASSERT_DONE(session.set(1, x, {3, 4}));
  int64_t wrong[] = {50, 5};
  EXPECT_STATUS(ajour_session_set_input_shape(session.handle, 0, wrong, 2), AJOUR_SHAPE, "dimension 1 is 5, expected 4");
  ASSERT_DONE(ajour_session_run(session.handle));
  EXPECT_EQ(session.output(), affine(x, x));
}

TEST(Session, UnboundedNeedsShapesFirst) {
  Loaded loaded = loadBytes(makeAffine(0, -1).bytes());
  Session session(loaded.model);
  void *data;
  EXPECT_STATUS(ajour_session_input_data(session.handle, 0, &data, nullptr), AJOUR_STATE,
                "the shape of input 'x' has not been set");
  EXPECT_STATUS(ajour_session_run(session.handle), AJOUR_STATE, "the shape of input 'x' has not been set");
  ajour_memory_info info = AJOUR_INIT(ajour_memory_info);
  EXPECT_STATUS(ajour_model_memory(loaded.model, nullptr, nullptr, &info), AJOUR_SHAPE,
                "dimension 'N' has no upper bound");
  int64_t symbols[] = {10};
  ASSERT_DONE(ajour_model_memory(loaded.model, nullptr, symbols, &info));
  EXPECT_EQ(info.arena_bytes, 256u); // 160 + slack, rounded up
  symbols[0] = -1;
  EXPECT_STATUS(ajour_model_memory(loaded.model, nullptr, symbols, &info), AJOUR_SHAPE, "dimension 'N' is -1, allowed 0");
}

TEST(Session, MemoryIsKnownBefore) {
  Loaded loaded = loadBytes(makeAffine().bytes());
  ajour_session_options options = AJOUR_INIT(ajour_session_options);
  options.threads = 2;
  ajour_memory_info before = AJOUR_INIT(ajour_memory_info), after = AJOUR_INIT(ajour_memory_info);
  ASSERT_DONE(ajour_model_memory(loaded.model, &options, nullptr, &before));
  EXPECT_EQ(before.weight_bytes, 16u);
  EXPECT_EQ(before.arena_bytes, 1088u);
  EXPECT_EQ(before.io_bytes, 3 * 1088u);
  EXPECT_EQ(before.scratch_bytes, 2 * 128u);
  EXPECT_EQ(before.session_bytes, 4 * 1088u + 256u);
  Session session(loaded.model, 2);
  ASSERT_DONE(ajour_session_memory(session.handle, &after));
  EXPECT_LE(after.session_bytes, before.session_bytes);
  EXPECT_GE(after.session_bytes * 100, before.session_bytes * 95);
  // A budget refuses politely, a sufficient one does not.
  ajour_session *refused = nullptr;
  options.memory_budget = before.session_bytes - 1;
  EXPECT_STATUS(ajour_session_create(loaded.model, &options, &refused), AJOUR_OUT_OF_MEMORY, "the budget is 4607");
  EXPECT_EQ(refused, nullptr);
  options.memory_budget = before.session_bytes;
  ASSERT_DONE(ajour_session_create(loaded.model, &options, &refused));
  ajour_session_destroy(refused);
  options.threads = 300;
  EXPECT_STATUS(ajour_session_create(loaded.model, &options, &refused), AJOUR_INVALID_ARGUMENT, "threads is 300");
  options.threads = 1;
  options.flags = 1 << 20;
  EXPECT_STATUS(ajour_session_create(loaded.model, &options, &refused), AJOUR_INVALID_ARGUMENT, "unknown option flags");
}

// The budget also holds when a later shape needs more.
TEST(Session, BudgetOfLaterShapes) {
  Loaded loaded = loadBytes(makeAffine(0, -1).bytes());
  ajour_session_options options = AJOUR_INIT(ajour_session_options);
  options.threads = 1;
  options.memory_budget = 4 * 1088 + 128;
  ajour_session *session = nullptr;
  ASSERT_DONE(ajour_session_create(loaded.model, &options, &session));
  int64_t fits[] = {64, 4}, large[] = {1000, 4};
  for (uint32_t i = 0; i < 2; ++i)
    ASSERT_DONE(ajour_session_set_input_shape(session, i, fits, 2));
  ASSERT_DONE(ajour_session_set_input_shape(session, 0, large, 2));
  EXPECT_STATUS(ajour_session_set_input_shape(session, 1, large, 2), AJOUR_OUT_OF_MEMORY, "the budget is");
  ajour_session_destroy(session);
}

// A size that no machine has is refused, not fatal.
TEST(Session, HugeShapes) {
  Loaded loaded = loadBytes(makeAffine(0, -1).bytes());
  Session session(loaded.model);
  int64_t shape[] = {int64_t(1) << 45, 4};
  ajour_status_code status = ajour_session_set_input_shape(session.handle, 0, shape, 2);
  EXPECT_TRUE(status == AJOUR_OUT_OF_MEMORY || status == AJOUR_SHAPE) << ajour_last_message();
  std::vector<float> x = ramp(2, 1, 1);
  ASSERT_DONE(session.set(0, x, {2, 4}));
  ASSERT_DONE(session.set(1, x, {2, 4}));
  ASSERT_DONE(ajour_session_run(session.handle));
}

// A model of nothing at all is legal.
TEST(Session, EmptyModel) {
  TestModel model = makeAffine();
  model.description.symbols.clear();
  model.description.inputs.clear();
  model.description.outputs.clear();
  model.program().buffers.clear();
  model.program().dispatches.clear();
  Loaded loaded = loadBytes(model.bytes());
  ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
  Session session(loaded.model, 2);
  ASSERT_DONE(ajour_session_run(session.handle));
}

// Sizes at smaller shapes may be larger than at the bound: the plan is made anew.
TEST(Session, SizesThatGrowWhenTheShapeShrinks) {
  TestModel model = makeAffine();
  // The sum's buffer: 100000 - 1000 N bytes.
  model.program().buffers[2]->size = expr({AJOUR_EXPR_CONST, 100000, AJOUR_EXPR_DIM, 0, AJOUR_EXPR_CONST, -1000,
                                           AJOUR_EXPR_MUL, 0, AJOUR_EXPR_ADD, 0});
  Loaded loaded = loadBytes(model.bytes());
  ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
  Session session(loaded.model);
  ajour_memory_info info = AJOUR_INIT(ajour_memory_info);
  ajour_session_memory(session.handle, &info);
  uint64_t atBound = info.arena_bytes;
  std::vector<float> x = ramp(1, 1, 1);
  ASSERT_DONE(session.set(0, x, {1, 4}));
  ASSERT_DONE(session.set(1, x, {1, 4}));
  ASSERT_DONE(ajour_session_run(session.handle));
  EXPECT_EQ(session.output(), affine(x, x));
  ajour_session_memory(session.handle, &info);
  EXPECT_GT(info.arena_bytes, atBound);
}

TEST(Session, OutlivesTheHoldOnItsModel) {
  Loaded loaded = loadBytes(makeAffine().bytes());
  Session session(loaded.model);
  ajour_model_destroy(loaded.model);
  loaded.model = nullptr;
  std::vector<float> x = ramp(5, 1, 1);
  ASSERT_DONE(session.set(0, x, {5, 4}));
  ASSERT_DONE(session.set(1, x, {5, 4}));
  ASSERT_DONE(ajour_session_run(session.handle));
  EXPECT_EQ(session.output(), affine(x, x));
}

TEST(Session, RunDoesNotAllocate) {
  Loaded loaded = loadBytes(makeAffine().bytes());
  Session session(loaded.model, 2, AJOUR_SESSION_PROFILE);
  std::vector<float> x = ramp(64, 1, 1);
  ASSERT_DONE(session.set(0, x, {64, 4}));
  ASSERT_DONE(session.set(1, x, {64, 4}));
  ASSERT_DONE(ajour_session_run(session.handle));
#ifndef AJOUR_TEST_ASAN
  struct mallinfo2 before = mallinfo2();
  for (int i = 0; i < 100; ++i)
    ajour_session_run(session.handle);
  struct mallinfo2 after = mallinfo2();
  EXPECT_EQ(before.uordblks, after.uordblks);
  EXPECT_EQ(before.fordblks, after.fordblks);
#endif
}

/// 200 dispatches of `items` slow items each, which count the items done in the output.
static TestModel makeSlow(int64_t items) {
  using artifact::BufferKind;
  TestModel model = makeAffine();
  model.description.symbols.clear();
  model.description.inputs.clear();
  model.description.outputs.clear();
  model.program().buffers.clear();
  model.program().dispatches.clear();
  uint32_t x = model.addBuffer(BufferKind::Input, constant(8)), count = model.addBuffer(BufferKind::Output, constant(8));
  model.addInput("x", {}, x, AJOUR_I64);
  model.addOutput("count", {}, count, AJOUR_I64);
  for (int i = 0; i < 200; ++i)
    model.addDispatch("slow " + std::to_string(i), "test_wait", {x, count}, constant(items));
  return model;
}

TEST(Session, CancelFromAnotherThread) {
  Loaded loaded = loadBytes(makeSlow(200).bytes());
  ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
  for (uint32_t threads : {1u, 2u}) {
    Session session(loaded.model, threads);
    int64_t zero = 0;
    ASSERT_DONE(ajour_session_set_input(session.handle, 0, &zero, nullptr, 0));
    std::atomic<bool> returned{false};
    std::thread canceller([&] {
      while (!returned.load()) {
        ajour_session_cancel(session.handle);
        std::this_thread::yield();
      }
    });
    EXPECT_STATUS(ajour_session_run(session.handle), AJOUR_CANCELLED, "cancelled at dispatch");
    returned = true;
    canceller.join();
  }
}

TEST(Session, CancelFromTheObserver) {
  // Cancelled by its observer: the next dispatch does not run.
  Loaded affineModel = loadBytes(makeAffine().bytes());
  Session session(affineModel.model);
  std::vector<float> x = ramp(2, 1, 1);
  ASSERT_DONE(session.set(0, x, {2, 4}));
  ASSERT_DONE(session.set(1, x, {2, 4}));
  ajour_session_set_observer(
      session.handle,
      [](void *user, const ajour_observation *) { ajour_session_cancel(static_cast<ajour_session *>(user)); },
      session.handle);
  EXPECT_STATUS(ajour_session_run(session.handle), AJOUR_CANCELLED, "cancelled at dispatch 'sum' (1 of 2)");
  ajour_session_set_observer(session.handle, nullptr, nullptr);
  ASSERT_DONE(ajour_session_run(session.handle));
  EXPECT_EQ(session.output(), affine(x, x));
}

TEST(Session, AffinityFailureIsAWarning) {
  Loaded loaded = loadBytes(makeAffine().bytes());
  Session session(loaded.model, 3);
  EXPECT_EQ(ajour_session_threads(session.handle), 3u);
  uint32_t none[] = {1000000};
  EXPECT_STATUS(ajour_session_set_affinity(session.handle, none, 1), AJOUR_AFFINITY,
                "2 of 2 worker threads could not be bound");
  std::vector<float> x = ramp(2, 1, 1);
  ASSERT_DONE(session.set(0, x, {2, 4}));
  ASSERT_DONE(session.set(1, x, {2, 4}));
  ASSERT_DONE(ajour_session_run(session.handle));
}

// A second session costs its arena, not the weights.
TEST(Session, WeightsAreShared) {
  TestModel model = makeAffine();
  model.segmentBytes[1].resize(8 << 20);
  std::string path = temporaryPath("shared.ajour");
  writeFile(path, model.bytes());
  ajour_model *loaded = nullptr;
  ASSERT_DONE(ajour_model_load_file(path.c_str(), nullptr, &loaded));
  auto anonymous = [] {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.rfind("RssAnon:", 0) == 0)
        return std::stoll(line.substr(8));
    return -1ll;
  };
  long long before = anonymous();
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 20; ++i)
    sessions.push_back(std::make_unique<Session>(loaded));
  if (before >= 0) {
    EXPECT_LT(anonymous() - before, 2048); // KiB; one copy of the weights alone would be 8192
  }
  sessions.clear();
  ajour_model_destroy(loaded);
  unlink(path.c_str());
}

TEST(Session, EightThreadsCreateRunDestroy) {
  Loaded loaded = loadBytes(makeAffine().bytes());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        ajour_session_options options = AJOUR_INIT(ajour_session_options);
        options.threads = static_cast<uint32_t>(1 + (t + round) % 3);
        ajour_session *session = nullptr;
        if (ajour_session_create(loaded.model, &options, &session) != AJOUR_OK) {
          ++wrong;
          continue;
        }
        int64_t rows = 1 + (t * 20 + round) % 64, shape[] = {rows, 4};
        std::vector<float> x = ramp(rows, static_cast<float>(t), 1), y = ramp(rows, 1, 2), expected = affine(x, y);
        ajour_tensor_view view = AJOUR_INIT(ajour_tensor_view);
        bool good = ajour_session_set_input(session, 0, x.data(), shape, 2) == AJOUR_OK &&
                    ajour_session_set_input(session, 1, y.data(), shape, 2) == AJOUR_OK &&
                    ajour_session_run(session) == AJOUR_OK && ajour_session_output(session, 0, &view) == AJOUR_OK &&
                    view.bytes == expected.size() * 4 && std::memcmp(view.data, expected.data(), view.bytes) == 0;
        wrong += !good;
        ajour_session_destroy(session);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Session, LoadsFromManyThreads) {
  const std::string bytes = makeAffine().bytes();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        ajour_model *model = nullptr;
        wrong += ajour_model_load_memory(bytes.data(), bytes.size(), nullptr, &model) != AJOUR_OK;
        ajour_model_destroy(model);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

// Each thread has a message of its own.
TEST(Session, MessagesPerThread) {
  ajour_model *model = nullptr;
  ajour_model_load_file("/no/such/first", nullptr, &model);
  std::thread([&] { ajour_model_load_file("/no/such/second", nullptr, &model); }).join();
  EXPECT_NE(std::string(ajour_last_message()).find("first"), std::string::npos);
}
