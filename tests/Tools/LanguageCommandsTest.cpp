//===- LanguageCommandsTest.cpp - generate, chat and perplexity as a user calls them -----===//

#include "Language/TextModel.h"
#include "ToolSupport/Commands.h"
#include "Tools/TempDirectory.h"
#include "ToolSupport/Files.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <iostream>

using namespace ajour::tools;
using ajour::test::bosToken;
using ajour::test::eosToken;
using ajour::test::nextToken;

namespace {

struct Outcome {
  int code;
  std::string out, err;
};

/// A directory with text.ajour, the small model of tests/Language.
struct LanguageCommands : testing::Test {
  LanguageCommands() : artifact(directory.file("text.ajour")) {
    std::string bytes = ajour::test::makeTextModel(true, 64, 8).bytes();
    writeFile(artifact, std::string_view(bytes));
  }

  Outcome call(std::vector<std::string> arguments, const std::string &input = "") {
    CLI::App app("test", "program");
    app.require_subcommand(1);
    registerRuntimeCommands(app, {});
    arguments.insert(arguments.begin(), "program");
    std::vector<char *> argv;
    for (std::string &argument : arguments)
      argv.push_back(argument.data());
    std::string file = directory.file("input.txt");
    writeFile(file, std::string_view(input));
    EXPECT_NE(std::freopen(file.c_str(), "r", stdin), nullptr);
    std::cin.clear();
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int code = runProgram(app, static_cast<int>(argv.size()), argv.data());
    std::string err = testing::internal::GetCapturedStderr();
    return {code, testing::internal::GetCapturedStdout(), err};
  }

  /// The numbers that the model says behind "ab".
  static std::string numbers(size_t count) {
    std::vector<int32_t> tokens = {bosToken, 14};
    std::string text;
    for (size_t i = 0; i < count; ++i) {
      tokens.push_back(nextToken(tokens));
      text += (i ? " " : "") + std::to_string(tokens.back());
    }
    return text + "\n";
  }

  TempDirectory directory;
  std::string artifact;
};

TEST_F(LanguageCommands, GenerateReadsItsPromptFromAnywhere) {
  std::vector<std::string> greedy = {"--temperature", "0", "-n", "4", "--ids", "--ignore-eos"};
  auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), greedy.begin(), greedy.end());
    return arguments;
  };
  EXPECT_EQ(call(with({"generate", artifact, "-p", "ab"})).out, numbers(4));
  EXPECT_EQ(call(with({"generate", artifact, "-f", "-"}), "ab").out, numbers(4));
  writeFile(directory.file("prompt.txt"), std::string_view("ab"));
  EXPECT_EQ(call(with({"generate", artifact, "--file", directory.file("prompt.txt")})).out, numbers(4));
  Outcome outcome = call(with({"generate", artifact, "-p", "ab", "--timings"}));
  EXPECT_NE(outcome.err.find("prompt 2 tokens in "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("generated 4 tokens in "), std::string::npos) << outcome.err;
}

TEST_F(LanguageCommands, GenerateRefuses) {
  EXPECT_EQ(call({"generate", artifact, "-p", std::string(100, 'z')}).err, "error: --prompt: the text is 101 tokens long, the model takes 64\n");
  EXPECT_EQ(call({"generate", artifact, "--stop", ""}).code, 2);
  EXPECT_EQ(call({"generate", artifact, "-p", "a", "-f", "b"}).code, 2);
  writeFile(directory.file("bad.gbnf"), std::string_view("root ::= [a"));
  EXPECT_EQ(call({"generate", artifact, "--grammar", directory.file("bad.gbnf")}).err,
            "error: " + directory.file("bad.gbnf") + ": grammar: line 1, column 10: a class has no ']'\n");
}

TEST_F(LanguageCommands, ChatAnswersLineByLine) {
  writeFile(directory.file("chat.jinja"), std::string_view("{{ bos_token }}{% for m in messages %}{{ m.role[0] }}{{ m.content }}{% endfor %}"));
  std::vector<std::string> arguments = {"chat", artifact, "--template", directory.file("chat.jinja"), "--temperature", "0", "-n", "3", "--timings"};
  Outcome outcome = call(arguments, "ab\nabc\n/reset\nab\n/system the\n/what\nab\n/exit\nab\n");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::vector<std::string> lines;
  size_t count = 0;
  for (size_t at = 0; (at = outcome.err.find("prompt ", at)) != std::string::npos; ++at)
    ++count;
  EXPECT_EQ(count, 4u) << outcome.err;
  EXPECT_NE(outcome.err.find("unknown command '/what'; there are /reset, /system TEXT, /exit"), std::string::npos) << outcome.err;
  outcome = call({"chat", artifact}, "ab\n");
  EXPECT_EQ(outcome.err, "error: " + artifact + ": the model brings no chat template; give one with --template FILE\n");
  writeFile(directory.file("bad.jinja"), std::string_view("{{ nosuch.member }}"));
  outcome = call({"chat", artifact, "--template", directory.file("bad.jinja")}, "ab\n");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err.rfind("error: " + directory.file("bad.jinja") + ": chat template: line 1: ", 0), 0u) << outcome.err;
  writeFile(directory.file("none.jinja"), std::string_view(""));
  EXPECT_EQ(call({"chat", artifact, "--template", directory.file("none.jinja")}, "ab\n").err,
            "error: " + directory.file("none.jinja") + ": is empty, expected a chat template\n");
}

