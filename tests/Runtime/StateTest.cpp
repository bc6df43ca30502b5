// What a session keeps between runs.
#include "Fixture.h"

#include "ajour/ajour.hpp"

using namespace ajour::test;
using ajour::artifact::BufferKind;

using Floats = std::vector<float>;

/// total' = total + x, z = total' * w with w = 1, 2, 3, 4; total begins as 10, 20, 30, 40. In place: one buffer.
static TestModel makeTotal(bool inPlace = false, bool initial = true) {
  TestModel model = makeAffine();
  model.description.symbols.clear();
  model.description.inputs.clear();
  model.description.outputs.clear();
  model.program().dispatches.clear();
  model.program().buffers.clear();
  const float weights[4] = {1, 2, 3, 4}, first[16] = {10, 20, 30, 40};
  uint32_t x = model.addBuffer(BufferKind::Input, constant(16)), z = model.addBuffer(BufferKind::Output, constant(16));
  uint32_t total = model.addBuffer(BufferKind::State, constant(16));
  uint32_t next = inPlace ? total : model.addBuffer(BufferKind::State, constant(16));
  uint32_t w = model.addConstant(weights, sizeof(weights));
  model.addInput("x", {constant(4)}, x);
  model.addOutput("z", {constant(4)}, z);
  auto state = std::make_unique<ajour::artifact::StateT>();
  state->name = "total";
  state->element_type = AJOUR_F32;
  state->shape = {4};
  state->buffer = total;
  state->next = next;
  if (initial)
    state->initial_segment = model.addSegment("initial", std::string(reinterpret_cast<const char *>(first), sizeof(first)));
  model.description.states.push_back(std::move(state));
  model.addDispatch("sum", "test_add", {x, total, next}, constant(1));
  model.addDispatch("scaled", "test_scale", {next, w, z}, constant(1), constant(16));
  return model;
}

static Floats step(Session &session, const Floats &x) {
  EXPECT_EQ(session.set(0, x, {4}), AJOUR_OK) << ajour_last_message();
  EXPECT_EQ(ajour_session_run(session.handle), AJOUR_OK) << ajour_last_message();
  return session.output();
}

static Floats stateOf(const Session &session) {
  ajour_tensor_view view = AJOUR_INIT(ajour_tensor_view);
  EXPECT_EQ(ajour_session_state(session.handle, 0, &view), AJOUR_OK) << ajour_last_message();
  EXPECT_EQ(view.bytes, 16u);
  EXPECT_EQ(view.rank, 1u);
  EXPECT_EQ(view.dims[0], 4);
  const float *values = static_cast<const float *>(view.data);
  return Floats(values, values + view.bytes / 4);
}

TEST(State, GoesOnFromRunToRun) {
  for (bool inPlace : {false, true}) {
    Loaded loaded = loadBytes(makeTotal(inPlace).bytes());
    ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
    Session session(loaded.model), other(loaded.model);
    EXPECT_EQ(stateOf(session), (Floats{10, 20, 30, 40}));
    EXPECT_EQ(step(session, {1, 1, 1, 1}), (Floats{11, 42, 93, 164}));
    EXPECT_EQ(step(session, {1, 1, 1, 1}), (Floats{12, 44, 96, 168}));
    EXPECT_EQ(step(session, {0, 0, 0, 2}), (Floats{12, 44, 96, 176}));
    EXPECT_EQ(stateOf(session), (Floats{12, 22, 32, 44}));
    // Sessions are independent.
    EXPECT_EQ(step(other, {0, 0, 0, 0}), (Floats{10, 40, 90, 160}));
    ASSERT_DONE(ajour_session_reset_state(session.handle));
    EXPECT_EQ(step(session, {0, 0, 0, 0}), (Floats{10, 40, 90, 160}));
    EXPECT_EQ(step(session, {1, 1, 1, 1}), (Floats{11, 42, 93, 164}));
  }
}

