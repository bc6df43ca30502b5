// Writes the seeds of a target into a directory: FuzzSeeds FuzzArtifact|FuzzWeight DIRECTORY
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "Encoding/Weights.h"
#include "Runtime/Fixture.h"
#include "ajour/Encoding/Codec.h"

using namespace ajour::test;

static void writeArtifacts(const std::string &directory) {
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
}

/// A small weight of each structure, each with other values.
static void writeWeights(const std::string &directory) {
  std::mt19937 rng(1);
  const WeightShape shape = {6, 18, 3, 3};
  const std::vector<Values> values = allValues();
  size_t count = 0;
  for (const Structure &structure : structuresFor(rng, shape)) {
    const Values &v = values[count % values.size()];
    const Weight weight = randomWeight(rng, v, shape, randomMask(rng, structure, shape, .4));
    std::vector<uint8_t> bytes;
    if (encode(weight, {structure, v}, bytes).empty())
      writeFile(directory + "/" + std::to_string(count) + "-" + std::string(name(structure.kind)),
                std::string(bytes.begin(), bytes.end()));
    ++count;
  }
}

int main(int argc, char **argv) {
  const std::string target = argc == 3 ? argv[1] : "";
  if (target != "FuzzArtifact" && target != "FuzzWeight") {
    std::fprintf(stderr, "usage: FuzzSeeds FuzzArtifact|FuzzWeight DIRECTORY\n");
    return 2;
  }
  std::filesystem::create_directories(argv[2]);
  if (target == "FuzzWeight")
    writeWeights(argv[2]);
  else
    writeArtifacts(argv[2]);
  return 0;
}
