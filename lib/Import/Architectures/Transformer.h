//===- Transformer.h - decoder-only transformers as nn ----------*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_ARCHITECTURES_TRANSFORMER_H
#define AJOUR_LIB_IMPORT_ARCHITECTURES_TRANSFORMER_H

#include "LayerBuilder.h"
#include "Parameters.h"
#include "Rope.h"

#include "ajour/Import/Import.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <limits>

namespace ajour::architectures {

/// How a file's weights of Mamba layers are called.
struct StateSpaceNames {
  std::string in, conv, out;
  std::string parts, delta; ///< of Mamba: the step's low-rank form, B and C; the step from it
  std::string deltaBias, norm; ///< of Mamba-2
  std::string decay, skip;
};

/// How a file's weights are called; {} stands for the number of the layer and [] for that of the expert. A weight without a name
/// is one that the architecture does not have; biases stand beside their weights, under ".bias", where a file has them.
struct TransformerNames {
  std::string optionalPrefix; ///< of all names in some files
  std::string embedding, embeddingNorm, positionEmbedding, finalNorm;
  std::string head;          ///< may be absent in a file: the embedding then serves
  std::string attentionNorm; ///< before attention
  std::string query, key, value, queryKeyValue, output; ///< either three or one
  std::string queryNorm, keyNorm; ///< of each head or of all, as their weights' sizes say
  std::string attentionPostNorm;  ///< of what attention adds
  std::string feedForwardNorm, gate, up, gateUp, down; ///< either gate and up, gateUp, or up alone
  std::string feedForwardPostNorm;
  std::string router, expertGate, expertUp, expertDown; ///< experts' weights are one each, or [experts, ...]
  std::string sharedRouter, sharedGate, sharedUp, sharedDown; ///< of the expert that every token meets
  StateSpaceNames stateSpace;
  std::string ropeDivisors, ropeLongDivisors; ///< of the first rotary embedding's frequencies, one for each pair; may be absent in a file
};

/// How one product that makes queries, keys and values puts them next to each other.
enum class QueryKeyValueOrder {
  Stacked, ///< all queries, all keys, all values
  PerHead, ///< query, key and value of each head
};

/// Mixture of experts: a router scores them, each token meets the best.
struct ExpertsConfig {
  int64_t count = 0, perToken = 0;
  bool normalize = true; ///< the shares of the chosen add up to 1; else they are those among all
  float scale = 1.0f;    ///< of the shares
};

/// What mixes the tokens of a layer.
enum class Mixer { Attention, Mamba, Mamba2 };

/// What Mamba layers have in common; their widths come from the weights' shapes.
struct StateSpaceConfig {
  int64_t states = 0, taps = 0; ///< that every layer must have; 0: whatever the weights have
  int64_t groups = 1;           ///< of Mamba-2's B and C
  bool logDecay = false;        ///< the file holds the logarithm of the negative decay
  std::optional<NormConfig> normParts; ///< of Mamba's step, B and C
  float normEpsilon = 1e-5f;           ///< of Mamba-2's norm
  float deltaMin = -std::numeric_limits<float>::infinity(), deltaMax = std::numeric_limits<float>::infinity();
};

struct LayerConfig {
  Mixer mixer = Mixer::Attention;
  int64_t heads = 0, keyValueHeads = 0;
  int64_t window = 0; ///< positions that a token attends to, its own included; 0: all before it
  int rope = 0;       ///< which of the model's rotary embeddings; -1: none
  bool experts = false;
};

/// What a decoder-only transformer, state-space model or hybrid of both is made of. Widths of feed-forward layers come from the weights' shapes, so that they may differ
/// from layer to layer; so do the heads where queries, keys and values have weights of their own.
struct TransformerConfig {
  std::string architecture; ///< as the file calls it
  TransformerNames names;
  std::vector<LayerConfig> layers;
  Mixer hybrid = Mixer::Attention; ///< what layers have that have no key-value heads
  StateSpaceConfig stateSpace;
  int64_t hidden = 0, headSize = 0, vocabulary = 0, context = 0;
  int64_t tokens = 0; ///< most of one call; `context` is the most in all
  CacheType keys = CacheType::F16, values = CacheType::F16; ///< as they are kept
  NormConfig norm;
  std::vector<RopeConfig> ropes;
  bool ropeInterleaved = false; ///< pairs are neighbours; else halves of what is rotated
  nn::UnaryKind activation = nn::UnaryKind::silu;
  bool parallel = false; ///< attention and feed-forward layer read the same stream; without a norm of its own the latter takes the former's
  QueryKeyValueOrder queryKeyValueOrder = QueryKeyValueOrder::Stacked;
  bool turnedWeights = false; ///< products' weights are [in, out]
  float embeddingScale = 1.0f, residualScale = 1.0f, logitScale = 1.0f;
  bool linearBias = false; ///< scores fall with the distance, by a slope for each head (ALiBi)
  float attentionScale = 0.0f; ///< of the scores; 0: 1 / sqrt(headSize)
  float attentionCap = 0.0f, logitCap = 0.0f; ///< scores and logits stay within it; 0: no cap
  ExpertsConfig experts;
};

/// A module whose main takes tokens [tokens] and their positions [tokens] (i64) and gives logits [tokens, vocabulary] (f32). Keys and
/// values are states of each layer (Cache.h): a token attends to all positions up to its own, or to the last of them in a layer with a
/// window, as this call and earlier ones wrote them. Mamba layers have their last rows and their scan's state instead; without attention
/// main takes tokens alone, any number of them in all. Every operation is located at the weight that it uses. Null after diagnostics; all
/// weights that are missing, misshapen or without a use are named.
mlir::OwningOpRef<mlir::ModuleOp> buildTransformer(mlir::MLIRContext *context, const std::string &path,
                                                   const TransformerConfig &config, const WeightSource &weights);

/// Whether any layer attends to positions.
bool hasAttention(const TransformerConfig &config);

/// Sizes of a Mamba layer.
struct StateSpaceSizes {
  int64_t inner = 0, channels = 0, taps = 0; ///< channels and taps of the convolution
  int64_t heads = 0, groups = 0, states = 0;
};
/// As the layer's weights say; nothing after a failure.
std::optional<StateSpaceSizes> sizesOfStateSpace(LayerBuilder &builder, const TransformerConfig &config, int64_t layer);
/// A Mamba layer: x [tokens, hidden] to what is added to the stream. `rows` [taps - 1, channels] and `state` [states, heads, size] are
/// its states before, and become those behind.
mlir::Value buildStateSpace(LayerBuilder &builder, const TransformerConfig &config, const StateSpaceSizes &sizes, mlir::Value x, int64_t layer,
                            mlir::Value &rows, mlir::Value &state);

/// The feed-forward part of a layer, dense or of experts: x [tokens, hidden] to what is added to the stream.
mlir::Value buildFeedForward(LayerBuilder &builder, const TransformerConfig &config, mlir::Value x, int64_t layer);

/// Reads the configuration of a GGUF file or of a config.json. Returns an empty string, or what is missing, unknown or out of
/// bounds, by the file's own name for it.
std::string readConfig(const gguf::File &file, TransformerConfig &config);
std::string readConfig(llvm::StringRef json, TransformerConfig &config);

} // namespace ajour::architectures

#endif
