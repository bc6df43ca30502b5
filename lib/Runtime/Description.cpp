#include "Description.h"

#include <algorithm>
#include <cstdio>

#include "Expr.h"
#include "State.h"
#include "ajour/ABI/CpuFeatures.h"
#include "ajour/ABI/ElementTypes.h"
#include "ajour/ABI/StaticCode.h"
#include "ajour/Runtime/MemoryPlan.h"
#include "Cpu.h"

namespace ajour::runtime {

using Number = unsigned long long;

namespace {

/// Walks a description. Tables and vectors of a hostile file may share bytes, so that a small file
/// describes a huge tree; an honest one does not share. `budget` therefore bounds the elements and
/// characters looked at by the description's size.
class Checker {
public:
  Checker(const uint8_t *description, const ajour_artifact_header &header, const char *name)
      : bytes(description), header(header), name(name), budget(header.description_size) {}

  ajour_status_code check(const artifact::Model *&result);

private:
  ajour_status_code checkForm();
  ajour_status_code checkSegments();
  ajour_status_code checkAttachments();
  ajour_status_code checkSymbols();
  ajour_status_code checkTensors(const char *field, const flatbuffers::Vector<flatbuffers::Offset<artifact::Tensor>> *tensors);
  ajour_status_code checkStates();
  ajour_status_code checkStateBuffers(const artifact::Program &program);
  ajour_status_code checkProgram(const artifact::Program &program);
  ajour_status_code checkBuffers(const artifact::Program &program);
  ajour_status_code checkBuffer(const artifact::Program &program, const artifact::Buffer &buffer, uint32_t index);
  ajour_status_code checkTensorBuffers(const artifact::Program &program);
  ajour_status_code checkDispatch(const artifact::Program &program, uint32_t index);
  ajour_status_code checkVariant(const artifact::Program &program, uint32_t dispatch, uint32_t index);
  ajour_status_code checkUniqueNames(const artifact::Program &program);

  ajour_status_code count(const char *field, uint64_t found, uint64_t least, uint64_t most);
  ajour_status_code index(const char *field, uint64_t found, uint64_t size);
  ajour_status_code text(const char *field, const flatbuffers::String *string);
  ajour_status_code expr(const char *field, const artifact::Expr *expr);
  ajour_status_code aligned(const char *field, const flatbuffers::Vector<int64_t> *numbers);
  ajour_status_code at(const char *format, unsigned long a, unsigned long b = 0, unsigned long c = 0)
      __attribute__((format(printf, 2, 0)));
  bool spend(uint64_t amount) {
    bool enough = amount <= budget;
    budget -= enough ? amount : budget;
    return enough;
  }

