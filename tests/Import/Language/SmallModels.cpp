//===- SmallModels.cpp - a small language model of each architecture --------------===//
#include "SmallModels.h"

#include "Support/ModelFiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <unistd.h>

namespace fs = std::filesystem;

namespace ajour::test {

static constexpr size_t vocabulary = 80;

bool hasTorch() {
  // Looked for, not imported, which takes seconds.
  static const bool found = std::system("/usr/bin/python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(\"torch\") is None)'") == 0;
  return found;
}

std::vector<const char *> smallModelsOfGGUF() {
  return {"llama",    "llama_linear",      "llama3", "llama_yarn", "llama_pruned", "mistral", "qwen2", "qwen3", "smollm3",   "granite", "olmo",
          "olmo2",    "stablelm",          "stablelm_parallel", "gemma", "gemma2", "gemma3", "phi2",  "phi3",  "phi3_long", "gpt2",    "bloom", "neox",
          "neox_serial", "starcoder2", "mixtral", "qwen2_moe", "qwen3_moe", "mamba", "mamba_pruned",
          "mamba_own", "falcon_mamba", "mamba2", "granite_hybrid"};
}

std::vector<const char *> smallModels() {
  std::vector<const char *> names = smallModelsOfGGUF();
  names.insert(names.end(), {"mamba2_limited", "qwen2_windows", "starcoder2_windows", "qwen3_moe_mixed", "llama+gptq", "llama+gptq_act_order", "llama+gptq_8", "llama+gptq_3",
                             "qwen2+awq", "mistral+packed", "mixtral+packed", "llama+sparse24"});
  return names;
}

std::string testName(const std::string &model) {
  std::string name = model;
  std::replace(name.begin(), name.end(), '+', '_');
  return name;
}

template <typename T> static std::vector<T> readNumbers(const fs::path &path) {
  std::string bytes = readFile(path.string());
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

SmallModel::SmallModel(const std::string &name) : name(name) {
  folder = fs::path(testing::TempDir()) / ("ajour-small-models-" + std::to_string(getpid()) + "-" + name);
  fs::create_directories(folder);
  std::string command = "/usr/bin/python3 -B " AJOUR_SOURCE_DIR "/tests/Import/Language/models/make_model.py '" + folder.string() + "' " + name;
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  tokens = readNumbers<int64_t>(folder / name / "tokens.i64");
  logits = readNumbers<float>(folder / name / "logits.f32");
  EXPECT_EQ(logits.size(), tokens.size() * vocabulary);
}

SmallModel::~SmallModel() {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

std::vector<HostTensor> SmallModel::inputs() const {
  int64_t count = int64_t(tokens.size());
  std::vector<int64_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), 0);
  HostTensor given = makeTensor(AJOUR_I64, {count}, tokens);
  // A model of Mamba layers alone does not ask for positions.
  if (name.find("mamba") != std::string::npos)
    return {given};
  return {given, makeTensor(AJOUR_I64, {count}, positions)};
}

void SmallModel::compare(const HostTensor &found, const std::string &form) const {
  ASSERT_EQ(found.numElements(), int64_t(logits.size()));
  ASSERT_FALSE(logits.empty());
  float largest = 0, worst = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    largest = std::max(largest, std::abs(logits[i]));
    float difference = std::abs(found.as<float>()[i] - logits[i]);
    worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
  }
  std::printf("%s, %s: largest difference %.2g of logits up to %.3g\n", name.c_str(), form.c_str(), double(worst), double(largest));
  EXPECT_LE(worst, 1e-4f * largest);
}

} // namespace ajour::test
