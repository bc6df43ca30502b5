//===- JSONTokenizer.cpp - tokenizer.json files ------------------------------------===//
//
// The pipeline of these files: normaliser, pre-tokeniser, model, post-processor, decoder. Every stage is read as the file says it;
// one that is not known is an error that names it.
//
//===----------------------------------------------------------------------===//
#include "Builder.h"

#include "Regex.h"

#include "llvm/Support/Base64.h"

#include <nlohmann/json.hpp>

#include <map>

using namespace llvm;

namespace ajour::text {

using json = nlohmann::json;
using tokenizer::SplitBehavior;
using tokenizer::TokenType;

namespace {

constexpr int64_t tokenLimit = 1 << 24;
constexpr unsigned nestingLimit = 16;

/// A member of an object; null JSON when it is absent.
const json &member(const json &object, const char *key) {
  static const json none;
  if (!object.is_object())
    return none;
  auto it = object.find(key);
  return it == object.end() ? none : *it;
}
std::string textOf(const json &value) { return value.is_string() ? value.get<std::string>() : ""; }
bool flagOf(const json &value, bool otherwise) { return value.is_boolean() ? value.get<bool>() : otherwise; }
std::string typeOf(const json &stage) { return textOf(member(stage, "type")); }

class Importer {
public:
  Importer(const json &root, Builder &b) : root(root), b(b) {}

  std::string run() {
    const json &model = member(root, "model");
    std::string kind = typeOf(model);
    // Old files leave the type out where it shows.
    if (kind.empty() && member(model, "merges").is_array())
      kind = "BPE";
    findByteLevel();
    std::string problem = vocabulary(model, kind);
    if (problem.empty() && kind == "BPE")
      problem = bpe(model);
    else if (problem.empty() && kind == "WordPiece")
      problem = wordPiece(model);
    else if (problem.empty() && kind == "Unigram")
      problem = unigram(model);
    else if (problem.empty())
      problem = "the model is of the type '" + kind + "'; BPE, WordPiece and Unigram are known";
    if (problem.empty())
      problem = addedTokens();
    if (problem.empty() && !member(root, "normalizer").is_null())
      problem = normalizer(member(root, "normalizer"), 0);
    if (problem.empty() && !member(root, "pre_tokenizer").is_null())
      problem = preTokenizer(member(root, "pre_tokenizer"), 0);
    if (problem.empty() && !member(root, "post_processor").is_null())
      problem = postProcessor(member(root, "post_processor"), 0);
    if (problem.empty() && !member(root, "decoder").is_null())
      problem = decoder(member(root, "decoder"), 0);
    return problem;
  }

private:
  /// The stages of a Sequence, or the stage itself.
  static std::vector<const json *> stagesOf(const json &stage, const char *list) {
    std::vector<const json *> result;
    if (typeOf(stage) == "Sequence" && member(stage, list).is_array())
      for (const json &inner : member(stage, list))
        result.push_back(&inner);
    else
      result.push_back(&stage);
    return result;
  }

  void findByteLevel() {
    for (const json *stage : stagesOf(member(root, "pre_tokenizer"), "pretokenizers"))
      byteLevel |= typeOf(*stage) == "ByteLevel";
    for (const json *stage : stagesOf(member(root, "normalizer"), "normalizers"))
      byteLevel |= typeOf(*stage) == "ByteLevel";
  }

  //===--- vocabulary ----------------------------------------------------===//