  const uint8_t *bytes;
  const ajour_artifact_header &header;
  const char *name;
  const artifact::Model *model = nullptr;
  uint64_t budget;
  char place[96] = ""; ///< the table being checked, "programs[0].dispatches[3]."
};

} // namespace

#define BAD(...) fail(AJOUR_BAD_FILE, __VA_ARGS__)

ajour_status_code Checker::at(const char *format, unsigned long a, unsigned long b, unsigned long c) {
  std::snprintf(place, sizeof(place), format, a, b, c);
  return AJOUR_OK;
}

ajour_status_code Checker::count(const char *field, uint64_t found, uint64_t least, uint64_t most) {
  if (found < least || found > most)
    return BAD("%s: %s%s has %llu entries, allowed %llu to %llu", name, place, field, (Number)found, (Number)least,
               (Number)most);
  if (!spend(found * 4))
    return BAD("%s: %s%s: parts of the description share bytes", name, place, field);
  return AJOUR_OK;
}

ajour_status_code Checker::index(const char *field, uint64_t found, uint64_t size) {
  if (found >= size)
    return BAD("%s: %s%s is %llu, allowed below %llu", name, place, field, (Number)found, (Number)size);
  return AJOUR_OK;
}

ajour_status_code Checker::text(const char *field, const flatbuffers::String *string) {
  if (!string || string->size() == 0)
    return BAD("%s: %s%s is empty", name, place, field);
  if (string->size() > maxNameBytes)
    return BAD("%s: %s%s has %u bytes, allowed %u", name, place, field, string->size(), maxNameBytes);
  if (std::strlen(string->c_str()) != string->size())
    return BAD("%s: %s%s contains a zero byte", name, place, field);
  if (!spend(string->size()))
    return BAD("%s: %s%s: parts of the description share bytes", name, place, field);
  return AJOUR_OK;
}

ajour_status_code Checker::aligned(const char *field, const flatbuffers::Vector<int64_t> *numbers) {
  // The generated verifier asks for the alignment of a vector's count alone.
  if (sizeOf(numbers) > 0 && reinterpret_cast<uintptr_t>(numbers->Data()) % alignof(int64_t) != 0)
    return BAD("%s: %s%s lies at an address that is no multiple of %u", name, place, field, unsigned(alignof(int64_t)));
  return AJOUR_OK;
}

ajour_status_code Checker::expr(const char *field, const artifact::Expr *expr) {
  if (expr)
    TRY(aligned(field, expr->code()));
  if (expr && !spend(sizeOf(expr->code()) * uint64_t(8)))
    return BAD("%s: %s%s: parts of the description share bytes", name, place, field);
  if (const char *wrong = checkExpr(expr, sizeOf(model->symbols())))
    return BAD("%s: expression %s%s %s", name, place, field, wrong);
  return AJOUR_OK;
}

/// Checks the FlatBuffers form. The generated verifier bounds the tables that it visits but not the
/// strings, so the vectors of strings are counted first.
ajour_status_code Checker::checkForm() {
  flatbuffers::Verifier::Options options;
  options.max_depth = 16;
  options.max_tables = static_cast<flatbuffers::uoffset_t>(header.description_size / 8 + 16);
  const char *malformed = "%s: description is not a well-formed table at file offset %llu";
  Number offset = header.description_offset;
  flatbuffers::Verifier first(bytes, header.description_size, options);
  auto begins = [&](const flatbuffers::Table *table) {
    return first.VerifyTableStart(reinterpret_cast<const uint8_t *>(table)) && first.EndTable();
  };
  auto asTable = [](const auto *table) { return reinterpret_cast<const flatbuffers::Table *>(table); };
  flatbuffers::uoffset_t root = header.description_size >= 16 ? first.VerifyOffset(0) : 0;
  if (root == 0 || !flatbuffers::BufferHasIdentifier(bytes, artifact::ModelIdentifier()))
    return BAD(malformed, name, offset);
  model = artifact::GetModel(bytes);
  if (!begins(asTable(model)) || !asTable(model)->VerifyOffset(first, artifact::Model::VT_PROGRAMS) ||
      !first.VerifyVector(model->programs()))
    return BAD(malformed, name, offset);
  for (uint32_t p = 0; p < sizeOf(model->programs()); ++p) {
    const artifact::Program *program = model->programs()->Get(p);
    if (!begins(asTable(program)) || !asTable(program)->VerifyOffset(first, artifact::Program::VT_DISPATCHES) ||
        !first.VerifyVector(program->dispatches()))
      return BAD(malformed, name, offset);
    for (uint32_t d = 0; d < sizeOf(program->dispatches()); ++d) {
      const artifact::Dispatch *dispatch = program->dispatches()->Get(d);
      if (!begins(asTable(dispatch)) || !asTable(dispatch)->VerifyOffset(first, artifact::Dispatch::VT_NODES) ||
          !first.VerifyVector(dispatch->nodes()) || !spend(sizeOf(dispatch->nodes()) * uint64_t(4)))
        return BAD(malformed, name, offset);
    }
  }
  budget = header.description_size;
  flatbuffers::Verifier verifier(bytes, header.description_size, options);
  return model->Verify(verifier) ? AJOUR_OK : BAD(malformed, name, offset);
}

ajour_status_code Checker::check(const artifact::Model *&result) {
  TRY(checkForm());
  TRY(count("symbols", sizeOf(model->symbols()), 0, maxSymbols));
  TRY(checkSegments());
  TRY(checkAttachments());
  TRY(checkTensors("inputs", model->inputs()));
  TRY(checkTensors("outputs", model->outputs()));
  TRY(checkSymbols());
  TRY(checkStates());
  place[0] = 0;
  TRY(count("programs", sizeOf(model->programs()), 1, maxPrograms));
  for (uint32_t p = 0; p < model->programs()->size(); ++p) {
    const artifact::Program &program = *model->programs()->Get(p);
    TRY(at("programs[%lu].", p));
    if (program.arch() != AJOUR_ARCH_X86_64 && program.arch() != AJOUR_ARCH_AARCH64)
      return BAD("%s: %sarch is %u, allowed 1 or 2", name, place, program.arch());
    for (uint32_t q = 0; q < p; ++q)
      if (model->programs()->Get(q)->arch() == program.arch())
        return BAD("%s: programs %u and %u are both for %s", name, q, p, archName(program.arch()));
    TRY(checkProgram(program));
  }
  result = model;
  return AJOUR_OK;
}

ajour_status_code Checker::checkSegments() {
  TRY(count("segments", sizeOf(model->segments()), 0, maxSegments));
  uint64_t end = header.description_offset + header.description_size;
  for (uint32_t i = 0; i < sizeOf(model->segments()); ++i) {
    const artifact::Segment &segment = *model->segments()->Get(i);
    TRY(at("segments[%lu].", i));
    TRY(text("name", segment.name()));
    if (segment.offset() % AJOUR_SEGMENT_ALIGNMENT != 0 || segment.offset() < end ||
        !rangeFits(segment.offset(), segment.size(), header.file_size))
      return BAD("%s: segment %u ('%.100s') at %llu of %llu bytes: expected a multiple of %d from %llu on, inside the "
                 "file of %llu bytes",
                 name, i, textOf(segment.name()), (Number)segment.offset(), (Number)segment.size(),
                 AJOUR_SEGMENT_ALIGNMENT, (Number)end, (Number)header.file_size);
    end = segment.offset() + segment.size();
  }
  place[0] = 0;
  return AJOUR_OK;
}

ajour_status_code Checker::checkAttachments() {
  place[0] = 0;
  TRY(count("attachments", sizeOf(model->attachments()), 0, maxAttachments));
  for (uint32_t i = 0; i < sizeOf(model->attachments()); ++i) {
    TRY(at("attachments[%lu].", i));
    TRY(text("name", model->attachments()->Get(i)->name()));
    TRY(index("segment", model->attachments()->Get(i)->segment(), sizeOf(model->segments())));
  }
  place[0] = 0;
  return AJOUR_OK;
}

ajour_status_code Checker::checkTensors(const char *field,
                                        const flatbuffers::Vector<flatbuffers::Offset<artifact::Tensor>> *tensors) {
  place[0] = 0;
  TRY(count(field, sizeOf(tensors), 0, maxTensors));
  for (uint32_t i = 0; i < sizeOf(tensors); ++i) {
    const artifact::Tensor &tensor = *tensors->Get(i);
    std::snprintf(place, sizeof(place), "%s[%u].", field, i);
    TRY(text("name", tensor.name()));
    if (ajour_element_size(tensor.element_type()) == 0)
      return BAD("%s: %selement_type is %u, which is unknown", name, place, tensor.element_type());
    TRY(count("shape", sizeOf(tensor.shape()), 0, 8));
    for (uint32_t d = 0; d < sizeOf(tensor.shape()); ++d)
      TRY(expr("shape", tensor.shape()->Get(d)));
    for (uint32_t j = 0; j < i; ++j)
      if (std::strcmp(textOf(tensors->Get(j)->name()), textOf(tensor.name())) == 0)
        return BAD("%s: %s[%u] and %s[%u] have the same name '%.100s'", name, field, j, field, i, textOf(tensor.name()));
  }
  return AJOUR_OK;
}

ajour_status_code Checker::checkSymbols() {
  for (uint32_t i = 0; i < sizeOf(model->symbols()); ++i) {
    const artifact::Symbol &symbol = *model->symbols()->Get(i);
    TRY(at("symbols[%lu].", i));
    TRY(text("name", symbol.name()));
    if (symbol.min() < 0 || symbol.max() < -1 || (symbol.max() != -1 && symbol.max() < symbol.min()) ||
        symbol.min() > maxExprValue || symbol.max() > maxExprValue)
      return BAD("%s: symbol '%.100s' has bounds %lld to %lld", name, textOf(symbol.name()), (long long)symbol.min(),
                 (long long)symbol.max());
    if (symbol.multiple() < 1 || symbol.multiple() > maxExprValue || symbol.max() > maxExprValue / symbol.multiple() ||
        symbol.min() > maxExprValue / symbol.multiple())
      return BAD("%s: symbol '%.100s' with bounds %lld to %lld has multiple %lld, allowed 1 to %lld with sizes up to that",
                 name, textOf(symbol.name()), (long long)symbol.min(), (long long)symbol.max(),
                 (long long)symbol.multiple(), (long long)maxExprValue);
    TRY(index("input", symbol.input(), sizeOf(model->inputs())));
    const artifact::Tensor &tensor = *model->inputs()->Get(symbol.input());
    TRY(index("dim", symbol.dim(), sizeOf(tensor.shape())));
    uint32_t named;
    int64_t multiple;
    if (!isMultipleOfSymbol(tensor.shape()->Get(symbol.dim()), named, multiple) || named != i ||
        multiple != symbol.multiple())
      return BAD("%s: symbol '%.100s' times %lld is not dimension %u of input '%.100s'", name, textOf(symbol.name()),
                 (long long)symbol.multiple(), symbol.dim(), textOf(tensor.name()));
    for (uint32_t j = 0; j < i; ++j)
      if (std::strcmp(textOf(model->symbols()->Get(j)->name()), textOf(symbol.name())) == 0)
        return BAD("%s: two symbols have the name '%.100s'", name, textOf(symbol.name()));
  }
  return AJOUR_OK;
}

ajour_status_code Checker::checkStates() {
  place[0] = 0;
  TRY(count("states", sizeOf(model->states()), 0, maxTensors));
  for (uint32_t i = 0; i < sizeOf(model->states()); ++i) {
    const artifact::State &state = *model->states()->Get(i);
    TRY(at("states[%lu].", i));
    TRY(text("name", state.name()));
    uint64_t bytes = ajour_element_size(state.element_type());
    if (bytes == 0)
      return BAD("%s: %selement_type is %u, which is unknown", name, place, state.element_type());
    TRY(count("shape", sizeOf(state.shape()), 0, 8));
    TRY(aligned("shape", state.shape()));
    for (uint32_t d = 0; d < sizeOf(state.shape()); ++d) {
      int64_t size = state.shape()->Get(d);
      if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes) || bytes > maxExprValue)
        return BAD("%s: %sshape[%u] is %lld, which is negative or makes the state too large", name, place, d, (long long)size);
    }
    if (state.initial_segment() != noInitialSegment) {
      TRY(index("initial_segment", state.initial_segment(), sizeOf(model->segments())));
      const artifact::Segment &segment = *model->segments()->Get(state.initial_segment());
      if (state.initial_offset() % AJOUR_BUFFER_ALIGNMENT != 0 || !rangeFits(state.initial_offset(), bytes, segment.size()))
        return BAD("%s: %sinitial_offset %llu of %llu bytes: expected a multiple of %d inside a segment of %llu bytes", name,
                   place, (Number)state.initial_offset(), (Number)bytes, AJOUR_BUFFER_ALIGNMENT, (Number)segment.size());
    }
    for (uint32_t j = 0; j < i; ++j)
      if (std::strcmp(textOf(model->states()->Get(j)->name()), textOf(state.name())) == 0)
        return BAD("%s: two states have the name '%.100s'", name, textOf(state.name()));
  }
  return AJOUR_OK;
}

