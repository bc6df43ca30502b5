//===- TokenizeCommand.cpp - tokenize: text to tokens and back ------------------===//
#include "Commands.h"

#include "ToolSupport/Files.h"
#include "ajour/Import/Tokenizer.h"
#include "ajour/Language/Tokenizer.h"

namespace ajour::tools {

namespace {

struct TokenizeArguments {
  std::string file, text, textFile;
  std::vector<int32_t> ids;
  bool addSpecial = false, parseSpecial = false, pieces = false;
};

std::string pieceOf(const language::Tokenizer &tokenizer, int32_t id) {
  language::Text text;
  tokenizer.decode(id, false, true, text);
  return {text.data(), text.size()};
}

/// Bytes that do not print as C writes them.
std::string quoted(const std::string &bytes) {
  std::string result = "\"";
  for (char c : bytes) {
    char escape[8];
    if (uint8_t(c) < 0x20 || c == 0x7f)
      std::snprintf(escape, sizeof(escape), "\\x%02x", uint8_t(c));
    else
      std::snprintf(escape, sizeof(escape), c == '"' || c == '\\' ? "\\%c" : "%c", c);
    result += escape;
  }
  return result + "\"";
}

std::string textOf(const std::string &path) {
  Bytes bytes = readFile(path);
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

void printTokens(const TokenizeArguments &a, const language::Tokenizer &tokenizer, const std::string &text) {
  language::Buffer<int32_t> ids;
  switch (tokenizer.encode({text.data(), text.size()}, {a.addSpecial, a.parseSpecial}, ids)) {
  case language::TextStatus::Ok:
    break;
  case language::TextStatus::OutOfMemory:
    throw ToolError(a.file + ": not enough memory to tokenize " + std::to_string(text.size()) + " bytes");
  case language::TextStatus::TooComplex:
    throw ToolError(a.file + ": a pattern of the tokenizer needs too many steps on this text");
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (a.pieces)
      std::printf("%d %s\n", ids[i], quoted(pieceOf(tokenizer, ids[i])).c_str());
    else
      std::printf(i ? " %d" : "%d", ids[i]);
  }
  if (!a.pieces)
    std::printf("\n");
}

void printText(const TokenizeArguments &a, const language::Tokenizer &tokenizer) {
  language::StreamDecoder stream(tokenizer, a.parseSpecial);
  language::Text text;
  for (int32_t id : a.ids) {
    if (id < 0 || id >= tokenizer.size())
      throw ToolError(a.file + ": there is no token " + std::to_string(id) + ", the vocabulary has " +
                      std::to_string(tokenizer.size()));
    stream.add(id, text);
  }
  stream.finish(text);
  std::printf("%.*s\n", int(text.size()), text.data());
}

void tokenize(const TokenizeArguments &a) {
  std::vector<uint8_t> description;
  if (std::string problem = importTokenizer(a.file, description); !problem.empty())
    throw ToolError(problem);
  language::Tokenizer tokenizer;
  if (const char *problem = tokenizer.open(description.data(), description.size()))
    throw ToolError(a.file + ": " + problem);
  if (!a.ids.empty())
    printText(a, tokenizer);
  else
    printTokens(a, tokenizer, a.textFile.empty() ? a.text : textOf(a.textFile));
}

} // namespace

void registerTokenizeCommand(CLI::App &app) {
  CLI::App *command = app.add_subcommand("tokenize", "Show a text as the tokens of a language model, or tokens as text");
  auto arguments = std::make_shared<TokenizeArguments>();
  TokenizeArguments &a = *arguments;
  command->add_option("FILE", a.file, "GGUF model or tokenizer.json")->required();
  CLI::Option *text = command->add_option("TEXT", a.text, "Text, UTF-8");
  CLI::Option *file = command->add_option("--file", a.textFile, "File that holds the text")->excludes(text);
  CLI::Option *decode = command->add_option("--decode", a.ids, "Tokens to show as text instead, separated by commas")->delimiter(',')->excludes(text)->excludes(file);
  command->add_flag("--add-special", a.addSpecial, "Put the model's begin and end tokens around the text");
  command->add_flag("--special", a.parseSpecial, "Read and show control tokens by their texts");
  command->add_flag("--pieces", a.pieces, "One token a line, with what it stands for");
  command->callback([=] {
    if (!*text && !*file && !*decode)
      throw CLI::ValidationError("TEXT", "is missing, as are --file and --decode; give one of them");
    tokenize(*arguments);
  });
}

} // namespace ajour::tools
