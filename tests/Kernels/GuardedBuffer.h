/// An array whose neighbourhood faults: pages without access before and behind it.
#ifndef AJOUR_TESTS_KERNELS_GUARDEDBUFFER_H
#define AJOUR_TESTS_KERNELS_GUARDEDBUFFER_H

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace ajour::test {

/// `count` elements of T; reads are allowed up to `slackBytes` past the end, and not a byte further.
/// With `atStart` the array begins right behind a page without access instead.
template <typename T> class GuardedBuffer {
public:
  GuardedBuffer(int64_t count, size_t slackBytes, bool atStart = false) : count(count) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = count * sizeof(T) + slackBytes;
    const size_t inner = (bytes + page - 1) / page * page;
    mappedBytes = inner + 2 * page;
    base = static_cast<char *>(mmap(nullptr, mappedBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base == MAP_FAILED || (inner && mprotect(base + page, inner, PROT_READ | PROT_WRITE) != 0))
      abort();
    // Garbage around the array, so that a wrong read shows even where it does not fault.
    memset(base + page, 0x5A, inner);
    first = reinterpret_cast<T *>(atStart ? base + page : base + page + inner - bytes);
    slackBegin = reinterpret_cast<char *>(first + count);
    slack = slackBytes;
  }
  ~GuardedBuffer() { munmap(base, mappedBytes); }
  GuardedBuffer(const GuardedBuffer &) = delete;
  GuardedBuffer &operator=(const GuardedBuffer &) = delete;

  T *data() { return first; }
  T &operator[](int64_t i) { return first[i]; }
  int64_t size() const { return count; }
  /// Whether nothing was written into the slack.
  bool slackUntouched() const {
    for (size_t i = 0; i < slack; ++i)
      if (slackBegin[i] != 0x5A)
        return false;
    return true;
  }

private:
  int64_t count;
  size_t mappedBytes, slack;
  char *base, *slackBegin;
  T *first;
};

} // namespace ajour::test

#endif
