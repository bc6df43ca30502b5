//===- Rope.h - rotary position embeddings ----------------------*- C++ -*-===//
#ifndef AJOUR_LIB_IMPORT_ARCHITECTURES_ROPE_H
#define AJOUR_LIB_IMPORT_ARCHITECTURES_ROPE_H

#include "Parameters.h"

namespace ajour::architectures {

/// A rotary embedding (Su et al., RoFormer): pairs of a head's dimensions turn by their frequency times the position.
struct RopeConfig {
  int64_t size = 0;                   ///< dimensions of a head that turn, from the first on
  std::vector<float> frequencies;     ///< radians per position, one for each pair
  std::vector<float> longFrequencies; ///< those of models compiled for more than `longFrom` positions; empty: the same
  int64_t longFrom = 0;
  float magnitude = 1.0f;             ///< what turns is multiplied by it
};

/// base^(-2 i / size), divided by `factor`.
RopeConfig plainRope(int64_t size, double base, double factor = 1.0);

/// The embedding that a config.json describes in `rope_scaling` (or, in newer files, `rope_parameters`) for a model of
/// `context` positions: none, linear, llama3, yarn, longrope. Others are refused.
RopeConfig readRope(Parameters &p, int64_t size, double base, int64_t context);

/// The same of GGUF metadata; factors of llama3 and longrope are tensors of the file, which the builder reads.
RopeConfig readGGUFRope(Parameters &p, int64_t size, int64_t context);

} // namespace ajour::architectures

#endif
