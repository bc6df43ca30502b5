//===- BenchTest.cpp - Engines in processes of their own, and the report --===//

#include "ToolSupport/BenchReport.h"
#include "ToolSupport/EngineProcess.h"
#include "ToolSupport/Peak.h"
#include "Tools/TempDirectory.h"

#include <chrono>
#include <cstdlib>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace ajour::tools;

namespace {

/// Adds one to its input at every run; what else it does depends on the model's name.
class FakeEngine : public Engine {
public:
  explicit FakeEngine(const EngineConfig &config) : config(config), value(config.inputs.at(0).tensor) {
    if (config.model == "bad")
      throw ToolError("bad: cannot load");
  }
  std::string version() const override { return "1.2"; }
  void run() override {
    if (config.model == "dies")
      _exit(3);
    if (config.model == "killed")
      std::abort();
    if (config.model == "throws")
      throw ToolError("throws: cannot run");
    setReal(value, 0, getReal(value, 0) + 1);
  }
  std::vector<HostTensor> outputs() override { return {value, value}; }
  MacCounts macs() const override { return {42, 40, 2}; }

private:
  EngineConfig config;
  HostTensor value;
};

std::unique_ptr<Engine> createFake(const EngineConfig &config) { return std::make_unique<FakeEngine>(config); }
const EngineKind fake = {"fake", "x", "", createFake};

EngineConfig configOf(const std::string &model) { return {model, "", 1, {{"x", makeTensor(AJOUR_F32, {1})}}}; }

TEST(EngineProcess, RunsWarmsUpAndReports) {
  EngineProcess process(fake, configOf("good"));
  EXPECT_EQ(process.name(), "fake");
  EXPECT_EQ(process.version(), "1.2");
  EXPECT_EQ(process.macs().all, 42u);
  EXPECT_EQ(process.macs().f32, 40u);
  EXPECT_EQ(process.macs().int8, 2u);
  EXPECT_GE(process.loadMilliseconds(), 0);
  EXPECT_EQ(process.burst(4).size(), 4u);
  std::vector<HostTensor> outputs = process.outputs();
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(getReal(outputs[1], 0), 5); // One untimed run and four timed ones.
  EXPECT_GT(process.peakBytes(), 0u);
}

TEST(EngineProcess, SeveralLiveSideBySideAndEndInAnyOrder) {
  auto first = std::make_unique<EngineProcess>(fake, configOf("good"));
  auto second = std::make_unique<EngineProcess>(fake, configOf("good"));
  first->burst(1);
  second->burst(2);
  EXPECT_EQ(getReal(first->outputs()[0], 0), 2);
  first.reset();
  EXPECT_EQ(getReal(second->outputs()[0], 0), 3);
}

TEST(EngineProcess, FailuresBecomeMessages) {
  EXPECT_EQ(messageOf([] { EngineProcess(fake, configOf("bad")); }), "bad: cannot load");
  EXPECT_EQ(messageOf([] { EngineProcess(fake, configOf("throws")).burst(1); }), "throws: cannot run");
  EXPECT_EQ(messageOf([] { EngineProcess(fake, configOf("dies")).burst(1); }), "fake: the engine's process died");
  EXPECT_EQ(messageOf([] { EngineProcess(fake, configOf("killed")).burst(1); }),
            "fake: the engine's process died of signal 6");
}

TEST(Peers, LibraryIsFoundInADirectory) {
  TempDirectory directory;
  EXPECT_EQ(messageOf([&] { openLibrary(directory.path, {"libpeer.so"}, "asking"); }),
            directory.path + ": cannot open the library: no libpeer.so in it; get it by asking");
  std::filesystem::create_directories(directory.file("a/b"));
  writeFile(directory.file("a/b/libpeer.so"), "text");
  EXPECT_NE(messageOf([&] { openLibrary(directory.path, {"libpeer.so"}, "asking"); }).find("a/b/libpeer.so"),
            std::string::npos);
  EXPECT_EQ(messageOf([] { findPeer("nobody"); }), "--against nobody: no such peer; there are onnxruntime, llama.cpp");
}

/// As FakeEngine, of a language model: its times are its numbers of tokens.
class FakeLanguage : public LanguageEngine {
public:
  explicit FakeLanguage(const EngineConfig &) {}
  std::string version() const override { return "2"; }
  WeightCounts weights() const override { return {100, 60}; }
  uint32_t vocabulary() const override { return 7; }
  void prompt(const std::vector<int32_t> &tokens) override { given = tokens; }
  void generate(uint32_t count) override { given.insert(given.end(), count, 6); }
  std::vector<HostTensor> outputs() override {
    HostTensor tensor = makeTensor(AJOUR_I32, {int64_t(given.size())});
    for (size_t i = 0; i < given.size(); ++i)
      setReal(tensor, int64_t(i), given[i]);
    return {tensor};
  }

private:
  std::vector<int32_t> given;
};

std::unique_ptr<LanguageEngine> createFakeLanguage(const EngineConfig &config) { return std::make_unique<FakeLanguage>(config); }
const EngineKind fakeLanguage = {"fake", "x", "", nullptr, createFakeLanguage};

TEST(EngineProcess, RunsLanguageModels) {
  EngineProcess process(fakeLanguage, {"good", "", 1, {}, 16});
  EXPECT_EQ(process.weights().weights, 100u);
  EXPECT_EQ(process.weights().bytes, 60u);
  EXPECT_GE(process.prompt(9), 0);
  HostTensor tokens = process.outputs().at(0);
  ASSERT_EQ(tokens.numElements(), 9);
  for (int64_t i = 0; i < 9; ++i)
    EXPECT_LT(getReal(tokens, i), 7);
  EXPECT_GE(process.generate(3), 0);
  EXPECT_EQ(process.outputs().at(0).numElements(), 4); // Behind one token.
  for (int run = 0; run < 2; ++run) {
    EXPECT_GE(process.generate(3, 5), 0);
    EXPECT_EQ(process.outputs().at(0).numElements(), 8) << "behind five";
  }
}

/// What a model tells of itself (FakeLlama.cpp).
std::vector<double> logitsOf(LanguageEngine &engine) {
  std::vector<HostTensor> outputs = engine.outputs();
  std::vector<double> numbers;
  for (int64_t i = 0; i < outputs.at(0).numElements(); ++i)
    numbers.push_back(getReal(outputs[0], i));
  return numbers;
}

struct LlamaCpp : testing::Test {
  LlamaCpp() : model(directory.file("model.gguf")) { writeFile(model, "good 1000 625"); }
  EngineConfig config(uint32_t context = 600) { return {model, AJOUR_TEST_FAKE_LLAMA, 2, {}, context}; }
  TempDirectory directory;
  std::string model;
};

TEST_F(LlamaCpp, ReadsPromptsInBatchesAndGeneratesOneByOne) {
  std::unique_ptr<LanguageEngine> engine = createLlamaCpp(config());
  EXPECT_EQ(engine->vocabulary(), 5u);
  EXPECT_EQ(engine->weights().weights, 1000u);
  EXPECT_EQ(engine->weights().bytes, 625u);
  engine->prompt(std::vector<int32_t>(520, 3));
  EXPECT_EQ(logitsOf(*engine), (std::vector<double>{2, 520, 2, 600, 0})); // 512 and 8
  engine->generate(4);
  EXPECT_EQ(logitsOf(*engine), (std::vector<double>{6, 524, 2, 600, 0}));
  engine->rewind(std::vector<int32_t>(520, 3));
  EXPECT_EQ(logitsOf(*engine), (std::vector<double>{6, 520, 2, 600, 0})); // Nothing is read again.
  engine->prompt({1});
  EXPECT_EQ(logitsOf(*engine), (std::vector<double>{1, 1, 2, 600, 0}));
}

TEST_F(LlamaCpp, RefusesWhatIsNotRight) {
  EXPECT_EQ(messageOf([&] { createLlamaCpp(config())->prompt({9}); }), model + ": llama.cpp: llama_decode fails with 7");
  writeFile(model, "nocontext 1 1");
  EXPECT_EQ(messageOf([&] { createLlamaCpp(config(7)); }), model + ": llama.cpp cannot make a context of 7 tokens");
  std::filesystem::remove(model);
  EXPECT_EQ(messageOf([&] { createLlamaCpp(config()); }), model + ": llama.cpp cannot load the model");
}

TEST_F(LlamaCpp, RefusesParametersThatAreNotKnown) {
  setenv("FAKE_LLAMA_OTHER", "1", 1);
  std::string message = messageOf([&] { createLlamaCpp(config()); });
  unsetenv("FAKE_LLAMA_OTHER");
  EXPECT_NE(message.find(": not a llama.cpp that is known: its default context of 512 tokens in batches of 4096 and 512 differs, expected "
                         "512, 2048 and 512"),
            std::string::npos)
      << message;
}

TEST_F(LlamaCpp, LibraryIsFoundByItsRelease) {
  std::filesystem::create_directories(directory.file("bins"));
  std::filesystem::copy_file(AJOUR_TEST_FAKE_LLAMA, directory.file("bins/libllama.v1.2.3.so"));
  EngineConfig inDirectory = config();
  inDirectory.library = directory.path;
  EXPECT_EQ(createLlamaCpp(inDirectory)->version(), "v1.2.3");
  std::filesystem::copy_file(AJOUR_TEST_FAKE_CODE, directory.file("other.so"));
  inDirectory.library = directory.file("other.so");
  std::string message = messageOf([&] { createLlamaCpp(inDirectory); });
  EXPECT_EQ(message, directory.file("other.so") + ": not a llama.cpp that is known: it has no llama_log_set");
}

TEST(BenchReport, PercentilesAreLinear) {
  EXPECT_EQ(percentile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(percentile({1, 2}, 0.5), 1.5);
  EXPECT_EQ(percentile({0, 10}, 0.9), 9);
  EXPECT_EQ(percentile({7}, 0.1), 7);
}

std::vector<BenchResult> someResults() {
  BenchResult ours, theirs;
  ours.engine = "ajour";
  ours.model = theirs.model = "<a&b>.ajour";
  ours.median = 2;
  ours.p10 = 1.5;
  ours.p90 = 2.5;
  ours.macs = 1000000;
  ours.peakGops = 4;
  theirs.engine = "onnxruntime";
  theirs.median = theirs.p10 = theirs.p90 = 5;
  theirs.ratio = 2.5;
  theirs.maxDifference = 1e-6;
  return {ours, theirs};
}

TEST(BenchReport, TextHasTheRatio) {
  std::string text = formatBenchText(someResults());
  EXPECT_NE(text.find("onnxruntime takes 2.50 times as long as ajour: <a&b>.ajour, 1 thread, outputs differ by at most "
                      "1e-06\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("     1.0     4.0      25.0\n"), std::string::npos) << text; // 2 Mop in 2 ms, of 4 GOP/s.
  EXPECT_NE(text.find("       -       -         -\n"), std::string::npos) << text;
}

TEST(BenchReport, TokensHaveTestsOfTheirOwn) {
  std::vector<BenchResult> results = someResults();
  for (BenchResult &result : results) {
    result.metric = "generate";
    result.unit = "tokens/s";
    result.tokens = 64;
    result.bitsPerWeight = 4.5;
  }
  results.push_back(results[0]);
  results.back().metric = "prompt";
  std::string text = formatBenchText(results);
  EXPECT_NE(text.find("onnxruntime takes 2.50 times as long as ajour: <a&b>.ajour, generate 64, 1 thread"), std::string::npos) << text;
  EXPECT_NE(text.find("   4.50 "), std::string::npos) << text;
  auto json = nlohmann::json::parse(formatBenchJson({}, results))["results"];
  EXPECT_EQ(json[0]["metric"], "generate");
  EXPECT_EQ(json[0]["tokens"], 64);
  EXPECT_EQ(json[0]["unit"], "tokens/s");
  EXPECT_EQ(json[0]["bits_per_weight"], 4.5);
  std::string svg = formatBenchSvg({"CPU", "x", "y", "z", 1, 1, 1}, results);
  EXPECT_NE(svg.find(">Speed, median"), std::string::npos);
  EXPECT_NE(svg.find("generate 64, 1 thread"), std::string::npos);
  EXPECT_NE(svg.find("prompt 64, 1 thread"), std::string::npos);
}

TEST(BenchReport, JsonHasTheShareOfThePeak) {
  auto results = nlohmann::json::parse(formatBenchJson({}, someResults()))["results"];
  EXPECT_EQ(results[0]["gops"], 1);
  EXPECT_EQ(results[0]["peak_gops"], 4);
  EXPECT_EQ(results[0]["percent_of_peak"], 25);
  EXPECT_TRUE(results[1]["percent_of_peak"].is_null());
}

TEST(Peak, IsPlausible) {
  if (std::string(peakInstruction(PeakKind::F32)) == "none")
    GTEST_SKIP() << "no loop for this CPU";
  auto start = std::chrono::steady_clock::now();
  double f32 = measurePeak(PeakKind::F32, 1), int8 = measurePeak(PeakKind::Int8, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  // A core does 8 to 128 f32 operations a cycle at 0.5 to 6 GHz; a busy or emulated one less.
  EXPECT_GT(f32, 0.01);
  EXPECT_LT(f32, 800);
  EXPECT_GT(int8, 0.01);
  EXPECT_LT(int8, 6400);
}

TEST(BenchReport, JsonKeepsNamesInAnyEncoding) {
  std::vector<BenchResult> results = someResults();
  results[0].model = "\xff";
  EXPECT_TRUE(nlohmann::json::accept(formatBenchJson({}, results)));
}

TEST(BenchReport, PictureIsWellFormed) {
  std::string svg = formatBenchSvg({"CPU <1>", "x", "y", "z", 1, 1, 1}, someResults());
  EXPECT_NE(svg.find("&lt;a&amp;b>.ajour, 1 thread"), std::string::npos);
  EXPECT_NE(svg.find("CPU &lt;1>"), std::string::npos);
  EXPECT_EQ(svg.find("<a&b>"), std::string::npos);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
}

} // namespace