/// A state has one or two buffers of its own kind, of its size, and every such buffer belongs to a state.
ajour_status_code Checker::checkStateBuffers(const artifact::Program &program) {
  using artifact::BufferKind;
  uint32_t buffers = sizeOf(program.buffers());
  Array<uint8_t> taken;
  if (!taken.reset(buffers))
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory to check %u buffers", name, buffers);
  for (uint32_t i = 0; i < sizeOf(model->states()); ++i) {
    const artifact::State &state = *model->states()->Get(i);
    uint64_t bytes = stateBytes(state);
    uint32_t own[2] = {state.buffer(), state.next()};
    for (int n = 0; n < (own[0] == own[1] ? 1 : 2); ++n) {
      int64_t size;
      if (own[n] >= buffers || program.buffers()->Get(own[n])->kind() != BufferKind::State || taken[own[n]]++ != 0)
        return BAD("%s: %sbuffer %u of state '%.100s' is not a state buffer of its own", name, place, own[n],
                   textOf(state.name()));
      const artifact::Expr *expr = program.buffers()->Get(own[n])->size();
      if (!isStatic(expr) || evaluateExpr(expr, nullptr, size) || static_cast<uint64_t>(size) != bytes)
        return BAD("%s: %sbuffer %u of state '%.100s' has another size than its %llu bytes", name, place, own[n],
                   textOf(state.name()), (Number)bytes);
    }
  }
  for (uint32_t i = 0; i < buffers; ++i)
    if (program.buffers()->Get(i)->kind() == BufferKind::State && !taken[i])
      return BAD("%s: %sbuffers[%u] is a state buffer without a state", name, place, i);
  return AJOUR_OK;
}

