//===- NodeLocation.h - the user's nodes as locations ---------*- C++ -*-===//
//
// Every operation carries the location of the model's node that it came from, through every pass, into
// the artifact and every message.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_SUPPORT_NODELOCATION_H
#define AJOUR_SUPPORT_NODELOCATION_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"

#include <string>

namespace ajour {

/// A node of the user's model: where it stands and what it is called there.
struct NodeInfo {
  std::string file;  ///< the model file as the user named it
  std::string name;  ///< the node's name; made from its type and index when it has none
  std::string type;  ///< the operator's name in the file's format ("Conv", "CONV_2D")
  int64_t index = 0; ///< position in the graph, from 0
};

/// The location of a node.
mlir::Location makeNodeLocation(mlir::MLIRContext *context, const NodeInfo &node);

/// The nodes in a location, in order and without repeats; several after fusion, none for what the
/// compiler made itself.
llvm::SmallVector<NodeInfo> getNodes(mlir::Location location);

/// "node 'conv1' (Conv, #3)" for messages; several are joined; "" for none.
std::string describeNodes(mlir::Location location);

} // namespace ajour

#endif
