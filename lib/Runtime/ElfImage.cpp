#include "ElfImage.h"

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

#include "ajour/ABI/CpuFeatures.h"

namespace ajour::runtime {

// A hostile file may not reserve much more address space than it has bytes, nor make symbol lookups
// walk its hash chains for long.
constexpr uint64_t spanAllowance = 16u << 20;
constexpr uint64_t maxLookupSteps = 1u << 26;

#define BAD(...) fail(AJOUR_BAD_FILE, __VA_ARGS__)

ElfImage::~ElfImage() {
  if (base)
    munmap(base, span);
}

ajour_status_code ElfImage::load(const ElfInput &input) {
  pageSize = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  ajour_status_code status = readHeaders(input);
  if (status == AJOUR_OK)
    status = mapSegments(input);
  if (status == AJOUR_OK)
    status = readDynamic(input);
  if (status == AJOUR_OK)
    status = checkSymbolTables(input);
  if (status == AJOUR_OK)
    status = relocate(input, dynamic.relocations, dynamic.relocationsSize);
  if (status == AJOUR_OK)
    status = relocate(input, dynamic.jumps, dynamic.jumpsSize);
  if (status == AJOUR_OK)
    status = protect(input);
  return status;
}

/// Whether [address, address + bytes) lies in one segment that has all of `flags`.
const ElfImage::Segment *ElfImage::segmentOf(uint64_t address, uint64_t bytes, uint32_t flags) const {
  for (uint32_t i = 0; i < segmentCount; ++i) {
    const Segment &segment = segments[i];
    if (address >= segment.address && rangeFits(address - segment.address, bytes, segment.memorySize) &&
        (segment.flags & flags) == flags)
      return &segment;
  }
  return nullptr;
}

ajour_status_code ElfImage::readHeaders(const ElfInput &input) {
  Elf64_Ehdr header;
  if (input.size < sizeof(header))
    return BAD("%s: too short for an ELF file: %llu bytes", input.where, (unsigned long long)input.size);
  std::memcpy(&header, input.bytes, sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return BAD("%s: not an ELF file", input.where);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return BAD("%s: not a 64-bit little-endian ELF file", input.where);
  if (header.e_type != ET_DYN)
    return BAD("%s: ELF type is %u, expected a shared object (3)", input.where, header.e_type);
  unsigned machine = input.arch == AJOUR_ARCH_X86_64 ? EM_X86_64 : EM_AARCH64;
  if (header.e_machine != machine)
    return BAD("%s: ELF machine is %u, expected %u", input.where, header.e_machine, machine);
  if (header.e_phentsize != sizeof(Elf64_Phdr) ||
      !rangeFits(header.e_phoff, uint64_t(header.e_phnum) * sizeof(Elf64_Phdr), input.size))
    return BAD("%s: ELF program headers lie outside the file", input.where);
  uint64_t end = 0;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr entry;
    std::memcpy(&entry, input.bytes + header.e_phoff + i * sizeof(entry), sizeof(entry));
    if (entry.p_type == PT_TLS || entry.p_type == PT_INTERP)
      return BAD("%s: code uses %s, which is not supported", input.where,
                 entry.p_type == PT_TLS ? "thread-local storage" : "an interpreter");
    if (entry.p_type == PT_DYNAMIC) {
      dynamicAddress = entry.p_vaddr;
      dynamicSize = entry.p_memsz;
    }
    if (entry.p_type == PT_GNU_RELRO) {
      relroAddress = entry.p_vaddr;
      relroSize = entry.p_memsz;
    }
    if (entry.p_type != PT_LOAD)
      continue;
    if (ajour_status_code status = readSegment(input, entry, end))
      return status;
  }
  if (segmentCount == 0 || dynamicSize == 0)
    return BAD("%s: ELF file has no %s", input.where, segmentCount == 0 ? "loadable segment" : "dynamic section");
  span = end;
  return AJOUR_OK;
}

ajour_status_code ElfImage::readSegment(const ElfInput &input, const Elf64_Phdr &header, uint64_t &end) {
  unsigned long long index = segmentCount;
  if (segmentCount == maxSegments)
    return BAD("%s: more than %u loadable segments", input.where, maxSegments);
  if (header.p_filesz > header.p_memsz || !rangeFits(header.p_offset, header.p_filesz, input.size))
    return BAD("%s: loadable segment %llu lies outside the file", input.where, index);
  if ((header.p_flags & PF_W) && (header.p_flags & PF_X))
    return BAD("%s: loadable segment %llu is both writable and executable", input.where, index);
  uint64_t limit = 4 * input.size + spanAllowance;
  if (!rangeFits(header.p_vaddr, header.p_memsz, limit))
    return BAD("%s: loadable segment %llu takes addresses up to more than %llu", input.where, index,
               (unsigned long long)limit);
  if (roundDown(header.p_vaddr, pageSize) < end)
    return BAD("%s: loadable segment %llu shares a page of %llu bytes with the one before it", input.where, index,
               (unsigned long long)pageSize);
  end = roundDown(header.p_vaddr + header.p_memsz + pageSize - 1, pageSize);
  segments[segmentCount++] = {header.p_vaddr, header.p_memsz, header.p_offset, header.p_filesz, header.p_flags};
  return AJOUR_OK;
}

ajour_status_code ElfImage::mapSegments(const ElfInput &input) {
  void *reserved = mmap(nullptr, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (reserved == MAP_FAILED)
    return fail(AJOUR_OUT_OF_MEMORY, "%s: cannot reserve %llu bytes: %s", input.where, (unsigned long long)span,
                std::strerror(errno));
  base = static_cast<uint8_t *>(reserved);
  for (uint32_t i = 0; i < segmentCount; ++i) {
    const Segment &segment = segments[i];
    uint64_t start = roundDown(segment.address, pageSize);
    uint64_t inPage = segment.address - start;
    uint64_t bytes = inPage + segment.memorySize;
    uint64_t fileStart = input.fileOffset + segment.offset;
    if (bytes == 0)
      continue;
    bool fromFile = input.file >= 0 && !(segment.flags & PF_W) && segment.memorySize == segment.fileSize &&
                    fileStart % pageSize == inPage;
    if (fromFile && mmap(base + start, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, input.file,
                         static_cast<off_t>(fileStart - inPage)) != MAP_FAILED)
      continue;
    if (mmap(base + start, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
      return fail(AJOUR_OUT_OF_MEMORY, "%s: cannot allocate %llu bytes for code: %s", input.where,
                  (unsigned long long)bytes, std::strerror(errno));
    if (segment.fileSize != 0)
      std::memcpy(base + segment.address, input.bytes + segment.offset, segment.fileSize);
  }
  return AJOUR_OK;
}

ajour_status_code ElfImage::readDynamic(const ElfInput &input) {
  if (!segmentOf(dynamicAddress, dynamicSize, PF_R))
    return BAD("%s: ELF dynamic section lies outside the loaded segments", input.where);
  uint64_t relocationEntry = sizeof(Elf64_Rela), symbolEntry = sizeof(Elf64_Sym), jumpKind = DT_RELA;
  for (uint64_t i = 0; i < dynamicSize / sizeof(Elf64_Dyn); ++i) {
    auto entry = at<Elf64_Dyn>(dynamicAddress + i * sizeof(Elf64_Dyn));
    uint64_t value = entry.d_un.d_val;
    switch (entry.d_tag) {
    case DT_NULL: i = dynamicSize; break;
    case DT_HASH: dynamic.hash = value; break;
    case DT_SYMTAB: dynamic.symbols = value; break;
    case DT_STRTAB: dynamic.strings = value; break;
    case DT_STRSZ: dynamic.stringsSize = value; break;
    case DT_RELA: dynamic.relocations = value; break;
    case DT_RELASZ: dynamic.relocationsSize = value; break;
    case DT_JMPREL: dynamic.jumps = value; break;
    case DT_PLTRELSZ: dynamic.jumpsSize = value; break;
    case DT_RELAENT: relocationEntry = value; break;
    case DT_SYMENT: symbolEntry = value; break;
    case DT_PLTREL: jumpKind = value; break;
    case DT_NEEDED:
    case DT_INIT:
    case DT_FINI:
    case DT_INIT_ARRAY:
    case DT_FINI_ARRAY:
    case DT_TEXTREL:
    case DT_REL:
    case 36: /* DT_RELR */
      return BAD("%s: code has the dynamic entry %lld (a library, an initialiser or a relocation form), which is not "
                 "supported",
                 input.where, (long long)entry.d_tag);
    default: break;
    }
  }
  if (relocationEntry != sizeof(Elf64_Rela) || symbolEntry != sizeof(Elf64_Sym) || jumpKind != DT_RELA)
    return BAD("%s: ELF dynamic section has an unknown entry size", input.where);
  return AJOUR_OK;
}

ajour_status_code ElfImage::checkSymbolTables(const ElfInput &input) {
  if (!segmentOf(dynamic.hash, 8, PF_R))
    return BAD("%s: ELF hash table is missing; link with --hash-style=both", input.where);
  bucketCount = at<uint32_t>(dynamic.hash);
  symbolCount = at<uint32_t>(dynamic.hash + 4);
  if (bucketCount == 0 || !segmentOf(dynamic.hash, (uint64_t(bucketCount) + symbolCount + 2) * 4, PF_R))
    return BAD("%s: ELF hash table of %u buckets and %u symbols lies outside the loaded segments", input.where,
               bucketCount, symbolCount);
  if (!segmentOf(dynamic.symbols, uint64_t(symbolCount) * sizeof(Elf64_Sym), PF_R))
    return BAD("%s: ELF symbol table lies outside the loaded segments", input.where);
  if (dynamic.stringsSize == 0 || !segmentOf(dynamic.strings, dynamic.stringsSize, PF_R) ||
      base[dynamic.strings + dynamic.stringsSize - 1] != 0)
    return BAD("%s: ELF string table is not well-formed", input.where);
  return AJOUR_OK;
}

ajour_status_code ElfImage::relocate(const ElfInput &input, uint64_t table, uint64_t size) {
  bool x86 = input.arch == AJOUR_ARCH_X86_64;
  if (size != 0 && (size % sizeof(Elf64_Rela) != 0 || !segmentOf(table, size, PF_R)))
    return BAD("%s: ELF relocation table lies outside the loaded segments", input.where);
  for (uint64_t i = 0; i < size; i += sizeof(Elf64_Rela)) {
    auto entry = at<Elf64_Rela>(table + i);
    uint64_t type = ELF64_R_TYPE(entry.r_info), index = ELF64_R_SYM(entry.r_info);
    uint64_t value = reinterpret_cast<uint64_t>(base) + static_cast<uint64_t>(entry.r_addend);
    bool relative = type == (x86 ? 8u : 1027u);
    bool absolute = type == (x86 ? 1u : 257u);
    bool slot = x86 ? type == 6 || type == 7 : type == 1025 || type == 1026;
    if (!relative && !absolute && !slot)
      return BAD("%s: relocation type %llu is not supported", input.where, (unsigned long long)type);
    if (!relative) {
      if (index >= symbolCount)
        return BAD("%s: relocation names symbol %llu of %u", input.where, (unsigned long long)index, symbolCount);
      auto symbol = at<Elf64_Sym>(dynamic.symbols + index * sizeof(Elf64_Sym));
      if (symbol.st_shndx == SHN_UNDEF) {
        const char *name = symbol.st_name < dynamic.stringsSize
                               ? reinterpret_cast<const char *>(base + dynamic.strings + symbol.st_name)
                               : "?";
        return BAD("%s: code refers to '%.100s', which is not defined in it", input.where, name);
      }
      value += symbol.st_value;
      // A global offset entry holds the symbol's address alone on x86-64.
      if (slot && x86)
        value -= static_cast<uint64_t>(entry.r_addend);
    }
    if (!segmentOf(entry.r_offset, 8, PF_W))
      return BAD("%s: relocation at %#llx is not in writable data", input.where, (unsigned long long)entry.r_offset);
    std::memcpy(base + entry.r_offset, &value, 8);
  }
  return AJOUR_OK;
}

ajour_status_code ElfImage::protect(const ElfInput &input) {
  for (uint32_t i = 0; i < segmentCount; ++i) {
    const Segment &segment = segments[i];
    uint64_t start = roundDown(segment.address, pageSize);
    uint64_t bytes = segment.address - start + segment.memorySize;
    int rights = (segment.flags & PF_R ? PROT_READ : 0) | (segment.flags & PF_W ? PROT_WRITE : 0) |
                 (segment.flags & PF_X ? PROT_EXEC : 0);
    if (bytes == 0)
      continue;
    if (segment.flags & PF_X)
      __builtin___clear_cache(reinterpret_cast<char *>(base + start), reinterpret_cast<char *>(base + start + bytes));
    if (mprotect(base + start, bytes, rights) != 0)
      return fail(AJOUR_IO, "%s: the system refuses to make code executable: %s", input.where, std::strerror(errno));
  }
  uint64_t first = roundDown(relroAddress + pageSize - 1, pageSize);
  uint64_t last = roundDown(relroAddress + relroSize, pageSize);
  if (relroSize != 0 && segmentOf(relroAddress, relroSize, PF_W) && last > first)
    mprotect(base + first, last - first, PROT_READ);
  return AJOUR_OK;
}

void *ElfImage::findFunction(const char *name) {
  uint32_t hash = 0;
  for (const char *c = name; *c != 0; ++c) {
    hash = (hash << 4) + static_cast<unsigned char>(*c);
    hash = (hash ^ (hash & 0xf0000000u) >> 24) & 0x0fffffffu;
  }
  uint64_t buckets = dynamic.hash + 8, chains = buckets + uint64_t(bucketCount) * 4;
  uint32_t index = at<uint32_t>(buckets + uint64_t(hash % bucketCount) * 4);
  for (; index != 0 && index < symbolCount && lookupSteps < maxLookupSteps; ++lookupSteps) {
    auto symbol = at<Elf64_Sym>(dynamic.symbols + uint64_t(index) * sizeof(Elf64_Sym));
    if (symbol.st_shndx != SHN_UNDEF && symbol.st_name < dynamic.stringsSize &&
        std::strcmp(name, reinterpret_cast<const char *>(base + dynamic.strings + symbol.st_name)) == 0)
      return segmentOf(symbol.st_value, 1, PF_X) ? base + symbol.st_value : nullptr;
    index = at<uint32_t>(chains + uint64_t(index) * 4);
  }
  return nullptr;
}

} // namespace ajour::runtime
