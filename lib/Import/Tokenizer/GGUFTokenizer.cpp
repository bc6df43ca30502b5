//===- GGUFTokenizer.cpp - tokenizers of GGUF files --------------------------------===//
#include "Builder.h"

#include "../GGUF/Reader.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace ajour::text {

using gguf::Value;
using gguf::ValueType;
using tokenizer::SplitBehavior;
using tokenizer::TokenType;

namespace {

// How byte-level vocabularies cut text before merging. Facts of the published vocabularies.
#define AJOUR_GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define AJOUR_GPT4(digits)                                                                                               \
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|" \
  "\\s+(?!\\S)|\\s+"

struct PreTokenizer {
  const char *name;
  std::vector<const char *> patterns;
};

ArrayRef<PreTokenizer> preTokenizers() {
  static const std::vector<PreTokenizer> rows = {
      {"gpt-2", {AJOUR_GPT2}},
      {"phi-2", {AJOUR_GPT2}},
      {"jina-es", {AJOUR_GPT2}},
      {"jina-de", {AJOUR_GPT2}},
      {"gigachat", {AJOUR_GPT2}},
      {"mpt", {AJOUR_GPT2}},
      {"olmo", {AJOUR_GPT2}},
      {"roberta-bpe", {AJOUR_GPT2}},
      {"stablelm", {AJOUR_GPT2}},
      {"gpt-neox", {AJOUR_GPT2}},
      {"starcoder", {"\\p{N}", AJOUR_GPT2}},
      {"refact", {"\\p{N}", AJOUR_GPT2}},
      {"command-r", {"\\p{N}", AJOUR_GPT2}},
      {"smollm", {"\\p{N}", AJOUR_GPT2}},
      {"codeshell", {"\\p{N}", AJOUR_GPT2}},
      {"exaone", {"\\p{N}", AJOUR_GPT2}},
      {"falcon", {"[\\p{P}\\$\\+<=>\\^~\\|`]+", AJOUR_GPT2, "[0-9][0-9][0-9]"}},
      {"llama-bpe", {AJOUR_GPT4("{1,3}")}},
      {"llama3", {AJOUR_GPT4("{1,3}")}},
      {"llama-v3", {AJOUR_GPT4("{1,3}")}},
      {"dbrx", {AJOUR_GPT4("{1,3}")}},
      {"smaug-bpe", {AJOUR_GPT4("{1,3}")}},
      {"chatglm-bpe", {AJOUR_GPT4("{1,3}")}},
      {"qwen2", {AJOUR_GPT4("")}},
      {"stablelm2", {AJOUR_GPT4("")}},
      {"deepseek-r1-qwen", {AJOUR_GPT4("")}},
      {"deepseek-coder",
       {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[\\u4e00-\\u9fa5\\u0800-\\u4e00\\uac00-\\ud7ff]+", "\\p{N}"}},
      {"tekken",
       {"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
        "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}|"
        " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
      {"gpt-4o",
       {"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
  };
  return rows;
}

/// The metadata of a tokenizer, checked.
class Importer {
public:
  Importer(const gguf::File &file, Builder &b) : file(file), b(b) {}

  std::string run() {
    const Value *model = file.find("tokenizer.ggml.model");
    if (!model || model->isArray() || model->type() != ValueType::String)
      return "has no tokenizer: tokenizer.ggml.model is missing or no string";
    if (std::string problem = readVocabulary(); !problem.empty())
      return problem;
    auto import = StringSwitch<std::string (Importer::*)()>(model->string())
                      .Case("llama", &Importer::sentencePiece)
                      .Case("gpt2", &Importer::byteLevel)
                      .Case("bert", &Importer::wordPiece)
                      .Case("t5", &Importer::unigram)
                      .Default(nullptr);
    if (!import)
      return "tokenizer.ggml.model is '" + model->string().str() + "'; llama, gpt2, bert and t5 are known";
    std::string problem = (this->*import)();
    return problem.empty() ? specialTokens() : problem;
  }

private:
  std::string checkArray(const char *key, ValueType type, const char *typeName, bool needed, const Value *&value) {
    value = file.find(key);
    if (!value)
      return needed ? std::string(key) + " is missing" : "";
    if (!value->isArray() || value->type() != type)
      return std::string(key) + " is not an array of " + typeName;
    if (tokens && value->size() != tokens->size())
      return std::string(key) + " has " + std::to_string(value->size()) + " entries, there are " +
             std::to_string(tokens->size()) + " tokens";
    return "";
  }

  std::string readVocabulary() {
    if (std::string p = checkArray("tokenizer.ggml.tokens", ValueType::String, "strings", true, tokens); !p.empty())
      return p;
    if (tokens->size() == 0)
      return "tokenizer.ggml.tokens is empty";
    if (std::string p = checkArray("tokenizer.ggml.scores", ValueType::F32, "32-bit floats", false, scores); !p.empty())
      return p;
    std::string p = checkArray("tokenizer.ggml.token_type", ValueType::I32, "signed 32-bit integers", false, types);
    // Some writers use the unsigned type.
    if (!p.empty() && types && types->isArray() && types->type() == ValueType::U32)
      p = checkArray("tokenizer.ggml.token_type", ValueType::U32, "32-bit integers", false, types);
    return p;
  }

  TokenType typeOf(size_t id) const {
    if (!types)
      return TokenType::Normal;
    int64_t type = *types->integer(id);
    return type >= 1 && type <= 6 ? TokenType(type) : TokenType::Normal;
  }

  /// Special token `key`; -1 when it is not there.
  std::string special(const char *key, int32_t &id) const {
    id = -1;
    const Value *value = file.find(std::string("tokenizer.ggml.") + key);
    if (!value)
      return "";
    std::optional<int64_t> number = value->isArray() ? std::nullopt : value->integer();
    if (!number)
      return std::string("tokenizer.ggml.") + key + " is no number";
    // All ones is how some writers say "none".
    if (*number == -1 || *number == int64_t(UINT32_MAX))
      return "";
    if (*number < 0 || *number >= int64_t(tokens->size()))
      return std::string("tokenizer.ggml.") + key + " is " + std::to_string(*number) + ", there are " +
             std::to_string(tokens->size()) + " tokens";
    id = int32_t(*number);
    return "";
  }

  bool flag(const char *key, bool otherwise) const {
    const Value *value = file.find(std::string("tokenizer.ggml.") + key);
    return value && value->type() == ValueType::Bool && !value->isArray() ? *value->integer() != 0 : otherwise;
  }

  /// Control and user-defined tokens are found in the text as a whole.
  void addAdded() {
    const Value *name = file.find("general.name");
    std::string lower = name && !name->isArray() && name->type() == ValueType::String ? name->string().lower() : "";
    bool isPhi3 = StringRef(lower).contains("phi-3") || StringRef(lower).contains("phi3");
    for (size_t id = 0; id < tokens->size(); ++id) {
      TokenType type = typeOf(id);
      if ((type != TokenType::Control && type != TokenType::UserDefined) || tokens->string(id).empty())
        continue;
      tokenizer::AddedTokenT token;
      token.id = uint32_t(id);
      token.text = tokens->string(id).str();
      token.special = type == TokenType::Control;
      // The format has no field for it: Phi 3's control tokens take the blanks behind them along, but for those that it shares with Llama.
      token.strip_right = isPhi3 && token.special && token.text != "<unk>" && token.text != "<s>" && token.text != "<|endoftext|>";
      b.addAdded(std::move(token));
    }
  }

  /// "<0x0A>": the token of a byte.
  static std::optional<uint8_t> byteOf(StringRef text) {
    unsigned value;
    if (text.size() != 6 || !text.consume_front("<0x") || !text.consume_back(">") || text.getAsInteger(16, value))
      return std::nullopt;
    return uint8_t(value);
  }

  /// Tokens with blanks as U+2581 and tokens for bytes.
  void addMarkedTokens() {
    b.t.byte_tokens.assign(256, -1);
    for (size_t id = 0; id < tokens->size(); ++id) {
      TokenType type = typeOf(id);
      float score = scores ? float(*scores->number(id)) : 0.0f;
      std::optional<uint8_t> byte = byteOf(tokens->string(id));
      if (byte && (type == TokenType::Byte || !types)) {
        char c = char(*byte);
        b.addToken(StringRef(&c, 1), TokenType::Byte, score, false);
        b.t.byte_tokens[*byte] = int32_t(id);
      } else {
        b.addToken(tokens->string(id), type, score, type == TokenType::Normal || type == TokenType::UserDefined);
      }
    }
    b.t.byte_fallback = true;
    b.t.space = blankMark;
  }

  std::string sentencePiece() {
    if (!scores)
      return "tokenizer.ggml.scores is missing, which a tokenizer of the kind llama needs";
    b.t.model = tokenizer::ModelKind::SPM;
    addMarkedTokens();
    addAdded();
    bool prefix = flag("add_space_prefix", true);
    if (prefix)
      b.addPrepend(" ");
    b.t.strip_leading_space = prefix;
    b.addReplace(" ", blankMark);
    return around("bos_token_id", "eos_token_id", flag("add_bos_token", true), flag("add_eos_token", false));
  }

  std::string unigram() {
    if (!scores)
      return "tokenizer.ggml.scores is missing, which a tokenizer of the kind t5 needs";
    b.t.model = tokenizer::ModelKind::Unigram;
    addMarkedTokens();
    addAdded();
    if (const Value *map = file.find("tokenizer.ggml.precompiled_charsmap")) {
      if (!map->isArray() || (map->type() != ValueType::U8 && map->type() != ValueType::I8))
        return "tokenizer.ggml.precompiled_charsmap is not an array of bytes";
      std::string bytes;
      for (size_t i = 0; i < map->size(); ++i)
        bytes.push_back(char(*map->integer(i)));
      if (std::string problem = b.addCharsMap(bytes); !problem.empty())
        return problem;
    }
    if (flag("remove_extra_whitespaces", false)) {
      b.addStrip(true, true);
      if (std::string problem = b.addReplacePattern(" {2,}", " "); !problem.empty())
        return problem;
    }
    b.t.fuse_unknown = true;
    bool prefix = flag("add_space_prefix", true);
    if (prefix)
      b.addPrepend(" ");
    b.t.strip_leading_space = prefix;
    b.addReplace(" ", blankMark);
    return around("bos_token_id", "eos_token_id", flag("add_bos_token", false), flag("add_eos_token", true));
  }

  std::string byteLevel() {
    const Value *pre = file.find("tokenizer.ggml.pre");
    StringRef name = pre && !pre->isArray() && pre->type() == ValueType::String ? pre->string() : StringRef("gpt-2");
    if (name == "default")
      name = "gpt-2";
    ArrayRef<const char *> patterns = preTokenizerPatterns(name);
    if (patterns.empty())
      return "tokenizer.ggml.pre is '" + name.str() + "', which is not known; known are " + preTokenizerNames();
    b.t.model = tokenizer::ModelKind::BPE;
    b.t.byte_level = true;
    b.t.byte_tokens.assign(256, -1);
    for (const char *pattern : patterns)
      if (std::string problem = b.addSplit(pattern, SplitBehavior::Isolated); !problem.empty())
        return problem;
    for (size_t id = 0; id < tokens->size(); ++id) {
      std::string bytes;
      TokenType type = typeOf(id);
      bool plain = (type == TokenType::Normal || type == TokenType::Unused) && decodeAlphabet(tokens->string(id), bytes);
      b.addToken(plain ? StringRef(bytes) : tokens->string(id), type, 0.0f, plain);
      if (plain && bytes.size() == 1)
        b.t.byte_tokens[uint8_t(bytes[0])] = int32_t(id);
    }
    addAdded();
    bool isLlama3 = name == "llama-bpe" || name == "llama3" || name == "llama-v3";
    b.t.whole_words = isLlama3 || name == "tekken";
    if (std::string problem = readMerges(); !problem.empty())
      return problem;
    return around("bos_token_id", "eos_token_id", flag("add_bos_token", isLlama3), flag("add_eos_token", false));
  }

  std::string readMerges() {
    const Value *merges = file.find("tokenizer.ggml.merges");
    if (!merges || !merges->isArray() || merges->type() != ValueType::String)
      return "tokenizer.ggml.merges is missing or not an array of strings";
    for (size_t i = 0; i < merges->size(); ++i) {
      StringRef text = merges->string(i);
      size_t blank = text.find(' ', 1);
      std::string left, right;
      if (blank == StringRef::npos || !decodeAlphabet(text.take_front(blank), left) ||
          !decodeAlphabet(text.drop_front(blank + 1), right))
        return "tokenizer.ggml.merges: entry " + std::to_string(i) + " '" + text.str() + "' is not two texts with a blank between";
      int32_t ids[3] = {b.find(left), b.find(right), b.find(left + right)};
      if (ids[0] < 0 || ids[1] < 0 || ids[2] < 0)
        return "tokenizer.ggml.merges: entry " + std::to_string(i) + " '" + text.str() + "' names a text that is no token";
      b.addMerge(ids[0], ids[1], ids[2]);
    }
    return "";
  }

  std::string wordPiece() {
    b.t.model = tokenizer::ModelKind::WordPiece;
    for (size_t id = 0; id < tokens->size(); ++id) {
      TokenType type = typeOf(id);
      b.addToken(tokens->string(id), type, 0.0f, type == TokenType::Normal);
    }
    addAdded();
    // Words begin with U+2581 in these files, other pieces are plain. Texts are decomposed, without accents, in lower case.
    b.t.word_prefix = blankMark;
    b.t.space = blankMark;
    b.t.strip_leading_space = true;
    b.addForm(Form::NFD);
    b.addRemoval("[\\p{Mn}]");
    b.addRemoval(classOf(controls));
    b.addLowercase();
    if (std::string problem = b.addSplit("\\s+", SplitBehavior::Removed); !problem.empty())
      return problem;
    std::string problem = b.addSplit(classOf(llvm::Twine(punctuation) + ideographs), SplitBehavior::Isolated);
    if (!problem.empty())
      return problem;
    int32_t cls;
    if (problem = special("cls_token_id", cls); !problem.empty())
      return problem;
    return around(cls >= 0 ? "cls_token_id" : "bos_token_id", file.find("tokenizer.ggml.seperator_token_id") ? "seperator_token_id" : "eos_token_id", true, true);
  }

  /// The tokens before and after every text.
  std::string around(const char *first, const char *last, bool addFirst, bool addLast) {
    int32_t ids[2];
    const char *keys[2] = {first, last};
    for (int i : {0, 1})
      if (std::string problem = special(keys[i], ids[i]); !problem.empty())
        return problem;
    if (addFirst && ids[0] < 0)
      return std::string("texts shall begin with the token of tokenizer.ggml.") + first + ", which is missing";
    if (addLast && ids[1] < 0)
      return std::string("texts shall end with the token of tokenizer.ggml.") + last + ", which is missing";
    if (addFirst)
      b.t.prefix = {uint32_t(ids[0])};
    if (addLast)
      b.t.suffix = {uint32_t(ids[1])};
    return "";
  }

  std::string specialTokens() {
    for (auto [key, target] : {std::pair("bos_token_id", &b.t.bos), {"eos_token_id", &b.t.eos}, {"unknown_token_id", &b.t.unknown}})
      if (std::string problem = special(key, *target); !problem.empty())
        return problem;
    for (const char *key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
      int32_t id;
      if (std::string problem = special(key, id); !problem.empty())
        return problem;
      if (id >= 0)
        b.t.end_of_generation.push_back(uint32_t(id));
    }
    // Ends of a turn that files do not always name.
    for (size_t id = 0; id < tokens->size(); ++id)
      if (typeOf(id) == TokenType::Control && is_contained(turnEnds, tokens->string(id)) &&
          !is_contained(b.t.end_of_generation, uint32_t(id)))
        b.t.end_of_generation.push_back(uint32_t(id));
    if (const Value *chat = file.find("tokenizer.chat_template"); chat && !chat->isArray() && chat->type() == ValueType::String)
      b.t.chat_template = chat->string().str();
    return "";
  }

  const gguf::File &file;
  Builder &b;
  const Value *tokens = nullptr, *scores = nullptr, *types = nullptr;
};

} // namespace

ArrayRef<const char *> preTokenizerPatterns(StringRef name) {
  for (const PreTokenizer &row : preTokenizers())
    if (row.name == name)
      return row.patterns;
  return {};
}

std::string preTokenizerNames() {
  std::string names;
  for (const PreTokenizer &row : preTokenizers())
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

std::string buildFromGGUF(const gguf::File &file, Builder &builder) { return Importer(file, builder).run(); }

} // namespace ajour::text
