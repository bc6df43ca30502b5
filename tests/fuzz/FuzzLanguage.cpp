// Fuzzes what language models bring. The first byte chooses: a GGUF file, a safetensors file, a tokenizer.json, a
// tokenizer's description, which is then used, or a config.json, a zero byte and a safetensors file, of which a model is built.
#include "Import/Architectures/Transformer.h"
#include "Import/GGUF/Blocks.h"
#include "ajour/Import/SafeTensors.h"
#include "ajour/Import/Tokenizer.h"
#include "ajour/Language/Tokenizer.h"

using namespace ajour;

static void useTokenizer(const std::vector<uint8_t> &description) {
  language::Tokenizer tokenizer;
  if (tokenizer.open(description.data(), description.size()))
    return;
  static const char text[] = "Hello wörld 12 \xf0\x9f\x98\x8a <s>\n";
  language::Buffer<int32_t> ids;
  tokenizer.encode({text, sizeof(text) - 1}, {true, true}, ids);
  language::StreamDecoder stream(tokenizer, true);
  language::Text decoded;
  for (size_t i = 0; i < ids.size(); ++i)
    stream.add(ids[i], decoded);
  stream.finish(decoded);
}

/// A model of the configuration and the weights, unless they are refused.
static void buildModel(const std::string &bytes) {
  llvm::StringRef config, weights;
  std::tie(config, weights) = llvm::StringRef(bytes).split('\0');
  architectures::TransformerConfig c;
  safetensors::Quantization quantization;
  auto held = std::make_shared<safetensors::File>();
  safetensors::File &file = *held;
  if (!architectures::readConfig(config, c).empty() || !safetensors::readQuantization(config, quantization).empty() ||
      !safetensors::parse(weights, file).empty())
    return;
  architectures::WeightSource source(held);
  if (!source.addQuantized(file, quantization).empty())
    return;
  source.setOptionalPrefix(c.names.optionalPrefix);
  c.context = std::min<int64_t>(c.context, 64);
  c.tokens = c.context;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::ScopedDiagnosticHandler quiet(&context, [](mlir::Diagnostic &) { return mlir::success(); });
  architectures::buildTransformer(&context, "fuzz", c, source);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::string bytes(reinterpret_cast<const char *>(data + 1), size - 1);
  switch (*data % 5) {
  case 0: {
    gguf::File file;
    std::string problem;
    if (!gguf::parse(llvm::MemoryBufferRef(bytes, "fuzz"), file, problem))
      break;
    architectures::TransformerConfig config;
    architectures::readConfig(file, config);
    for (const gguf::Tensor &tensor : file.tensors)
      if (gguf::isQuantized(tensor.type->type))
        gguf::unpackBlocks(*tensor.type, tensor.bytes);
    break;
  }
  case 1: {
    safetensors::File file;
    safetensors::parse(bytes, file);
    break;
  }
  case 2: {
    std::vector<uint8_t> description;
    if (importTokenizerJSON(bytes, description).empty())
      useTokenizer(description);
    break;
  }
  case 3:
    useTokenizer({data + 1, data + size});
    break;
  default:
    buildModel(bytes);
  }
  return 0;
}
