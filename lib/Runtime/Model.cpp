#include "Model.h"

#include <cstdio>
#include <new>

#include "Description.h"
#include "Expr.h"
#include "ajour/Runtime/MemoryPlan.h"


ajour_model::~ajour_model() {
  for (ajour::runtime::ElfImage *image : images) {
    if (!image)
      continue;
    image->~ElfImage();
    std::free(image);
  }
}

namespace ajour::runtime {

using Number = unsigned long long;
using artifact::BufferKind;

ajour_model *createModel() {
  void *memory = std::malloc(sizeof(ajour_model));
  return memory ? new (memory) ajour_model() : nullptr;
}

void releaseModel(ajour_model *model) {
  if (!model || model->holders.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  model->~ajour_model();
  std::free(model);
}

static ajour_status_code noMemory(const ajour_model &model, const char *what) {
  return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for %s", model.name, what);
}

/// Copies the description out of the file, where another process might change it, and checks it.
static ajour_status_code readDescription(ajour_model &model, bool exact) {
  TRY(checkHeader(model.source.data(), model.source.size(), exact, model.name, model.header));
  if (!model.descriptionBytes.reset(model.header.description_size))
    return noMemory(model, "the description");
  std::memcpy(model.descriptionBytes.data(), model.source.data() + model.header.description_offset,
              model.header.description_size);
  return checkDescription(model.descriptionBytes.data(), model.header, model.name, model.description);
}

static ajour_status_code chooseProgram(ajour_model &model) {
  for (const artifact::Program *program : *model.description->programs())
    if (program->arch() == hostArch())
      model.program = program;
  if (model.program)
    return AJOUR_OK;
  return fail(AJOUR_NO_VARIANT, "%s: has no code for %s; it has code for %s", model.name, archName(hostArch()),
              archName(model.description->programs()->Get(0)->arch()));
}

/// The features that variants may use: the CPU's, or those of the level that option or environment force.
static ajour_status_code chooseFeatures(const ajour_model &model, const char *forced, uint64_t &features) {
  features = hostFeatures();
  const char *from = "the option cpu_level";
  if (!forced) {
    forced = std::getenv("AJOUR_CPU");
    from = "the environment variable AJOUR_CPU";
  }
  if (!forced || *forced == 0)
    return AJOUR_OK;
  const CpuLevel *level = findLevel(forced);
  if (!level || level->arch != hostArch())
    return fail(AJOUR_INVALID_ARGUMENT, "%s: %s asks for '%.50s', which is no code level of %s", model.name, from,
                forced, archName(hostArch()));
  if ((level->features & ~features) != 0)
    return fail(AJOUR_NO_VARIANT, "%s: %s asks for '%s', which this CPU cannot run", model.name, from, forced);
  // The compiler leaves out code of a level that would not differ from that of a lower one.
  bool present = false;
  for (uint32_t i = 0; i < sizeOf(model.program->executables()); ++i)
    present |= model.program->executables()->Get(i)->level() <= level->id;
  if (!present)
    return fail(AJOUR_NO_VARIANT, "%s: %s asks for '%s'; the artifact has code for higher levels only", model.name, from,
                forced);
  features = level->features;
  return AJOUR_OK;
}

static ajour_status_code chooseVariants(ajour_model &model, uint64_t features) {
  uint32_t count = sizeOf(model.program->dispatches());
  if (!model.dispatches.reset(count))
    return noMemory(model, "the dispatches");
  for (uint32_t i = 0; i < count; ++i) {
    LoadedDispatch &dispatch = model.dispatches[i];
    dispatch.description = model.program->dispatches()->Get(i);
    for (const artifact::Variant *variant : *dispatch.description->variants()) {
      if ((variant->features() & ~features) != 0)
        continue;
      dispatch.variant = variant;
      break;
    }
    if (!dispatch.variant)
      return fail(AJOUR_NO_VARIANT, "%s: dispatch '%.100s' has no code for this CPU (level %s); its last variant is for %s",
                  model.name, textOf(dispatch.description->name()), ajour_cpu_level_name(),
                  findLevel(dispatch.description->variants()->Get(dispatch.description->variants()->size() - 1)->level())
                      ->name);
    const CpuLevel *level = findLevel(dispatch.variant->level());
    if (!model.level || level->id > model.level->id)
      model.level = level;
    dispatch.firstOperand = model.operandCount;
    model.operandCount += sizeOf(dispatch.variant->operands());
  }
  return AJOUR_OK;
}

/// Finds out which dispatch writes each buffer: the first one that touches it.
static ajour_status_code findResults(ajour_model &model) {
  Array<uint8_t> written;
  if (!written.reset(model.bufferCount()) || !model.results.reset(model.bufferCount()))
    return noMemory(model, "the buffers");
  // Of a state, what it is read from is not written, unless in place: then no one dispatch does it first.
  for (uint32_t i = 0; i < sizeOf(model.description->states()); ++i)
    written[model.description->states()->Get(i)->buffer()] = 1;
  uint32_t found = 0;
  for (LoadedDispatch &dispatch : model.dispatches) {
    dispatch.firstResult = found;
    for (uint32_t i = 0; i < sizeOf(dispatch.variant->operands()); ++i) {
      uint32_t buffer = dispatch.variant->operands()->Get(i);
      BufferKind kind = model.buffer(buffer).kind();
      if (kind == BufferKind::Input || kind == BufferKind::Constant || written[buffer] != 0)
        continue;
      written[buffer] = 1;
      model.results[found++] = buffer;
    }
    dispatch.resultCount = found - dispatch.firstResult;
    model.maxResults = dispatch.resultCount > model.maxResults ? dispatch.resultCount : model.maxResults;
  }
  for (uint32_t i = 0; i < sizeOf(model.description->states()); ++i) {
    const artifact::State &state = *model.description->states()->Get(i);
    if (!written[state.next()])
      return fail(AJOUR_BAD_FILE, "%s: state '%.100s' is written by no dispatch", model.name, textOf(state.name()));
  }
  for (uint32_t i = 0; i < sizeOf(model.description->outputs()); ++i) {
    const artifact::Tensor &tensor = *model.description->outputs()->Get(i);
    if (model.buffer(tensor.buffer()).kind() == BufferKind::Output && !written[tensor.buffer()])
      return fail(AJOUR_BAD_FILE, "%s: output '%.100s' is written by no dispatch", model.name, textOf(tensor.name()));
  }
  return AJOUR_OK;
}

ajour_status_code checkSegmentBytes(const ajour_model &model, uint32_t index) {
  const artifact::Segment &segment = *model.description->segments()->Get(index);
  uint64_t sum = ajour_checksum(model.source.data() + segment.offset(), segment.size());
  if (sum == segment.checksum())
    return AJOUR_OK;
  return fail(AJOUR_CHECKSUM, "%s: segment '%.100s' at file offset %llu is damaged: checksum %016llx, expected %016llx",
              model.name, textOf(segment.name()), (Number)segment.offset(), (Number)sum, (Number)segment.checksum());
}

/// Which segments hold constants of the program in use; counts their bytes.
static ajour_status_code checkWeights(ajour_model &model, bool checkBytes) {
  Array<uint8_t> used;
  if (!used.reset(sizeOf(model.description->segments())))
    return noMemory(model, "the segments");
  for (uint32_t i = 0; i < model.bufferCount(); ++i)
    if (model.buffer(i).kind() == BufferKind::Constant)
      used[model.buffer(i).segment()] = 1;
  for (uint32_t i = 0; i < sizeOf(model.description->states()); ++i)
    if (model.description->states()->Get(i)->initial_segment() != noInitialSegment)
      used[model.description->states()->Get(i)->initial_segment()] = 1;
  for (uint32_t i = 0; i < used.size(); ++i) {
    if (!used[i])
      continue;
    model.weightBytes += model.description->segments()->Get(i)->size();
    if (checkBytes)
      TRY(checkSegmentBytes(model, i));
  }
  return AJOUR_OK;
}

static ajour_status_code loadExecutable(ajour_model &model, uint32_t index) {
  const artifact::Executable &executable = *model.program->executables()->Get(index);
  const artifact::Segment &segment = *model.description->segments()->Get(executable.segment());
  TRY(checkSegmentBytes(model, executable.segment()));
  void *memory = std::malloc(sizeof(ElfImage));
  if (!memory)
    return noMemory(model, "code");
  model.images[index] = new (memory) ElfImage();
  char where[400];
  std::snprintf(where, sizeof(where), "%s: segment '%.100s'", model.name, textOf(segment.name()));
  ElfInput input = {model.source.data() + segment.offset(), segment.size(), model.source.descriptor(),
                    model.source.fileOffset() + segment.offset(), model.program->arch(), where};
  TRY(model.images[index]->load(input));
  model.codeBytes += model.images[index]->size();
  return AJOUR_OK;
}

static bool isLinkedIn(const artifact::Executable &executable) {
  return executable.segment() == AJOUR_STATIC_CODE_SEGMENT;
}

/// Whether the application's table belongs to an executable of this artifact.
static ajour_status_code checkStaticCode(const ajour_model &model, const artifact::Executable &executable,
                                         const ajour_static_code *code) {
  if (!code)
    return fail(AJOUR_INVALID_ARGUMENT,
                "%s: its code is in an object file for the application; give the table in the option static_code", model.name);
  if (code->version != AJOUR_STATIC_CODE_VERSION)
    return fail(AJOUR_VERSION, "%s: static_code has version %u, expected %u", model.name, code->version,
                AJOUR_STATIC_CODE_VERSION);
  if (code->arch != model.program->arch() || code->identity != executable.identity())
    return fail(AJOUR_INVALID_ARGUMENT,
                "%s: static_code is of another compilation (%016llx, expected %016llx); link the object file that was "
                "written with the artifact",
                model.name, (Number)code->identity, (Number)executable.identity());
  return AJOUR_OK;
}

static ajour_dispatch_fn findStaticFunction(const ajour_static_code &code, uint32_t level, const char *symbol) {
  for (uint64_t i = 0; i < code.count; ++i)
    if (code.functions[i].level == level && std::strcmp(code.functions[i].symbol, symbol) == 0)
      return code.functions[i].function;
  return nullptr;
}

/// The function of a dispatch's variant; loads its executable when it is the first one of it.
static ajour_status_code findCode(ajour_model &model, const ajour_static_code *staticCode, LoadedDispatch &dispatch) {
  uint32_t index = dispatch.variant->executable();
  const artifact::Executable &executable = *model.program->executables()->Get(index);
  const char *symbol = textOf(dispatch.variant->symbol());
  if (isLinkedIn(executable)) {
    TRY(checkStaticCode(model, executable, staticCode));
    dispatch.fn = findStaticFunction(*staticCode, executable.level(), symbol);
  } else {
    if (staticCode)
      return fail(AJOUR_INVALID_ARGUMENT, "%s: static_code is given, but the artifact carries its own code", model.name);
    if (!model.images[index])
      TRY(loadExecutable(model, index));
    dispatch.fn = reinterpret_cast<ajour_dispatch_fn>(model.images[index]->findFunction(symbol));
  }
  if (!dispatch.fn)
    return fail(AJOUR_BAD_FILE, "%s: dispatch '%.100s': the code has no function '%.100s'", model.name,
                textOf(dispatch.description->name()), symbol);
  return AJOUR_OK;
}

static ajour_status_code loadCode(ajour_model &model, const ajour_static_code *staticCode) {
  if (!model.images.reset(sizeOf(model.program->executables())))
    return noMemory(model, "code");
  for (LoadedDispatch &dispatch : model.dispatches)
    TRY(findCode(model, staticCode, dispatch));
  return AJOUR_OK;
}

/// Bytes of the segments whose code the chosen variants use.
static uint64_t executableBytes(const ajour_model &model) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < sizeOf(model.program->executables()); ++i) {
    const artifact::Executable &executable = *model.program->executables()->Get(i);
    bool used = false;
    for (const LoadedDispatch &dispatch : model.dispatches)
      used |= dispatch.variant->executable() == i;
    if (used && !isLinkedIn(executable))
      bytes += model.description->segments()->Get(executable.segment())->size();
  }
  return bytes;
}

