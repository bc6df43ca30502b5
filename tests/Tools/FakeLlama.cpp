//===- FakeLlama.cpp - A library that answers as llama.cpp would ----------===//
//
// Its parameter structures have sizes of their own and end in a mark, so that it is seen whether they come through as they were given out.
// The logits tell what has happened: how many times it was called since the memory was cleared, with how many tokens, on how many
// threads, and for how many tokens the context was made.
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr uint64_t mark = 0x123456789abcdef0;

struct ModelParameters {
  void *fields[9];
  uint64_t end;
};
struct ContextParameters {
  uint32_t context, batch, microBatch, others[31];
  uint64_t end;
};
struct Batch {
  int32_t count;
  int32_t *tokens;
  float *embeddings;
  int32_t *positions, *sequenceCounts;
  int32_t **sequences;
  int8_t *wanted;
};
struct Context {
  float logits[5] = {};
};

/// The file says "one word weights bytes".
struct Model {
  char kind[32] = "";
  unsigned long long weights = 0, bytes = 0;
};

} // namespace

EXPORT void llama_log_set(void (*log)(int, const char *, void *), void *user) { log(1, "hello\n", user); }
EXPORT ModelParameters llama_model_default_params() { return {{}, mark}; }
EXPORT ContextParameters llama_context_default_params() {
  return {512, std::getenv("FAKE_LLAMA_OTHER") ? 4096u : 2048u, 512, {}, mark};
}
EXPORT void *llama_model_load_from_file(const char *path, ModelParameters parameters) {
  std::FILE *file = parameters.end == mark ? std::fopen(path, "r") : nullptr;
  if (!file)
    return nullptr;
  auto *model = new Model;
  if (std::fscanf(file, "%31s %llu %llu", model->kind, &model->weights, &model->bytes) != 3)
    model->kind[0] = 0;
  std::fclose(file);
  return model;
}
EXPORT void llama_model_free(void *model) { delete static_cast<Model *>(model); }
EXPORT void *llama_init_from_model(void *model, ContextParameters parameters) {
  if (parameters.end != mark || !std::strcmp(static_cast<Model *>(model)->kind, "nocontext"))
    return nullptr;
  auto *context = new Context;
  context->logits[3] = float(parameters.context);
  return context;
}
EXPORT void llama_free(void *context) { delete static_cast<Context *>(context); }
EXPORT void llama_set_n_threads(void *context, int32_t one, int32_t batch) {
  static_cast<Context *>(context)->logits[2] = float(one == batch ? one : -1);
}
EXPORT int32_t llama_decode(void *context, Batch batch) {
  if (batch.embeddings || batch.positions || batch.sequenceCounts || batch.sequences || batch.wanted)
    return -1;
  float *logits = static_cast<Context *>(context)->logits;
  for (int32_t i = 0; i < batch.count; ++i)
    if (batch.tokens[i] < 0 || batch.tokens[i] >= 5)
      return 7;
  logits[0] += 1;
  logits[1] += float(batch.count);
  return 0;
}
EXPORT void llama_synchronize(void *) {}
EXPORT void *llama_get_memory(void *context) { return context; }
EXPORT void llama_memory_clear(void *context, bool) {
  static_cast<Context *>(context)->logits[0] = static_cast<Context *>(context)->logits[1] = 0;
}
EXPORT bool llama_memory_seq_rm(void *context, int32_t sequence, int32_t from, int32_t to) {
  float *logits = static_cast<Context *>(context)->logits;
  if (sequence != -1 || to != -1 || float(from) > logits[1])
    return false;
  logits[1] = float(from);
  return true;
}
EXPORT float *llama_get_logits_ith(void *context, int32_t index) {
  return index == -1 ? static_cast<Context *>(context)->logits : nullptr;
}
EXPORT void *llama_model_get_vocab(void *model) { return model; }
EXPORT int32_t llama_vocab_n_tokens(void *) { return 5; }
EXPORT uint64_t llama_model_n_params(void *model) { return static_cast<Model *>(model)->weights; }
EXPORT uint64_t llama_model_size(void *model) { return static_cast<Model *>(model)->bytes; }