ajour_status_code Checker::checkBuffer(const artifact::Program &program, const artifact::Buffer &buffer, uint32_t index) {
  using artifact::BufferKind;
  TRY(expr("size", buffer.size()));
  switch (buffer.kind()) {
  case BufferKind::Input:
  case BufferKind::Output:
  case BufferKind::State:
    return AJOUR_OK;
  case BufferKind::Arena:
    if (buffer.first_use() > buffer.last_use() || buffer.last_use() >= sizeOf(program.dispatches()))
      return BAD("%s: %sfirst_use %u and last_use %u are not in order below %u", name, place, buffer.first_use(),
                 buffer.last_use(), sizeOf(program.dispatches()));
    if (buffer.offset() < -1 || (buffer.offset() != -1 && buffer.offset() % AJOUR_BUFFER_ALIGNMENT != 0))
      return BAD("%s: %soffset is %lld, expected -1 or a multiple of %d", name, place, (long long)buffer.offset(),
                 AJOUR_BUFFER_ALIGNMENT);
    return AJOUR_OK;
  case BufferKind::Constant: {
    int64_t bytes;
    if (!isStatic(buffer.size()))
      return BAD("%s: %ssize of a constant depends on a symbol", name, place);
    if (const char *wrong = evaluateExpr(buffer.size(), nullptr, bytes))
      return BAD("%s: %ssize %s", name, place, wrong);
    TRY(this->index("segment", buffer.segment(), sizeOf(model->segments())));
    const artifact::Segment &segment = *model->segments()->Get(buffer.segment());
    if (buffer.segment_offset() % AJOUR_BUFFER_ALIGNMENT != 0 ||
        !rangeFits(buffer.segment_offset(), static_cast<uint64_t>(bytes), segment.size()))
      return BAD("%s: %ssegment_offset %llu of a constant of %lld bytes: expected a multiple of %d inside a segment of "
                 "%llu bytes",
                 name, place, (Number)buffer.segment_offset(), (long long)bytes, AJOUR_BUFFER_ALIGNMENT,
                 (Number)segment.size());
    if (header.file_size - segment.offset() - segment.size() < AJOUR_BUFFER_SLACK)
      return BAD("%s: fewer than %d bytes follow segment '%.100s', which holds constants", name, AJOUR_BUFFER_SLACK,
                 textOf(segment.name()));
    return AJOUR_OK;
  }
  }
  return BAD("%s: %skind is %u, allowed 0 to 4", name, place, (unsigned)buffer.kind());
}

