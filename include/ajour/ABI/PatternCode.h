/* Code of a compiled regular expression: what the compiler writes and the runtime's matcher runs.
 *
 * An instruction is a 32-bit word, opcode in the low 8 bits, operand in the high 24. Matching is by
 * backtracking with a bound on its steps; positions are code points. Ids are append-only. */
#ifndef AJOUR_ABI_PATTERNCODE_H
#define AJOUR_ABI_PATTERNCODE_H

#include <stdint.h>

typedef enum ajour_pattern_op {
  AJOUR_PATTERN_MATCH = 0,     /* the end of the expression */
  AJOUR_PATTERN_SET = 1,       /* one code point of set `operand` */
  AJOUR_PATTERN_SPLIT = 2,     /* tries what follows, then instruction `operand` */
  AJOUR_PATTERN_JUMP = 3,      /* goes on at instruction `operand` */
  AJOUR_PATTERN_RUN = 4,       /* as many code points of set `operand` as there are, giving back one by one */
  AJOUR_PATTERN_RUN_ATOMIC = 5,/* the same without giving back */
  AJOUR_PATTERN_AHEAD = 6,     /* the instructions behind, up to ACCEPT, must match here; goes on at `operand` */
  AJOUR_PATTERN_NOT_AHEAD = 7, /* they must not */
  AJOUR_PATTERN_ACCEPT = 8,    /* the end of the instructions of AHEAD, NOT_AHEAD */
  AJOUR_PATTERN_START = 9,     /* at the start of the text */
  AJOUR_PATTERN_END = 10,      /* at its end */
  AJOUR_PATTERN_SPLIT_LAST = 11/* tries instruction `operand`, then what follows */
} ajour_pattern_op;

#define AJOUR_PATTERN_OPERAND_LIMIT (1u << 24)
/* Nesting of AHEAD and NOT_AHEAD. */
#define AJOUR_PATTERN_DEPTH_LIMIT 8

#endif