TEST(State, BeginsAsZerosWithoutAnInitialValue) {
  Loaded loaded = loadBytes(makeTotal(false, false).bytes());
  ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
  Session session(loaded.model);
  EXPECT_EQ(step(session, {1, 1, 1, 1}), (Floats{1, 2, 3, 4}));
}

TEST(State, IsDescribed) {
  Loaded loaded = loadBytes(makeTotal().bytes());
  ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
  ajour_model_info info = AJOUR_INIT(ajour_model_info);
  ASSERT_DONE(ajour_model_get_info(loaded.model, &info));
  EXPECT_EQ(info.state_count, 1u);
  ajour_tensor_info state = AJOUR_INIT(ajour_tensor_info);
  ASSERT_DONE(ajour_model_state(loaded.model, 0, &state));
  EXPECT_STREQ(state.name, "total");
  EXPECT_EQ(state.rank, 1u);
  EXPECT_EQ(state.dims[0], 4);
  EXPECT_STATUS(ajour_model_state(loaded.model, 1, &state), AJOUR_INVALID_ARGUMENT, "there is no state 1; the model has 1");
  ajour_memory_info planned = AJOUR_INIT(ajour_memory_info), held = AJOUR_INIT(ajour_memory_info);
  ajour_session_options options = AJOUR_INIT(ajour_session_options);
  options.threads = 1;
  ASSERT_DONE(ajour_model_memory(loaded.model, &options, nullptr, &planned));
  EXPECT_EQ(planned.state_bytes, 256u); // two buffers of 16 bytes with slack, rounded up
  EXPECT_EQ(planned.session_bytes, planned.arena_bytes + planned.io_bytes + planned.scratch_bytes + planned.state_bytes);
  Session session(loaded.model);
  ASSERT_DONE(ajour_session_memory(session.handle, &held));
  EXPECT_EQ(held.state_bytes, 256u);
  options.memory_budget = 100;
  ajour_session *none = nullptr;
  EXPECT_STATUS(ajour_session_create(loaded.model, &options, &none), AJOUR_OUT_OF_MEMORY, "the states take 256 bytes");
}

TEST(State, IsSavedAndRestored) {
  Loaded loaded = loadBytes(makeTotal().bytes()), inPlace = loadBytes(makeTotal(true).bytes());
  Session session(loaded.model), other(inPlace.model);
  step(session, {1, 2, 3, 4});
  ASSERT_EQ(ajour_model_saved_state_bytes(loaded.model), 40u + 16u);
  std::string saved(56, '\0');
  ASSERT_DONE(ajour_session_save_state(session.handle, saved.data(), saved.size()));
  step(session, {5, 5, 5, 5});
  ASSERT_DONE(ajour_session_restore_state(session.handle, saved.data(), saved.size()));
  EXPECT_EQ(stateOf(session), (Floats{11, 22, 33, 44}));
  // In another artifact of the same states.
  ASSERT_DONE(ajour_session_restore_state(other.handle, saved.data(), saved.size()));
  EXPECT_EQ(step(other, {0, 0, 0, 0}), (Floats{11, 44, 99, 176}));

  EXPECT_STATUS(ajour_session_save_state(session.handle, saved.data(), 55), AJOUR_INVALID_ARGUMENT,
                "a saved state takes 56 bytes, given are 55");
  auto refused = [&](std::string bytes, ajour_status_code status, const char *message) {
    EXPECT_STATUS(ajour_session_restore_state(session.handle, bytes.data(), bytes.size()), status, message);
    EXPECT_EQ(stateOf(session), (Floats{11, 22, 33, 44})) << message;
  };
  refused(saved.substr(0, 20), AJOUR_BAD_FILE, "fewer than its header");
  refused(saved.substr(0, 55), AJOUR_BAD_FILE, "has 55 bytes, expected 56");
  refused(saved + "x", AJOUR_BAD_FILE, "has 57 bytes, expected 56");
  auto changed = [&](size_t at) {
    std::string bytes = saved;
    bytes[at] ^= 1;
    return bytes;
  };
  refused(changed(0), AJOUR_BAD_FILE, "no saved state");
  refused(changed(8), AJOUR_VERSION, "version 0, expected 1");
  refused(changed(16), AJOUR_BAD_FILE, "that of another model");
  refused(changed(24), AJOUR_BAD_FILE, "expected 56");
  refused(changed(50), AJOUR_CHECKSUM, "is damaged");
  TestModel renamed = makeTotal();
  renamed.description.states[0]->name = "sum";
  Loaded foreign = loadBytes(renamed.bytes());
  Session foreignSession(foreign.model);
  EXPECT_STATUS(ajour_session_restore_state(foreignSession.handle, saved.data(), saved.size()), AJOUR_BAD_FILE,
                "that of another model");
}

