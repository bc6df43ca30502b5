//===- LayoutGraphs.h - networks that move data a lot -----------*- C++ -*-===//
//
// The parts of networks that spend their time in transposes, slices and concatenations, as exporters write them, with
// random weights. For tests and for the benchmark of layouts.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_TESTS_PIPELINE_LAYOUTGRAPHS_H
#define AJOUR_TESTS_PIPELINE_LAYOUTGRAPHS_H

#include "Import/ONNX/ModelBuilder.h"

namespace ajour::test {

struct TransformerSize {
  int64_t batch = 1, grid = 4, channels = 32, heads = 4; ///< grid x grid tokens
  int64_t window = 2, blocks = 1;                        ///< of Swin: a window's side, and plain and shifted blocks
};

/// Patch embedding by a convolution, a class token, positions, and blocks of attention (one product for queries, keys and
/// values, taken apart afterwards) and feed-forward. Input [N, 3, 4 grid, 4 grid].
onnx_test::ModelBuilder visionTransformer(const TransformerSize &size);

/// Pairs of Swin blocks, the second of each shifted: roll, windows, attention in each, and back. Input [N, grid * grid, C].
onnx_test::ModelBuilder swinBlocks(const TransformerSize &size);

/// Units of ShuffleNetV2 (half of the channels pass, the others go through three convolutions, then both are shuffled)
/// between two convolutions. Input [1, 3, side, side].
onnx_test::ModelBuilder shuffleUnits(int64_t units, int64_t side, int64_t channels);

/// A detector's neck and head: upsampling and concatenation of two scales, a spatial pyramid, split blocks, and boxes
/// and classes of all places in one output. Input [1, 3, side, side].
onnx_test::ModelBuilder detectorHead(int64_t side, int64_t channels);

} // namespace ajour::test

#endif
