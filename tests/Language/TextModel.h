//===- TextModel.h - small language models written by hand ------*- C++ -*-===//
#ifndef AJOUR_TESTS_LANGUAGE_TEXTMODEL_H
#define AJOUR_TESTS_LANGUAGE_TEXTMODEL_H

#include "Runtime/Fixture.h"

#include "ajour/ajour.hpp"

namespace ajour::test {

/// The tokens: letters and signs as themselves, some longer ones, half a character, and the two that begin and end.
constexpr int32_t vocabulary = 64, bosToken = 62, eosToken = 63;
const std::vector<std::string> &tokenTexts();

/// A description of the tokenizer of these tokens.
std::vector<uint8_t> describeTokenizer(const std::string &chatTemplate = "");

/// A model whose next token depends on all before: by keys at their positions, which can be rewound, or by a hidden state, which cannot.
/// With `slow`, each run takes a while first.
TestModel makeTextModel(bool rewinds, int64_t context = 64, int64_t batch = 8, bool slow = false);

/// What that model says after these tokens, by the definition.
int32_t nextToken(const std::vector<int32_t> &tokens);

/// A loaded model with its tokenizer, a session and a generator.
struct TextFixture {
  explicit TextFixture(TestModel model, uint32_t threads = 1);
  ~TextFixture();

  ajour_status_code prompt(const std::vector<int32_t> &tokens, size_t *reused = nullptr) {
    return ajour_generator_set_prompt(generator, tokens.data(), tokens.size(), reused);
  }
  std::vector<int32_t> tokens() const;
  /// Generates and returns the new tokens; their text is added to `text`.
  std::vector<int32_t> generate(uint64_t count, ajour_generate_options options = AJOUR_INIT(ajour_generate_options));

  Loaded loaded;
  ajour_tokenizer *tokenizer = nullptr;
  ajour_session *session = nullptr;
  ajour_generator *generator = nullptr;
  std::string text;
  ajour_generate_result result = AJOUR_INIT(ajour_generate_result);
};

} // namespace ajour::test

#endif
