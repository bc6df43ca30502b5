//===- Import.cpp - language models from GGUF files and Hugging Face folders --------===//
#include "ajour/Import/Import.h"
#include "ajour/Import/Tokenizer.h"

#include "../Tokenizer/Builder.h"
#include "Transformer.h"

#include "ajour/Dialect/NN/Shapes.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"

#include <algorithm>
#include <optional>

using namespace mlir;

namespace ajour {

namespace {

OwningOpRef<ModuleOp> refuse(MLIRContext *context, const std::string &path, StringRef problem) {
  // Messages of readers begin with the name of the file they are about.
  problem.consume_front(path + ": ");
  emitError(FileLineColLoc::get(context, path, 0, 0)) << problem;
  return nullptr;
}

/// How many tokens a compiled model takes unless the user says otherwise: in one call, and in all. Both decide what a session
/// holds: intermediates, and keys and values.
constexpr int64_t usualTokens = 512, usualLength = 4096;

/// Bounds the dimensions as `--dim` says, or as is usual. Returns an empty string, or what is wrong.
std::string boundDimensions(const ImportOptions &options, architectures::TransformerConfig &config) {
  int64_t most = config.context;
  config.keys = options.keys, config.values = options.values;
  if ((options.keys == CacheType::I4 || options.values == CacheType::I4) && config.headSize % 2)
    return "keys and values of 4 bits need heads of an even size, found " + std::to_string(config.headSize);
  config.context = std::min(most, usualLength);
  std::optional<int64_t> tokens;
  bool hasLength = architectures::hasAttention(config);
  for (const auto &[name, bounds] : options.dims) {
    if (name != "tokens" && (name != "length" || !hasLength))
      return "has no dimension called '" + name + "'; " + (hasLength ? "its dimensions are 'tokens', 'length'" : "its dimension is 'tokens'");
    if (bounds.min != 1 || bounds.max < 1 || bounds.max > most)
      return "the dimension '" + name + "' goes from 1 to at most " + std::to_string(most) + ", the model's context; found " +
             std::to_string(bounds.min) + ".." + (bounds.max < 0 ? "" : std::to_string(bounds.max));
    if (name == "tokens")
      tokens = bounds.max;
    else
      config.context = bounds.max;
  }
  config.tokens = std::min(tokens.value_or(usualTokens), config.context);
  return "";
}

/// Lets the tokenizer, if there is one, and what tells these weights from others travel with the model.
void attach(ModuleOp module, ArrayRef<uint8_t> tokenizer, uint64_t identity) {
  Builder b(module.getContext());
  SmallVector<NamedAttribute> attachments;
  auto add = [&](StringRef name, const void *data, size_t size) {
    RankedTensorType type = nn::makeTensor({int64_t(size)}, b.getIntegerType(8, /*isSigned=*/false));
    attachments.push_back(b.getNamedAttr(name, nn::makeConstant(type, ArrayRef(static_cast<const char *>(data), size))));
  };
  add("identity", &identity, sizeof(identity));
  if (!tokenizer.empty())
    add("tokenizer", tokenizer.data(), tokenizer.size());
  module->setAttr("nn.attachments", b.getDictionaryAttr(attachments));
}

} // namespace

OwningOpRef<ModuleOp> importGGUF(MLIRContext *context, const std::string &path, const ImportOptions &options) {
  auto held = std::make_shared<gguf::File>();
  gguf::File &file = *held;
  std::string problem;
  if (!gguf::readFile(path, file, problem))
    return refuse(context, path, problem);
  architectures::TransformerConfig config;
  problem = architectures::readConfig(file, config);
  if (problem.empty())
    problem = boundDimensions(options, config);
  if (!problem.empty())
    return refuse(context, path, problem);
  // A file without a tokenizer is a model all the same: its user brings tokens.
  std::vector<uint8_t> description;
  const gguf::Value *kind = file.find("tokenizer.ggml.model");
  bool isNone = kind && !kind->isArray() && kind->type() == gguf::ValueType::String && kind->string() == "none";
  if (kind && !isNone) {
    text::Builder tokenizer;
    if (problem = text::buildFromGGUF(file, tokenizer); problem.empty())
      problem = tokenizer.finish(description);
    if (!problem.empty())
      return refuse(context, path, problem);
  }
  architectures::WeightSource weights(held);
  weights.setOptionalPrefix(config.names.optionalPrefix);
  OwningOpRef<ModuleOp> module = architectures::buildTransformer(context, path, config, weights);
  if (module)
    attach(*module, description, weights.identity());
  return module;
}

OwningOpRef<ModuleOp> importHuggingFace(MLIRContext *context, const std::string &path, const ImportOptions &options) {
  std::string folder = safetensors::folderOf(path);
  std::string configPath = folder + "/config.json";
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer = llvm::MemoryBuffer::getFile(configPath);
  if (!buffer)
    return refuse(context, path, "config.json: cannot be read: " + buffer.getError().message() + "; a safetensors model needs it beside its weights");
  architectures::TransformerConfig config;
  if (std::string problem = architectures::readConfig((*buffer)->getBuffer(), config); !problem.empty())
    return refuse(context, path, "config.json: " + problem);
  safetensors::Quantization quantization;
  if (std::string problem = safetensors::readQuantization((*buffer)->getBuffer(), quantization); !problem.empty())
    return refuse(context, path, "config.json: " + problem);
  if (std::string problem = boundDimensions(options, config); !problem.empty())
    return refuse(context, path, problem);
  std::vector<std::string> shards;
  auto held = std::make_shared<safetensors::File>();
  safetensors::File &file = *held;
  std::string problem = safetensors::findShards(folder, shards);
  for (size_t i = 0; i < shards.size() && problem.empty(); ++i)
    problem = safetensors::readFile(shards[i], file);
  if (!problem.empty())
    return refuse(context, path, problem);
  std::vector<uint8_t> description;
  if (std::string tokenizer = folder + "/tokenizer.json"; llvm::sys::fs::exists(tokenizer))
    if (problem = importTokenizer(tokenizer, description); !problem.empty())
      return refuse(context, path, problem);
  architectures::WeightSource weights(held);
  if (problem = weights.addQuantized(file, quantization); !problem.empty())
    return refuse(context, path, problem);
  weights.setOptionalPrefix(config.names.optionalPrefix);
  OwningOpRef<ModuleOp> module = architectures::buildTransformer(context, path, config, weights);
  if (module)
    attach(*module, description, weights.identity());
  return module;
}

} // namespace ajour
