#include "Expr.h"
#include "Model.h"
#include "ThreadPool.h"
#include "ajour/ABI/ElementTypes.h"
#include "ajour/Runtime/MemoryPlan.h"

#include <cstring>

namespace ajour::runtime {

using Number = unsigned long long;
using artifact::BufferKind;

ajour_status_code boundSymbols(const ajour_model &model, Array<int64_t> &symbols) {
  if (!symbols.reset(model.symbolCount()))
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for %u symbols", model.name, model.symbolCount());
  for (uint32_t i = 0; i < model.symbolCount(); ++i) {
    symbols[i] = model.description->symbols()->Get(i)->max();
    if (symbols[i] < 0)
      return fail(AJOUR_SHAPE, "%s: dimension '%.100s' has no upper bound; state its value", model.name,
                  textOf(model.description->symbols()->Get(i)->name()));
  }
  return AJOUR_OK;
}

ajour_status_code symbolOfSize(const ajour_model &model, const artifact::Symbol &symbol, int64_t size, const char *place,
                               int64_t &value) {
  long long multiple = symbol.multiple();
  value = size / multiple;
  if (size < 0 || value < symbol.min() || (symbol.max() >= 0 && value > symbol.max()))
    return fail(AJOUR_SHAPE, "%s: %s is %lld, allowed %lld to %lld%s", model.name, place, (long long)size,
                symbol.min() * multiple, symbol.max() >= 0 ? symbol.max() * multiple : (long long)maxExprValue,
                symbol.max() >= 0 ? "" : " (no bound)");
  if (size % multiple != 0)
    return fail(AJOUR_SHAPE, "%s: %s is %lld, expected a multiple of %lld", model.name, place, (long long)size, multiple);
  return AJOUR_OK;
}

ajour_status_code initLayout(const ajour_model &model, Layout &layout) {
  if (layout.sizes.reset(model.bufferCount()) && layout.offsets.reset(model.bufferCount()) &&
      layout.work.reset(model.dispatches.size()) && layout.costs.reset(model.dispatches.size()))
    return AJOUR_OK;
  return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for the plan of %u buffers", model.name, model.bufferCount());
}

/// Bytes of a tensor's elements at these values of the symbols.
static ajour_status_code tensorBytes(const ajour_model &model, const artifact::Tensor &tensor, const int64_t *symbols,
                                     uint64_t &bytes) {
  bytes = ajour_element_size(tensor.element_type());
  for (uint32_t d = 0; d < sizeOf(tensor.shape()); ++d) {
    int64_t size;
    const char *wrong = evaluateExpr(tensor.shape()->Get(d), symbols, size);
    if (!wrong && __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes))
      wrong = "overflows";
    if (wrong)
      return fail(AJOUR_SHAPE, "%s: dimension %u of '%.100s' %s", model.name, d, textOf(tensor.name()), wrong);
  }
  return AJOUR_OK;
}

/// What a dispatch's items cost. That of attention depends on how much has been said, which only its positions tell.
static int64_t costOf(const artifact::Dispatch &dispatch, const int64_t *symbols) {
  int64_t macs = 0;
  if (dispatch.macs() && evaluateExpr(dispatch.macs(), symbols, macs))
    return 0; // good enough to profile, and nothing else depends on it
  return macs == 0 && std::strcmp(textOf(dispatch.kind()), "attention") == 0 ? ThreadPool::unknownCost : macs;
}

ajour_status_code evaluateLayout(const ajour_model &model, const int64_t *symbols, Layout &layout) {
  int64_t value;
  for (uint32_t i = 0; i < model.bufferCount(); ++i) {
    if (const char *wrong = evaluateExpr(model.buffer(i).size(), symbols, value))
      return fail(AJOUR_SHAPE, "%s: size of buffer %u %s", model.name, i, wrong);
    layout.sizes[i] = static_cast<uint64_t>(value);
  }
  for (const auto *tensors : {model.description->inputs(), model.description->outputs()})
    for (uint32_t i = 0; i < sizeOf(tensors); ++i) {
      const artifact::Tensor &tensor = *tensors->Get(i);
      uint64_t bytes;
      TRY(tensorBytes(model, tensor, symbols, bytes));
      if (bytes > layout.sizes[tensor.buffer()])
        return fail(AJOUR_BAD_FILE, "%s: tensor '%.100s' takes %llu bytes, but its buffer has %llu", model.name,
                    textOf(tensor.name()), (Number)bytes, (Number)layout.sizes[tensor.buffer()]);
    }
  uint64_t scratch = 0;
  for (uint32_t i = 0; i < model.dispatches.size(); ++i) {
    const LoadedDispatch &dispatch = model.dispatches[i];
    const char *what = "work";
    const char *wrong = evaluateExpr(dispatch.variant->work(), symbols, layout.work[i]);
    if (!wrong) {
      what = "scratch";
      wrong = evaluateExpr(dispatch.variant->scratch(), symbols, value);
    }
    if (wrong)
      return fail(AJOUR_SHAPE, "%s: %s of dispatch '%.100s' %s", model.name, what,
                  textOf(dispatch.description->name()), wrong);
    layout.costs[i] = costOf(*dispatch.description, symbols);
    scratch = static_cast<uint64_t>(value) > scratch ? static_cast<uint64_t>(value) : scratch;
  }
  if (scratch != 0)
    paddedBufferSize(scratch, scratch);
  layout.scratchBytes = scratch;
  return AJOUR_OK;
}

