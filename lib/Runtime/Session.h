/// One use of a model: its tensors' memory, its threads, its profile.
#ifndef AJOUR_LIB_RUNTIME_SESSION_H
#define AJOUR_LIB_RUNTIME_SESSION_H

#include "Model.h"
#include "Pace.h"
#include "ThreadPool.h"

namespace ajour::runtime {

struct SessionInput {
  uint8_t *memory; ///< posix_memalign'ed, capacity + slack bytes
  uint64_t capacity;
  uint64_t bytes;
  int64_t dims[AJOUR_MAX_RANK];
  bool hasShape;
  bool hasData;
};

/// An operand that is a buffer of a state.
struct StateOperand {
  uint32_t operand; ///< into ajour_session::operands
  uint32_t buffer;
};

struct DispatchProfile {
  uint64_t calls;
  uint64_t totalNs;
  uint64_t minNs;
  uint64_t lastStartNs; ///< since the start of the last run
  uint64_t lastNs;
};

} // namespace ajour::runtime

struct ajour_session {
  ajour_model *model = nullptr;
  uint32_t flags = 0;
  uint64_t memoryBudget = 0;
  ajour::runtime::ThreadPool pool;
  std::atomic<bool> cancelled{false};
  const std::atomic<bool> *stop = nullptr; ///< the same for a sequence of runs; see SessionAccess.h

  ajour::runtime::Array<ajour::runtime::SessionInput> inputs;
  ajour::runtime::Array<int64_t> symbols;
  ajour::runtime::Array<int64_t> trialSymbols; ///< of a shape that may yet be refused
  ajour::runtime::Layout current; ///< sizes and work at the present shapes; offsets of the plan
  ajour::runtime::Array<uint64_t> plannedSizes;
  bool planned = false;
  bool ready = false; ///< all shapes known, consistent, and memory in place
  ajour::runtime::AlignedMemory arena; ///< intermediates, then outputs
  ajour::runtime::AlignedMemory scratch;
  ajour::runtime::AlignedMemory states; ///< two buffers of each state, one of those that change in place
  ajour::runtime::Array<ajour::runtime::StateOperand> stateOperands;
  bool stateTurn = false;    ///< which of the two buffers is read
  bool statesBroken = false; ///< a run that did not end changed states in place
  ajour::runtime::Array<void *> pointers; ///< per buffer
  ajour::runtime::Array<void *> operands; ///< per dispatch, in a row

  ajour::runtime::Array<ajour::runtime::Pace> paces; ///< per dispatch
  bool profiling = false;
  ajour::runtime::Array<ajour::runtime::DispatchProfile> profile;
  ajour_observer observer = nullptr;
  void *observerUser = nullptr;
  ajour::runtime::Array<ajour_observed_result> observed;

  ~ajour_session();
};

namespace ajour::runtime {

ajour_status_code initSession(ajour_session &session, ajour_model *model, const ajour_session_options &options);
ajour_status_code setInputShape(ajour_session &session, uint32_t index, const int64_t *shape, uint32_t rank);
ajour_status_code runSession(ajour_session &session);

/// Bytes of a session with this layout.
void describeMemory(const ajour_model &model, const Layout &layout, uint32_t threads, ajour_memory_info &info);

/// Value of an expression for profiles at the present shapes; 0 when it cannot be evaluated.
uint64_t profileValue(const ajour_session &session, const artifact::Expr *expr);
uint64_t operandBytes(const ajour_session &session, uint32_t dispatch);

/// Formats the profile; see ajour_session_format_profile.
size_t formatProfile(const ajour_session &session, int format, char *text, size_t capacity);

} // namespace ajour::runtime

#endif
