#include "Support.h"

#include <cstdarg>
#include <cstdio>

namespace ajour::runtime {

static thread_local char message[768];

ajour_status_code fail(ajour_status_code status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  for (char *c = message; *c != 0; ++c)
    if (static_cast<unsigned char>(*c) < 0x20 || *c == 0x7f)
      *c = '?';
  return status;
}

const char *lastMessage() { return message; }

bool AlignedMemory::reset(uint64_t size) {
  void *fresh = nullptr;
  uint64_t total;
  if (addOverflows(size, AJOUR_BUFFER_SLACK, total) || total > SIZE_MAX ||
      posix_memalign(&fresh, AJOUR_BUFFER_ALIGNMENT, static_cast<size_t>(total)) != 0)
    return false;
  std::free(bytes);
  bytes = static_cast<uint8_t *>(fresh);
  size_ = size;
  return true;
}

} // namespace ajour::runtime
