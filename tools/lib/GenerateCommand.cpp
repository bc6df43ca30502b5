//===- GenerateCommand.cpp - generate: a language model continues a text --===//

#include "ToolSupport/RuntimeModel.h"
#include "ajour/Language/Sampler.h"
#include "ajour/Language/Tokenizer.h"

#include <algorithm>
#include <chrono>
#include <span>

namespace ajour::tools {

namespace {

using language::Sampler;
using language::SamplerOptions;
using language::StreamDecoder;
using language::Text;
using language::TextStatus;
using language::Tokenizer;

struct GenerateOptions {
  std::string file, prompt;
  int64_t tokens = 128;
  uint32_t threads = 0;
  bool special = false, showIds = false, timings = false;
  std::vector<std::string> stops;
  SamplerOptions sampler;
};

Tokenizer openTokenizer(const ajour_model *model, const std::string &file) {
  const void *bytes = nullptr;
  size_t size = 0;
  check(ajour_model_attachment(model, "tokenizer", &bytes, &size));
  Tokenizer tokenizer;
  if (const char *problem = tokenizer.open(bytes, size))
    throw ToolError(file + ": " + problem);
  return tokenizer;
}

std::vector<int32_t> encodePrompt(const GenerateOptions &options, const Tokenizer &tokenizer) {
  language::Buffer<int32_t> ids;
  TextStatus status = tokenizer.encode({options.prompt.data(), options.prompt.size()}, {true, options.special}, ids);
  if (status != TextStatus::Ok)
    throw ToolError(options.file + ": the prompt cannot be tokenized: " +
                    (status == TextStatus::OutOfMemory ? "not enough memory" : "a pattern needs too many steps"));
  if (ids.size() == 0)
    throw ToolError("--prompt: the text is empty and the model has no token to begin with");
  return {ids.data(), ids.data() + ids.size()};
}

/// The text so far, as it may be shown: what could still become a stop text is held back.
class Printer {
public:
  explicit Printer(const std::vector<std::string> &stops) : stops(stops) {}

  /// True when a stop text has come.
  bool add(const Text &text) {
    pending.append(text.data(), text.size());
    size_t shown = pending.size();
    for (const std::string &stop : stops) {
      if (size_t at = pending.find(stop); at != std::string::npos) {
        show(at);
        pending.clear();
        return true;
      }
      // The longest end of the text that begins the stop text.
      for (size_t length = std::min(stop.size() - 1, pending.size()); length > 0; --length)
        if (pending.compare(pending.size() - length, length, stop, 0, length) == 0) {
          shown = std::min(shown, pending.size() - length);
          break;
        }
    }
    show(shown);
    return false;
  }
  void finish() { show(pending.size()); }

private:
  void show(size_t size) {
    std::fwrite(pending.data(), 1, size, stdout);
    std::fflush(stdout);
    pending.erase(0, size);
  }
  const std::vector<std::string> &stops;
  std::string pending;
};

/// A language model's inputs: tokens, their positions, and which positions each of them attends to.
enum Inputs { tokensInput, positionsInput, visibleInput, inputCount };

/// Its symbolic dimensions: tokens of a call, and positions in all.
enum Symbols { tokensSymbol, lengthSymbol, symbolCount };

int64_t mostOf(const ajour_model *model, Symbols which) {
  ajour_symbol_info symbol = AJOUR_INIT(ajour_symbol_info);
  check(ajour_model_symbol(model, which, &symbol));
  return symbol.max;
}

/// A session that remembers the tokens which it has been given.
class Conversation {
public:
  Conversation(ajour_model *model, uint32_t threads)
      : session(createSession(model, threads)), batch(size_t(mostOf(model, tokensSymbol))) {}

  /// The logits that follow after some more tokens, at least one. As many are given at a time as the model takes.
  std::span<const float> add(std::span<const int32_t> ids) {
    for (; ids.size() > batch; ids = ids.subspan(batch))
      addBatch(ids.first(batch));
    return addBatch(ids);
  }

private:
  std::span<const float> addBatch(std::span<const int32_t> ids) {
    int64_t count = int64_t(ids.size()), shape[2] = {count, length + count};
    std::vector<int64_t> tokens(ids.begin(), ids.end()), positions(ids.size());
    std::vector<uint8_t> visible(size_t(shape[0] * shape[1]));
    for (int64_t i = 0; i < count; ++i) {
      positions[size_t(i)] = length + i;
      std::fill_n(visible.begin() + i * shape[1], length + i + 1, uint8_t(1));
    }
    check(ajour_session_set_input(session.get(), tokensInput, tokens.data(), shape, 1));
    check(ajour_session_set_input(session.get(), positionsInput, positions.data(), shape, 1));
    check(ajour_session_set_input(session.get(), visibleInput, visible.data(), shape, 2));
    check(ajour_session_run(session.get()));
    length += count;
    ajour_tensor_view view = AJOUR_INIT(ajour_tensor_view);
    check(ajour_session_output(session.get(), 0, &view));
    size_t vocabulary = size_t(view.dims[1]);
    return {static_cast<const float *>(view.data) + size_t(count - 1) * vocabulary, vocabulary};
  }

