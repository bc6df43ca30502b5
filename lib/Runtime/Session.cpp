#include "State.h"
#include "ajour/Runtime/SessionAccess.h"

#include <cstring>
#include <ctime>

#include "Expr.h"
#include "ajour/ABI/ElementTypes.h"


namespace ajour::runtime {

using Number = unsigned long long;
using artifact::BufferKind;

static ajour_status_code noMemory(const ajour_session &session, const char *what, uint64_t bytes) {
  return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for %llu bytes of %s", session.model->name, (Number)bytes, what);
}

void describeMemory(const ajour_model &model, const Layout &layout, uint32_t threads, ajour_memory_info &info) {
  info.weight_bytes = model.weightBytes;
  info.code_bytes = model.codeBytes;
  info.arena_bytes = layout.arenaBytes;
  info.io_bytes = layout.inputBytes + layout.outputBytes;
  info.scratch_bytes = layout.scratchBytes * threads;
  info.state_bytes = stateMemory(model);
  info.session_bytes = info.arena_bytes + info.io_bytes + info.scratch_bytes + info.state_bytes;
}

/// Compares the given shapes of all inputs with the model's, at the symbols' values that they imply.
static ajour_status_code resolveSymbols(ajour_session &session) {
  const ajour_model &model = *session.model;
  for (uint32_t i = 0; i < session.inputs.size(); ++i)
    if (!session.inputs[i].hasShape)
      return fail(AJOUR_STATE, "%s: the shape of input '%.100s' has not been set", model.name,
                  textOf(model.description->inputs()->Get(i)->name()));
  for (uint32_t s = 0; s < model.symbolCount(); ++s) {
    const artifact::Symbol &symbol = *model.description->symbols()->Get(s);
    session.symbols[s] = session.inputs[symbol.input()].dims[symbol.dim()] / symbol.multiple();
  }
  for (uint32_t i = 0; i < session.inputs.size(); ++i) {
    const artifact::Tensor &tensor = *model.description->inputs()->Get(i);
    for (uint32_t d = 0; d < sizeOf(tensor.shape()); ++d) {
      int64_t expected;
      const char *wrong = evaluateExpr(tensor.shape()->Get(d), session.symbols.data(), expected);
      if (wrong)
        return fail(AJOUR_SHAPE, "%s: dimension %u of input '%.100s' %s", model.name, d, textOf(tensor.name()), wrong);
      if (expected != session.inputs[i].dims[d])
        return fail(AJOUR_SHAPE, "%s: input '%.100s': dimension %u is %lld, expected %lld to fit the other inputs",
                    model.name, textOf(tensor.name()), d, (long long)session.inputs[i].dims[d], (long long)expected);
    }
  }
  return AJOUR_OK;
}

static void connectPointers(ajour_session &session) {
  const ajour_model &model = *session.model;
  for (uint32_t i = 0; i < model.bufferCount(); ++i) {
    const artifact::Buffer &buffer = model.buffer(i);
    if (buffer.kind() == BufferKind::Constant) {
      uint64_t offset = model.description->segments()->Get(buffer.segment())->offset() + buffer.segment_offset();
      session.pointers[i] = const_cast<uint8_t *>(model.source.data()) + offset;
    } else if (buffer.kind() != BufferKind::Input && buffer.kind() != BufferKind::State) {
      session.pointers[i] = session.arena.data() + session.current.offsets[i];
    }
  }
  for (uint32_t i = 0; i < session.inputs.size(); ++i)
    session.pointers[model.description->inputs()->Get(i)->buffer()] = session.inputs[i].memory;
  for (const LoadedDispatch &dispatch : model.dispatches)
    for (uint32_t i = 0; i < sizeOf(dispatch.variant->operands()); ++i)
      session.operands[dispatch.firstOperand + i] = session.pointers[dispatch.variant->operands()->Get(i)];
  connectStates(session);
}

static bool fitsPlan(const ajour_session &session) {
  if (!session.planned)
    return false;
  for (uint32_t i = 0; i < session.plannedSizes.size(); ++i)
    if (session.current.sizes[i] > session.plannedSizes[i])
      return false;
  return true;
}

/// Plans memory for the sizes in `session.current` and holds it.
static ajour_status_code holdMemory(ajour_session &session) {
  const ajour_model &model = *session.model;
  uint32_t threads = session.pool.threadCount();
  uint64_t scratchBytes = session.current.scratchBytes * threads;
  if (!fitsPlan(session)) {
    session.planned = false;
    TRY(placeLayout(model, session.flags & AJOUR_SESSION_KEEP_INTERMEDIATES, session.current));
    ajour_memory_info info = {};
    describeMemory(model, session.current, threads, info);
    if (session.memoryBudget != 0 && info.session_bytes > session.memoryBudget)
      return fail(AJOUR_OUT_OF_MEMORY, "%s: a session of %u threads takes %llu bytes; the budget is %llu", model.name,
                  threads, (Number)info.session_bytes, (Number)session.memoryBudget);
    uint64_t total = session.current.arenaBytes + session.current.outputBytes;
    if (total > session.arena.size() || !session.arena.data())
      if (!session.arena.reset(total))
        return noMemory(session, "intermediates and outputs", total);
    for (size_t i = 0; i < session.plannedSizes.size(); ++i)
      session.plannedSizes[i] = session.current.sizes[i];
    session.planned = true;
  }
  if (scratchBytes > session.scratch.size() || !session.scratch.data())
    if (!session.scratch.reset(scratchBytes))
      return noMemory(session, "scratch", scratchBytes);
  return AJOUR_OK;
}

/// Takes the present shapes into use. Shapes that do not fit each other yet are no error here: the
/// caller may be about to set another one. Running reports them.
static ajour_status_code takeShapes(ajour_session &session) {
  session.ready = false;
  if (resolveSymbols(session) != AJOUR_OK)
    return AJOUR_OK;
  TRY(evaluateLayout(*session.model, session.symbols.data(), session.current));
  TRY(holdMemory(session));
  connectPointers(session);
  session.ready = true;
  return AJOUR_OK;
}

static ajour_status_code holdInput(ajour_session &session, uint32_t index, uint64_t bytes) {
  SessionInput &input = session.inputs[index];
  if (bytes <= input.capacity && input.memory)
    return AJOUR_OK;
  AlignedMemory fresh;
  if (!fresh.reset(bytes))
    return noMemory(session, "an input", bytes);
  std::free(input.memory);
  input.memory = fresh.release();
  input.capacity = bytes;
  return AJOUR_OK;
}

/// Whether the symbols in `expr` are all defined by input `index`, so that its shape alone tells the value.
static bool dependsOnlyOn(const ajour_model &model, const artifact::Expr *expr, uint32_t index) {
  const auto &code = *expr->code();
  for (uint32_t i = 0; i < code.size(); i += 2)
    if (code.Get(i) == AJOUR_EXPR_DIM &&
        model.description->symbols()->Get(static_cast<uint32_t>(code.Get(i + 1)))->input() != index)
      return false;
  return true;
}

/// Checks one input's shape as far as it can be told without the others.
static ajour_status_code checkShape(ajour_session &session, uint32_t index, const int64_t *shape, uint32_t rank,
                                    uint64_t &bytes) {
  const ajour_model &model = *session.model;
  const artifact::Tensor &tensor = *model.description->inputs()->Get(index);
  const char *name = textOf(tensor.name());
  if (rank != sizeOf(tensor.shape()))
    return fail(AJOUR_SHAPE, "%s: input '%.100s': rank is %u, expected %u", model.name, name, rank,
                sizeOf(tensor.shape()));
  for (uint32_t s = 0; s < model.symbolCount(); ++s) {
    const artifact::Symbol &symbol = *model.description->symbols()->Get(s);
    if (symbol.input() != index)
      continue;
    char place[160];
    std::snprintf(place, sizeof(place), "input '%.70s': dimension %u ('%.50s')", name, symbol.dim(), textOf(symbol.name()));
    TRY(symbolOfSize(model, symbol, shape[symbol.dim()], place, session.trialSymbols[s]));
  }
  bytes = ajour_element_size(tensor.element_type());
  for (uint32_t d = 0; d < rank; ++d) {
    int64_t expected = shape[d];
    const char *wrong = shape[d] < 0 || shape[d] > maxExprValue ? "is negative or too large" : nullptr;
    if (!wrong && dependsOnlyOn(model, tensor.shape()->Get(d), index))
      wrong = evaluateExpr(tensor.shape()->Get(d), session.trialSymbols.data(), expected);
    if (!wrong && __builtin_mul_overflow(bytes, static_cast<uint64_t>(shape[d]), &bytes))
      wrong = "makes the tensor too large";
    if (wrong)
      return fail(AJOUR_SHAPE, "%s: input '%.100s': dimension %u (%lld) %s", model.name, name, d, (long long)shape[d],
                  wrong);
    if (shape[d] != expected)
      return fail(AJOUR_SHAPE, "%s: input '%.100s': dimension %u is %lld, expected %lld", model.name, name, d,
                  (long long)shape[d], (long long)expected);
  }
  return AJOUR_OK;
}

ajour_status_code setInputShape(ajour_session &session, uint32_t index, const int64_t *shape, uint32_t rank) {
  SessionInput &input = session.inputs[index];
  if (input.hasShape && rank == sizeOf(session.model->description->inputs()->Get(index)->shape()) &&
      (rank == 0 || std::memcmp(input.dims, shape, rank * sizeof(int64_t)) == 0))
    return AJOUR_OK;
  uint64_t bytes = 0;
  TRY(checkShape(session, index, shape, rank, bytes));
  TRY(holdInput(session, index, bytes));
  for (uint32_t d = 0; d < rank; ++d)
    input.dims[d] = shape[d];
  input.bytes = bytes;
  input.hasShape = true;
  input.hasData = false;
  return takeShapes(session);
}

/// Gives all inputs their shapes at the bounds, so that memory for every later shape is planned now.
static ajour_status_code startAtBounds(ajour_session &session) {
  const ajour_model &model = *session.model;
  if (!model.bounded)
    return AJOUR_OK;
  Array<int64_t> bounds;
  TRY(boundSymbols(model, bounds));
  for (uint32_t i = 0; i < session.inputs.size(); ++i) {
    const artifact::Tensor &tensor = *model.description->inputs()->Get(i);
    SessionInput &input = session.inputs[i];
    input.bytes = ajour_element_size(tensor.element_type());
    for (uint32_t d = 0; d < sizeOf(tensor.shape()); ++d) {
      evaluateExpr(tensor.shape()->Get(d), bounds.data(), input.dims[d]);
      input.bytes *= static_cast<uint64_t>(input.dims[d]);
    }
    input.hasShape = true;
  }
  // The budget is compared before anything large is allocated.
  TRY(takeShapes(session));
  for (uint32_t i = 0; i < session.inputs.size(); ++i)
    TRY(holdInput(session, i, session.inputs[i].bytes));
  return takeShapes(session);
}

ajour_status_code initSession(ajour_session &session, ajour_model *model, const ajour_session_options &options) {
  session.model = model;
  holdModel(model);
  session.flags = options.flags;
  session.memoryBudget = options.memory_budget;
  session.profiling = options.flags & AJOUR_SESSION_PROFILE;
  uint32_t dispatches = static_cast<uint32_t>(model->dispatches.size());
  TRY(initLayout(*model, session.current));
  if (!session.inputs.reset(sizeOf(model->description->inputs())) || !session.symbols.reset(model->symbolCount()) ||
      !session.trialSymbols.reset(model->symbolCount()) ||
      !session.plannedSizes.reset(model->bufferCount()) || !session.pointers.reset(model->bufferCount()) ||
      !session.operands.reset(model->operandCount) || !session.profile.reset(dispatches) || !session.paces.reset(dispatches) ||
      !session.observed.reset(model->maxResults))
    return noMemory(session, "tables", model->bufferCount());
  uint32_t threads = options.threads != 0 ? options.threads : performanceCores(cpuDirectory, true);
  if (!session.pool.start(threads))
    return noMemory(session, "threads", threads);
  TRY(initStates(session));
  return startAtBounds(session);
}

namespace {

struct Job {
  ajour_dispatch_fn fn;
  void *const *operands;
  const int64_t *symbols;
  uint8_t *scratch;
  uint64_t scratchBytes;
};

} // namespace

// Compiled dispatches carry no type information that the sanitizer could compare.
#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
static void runItems(void *context, uint32_t thread, int64_t begin, int64_t end) {
  const Job &job = *static_cast<const Job *>(context);
  job.fn(job.operands, job.symbols, job.scratch + job.scratchBytes * thread, begin, end);
}

static void observe(ajour_session &session, uint32_t index) {
  const LoadedDispatch &dispatch = session.model->dispatches[index];
  for (uint32_t r = 0; r < dispatch.resultCount; ++r) {
    uint32_t buffer = session.model->results[dispatch.firstResult + r];
    session.observed[r] = {session.pointers[buffer], session.current.sizes[buffer], buffer};
  }
  ajour_observation observation = {sizeof(observation), index, textOf(dispatch.description->name()),
                                   textOf(dispatch.description->kind()), dispatch.resultCount, session.observed.data()};
  session.observer(session.observerUser, &observation);
}

static void record(DispatchProfile &entry, uint64_t runStart, uint64_t start, uint64_t end) {
  entry.lastStartNs = start - runStart;
  entry.lastNs = end - start;
  entry.minNs = entry.calls == 0 || entry.lastNs < entry.minNs ? entry.lastNs : entry.minNs;
  entry.totalNs += entry.lastNs;
  ++entry.calls;
}

ajour_status_code runSession(ajour_session &session) {
  const ajour_model &model = *session.model;
  for (uint32_t i = 0; i < session.inputs.size(); ++i)
    if (session.inputs[i].hasShape && !session.inputs[i].hasData && session.inputs[i].bytes != 0)
      return fail(AJOUR_STATE, "%s: input '%.100s' has not been set", model.name,
                  textOf(model.description->inputs()->Get(i)->name()));
  if (!session.ready) {
    TRY(resolveSymbols(session));
    return fail(AJOUR_STATE, "%s: memory for the present shapes could not be had; set a shape again", model.name);
  }
  TRY(checkStates(session));
  // Whoever stops a sequence sets the flag, then cancels: in one order for all, one of the two is seen here.
  session.cancelled.store(false, std::memory_order_seq_cst);
  if (session.stop && session.stop->load(std::memory_order_seq_cst))
    return fail(AJOUR_CANCELLED, "%s: cancelled before the first dispatch", model.name);
  const bool profiling = session.profiling, sharing = session.pool.threadCount() > 1, timing = profiling || sharing;
  uint64_t runStart = timing ? nowNs() : 0, start = runStart;
  for (uint32_t i = 0; i < model.dispatches.size(); ++i) {
    const LoadedDispatch &dispatch = model.dispatches[i];
    Job job = {dispatch.fn, session.operands.data() + dispatch.firstOperand, session.symbols.data(),
               session.scratch.data(), session.current.scratchBytes};
    // What a thread leaves in its scratch is for its later calls of this run alone.
    for (uint64_t t = 0; job.scratchBytes != 0 && t < session.pool.threadCount(); ++t)
      std::memset(job.scratch + t * job.scratchBytes, 0, sizeof(uint64_t));
    const int64_t work = session.current.work[i], cost = session.current.costs[i];
    const bool alone = sharing && session.paces[i].prefersAlone(work);
    if (alone)
      session.pool.runAlone(work, runItems, &job, session.cancelled, cost);
    else
      session.pool.run(work, runItems, &job, session.cancelled, cost);
    if (timing) {
      uint64_t end = nowNs();
      if (sharing && work > 1)
        session.paces[i].learn(work, end - start, alone);
      if (profiling)
        record(session.profile[i], runStart, start, end);
      start = end;
    }
    if (session.observer)
      observe(session, i);
    if (session.cancelled.load(std::memory_order_relaxed)) {
      breakStates(session);
      return fail(AJOUR_CANCELLED, "%s: cancelled at dispatch '%.100s' (%u of %llu)", model.name,
                  textOf(dispatch.description->name()), i + 1, (Number)model.dispatches.size());
    }
  }
  advanceStates(session);
  return AJOUR_OK;
}

uint64_t nowNs() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

ajour_model *modelOf(const ajour_session *session) { return session->model; }
const char *nameOf(const ajour_model *model) { return model->name; }
void holdModel(ajour_model *model) { model->holders.fetch_add(1, std::memory_order_relaxed); }
void setStopFlag(ajour_session *session, const std::atomic<bool> *stop) { session->stop = stop; }

bool changesInPlace(const ajour_model *model, uint32_t state) {
  const artifact::State &found = *model->description->states()->Get(state);
  return found.buffer() == found.next();
}

void acceptStates(ajour_session *session) { session->statesBroken = false; }

uint64_t profileValue(const ajour_session &session, const artifact::Expr *expr) {
  int64_t value;
  return session.ready && !evaluateExpr(expr, session.symbols.data(), value) ? static_cast<uint64_t>(value) : 0;
}

uint64_t operandBytes(const ajour_session &session, uint32_t dispatch) {
  uint64_t bytes = 0;
  const auto *operands = session.model->dispatches[dispatch].variant->operands();
  for (uint32_t i = 0; i < sizeOf(operands); ++i)
    bytes += session.current.sizes[operands->Get(i)];
  return bytes;
}

} // namespace ajour::runtime

ajour_session::~ajour_session() {
  pool.stop();
  for (ajour::runtime::SessionInput &input : inputs)
    std::free(input.memory);
  if (model)
    ajour::runtime::releaseModel(model);
}