/// Places the arena's buffers: as the compiler planned them if these sizes fit that plan, else anew.
static ajour_status_code placeArena(const ajour_model &model, bool keep, Layout &layout) {
  Array<PlannedBuffer> planned;
  size_t count = 0;
  bool fromFile = !keep && model.bounded;
  for (uint32_t i = 0; i < model.bufferCount(); ++i)
    count += model.buffer(i).kind() == BufferKind::Arena;
  if (!planned.reset(count))
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for the plan of %llu buffers", model.name, (Number)count);
  count = 0;
  for (uint32_t i = 0; i < model.bufferCount(); ++i) {
    const artifact::Buffer &buffer = model.buffer(i);
    if (buffer.kind() != BufferKind::Arena)
      continue;
    PlannedBuffer &entry = planned[count++];
    entry.size = layout.sizes[i];
    entry.firstUse = keep ? 0 : buffer.first_use();
    entry.lastUse = keep ? UINT32_MAX : buffer.last_use();
    entry.offset = static_cast<uint64_t>(buffer.offset());
    fromFile &= buffer.offset() >= 0;
  }
  size_t first, second;
  if (fromFile) {
    if (!checkMemoryPlan(planned.data(), count, model.program->arena_bytes(), first, second))
      return fail(AJOUR_BAD_FILE, "%s: the memory plan is wrong: buffers %llu and %llu of the arena collide or leave its "
                  "%llu bytes",
                  model.name, (Number)first, (Number)second, (Number)model.program->arena_bytes());
    layout.arenaBytes = model.program->arena_bytes();
  } else if (!planMemory(planned.data(), count, layout.arenaBytes)) {
    return fail(AJOUR_OUT_OF_MEMORY, "%s: cannot plan an arena of %llu buffers", model.name, (Number)count);
  }
  count = 0;
  for (uint32_t i = 0; i < model.bufferCount(); ++i)
    if (model.buffer(i).kind() == BufferKind::Arena)
      layout.offsets[i] = planned[count++].offset;
  return AJOUR_OK;
}

ajour_status_code placeLayout(const ajour_model &model, bool keep, Layout &layout) {
  TRY(placeArena(model, keep, layout));
  const uint64_t limit = uint64_t(maxExprValue) * 4;
  auto tooLarge = [&] {
    return fail(AJOUR_BAD_FILE, "%s: the tensors take more than %llu bytes", model.name, (Number)limit);
  };
  if (layout.arenaBytes > limit)
    return tooLarge();
  uint64_t end = (layout.arenaBytes + AJOUR_BUFFER_ALIGNMENT - 1) / AJOUR_BUFFER_ALIGNMENT * AJOUR_BUFFER_ALIGNMENT;
  layout.arenaBytes = end;
  layout.inputBytes = layout.outputBytes = 0;
  for (uint32_t i = 0; i < model.bufferCount(); ++i) {
    BufferKind kind = model.buffer(i).kind();
    uint64_t size;
    if (kind != BufferKind::Input && kind != BufferKind::Output)
      continue;
    paddedBufferSize(layout.sizes[i], size);
    if (layout.inputBytes + layout.outputBytes > limit)
      return tooLarge();
    if (kind == BufferKind::Input) {
      layout.inputBytes += size;
      continue;
    }
    layout.offsets[i] = layout.arenaBytes + layout.outputBytes;
    layout.outputBytes += size;
  }
  return AJOUR_OK;
}

} // namespace ajour::runtime
