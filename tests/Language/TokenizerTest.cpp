// Tokenizers written for the purpose: each stage by itself, streams, and what is refused.
#include "Vocabulary.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace ajour;
using namespace ajour::test;

namespace {

using Ids = std::vector<int32_t>;

/// A tokenizer.json of one model and, perhaps, other stages.
std::string document(const std::string &model, const std::string &stages = "", const std::string &added = "[]") {
  return "{\"added_tokens\": " + added + (stages.empty() ? "" : ", " + stages) + ", \"model\": " + model + "}";
}

const char smallBPE[] = R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "abab": 3, "c": 4}, "merges": ["a b", "ab ab"]})";

TEST(Tokenizer, MergesByRankThenFromTheLeft) {
  LoadedTokenizer t;
  loadJSON(document(smallBPE), t);
  EXPECT_EQ(t.encode("ababab"), (Ids{3, 2}));
  EXPECT_EQ(t.encode("caba"), (Ids{4, 2, 0}));
  EXPECT_EQ(t.encode(""), Ids{});
}

TEST(Tokenizer, WordPieceTakesTheLongest) {
  LoadedTokenizer t;
  loadJSON(document(R"({"type": "WordPiece", "unk_token": "[UNK]", "max_input_chars_per_word": 10,
      "vocab": {"[UNK]": 0, "un": 1, "##aff": 2, "##able": 3, "word": 4, ",": 5}})",
                    R"("pre_tokenizer": {"type": "BertPreTokenizer"})"),
           t);
  EXPECT_EQ(t.encode("unaffable, word"), (Ids{1, 2, 3, 5, 4}));
  EXPECT_EQ(t.encode("unaffx word"), (Ids{0, 4}));
  EXPECT_EQ(t.encode("wordwordword"), (Ids{0}));
  EXPECT_EQ(t.decode({1, 2, 3, 4}), "unaffable word");
}

// A cased vocabulary that keeps accents must not decompose them.
/// Work grows with the word's length, not with its square: this one would take hours.
TEST(Tokenizer, WordPieceOfAWordWithoutEnd) {
  LoadedTokenizer t;
  loadJSON(document(R"({"type": "WordPiece", "unk_token": "[UNK]", "max_input_chars_per_word": 100000000, "continuing_subword_prefix": "##",
            "vocab": {"[UNK]": 0, "x": 1, "##x": 2}})"), t);
  EXPECT_EQ(t.encode(std::string(8 << 20, 'x')).size(), size_t(8) << 20);
}

TEST(Tokenizer, CasedWordPieceKeepsAccents) {
  LoadedTokenizer t;
  loadJSON(document(R"({"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "schön": 1, "Müller": 2, "Größe": 3, "café": 4}})",
                    R"("normalizer": {"type": "BertNormalizer", "lowercase": false, "strip_accents": false},
                       "pre_tokenizer": {"type": "BertPreTokenizer"})"),
           t);
  EXPECT_EQ(t.encode("schön Müller Größe café"), (Ids{1, 2, 3, 4}));
}

TEST(Tokenizer, UncasedWordPieceStripsAccents) {
  LoadedTokenizer t;
  loadJSON(document(R"({"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "muller": 1, "你": 2, "好": 3}})",
                    R"("normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"})"),
           t);
  EXPECT_EQ(t.encode("Müller 你好"), (Ids{1, 2, 3}));
}

TEST(Tokenizer, UnigramTakesTheBestSum) {
  LoadedTokenizer t;
  loadJSON(document(R"({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -3], ["b", -3], ["ab", -5], ["abc", -12], ["c", -4]]})"), t);
  EXPECT_EQ(t.encode("abc"), (Ids{3, 5}));
  EXPECT_EQ(t.encode("ba"), (Ids{2, 1}));
  // Neighbouring unknown code points are one unknown token.
  EXPECT_EQ(t.encode("azzb"), (Ids{1, 0, 2}));
}

TEST(Tokenizer, CompatibilityFormMapsBeforeTheModel) {
  LoadedTokenizer t;
  loadJSON(document(R"({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["4", -1], [" ", -1], ["1", -1], ["⁄", -1], ["2", -1], ["(", -1]]})",
                    R"("normalizer": {"type": "NFKC"})"),
           t);
  EXPECT_EQ(t.encode("4 ½"), (Ids{1, 2, 3, 4, 5}));
  EXPECT_EQ(t.encode("（"), (Ids{6}));
}

TEST(Tokenizer, CompositionJoinsWhatIsOrdered) {
  LoadedTokenizer t;
  // A dot below and an acute, in either order, and a syllable of three letters.
  loadJSON(document(R"({"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "ẹ\u0301": 1, "한": 2}})",
                    R"("normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "WhitespaceSplit"})"),
           t);
  EXPECT_EQ(t.encode("e\u0323\u0301 e\u0301\u0323 \u1112\u1161\u11ab"), (Ids{1, 1, 2}));
}

