/* The element types that tensors, artifacts and kernels agree on.
 *
 * One row per type; ids are append-only because they are written into artifacts.
 * Columns: id, enumerator, MLIR-style name, bits per element, NumPy descriptor.
 */
#ifndef AJOUR_ABI_ELEMENTTYPES_H
#define AJOUR_ABI_ELEMENTTYPES_H

#include <stdint.h>

#define AJOUR_ELEMENT_TYPES(ROW)     \
  ROW(1, F32, "f32", 32, "<f4")      \
  ROW(2, F16, "f16", 16, "<f2")      \
  ROW(3, BF16, "bf16", 16, "<u2")    \
  ROW(4, F64, "f64", 64, "<f8")      \
  ROW(5, I8, "i8", 8, "|i1")         \
  ROW(6, U8, "ui8", 8, "|u1")        \
  ROW(7, I16, "i16", 16, "<i2")      \
  ROW(8, U16, "ui16", 16, "<u2")     \
  ROW(9, I32, "i32", 32, "<i4")      \
  ROW(10, U32, "ui32", 32, "<u4")    \
  ROW(11, I64, "i64", 64, "<i8")     \
  ROW(12, U64, "ui64", 64, "<u8")    \
  ROW(13, BOOL, "bool", 8, "|b1")

typedef enum ajour_element_type {
#define AJOUR_ROW(id, name, text, bits, npy) AJOUR_##name = id,
  AJOUR_ELEMENT_TYPES(AJOUR_ROW)
#undef AJOUR_ROW
} ajour_element_type;

/* Bytes of one element, or 0 for an unknown id. A bool takes one byte (0 or 1). */
static inline uint32_t ajour_element_size(uint32_t type) {
  switch (type) {
#define AJOUR_ROW(id, name, text, bits, npy) \
  case id:                                   \
    return (bits) / 8;
    AJOUR_ELEMENT_TYPES(AJOUR_ROW)
#undef AJOUR_ROW
  default:
    return 0;
  }
}

/* The MLIR-style name of a type ("f32", "ui8", ...), or a null pointer for an unknown id. */
static inline const char *ajour_element_name(uint32_t type) {
  switch (type) {
#define AJOUR_ROW(id, name, text, bits, npy) \
  case id:                                   \
    return text;
    AJOUR_ELEMENT_TYPES(AJOUR_ROW)
#undef AJOUR_ROW
  default:
    return 0;
  }
}

#endif
