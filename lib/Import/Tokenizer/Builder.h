//===- Builder.h - a tokenizer's description, piece by piece ----*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_TOKENIZER_BUILDER_H
#define AJOUR_LIB_IMPORT_TOKENIZER_BUILDER_H

#include "ajour/ABI/Tokenizer_generated.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <string>
#include <vector>

namespace ajour::gguf {
struct File;
}

namespace ajour::text {

/// How blanks are written inside SentencePiece tokens: U+2581.
inline constexpr char blankMark[] = "\xE2\x96\x81";

/// Members of regular expressions' classes, as the vocabularies of the BERT family cut text: punctuation and the symbols of ASCII;
/// ideographs; controls that are no blanks, and U+FFFD.
inline constexpr char punctuation[] = "\\p{P}!-/:-@\\[-`{-~";
inline constexpr char ideographs[] = "\\u4e00-\\u9fff\\u3400-\\u4dbf\\uf900-\\ufaff\\x{20000}-\\x{2a6df}\\x{2a700}-\\x{2b73f}"
                                     "\\x{2b740}-\\x{2b81f}\\x{2b820}-\\x{2ceaf}\\x{2f800}-\\x{2fa1f}";
inline constexpr char controls[] = "\\x00-\\x08\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f\\ufffd";

/// The class of these members.
inline std::string classOf(const llvm::Twine &members) { return ("[" + members + "]").str(); }

/// Unicode's normalisation forms.
enum class Form { NFC, NFD, NFKC, NFKD };

/// Collects tokens, merges and steps, and writes the tables that the runtime looks things up in. Functions that return a string
/// return an empty one, or what is wrong.
class Builder {
public:
  tokenizer::TokenizerT t;

  //===--- vocabulary ----------------------------------------------------===//

  /// Adds the next token. `bytes` are what it stands for. Byte tokens and, by `inTable` = false, others are not found by their
  /// bytes.
  void addToken(llvm::StringRef bytes, tokenizer::TokenType type, float score, bool inTable);
  int64_t size() const { return int64_t(tokens.size()); }
  /// The token with these bytes; -1: none.
  int32_t find(llvm::StringRef bytes) const;
  /// Joining tokens `left` and `right` gives `merged`; earlier merges come first.
  void addMerge(int32_t left, int32_t right, int32_t merged) { merges.push_back({left, right, merged}); }
  void addAdded(tokenizer::AddedTokenT token);

  //===--- steps ---------------------------------------------------------===//

  void addReplace(llvm::StringRef from, llvm::StringRef to);
  void addPrepend(llvm::StringRef text);
  void addForm(Form form);
  void addLowercase();
  /// Drops code points of a set, written as a regular expression's class.
  void addRemoval(llvm::StringRef characterClass);
  void addStrip(bool left, bool right);
  std::string addReplacePattern(llvm::StringRef pattern, llvm::StringRef to);
  /// The map of a SentencePiece model: a trie in 32-bit units, and replacements. Source: the format of its library's
  /// "precompiled_charsmap".
  std::string addCharsMap(llvm::StringRef bytes);
  std::string addSplit(llvm::StringRef pattern, tokenizer::SplitBehavior behavior, bool invert = false);

  //===--- the end --------------------------------------------------------===//

  /// Writes the description. Fails when two tokens that are looked up have the same bytes.
  std::string finish(std::vector<uint8_t> &description);

private:
  void addMap(std::vector<uint32_t> keys, std::vector<std::vector<uint32_t>> values);

  struct Token {
    std::string bytes;
    bool inTable;
  };
  struct Merge {
    int32_t left, right, merged;
  };
  std::vector<Token> tokens;
  std::vector<Merge> merges;
  llvm::StringMap<int32_t> ids;
  std::string problem;
};

/// The byte of a code point of the alphabet in which byte-level vocabularies are written; -1: not of the alphabet.
int byteOfAlphabet(uint32_t codePoint);
/// A token of that alphabet as bytes. False: it is not written in it.
bool decodeAlphabet(llvm::StringRef token, std::string &bytes);

/// The patterns by which byte-level vocabularies cut text, by the names that GGUF files give them; empty: not known.
llvm::ArrayRef<const char *> preTokenizerPatterns(llvm::StringRef name);
/// All these names, for messages.
std::string preTokenizerNames();

/// Control tokens that end a turn in models whose files do not say so.
inline constexpr const char *turnEnds[] = {"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>"};

/// Reads what a tokenizer.json leaves to the files beside it: begin and end tokens, the chat template.
std::string readCompanions(llvm::StringRef tokenizerPath, Builder &builder);

/// The two importers, by format.
std::string buildFromGGUF(const gguf::File &file, Builder &builder);
std::string buildFromJSON(llvm::StringRef contents, Builder &builder);

} // namespace ajour::text

#endif
