/* The contract between compiled dispatches and the runtime that calls them. */
#ifndef AJOUR_ABI_DISPATCH_H
#define AJOUR_ABI_DISPATCH_H

#include <stdint.h>

/* One dispatch of a compiled model: processes the work items [begin, end).
 *
 * buffers  one pointer per operand, in the order of the artifact's operand list: inputs and
 *          constants first, results last. Every pointer is aligned to AJOUR_BUFFER_ALIGNMENT bytes
 *          and may be read AJOUR_BUFFER_SLACK bytes past the operand's end (contents unspecified).
 *          No result overlaps another operand.
 * dims     the values of the model's symbolic dimensions, in the artifact's order.
 * scratch  memory of this thread alone, AJOUR_BUFFER_ALIGNMENT-aligned, of at least the size that
 *          the artifact states for the variant. Its first 8 bytes are 0 in a thread's first call of a run of
 *          the dispatch; what a call leaves in it stays for the thread's later calls of that run.
 *
 * Items may be processed in any order, in any grouping and by any thread; a dispatch neither
 * allocates, throws nor calls out. */
typedef void (*ajour_dispatch_fn)(void *const *buffers, const int64_t *dims, void *scratch, int64_t begin,
                                  int64_t end);

#define AJOUR_BUFFER_ALIGNMENT 64
#define AJOUR_BUFFER_SLACK 64
/* Artifact segments start at multiples of this; a multiple of every page size in use. */
#define AJOUR_SEGMENT_ALIGNMENT 65536
/* Code and writable data are kept apart at this granularity (16 KiB-page devices). */
#define AJOUR_MAX_PAGE_SIZE 16384

/* Opcodes of a size expression: postfix pairs (opcode, operand) over int64 with the model's
 * symbolic dimensions. Division and modulo round towards minus infinity. */
#define AJOUR_EXPR_OPS(ROW) \
  ROW(0, CONST)  /* push operand */                  \
  ROW(1, DIM)    /* push dims[operand] */            \
  ROW(2, ADD)    /* the binary ones pop b, then a, push a op b; operand unused (0) */ \
  ROW(3, MUL)    \
  ROW(4, FLOORDIV) \
  ROW(5, CEILDIV) \
  ROW(6, MOD)    \
  ROW(7, MAX)    \
  ROW(8, MIN)

typedef enum ajour_expr_op {
#define AJOUR_ROW(id, name) AJOUR_EXPR_##name = id,
  AJOUR_EXPR_OPS(AJOUR_ROW)
#undef AJOUR_ROW
} ajour_expr_op;

#endif
