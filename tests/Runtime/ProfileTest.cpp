// Profile and observer.
#include <cstring>
#include <unistd.h>

#include "Fixture.h"

using namespace ajour;
using namespace ajour::test;

static std::string format(ajour_session *session, int format) {
  size_t length = ajour_session_format_profile(session, format, nullptr, 0);
  std::string text(length + 1, '#');
  EXPECT_EQ(ajour_session_format_profile(session, format, text.data(), text.size()), length);
  EXPECT_EQ(text.back(), 0);
  text.pop_back();
  return text;
}

TEST(Profile, CountsAndNames) {
  TestModel model = makeAffine();
  model.program().dispatches[1]->nodes[0] = "quoted \"name\"";
  Loaded loaded = loadBytes(model.bytes());
  Session session(loaded.model, 1, AJOUR_SESSION_PROFILE);
  std::vector<float> x = ramp(10, 1, 1);
  ASSERT_DONE(session.set(0, x, {10, 4}));
  ASSERT_DONE(session.set(1, x, {10, 4}));
  for (int i = 0; i < 3; ++i)
    ASSERT_DONE(ajour_session_run(session.handle));
  ajour_profile_entry entry = AJOUR_INIT(ajour_profile_entry);
  ASSERT_DONE(ajour_session_profile(session.handle, 0, &entry));
  EXPECT_STREQ(entry.name, "sum");
  EXPECT_STREQ(entry.kind, "elementwise");
  EXPECT_EQ(entry.calls, 3u);
  EXPECT_GT(entry.total_ns, 0u);
  EXPECT_LE(entry.min_ns * 3, entry.total_ns);
  EXPECT_EQ(entry.macs, 40u);
  EXPECT_EQ(entry.bytes, 3 * 160u);
  EXPECT_STATUS(ajour_session_profile(session.handle, 2, &entry), AJOUR_INVALID_ARGUMENT, "there is no dispatch 2");

  std::string table = format(session.handle, AJOUR_PROFILE_TEXT);
  EXPECT_NE(table.find("sum: Add_0\n"), std::string::npos) << table;
  EXPECT_NE(table.find("scaled: quoted \"name\", Mul_2\n"), std::string::npos) << table;
  std::string trace = format(session.handle, AJOUR_PROFILE_TRACE_JSON);
  EXPECT_NE(trace.find("\"nodes\":\"quoted \\\"name\\\", Mul_2\""), std::string::npos) << trace;
  EXPECT_NE(trace.find("\"ph\":\"X\""), std::string::npos);

  std::string path = temporaryPath("profile.json");
  ASSERT_DONE(ajour_session_write_profile(session.handle, AJOUR_PROFILE_TRACE_JSON, path.c_str()));
  EXPECT_EQ(readFile(path), trace);
  unlink(path.c_str());
  EXPECT_STATUS(ajour_session_write_profile(session.handle, AJOUR_PROFILE_TEXT, "/no/such/dir/p"), AJOUR_IO,
                "/no/such/dir/p: cannot write the profile");
  EXPECT_STATUS(ajour_session_write_profile(session.handle, 9, "p"), AJOUR_INVALID_ARGUMENT,
                "unknown profile format 9");
  ASSERT_DONE(ajour_session_set_profile(session.handle, 1));
  ajour_session_profile(session.handle, 0, &entry);
  EXPECT_EQ(entry.calls, 0u);
}

namespace {
struct Seen {
  std::vector<std::string> names;
  std::vector<std::vector<float>> results;
  std::vector<const void *> places;
};
void look(void *user, const ajour_observation *observation) {
  Seen &seen = *static_cast<Seen *>(user);
  seen.names.push_back(observation->name);
  for (uint32_t i = 0; i < observation->result_count; ++i) {
    const ajour_observed_result &result = observation->results[i];
    const float *data = static_cast<const float *>(result.data);
    seen.results.emplace_back(data, data + result.bytes / 4);
    seen.places.push_back(data);
  }
}
} // namespace

TEST(Observer, SeesEveryResult) {
  Loaded loaded = loadBytes(makeAffine().bytes());
  Session session(loaded.model, 1, AJOUR_SESSION_KEEP_INTERMEDIATES);
  Seen seen;
  ASSERT_DONE(ajour_session_set_observer(session.handle, look, &seen));
  std::vector<float> x = ramp(2, 1, 1), y = ramp(2, 2, 1), sum(8);
  ASSERT_DONE(session.set(0, x, {2, 4}));
  ASSERT_DONE(session.set(1, y, {2, 4}));
  ASSERT_DONE(ajour_session_run(session.handle));
  for (size_t i = 0; i < 8; ++i)
    sum[i] = x[i] + y[i];
  ASSERT_EQ(seen.names, (std::vector<std::string>{"sum", "scaled"}));
  ASSERT_EQ(seen.results.size(), 2u);
  EXPECT_EQ(seen.results[0], sum);
  EXPECT_EQ(seen.results[1], affine(x, y));
}

// x -> a -> b -> c -> z: the arena shares memory between a and c, unless intermediates are kept.
TEST(Observer, KeptIntermediatesShareNothing) {
  TestModel model = makeAffine();
  auto &program = model.program();
  program.dispatches.clear();
  program.buffers[2]->last_use = 1;
  uint32_t b = model.addBuffer(artifact::BufferKind::Arena, times(0, 16), 1, 2);
  uint32_t c = model.addBuffer(artifact::BufferKind::Arena, times(0, 16), 2, 3);
  model.addDispatch("a", "test_add", {0, 1, 2}, symbol(0));
  model.addDispatch("b", "test_add", {2, 1, b}, symbol(0));
  model.addDispatch("c", "test_add", {b, 1, c}, symbol(0));
  model.addDispatch("z", "test_add", {c, 1, 4}, symbol(0));
  Loaded loaded = loadBytes(model.bytes());
  ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
  for (bool keep : {false, true}) {
    Session session(loaded.model, 1, keep ? AJOUR_SESSION_KEEP_INTERMEDIATES : 0);
    Seen seen;
    ASSERT_DONE(ajour_session_set_observer(session.handle, look, &seen));
    ASSERT_DONE(session.set(0, ramp(2, 0, 0), {2, 4}));
    ASSERT_DONE(session.set(1, ramp(2, 1, 0), {2, 4}));
    ASSERT_DONE(ajour_session_run(session.handle));
    ASSERT_EQ(seen.places.size(), 4u);
    EXPECT_EQ(seen.places[0] == seen.places[2], !keep);
    EXPECT_EQ(session.output(), ramp(2, 4, 0));
  }
}
