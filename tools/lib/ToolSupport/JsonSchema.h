//===- JsonSchema.h - JSON schemas as grammars ------------------*- C++ -*-===//

#ifndef AJOUR_TOOLS_JSONSCHEMA_H
#define AJOUR_TOOLS_JSONSCHEMA_H

#include <string>

namespace ajour::tools {

/// The grammar (docs/GRAMMAR.md) of the JSON texts that a schema allows. Throws ToolError, which names the place in the schema, for what is
/// wrong or not known.
std::string grammarOfSchema(const std::string &schema);

} // namespace ajour::tools

#endif