  /// Texts by id, from the model's list or object and from the added tokens.
  std::string collect(const json &model, const std::string &kind) {
    auto put = [&](const json &id, const std::string &text, float score) -> std::string {
      if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= tokenLimit)
        return "the token '" + text + "' has no id from 0 to " + std::to_string(tokenLimit - 1);
      size_t at = size_t(id.get<int64_t>());
      if (at >= texts.size()) {
        texts.resize(at + 1);
        scores.resize(at + 1, 0.0f);
        present.resize(at + 1, false);
      }
      if (present[at] && texts[at] != text)
        return "the tokens '" + texts[at] + "' and '" + text + "' have the same id " + std::to_string(at);
      texts[at] = text, scores[at] = score, present[at] = true;
      return "";
    };
    const json &vocab = member(model, "vocab");
    if (kind == "Unigram") {
      if (!vocab.is_array())
        return "the vocabulary of a Unigram model is not a list";
      for (const json &entry : vocab) {
        if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
          return "entry " + std::to_string(texts.size()) + " of the vocabulary is not a text with a score";
        texts.push_back(entry[0].get<std::string>());
        scores.push_back(entry[1].get<float>());
        present.push_back(true);
      }
    } else {
      if (!vocab.is_object())
        return "the vocabulary is not an object of texts with their ids";
      for (const auto &[text, id] : vocab.items())
        if (std::string problem = put(id, text, 0.0f); !problem.empty())
          return problem;
    }
    if (texts.empty())
      return "the vocabulary is empty";
    for (const json &added : member(root, "added_tokens")) {
      if (!member(added, "content").is_string())
        return "an added token has no content";
      if (std::string problem = put(member(added, "id"), textOf(member(added, "content")), 0.0f); !problem.empty())
        return problem;
    }
    return "";
  }

  std::string vocabulary(const json &model, const std::string &kind) {
    if (std::string problem = collect(model, kind); !problem.empty())
      return problem;
    std::map<int64_t, bool> added;
    for (const json &token : member(root, "added_tokens"))
      added[member(token, "id").get<int64_t>()] = flagOf(member(token, "special"), false);
    bool byteFallback = flagOf(member(model, "byte_fallback"), false);
    b.t.byte_fallback = byteFallback;
    if (byteLevel || byteFallback)
      b.t.byte_tokens.assign(256, -1);
    for (size_t id = 0; id < texts.size(); ++id) {
      auto it = added.find(int64_t(id));
      TokenType type = it == added.end() ? TokenType::Normal : it->second ? TokenType::Control : TokenType::UserDefined;
      if (!present[id])
        type = TokenType::Unused;
      std::string bytes;
      StringRef text = texts[id];
      unsigned value;
      bool isByte = byteFallback && text.size() == 6 && text.starts_with("<0x") && text.ends_with(">") &&
                    !text.substr(3, 2).getAsInteger(16, value);
      if (isByte) {
        char c = char(value);
        b.addToken(StringRef(&c, 1), TokenType::Byte, scores[id], false);
        b.t.byte_tokens[value] = int32_t(id);
        continue;
      }
      bool plain = it == added.end() && present[id];
      if (byteLevel && plain && decodeAlphabet(text, bytes)) {
        b.addToken(bytes, type, scores[id], true);
        if (bytes.size() == 1)
          b.t.byte_tokens[uint8_t(bytes[0])] = int32_t(id);
      } else {
        b.addToken(text, type, scores[id], plain && !byteLevel);
      }
    }
    return "";
  }

  std::string merges(const json &model) {
    const json &list = member(model, "merges");
    if (!list.is_array())
      return "the model has no list of merges";
    for (size_t i = 0; i < list.size(); ++i) {
      std::string halves[2], bytes[2];
      bool good = true;
      if (list[i].is_string()) {
        std::string text = textOf(list[i]);
        size_t blank = text.find(' ', 1);
        good = blank != std::string::npos;
        if (good)
          halves[0] = text.substr(0, blank), halves[1] = text.substr(blank + 1);
      } else {
        good = list[i].is_array() && list[i].size() == 2;
        if (good)
          halves[0] = textOf(list[i][0]), halves[1] = textOf(list[i][1]);
      }
      for (int h : {0, 1})
        if (!byteLevel)
          bytes[h] = halves[h];
        else
          good = good && decodeAlphabet(halves[h], bytes[h]);
      if (!good)
        return "merge " + std::to_string(i) + " is not two texts";
      int32_t ids[3] = {b.find(bytes[0]), b.find(bytes[1]), b.find(bytes[0] + bytes[1])};
      if (ids[0] < 0 || ids[1] < 0 || ids[2] < 0)
        return "merge " + std::to_string(i) + " ('" + halves[0] + "' with '" + halves[1] + "') names a text that is no token";
      b.addMerge(ids[0], ids[1], ids[2]);
    }
    return "";
  }

