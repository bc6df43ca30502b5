//===- NodeLocation.cpp - the user's nodes as locations -------------------------===//
#include "ajour/Support/NodeLocation.h"
#include "ajour/Support/Printable.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace ajour {

// A node is FusedLoc<"type">[file:index, name].
Location makeNodeLocation(MLIRContext *context, const NodeInfo &node) {
  Location position = FileLineColLoc::get(context, node.file, static_cast<unsigned>(node.index), 0);
  Location name = NameLoc::get(StringAttr::get(context, node.name.empty() ? node.type : node.name));
  return FusedLoc::get(context, {position, name}, StringAttr::get(context, node.type));
}

static void collect(Location location, SmallVectorImpl<NodeInfo> &nodes, llvm::StringSet<> &seen) {
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    auto type = dyn_cast_or_null<StringAttr>(fused.getMetadata());
    if (type && fused.getLocations().size() == 2) {
      auto position = dyn_cast<FileLineColLoc>(fused.getLocations()[0]);
      auto name = dyn_cast<NameLoc>(fused.getLocations()[1]);
      if (position && name) {
        NodeInfo node{position.getFilename().str(), name.getName().str(), type.str(), position.getLine()};
        if (seen.insert(node.file + "\n" + node.name + "\n" + std::to_string(node.index)).second)
          nodes.push_back(node);
        return;
      }
    }
    for (Location inner : fused.getLocations())
      collect(inner, nodes, seen);
  } else if (auto name = dyn_cast<NameLoc>(location)) {
    collect(name.getChildLoc(), nodes, seen);
  } else if (auto call = dyn_cast<CallSiteLoc>(location)) {
    collect(call.getCallee(), nodes, seen);
  }
}

SmallVector<NodeInfo> getNodes(Location location) {
  SmallVector<NodeInfo> nodes;
  llvm::StringSet<> seen;
  collect(location, nodes, seen);
  return nodes;
}

std::string describeNodes(Location location) {
  std::string text;
  for (const NodeInfo &node : getNodes(location))
    text += (text.empty() ? "" : ", ") + ("node '" + printable(node.name) + "' (" + printable(node.type) + ", #" +
                                          std::to_string(node.index) + ")");
  return text;
}

} // namespace ajour
