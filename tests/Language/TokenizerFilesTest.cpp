// Published vocabularies against the tokens that their own programs give.
#include "Vocabulary.h"

#include "Support/ModelFiles.h"

#include <sstream>

using namespace ajour::test;

namespace {

/// The texts of an .inp file.
std::vector<std::string> textsOf(const std::string &contents) {
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  size_t at = 0;
  for (size_t found; (found = contents.find(separator, at)) != std::string::npos; at = found + separator.size())
    texts.push_back(contents.substr(at, found - at));
  texts.push_back(contents.substr(at));
  return texts;
}

class Vocabularies : public testing::TestWithParam<const char *> {};

TEST_P(Vocabularies, GiveTheirTokens) {
  std::string name = std::string("llama_cpp_vocab/ggml-vocab-") + GetParam() + ".gguf";
  AJOUR_MODEL_FILE(path, name);
  LoadedTokenizer loaded;
  loadFile(path, loaded);
  std::vector<std::string> texts = textsOf(readFile(path + ".inp"));
  std::istringstream lines(readFile(path + ".out"));
  std::string line;
  size_t count = 0;
  for (; std::getline(lines, line); ++count) {
    std::istringstream numbers(line);
    std::vector<int32_t> wanted;
    for (int32_t id; numbers >> id;)
      wanted.push_back(id);
    ASSERT_LT(count, texts.size());
    EXPECT_EQ(loaded.encode(texts[count]), wanted) << "'" << texts[count] << "'";
  }
  EXPECT_EQ(count, 46u);
}

INSTANTIATE_TEST_SUITE_P(Files, Vocabularies, testing::Values("bert-bge", "gpt-2", "llama-spm", "phi-3"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// Tokens that llama.cpp 0.5.0 gives: blanks behind Phi 3's control tokens go, those behind tokens that it shares with Llama stay.
TEST(Phi3, ControlTokensTakeBlanksAlong) {
  AJOUR_MODEL_FILE(path, "llama_cpp_vocab/ggml-vocab-phi-3.gguf");
  LoadedTokenizer loaded;
  loadFile(path, loaded);
  EXPECT_EQ(loaded.encode("<|user|>\n  Hi<|end|>  there <|assistant|>", false, true), (std::vector<int32_t>{32010, 6324, 32007, 727, 29871, 32001}));
  EXPECT_EQ(loaded.encode("<s>  a<|endoftext|> b", false, true), (std::vector<int32_t>{1, 259, 263, 32000, 29871, 289}));
}

/// Texts of many scripts, code, blanks and emoji, made without repetition by a fixed sequence of numbers.
std::vector<std::string> corpus(size_t lines) {
  static const std::vector<std::string> words = {
      "the", " quick", "Привет", " мир", "你好", "世界", " こんにちは", "안녕하세요", " שלום", " مرحبا", " नमस्ते", " สวัสดี", "Größe", " naïve",
      " café", "\t", "  ", "    ", "\n", "\r\n", "for (int i = 0; i < n; ++i)", " {", "}", "x_1", "==", "!=", "->", "1", "23", "4567", "3.14159",
      " 0x7fff", "😀", "👩‍👩‍👧‍👦", "🇩🇪", "e\u0301", "½", "№", "…", "—", " don't", " we'LL", "'", "\"", "\\", "/", "§", "\u00a0", "\u200b", "ǅ", "ſ"};
  std::vector<std::string> result;
  uint64_t state = 1;
  for (size_t i = 0; i < lines; ++i) {
    std::string text;
    for (size_t n = 1 + i % 13; n > 0; --n) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text += words[(state >> 33) % words.size()];
    }
    result.push_back(text);
  }
  return result;
}

void expectRoundTrip(const char *name) {
  AJOUR_MODEL_FILE(path, name);
  LoadedTokenizer loaded;
  loadFile(path, loaded);
  for (const std::string &text : corpus(10000))
    ASSERT_EQ(loaded.decode(loaded.encode(text)), text);
}

TEST(RoundTrip, ByteLevel) { expectRoundTrip("llama_cpp_vocab/ggml-vocab-gpt-2.gguf"); }
TEST(RoundTrip, SentencePiece) { expectRoundTrip("llama_cpp_vocab/ggml-vocab-llama-spm.gguf"); }

TEST(RoundTrip, NeoXUpToComposition) {
  AJOUR_MODEL_FILE(path, "gpt_neox/20B_tokenizer.json");
  LoadedTokenizer loaded;
  loadFile(path, loaded);
  for (std::string text : corpus(10000)) {
    // This tokenizer composes: e and an acute accent become one.
    for (size_t at; (at = text.find("e\u0301")) != std::string::npos;)
      text.replace(at, 3, "é");
    ASSERT_EQ(loaded.decode(loaded.encode(text)), text);
  }
}

// The ids that the vocabulary's publishers give for these texts.
TEST(TokenizerFiles, NeoX) {
  AJOUR_MODEL_FILE(path, "gpt_neox/20B_tokenizer.json");
  LoadedTokenizer loaded;
  loadFile(path, loaded);
  EXPECT_EQ(loaded.encode("Hello world"), (std::vector<int32_t>{12092, 1533}));
  EXPECT_EQ(loaded.encode("<|endoftext|>", false, true), (std::vector<int32_t>{0}));
  // Runs of blanks are added tokens of their own.
  EXPECT_EQ(loaded.encode("a    b").size(), 3u);
}

} // namespace