  std::string unknownToken(const json &model) {
    std::string text = textOf(member(model, "unk_token"));
    if (text.empty())
      return "";
    b.t.unknown = idOf(text);
    return b.t.unknown < 0 ? "the unknown token '" + text + "' is not in the vocabulary" : "";
  }

  int32_t idOf(const std::string &text) const {
    for (size_t id = 0; id < texts.size(); ++id)
      if (present[id] && texts[id] == text)
        return int32_t(id);
    return -1;
  }

  std::string bpe(const json &model) {
    for (const char *key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
      if (const json &value = member(model, key); value.is_number() || (value.is_string() && !textOf(value).empty()))
        return std::string("the BPE model sets ") + key + ", which is not supported";
    b.t.model = tokenizer::ModelKind::BPE;
    b.t.byte_level = byteLevel;
    b.t.whole_words = flagOf(member(model, "ignore_merges"), false);
    b.t.fuse_unknown = flagOf(member(model, "fuse_unk"), false);
    if (std::string problem = merges(model); !problem.empty())
      return problem;
    return unknownToken(model);
  }

  std::string wordPiece(const json &model) {
    b.t.model = tokenizer::ModelKind::WordPiece;
    const json &prefix = member(model, "continuing_subword_prefix");
    b.t.piece_prefix = prefix.is_string() ? textOf(prefix) : "##";
    const json &longest = member(model, "max_input_chars_per_word");
    b.t.longest_word = longest.is_number_unsigned() ? longest.get<uint32_t>() : 100;
    return unknownToken(model);
  }

  std::string unigram(const json &model) {
    b.t.model = tokenizer::ModelKind::Unigram;
    b.t.fuse_unknown = true;
    const json &unknown = member(model, "unk_id");
    if (unknown.is_number_integer()) {
      if (unknown.get<int64_t>() < 0 || unknown.get<int64_t>() >= int64_t(texts.size()))
        return "unk_id is " + unknown.dump() + ", there are " + std::to_string(texts.size()) + " tokens";
      b.t.unknown = unknown.get<int32_t>();
    }
    return "";
  }

  std::string addedTokens() {
    for (const json &entry : member(root, "added_tokens")) {
      tokenizer::AddedTokenT token;
      token.id = member(entry, "id").get<uint32_t>();
      token.text = textOf(member(entry, "content"));
      token.special = flagOf(member(entry, "special"), false);
      token.normalized = flagOf(member(entry, "normalized"), !token.special);
      token.strip_left = flagOf(member(entry, "lstrip"), false);
      token.strip_right = flagOf(member(entry, "rstrip"), false);
      token.single_word = flagOf(member(entry, "single_word"), false);
      if (token.text.empty())
        return "added token " + std::to_string(token.id) + " is empty";
      b.addAdded(std::move(token));
    }
    return "";
  }

  //===--- stages --------------------------------------------------------===//

  /// A pattern as these files write it: {"String": ...} or {"Regex": ...}.
  static std::string patternOf(const json &stage, std::string &pattern) {
    const json &value = member(stage, "pattern");
    if (member(value, "Regex").is_string())
      pattern = textOf(member(value, "Regex"));
    else if (member(value, "String").is_string())
      pattern = escapePattern(textOf(member(value, "String")));
    else
      return "a stage of the type '" + typeOf(stage) + "' has no pattern";
    return "";
  }

  std::string normalizer(const json &stage, unsigned depth) {
    static const std::map<std::string, Form> forms = {
        {"NFC", Form::NFC}, {"NFD", Form::NFD}, {"NFKC", Form::NFKC}, {"NFKD", Form::NFKD}};
    std::string type = typeOf(stage);
    if (auto form = forms.find(type); form != forms.end()) {
      b.addForm(form->second);
    } else if (type == "Sequence" && depth < nestingLimit) {
      for (const json &inner : member(stage, "normalizers"))
        if (std::string problem = normalizer(inner, depth + 1); !problem.empty())
          return problem;
    } else if (type == "Lowercase") {
      b.addLowercase();
    } else if (type == "StripAccents") {
      b.addRemoval("[\\p{Mn}]");
    } else if (type == "Strip") {
      b.addStrip(flagOf(member(stage, "strip_left"), true), flagOf(member(stage, "strip_right"), true));
    } else if (type == "Prepend") {
      b.addPrepend(textOf(member(stage, "prepend")));
    } else if (type == "Replace") {
      std::string literal = textOf(member(member(stage, "pattern"), "String"));
      if (!literal.empty()) {
        b.addReplace(literal, textOf(member(stage, "content")));
        return "";
      }
      std::string pattern, problem = patternOf(stage, pattern);
      return problem.empty() ? b.addReplacePattern(pattern, textOf(member(stage, "content"))) : problem;
    } else if (type == "BertNormalizer") {
      return bertNormalizer(stage);
    } else if (type == "Precompiled") {
      std::vector<char> bytes;
      std::string encoded = textOf(member(stage, "precompiled_charsmap"));
      if (Error error = decodeBase64(encoded, bytes)) {
        consumeError(std::move(error));
        return "the map of characters of the stage 'Precompiled' is not base 64";
      }
      return b.addCharsMap(StringRef(bytes.data(), bytes.size()));
    } else if (type != "ByteLevel") {
      return "the normaliser '" + type + "' is not known";
    }
    return "";
  }

  std::string bertNormalizer(const json &stage) {
    bool lowercase = flagOf(member(stage, "lowercase"), true);
    if (flagOf(member(stage, "clean_text"), true)) {
      b.addRemoval(classOf(Twine(controls) + "\\p{Cf}\\p{Co}\\p{Cn}"));
      if (std::string problem = b.addReplacePattern("\\s", " "); !problem.empty())
        return problem;
    }
    if (flagOf(member(stage, "handle_chinese_chars"), true))
      bertSplitsIdeographs = true;
    // Accents go where lower case is asked for, unless the file says so itself.
    if (flagOf(member(stage, "strip_accents"), lowercase)) {
      b.addForm(Form::NFD);
      b.addRemoval("[\\p{Mn}]");
    }
    if (lowercase)
      b.addLowercase();
    return "";
  }

  std::string preTokenizer(const json &stage, unsigned depth) {
    static const std::map<std::string, SplitBehavior> behaviors = {{"Isolated", SplitBehavior::Isolated},
                                                                   {"Removed", SplitBehavior::Removed},
                                                                   {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
                                                                   {"MergedWithNext", SplitBehavior::MergedWithNext},
                                                                   {"Contiguous", SplitBehavior::Contiguous}};
    std::string type = typeOf(stage);
    if (type == "Sequence" && depth < nestingLimit) {
      for (const json &inner : member(stage, "pretokenizers"))
        if (std::string problem = preTokenizer(inner, depth + 1); !problem.empty())
          return problem;
      return "";
    }
    if (type == "ByteLevel") {
      if (flagOf(member(stage, "add_prefix_space"), true))
        return "the stage 'ByteLevel' puts a blank before every text (add_prefix_space), which is not supported";
      return flagOf(member(stage, "use_regex"), true) ? b.addSplit(preTokenizerPatterns("gpt-2").front(), SplitBehavior::Isolated) : "";
    }
    if (type == "Split") {
      auto behavior = behaviors.find(textOf(member(stage, "behavior")));
      if (behavior == behaviors.end())
        return "the stage 'Split' has the unknown behaviour '" + textOf(member(stage, "behavior")) + "'";
      std::string pattern, problem = patternOf(stage, pattern);
      return problem.empty() ? b.addSplit(pattern, behavior->second, flagOf(member(stage, "invert"), false)) : problem;
    }
    if (type == "Whitespace")
      return b.addSplit("\\w+|[^\\w\\s]+", SplitBehavior::Removed, true);
    if (type == "WhitespaceSplit")
      return b.addSplit("\\s+", SplitBehavior::Removed);
    if (type == "Digits")
      return b.addSplit(flagOf(member(stage, "individual_digits"), false) ? "\\p{N}" : "\\p{N}+", SplitBehavior::Isolated);
    if (type == "Punctuation")
      return b.addSplit(classOf(punctuation), SplitBehavior::Isolated);
    if (type == "BertPreTokenizer") {
      std::string problem = b.addSplit("\\s+", SplitBehavior::Removed);
      if (problem.empty() && bertSplitsIdeographs)
        problem = b.addSplit(classOf(ideographs), SplitBehavior::Isolated);
      return problem.empty() ? b.addSplit(classOf(punctuation), SplitBehavior::Isolated) : problem;
    }
    if (type == "Metaspace")
      return metaspace(stage);
    return "the pre-tokeniser '" + type + "' is not known";
  }

  std::string metaspace(const json &stage) {
    std::string mark = textOf(member(stage, "replacement"));
    if (mark.empty())
      mark = blankMark;
    std::string scheme = textOf(member(stage, "prepend_scheme"));
    bool prepend = scheme.empty() ? flagOf(member(stage, "add_prefix_space"), true) : scheme != "never";
    b.t.space = mark;
    b.t.strip_leading_space = prepend;
    b.addReplace(" ", mark);
    if (prepend)
      b.addPrepend(mark);
    return flagOf(member(stage, "split"), true) ? b.addSplit(escapePattern(mark), SplitBehavior::MergedWithNext) : "";
  }

  std::string special(const std::string &text, std::vector<uint32_t> &list) {
    int32_t id = idOf(text);
    if (id < 0)
      return "the post-processor adds the token '" + text + "', which is not in the vocabulary";
    list.push_back(uint32_t(id));
    return "";
  }

  std::string postProcessor(const json &stage, unsigned depth) {
    std::string type = typeOf(stage);
    if (type == "Sequence" && depth < nestingLimit) {
      for (const json &inner : member(stage, "processors"))
        if (std::string problem = postProcessor(inner, depth + 1); !problem.empty())
          return problem;
      return "";
    }
    if (type == "ByteLevel")
      return "";
    if (type == "BertProcessing" || type == "RobertaProcessing") {
      const json &cls = member(stage, "cls"), &sep = member(stage, "sep");
      if (!cls.is_array() || cls.empty() || !sep.is_array() || sep.empty())
        return "the post-processor '" + type + "' has no cls and sep";
      std::string problem = special(textOf(cls[0]), b.t.prefix);
      return problem.empty() ? special(textOf(sep[0]), b.t.suffix) : problem;
    }
    if (type != "TemplateProcessing")
      return "the post-processor '" + type + "' is not known";
    bool seen = false;
    for (const json &item : member(stage, "single")) {
      if (member(item, "Sequence").is_object()) {
        seen = true;
        continue;
      }
      std::string problem = special(textOf(member(member(item, "SpecialToken"), "id")), seen ? b.t.suffix : b.t.prefix);
      if (!problem.empty())
        return problem;
    }
    return seen ? "" : "the post-processor's template has no place for the text";
  }

  /// Decoders undo what normalisers do; those that change what a token's bytes are matter here.
  std::string decoder(const json &stage, unsigned depth) {
    std::string type = typeOf(stage);
    if (type == "Sequence" && depth < nestingLimit) {
      for (const json &inner : member(stage, "decoders"))
        if (std::string problem = decoder(inner, depth + 1); !problem.empty())
          return problem;
      return "";
    }
    if (type == "Replace") {
      if (textOf(member(stage, "content")) != " " || textOf(member(member(stage, "pattern"), "String")).empty())
        return "a decoder 'Replace' that does anything but put blanks is not supported";
      b.t.space = textOf(member(member(stage, "pattern"), "String"));
      return "";
    }
    if (type == "Metaspace") {
      std::string mark = textOf(member(stage, "replacement"));
      b.t.space = mark.empty() ? blankMark : mark;
      return "";
    }
    if (type == "Strip") {
      b.t.strip_leading_space = true;
      return "";
    }
    if (type == "ByteLevel" || type == "ByteFallback" || type == "Fuse" || type == "WordPiece")
      return "";
    return "the decoder '" + type + "' is not known";
  }

  const json &root;
  Builder &b;
  bool byteLevel = false, bertSplitsIdeographs = false;
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<bool> present;
};

} // namespace

std::string buildFromJSON(StringRef contents, Builder &builder) {
  json root = json::parse(contents.begin(), contents.end(), nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded() || !root.is_object())
    return "is no JSON object";
  return Importer(root, builder).run();
}

} // namespace ajour::text
