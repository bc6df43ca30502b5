/// The message that a failing call of the runtime leaves for its thread.
#ifndef AJOUR_RUNTIME_MESSAGE_H
#define AJOUR_RUNTIME_MESSAGE_H

#include "ajour/ABI/StatusCodes.h"

namespace ajour::runtime {

/// Stores this thread's message and returns `status`. Characters that are not printable become '?',
/// because names come from untrusted files.
__attribute__((format(printf, 2, 3), cold)) ajour_status_code fail(ajour_status_code status, const char *format, ...);

/// This thread's last message.
const char *lastMessage();

} // namespace ajour::runtime

/// Returns the status of a call from this function unless it is AJOUR_OK.
#define TRY(...)                                                                                                       \
  if (ajour_status_code status = (__VA_ARGS__))                                                                        \
  return status

/// In a function of the C interface: refuses a null argument.
#define NEED(pointer)                                                                                                  \
  if (!(pointer))                                                                                                      \
  return ajour::runtime::fail(AJOUR_INVALID_ARGUMENT, "%s: argument '" #pointer "' is null", __func__)

#endif
