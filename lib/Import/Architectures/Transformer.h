//===- Transformer.h - decoder-only transformers as nn ----------*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_ARCHITECTURES_TRANSFORMER_H
#define AJOUR_LIB_IMPORT_ARCHITECTURES_TRANSFORMER_H

#include "Weights.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>

namespace ajour::architectures {

/// How a file's weights are called; {} stands for the number of the layer.
struct TransformerNames {
  const char *embedding, *finalNorm, *head;
  const char *attentionNorm, *query, *key, *value, *output, *queryNorm, *keyNorm;
  const char *feedForwardNorm, *gate, *up, *down;
  const char *ropeFactors; ///< divisors of the rotary frequencies, one for each pair; may be absent in a file
};
extern const TransformerNames ggufNames, huggingFaceNames;

/// What a decoder-only transformer of the Llama family is made of. Widths of layers come from the weights' shapes, so that they
/// may differ from layer to layer.
struct TransformerConfig {
  std::string architecture; ///< as the file calls it
  int64_t layers = 0, hidden = 0, heads = 0, keyValueHeads = 0, headSize = 0, vocabulary = 0, context = 0;
  int64_t tokens = 0;       ///< most of one call; `context` is the most in all
  float normEpsilon = 1e-5f;
  float ropeBase = 10000.0f;
  int64_t ropeSize = 0;          ///< dimensions of a head that are rotated
  bool ropeInterleaved = false;  ///< pairs are neighbours; else halves of the head
  float ropeScale = 1.0f;        ///< positions are divided by it ("linear" scaling)
  std::vector<float> ropeDivisors; ///< of the frequencies, one for each pair, or empty
  TransformerNames names;
};

/// A module whose main takes tokens [tokens] and their positions [tokens] (i64) and says by visible [tokens, length] (i1) which of
/// the first `length` positions each token attends to; it gives logits [tokens, vocabulary] (f32). Keys and values are states
/// [context, heads * size] of each layer: what earlier calls wrote at other positions is there. Every operation is located at the
/// weight that it uses. Null after diagnostics; all weights that are missing or misshapen are named.
mlir::OwningOpRef<mlir::ModuleOp> buildTransformer(mlir::MLIRContext *context, const std::string &path,
                                                   const TransformerConfig &config, const WeightSource &weights);

/// Reads the configuration of a GGUF file or of a config.json. Returns an empty string, or what is missing, unknown or out of
/// bounds, by the file's own name for it.
std::string readConfig(const gguf::File &file, TransformerConfig &config);
std::string readConfig(llvm::StringRef json, TransformerConfig &config);

} // namespace ajour::architectures

#endif
