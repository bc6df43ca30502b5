// The C API of texts: checks arguments, copies extensible structures, forwards.
#include <cstdlib>
#include <ctime>
#include <new>

#include "Generator.h"
#include "Template/Template.h"
#include "ajour/Runtime/SessionAccess.h"
#include "ajour/Runtime/Structures.h"

using namespace ajour::language;
using namespace ajour::runtime;


#define NEED_UNLESS(pointer, empty)                                                                                    \
  if (!(pointer) && !(empty))                                                                                          \
  return fail(AJOUR_INVALID_ARGUMENT, "%s: argument '" #pointer "' is null", __func__)

/// Makes an object without operator new, which may throw. Null: there is no memory.
template <typename T, typename... Arguments> static T *make(Arguments... arguments) {
  void *memory = nullptr;
  return posix_memalign(&memory, alignof(T) < sizeof(void *) ? sizeof(void *) : alignof(T), sizeof(T)) == 0
             ? new (memory) T(arguments...)
             : nullptr;
}
template <typename T> static void unmake(T *object) {
  if (!object)
    return;
  object->~T();
  std::free(object);
}

static ajour_status_code checkIds(const Tokenizer &tokenizer, const int32_t *tokens, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (tokens[i] < 0 || tokens[i] >= tokenizer.size())
      return fail(AJOUR_INVALID_ARGUMENT, "there is no token %d, the vocabulary has %d", tokens[i], tokenizer.size());
  return AJOUR_OK;
}

static ajour_status_code openTokenizer(const char *name, ajour_model *model, const void *bytes, size_t size, ajour_tokenizer **result) {
  ajour_tokenizer *tokenizer = make<ajour_tokenizer>();
  if (!tokenizer)
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for a tokenizer", name);
  const char *problem = tokenizer->tokenizer.open(bytes, size);
  if (problem) {
    unmake(tokenizer);
    return fail(AJOUR_BAD_FILE, "%s: %s", name, problem);
  }
  append(tokenizer->chatTemplate, tokenizer->tokenizer.chatTemplate());
  tokenizer->chatTemplate.push(0);
  if (tokenizer->chatTemplate.failed()) {
    unmake(tokenizer);
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for a tokenizer", name);
  }
  if (model)
    holdModel(model);
  tokenizer->model = model;
  *result = tokenizer;
  return AJOUR_OK;
}

extern "C" {

ajour_status_code ajour_tokenizer_create(ajour_model *model, ajour_tokenizer **tokenizer) {
  NEED(model);
  NEED(tokenizer);
  const void *bytes = nullptr;
  size_t size = 0;
  TRY(ajour_model_attachment(model, "tokenizer", &bytes, &size));
  return openTokenizer(nameOf(model), model, bytes, size, tokenizer);
}

ajour_status_code ajour_tokenizer_create_memory(const void *description, size_t bytes, ajour_tokenizer **tokenizer) {
  NEED(description);
  NEED(tokenizer);
  return openTokenizer("tokenizer", nullptr, description, bytes, tokenizer);
}

void ajour_tokenizer_destroy(ajour_tokenizer *tokenizer) { unmake(tokenizer); }

ajour_status_code ajour_tokenizer_get_info(const ajour_tokenizer *tokenizer, ajour_tokenizer_info *info) {
  NEED(tokenizer);
  NEED(info);
  const Tokenizer &t = tokenizer->tokenizer;
  ajour_tokenizer_info result = {0, t.size(), t.bos(), t.eos(), t.longestToken(), tokenizer->chatTemplate.data()};
  return giveResult(info, result);
}

ajour_status_code ajour_tokenizer_encode(const ajour_tokenizer *tokenizer, const char *text, size_t bytes, uint32_t flags, int32_t *tokens,
                                         size_t capacity, size_t *count) {
  NEED(tokenizer);
  NEED_UNLESS(text, bytes == 0);
  NEED_UNLESS(tokens, capacity == 0);
  NEED(count);
  TRY(checkFlags(flags, AJOUR_TEXT_ADD_SPECIAL | AJOUR_TEXT_SPECIAL));
  if (bytes > INT32_MAX)
    return fail(AJOUR_INVALID_ARGUMENT, "a text of %zu bytes is too long for a tokenizer", bytes);
  const Tokenizer &t = tokenizer->tokenizer;
  Buffer<int32_t> ids;
  switch (t.encode({text ? text : "", bytes}, {(flags & AJOUR_TEXT_ADD_SPECIAL) != 0, (flags & AJOUR_TEXT_SPECIAL) != 0}, ids)) {
  case TextStatus::Ok:
    break;
  case TextStatus::OutOfMemory:
    return fail(AJOUR_OUT_OF_MEMORY, "no memory to tokenize %zu bytes", bytes);
  case TextStatus::TooComplex:
    return fail(AJOUR_INVALID_ARGUMENT, "a pattern of the tokenizer needs too many steps on this text");
  }
  // A text that brings the begin token itself gets no second one.
  if ((flags & AJOUR_TEXT_ADD_SPECIAL) && ids.size() > 1 && t.bos() >= 0 && ids[0] == t.bos() && ids[1] == t.bos())
    ids.dropFront(1);
  *count = ids.size();
  size_t written = ids.size() < capacity ? ids.size() : capacity;
  if (written != 0)
    std::memcpy(tokens, ids.data(), written * sizeof(int32_t));
  return AJOUR_OK;
}

ajour_status_code ajour_tokenizer_decode(const ajour_tokenizer *tokenizer, const int32_t *tokens, size_t count, uint32_t flags, char *text,
                                         size_t capacity, size_t *bytes) {
  NEED(tokenizer);
  NEED_UNLESS(tokens, count == 0);
  NEED_UNLESS(text, capacity == 0);
  NEED(bytes);
  TRY(checkFlags(flags, AJOUR_TEXT_SPECIAL));
  TRY(checkIds(tokenizer->tokenizer, tokens, count));
  StreamDecoder decoder(tokenizer->tokenizer, (flags & AJOUR_TEXT_SPECIAL) != 0);
  Text decoded;
  for (size_t i = 0; i < count; ++i)
    decoder.add(tokens[i], decoded);
  decoder.finish(decoded);
  if (decoded.failed())
    return fail(AJOUR_OUT_OF_MEMORY, "no memory for the text of %zu tokens", count);
  *bytes = decoded.size();
  size_t written = decoded.size() < capacity ? decoded.size() : capacity;
  if (written != 0)
    std::memcpy(text, decoded.data(), written);
  return AJOUR_OK;
}

int ajour_tokenizer_ends_generation(const ajour_tokenizer *tokenizer, int32_t token) {
  return tokenizer && tokenizer->tokenizer.endsGeneration(token);
}

ajour_status_code ajour_tokenizer_render_chat(const ajour_tokenizer *tokenizer, const ajour_chat_message *messages, size_t count,
                                              const ajour_chat_options *given, char *text, size_t capacity, size_t *bytes) {
  NEED(tokenizer);
  NEED_UNLESS(messages, count == 0);
  NEED_UNLESS(text, capacity == 0);
  NEED(bytes);
  ajour_chat_options options;
  TRY(takeOptions(given, options));
  for (size_t i = 0; i < count; ++i)
    NEED(messages[i].role);
  const Tokenizer &t = tokenizer->tokenizer;
  Bytes source = options.chat_template ? Bytes(options.chat_template, std::strlen(options.chat_template)) : t.chatTemplate();
  if (source.size == 0)
    return fail(AJOUR_INVALID_ARGUMENT, "the model brings no chat template; give one");
  chat::Input input;
  input.messages = messages;
  input.messageCount = count;
  input.addGenerationPrompt = options.add_generation_prompt != 0;
  if (t.bos() >= 0)
    input.bos = t.bytes(t.bos());
  if (t.eos() >= 0)
    input.eos = t.bytes(t.eos());
  if (options.variables)
    input.variables = {options.variables, std::strlen(options.variables)};
  input.now = options.now != 0 ? options.now : int64_t(time(nullptr));
  chat::Context context;
  Text rendered;
  if (!chat::render(context, source, input, rendered))
    return fail(AJOUR_INVALID_ARGUMENT, "chat template: %s", context.message);
  *bytes = rendered.size();
  size_t written = rendered.size() < capacity ? rendered.size() : capacity;
  if (written != 0)
    std::memcpy(text, rendered.data(), written);
  return AJOUR_OK;
}

ajour_status_code ajour_grammar_create(const ajour_tokenizer *tokenizer, const char *text, size_t bytes, ajour_grammar **result) {
  NEED(tokenizer);
  NEED_UNLESS(text, bytes == 0);
  NEED(result);
  if (bytes > INT32_MAX)
    return fail(AJOUR_INVALID_ARGUMENT, "a grammar of %zu bytes is too long", bytes);
  static std::atomic<uint64_t> identities{0};
  ajour_grammar *grammar = make<ajour_grammar>();
  if (!grammar)
    return fail(AJOUR_OUT_OF_MEMORY, "no memory for a grammar");
  char message[400] = "";
  bool parsed = grammar->grammar.parse({text ? text : "", bytes}, message, sizeof(message));
  if (!parsed || !grammar->tree.build(tokenizer->tokenizer)) {
    unmake(grammar);
    return parsed ? fail(AJOUR_OUT_OF_MEMORY, "no memory for the vocabulary of a grammar") : fail(AJOUR_INVALID_ARGUMENT, "grammar: %s", message);
  }
  grammar->vocabulary = tokenizer->tokenizer.size();
  grammar->identity = ++identities;
  *result = grammar;
  return AJOUR_OK;
}

void ajour_grammar_destroy(ajour_grammar *grammar) { unmake(grammar); }

ajour_status_code ajour_generator_create(ajour_session *session, const ajour_tokenizer *tokenizer, ajour_generator **result) {
  NEED(session);
  NEED(result);
  ajour_generator *generator = make<ajour_generator>(session, tokenizer);
  if (!generator)
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for a generator", nameOf(modelOf(session)));
  ajour_status_code status = generator->open();
  if (status == AJOUR_OK)
    status = generator->reset();
  if (status == AJOUR_OK)
    *result = generator;
  else
    unmake(generator);
  return status;
}

void ajour_generator_destroy(ajour_generator *generator) { unmake(generator); }

ajour_status_code ajour_generator_get_info(const ajour_generator *generator, ajour_generator_info *info) {
  NEED(generator);
  NEED(info);
  const Driver &driver = generator->driver;
  ajour_generator_info result = {0, driver.context, driver.batch, driver.vocabulary, driver.rewinds, generator->savedBytes()};
  return giveResult(info, result);
}

ajour_status_code ajour_generator_set_prompt(ajour_generator *generator, const int32_t *tokens, size_t count, size_t *reused) {
  NEED(generator);
  NEED_UNLESS(tokens, count == 0);
  size_t kept = 0;
  TRY(generator->setPrompt(tokens, count, kept));
  if (reused)
    *reused = kept;
  return AJOUR_OK;
}

ajour_status_code ajour_generator_reset(ajour_generator *generator) {
  NEED(generator);
  return generator->reset();
}

ajour_status_code ajour_generator_tokens(const ajour_generator *generator, const int32_t **tokens, size_t *count) {
  NEED(generator);
  NEED(tokens);
  NEED(count);
  *tokens = generator->history.data();
  *count = generator->history.size();
  return AJOUR_OK;
}

ajour_status_code ajour_generator_logits(const ajour_generator *generator, const float **logits, size_t *count) {
  NEED(generator);
  NEED(logits);
  NEED(count);
  if (!generator->hasLogits)
    return fail(AJOUR_STATE, "there are no logits: the model has not been given the last token; set a prompt");
  *logits = generator->logits.data();
  *count = generator->logits.size();
  return AJOUR_OK;
}

ajour_status_code ajour_generator_generate(ajour_generator *generator, const ajour_generate_options *given, ajour_generate_result *result) {
  NEED(generator);
  ajour_generate_options options;
  TRY(takeOptions(given, options));
  TRY(checkFlags(options.flags, AJOUR_GENERATE_IGNORE_END | AJOUR_GENERATE_SPECIAL));
  if (!(options.temperature >= 0) || options.top_k < 0 || !(options.top_p >= 0 && options.top_p <= 1) ||
      !(options.min_p >= 0 && options.min_p <= 1) || !(options.repetition_penalty >= 0) || options.penalty_window < -1 ||
      options.frequency_penalty != options.frequency_penalty || options.presence_penalty != options.presence_penalty)
    return fail(AJOUR_INVALID_ARGUMENT, "an option of the choice of tokens is out of bounds: temperature, top_k and repetition_penalty at least 0, "
                                        "top_p and min_p 0 to 1, penalty_window at least -1");
  NEED_UNLESS(options.stops, options.stop_count == 0);
  for (uint32_t i = 0; i < options.stop_count; ++i)
    if (!options.stops[i] || options.stops[i][0] == 0)
      return fail(AJOUR_INVALID_ARGUMENT, "stop string number %u is empty", i);
  if (options.stop_count != 0 && !generator->tokenizer)
    return fail(AJOUR_INVALID_ARGUMENT, "stop strings need a generator with a tokenizer");
  if (options.grammar && (!generator->tokenizer || options.grammar->vocabulary != generator->tokenizer->tokenizer.size()))
    return fail(AJOUR_INVALID_ARGUMENT, "the grammar was made for another tokenizer than the generator's");
  if (generator->history.size() == 0)
    return fail(AJOUR_STATE, "there is nothing to continue: set a prompt");
  ajour_generate_result done = {};
  ajour_status_code status = generator->generate(options, done);
  if (result)
    TRY(giveResult(result, done));
  return status;
}

void ajour_generator_cancel(ajour_generator *generator) {
  if (generator)
    generator->cancel();
}

ajour_status_code ajour_generator_get_stats(const ajour_generator *generator, ajour_generator_stats *stats) {
  NEED(generator);
  NEED(stats);
  ajour_generator_stats result = generator->stats;
  return giveResult(stats, result);
}

ajour_status_code ajour_generator_save(const ajour_generator *generator, void *memory, size_t *bytes) {
  NEED(generator);
  NEED(memory);
  NEED(bytes);
  uint64_t written = 0;
  TRY(generator->save(static_cast<uint8_t *>(memory), *bytes, written));
  *bytes = written;
  return AJOUR_OK;
}

ajour_status_code ajour_generator_restore(ajour_generator *generator, const void *memory, size_t bytes) {
  NEED(generator);
  NEED(memory);
  return generator->restore(static_cast<const uint8_t *>(memory), bytes);
}

ajour_status_code ajour_generator_score(ajour_generator *generator, const int32_t *tokens, size_t count, size_t first, double *nll) {
  NEED(generator);
  NEED_UNLESS(tokens, count == 0);
  NEED(nll);
  return generator->score(tokens, count, first, *nll);
}
}
