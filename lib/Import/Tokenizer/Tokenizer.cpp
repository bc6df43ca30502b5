//===- Tokenizer.cpp - which importer reads a tokenizer ----------------------------===//
#include "ajour/Import/Tokenizer.h"

#include "../GGUF/Reader.h"
#include "Builder.h"

#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace ajour {

std::string importTokenizer(const std::string &path, std::vector<uint8_t> &description) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return path + ": cannot be read: " + file.getError().message();
  StringRef bytes = (*file)->getBuffer();
  text::Builder builder;
  std::string problem;
  if (bytes.starts_with("GGUF")) {
    gguf::File model;
    if (gguf::readFile(path, model, problem))
      problem = text::buildFromGGUF(model, builder);
  } else if (bytes.ltrim().starts_with("{")) {
    problem = text::buildFromJSON(bytes, builder);
    if (problem.empty())
      problem = text::readCompanions(path, builder);
  } else {
    problem = "is neither a GGUF file nor a tokenizer.json";
  }
  if (problem.empty())
    problem = builder.finish(description);
  return problem.empty() || StringRef(problem).starts_with(path) || StringRef(problem).contains("_config.json: ") ? problem : path + ": " + problem;
}

std::string importTokenizerJSON(const std::string &contents, std::vector<uint8_t> &description) {
  text::Builder builder;
  std::string problem = text::buildFromJSON(contents, builder);
  return problem.empty() ? builder.finish(description) : problem;
}

} // namespace ajour