TEST(State, CanBeSet) {
  Loaded loaded = loadBytes(makeTotal().bytes());
  Session session(loaded.model);
  const float values[4] = {1, 2, 3, 4};
  ASSERT_DONE(ajour_session_set_state(session.handle, 0, values, sizeof(values)));
  EXPECT_EQ(step(session, {0, 0, 0, 0}), (Floats{1, 4, 9, 16}));
  EXPECT_STATUS(ajour_session_set_state(session.handle, 0, values, 12), AJOUR_INVALID_ARGUMENT,
                "state 'total' has 16 bytes, given are 12");
  EXPECT_STATUS(ajour_session_set_state(session.handle, 3, values, 16), AJOUR_INVALID_ARGUMENT, "there is no state 3");
}

/// Cancels each run after its first dispatch.
static void cancelAlways(void *session, const ajour_observation *) {
  ajour_session_cancel(static_cast<ajour_session *>(session));
}

TEST(State, OfACancelledRunIsThatBeforeIt) {
  Loaded loaded = loadBytes(makeTotal().bytes());
  Session session(loaded.model);
  step(session, {1, 1, 1, 1});
  ASSERT_DONE(ajour_session_set_observer(session.handle, cancelAlways, session.handle));
  EXPECT_STATUS(ajour_session_run(session.handle), AJOUR_CANCELLED, "cancelled at dispatch 'sum'");
  ASSERT_DONE(ajour_session_set_observer(session.handle, nullptr, nullptr));
  EXPECT_EQ(stateOf(session), (Floats{11, 21, 31, 41}));
  EXPECT_EQ(step(session, {1, 1, 1, 1}), (Floats{12, 44, 96, 168}));
}

TEST(State, ChangedInPlaceByACancelledRunMustBeReset) {
  Loaded loaded = loadBytes(makeTotal(true).bytes());
  Session session(loaded.model);
  std::string saved(56, '\0');
  ASSERT_DONE(ajour_session_save_state(session.handle, saved.data(), saved.size()));
  ASSERT_EQ(session.set(0, {1, 1, 1, 1}, {4}), AJOUR_OK);
  ASSERT_DONE(ajour_session_set_observer(session.handle, cancelAlways, session.handle));
  EXPECT_STATUS(ajour_session_run(session.handle), AJOUR_CANCELLED, "cancelled");
  ASSERT_DONE(ajour_session_set_observer(session.handle, nullptr, nullptr));
  EXPECT_STATUS(ajour_session_run(session.handle), AJOUR_STATE, "half changed; reset or restore them");
  EXPECT_STATUS(ajour_session_save_state(session.handle, saved.data(), saved.size()), AJOUR_STATE, "half changed");
  ajour_tensor_view view = AJOUR_INIT(ajour_tensor_view);
  EXPECT_STATUS(ajour_session_state(session.handle, 0, &view), AJOUR_STATE, "half changed");
  ASSERT_DONE(ajour_session_restore_state(session.handle, saved.data(), saved.size()));
  EXPECT_EQ(step(session, {0, 0, 0, 0}), (Floats{10, 40, 90, 160}));
}