  SessionPointer session;
  size_t batch;
  int64_t length = 0;
};

/// Checks that a model is a language model, and gives the number of tokens that it can take.
int64_t contextOf(const ajour_model *model, const std::string &file) {
  static const char *names[inputCount] = {"tokens", "positions", "visible"};
  std::vector<TensorInfo> inputs = inputInfos(model), outputs = outputInfos(model);
  bool good = inputs.size() == inputCount && !outputs.empty() && outputs[0].name == "logits" && modelInfo(model).symbol_count == symbolCount &&
              mostOf(model, tokensSymbol) > 0 && mostOf(model, lengthSymbol) > 0;
  for (size_t i = 0; good && i < inputCount; ++i)
    good = inputs[i].name == names[i];
  if (!good)
    throw ToolError(file + ": is no language model: expected the inputs 'tokens', 'positions' and 'visible' and the output 'logits'");
  return mostOf(model, lengthSymbol);
}

void generate(const GenerateOptions &options, const CommandHooks &hooks) {
  using Clock = std::chrono::steady_clock;
  ArtifactFor artifact(options.file, hooks);
  ModelPointer model = loadModel(artifact.path());
  int64_t context = contextOf(model.get(), options.file);
  Tokenizer tokenizer = openTokenizer(model.get(), options.file);
  std::vector<int32_t> history = encodePrompt(options, tokenizer);
  if (int64_t(history.size()) > context)
    throw ToolError("--prompt: the text is " + std::to_string(history.size()) + " tokens long, the model takes " +
                    std::to_string(context));
  Conversation conversation(model.get(), options.threads);
  Sampler sampler(options.sampler);
  StreamDecoder decoder(tokenizer, options.special);
  Printer printer(options.stops);
  size_t promptLength = history.size(), given = 0;
  Clock::time_point start = Clock::now(), first = start;
  int64_t count = 0;
  Text text;
  while (count < options.tokens && int64_t(history.size()) <= context) {
    std::span<const float> logits = conversation.add(std::span(history).subspan(given));
    given = history.size();
    int32_t id = sampler.sample(logits.data(), int32_t(logits.size()), history.data(), history.size());
    if (count == 0)
      first = Clock::now();
    if (id < 0)
      throw ToolError(options.file + ": the model gave no number as a logit");
    if (tokenizer.endsGeneration(id))
      break;
    ++count;
    history.push_back(id);
    if (options.showIds) {
      std::printf(count == 1 ? "%d" : " %d", id);
      continue;
    }
    text.clear();
    decoder.add(id, text);
    if (printer.add(text))
      break;
  }
  if (!options.showIds) {
    text.clear();
    decoder.finish(text);
    printer.add(text);
    printer.finish();
  }
  std::printf("\n");
  if (options.timings) {
    double prompt = std::chrono::duration<double>(first - start).count();
    double rest = std::chrono::duration<double>(Clock::now() - first).count();
    std::fprintf(stderr, "prompt %zu tokens in %.3f s, generated %lld tokens, %.1f tokens/s\n", promptLength, prompt,
                 static_cast<long long>(count), rest > 0 ? double(count - 1) / rest : 0.0);
  }
}

} // namespace

void registerGenerateCommand(CLI::App &app, const CommandHooks &hooks) {
  auto options = std::make_shared<GenerateOptions>();
  SamplerOptions &sampler = options->sampler;
  CLI::App *command = app.add_subcommand("generate", "let a language model continue a text");
  command->add_option("file", options->file, "artifact (.ajour)" + std::string(hooks.isModel ? " or model" : ""))
      ->required()
      ->type_name("FILE");
  command->add_option("-p,--prompt", options->prompt, "the text to continue")->type_name("TEXT");
  command->add_option("-n,--tokens", options->tokens, "most tokens to generate")->check(CLI::PositiveNumber)->type_name("N")->capture_default_str();
  command->add_option("--temperature", sampler.temperature, "0: always the most likely token")->check(CLI::NonNegativeNumber)->capture_default_str();
  command->add_option("--top-k", sampler.topK, "choose among the K most likely; 0: all")->check(CLI::NonNegativeNumber)->capture_default_str();
  command->add_option("--top-p", sampler.topP, "choose among the fewest that reach this probability")->check(CLI::Range(0.0, 1.0))->capture_default_str();
  command->add_option("--min-p", sampler.minP, "leave out what is less likely than this share of the most likely")->check(CLI::Range(0.0, 1.0))->capture_default_str();
  command->add_option("--repetition-penalty", sampler.repetitionPenalty, "above 1: recent tokens become less likely")->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--seed", sampler.seed, "of the random choice; the same seed gives the same text")->capture_default_str();
  command->add_option("--stop", options->stops, "end before this text; may be given several times")
      ->take_all()
      ->expected(1)
      ->check([](const std::string &text) { return text.empty() ? "a stop text is empty" : ""; })
      ->type_name("TEXT");
  command->add_flag("--special", options->special, "read control tokens in the prompt by their texts, and show those generated");
  command->add_flag("--ids", options->showIds, "print the tokens' numbers instead of their text");
  command->add_flag("--timings", options->timings, "print the speed to stderr at the end");
  command->add_option("-t,--threads", options->threads, "threads; default: the number of performance cores")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
  command->callback([options, hooks] { generate(*options, hooks); });
}

} // namespace ajour::tools
