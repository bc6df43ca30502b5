// Fuzzes what users and models say about texts. The first byte chooses: a chat template with variables behind a zero byte, a grammar with a text behind a
// zero byte, or a JSON schema, whose grammar must be a good one.
#include "Language/Grammar.h"
#include "Language/Template/Template.h"
#include "ToolSupport/HostTensor.h"
#include "ToolSupport/JsonSchema.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace ajour::language;

extern "C" const char *__asan_default_options() { return "allocator_may_return_null=1:allow_user_poisoning=0"; }

/// Bytes in memory of exactly their size, so that a read behind them is seen.
struct Exactly {
  explicit Exactly(const std::string &text) : bytes(text.begin(), text.end()) { bytes.shrink_to_fit(); }
  operator Bytes() const { return {bytes.data(), bytes.size()}; }
  std::vector<char> bytes;
};

static void renderTemplate(const std::string &text, const std::string &variables) {
  const ajour_chat_message messages[] = {{"system", "s", nullptr}, {"user", "hi <é>", "{\"a\":[1,{\"b\":null}]}"}, {"assistant", "x</think>y", nullptr}};
  Exactly source(text), more(variables);
  chat::Input input;
  input.messages = messages;
  input.messageCount = std::size(messages);
  input.addGenerationPrompt = true;
  input.bos = Bytes("<s>", 3), input.eos = Bytes("</s>", 4);
  input.variables = more;
  chat::Context context;
  Text out;
  chat::render(context, source, input, out);
}

/// Reads a grammar and follows a text as far as it allows. Returns whether it is one.
static bool followGrammar(const std::string &text, const std::string &said, std::string &problem) {
  Grammar grammar;
  char message[200] = "";
  if (!grammar.parse(Exactly(text), message, sizeof(message))) {
    problem = message;
    return false;
  }
  // Tokens are the bytes themselves.
  TokenTree tree;
  tree.longest = 1;
  if (!tree.nodes.reserve(256) || !tree.same.fill(256, -1))
    return true;
  for (int byte = 0; byte < 256; ++byte)
    tree.nodes.push({uint8_t(byte), 0, uint32_t(byte) + 1, byte});
  GrammarMatcher matcher;
  if (!matcher.reset(grammar, tree, 1, 256))
    return true;
  for (char ch : said) {
    const uint64_t *allowed = matcher.allowed();
    if (!allowed || !(allowed[uint8_t(ch) >> 6] >> (uint8_t(ch) & 63) & 1))
      return true;
    matcher.mayEnd();
    if (!matcher.advance(Bytes(&ch, 1)))
      return true;
  }
  return true;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::string text(reinterpret_cast<const char *>(data + 1), size - 1), behind, problem;
  if (size_t zero = text.find('\0'); zero != std::string::npos)
    behind = text.substr(zero + 1), text.resize(zero);
  switch (*data % 3) {
  case 0:
    renderTemplate(text, behind);
    break;
  case 1:
    followGrammar(text, behind, problem);
    break;
  default:
    try {
      std::string grammar = ajour::tools::grammarOfSchema(text);
      // Too large, or a choice of what may be empty: said when it is read.
      if (!followGrammar(grammar, behind, problem) && problem.find("elements") == std::string::npos && problem.find("without end") == std::string::npos &&
          problem.find("begins with itself") == std::string::npos) {
        std::fprintf(stderr, "%s\n%s\n", problem.c_str(), grammar.c_str());
        std::abort();
      }
    } catch (const ajour::tools::ToolError &) {
      // refused with a message
    }
  }
  return 0;
}
