//===- LanguageModel.cpp - Language models for the tools ------------------===//

#include "ToolSupport/LanguageModel.h"
#include "ToolSupport/Files.h"
#include "ToolSupport/JsonSchema.h"

#include <atomic>
#include <cfloat>
#include <csignal>
#include <cstdio>

namespace ajour::tools {

TokenizerPointer openTokenizer(ajour_model *model) {
  ajour_tokenizer *tokenizer = nullptr;
  check(ajour_tokenizer_create(model, &tokenizer));
  return TokenizerPointer(tokenizer);
}

std::vector<int32_t> encode(const ajour_tokenizer *tokenizer, std::string_view text, uint32_t flags) {
  // A token stands for at least one byte, but for those put around the text and blanks put before it.
  std::vector<int32_t> ids(text.size() + 16);
  size_t count = 0;
  check(ajour_tokenizer_encode(tokenizer, text.data(), text.size(), flags, ids.data(), ids.size(), &count));
  if (count > ids.size()) {
    ids.resize(count);
    check(ajour_tokenizer_encode(tokenizer, text.data(), text.size(), flags, ids.data(), ids.size(), &count));
  }
  ids.resize(count);
  return ids;
}

static GeneratorPointer createGenerator(ajour_session *session, const ajour_tokenizer *tokenizer) {
  ajour_generator *generator = nullptr;
  check(ajour_generator_create(session, tokenizer, &generator));
  return GeneratorPointer(generator);
}

/// The model of a file, if it is one of languages. That is said before a tokenizer is missed.
static ModelPointer loadLanguageModel(const std::string &file, const std::string &artifact) {
  ModelPointer model = loadModel(artifact);
  if (ajour_model_find_output(model.get(), "logits") < 0)
    throw ToolError(file + ": is no language model: it has no output 'logits'");
  const void *description = nullptr;
  size_t bytes = 0;
  if (ajour_model_attachment(model.get(), "tokenizer", &description, &bytes) != AJOUR_OK)
    throw ToolError(file + ": brings no tokenizer; compile a GGUF file, or a folder that has a tokenizer.json");
  return model;
}

LanguageModel::LanguageModel(const std::string &file, const CommandHooks &hooks, uint32_t threads)
    : artifact(file, hooks), model(loadLanguageModel(file, artifact.path())), tokenizer(openTokenizer(model.get())),
      session(createSession(model.get(), threads)), generator(createGenerator(session.get(), tokenizer.get())) {}

ajour_generator_info LanguageModel::info() const {
  ajour_generator_info info = AJOUR_INIT(ajour_generator_info);
  check(ajour_generator_get_info(generator.get(), &info));
  return info;
}

GenerateSettings::GenerateSettings() : values(AJOUR_INIT(ajour_generate_options)) {
  values.temperature = 0.8f;
  values.top_k = 40;
  values.top_p = 0.95f;
  values.min_p = 0.05f;
  values.repetition_penalty = 1.0f;
  values.penalty_window = 64;
  values.max_tokens = 128;
}

const ajour_generate_options &GenerateSettings::options() {
  stopPointers.clear();
  for (const std::string &stop : stops)
    stopPointers.push_back(stop.c_str());
  values.stops = stopPointers.data();
  values.stop_count = uint32_t(stopPointers.size());
  values.flags = (ignoreEnd ? AJOUR_GENERATE_IGNORE_END : 0) | (special ? AJOUR_GENERATE_SPECIAL : 0);
  return values;
}

void GenerateSettings::openGrammar(const ajour_tokenizer *tokenizer) {
  const std::string &file = schemaFile.empty() ? grammarFile : schemaFile;
  if (file.empty())
    return;
  Bytes bytes = readFile(file);
  std::string text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (!schemaFile.empty()) {
    try {
      text = grammarOfSchema(text);
    } catch (const ToolError &error) {
      throw ToolError(file + ": " + error.what());
    }
  }
  ajour_grammar *opened = nullptr;
  if (ajour_grammar_create(tokenizer, text.data(), text.size(), &opened) != AJOUR_OK)
    throw ToolError(file + ": " + ajour_last_message());
  grammar.reset(opened);
  values.grammar = opened;
}

void addGenerateOptions(CLI::App &command, GenerateSettings &settings) {
  ajour_generate_options &v = settings.values;
  command.add_option("-n,--tokens", v.max_tokens, "most tokens to generate; 0: as many as the model takes")->check(wholeNumber(0, UINT32_MAX))->type_name("N")->capture_default_str();
  command.add_option("--temperature", v.temperature, "0: always the most likely token")->check(realNumber(0, FLT_MAX))->capture_default_str();
  command.add_option("--top-k", v.top_k, "choose among the K most likely; 0: all")->check(wholeNumber(0, INT32_MAX))->capture_default_str();
  command.add_option("--top-p", v.top_p, "choose among the fewest that reach this probability")->check(realNumber(0, 1))->capture_default_str();
  command.add_option("--min-p", v.min_p, "leave out what is less likely than this share of the most likely")->check(realNumber(0, 1))->capture_default_str();
  command.add_option("--repetition-penalty", v.repetition_penalty, "above 1: recent tokens become less likely")->check(realNumber(0, FLT_MAX, /*open=*/true))->capture_default_str();
  command.add_option("--frequency-penalty", v.frequency_penalty, "taken off a recent token's logit for each time that it was said")->check(finiteNumber())->capture_default_str();
  command.add_option("--presence-penalty", v.presence_penalty, "taken off a recent token's logit once")->check(finiteNumber())->capture_default_str();
  command.add_option("--penalty-window", v.penalty_window, "how many tokens back are recent; -1: all")->check(CLI::Range(-1, 1 << 30))->capture_default_str();
  command.add_option("--seed", v.seed, "of the random choice; the same seed gives the same text")->check(wholeNumber(0, UINT64_MAX))->capture_default_str();
  command.add_option("--stop", settings.stops, "end before this text; may be given several times")
      ->take_all()
      ->expected(1)
      ->check([](const std::string &text) { return text.empty() ? "a stop text is empty" : ""; })
      ->type_name("TEXT");
  CLI::Option *grammar = command.add_option("--grammar", settings.grammarFile, "file with a grammar of what may be generated")->type_name("FILE");
  command.add_option("--json-schema", settings.schemaFile, "file with a JSON schema; what is generated fits it")->excludes(grammar)->type_name("FILE");
  command.add_flag("--ignore-eos", settings.ignoreEnd, "never choose the tokens that end texts");
  command.add_flag("--special", settings.special, "read control tokens in the text by their names, and show those generated");
}

namespace {

/// The generator that a signal of Ctrl-C cancels.
std::atomic<ajour_generator *> interruptible{nullptr};
std::atomic<bool> interrupted{false};

void interrupt(int) {
  // The second time the program ends, as it would without this.
  std::signal(SIGINT, SIG_DFL);
  interrupted.store(true);
  ajour_generator_cancel(interruptible.load());
}

struct Interruptible {
  explicit Interruptible(ajour_generator *generator) {
    interrupted.store(false);
    interruptible.store(generator);
    previous = std::signal(SIGINT, interrupt);
  }
  ~Interruptible() {
    std::signal(SIGINT, previous);
    interruptible.store(nullptr);
  }
  void (*previous)(int);
};

} // namespace

ajour_generate_result generate(ajour_generator *generator, GenerateSettings &settings,
                               const std::function<bool(const ajour_generated &)> &event) {
  ajour_generate_options options = settings.options();
  options.callback = [](void *user, const ajour_generated *generated) {
    return (*static_cast<const std::function<bool(const ajour_generated &)> *>(user))(*generated) ? 0 : 1;
  };
  options.user = const_cast<std::function<bool(const ajour_generated &)> *>(&event);
  ajour_generate_result result = AJOUR_INIT(ajour_generate_result);
  Interruptible guard(generator);
  ajour_status_code status = ajour_generator_generate(generator, &options, &result);
  if (status != AJOUR_CANCELLED || !interrupted.load())
    check(status);
  return result;
}

ajour_generator_stats statsOf(const ajour_generator *generator) {
  ajour_generator_stats stats = AJOUR_INIT(ajour_generator_stats);
  check(ajour_generator_get_stats(generator, &stats));
  return stats;
}

void printTimings(const ajour_generator *generator, const ajour_generator_stats &before) {
  ajour_generator_stats now = statsOf(generator);
  auto line = [](uint64_t tokens, uint64_t ns) {
    double seconds = double(ns) * 1e-9;
    char text[96];
    std::snprintf(text, sizeof(text), "%llu tokens in %.3f s, %.1f tokens/s", static_cast<unsigned long long>(tokens), seconds,
                  seconds > 0 ? double(tokens) / seconds : 0.0);
    return std::string(text);
  };
  std::fprintf(stderr, "prompt %s, %llu reused; generated %s\n",
               line(now.prompt_tokens - before.prompt_tokens, now.prompt_ns - before.prompt_ns).c_str(),
               static_cast<unsigned long long>(now.reused_tokens - before.reused_tokens),
               line(now.generated_tokens - before.generated_tokens, now.generate_ns - before.generate_ns).c_str());
}

} // namespace ajour::tools
