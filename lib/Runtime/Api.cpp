// The C API: checks arguments, copies extensible structures, forwards.
#include <cerrno>
#include <cstdio>
#include <new>

#include "Description.h"
#include "Expr.h"
#include "State.h"
#include "ajour/Runtime/Structures.h"

using namespace ajour::runtime;
namespace artifact = ajour::artifact;


static ajour_status_code noSuch(const char *what, uint32_t index, size_t count) {
  return fail(AJOUR_INVALID_ARGUMENT, "there is no %s %u; the model has %zu", what, index, count);
}

/// Loads into a fresh model from the source that `open` opens.
template <typename Open>
static ajour_status_code load(const ajour_load_options *given, const char *defaultName, bool exact, ajour_model **result,
                              Open open) {
  ajour_load_options options;
  TRY(takeOptions(given, options));
  TRY(checkFlags(options.flags, AJOUR_LOAD_SKIP_WEIGHT_CHECKSUMS | AJOUR_LOAD_COPY));
  ajour_model *model = createModel();
  if (!model)
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for a model", defaultName);
  std::snprintf(model->name, sizeof(model->name), "%s", options.name ? options.name : defaultName);
  ajour_status_code status = open(*model, (options.flags & AJOUR_LOAD_COPY) != 0);
  if (status == AJOUR_OK)
    status = loadModel(*model, options, exact);
  if (status == AJOUR_OK)
    *result = model;
  else
    releaseModel(model);
  return status;
}

#define AJOUR_TEXT_(x) #x
#define AJOUR_TEXT(x) AJOUR_TEXT_(x)

