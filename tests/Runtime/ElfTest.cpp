// The ELF loader: what it runs and what it refuses.
#include <cstring>
#include <elf.h>

#include "ElfImage.h"
#include "Fixture.h"

using namespace ajour::test;
using namespace ajour::runtime;

static ajour_status_code load(ElfImage &image, const std::string &bytes) {
  return image.load({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size(), -1, 0, hostArch, "code"});
}

static void expectRefused(const std::string &bytes, const char *message) {
  ElfImage image;
  EXPECT_STATUS(load(image, bytes), AJOUR_BAD_FILE, message);
}

/// Changes one field of the ELF header or of the first program header of a type.
static std::string patchHeader(const std::function<void(Elf64_Ehdr &)> &change) {
  std::string bytes = readCode("level0");
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  change(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

static std::string patchSegment(uint32_t type, uint32_t flags, const std::function<void(Elf64_Phdr &)> &change) {
  std::string bytes = readCode("level0");
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    char *at = bytes.data() + header.e_phoff + i * sizeof(Elf64_Phdr);
    Elf64_Phdr segment;
    std::memcpy(&segment, at, sizeof(segment));
    if (segment.p_type != type || (segment.p_flags & flags) != flags)
      continue;
    change(segment);
    std::memcpy(at, &segment, sizeof(segment));
    return bytes;
  }
  ADD_FAILURE() << "no such segment";
  return bytes;
}

/// Changes the value of a dynamic entry (or its tag).
static std::string patchDynamic(int64_t tag, const std::function<void(Elf64_Dyn &)> &change) {
  std::string bytes = readCode("level0");
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof(Elf64_Phdr), sizeof(segment));
    for (size_t at = 0; segment.p_type == PT_DYNAMIC && at < segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      std::memcpy(&entry, bytes.data() + segment.p_offset + at, sizeof(entry));
      if (entry.d_tag != tag)
        continue;
      change(entry);
      std::memcpy(bytes.data() + segment.p_offset + at, &entry, sizeof(entry));
      return bytes;
    }
  }
  ADD_FAILURE() << "no dynamic entry " << tag;
  return bytes;
}

TEST(Elf, RunsCodeWithRelocations) {
  for (const char *name : {"level0", "small"}) {
    ElfImage image;
    ASSERT_EQ(load(image, readCode(name)), AJOUR_OK) << ajour_last_message();
    auto scale = reinterpret_cast<ajour_dispatch_fn>(image.findFunction("test_scale"));
    ASSERT_NE(scale, nullptr);
    float x[4] = {1, 2, 3, 4}, w[4] = {5, 6, 7, 8}, z[4] = {}, scratch[4];
    void *buffers[] = {x, w, z};
    // The sanitizer cannot check the type of code that it did not compile.
    [&]() __attribute__((no_sanitize("undefined"))) { scale(buffers, nullptr, scratch, 0, 1); }();
    EXPECT_EQ(z[3], 32);
    EXPECT_EQ(image.findFunction("missing"), nullptr);
    EXPECT_EQ(image.findFunction("test_level"), nullptr) << "data is no function";
  }
}

TEST(Elf, RefusesOtherFiles) {
  expectRefused("short", "too short");
  expectRefused(std::string(100, 'x'), "not an ELF file");
  expectRefused(patchHeader([](Elf64_Ehdr &h) { h.e_ident[EI_CLASS] = ELFCLASS32; }), "64-bit little-endian");
  expectRefused(patchHeader([](Elf64_Ehdr &h) { h.e_type = ET_EXEC; }), "ELF type is 2");
  expectRefused(patchHeader([](Elf64_Ehdr &h) { h.e_machine = EM_RISCV; }), "ELF machine is 243");
  expectRefused(patchHeader([](Elf64_Ehdr &h) { h.e_phoff = UINT64_MAX - 3; }), "program headers lie outside");
  expectRefused(patchHeader([](Elf64_Ehdr &h) { h.e_phentsize = 8; }), "program headers lie outside");
  expectRefused(patchHeader([](Elf64_Ehdr &h) { h.e_phnum = 0; }), "no loadable segment");
}