/// Checks what depends on the values of symbols at their upper bounds, when there are such.
static ajour_status_code checkBounds(ajour_model &model) {
  for (uint32_t i = 0; i < model.symbolCount(); ++i)
    model.bounded &= model.description->symbols()->Get(i)->max() >= 0;
  if (!model.bounded)
    return AJOUR_OK;
  Array<int64_t> symbols;
  Layout layout;
  TRY(boundSymbols(model, symbols));
  TRY(initLayout(model, layout));
  ajour_status_code status = evaluateLayout(model, symbols.data(), layout);
  if (status == AJOUR_OK)
    status = placeLayout(model, false, layout);
  return status == AJOUR_SHAPE ? AJOUR_BAD_FILE : status;
}

ajour_status_code loadModel(ajour_model &model, const ajour_load_options &options, bool exact) {
  TRY(readDescription(model, exact));
  TRY(chooseProgram(model));
  uint64_t features;
  TRY(chooseFeatures(model, options.cpu_level, features));
  TRY(chooseVariants(model, features));
  TRY(findResults(model));
  TRY(checkBounds(model));
  TRY(checkWeights(model, false));
  uint64_t total = model.weightBytes + executableBytes(model) + model.header.description_size;
  if (options.memory_budget != 0 && total > options.memory_budget)
    return fail(AJOUR_OUT_OF_MEMORY, "%s: needs %llu bytes for weights, code and description; the budget is %llu",
                model.name, (Number)total, (Number)options.memory_budget);
  if (!(options.flags & AJOUR_LOAD_SKIP_WEIGHT_CHECKSUMS)) {
    model.weightBytes = 0;
    TRY(checkWeights(model, true));
  }
  TRY(loadCode(model, options.static_code));
  model.source.closeDescriptor();
  return AJOUR_OK;
}

} // namespace ajour::runtime
