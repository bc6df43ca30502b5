//===- ChatCommand.cpp - chat: turns with a language model ----------------===//

#include "ToolSupport/Files.h"
#include "ToolSupport/LanguageModel.h"

#include <iostream>
#include <unistd.h>

namespace ajour::tools {

namespace {

struct ChatArguments {
  std::string file, system, templateFile, variables;
  uint32_t threads = 0;
  bool timings = false;
  GenerateSettings settings;
};

/// The turns so far.
class Chat {
public:
  Chat(ChatArguments &arguments, const CommandHooks &hooks)
      : arguments(arguments), language(arguments.file, hooks, arguments.threads), system(arguments.system) {
    arguments.settings.openGrammar(language.tokenizer.get());
    if (!arguments.templateFile.empty()) {
      Bytes bytes = readFile(arguments.templateFile);
      source.assign(reinterpret_cast<const char *>(bytes.data()), bytes.size());
      if (source.empty())
        throw ToolError(arguments.templateFile + ": is empty, expected a chat template");
    }
  }

  /// Answers one line of the user.
  void answer(const std::string &line) {
    turns.push_back({"user", line});
    std::vector<int32_t> prompt = encode(language.tokenizer.get(), render(), AJOUR_TEXT_ADD_SPECIAL | AJOUR_TEXT_SPECIAL);
    int64_t context = language.info().context;
    if (context >= 0 && int64_t(prompt.size()) > context) {
      turns.pop_back();
      throw ToolError("the chat is " + std::to_string(prompt.size()) + " tokens long, the model takes " + std::to_string(context) +
                      "; /reset begins anew");
    }
    ajour_generator_stats before = statsOf(language.generator.get());
    check(ajour_generator_set_prompt(language.generator.get(), prompt.data(), prompt.size(), nullptr));
    std::string text;
    generate(language.generator.get(), arguments.settings, [&](const ajour_generated &generated) {
      text.append(generated.text, generated.bytes);
      std::fwrite(generated.text, 1, generated.bytes, stdout);
      std::fflush(stdout);
      return true;
    });
    std::printf("\n");
    std::fflush(stdout);
    turns.push_back({"assistant", text});
    if (arguments.timings)
      printTimings(language.generator.get(), before);
  }

  void reset() { turns.clear(); }
  void setSystem(const std::string &text) {
    system = text;
    reset();
  }

private:
  struct Turn {
    std::string role, content;
  };

  std::string render() const {
    std::vector<ajour_chat_message> messages;
    if (!system.empty())
      messages.push_back({"system", system.c_str(), nullptr});
    for (const Turn &turn : turns)
      messages.push_back({turn.role.c_str(), turn.content.c_str(), nullptr});
    ajour_chat_options options = AJOUR_INIT(ajour_chat_options);
    options.add_generation_prompt = 1;
    options.chat_template = source.empty() ? nullptr : source.c_str();
    options.variables = arguments.variables.empty() ? nullptr : arguments.variables.c_str();
    auto render = [&](char *text, size_t capacity) {
      size_t bytes = 0;
      try {
        check(ajour_tokenizer_render_chat(language.tokenizer.get(), messages.data(), messages.size(), &options, text, capacity, &bytes));
      } catch (const ToolError &error) {
        bool none = source.empty() && std::string(error.what()).find("brings no chat template") != std::string::npos;
        throw ToolError((source.empty() ? arguments.file : arguments.templateFile) + ": " + error.what() + (none ? " with --template FILE" : ""));
      }
      return bytes;
    };
    std::string text(render(nullptr, 0), '\0');
    render(text.data(), text.size());
    return text;
  }

  ChatArguments &arguments;
  LanguageModel language;
  std::string system, source;
  std::vector<Turn> turns;
};

/// Who sits before a terminal can go on after an error, with /reset for example; a script cannot.
void answerOrSay(Chat &chat, const std::string &line, bool terminal) {
  try {
    chat.answer(line);
  } catch (const ToolError &error) {
    if (!terminal)
      throw;
    printError(error);
  }
}

void chat(ChatArguments &arguments, const CommandHooks &hooks) {
  Chat chat(arguments, hooks);
  bool terminal = isatty(STDIN_FILENO);
  std::string line;
  for (;;) {
    if (terminal)
      std::cerr << "> " << std::flush;
    if (!std::getline(std::cin, line))
      break;
    if (line == "/exit" || line == "/quit")
      break;
    if (line == "/reset")
      chat.reset();
    else if (line == "/system" || line.rfind("/system ", 0) == 0)
      chat.setSystem(line.size() > 8 ? line.substr(8) : "");
    else if (line.size() > 1 && line[0] == '/')
      std::cerr << "unknown command '" << line << "'; there are /reset, /system TEXT, /exit\n";
    else if (!line.empty())
      answerOrSay(chat, line, terminal);
  }
}

} // namespace

void registerChatCommand(CLI::App &app, const CommandHooks &hooks) {
  auto arguments = std::make_shared<ChatArguments>();
  CLI::App *command = app.add_subcommand("chat", "talk with a language model: a line in, its answer out");
  command->add_option("file", arguments->file, "artifact (.ajour)" + std::string(hooks.isModel ? " or model" : ""))
      ->required()
      ->type_name("FILE");
  command->add_option("--system", arguments->system, "what the model is told before the first turn")->type_name("TEXT");
  command->add_option("--template", arguments->templateFile, "file with a chat template; default: the model's own")->type_name("FILE");
  command->add_option("--variables", arguments->variables, "JSON object of what else the template sees")->type_name("JSON");
  addGenerateOptions(*command, arguments->settings);
  command->add_flag("--timings", arguments->timings, "print the speed of each turn to stderr");
  command->add_option("-t,--threads", arguments->threads, "threads; default: the number of performance cores")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
  command->callback([arguments, hooks] { chat(*arguments, hooks); });
}

} // namespace ajour::tools
