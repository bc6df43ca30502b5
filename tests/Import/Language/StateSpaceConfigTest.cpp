// What configurations of models with Mamba layers say, and what they are refused for.
#include "Import/Architectures/Transformer.h"
#include "Import/Language/SmallModels.h"
#include "Support/ModelFiles.h"

#include "ajour/Import/Import.h"
#include "ajour/Support/Diagnostics.h"

#include <gtest/gtest.h>

#include <fstream>

using namespace ajour;
using namespace ajour::test;
using architectures::Mixer;
using architectures::TransformerConfig;
using nlohmann::json;

namespace {

json mamba2() {
  return {{"model_type", "mamba2"}, {"hidden_size", 64}, {"num_hidden_layers", 2}, {"vocab_size", 100}, {"state_size", 16}, {"n_groups", 2}};
}
json hybrid() {
  return {{"model_type", "granitemoehybrid"}, {"hidden_size", 64},      {"num_hidden_layers", 2},         {"num_attention_heads", 4},
          {"vocab_size", 100},                {"mamba_d_state", 16},    {"max_position_embeddings", 128}, {"rms_norm_eps", 1e-5},
          {"hidden_act", "silu"},             {"layer_types", {"mamba", "attention"}}};
}

std::string problemOf(const std::string &config) {
  TransformerConfig c;
  return architectures::readConfig(config, c);
}
std::string with(json config, const char *key, json value) {
  config[key] = std::move(value);
  return problemOf(config.dump());
}

TEST(StateSpaceConfig, GoodOnesAreRead) {
  TransformerConfig c;
  std::string text = mamba2().dump();
  text.insert(1, R"("time_step_limit": [0.0, Infinity], "name": null, )");
  ASSERT_EQ(architectures::readConfig(text, c), "");
  EXPECT_EQ(c.layers[1].mixer, Mixer::Mamba2);
  EXPECT_FALSE(architectures::hasAttention(c));
  EXPECT_EQ(c.stateSpace.groups, 2);
  EXPECT_EQ(c.stateSpace.deltaMin, 0);
  EXPECT_EQ(c.stateSpace.deltaMax, INFINITY);
  TransformerConfig both;
  ASSERT_EQ(architectures::readConfig(hybrid().dump(), both), "");
  EXPECT_EQ(both.layers[0].mixer, Mixer::Mamba2);
  EXPECT_EQ(both.layers[1].mixer, Mixer::Attention);
  EXPECT_EQ(both.layers[1].rope, -1);
  TransformerConfig own;
  ASSERT_EQ(architectures::readConfig(R"({"d_model": 64, "n_layer": 2, "vocab_size": 50277, "ssm_cfg": {"layer": "Mamba2", "ngroups": 4}})", own), "");
  EXPECT_EQ(own.vocabulary, 50280);
  EXPECT_EQ(own.stateSpace.groups, 4);
}

TEST(StateSpaceConfig, RefusalsNameTheParameter) {
  EXPECT_EQ(with(mamba2(), "time_step_limit", {2, 1}), "time_step_limit is a list of 2, expected a list of a least and a most number");
  EXPECT_EQ(with(mamba2(), "time_step_limit", 1), "time_step_limit is 1, expected a list of a least and a most number");
  EXPECT_EQ(with(mamba2(), "conv_kernel", 1), "conv_kernel is 1, expected 2 to 16");
  EXPECT_EQ(with(mamba2(), "norm_before_gate", true), "norm_before_gate is true; false is supported");
  EXPECT_EQ(with(mamba2(), "attn_layer_idx", {1}), "attn_layer_idx is a list of 1; a list of 0 is supported");
  EXPECT_EQ(with(hybrid(), "layer_types", {"mamba", "rwkv"}), "layer_types names 'rwkv'; mamba and attention are known");
  EXPECT_EQ(with(hybrid(), "num_local_experts", 8), "num_local_experts is 8; 0 is supported");
  EXPECT_EQ(with(hybrid(), "position_embedding_type", "alibi"), "position_embedding_type is \"alibi\"; nope and rope are known");
}

TEST(StateSpaceConfig, SizesThatDoNotFitAreNamed) {
  if (!hasTorch())
    GTEST_SKIP() << "absent: python3-torch";
  SmallModel model("mamba");
  json config = json::parse(readFile(model.config()));
  config["state_size"] = 16;
  std::ofstream(model.config()) << config;
  mlir::MLIRContext context;
  DiagnosticCollector diagnostics(&context, model.safetensors());
  EXPECT_FALSE(importHuggingFace(&context, model.safetensors(), {}));
  EXPECT_NE(diagnostics.text().find("backbone.layers.0.mixer.in_proj.weight"), std::string::npos) << diagnostics.text();
  EXPECT_NE(diagnostics.text().find("128 heads in 1 groups of 8 states, out-projection 128; expected 256, 128 channels and 4 taps, 16 states"),
            std::string::npos)
      << diagnostics.text();
}

} // namespace