ajour_status_code Checker::checkBuffers(const artifact::Program &program) {
  TRY(count("buffers", sizeOf(program.buffers()), 0, maxBuffers));
  uint32_t arena = 0;
  unsigned long p = 0;
  while (model->programs()->Get(static_cast<uint32_t>(p)) != &program)
    ++p;
  for (uint32_t i = 0; i < sizeOf(program.buffers()); ++i) {
    const artifact::Buffer &buffer = *program.buffers()->Get(i);
    TRY(at("programs[%lu].buffers[%lu].", p, i));
    TRY(checkBuffer(program, buffer, i));
    arena += buffer.kind() == artifact::BufferKind::Arena;
  }
  TRY(at("programs[%lu].", p));
  if (arena > maxPlannedBuffers)
    return BAD("%s: %sbuffers has %u in the arena, allowed %llu", name, place, arena, (Number)maxPlannedBuffers);
  TRY(checkTensorBuffers(program));
  return checkStateBuffers(program);
}

/// Inputs have a buffer each, of their own kind; outputs are anything that outlives the run. Every
/// buffer of those kinds belongs to a tensor.
ajour_status_code Checker::checkTensorBuffers(const artifact::Program &program) {
  using artifact::BufferKind;
  uint32_t buffers = sizeOf(program.buffers());
  Array<uint8_t> taken;
  if (!taken.reset(buffers))
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory to check %u buffers", name, buffers);
  for (uint32_t i = 0; i < sizeOf(model->inputs()); ++i) {
    const artifact::Tensor &tensor = *model->inputs()->Get(i);
    if (tensor.buffer() >= buffers || program.buffers()->Get(tensor.buffer())->kind() != BufferKind::Input ||
        taken[tensor.buffer()]++ != 0)
      return BAD("%s: %sbuffer %u of input '%.100s' is not an input buffer of its own", name, place, tensor.buffer(),
                 textOf(tensor.name()));
  }
  for (uint32_t i = 0; i < sizeOf(model->outputs()); ++i) {
    const artifact::Tensor &tensor = *model->outputs()->Get(i);
    BufferKind kind = tensor.buffer() < buffers ? program.buffers()->Get(tensor.buffer())->kind() : BufferKind::Arena;
    if (kind == BufferKind::Arena || kind == BufferKind::State)
      return BAD("%s: %sbuffer %u of output '%.100s' does not outlive the run", name, place, tensor.buffer(),
                 textOf(tensor.name()));
    taken[tensor.buffer()] = 1;
  }
  for (uint32_t i = 0; i < buffers; ++i) {
    BufferKind kind = program.buffers()->Get(i)->kind();
    if ((kind == BufferKind::Input || kind == BufferKind::Output) && !taken[i])
      return BAD("%s: %sbuffers[%u] is an %s without a tensor", name, place, i,
                 kind == BufferKind::Input ? "input" : "output");
  }
  return AJOUR_OK;
}

