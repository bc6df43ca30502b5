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
  EXPECT_EQ(outcome.err, "error: the model brings no chat template; give one\n");
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

} // namespace
