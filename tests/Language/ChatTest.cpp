// Chat templates, against what Jinja makes of them (tests/Language/Chat/expected.py).
#include "TextModel.h"

#include <nlohmann/json.hpp>

#include <cstdlib>

using namespace ajour::test;
using json = nlohmann::ordered_json;

namespace {

/// Renders with further variables in JSON; the text, or the message why not.
std::string render(const std::string &source, const std::string &variables = "", const std::vector<ajour_chat_message> &messages = {},
                   bool prompt = false, int64_t now = 0, ajour_status_code expected = AJOUR_OK) {
  std::vector<uint8_t> description = describeTokenizer();
  ajour_tokenizer *tokenizer = nullptr;
  EXPECT_EQ(ajour_tokenizer_create_memory(description.data(), description.size(), &tokenizer), AJOUR_OK) << ajour_last_message();
  ajour_chat_options options = AJOUR_INIT(ajour_chat_options);
  options.add_generation_prompt = prompt;
  options.variables = variables.empty() ? nullptr : variables.c_str();
  options.chat_template = source.c_str();
  options.now = now;
  std::string text(1 << 16, 0);
  size_t bytes = 0;
  ajour_status_code status = ajour_tokenizer_render_chat(tokenizer, messages.data(), messages.size(), &options, text.data(), text.size(), &bytes);
  EXPECT_EQ(status, expected) << source << ": " << ajour_last_message();
  ajour_tokenizer_destroy(tokenizer);
  return status == AJOUR_OK ? text.substr(0, bytes) : ajour_last_message();
}
std::string refusal(const std::string &source, const std::string &variables = "", const std::vector<ajour_chat_message> &messages = {}) {
  return render(source, variables, messages, false, 0, AJOUR_INVALID_ARGUMENT);
}

TEST(Chat, TemplatesAreRenderedAsByJinja) {
  setenv("TZ", "UTC", 1);
  std::string folder = std::string(AJOUR_SOURCE_DIR) + "/tests/Language/Chat/";
  // In the order of the file: templates may go over the members of a mapping.
  json expected = json::parse(readFile(folder + "expected.json"));
  size_t failures = 0;
  for (size_t i = 0; i < expected["cases"].size(); ++i) {
    const json &entry = expected["cases"][i];
    std::string name = entry["template"], chat = entry["chat"];
    bool file = name.size() > 6 && name.substr(name.size() - 6) == ".jinja";
    std::string variables = entry["variables"].dump();
    std::string source = file ? readFile(folder + name) : name;
    json all = entry["variables"];
    all["messages"] = expected["messages"][chat];
    bool fails = entry["text"].is_null();
    std::string text = render(source, all.dump(), {}, entry["prompt"], expected["now"], fails ? AJOUR_INVALID_ARGUMENT : AJOUR_OK);
    failures += fails;
    if (!fails)
      EXPECT_EQ(text, entry["text"].get<std::string>()) << name << " on " << chat << " " << variables;
  }
  EXPECT_GT(expected["cases"].size(), 200u);
  EXPECT_GT(failures, 30u);
}

TEST(Chat, MessagesAndTheirMembers) {
  EXPECT_EQ(render("{% for m in messages %}{{ m.role }}:{{ m.content }}{{ m.calls }}{{ bos_token }}{% endfor %}{{ add_generation_prompt }}", "{\"a\":1}",
                   {{"user", "hi", nullptr}, {"tool", nullptr, "{\"calls\": [1, \"\\u00e9\\ud83d\\ude0a\"]}"}}, true),
            "user:hi<s>tool:[1, '\u00e9\U0001f60a']<s>True");
}

TEST(Chat, MessagesNameTheLine) {
  auto expect = [](const std::string &message, const char *part) { EXPECT_NE(message.find(part), std::string::npos) << message; };
  expect(refusal("a\n{% if x %}\n{{ y\n}}"), "chat template: line 2: a block has no 'endif'");
  expect(refusal("\n\n{{ 'a' | sparkle }}"), "line 3: unknown filter 'sparkle'");
  expect(refusal("\n{{ raise_exception('roles must alternate') }}"), "line 2: the template refuses: roles must alternate");
  expect(refusal("{% include 'x' %}"), "line 1: unknown block 'include'");
  expect(refusal("{{ a.b.c }}"), "an undefined value has no members; 'b' was asked for");
  expect(refusal("{{ 'a'.sparkle() }}"), "a string has no method 'sparkle'");
  expect(refusal("{{ 1 is sparkly }}"), "unknown test 'sparkly'");
  expect(refusal("{{ 'a' < 1 }}"), "a string and an integer have no order");
  expect(refusal("{{ 9223372036854775807 + 1 }}"), "larger than 64 bits");
  expect(refusal("{{ (1, 2 }}"), "'}' closes nothing");
  expect(refusal("{{ f(a=1, 2) }}"), "stands behind one with a name");
  expect(refusal("{% macro m(a) %}{% endmacro %}{{ m(b=1) }}"), "'m' has no parameter 'b'");
  expect(refusal("{% set a.b = 1 %}"), "'a' is no namespace");
  expect(refusal("{% for a, b in [[1]] %}{% endfor %}"), "1 values for 2 names");
  expect(refusal("{# open"), "a comment has no end");
  expect(refusal("{% raw %}"), "a raw block has no end");
  expect(refusal("x", "{\"a\":"), "the variables of the chat is no JSON: byte 5");
  expect(refusal("x", "[]"), "expected a JSON object");
  expect(refusal("x", "", {{"user", "hi", "3"}}), "the members of message 0 are an integer");
  std::vector<uint8_t> description = describeTokenizer();
  ajour_tokenizer *tokenizer = nullptr;
  ASSERT_DONE(ajour_tokenizer_create_memory(description.data(), description.size(), &tokenizer));
  size_t bytes = 0;
  EXPECT_STATUS(ajour_tokenizer_render_chat(tokenizer, nullptr, 0, nullptr, nullptr, 0, &bytes), AJOUR_INVALID_ARGUMENT, "brings no chat template");
  ajour_tokenizer_destroy(tokenizer);
}

// Templates come from model files: none of them may hang, take all memory or run out of stack. Which of the bounds, many steps or much
// memory, ends some of them first is all the same.
TEST(Chat, HostileTemplatesEnd) {
  auto expect = [](const std::string &message, const char *part) { EXPECT_NE(message.find(part), std::string::npos) << message; };
  std::string deep(60000, '('), loops, elifs = "{% if a %}";
  expect(refusal("{{ " + deep + "1" + std::string(60000, ')') + " }}"), "nested deeper than");
  for (int i = 0; i < 30; ++i)
    loops += "{% for i in range(1000) %}";
  for (int i = 0; i < 30; ++i)
    loops += "{% endfor %}";
  expect(refusal(loops), "too m");
  expect(refusal("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), "nested deeper than");
  expect(refusal("{% set ns = namespace(s='aaaaaaaaaaaaaaaa') %}{% for i in range(40) %}{% set ns.s = ns.s + ns.s %}{% endfor %}"), "too much memory");
  expect(refusal("{{ 'a' * 100000000000 }}"), "too m");
  expect(refusal("{{ range(100000000) }}"), "too m");
  for (int i = 0; i < 5000; ++i)
    elifs += "{% elif a %}";
  expect(refusal(elifs), "nested deeper than");
  expect(refusal("{% set l = [] %}{% for i in [1] %}{{ l.append(l) }}{% endfor %}{{ l }}"), "nested deeper than");
}

} // namespace
