/// The generated schema, with FlatBuffers' assertions off: what they guard is verified at the door, and
/// the runtime may not refer to abort.
#ifndef AJOUR_LIB_RUNTIME_FLAT_H
#define AJOUR_LIB_RUNTIME_FLAT_H

#ifndef FLATBUFFERS_ASSERT
#define FLATBUFFERS_ASSERT(condition) ((void)0)
#endif
#include "ajour/ABI/Artifact_generated.h"

namespace ajour::runtime {

/// Size of a vector that may be absent.
template <typename T> uint32_t sizeOf(const flatbuffers::Vector<T> *vector) { return vector ? vector->size() : 0; }

/// A string that may be absent.
inline const char *textOf(const flatbuffers::String *string) { return string ? string->c_str() : ""; }

} // namespace ajour::runtime

#endif