ajour_status_code Checker::checkVariant(const artifact::Program &program, uint32_t dispatch, uint32_t number) {
  const artifact::Variant &variant = *program.dispatches()->Get(dispatch)->variants()->Get(number);
  const CpuLevel *level = findLevel(variant.level());
  if (!level || level->arch != program.arch())
    return BAD("%s: %slevel is %u, which is no level of %s", name, place, variant.level(), archName(program.arch()));
  TRY(index("executable", variant.executable(), sizeOf(program.executables())));
  TRY(text("symbol", variant.symbol()));
  TRY(count("operands", sizeOf(variant.operands()), 0, maxBuffers));
  for (uint32_t i = 0; i < sizeOf(variant.operands()); ++i) {
    uint32_t operand = variant.operands()->Get(i);
    TRY(index("operands", operand, sizeOf(program.buffers())));
    const artifact::Buffer &buffer = *program.buffers()->Get(operand);
    if (buffer.kind() == artifact::BufferKind::Arena && (dispatch < buffer.first_use() || dispatch > buffer.last_use()))
      return BAD("%s: %soperands[%u] is buffer %u, which lives from dispatch %u to %u", name, place, i, operand,
                 buffer.first_use(), buffer.last_use());
  }
  TRY(expr("work", variant.work()));
  if (variant.scratch())
    TRY(expr("scratch", variant.scratch()));
  return AJOUR_OK;
}

