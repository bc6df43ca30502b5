/* Compiled code that is linked into an application instead of being carried by the artifact: what
 * `ajour compile --emit=static` writes into its object file, and the runtime reads. Structures are of
 * this form for good; an incompatible change raises AJOUR_STATIC_CODE_VERSION. */
#ifndef AJOUR_ABI_STATICCODE_H
#define AJOUR_ABI_STATICCODE_H

#include <stdint.h>

#include "ajour/ABI/Dispatch.h"

#define AJOUR_STATIC_CODE_VERSION 1
/* The segment number of an executable whose code is linked into the application. */
#define AJOUR_STATIC_CODE_SEGMENT 0xffffffffu

/* A dispatch function: the artifact's variants name it by symbol and the level of their executable. */
typedef struct ajour_static_function {
  const char *symbol;
  uint32_t level; /* ajour_cpu_level */
  uint32_t reserved;
  ajour_dispatch_fn function;
} ajour_static_function;

typedef struct ajour_static_code {
  uint32_t version;
  uint32_t arch;     /* ajour_arch */
  uint64_t identity; /* the same number as in the artifact that was written with it */
  uint64_t count;
  const ajour_static_function *functions;
} ajour_static_code;

#endif
