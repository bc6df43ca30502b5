//===- main.cpp - ajour-make-model: networks for benchmarks ---------------===//
//
// Writes ONNX files of well-known networks with random weights, so that speed can be measured without trained files.
//
//===----------------------------------------------------------------------===//

#include "GraphBuilder.h"
#include "ToolSupport/Commands.h"
#include "ToolSupport/Files.h"

int main(int argc, char **argv) {
  CLI::App app("Writes the ONNX file of a well-known network with random weights", "ajour-make-model");
  std::string name, path;
  bool quantized = false;
  int64_t size = 224;
  uint64_t seed = 1;
  app.add_option("network", name, "which network")
      ->required()
      ->check(CLI::IsMember(ajour::tools::architectureNames()))
      ->type_name("NAME");
  app.add_flag("--int8", quantized, "quantised to 8 bits, as QuantizeLinear and DequantizeLinear pairs");
  app.add_option("--size", size, "height and width of the picture; default 224")->check(CLI::Range(32, 1024));
  app.add_option("--seed", seed, "of the weights; default 1");
  app.add_option("-o,--output", path, "the file to write")->required()->type_name("FILE.onnx");
  app.callback([&] {
    ajour::tools::GraphBuilder builder(name, quantized, seed);
    ajour::tools::buildArchitecture(name, builder, size);
    std::string bytes;
    if (!builder.model().SerializeToString(&bytes))
      throw ajour::tools::ToolError(path + ": the model is too large for one ONNX file");
    ajour::tools::writeFile(path, bytes);
  });
  return ajour::tools::runProgram(app, argc, argv);
}
