//===- Tokenizer.h - a model's tokenizer as the runtime reads it -*- C++ -*-===//
#ifndef AJOUR_IMPORT_TOKENIZER_H
#define AJOUR_IMPORT_TOKENIZER_H

#include <cstdint>
#include <string>
#include <vector>

namespace ajour {

/// Reads the tokenizer of a language model from a GGUF file (all kinds that the format names: llama, gpt2, bert, t5) or a
/// tokenizer.json, by the file's content, and writes it as a description (include/ajour/ABI/Tokenizer.fbs). Returns an empty
/// string, or a message that begins with the file's name: what is damaged, or a stage that is not known.
std::string importTokenizer(const std::string &path, std::vector<uint8_t> &description);

/// The same for a tokenizer.json in memory; messages do not name a file.
std::string importTokenizerJSON(const std::string &contents, std::vector<uint8_t> &description);

} // namespace ajour

#endif
