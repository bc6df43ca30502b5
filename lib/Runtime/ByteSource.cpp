#include "ByteSource.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ajour::runtime {

ByteSource::~ByteSource() {
  closeDescriptor();
  if (mapping)
    munmap(mapping, mappingSize);
}

void ByteSource::closeDescriptor() {
  if (file >= 0)
    close(file);
  file = -1;
}

ajour_status_code ByteSource::openPath(const char *path, const char *name, bool copy) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return fail(AJOUR_IO, "%s: cannot open the file: %s", name, std::strerror(errno));
  ajour_status_code status = openDescriptor(descriptor, 0, 0, name, copy);
  close(descriptor);
  return status;
}

ajour_status_code ByteSource::openDescriptor(int descriptor, uint64_t offset, uint64_t size, const char *name,
                                             bool copy) {
  struct stat info;
  if (fstat(descriptor, &info) != 0)
    return fail(AJOUR_IO, "%s: cannot examine the file: %s", name, std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return fail(AJOUR_IO, "%s: not a regular file", name);
  uint64_t fileSize = static_cast<uint64_t>(info.st_size);
  if (size == 0 && offset <= fileSize)
    size = fileSize - offset;
  if (!rangeFits(offset, size, fileSize) || size > SIZE_MAX)
    return fail(AJOUR_IO, "%s: offset %llu and size %llu lie outside the file of %llu bytes", name,
                (unsigned long long)offset, (unsigned long long)size, (unsigned long long)fileSize);
  file = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (file < 0)
    return fail(AJOUR_IO, "%s: cannot duplicate the descriptor: %s", name, std::strerror(errno));
  startInFile = offset;
  byteCount = size;
  if (!copy && size != 0 && offset % static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) == 0) {
    void *mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, static_cast<off_t>(offset));
    if (mapped != MAP_FAILED) {
      mapping = mapped;
      mappingSize = size;
      bytes = static_cast<const uint8_t *>(mapped);
      return AJOUR_OK;
    }
  }
  ajour_status_code status = readAll(name);
  closeDescriptor();
  return status;
}

ajour_status_code ByteSource::readAll(const char *name) {
  if (!owned.reset(byteCount))
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for its %llu bytes", name, (unsigned long long)byteCount);
  for (uint64_t done = 0; done < byteCount;) {
    ssize_t got = pread(file, owned.data() + done, byteCount - done, static_cast<off_t>(startInFile + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return fail(AJOUR_IO, "%s: cannot read byte %llu: %s", name, (unsigned long long)(startInFile + done),
                  got == 0 ? "the file ends" : std::strerror(errno));
    done += static_cast<uint64_t>(got);
  }
  bytes = owned.data();
  return AJOUR_OK;
}

ajour_status_code ByteSource::openMemory(const void *memory, size_t size, const char *name, bool copy) {
  byteCount = size;
  bytes = static_cast<const uint8_t *>(memory);
  if (!copy && reinterpret_cast<uintptr_t>(memory) % AJOUR_BUFFER_ALIGNMENT == 0)
    return AJOUR_OK;
  if (!owned.reset(size))
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for its %llu bytes", name, (unsigned long long)size);
  std::memcpy(owned.data(), memory, size);
  bytes = owned.data();
  return AJOUR_OK;
}

} // namespace ajour::runtime
