//===- ElfLinker.cpp - object to shared object, in process ----------------===//
#include "Codegen.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <mutex>
#include <stdlib.h>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace ajour {

/// A folder that only this user may enter, so that nobody can replace the files between write and read.
static Expected<std::string> makePrivateFolder() {
  SmallString<128> folder;
  sys::path::system_temp_directory(/*ErasedOnReboot=*/true, folder);
  sys::path::append(folder, "ajour-XXXXXX");
  std::string pattern(folder);
  if (!mkdtemp(pattern.data()))
    return createStringError("cannot make a temporary folder '" + pattern +
                             "': " + sys::StrError() + "; set TMPDIR to a folder that can be written");
  return pattern;
}

static Error runLinker(ArrayRef<const char *> args) {
  // lld keeps its state in globals.
  static std::mutex mutex;
  static bool usable = true;
  std::lock_guard lock(mutex);
  if (!usable)
    return createStringError("the linker failed before in this process and cannot run again");
  std::string text;
  raw_string_ostream stream(text);
  const lld::DriverDef drivers[] = {{lld::Gnu, &lld::elf::link}};
  lld::Result result = lld::lldMain(args, stream, stream, drivers);
  usable = result.canRunAgain;
  // Where the folder for temporary files is full, lld dies of the signal that a mapped page without room gives, and says nothing.
  if (result.retCode != 0 && StringRef(text).trim().empty())
    return createStringError("the linker died; see whether the folder for temporary files is full, and set TMPDIR to one with room");
  if (result.retCode != 0)
    return createStringError("linking the generated code failed: " + join(split(StringRef(text).trim(), "\n"), "; "));
  return Error::success();
}

Expected<std::vector<char>> linkSharedObject(ArrayRef<char> object) {
  Expected<std::string> folder = makePrivateFolder();
  if (!folder)
    return folder.takeError();
  scope_exit remove([&] { sys::fs::remove_directories(*folder, /*IgnoreErrors=*/true); });
  std::string input = *folder + "/code.o", output = *folder + "/code.so";
  {
    std::error_code code;
    raw_fd_ostream stream(input, code, sys::fs::CD_CreateNew);
    if (!code) {
      stream.write(object.data(), object.size());
      stream.close();
      code = stream.error();
      stream.clear_error();
    }
    if (code)
      return createStringError("cannot write the temporary file '" + input + "': " + code.message());
  }
  // Both hash styles: loaders count symbols with DT_HASH. Bound symbols leave no relocations.
  const char *args[] = {"ld.lld",       "-shared",
                        "-nostdlib",    "--no-undefined",
                        "-Bsymbolic",   "--gc-sections",
                        "--build-id=none", "--hash-style=both",
                        "-z",           "noexecstack",
                        "-z",           "max-page-size=16384",
                        "-z",           "separate-loadable-segments",
                        "--strip-debug", "--threads=1",
                        "-o",           output.c_str(),
                        input.c_str()};
  if (Error error = runLinker(args))
    return std::move(error);
  ErrorOr<std::unique_ptr<MemoryBuffer>> file =
      MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false, /*IsVolatile=*/true);
  if (!file)
    return createStringError("cannot read the temporary file '" + output + "': " + file.getError().message());
  return std::vector<char>((*file)->getBufferStart(), (*file)->getBufferEnd());
}

} // namespace ajour
