// Writes the seeds of FuzzArtifact into a directory: FuzzSeeds DIRECTORY
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "Runtime/Fixture.h"

using namespace ajour::test;

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: FuzzSeeds DIRECTORY\n");
    return 2;
  }
  const std::string directory = argv[1];
  std::filesystem::create_directories(directory);
  auto seed = [&](const std::string &name, char mode, const std::string &bytes) {
    writeFile(directory + "/" + name, mode + bytes);
  };
  seed("elf", 0, readCode("small"));
  for (int64_t max : {64, -1}) {
    const std::string bytes = makeAffine(0, max, "small").bytes();
    ajour_artifact_header header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    const std::string suffix = max < 0 ? "-unbounded" : "-bounded";
    seed("description" + suffix, 1, bytes.substr(header.description_offset, header.description_size));
    seed("file" + suffix, 2, bytes);
  }
  return 0;
}
