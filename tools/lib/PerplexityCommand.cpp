//===- PerplexityCommand.cpp - perplexity: how well a model foretells a text --===//

#include "ToolSupport/Files.h"
#include "ToolSupport/LanguageModel.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace ajour::tools {

namespace {

struct PerplexityArguments {
  std::string file, text, json;
  int64_t window = 0, stride = 0;
  uint32_t threads = 0;
};

struct Measured {
  size_t tokens = 0, windows = 0, scored = 0;
  double nll = 0, seconds = 0;

  double perToken() const { return nll / double(scored); }
};

Measured measure(const PerplexityArguments &arguments, LanguageModel &language, int64_t window) {
  Bytes bytes = readFile(arguments.text);
  std::vector<int32_t> tokens =
      encode(language.tokenizer.get(), {reinterpret_cast<const char *>(bytes.data()), bytes.size()}, AJOUR_TEXT_ADD_SPECIAL);
  if (int64_t(tokens.size()) < window)
    throw ToolError(arguments.text + ": the text has " + std::to_string(tokens.size()) + " tokens, fewer than one window of " +
                    std::to_string(window) + "; give a longer text or --window");
  ajour_tokenizer_info info = AJOUR_INIT(ajour_tokenizer_info);
  check(ajour_tokenizer_get_info(language.tokenizer.get(), &info));
  // Every window begins as a text does, where texts of this model have a token to begin with.
  bool begins = info.bos >= 0 && tokens[0] == info.bos;
  size_t step = size_t(arguments.stride != 0 ? arguments.stride : window);
  size_t first = size_t(arguments.stride != 0 ? window - arguments.stride : window / 2 + 1);
  Measured measured;
  measured.tokens = tokens.size();
  for (size_t start = 0; start + size_t(window) <= tokens.size(); start += step) {
    std::vector<int32_t> piece(tokens.begin() + long(start), tokens.begin() + long(start) + window);
    if (begins)
      piece[0] = info.bos;
    check(ajour_generator_score(language.generator.get(), piece.data(), piece.size(), first, &measured.nll));
    measured.scored += piece.size() - first;
    ++measured.windows;
  }
  measured.seconds = double(statsOf(language.generator.get()).prompt_ns) * 1e-9;
  return measured;
}

void perplexity(const PerplexityArguments &arguments, const CommandHooks &hooks) {
  checkOutputPaths({{"--json", arguments.json}}, {arguments.file, arguments.text});
  if (!arguments.json.empty())
    checkWritable(arguments.json);
  LanguageModel language(arguments.file, hooks, arguments.threads);
  int64_t context = language.info().context, usual = 512;
  int64_t window = arguments.window != 0 ? arguments.window : context < 0 ? usual : std::min(usual, context);
  if (context >= 0 && window > context)
    throw ToolError("--window: " + std::to_string(window) + " tokens are more than the model takes: " + std::to_string(context));
  if (arguments.stride >= window)
    throw ToolError("--stride: " + std::to_string(arguments.stride) + " must be below the window of " + std::to_string(window) + " tokens");
  Measured m = measure(arguments, language, window);
  double speed = m.seconds > 0 ? double(statsOf(language.generator.get()).prompt_tokens) / m.seconds : 0;
  std::printf("tokens %zu\nwindow %lld\nwindows %zu\nscored %zu\nnll %.6f\nperplexity %.6f\ntokens/s %.1f\n", m.tokens, static_cast<long long>(window),
              m.windows, m.scored, m.perToken(), std::exp(m.perToken()), speed);
  if (arguments.json.empty())
    return;
  nlohmann::ordered_json json = {{"file", arguments.file},     {"text", arguments.text},     {"tokens", m.tokens},
                                 {"window", window},           {"stride", arguments.stride}, {"windows", m.windows},
                                 {"scored", m.scored},         {"nll", m.perToken()},        {"perplexity", std::exp(m.perToken())},
                                 {"tokens_per_second", speed}, {"seconds", m.seconds}};
  writeFile(arguments.json, json.dump(2) + "\n");
}

} // namespace

void registerPerplexityCommand(CLI::App &app, const CommandHooks &hooks) {
  auto arguments = std::make_shared<PerplexityArguments>();
  CLI::App *command = app.add_subcommand("perplexity", "measure how well a language model foretells a text");
  command->add_option("file", arguments->file, "artifact (.ajour)" + std::string(hooks.isModel ? " or model" : ""))
      ->required()
      ->type_name("FILE");
  command->add_option("--text", arguments->text, "the text, UTF-8")->required()->type_name("FILE");
  command->add_option("--window", arguments->window, "tokens that are given at a time; default: 512 or the model's context")
      ->check(CLI::Range(int64_t(2), int64_t(1) << 31))
      ->type_name("N");
  command->add_option("--stride", arguments->stride, "windows begin this many tokens behind each other, and their last so many tokens count")
      ->check(wholeNumber(1, uint64_t(1) << 31))
      ->type_name("N");
  command->add_option("--json", arguments->json, "write the results as JSON")->type_name("FILE");
  command->add_option("-t,--threads", arguments->threads, "threads; default: the number of performance cores")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
  command->callback([arguments, hooks] { perplexity(*arguments, hooks); });
}

} // namespace ajour::tools