TEST(Elf, RefusesBadSegments) {
  expectRefused(patchSegment(PT_LOAD, PF_X, [](Elf64_Phdr &s) { s.p_offset = UINT64_MAX - 10; }), "outside the file");
  expectRefused(patchSegment(PT_LOAD, PF_X, [](Elf64_Phdr &s) { s.p_filesz = s.p_memsz + 1; }), "outside the file");
  expectRefused(patchSegment(PT_LOAD, PF_X, [](Elf64_Phdr &s) { s.p_flags |= PF_W; }), "both writable and executable");
  expectRefused(patchSegment(PT_LOAD, PF_X, [](Elf64_Phdr &s) { s.p_vaddr = uint64_t(1) << 40; }), "takes addresses");
  expectRefused(patchSegment(PT_LOAD, PF_X, [](Elf64_Phdr &s) { s.p_vaddr = 0; }), "shares a page");
  expectRefused(patchSegment(PT_DYNAMIC, 0, [](Elf64_Phdr &s) { s.p_vaddr = uint64_t(1) << 40; }), "dynamic section");
  expectRefused(patchSegment(PT_DYNAMIC, 0, [](Elf64_Phdr &s) { s.p_type = PT_NULL; }), "no dynamic section");
  expectRefused(patchSegment(PT_GNU_STACK, 0, [](Elf64_Phdr &s) { s.p_type = PT_INTERP; }), "an interpreter");
  expectRefused(patchSegment(PT_GNU_STACK, 0,
                             [](Elf64_Phdr &s) {
                               s.p_type = PT_LOAD;
                               s.p_vaddr = 0;
                             }),
                "shares a page");
}

TEST(Elf, RefusesBadTables) {
  auto far = [](Elf64_Dyn &entry) { entry.d_un.d_val = uint64_t(1) << 40; };
  expectRefused(patchDynamic(DT_HASH, far), "hash table is missing");
  expectRefused(patchDynamic(DT_HASH, [](Elf64_Dyn &e) { e.d_tag = DT_DEBUG; }), "hash table");
  expectRefused(patchDynamic(DT_SYMTAB, far), "symbol table lies outside");
  expectRefused(patchDynamic(DT_STRTAB, far), "string table");
  expectRefused(patchDynamic(DT_RELA, far), "relocation table lies outside");
  expectRefused(patchDynamic(DT_RELASZ, [](Elf64_Dyn &e) { e.d_un.d_val -= 1; }), "relocation table lies outside");
  expectRefused(patchDynamic(DT_RELAENT, [](Elf64_Dyn &e) { e.d_un.d_val = 16; }), "unknown entry size");
  expectRefused(patchDynamic(DT_RELACOUNT, [](Elf64_Dyn &e) { e.d_tag = DT_NEEDED; }), "dynamic entry 1 ");
  // A relocation that is not there: the bytes of the symbol table read as relocations.
  uint64_t symbols = 0;
  patchDynamic(DT_SYMTAB, [&](Elf64_Dyn &e) { symbols = e.d_un.d_val; });
  expectRefused(patchDynamic(DT_RELA, [&](Elf64_Dyn &e) { e.d_un.d_val = symbols + 24; }), "relocation");
}

TEST(Elf, RefusesCodeThatIsNotSelfContained) {
  expectRefused(readCode("undefined"), "code refers to 'missing_function', which is not defined in it");
  expectRefused(readCode("tls"), "thread-local storage");
  expectRefused(readCode("initialiser"), "dynamic entry 25");
}

TEST(Elf, EveryTruncationAndFlip) {
  const std::string good = readCode("small");
  for (size_t size = 0; size < good.size(); ++size) {
    ElfImage image;
    std::string exact = good.substr(0, size);
    load(image, exact);
  }
  for (size_t at = 0; at < good.size(); ++at)
    for (unsigned char flip : {0x01, 0x80, 0xff}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      ElfImage image;
      if (load(image, bytes) == AJOUR_OK)
        image.findFunction("test_scale");
    }
}
