/// What the generator of texts needs of a session beyond the C API.
#ifndef AJOUR_RUNTIME_SESSIONACCESS_H
#define AJOUR_RUNTIME_SESSIONACCESS_H

#include <atomic>

#include "ajour/ajour.h"

namespace ajour::runtime {

/// The session's model, and how messages call it.
ajour_model *modelOf(const ajour_session *session);
const char *nameOf(const ajour_model *model);

/// One more holder of the model; ajour_model_destroy gives the hold back.
void holdModel(ajour_model *model);

/// A flag that runs look at after they have forgotten earlier cancellations, so that one which falls between two runs of
/// a sequence is not lost: set the flag, then call ajour_session_cancel. Null: none. The flag must outlive the session, or
/// be taken away.
void setStopFlag(ajour_session *session, const std::atomic<bool> *stop);

/// Whether runs write over the state's value where it lies.
bool changesInPlace(const ajour_model *model, uint32_t state);

/// States that a cancelled run has half changed count as whole again: the caller knows that what changed is not read.
void acceptStates(ajour_session *session);

/// Nanoseconds of a clock that only goes forward.
uint64_t nowNs();

} // namespace ajour::runtime

#endif
