//===- Vocabulary.h - tokenizers of the tests -------------------*- C++ -*-===//
#ifndef AJOUR_TESTS_LANGUAGE_VOCABULARY_H
#define AJOUR_TESTS_LANGUAGE_VOCABULARY_H

#include "ajour/Import/Tokenizer.h"
#include "ajour/Language/Tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ajour::test {

/// A tokenizer with its description.
struct LoadedTokenizer {
  std::vector<uint8_t> description;
  language::Tokenizer tokenizer;

  void open() {
    const char *problem = tokenizer.open(description.data(), description.size());
    ASSERT_EQ(problem, nullptr) << problem;
  }
  std::vector<int32_t> encode(const std::string &text, bool addSpecial = false, bool parseSpecial = false) const {
    language::Buffer<int32_t> ids;
    EXPECT_EQ(tokenizer.encode({text.data(), text.size()}, {addSpecial, parseSpecial}, ids), language::TextStatus::Ok);
    return {ids.data(), ids.data() + ids.size()};
  }
  std::string decode(const std::vector<int32_t> &ids, bool special = false) const {
    language::Text text;
    for (size_t i = 0; i < ids.size(); ++i)
      tokenizer.decode(ids[i], i == 0, special, text);
    return {text.data(), text.size()};
  }
};

inline void loadFile(const std::string &path, LoadedTokenizer &loaded) {
  ASSERT_EQ(importTokenizer(path, loaded.description), "");
  loaded.open();
}
inline void loadJSON(const std::string &contents, LoadedTokenizer &loaded) {
  ASSERT_EQ(importTokenizerJSON(contents, loaded.description), "");
  loaded.open();
}

} // namespace ajour::test

#endif
