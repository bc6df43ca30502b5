//===- Families.h - which architectures are known ---------------*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_ARCHITECTURES_FAMILIES_FAMILIES_H
#define AJOUR_LIB_IMPORT_ARCHITECTURES_FAMILIES_FAMILIES_H

#include "../Transformer.h"

namespace ajour::architectures {

/// An architecture: what its models have in common, and what their files say of each.
struct Family {
  const char *gguf;        ///< general.architecture; null: not in GGUF
  const char *huggingFace; ///< model_type of a config.json; null: not there
  bool ggufInterleaved;    ///< GGUF files have the rows of queries and keys in the order for neighbouring pairs
  double ropeBase, ropeShare; ///< of a config.json that does not say them: the base, and how much of a head is rotated
  /// Sets what all models of the family share, on top of Llama's structure. Layers are there already.
  void (*structure)(TransformerConfig &config);
  /// Reads the parameters that config.json has beyond the common ones, and names the weights where names differ from Llama's.
  void (*readHuggingFace)(Parameters &p, TransformerConfig &config);
  /// The same for GGUF; null: nothing beyond the common.
  void (*readGGUF)(Parameters &p, TransformerConfig &config);
};

/// One file each: rows of the families of one descent.
llvm::ArrayRef<Family> llamaFamilies();
llvm::ArrayRef<Family> gemmaFamilies();
llvm::ArrayRef<Family> phiFamilies();
llvm::ArrayRef<Family> gptFamilies();
llvm::ArrayRef<Family> expertFamilies();
llvm::ArrayRef<Family> stateSpaceFamilies();

/// What a file may ask of us.
constexpr int64_t layerLimit = 512, widthLimit = 1 << 20, vocabularyLimit = 1 << 24, contextLimit = 1 << 24, expertLimit = 1 << 12;

/// Sets a window for the layers that `has` names.
template <typename Predicate> void setWindows(TransformerConfig &config, int64_t window, Predicate has) {
  for (size_t i = 0; i < config.layers.size(); ++i)
    if (has(int64_t(i)))
      config.layers[i].window = window;
}

/// Names of the norms of queries and keys, and of those of what attention and feed-forward layers add, in the usual words of a
/// config.json's model or of GGUF.
void nameHeadNorms(TransformerConfig &config);
void nameHeadNormsGGUF(TransformerConfig &config);
void namePostNormsGGUF(TransformerConfig &config);

/// `layer_types` of a config.json, or without it what `otherwise` says: whether each layer has the sliding window.
std::vector<bool> readSliding(Parameters &p, const TransformerConfig &config, llvm::function_ref<bool(int64_t)> otherwise);
/// The window that a config.json gives under `sliding_window`; 0 for none.
int64_t readWindow(Parameters &p);
/// An activation by the name that a config.json gives it under `key`, which decides the feed-forward layers' function.
void readActivation(Parameters &p, const char *key, const char *otherwise, TransformerConfig &config);

} // namespace ajour::architectures

#endif