TEST_F(LanguageCommands, PerplexityInWindows) {
  std::string text;
  for (int i = 0; i < 70; ++i)
    text += char('a' + i * 7 % 26);
  writeFile(directory.file("text.txt"), std::string_view(text));
  std::string json = directory.file("p.json");
  Outcome outcome = call({"perplexity", artifact, "--text", directory.file("text.txt"), "--window", "16", "--json", json});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  nlohmann::json result = nlohmann::json::parse(std::string(reinterpret_cast<const char *>(readFile(json).data()), readFile(json).size()));
  size_t tokens = result["tokens"], windows = tokens / 16;
  EXPECT_EQ(result["windows"], windows);
  EXPECT_EQ(result["scored"], windows * 7) << "of 16 tokens the last 7 count, as in llama.cpp";
  EXPECT_NEAR(result["perplexity"].get<double>(), std::exp(result["nll"].get<double>()), 1e-9);
  EXPECT_NE(outcome.out.find("windows " + std::to_string(windows) + "\n"), std::string::npos) << outcome.out;
  outcome = call({"perplexity", artifact, "--text", directory.file("text.txt"), "--window", "16", "--stride", "4", "--json", json});
  result = nlohmann::json::parse(std::string(reinterpret_cast<const char *>(readFile(json).data()), readFile(json).size()));
  EXPECT_EQ(result["windows"], (tokens - 16) / 4 + 1);
  EXPECT_EQ(result["scored"], ((tokens - 16) / 4 + 1) * 4);
  EXPECT_NE(call({"perplexity", artifact, "--text", directory.file("text.txt"), "--window", "65"}).err.find("more than the model takes: 64"), std::string::npos);
  EXPECT_NE(call({"perplexity", artifact, "--text", directory.file("text.txt"), "--window", "8", "--stride", "8"}).err.find("must be below the window"), std::string::npos);
  writeFile(directory.file("short.txt"), std::string_view("ab"));
  EXPECT_NE(call({"perplexity", artifact, "--text", directory.file("short.txt")}).err.find("fewer than one window of 64"), std::string::npos);
}

TEST_F(LanguageCommands, NumbersOutOfBoundsAreWrongCommandLines) {
  for (auto [option, value] : std::vector<std::pair<std::string, std::string>>{
           {"--tokens", "-1"}, {"--tokens", "4294967296"}, {"--tokens", "2.5"}, {"--temperature", "nan"}, {"--temperature", "-1"},
           {"--temperature", "1e39"}, {"--top-k", "-1"}, {"--top-k", "2147483648"}, {"--top-p", "nan"}, {"--min-p", "1.5"},
           {"--repetition-penalty", "0"}, {"--repetition-penalty", "inf"}, {"--frequency-penalty", "nan"},
           {"--presence-penalty", "-inf"}, {"--seed", "-1"}, {"--seed", "18446744073709551616"}}) {
    Outcome outcome = call({"generate", artifact, "-p", "a", option + "=" + value});
    EXPECT_EQ(outcome.code, 2) << option << " " << value;
    EXPECT_EQ(outcome.err.rfind("error: " + option + ": '" + value + "' is no ", 0), 0u) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(LanguageCommands, MessagesNameTheTextsFile) {
  writeFile(directory.file("long.txt"), std::string_view(std::string(500, 'a')));
  Outcome outcome = call({"generate", artifact, "-f", directory.file("long.txt")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err.rfind("error: " + directory.file("long.txt") + ": the text is ", 0), 0u) << outcome.err;
  writeFile(directory.file("schema.json"), std::string_view("{"));
  outcome = call({"generate", artifact, "-p", "a", "--json-schema", directory.file("schema.json")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err.rfind("error: " + directory.file("schema.json") + ": the schema is no JSON: ", 0), 0u) << outcome.err;
  std::string text = directory.file("text.txt");
  writeFile(text, std::string_view(std::string(200, 'a')));
  outcome = call({"perplexity", artifact, "--text", text, "--window", "16", "--json", text});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "error: --json " + text + ": would overwrite a file that is read; give another name\n");
  EXPECT_EQ(fileBytes(text), 200u);
}

} // namespace
