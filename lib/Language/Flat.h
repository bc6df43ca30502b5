/// The tokenizer's generated schema, with FlatBuffers' assertions off: what they guard is checked at the door.
#ifndef AJOUR_LIB_LANGUAGE_FLAT_H
#define AJOUR_LIB_LANGUAGE_FLAT_H

#ifndef FLATBUFFERS_ASSERT
#define FLATBUFFERS_ASSERT(condition) ((void)0)
#endif
#include "ajour/ABI/Tokenizer_generated.h"

#include "ajour/Language/Text.h"

namespace ajour::language {

/// Size of a vector that may be absent.
template <typename T> uint32_t sizeOf(const flatbuffers::Vector<T> *vector) { return vector ? vector->size() : 0; }

/// Whether the elements of a vector can be read where they lie: the generated verifier asks for the alignment of its count alone.
template <typename T> bool isAligned(const flatbuffers::Vector<T> *vector) {
  return sizeOf(vector) == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % alignof(T) == 0;
}

/// The bytes of a string that may be absent.
inline Bytes bytesOf(const flatbuffers::String *string) {
  return string ? Bytes(string->c_str(), string->size()) : Bytes();
}

} // namespace ajour::language

#endif
