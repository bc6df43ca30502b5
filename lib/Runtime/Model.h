/// A loaded artifact: immutable, shared by its sessions.
#ifndef AJOUR_LIB_RUNTIME_MODEL_H
#define AJOUR_LIB_RUNTIME_MODEL_H

#include <atomic>

#include "ByteSource.h"
#include "Cpu.h"
#include "ElfImage.h"
#include "Flat.h"
#include "ajour/ABI/ArtifactHeader.h"
#include "ajour/ABI/Dispatch.h"
#include "ajour/ajour.h"

namespace ajour::runtime {

/// artifact::State::initial_segment of a state that begins as zeros.
constexpr uint32_t noInitialSegment = 0xffffffff;

/// A dispatch with its chosen variant.
struct LoadedDispatch {
  ajour_dispatch_fn fn;
  const artifact::Dispatch *description;
  const artifact::Variant *variant;
  uint32_t firstOperand; ///< into the session's operand pointers
  uint32_t firstResult;  ///< into ajour_model::results
  uint32_t resultCount;
};

/// Where a model's buffers lie, and how much it works, for given values of the symbols.
struct Layout {
  Array<uint64_t> sizes;   ///< bytes per buffer, without slack
  Array<uint64_t> offsets; ///< per buffer of the arena, and per output behind it
  Array<int64_t> work;     ///< items per dispatch
  Array<int64_t> costs;    ///< of them, for ThreadPool::run
  uint64_t arenaBytes = 0;
  uint64_t outputBytes = 0;
  uint64_t inputBytes = 0;
  uint64_t scratchBytes = 0; ///< per thread, padded
};

} // namespace ajour::runtime

struct ajour_model {
  std::atomic<uint32_t> holders{1};
  ajour::runtime::ByteSource source;
  ajour_artifact_header header = {};
  ajour::runtime::AlignedMemory descriptionBytes;
  const ajour::artifact::Model *description = nullptr;
  const ajour::artifact::Program *program = nullptr;
  ajour::runtime::Array<ajour::runtime::LoadedDispatch> dispatches;
  ajour::runtime::Array<uint32_t> results; ///< buffers that each dispatch writes first
  ajour::runtime::Array<ajour::runtime::ElfImage *> images; ///< per executable; null when not needed
  uint32_t operandCount = 0;
  uint32_t maxResults = 0;
  const ajour::runtime::CpuLevel *level = nullptr;
  uint64_t weightBytes = 0;
  uint64_t codeBytes = 0;
  bool bounded = true; ///< every symbol has an upper bound
  char name[256] = "";

  ~ajour_model();
  uint32_t symbolCount() const { return ajour::runtime::sizeOf(description->symbols()); }
  uint32_t bufferCount() const { return ajour::runtime::sizeOf(program->buffers()); }
  const ajour::artifact::Buffer &buffer(uint32_t index) const { return *program->buffers()->Get(index); }
};

namespace ajour::runtime {

/// Loads from an opened source, which the model takes its bytes from.
ajour_status_code loadModel(ajour_model &model, const ajour_load_options &options, bool exact);

/// Compares a segment with its checksum.
ajour_status_code checkSegmentBytes(const ajour_model &model, uint32_t index);
void releaseModel(ajour_model *model);

/// Creates and destroys without operator new, which may throw.
ajour_model *createModel();

/// The upper bounds of all symbols. Fails with SHAPE when one has none.
ajour_status_code boundSymbols(const ajour_model &model, Array<int64_t> &symbols);

/// The value of a symbol from the size of its dimension. Fails with SHAPE when the size is out of bounds or no
/// multiple of what the symbol counts in; `place` names the dimension.
ajour_status_code symbolOfSize(const ajour_model &model, const artifact::Symbol &symbol, int64_t size, const char *place,
                               int64_t &value);

/// Evaluates sizes and work into arrays of the right lengths (reset by initLayout). Does not allocate.
ajour_status_code evaluateLayout(const ajour_model &model, const int64_t *symbols, Layout &layout);
ajour_status_code initLayout(const ajour_model &model, Layout &layout);
/// Fills in the offsets and the totals from the sizes. With `keep`, no memory is used twice.
ajour_status_code placeLayout(const ajour_model &model, bool keep, Layout &layout);

} // namespace ajour::runtime

#endif
