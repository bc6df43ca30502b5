// Trained language models against what their publishers' programs say.
#include "Support/ModelFiles.h"

#include "ajour/Import/Import.h"
#include "ajour/Pipeline/CompiledModel.h"
#include "ajour/Support/Diagnostics.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

using namespace ajour;
using namespace ajour::test;

namespace {

/// The golden continuation: after each token the next one.
struct Golden {
  std::vector<int64_t> tokens, next;
};

Golden readGolden(const std::string &path) {
  nlohmann::json json = nlohmann::json::parse(readFile(path));
  Golden golden;
  golden.tokens = json["prompt_ids"].get<std::vector<int64_t>>();
  golden.next = json["greedy_ids"].get<std::vector<int64_t>>();
  golden.tokens.insert(golden.tokens.end(), golden.next.begin(), golden.next.end() - 1);
  return golden;
}

/// How many of the golden next tokens the model's logits prefer.
size_t countAgreeing(const std::string &model, const Golden &golden) {
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  DiagnosticCollector diagnostics(context.get(), model);
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(context.get(), model, {});
  if (!module) {
    ADD_FAILURE() << diagnostics.text();
    return 0;
  }
  std::unique_ptr<CompiledModel> compiled = CompiledModel::compile(*module);
  std::vector<HostTensor> outputs;
  std::string error;
  int64_t count = int64_t(golden.tokens.size());
  std::vector<int64_t> positions(golden.tokens.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<HostTensor> inputs = {makeTensor(AJOUR_I64, {count}, golden.tokens), makeTensor(AJOUR_I64, {count}, positions)};
  if (!compiled || !compiled->run(inputs, outputs, error)) {
    ADD_FAILURE() << diagnostics.text() << error;
    return 0;
  }
  size_t agreeing = 0, vocabulary = size_t(outputs[0].shape[1]);
  const float *logits = outputs[0].as<float>();
  for (size_t i = 0; i < golden.next.size(); ++i, logits += vocabulary)
    agreeing += std::max_element(logits, logits + vocabulary) - logits == golden.next[i];
  return agreeing;
}

class Stories : public testing::TestWithParam<std::pair<const char *, size_t>> {};

// Files of few bits, whose products round activations to 8 bits, drift from the golden text where two tokens are nearly equal; at least this many agree.
TEST_P(Stories, PreferTheGoldenTokens) {
  AJOUR_MODEL_FILE(golden, "stories260k/golden_greedy200.json");
  AJOUR_MODEL_FILE(model, std::string("stories260k/") + GetParam().first);
  EXPECT_GE(countAgreeing(model, readGolden(golden)), GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(Compiled, Stories,
                         testing::Values(std::pair("stories260K-f32.gguf", 200), std::pair("hf/model.safetensors", 200),
                                         std::pair("stories260K-f16.gguf", 200), std::pair("stories260K-q8_0.gguf", 197),
                                         std::pair("stories260K-q5_1.gguf", 193), std::pair("stories260K-q4_0.gguf", 170)));

} // namespace