// Tokens that are not normalised are found before anything else, with their line ends and tabs.
TEST(Tokenizer, AddedTokensComeFirst) {
  LoadedTokenizer t;
  loadJSON(document(smallBPE, R"("normalizer": {"type": "Lowercase"})",
                    R"([{"id": 5, "content": "\n\t", "normalized": false, "special": false},
                        {"id": 6, "content": "<S>", "normalized": false, "special": true},
                        {"id": 7, "content": "cc", "normalized": true, "special": false},
                        {"id": 8, "content": "<L>", "normalized": false, "special": true, "lstrip": true, "rstrip": true}])"),
           t);
  EXPECT_EQ(t.encode("a\n\tB"), (Ids{0, 5, 1}));
  EXPECT_EQ(t.encode("CC"), (Ids{7}));
  EXPECT_EQ(t.encode("a<S>b", false, true), (Ids{0, 6, 1}));
  EXPECT_EQ(t.encode("ab <L> c", false, true), (Ids{2, 8, 4}));
}

TEST(Tokenizer, TemplatePutsTokensAround) {
  LoadedTokenizer t;
  loadJSON(document(smallBPE, R"("post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[B]"}},
      {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "[E]"}}]})",
                    R"([{"id": 5, "content": "[B]", "special": true}, {"id": 6, "content": "[E]", "special": true}])"),
           t);
  EXPECT_EQ(t.encode("ab", true), (Ids{5, 2, 6}));
  EXPECT_EQ(t.encode("ab"), (Ids{2}));
  EXPECT_EQ(t.decode({5, 2, 6}), "ab");
  EXPECT_EQ(t.decode({5, 2, 6}, true), "[B]ab[E]");
}

TEST(Tokenizer, StagesThatAreNotKnownAreNamed) {
  std::vector<uint8_t> bytes;
  EXPECT_EQ(importTokenizerJSON(document(smallBPE, R"("normalizer": {"type": "Rot13"})"), bytes), "the normaliser 'Rot13' is not known");
  EXPECT_EQ(importTokenizerJSON(document(smallBPE, R"("pre_tokenizer": {"type": "Guess"})"), bytes), "the pre-tokeniser 'Guess' is not known");
  EXPECT_EQ(importTokenizerJSON(document(smallBPE, R"("post_processor": {"type": "Last"})"), bytes), "the post-processor 'Last' is not known");
  EXPECT_EQ(importTokenizerJSON(document(smallBPE, R"("decoder": {"type": "CTC"})"), bytes), "the decoder 'CTC' is not known");
  EXPECT_EQ(importTokenizerJSON(document(R"({"type": "Neural"})"), bytes), "the vocabulary is not an object of texts with their ids");
  EXPECT_EQ(importTokenizerJSON(document(R"({"type": "WordLevel", "vocab": {"a": 0}})"), bytes),
            "the model is of the type 'WordLevel'; BPE, WordPiece and Unigram are known");
  EXPECT_EQ(importTokenizerJSON("[]", bytes), "is no JSON object");
  EXPECT_EQ(importTokenizerJSON(document(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["ab"]})"), bytes), "merge 0 is not two texts");
  EXPECT_EQ(importTokenizerJSON(document(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]})"), bytes),
            "merge 0 ('a' with 'b') names a text that is no token");
  EXPECT_EQ(importTokenizerJSON(document(R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})"), bytes),
            "the token 'a' has no id from 0 to 16777215");
  EXPECT_EQ(importTokenizerJSON(document(R"({"type": "BPE", "vocab": {"a": 3, "b": 3}, "merges": []})"), bytes),
            "the tokens 'a' and 'b' have the same id 3");
}

