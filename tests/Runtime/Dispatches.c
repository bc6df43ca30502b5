// Dispatches of the test models. One work item is one row of four f32 values.
#include <stdint.h>

// Reached through the global offset table and through pointers in data: both need relocations.
float test_one = 1.0f;
float *test_tables[2] = {&test_one, &test_one};
int test_level = LEVEL;

// (lhs, rhs, result): result = lhs + rhs
void test_add(void *const *buffers, const int64_t *dims, void *scratch, int64_t begin, int64_t end) {
  const float *lhs = buffers[0], *rhs = buffers[1];
  float *result = buffers[2];
  for (int64_t i = begin * 4; i < end * 4; ++i)
    result[i] = lhs[i] + rhs[i];
}

// (x, weights of one row, result): result = x * weights * 1, by way of scratch memory
void test_scale(void *const *buffers, const int64_t *dims, void *scratch, int64_t begin, int64_t end) {
  const float *x = buffers[0], *weights = buffers[1];
  float *result = buffers[2], *row = scratch;
  for (int64_t i = begin; i < end; ++i) {
    for (int j = 0; j < 4; ++j)
      row[j] = x[i * 4 + j] * weights[j] * *test_tables[(i + j) % 2];
    for (int j = 0; j < 4; ++j)
      result[i * 4 + j] = row[j];
  }
}

// (x, result): every element of the result is the level that this code was compiled for
void test_level_of_code(void *const *buffers, const int64_t *dims, void *scratch, int64_t begin, int64_t end) {
  float *result = buffers[1];
  for (int64_t i = begin * 4; i < end * 4; ++i)
    result[i] = (float)test_level;
}

// (x, count): takes a while for each item, then counts it; for tests of cancelling
void test_wait(void *const *buffers, const int64_t *dims, void *scratch, int64_t begin, int64_t end) {
  volatile int64_t *count = buffers[1];
  for (int64_t i = begin; i < end; ++i)
    for (volatile int spin = 0; spin < 200000; ++spin)
      ;
  __atomic_fetch_add((int64_t *)count, end - begin, __ATOMIC_RELAXED);
}

// What a small language model says next: the vocabulary's numbers from 0, one of them wanted most, the one behind it second.
static void say(float *logits, int64_t vocabulary, uint64_t seen) {
  for (int64_t t = 0; t < vocabulary; ++t)
    logits[t] = -(float)((t * 7 + 3) % 11);
  logits[seen % (uint64_t)vocabulary] = 9.0f;
  logits[(seen + 1) % (uint64_t)vocabulary] = 8.0f;
}

// (tokens [n] i64, positions [n] i64, keys [context] i64 in place, logits [n, 64]): what comes next depends on every token up to
// this position.
void test_attend(void *const *buffers, const int64_t *dims, void *scratch, int64_t begin, int64_t end) {
  const int64_t *tokens = buffers[0], *positions = buffers[1];
  int64_t *keys = buffers[2];
  float *logits = buffers[3];
  for (int64_t i = 0; i < dims[0]; ++i)
    keys[positions[i]] = tokens[i];
  for (int64_t i = 0; i < dims[0]; ++i) {
    uint64_t seen = 7;
    for (int64_t p = 0; p <= positions[i]; ++p)
      seen = seen * 31 + (uint64_t)keys[p];
    say(logits + i * 64, 64, seen >> 3);
  }
}

// (tokens [n] i64, hidden [1] i64, next hidden, logits [n, 64]): the same with a state that forgets nothing and cannot go back.
void test_recur(void *const *buffers, const int64_t *dims, void *scratch, int64_t begin, int64_t end) {
  const int64_t *tokens = buffers[0], *hidden = buffers[1];
  int64_t *next = buffers[2];
  float *logits = buffers[3];
  uint64_t seen = (uint64_t)*hidden;
  for (int64_t i = 0; i < dims[0]; ++i) {
    seen = seen * 31 + (uint64_t)tokens[i];
    say(logits + i * 64, 64, seen >> 3);
  }
  *next = (int64_t)seen;
}