ajour_status_code Checker::checkDispatch(const artifact::Program &program, uint32_t number) {
  const artifact::Dispatch &dispatch = *program.dispatches()->Get(number);
  char outer[96];
  std::memcpy(outer, place, sizeof(outer));
  auto enter = [&](const char *field, uint32_t i) { std::snprintf(place, sizeof(place), "%.50s%s[%u].", outer, field, i); };
  enter("dispatches", number);
  TRY(text("name", dispatch.name()));
  if (dispatch.kind() && dispatch.kind()->size() != 0)
    TRY(text("kind", dispatch.kind()));
  TRY(count("nodes", sizeOf(dispatch.nodes()), 0, maxDispatches));
  for (uint32_t i = 0; i < sizeOf(dispatch.nodes()); ++i)
    TRY(text("nodes", dispatch.nodes()->Get(i)));
  if (dispatch.macs())
    TRY(expr("macs", dispatch.macs()));
  if (dispatch.mac_type() != 0 && ajour_element_size(dispatch.mac_type()) == 0)
    return BAD("%s: %smac_type is %u, which is unknown", name, place, dispatch.mac_type());
  TRY(count("variants", sizeOf(dispatch.variants()), 1, 64));
  for (uint32_t i = 0; i < dispatch.variants()->size(); ++i) {
    std::snprintf(place, sizeof(place), "%.30sdispatches[%u].variants[%u].", outer, number, i);
    TRY(checkVariant(program, number, i));
  }
  std::memcpy(place, outer, sizeof(outer));
  return AJOUR_OK;
}

ajour_status_code Checker::checkUniqueNames(const artifact::Program &program) {
  struct Entry {
    uint64_t hash;
    uint32_t dispatch;
  };
  Array<Entry> entries;
  uint32_t dispatches = sizeOf(program.dispatches());
  if (!entries.reset(dispatches))
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory to check %u dispatches", name, dispatches);
  for (uint32_t i = 0; i < dispatches; ++i) {
    const flatbuffers::String *text = program.dispatches()->Get(i)->name();
    entries[i] = {ajour_checksum(text->c_str(), text->size()), i};
  }
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) { return a.hash < b.hash; });
  for (uint32_t i = 1; i < dispatches; ++i)
    if (entries[i].hash == entries[i - 1].hash)
      return BAD("%s: %sdispatches %u and %u have the same name '%.100s'", name, place, entries[i - 1].dispatch,
                 entries[i].dispatch, textOf(program.dispatches()->Get(entries[i].dispatch)->name()));
  return AJOUR_OK;
}

ajour_status_code Checker::checkProgram(const artifact::Program &program) {
  TRY(count("executables", sizeOf(program.executables()), 0, maxExecutables));
  for (uint32_t i = 0; i < sizeOf(program.executables()); ++i) {
    const artifact::Executable &executable = *program.executables()->Get(i);
    if (executable.segment() != AJOUR_STATIC_CODE_SEGMENT)
      TRY(index("executables: segment", executable.segment(), sizeOf(model->segments())));
    const CpuLevel *level = findLevel(executable.level());
    if (!level || level->arch != program.arch())
      return BAD("%s: %sexecutables[%u].level is %u, which is no level of %s", name, place, i, executable.level(),
                 archName(program.arch()));
  }
  TRY(count("dispatches", sizeOf(program.dispatches()), 0, maxDispatches));
  TRY(checkBuffers(program));
  for (uint32_t i = 0; i < sizeOf(program.dispatches()); ++i)
    TRY(checkDispatch(program, i));
  return checkUniqueNames(program);
}

ajour_status_code checkDescription(const uint8_t *description, const ajour_artifact_header &header, const char *name,
                                   const artifact::Model *&model) {
  return Checker(description, header, name).check(model);
}

} // namespace ajour::runtime