// Pieces of an emoji come token by token; nothing is said before it is whole.
TEST(StreamDecoder, SaysWholeSequencesOnly) {
  std::string vocab;
  for (int b = 0; b < 256; ++b) {
    char text[32];
    snprintf(text, sizeof(text), "%s\"<0x%02X>\": %d", b ? ", " : "", unsigned(b), b);
    vocab += text;
  }
  LoadedTokenizer t;
  loadJSON(document("{\"type\": \"BPE\", \"byte_fallback\": true, \"vocab\": {" + vocab + "}, \"merges\": []}"), t);
  language::StreamDecoder stream(t.tokenizer);
  language::Text text;
  auto said = [&] {
    std::string result(text.data(), text.size());
    text.clear();
    return result;
  };
  for (int32_t byte : {0x20, 0xf0, 0x9f})
    stream.add(byte, text);
  EXPECT_EQ(said(), " ");
  stream.add(0x98, text);
  EXPECT_EQ(said(), "");
  stream.add(0x8a, text);
  EXPECT_EQ(said(), "😊");
  // A sequence that breaks off becomes U+FFFD, and so does one that the end cuts.
  stream.add(0xe4, text);
  stream.add('x', text);
  EXPECT_EQ(said(), "\uFFFDx");
  stream.add(0xe4, text);
  EXPECT_EQ(said(), "");
  stream.finish(text);
  EXPECT_EQ(said(), "\uFFFD");
}

TEST(Tokenizer, DamagedDescriptionsAreRefused) {
  LoadedTokenizer t;
  loadJSON(document(smallBPE, R"("normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"})"), t);
  std::vector<uint8_t> good = t.description;
  language::Tokenizer tokenizer;
  for (size_t size = 0; size < good.size(); size += 7) {
    std::vector<uint8_t> cut(good.begin(), good.begin() + ptrdiff_t(size));
    tokenizer.open(cut.data(), cut.size());
  }
  EXPECT_STREQ(tokenizer.open(good.data(), 4), "the tokenizer's description is damaged");
  std::vector<uint64_t> shifted(good.size() / 8 + 2);
  uint8_t *odd = reinterpret_cast<uint8_t *>(shifted.data()) + 4;
  std::copy(good.begin(), good.end(), odd);
  EXPECT_STREQ(tokenizer.open(odd, good.size()), "the table of merges lies at an address that is no multiple of 8");
  // Whatever a flipped byte makes of it: refused, or usable without harm.
  for (size_t at = 0; at < good.size(); ++at) {
    std::vector<uint8_t> bad = good;
    bad[at] ^= uint8_t(1 + at % 255);
    language::Tokenizer damaged;
    if (damaged.open(bad.data(), bad.size()) != nullptr)
      continue;
    language::Buffer<int32_t> ids;
    damaged.encode({"abab cab", 8}, {true, true}, ids);
    language::Text text;
    for (size_t i = 0; i < ids.size(); ++i)
      damaged.decode(ids[i], i == 0, true, text);
  }
}

// Begin and end tokens, and the chat template, stand in files beside a tokenizer.json.
TEST(Tokenizer, FilesBesideItSayMore) {
  std::string folder = testing::TempDir() + "ajour-tokenizer-" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  auto write = [&](const std::string &name, const std::string &contents) { std::ofstream(folder + "/" + name) << contents; };
  write("tokenizer.json", document(smallBPE, R"("normalizer": null)", R"([{"id": 5, "content": "[B]", "special": true},
      {"id": 6, "content": "[E]", "special": true}, {"id": 7, "content": "<|im_end|>", "special": true}])"));
  LoadedTokenizer bare, full, separate;
  loadFile(folder + "/tokenizer.json", bare);
  EXPECT_EQ(bare.tokenizer.bos(), -1);
  EXPECT_TRUE(bare.tokenizer.endsGeneration(7)) << "a known end of a turn";
  EXPECT_EQ(bare.tokenizer.chatTemplate().size, 0u);
  write("tokenizer_config.json", R"({"bos_token": "[B]", "eos_token": {"content": "[E]"}, "chat_template": [{"name": "tools", "template": "t"},
      {"name": "default", "template": "{{ x }}"}]})");
  write("generation_config.json", R"({"eos_token_id": [1, 6]})");
  loadFile(folder + "/tokenizer.json", full);
  EXPECT_EQ(full.tokenizer.bos(), 5);
  EXPECT_EQ(full.tokenizer.eos(), 6);
  EXPECT_TRUE(full.tokenizer.endsGeneration(1) && full.tokenizer.endsGeneration(6) && !full.tokenizer.endsGeneration(2));
  EXPECT_EQ(std::string(full.tokenizer.chatTemplate().data, full.tokenizer.chatTemplate().size), "{{ x }}");
  write("chat_template.jinja", "from a file");
  loadFile(folder + "/tokenizer.json", separate);
  EXPECT_EQ(std::string(separate.tokenizer.chatTemplate().data, separate.tokenizer.chatTemplate().size), "from a file");
  write("tokenizer_config.json", "[1]");
  std::vector<uint8_t> description;
  EXPECT_EQ(importTokenizer(folder + "/tokenizer.json", description), folder + "/tokenizer_config.json: is no JSON object");
  std::filesystem::remove_all(folder);
}

} // namespace
