/// Structures of the C API that begin with their size and may grow.
#ifndef AJOUR_RUNTIME_STRUCTURES_H
#define AJOUR_RUNTIME_STRUCTURES_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ajour/Runtime/Message.h"

namespace ajour::runtime {

/// Takes the part of an options structure that the caller knows; the rest keeps its zeros.
template <typename T> ajour_status_code takeOptions(const T *given, T &options) {
  options = {};
  options.struct_size = sizeof(T);
  if (!given)
    return AJOUR_OK;
  if (given->struct_size < sizeof(size_t) || given->struct_size > 4096)
    return fail(AJOUR_INVALID_ARGUMENT, "struct_size of the options is %zu, expected %zu", given->struct_size, sizeof(T));
  std::memcpy(static_cast<void *>(&options), given, given->struct_size < sizeof(T) ? given->struct_size : sizeof(T));
  options.struct_size = sizeof(T);
  return AJOUR_OK;
}

/// Fills in the part of a result structure that the caller knows.
template <typename T> ajour_status_code giveResult(T *to, T &result) {
  if (to->struct_size < sizeof(size_t) || to->struct_size > 4096)
    return fail(AJOUR_INVALID_ARGUMENT, "struct_size of the result is %zu, expected %zu", to->struct_size, sizeof(T));
  result.struct_size = to->struct_size;
  std::memcpy(static_cast<void *>(to), &result, to->struct_size < sizeof(T) ? to->struct_size : sizeof(T));
  return AJOUR_OK;
}

/// Refuses flags of a later version rather than ignoring them.
inline ajour_status_code checkFlags(uint32_t flags, uint32_t known) {
  if ((flags & ~known) == 0)
    return AJOUR_OK;
  return fail(AJOUR_INVALID_ARGUMENT, "unknown option flags %#x", flags & ~known);
}

} // namespace ajour::runtime

#endif