extern "C" {

const char *ajour_version(void) {
  return AJOUR_TEXT(AJOUR_VERSION_MAJOR) "." AJOUR_TEXT(AJOUR_VERSION_MINOR) "." AJOUR_TEXT(AJOUR_VERSION_PATCH);
}

const char *ajour_status_text(int status) {
  switch (status) {
#define AJOUR_ROW(number, name, text)                                                                                  \
  case number:                                                                                                         \
    return text;
    AJOUR_STATUS_CODES(AJOUR_ROW)
#undef AJOUR_ROW
  default:
    return "unknown status";
  }
}

const char *ajour_last_message(void) { return lastMessage(); }

const char *ajour_cpu_level_name(void) {
  const CpuLevel *level = bestLevel(hostArch(), hostFeatures());
  return level ? level->name : "none";
}

uint64_t ajour_cpu_feature_bits(void) { return hostFeatures(); }

uint32_t ajour_cpu_performance_cores(void) { return performanceCores(cpuDirectory, true); }

ajour_status_code ajour_model_load_file(const char *path, const ajour_load_options *options, ajour_model **model) {
  NEED(path);
  NEED(model);
  return load(options, path, true, model,
              [&](ajour_model &m, bool copy) { return m.source.openPath(path, m.name, copy); });
}

ajour_status_code ajour_model_load_fd(int fd, uint64_t offset, uint64_t size, const ajour_load_options *options,
                                      ajour_model **model) {
  NEED(model);
  return load(options, "artifact", size != 0, model, [&](ajour_model &m, bool copy) {
    return m.source.openDescriptor(fd, offset, size, m.name, copy);
  });
}

ajour_status_code ajour_model_load_memory(const void *data, size_t size, const ajour_load_options *options,
                                          ajour_model **model) {
  NEED(data);
  NEED(model);
  return load(options, "artifact", true, model,
              [&](ajour_model &m, bool copy) { return m.source.openMemory(data, size, m.name, copy); });
}

void ajour_model_destroy(ajour_model *model) { releaseModel(model); }

ajour_status_code ajour_model_get_info(const ajour_model *model, ajour_model_info *info) {
  NEED(model);
  NEED(info);
  ajour_model_info result = {};
  result.compiler = textOf(model->description->compiler());
  result.source = textOf(model->description->source());
  result.format_major = model->header.major_version;
  result.format_minor = model->header.minor_version;
  result.arch = archName(model->program->arch());
  result.cpu_level = model->level ? model->level->name : "none";
  result.file_bytes = model->header.file_size;
  result.weight_bytes = model->weightBytes;
  result.weight_count = model->description->weight_count();
  result.code_bytes = model->codeBytes;
  result.input_count = sizeOf(model->description->inputs());
  result.output_count = sizeOf(model->description->outputs());
  result.symbol_count = model->symbolCount();
  result.dispatch_count = static_cast<uint32_t>(model->dispatches.size());
  result.mapped = model->source.isMapped();
  result.state_count = sizeOf(model->description->states());
  return giveResult(info, result);
}

static ajour_status_code describeTensor(const ajour_model &model, const artifact::Tensor &tensor,
                                        ajour_tensor_info *info) {
  ajour_tensor_info result = {};
  result.name = textOf(tensor.name());
  result.element_type = tensor.element_type();
  result.rank = sizeOf(tensor.shape());
  result.scale = tensor.scale();
  result.zero_point = tensor.zero_point();
  for (uint32_t d = 0; d < result.rank; ++d) {
    const artifact::Expr *expr = tensor.shape()->Get(d);
    uint32_t index;
    int64_t multiple;
    result.dims[d] = result.dim_max[d] = -1;
    result.dim_multiple[d] = 1;
    const artifact::Symbol *symbol =
        isMultipleOfSymbol(expr, index, multiple) ? model.description->symbols()->Get(index) : nullptr;
    // An output may be another multiple of the symbol than the input is: that dimension is a computed one.
    if (symbol && multiple == symbol->multiple()) {
      result.dim_names[d] = textOf(symbol->name());
      result.dim_min[d] = symbol->min() * multiple;
      result.dim_max[d] = symbol->max() < 0 ? -1 : symbol->max() * multiple;
      result.dim_multiple[d] = multiple;
    } else if (isStatic(expr)) {
      evaluateExpr(expr, nullptr, result.dims[d]);
      result.dim_min[d] = result.dim_max[d] = result.dims[d];
    }
  }
  return giveResult(info, result);
}

ajour_status_code ajour_model_input(const ajour_model *model, uint32_t index, ajour_tensor_info *info) {
  NEED(model);
  NEED(info);
  if (index >= sizeOf(model->description->inputs()))
    return noSuch("input", index, sizeOf(model->description->inputs()));
  return describeTensor(*model, *model->description->inputs()->Get(index), info);
}

ajour_status_code ajour_model_output(const ajour_model *model, uint32_t index, ajour_tensor_info *info) {
  NEED(model);
  NEED(info);
  if (index >= sizeOf(model->description->outputs()))
    return noSuch("output", index, sizeOf(model->description->outputs()));
  return describeTensor(*model, *model->description->outputs()->Get(index), info);
}

ajour_status_code ajour_model_state(const ajour_model *model, uint32_t index, ajour_tensor_info *info) {
  NEED(model);
  NEED(info);
  if (index >= sizeOf(model->description->states()))
    return noSuch("state", index, sizeOf(model->description->states()));
  const artifact::State &state = *model->description->states()->Get(index);
  ajour_tensor_info result = {};
  result.name = textOf(state.name());
  result.element_type = state.element_type();
  result.rank = sizeOf(state.shape());
  for (uint32_t d = 0; d < result.rank; ++d) {
    result.dims[d] = result.dim_min[d] = result.dim_max[d] = state.shape()->Get(d);
    result.dim_multiple[d] = 1;
  }
  return giveResult(info, result);
}

uint64_t ajour_model_saved_state_bytes(const ajour_model *model) { return model ? savedStateBytes(*model) : 0; }

static int findTensor(const flatbuffers::Vector<flatbuffers::Offset<artifact::Tensor>> *tensors, const char *name) {
  for (uint32_t i = 0; i < sizeOf(tensors); ++i)
    if (name && std::strcmp(textOf(tensors->Get(i)->name()), name) == 0)
      return static_cast<int>(i);
  return -1;
}

int ajour_model_find_input(const ajour_model *model, const char *name) {
  return model ? findTensor(model->description->inputs(), name) : -1;
}

int ajour_model_find_output(const ajour_model *model, const char *name) {
  return model ? findTensor(model->description->outputs(), name) : -1;
}

ajour_status_code ajour_model_symbol(const ajour_model *model, uint32_t index, ajour_symbol_info *info) {
  NEED(model);
  NEED(info);
  if (index >= model->symbolCount())
    return noSuch("symbol", index, model->symbolCount());
  const artifact::Symbol &symbol = *model->description->symbols()->Get(index);
  ajour_symbol_info result = {0,
                              textOf(symbol.name()),
                              symbol.min() * symbol.multiple(),
                              symbol.max() < 0 ? -1 : symbol.max() * symbol.multiple(),
                              symbol.input(),
                              symbol.dim(),
                              symbol.multiple()};
  return giveResult(info, result);
}

ajour_status_code ajour_model_dispatch(const ajour_model *model, uint32_t index, ajour_dispatch_info *info) {
  NEED(model);
  NEED(info);
  if (index >= model->dispatches.size())
    return noSuch("dispatch", index, model->dispatches.size());
  const LoadedDispatch &dispatch = model->dispatches[index];
  ajour_dispatch_info result = {0,
                                textOf(dispatch.description->name()),
                                textOf(dispatch.description->kind()),
                                findLevel(dispatch.variant->level())->name,
                                sizeOf(dispatch.description->nodes()),
                                sizeOf(dispatch.variant->operands())};
  return giveResult(info, result);
}

const char *ajour_model_dispatch_node(const ajour_model *model, uint32_t dispatch, uint32_t node) {
  if (!model || dispatch >= model->dispatches.size() ||
      node >= sizeOf(model->dispatches[dispatch].description->nodes()))
    return nullptr;
  return textOf(model->dispatches[dispatch].description->nodes()->Get(node));
}

ajour_status_code ajour_model_attachment(const ajour_model *model, const char *name, const void **data, size_t *bytes) {
  if (!model || !name || !data || !bytes)
    return fail(AJOUR_INVALID_ARGUMENT, "model, name, data or bytes is null");
  for (uint32_t i = 0; i < sizeOf(model->description->attachments()); ++i) {
    const artifact::Attachment &attachment = *model->description->attachments()->Get(i);
    if (std::strcmp(textOf(attachment.name()), name) != 0)
      continue;
    TRY(checkSegmentBytes(*model, attachment.segment()));
    const artifact::Segment &segment = *model->description->segments()->Get(attachment.segment());
    *data = model->source.data() + segment.offset();
    *bytes = segment.size();
    return AJOUR_OK;
  }
  return fail(AJOUR_INVALID_ARGUMENT, "%s: has no attachment '%.100s'", model->name, name);
}

static ajour_status_code takeSessionOptions(const ajour_session_options *given, ajour_session_options &options) {
  TRY(takeOptions(given, options));
  TRY(checkFlags(options.flags, AJOUR_SESSION_KEEP_INTERMEDIATES | AJOUR_SESSION_PROFILE));
  if (options.threads > 256)
    return fail(AJOUR_INVALID_ARGUMENT, "threads is %u, allowed 0 to 256", options.threads);
  return AJOUR_OK;
}

ajour_status_code ajour_model_memory(const ajour_model *model, const ajour_session_options *given,
                                     const int64_t *sizes, ajour_memory_info *info) {
  NEED(model);
  NEED(info);
  ajour_session_options options;
  TRY(takeSessionOptions(given, options));
  Array<int64_t> symbols;
  if (!sizes) {
    TRY(boundSymbols(*model, symbols));
  } else if (!symbols.reset(model->symbolCount())) {
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for %u symbols", model->name, model->symbolCount());
  }
  for (uint32_t i = 0; sizes && i < model->symbolCount(); ++i) {
    const artifact::Symbol &symbol = *model->description->symbols()->Get(i);
    char place[80];
    std::snprintf(place, sizeof(place), "dimension '%.50s'", textOf(symbol.name()));
    TRY(symbolOfSize(*model, symbol, sizes[i], place, symbols[i]));
  }
  Layout layout;
  TRY(initLayout(*model, layout));
  TRY(evaluateLayout(*model, symbols.data(), layout));
  TRY(placeLayout(*model, options.flags & AJOUR_SESSION_KEEP_INTERMEDIATES, layout));
  ajour_memory_info result = {};
  describeMemory(*model, layout, options.threads ? options.threads : performanceCores(cpuDirectory, true), result);
  return giveResult(info, result);
}

ajour_status_code ajour_session_create(ajour_model *model, const ajour_session_options *given, ajour_session **result) {
  NEED(model);
  NEED(result);
  ajour_session_options options;
  TRY(takeSessionOptions(given, options));
  void *memory = nullptr;
  if (posix_memalign(&memory, alignof(ajour_session), sizeof(ajour_session)) != 0)
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for a session", model->name);
  auto *session = new (memory) ajour_session();
  ajour_status_code status = initSession(*session, model, options);
  if (status == AJOUR_OK)
    *result = session;
  else
    ajour_session_destroy(session);
  return status;
}

void ajour_session_destroy(ajour_session *session) {
  if (!session)
    return;
  session->~ajour_session();
  std::free(session);
}

ajour_status_code ajour_session_set_affinity(ajour_session *session, const uint32_t *cpus, uint32_t count) {
  NEED(session);
  NEED(cpus);
  uint32_t failed = session->pool.bind(cpus, count);
  if (failed == 0)
    return AJOUR_OK;
  return fail(AJOUR_AFFINITY, "%s: %u of %u worker threads could not be bound to the given CPUs", session->model->name,
              failed, session->pool.threadCount() - 1);
}

static ajour_status_code checkInput(const ajour_session *session, uint32_t index) {
  return index < session->inputs.size() ? AJOUR_OK : noSuch("input", index, session->inputs.size());
}

ajour_status_code ajour_session_set_input_shape(ajour_session *session, uint32_t index, const int64_t *shape,
                                                uint32_t rank) {
  NEED(session);
  TRY(checkInput(session, index));
  if (rank != 0)
    NEED(shape);
  return setInputShape(*session, index, shape, rank);
}

/// The input must have a shape before its data can be given.
static ajour_status_code needShape(const ajour_session &session, uint32_t index) {
  if (session.inputs[index].hasShape)
    return AJOUR_OK;
  return fail(AJOUR_STATE, "%s: the shape of input '%.100s' has not been set", session.model->name,
              textOf(session.model->description->inputs()->Get(index)->name()));
}

ajour_status_code ajour_session_set_input(ajour_session *session, uint32_t index, const void *data,
                                          const int64_t *shape, uint32_t rank) {
  NEED(session);
  TRY(checkInput(session, index));
  if (shape)
    TRY(setInputShape(*session, index, shape, rank));
  TRY(needShape(*session, index));
  SessionInput &input = session->inputs[index];
  if (input.bytes != 0) {
    NEED(data);
    std::memcpy(input.memory, data, input.bytes);
  }
  input.hasData = true;
  return AJOUR_OK;
}

ajour_status_code ajour_session_input_data(ajour_session *session, uint32_t index, void **data, size_t *bytes) {
  NEED(session);
  NEED(data);
  TRY(checkInput(session, index));
  TRY(needShape(*session, index));
  session->inputs[index].hasData = true;
  *data = session->inputs[index].memory;
  if (bytes)
    *bytes = session->inputs[index].bytes;
  return AJOUR_OK;
}

ajour_status_code ajour_session_output(ajour_session *session, uint32_t index, ajour_tensor_view *view) {
  NEED(session);
  NEED(view);
  const artifact::Model &description = *session->model->description;
  if (index >= sizeOf(description.outputs()))
    return noSuch("output", index, sizeOf(description.outputs()));
  if (!session->ready)
    return fail(AJOUR_STATE, "%s: the shapes of the inputs are not set yet, or do not fit each other",
                session->model->name);
  const artifact::Tensor &tensor = *description.outputs()->Get(index);
  ajour_tensor_view result = {};
  result.data = session->pointers[tensor.buffer()];
  result.element_type = tensor.element_type();
  result.rank = sizeOf(tensor.shape());
  result.bytes = ajour_element_size(tensor.element_type());
  for (uint32_t d = 0; d < result.rank; ++d) {
    evaluateExpr(tensor.shape()->Get(d), session->symbols.data(), result.dims[d]);
    result.bytes *= static_cast<size_t>(result.dims[d]);
  }
  return giveResult(view, result);
}

ajour_status_code ajour_session_run(ajour_session *session) {
  NEED(session);
  return runSession(*session);
}

void ajour_session_cancel(ajour_session *session) {
  if (session)
    session->cancelled.store(true, std::memory_order_seq_cst);
}

ajour_status_code ajour_session_reset_state(ajour_session *session) {
  NEED(session);
  resetStates(*session);
  return AJOUR_OK;
}

ajour_status_code ajour_session_save_state(const ajour_session *session, void *memory, size_t bytes) {
  NEED(session);
  NEED(memory);
  TRY(checkStates(*session));
  if (bytes < savedStateBytes(*session->model))
    return fail(AJOUR_INVALID_ARGUMENT, "%s: a saved state takes %llu bytes, given are %zu", session->model->name,
                static_cast<unsigned long long>(savedStateBytes(*session->model)), bytes);
  saveStates(*session, static_cast<uint8_t *>(memory));
  return AJOUR_OK;
}

ajour_status_code ajour_session_restore_state(ajour_session *session, const void *memory, size_t bytes) {
  NEED(session);
  NEED(memory);
  return restoreStates(*session, static_cast<const uint8_t *>(memory), bytes);
}

static ajour_status_code checkState(const ajour_session *session, uint32_t index) {
  uint32_t count = sizeOf(session->model->description->states());
  return index < count ? AJOUR_OK : noSuch("state", index, count);
}

ajour_status_code ajour_session_state(const ajour_session *session, uint32_t index, ajour_tensor_view *view) {
  NEED(session);
  NEED(view);
  TRY(checkState(session, index));
  TRY(checkStates(*session));
  const artifact::State &state = *session->model->description->states()->Get(index);
  ajour_tensor_view result = {};
  result.data = session->pointers[state.buffer()];
  result.bytes = stateBytes(state);
  result.element_type = state.element_type();
  result.rank = sizeOf(state.shape());
  for (uint32_t d = 0; d < result.rank; ++d)
    result.dims[d] = state.shape()->Get(d);
  return giveResult(view, result);
}

ajour_status_code ajour_session_set_state(ajour_session *session, uint32_t index, const void *data, size_t bytes) {
  NEED(session);
  TRY(checkState(session, index));
  const artifact::State &state = *session->model->description->states()->Get(index);
  if (bytes != stateBytes(state))
    return fail(AJOUR_INVALID_ARGUMENT, "%s: state '%.100s' has %llu bytes, given are %zu", session->model->name,
                textOf(state.name()), static_cast<unsigned long long>(stateBytes(state)), bytes);
  if (bytes != 0) {
    NEED(data);
    std::memcpy(session->pointers[state.buffer()], data, bytes);
  }
  return AJOUR_OK;
}

ajour_status_code ajour_session_memory(const ajour_session *session, ajour_memory_info *info) {
  NEED(session);
  NEED(info);
  ajour_memory_info result = {};
  describeMemory(*session->model, session->current, session->pool.threadCount(), result);
  result.arena_bytes = session->current.arenaBytes;
  uint64_t inputs = 0;
  for (const SessionInput &input : session->inputs)
    inputs += input.memory ? input.capacity + AJOUR_BUFFER_SLACK : 0;
  result.io_bytes = inputs + session->current.outputBytes;
  result.scratch_bytes = session->scratch.size();
  result.session_bytes = inputs + session->arena.size() + session->scratch.size() + session->states.size();
  return giveResult(info, result);
}

uint32_t ajour_session_threads(const ajour_session *session) { return session ? session->pool.threadCount() : 0; }

ajour_status_code ajour_session_set_profile(ajour_session *session, int enabled) {
  NEED(session);
  session->profiling = enabled != 0;
  if (enabled)
    for (DispatchProfile &entry : session->profile)
      entry = {};
  return AJOUR_OK;
}

ajour_status_code ajour_session_profile(const ajour_session *session, uint32_t dispatch, ajour_profile_entry *entry) {
  NEED(session);
  NEED(entry);
  if (dispatch >= session->profile.size())
    return noSuch("dispatch", dispatch, session->profile.size());
  const artifact::Dispatch &description = *session->model->dispatches[dispatch].description;
  const DispatchProfile &from = session->profile[dispatch];
  ajour_profile_entry result = {0,
                                textOf(description.name()),
                                textOf(description.kind()),
                                from.calls,
                                from.totalNs,
                                from.minNs,
                                profileValue(*session, description.macs()),
                                operandBytes(*session, dispatch),
                                description.mac_type()};
  return giveResult(entry, result);
}

size_t ajour_session_format_profile(const ajour_session *session, int format, char *text,
                                    size_t capacity) {
  return session ? formatProfile(*session, format, text, capacity) : 0;
}

ajour_status_code ajour_session_write_profile(const ajour_session *session, int format,
                                              const char *path) {
  NEED(session);
  NEED(path);
  if (format != AJOUR_PROFILE_TEXT && format != AJOUR_PROFILE_TRACE_JSON)
    return fail(AJOUR_INVALID_ARGUMENT, "unknown profile format %d", format);
  size_t length = formatProfile(*session, format, nullptr, 0);
  Array<char> text;
  if (!text.reset(length + 1))
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for the profile", path);
  formatProfile(*session, format, text.data(), length + 1);
  std::FILE *file = std::fopen(path, "wb");
  bool written = file && std::fwrite(text.data(), 1, length, file) == length;
  if (file && std::fclose(file) != 0)
    written = false;
  return written ? AJOUR_OK : fail(AJOUR_IO, "%s: cannot write the profile: %s", path, std::strerror(errno));
}

ajour_status_code ajour_session_set_observer(ajour_session *session, ajour_observer observer, void *user) {
  NEED(session);
  session->observer = observer;
  session->observerUser = user;
  return AJOUR_OK;
}

} // extern "C"
