//===- EncDialect.cpp - registration and checks --------------------------------===//
#include "ajour/Dialect/Enc/Enc.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ajour;
using namespace ajour::enc;

#include "ajour/Dialect/Enc/EncDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ajour/Dialect/Enc/EncAttrs.cpp.inc"

void EncDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ajour/Dialect/Enc/EncAttrs.cpp.inc"
      >();
}

DictionaryAttr enc::makeParameters(MLIRContext *context, ArrayRef<encoding::Parameter> parameters) {
  SmallVector<NamedAttribute> list;
  for (const encoding::Parameter &parameter : parameters)
    list.emplace_back(StringAttr::get(context, parameter.name), DenseI64ArrayAttr::get(context, parameter.value));
  return DictionaryAttr::get(context, list);
}

std::vector<encoding::Parameter> enc::readParameters(DictionaryAttr dictionary) {
  std::vector<encoding::Parameter> list;
  for (NamedAttribute entry : dictionary)
    if (auto value = dyn_cast<DenseI64ArrayAttr>(entry.getValue()))
      list.push_back({entry.getName().str(), std::vector<int64_t>(value.asArrayRef())});
  return list;
}

WeightAttr WeightAttr::get(MLIRContext *context, const encoding::Encoding &encoding, ArrayRef<int64_t> densities) {
  return get(context, StringAttr::get(context, encoding::name(encoding.structure.kind)),
             makeParameters(context, parameters(encoding.structure)),
             StringAttr::get(context, encoding::name(encoding.values.kind)),
             makeParameters(context, parameters(encoding.values)), densities);
}

static std::string read(StringAttr structure, DictionaryAttr structureParameters, encoding::Structure &result) {
  return encoding::makeStructure(structure.getValue(), readParameters(structureParameters), result);
}

encoding::Encoding WeightAttr::getEncoding() const {
  encoding::Encoding encoding;
  std::string error = read(getStructure(), getStructureParameters(), encoding.structure);
  if (error.empty())
    error = encoding::makeValues(getValues().getValue(), readParameters(getValueParameters()), encoding.values);
  assert(error.empty() && "verified");
  return encoding;
}

/// What is wrong with a dictionary of lists of integers.
static bool areLists(DictionaryAttr dictionary) {
  return llvm::all_of(dictionary, [](NamedAttribute entry) { return isa<DenseI64ArrayAttr>(entry.getValue()); });
}

LogicalResult WeightAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr structure,
                                 DictionaryAttr structureParameters, StringAttr values, DictionaryAttr valueParameters,
                                 ArrayRef<int64_t> densities) {
  encoding::Structure readStructure;
  if (!areLists(structureParameters))
    return emitError() << "C1: parameters are lists of integers (array<i64: ...>)";
  if (std::string error = read(structure, structureParameters, readStructure); !error.empty())
    return emitError() << "C1: " << error;
  encoding::Values readValues;
  if (!areLists(valueParameters))
    return emitError() << "C2: parameters are lists of integers (array<i64: ...>)";
  if (std::string error = encoding::makeValues(values.getValue(), readParameters(valueParameters), readValues); !error.empty())
    return emitError() << "C2: " << error;
  if (densities.size() != 5 || !llvm::is_sorted(densities) || densities.front() < 0 || densities.back() > 1000)
    return emitError() << "C3: there must be five densities from 0 to 1000, which ascend";
  return success();
}
