//===- LanguageModel.h - Language models for the tools ----------*- C++ -*-===//

#ifndef AJOUR_TOOLS_LANGUAGEMODEL_H
#define AJOUR_TOOLS_LANGUAGEMODEL_H

#include "ToolSupport/RuntimeModel.h"

#include <functional>
#include <string_view>

namespace ajour::tools {

struct GrammarDeleter {
  void operator()(ajour_grammar *grammar) const { ajour_grammar_destroy(grammar); }
};
struct TokenizerDeleter {
  void operator()(ajour_tokenizer *tokenizer) const { ajour_tokenizer_destroy(tokenizer); }
};
struct GeneratorDeleter {
  void operator()(ajour_generator *generator) const { ajour_generator_destroy(generator); }
};
using TokenizerPointer = std::unique_ptr<ajour_tokenizer, TokenizerDeleter>;
using GrammarPointer = std::unique_ptr<ajour_grammar, GrammarDeleter>;
using GeneratorPointer = std::unique_ptr<ajour_generator, GeneratorDeleter>;

/// A model's own tokenizer. Throws ToolError.
TokenizerPointer openTokenizer(ajour_model *model);

/// The tokens of a text, with AJOUR_TEXT_* flags. Throws ToolError.
std::vector<int32_t> encode(const ajour_tokenizer *tokenizer, std::string_view text, uint32_t flags);

/// A language model ready to speak.
struct LanguageModel {
  /// Throws ToolError, which says why the file is no language model.
  LanguageModel(const std::string &file, const CommandHooks &hooks, uint32_t threads);

  ajour_generator_info info() const;

  ArtifactFor artifact;
  ModelPointer model;
  TokenizerPointer tokenizer;
  SessionPointer session;
  GeneratorPointer generator;
};

/// What generate and chat say of the choice of tokens.
struct GenerateSettings {
  GenerateSettings();
  GenerateSettings(const GenerateSettings &) = delete;

  /// The options with their lists; valid as long as this is unchanged.
  const ajour_generate_options &options();

  /// Reads the grammar that the options name, if any. Throws ToolError.
  void openGrammar(const ajour_tokenizer *tokenizer);

  ajour_generate_options values;
  std::vector<std::string> stops;
  std::string grammarFile, schemaFile;
  bool ignoreEnd = false, special = false;

private:
  std::vector<const char *> stopPointers;
  GrammarPointer grammar;
};
void addGenerateOptions(CLI::App &command, GenerateSettings &settings);

/// Generates and gives each event to `event`, which returns false to end. Throws ToolError. The first signal of Ctrl-C ends generation
/// as if it were cancelled, without an error.
ajour_generate_result generate(ajour_generator *generator, GenerateSettings &settings,
                               const std::function<bool(const ajour_generated &)> &event);

/// Prints tokens and speeds to stderr: what was done since `before`.
void printTimings(const ajour_generator *generator, const ajour_generator_stats &before);
ajour_generator_stats statsOf(const ajour_generator *generator);

} // namespace ajour::tools

#endif
