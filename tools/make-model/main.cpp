//===- main.cpp - ajour-make-model: networks for benchmarks ---------------===//
//
// Writes ONNX files of well-known networks with random weights, so that speed can be measured without trained files.
//
//===----------------------------------------------------------------------===//

#include "GraphBuilder.h"
#include "ToolSupport/Commands.h"
#include "ToolSupport/Files.h"

#include <cstdio>

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
  ajour::tools::Pruning pruning;
  std::string block = "1x1";
  app.add_option("--pattern", pruning.pattern, "weights that each 3x3 kernel keeps, by patterns; default all")
      ->check(CLI::Range(1, 9));
  app.add_option("--connectivity", pruning.connectivity, "share of the 3x3 kernels that patterns keep; default 1")
      ->check(CLI::Range(0.0, 1.0))
      ->needs("--pattern");
  app.add_option("--sparsity", pruning.sparsity, "share of the blocks of other convolutions that is removed; default 0")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--linear-sparsity", pruning.linearSparsity, "the same of linear layers; default 0")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--block", block, "size of these blocks, filters by channels; default 1x1")
      ->check([](const std::string &text) {
        int filters = 0, channels = 0, end = 0;
        bool good = std::sscanf(text.c_str(), "%dx%d%n", &filters, &channels, &end) == 2 && filters > 0 && channels > 0 &&
                    end == int(text.size());
        return good ? std::string() : "'" + text + "' is no size of a block, such as 4x1 or 8x4";
      })
      ->type_name("FxC");
  app.add_option("-o,--output", path, "the file to write")->required()->type_name("FILE.onnx");
  app.callback([&] {
    if (quantized && (name == "gru_2x1024" || name == "lstm_2x1024"))
      throw CLI::ValidationError("--int8", "the recurrent networks are made in f32 only");
    ajour::tools::GraphBuilder builder(name, quantized, seed);
    pruning.blockFilters = std::stoll(block);
    pruning.blockChannels = std::stoll(block.substr(block.find('x') + 1));
    builder.setPruning(pruning);
    ajour::tools::buildArchitecture(name, builder, size);
    std::string bytes;
    if (!builder.model().SerializeToString(&bytes))
      throw ajour::tools::ToolError(path + ": the model is too large for one ONNX file");
    ajour::tools::writeFile(path, bytes);
  });
  return ajour::tools::runProgram(app, argc, argv);
}