TEST(State, InTheWrapper) {
  std::string bytes = makeTotal().bytes();
  ajour_load_options options = AJOUR_INIT(ajour_load_options);
  options.flags = AJOUR_LOAD_COPY;
  ajour::Result<ajour::Model> model = ajour::Model::load(bytes.data(), bytes.size(), &options);
  ASSERT_TRUE(model) << model.message();
  ASSERT_EQ(model->states().size(), 1u);
  EXPECT_STREQ(model->states()[0].name, "total");
  ajour::Result<ajour::Session> session = model->createSession();
  ASSERT_TRUE(session) << session.message();
  const float x[4] = {1, 1, 1, 1};
  ASSERT_TRUE(session->setInput(0, x));
  ASSERT_TRUE(session->run());
  ajour::Result<std::vector<uint8_t>> saved = session->saveState(model->savedStateBytes());
  ASSERT_TRUE(saved) << saved.message();
  ASSERT_TRUE(session->resetState());
  ASSERT_TRUE(session->restoreState(*saved));
  ASSERT_TRUE(session->run());
  ajour::Result<ajour_tensor_view> z = session->output(0);
  ASSERT_TRUE(z);
  EXPECT_EQ(static_cast<const float *>(z->data)[0], 12);
}

static void expectBad(const std::function<void(TestModel &)> &change, const std::string &message) {
  TestModel model = makeTotal();
  change(model);
  Loaded loaded = loadBytes(model.bytes());
  EXPECT_EQ(loaded.status, AJOUR_BAD_FILE) << message;
  EXPECT_NE(loaded.message.find(message), std::string::npos) << "found: " << loaded.message << "\nexpected: " << message;
}

using M = TestModel;

TEST(Refused, States) {
  expectBad([](M &m) { m.description.states[0]->name = ""; }, "states[0].name is empty");
  expectBad([](M &m) { m.description.states[0]->element_type = 99; }, "states[0].element_type is 99");
  expectBad([](M &m) { m.description.states[0]->shape = std::vector<int64_t>(9, 1); }, "states[0].shape has 9 entries");
  expectBad([](M &m) { m.description.states[0]->shape = {-1}; }, "states[0].shape[0] is -1");
  expectBad([](M &m) { m.description.states[0]->shape = {int64_t(1) << 40, int64_t(1) << 40}; }, "makes the state too large");
  expectBad([](M &m) { m.description.states[0]->shape = {3}; }, "has another size than its 12 bytes");
  expectBad([](M &m) { m.program().buffers[2]->size = expr(constant(32)); }, "has another size than its 16 bytes");
  expectBad([](M &m) { m.description.states[0]->buffer = 0; }, "buffer 0 of state 'total' is not a state buffer of its own");
  expectBad([](M &m) { m.description.states[0]->next = 77; }, "buffer 77 of state 'total'");
  expectBad([](M &m) { m.description.states.clear(); }, "buffers[2] is a state buffer without a state");
  expectBad([](M &m) { m.description.states[0]->initial_segment = 9; }, "states[0].initial_segment is 9");
  expectBad([](M &m) { m.description.states[0]->initial_offset = 64; }, "states[0].initial_offset 64");
  expectBad([](M &m) { m.description.states[0]->initial_offset = 8; }, "states[0].initial_offset 8");
  expectBad([](M &m) { m.description.outputs[0]->buffer = 3; }, "buffer 3 of output 'z' does not outlive the run");
  expectBad([](M &m) { m.program().dispatches.erase(m.program().dispatches.begin()), m.program().dispatches[0]->variants[0]->operands = {2, 4, 1}; },
            "state 'total' is written by no dispatch");
  expectBad(
      [](M &m) {
        m.description.states.push_back(std::make_unique<ajour::artifact::StateT>(*m.description.states[0]));
      },
      "two states have the name 'total'");
  expectBad(
      [](M &m) {
        m.description.states.push_back(std::make_unique<ajour::artifact::StateT>(*m.description.states[0]));
        m.description.states[1]->name = "other";
      },
      "buffer 2 of state 'other' is not a state buffer of its own");
}
