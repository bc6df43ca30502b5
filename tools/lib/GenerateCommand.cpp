//===- GenerateCommand.cpp - generate: a language model continues a text --===//

#include "ToolSupport/Files.h"
#include "ToolSupport/LanguageModel.h"

namespace ajour::tools {

namespace {

struct GenerateArguments {
  std::string file, prompt, promptFile;
  uint32_t threads = 0;
  bool showIds = false, timings = false;
  GenerateSettings settings;
};

std::string promptOf(const GenerateArguments &arguments) {
  if (arguments.promptFile.empty())
    return arguments.prompt;
  Bytes bytes = readFile(arguments.promptFile == "-" ? "/dev/stdin" : arguments.promptFile);
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

void generateText(GenerateArguments &arguments, const CommandHooks &hooks) {
  LanguageModel language(arguments.file, hooks, arguments.threads);
  arguments.settings.openGrammar(language.tokenizer.get());
  uint32_t flags = AJOUR_TEXT_ADD_SPECIAL | (arguments.settings.special ? AJOUR_TEXT_SPECIAL : 0);
  std::vector<int32_t> prompt = encode(language.tokenizer.get(), promptOf(arguments), flags);
  if (prompt.empty())
    throw ToolError((arguments.promptFile.empty() ? "--prompt" : arguments.promptFile) + ": the text is empty and the model has no token to begin with");
  int64_t context = language.info().context;
  if (context >= 0 && int64_t(prompt.size()) > context)
    throw ToolError((arguments.promptFile.empty() ? "--prompt" : arguments.promptFile) + ": the text is " + std::to_string(prompt.size()) + " tokens long, the model takes " + std::to_string(context));
  check(ajour_generator_set_prompt(language.generator.get(), prompt.data(), prompt.size(), nullptr));
  bool first = true;
  generate(language.generator.get(), arguments.settings, [&](const ajour_generated &generated) {
    if (!arguments.showIds)
      std::fwrite(generated.text, 1, generated.bytes, stdout);
    else if (generated.token >= 0)
      std::printf(first ? "%d" : " %d", generated.token);
    first = false;
    std::fflush(stdout);
    return true;
  });
  std::printf("\n");
  if (arguments.timings)
    printTimings(language.generator.get(), {});
}

} // namespace

void registerGenerateCommand(CLI::App &app, const CommandHooks &hooks) {
  auto arguments = std::make_shared<GenerateArguments>();
  CLI::App *command = app.add_subcommand("generate", "let a language model continue a text");
  command->add_option("file", arguments->file, "artifact (.ajour)" + std::string(hooks.isModel ? " or model" : ""))
      ->required()
      ->type_name("FILE");
  CLI::Option *prompt = command->add_option("-p,--prompt", arguments->prompt, "the text to continue")->type_name("TEXT");
  command->add_option("-f,--file", arguments->promptFile, "file that holds the text; -: standard input")->excludes(prompt)->type_name("FILE");
  addGenerateOptions(*command, arguments->settings);
  command->add_flag("--ids", arguments->showIds, "print the tokens' numbers instead of their text");
  command->add_flag("--timings", arguments->timings, "print the speed to stderr at the end");
  command->add_option("-t,--threads", arguments->threads, "threads; default: the number of performance cores")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
  command->callback([arguments, hooks] { generateText(*arguments, hooks); });
}

} // namespace ajour::tools
