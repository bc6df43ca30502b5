/* Status codes of the C API. Append-only. Columns: number, enumerator, what it means. */
#ifndef AJOUR_ABI_STATUSCODES_H
#define AJOUR_ABI_STATUSCODES_H

#define AJOUR_STATUS_CODES(ROW)                                                      \
  ROW(0, OK, "done")                                                                 \
  ROW(1, INVALID_ARGUMENT, "an argument is wrong")                                   \
  ROW(2, IO, "a file cannot be read or written")                                     \
  ROW(3, BAD_FILE, "a file is not a well-formed artifact")                           \
  ROW(4, VERSION, "the artifact needs another runtime version")                      \
  ROW(5, NO_VARIANT, "the artifact has no code for this CPU")                        \
  ROW(6, OUT_OF_MEMORY, "memory could not be allocated or exceeds the given budget") \
  ROW(7, SHAPE, "a tensor's shape does not fit the model")                           \
  ROW(8, CANCELLED, "the run was cancelled")                                         \
  ROW(9, STATE, "the call does not fit the object's state")                          \
  ROW(10, CHECKSUM, "stored bytes do not match their checksum")              \
  ROW(11, AFFINITY, "threads could not be bound to the given CPUs; work goes on unbound")

typedef enum ajour_status_code {
#define AJOUR_ROW(number, name, text) AJOUR_##name = number,
  AJOUR_STATUS_CODES(AJOUR_ROW)
#undef AJOUR_ROW
} ajour_status_code;

#endif
