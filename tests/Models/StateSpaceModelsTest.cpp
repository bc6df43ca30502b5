// The quickstart's Mamba, compiled: what it makes of text, however the text is given to it, and its states.
#include "Support/ModelFiles.h"

#include "ajour/Import/Import.h"
#include "ajour/Pipeline/CompiledModel.h"
#include "ajour/Support/Diagnostics.h"
#include "ajour/ajour.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

using namespace ajour::test;

namespace {

/// The beginning of a held-out chapter, Genesis 21.
const std::string text =
    "And the LORD visited Sarah as he had said, and the LORD did unto Sarah as he had spoken.\n"
    "For Sarah conceived, and bare Abraham a son in his old age, at the set time of which God had spoken to him.\n"
    "And Abraham called the name of his son that was born unto him, whom Sarah bare to him, Isaac.\n"
    "And Abraham circumcised his son Isaac being eight days old, as God had commanded him.\n";

const std::string folder = AJOUR_SOURCE_DIR "/tools/quickstart/mamba";

class OwnMamba : public testing::Test {
protected:
  static void SetUpTestSuite() {
    std::unique_ptr<mlir::MLIRContext> context = ajour::makeContext();
    ajour::DiagnosticCollector diagnostics(context.get(), folder);
    mlir::OwningOpRef<mlir::ModuleOp> module = ajour::importModel(context.get(), folder, {});
    ASSERT_TRUE(module) << diagnostics.text();
    compiled = ajour::CompiledModel::compile(*module).release();
    ASSERT_TRUE(compiled) << diagnostics.text();
    ajour::Result<ajour::Model> loaded = ajour::Model::load(compiled->path());
    ASSERT_TRUE(loaded) << loaded.message();
    model = new ajour::Model(std::move(*loaded));
  }
  static void TearDownTestSuite() {
    delete model;
    delete compiled;
    model = nullptr;
    compiled = nullptr;
  }
  void SetUp() override {
    ASSERT_TRUE(model);
    session.emplace(newSession());
  }

  static ajour::Session newSession() {
    ajour::Result<ajour::Session> made = model->createSession();
    EXPECT_TRUE(made) << made.message();
    return std::move(*made);
  }

  /// Logits of the bytes [from, to) of the text, given in calls of at most `atOnce`.
  static std::vector<float> run(ajour::Session &session, size_t from, size_t to, size_t atOnce) {
    std::vector<float> logits;
    for (size_t begin = from; begin < to; begin += atOnce) {
      size_t end = std::min(to, begin + atOnce);
      std::vector<int64_t> tokens(text.begin() + long(begin), text.begin() + long(end));
      EXPECT_TRUE(session.setInput(0, tokens.data(), {int64_t(tokens.size())}));
      ajour::Status status = session.run();
      EXPECT_TRUE(status) << status.message();
      ajour::Result<ajour_tensor_view> view = session.output(0);
      if (!status || !view)
        return {};
      auto *values = static_cast<const float *>(view->data);
      logits.insert(logits.end(), values, values + view->bytes / sizeof(float));
    }
    return logits;
  }

  static inline ajour::CompiledModel *compiled = nullptr;
  static inline ajour::Model *model = nullptr;
  std::optional<ajour::Session> session;
};

// The loss that training found is that of whole chapters; these first verses are a little harder to guess than what follows them.
TEST_F(OwnMamba, ExpectsHeldOutText) {
  double heldOut = nlohmann::json::parse(readFile(folder + "/facts.json"))["held_out_loss"];
  std::vector<float> logits = run(*session, 0, text.size(), 512);
  ASSERT_EQ(logits.size(), text.size() * 256);
  double loss = 0;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    const float *row = logits.data() + i * 256;
    double sum = 0;
    for (int j = 0; j < 256; ++j)
      sum += std::exp(double(row[j]));
    loss += std::log(sum) - double(row[uint8_t(text[i + 1])]);
  }
  loss /= double(text.size() - 1);
  std::printf("loss %.4f a byte, held-out text in training %.4f\n", loss, heldOut);
  // A model without any context would have ln 27 = 3.3 at best.
  EXPECT_LT(loss, heldOut + 0.3);
}

TEST_F(OwnMamba, TextInPiecesIsTheSameText) {
  std::vector<float> whole = run(*session, 0, text.size(), 512);
  for (size_t atOnce : {1, 7, 100}) {
    ajour::Session other = newSession();
    std::vector<float> pieces = run(other, 0, text.size(), atOnce);
    ASSERT_EQ(pieces.size(), whole.size());
    float worst = 0, largest = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
      worst = std::max(worst, std::abs(pieces[i] - whole[i]));
      largest = std::max(largest, std::abs(whole[i]));
    }
    // Products of one row and of many sum in another order.
    EXPECT_LE(worst, 1e-3f * largest) << atOnce << " at a time";
  }
}

TEST_F(OwnMamba, RollingBackToASnapshotIsExact) {
  run(*session, 0, 40, 7);
  ajour::Result<std::vector<uint8_t>> snapshot = session->saveState(model->savedStateBytes());
  ASSERT_TRUE(snapshot) << snapshot.message();
  std::vector<float> first = run(*session, 40, 90, 5);
  // On from another place, and back.
  run(*session, 10, 30, 1);
  ASSERT_TRUE(session->restoreState(*snapshot));
  EXPECT_EQ(run(*session, 40, 90, 5), first);
  // In another session, as a prefix that need not be computed again.
  ajour::Session other = newSession();
  ASSERT_TRUE(other.restoreState(*snapshot));
  EXPECT_EQ(run(other, 40, 90, 5), first);
  // As a run from the beginning.
  ASSERT_TRUE(other.resetState());
  run(other, 0, 40, 7);
  EXPECT_EQ(run(other, 40, 90, 5), first);
}

TEST_F(OwnMamba, StatesAreRowsAndScansOfEachLayer) {
  ajour_model_info info = AJOUR_INIT(ajour_model_info);
  ASSERT_EQ(ajour_model_get_info(model->handle(), &info), AJOUR_OK);
  EXPECT_EQ(info.input_count, 1u);
  EXPECT_EQ(info.state_count, 8u);
  ajour_tensor_info state = AJOUR_INIT(ajour_tensor_info);
  ASSERT_EQ(ajour_model_state(model->handle(), 0, &state), AJOUR_OK);
  EXPECT_STREQ(state.name, "rows.0");
  ASSERT_EQ(ajour_model_state(model->handle(), 1, &state), AJOUR_OK);
  EXPECT_STREQ(state.name, "scan.0");
  EXPECT_EQ(std::vector<int64_t>(state.dims, state.dims + state.rank), (std::vector<int64_t>{8, 256, 1}));
}

} // namespace
