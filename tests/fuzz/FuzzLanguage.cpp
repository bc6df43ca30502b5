// Fuzzes what language models bring. The first byte chooses: a GGUF file, a safetensors file, a tokenizer.json, or a
// tokenizer's description, which is then used.
#include "Import/GGUF/Blocks.h"
#include "Import/SafeTensors/Reader.h"
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

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::string bytes(reinterpret_cast<const char *>(data + 1), size - 1);
  switch (*data % 4) {
  case 0: {
    gguf::File file;
    std::string problem;
    if (!gguf::parse(llvm::MemoryBufferRef(bytes, "fuzz"), file, problem))
      break;
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
  default:
    useTokenizer({data + 1, data + size});
  }
  return 0;
}
