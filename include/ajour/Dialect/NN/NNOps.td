//===- NNOps.td - all operations of the nn dialect, by kind ----------------===//
#ifndef AJOUR_DIALECT_NN_NNOPS_TD
#define AJOUR_DIALECT_NN_NNOPS_TD
include "ajour/Dialect/NN/NNDialect.td"
include "ajour/Dialect/NN/NNElementwise.td"
include "ajour/Dialect/NN/NNLinear.td"
include "ajour/Dialect/NN/NNConv.td"
include "ajour/Dialect/NN/NNNorm.td"
include "ajour/Dialect/NN/NNShape.td"
include "ajour/Dialect/NN/NNWeights.td"
include "ajour/Dialect/NN/NNRecurrent.td"
include "ajour/Dialect/NN/NNAttention.td"
include "ajour/Dialect/NN/NNStateSpace.td"
#endif
