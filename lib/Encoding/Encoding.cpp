#include "ajour/Encoding/Encoding.h"

#include <algorithm>

#include "Structures.h"
#include "ValueStream.h"

namespace ajour::encoding {

static constexpr const StructureRow *rows[] = {&denseRow,        &c4nRow,   &nmRow,    &patternRow,
                                               &blockPunchedRow, &blockRow, &nestedRow};

std::span<const StructureRow *const> structureRows() { return rows; }

const StructureRow *structureRow(StructureKind kind) {
  for (const StructureRow *row : rows)
    if (row->kind == kind)
      return row;
  return nullptr;
}

std::string place(int64_t row, int64_t column) { return "row " + number(row) + ", column " + number(column); }

std::string_view name(StructureKind kind) { return structureRow(kind)->name; }

std::string_view name(ValuesKind kind) {
  constexpr std::string_view names[] = {"float", "int", "codebook"};
  return names[static_cast<int>(kind)];
}

std::string_view name(Granularity granularity) {
  constexpr std::string_view names[] = {"tensor", "channel", "group"};
  return names[static_cast<int>(granularity)];
}

std::vector<Parameter> parameters(const Structure &structure) {
  std::vector<Parameter> list;
  for (const FieldRow &field : structureRow(structure.kind)->fields)
    list.push_back({field.name, field.list ? structure.*field.list : std::vector<int64_t>{structure.*field.number}});
  return list;
}

std::string makeStructure(std::string_view kind, std::span<const Parameter> parameters, Structure &structure) {
  auto row = std::find_if(std::begin(rows), std::end(rows), [&](const StructureRow *r) { return kind == r->name; });
  if (row == std::end(rows)) {
    std::string known;
    for (const StructureRow *r : rows)
      known += (known.empty() ? "" : ", ") + std::string(r->name);
    return "'" + std::string(kind) + "' is no structure; there are " + known;
  }
  structure = Structure();
  structure.kind = (*row)->kind;
  for (const Parameter &parameter : parameters) {
    auto field = std::find_if((*row)->fields.begin(), (*row)->fields.end(),
                              [&](const FieldRow &f) { return parameter.name == f.name; });
    if (field == (*row)->fields.end())
      return "'" + std::string(kind) + "' has no parameter '" + parameter.name + "'";
    if (field->list)
      structure.*field->list = parameter.value;
    else if (parameter.value.size() != 1)
      return "parameter '" + parameter.name + "' of '" + std::string(kind) + "' must be one number";
    else
      structure.*field->number = parameter.value[0];
  }
  return "";
}

std::vector<Parameter> parameters(const Values &values) {
  return {{"bits", {values.bits}},
          {"signed", {values.isSigned}},
          {"zero_points", {values.hasZeroPoints}},
          {"granularity", {int64_t(values.granularity)}},
          {"group", {values.group}},
          {"type", {values.type}}};
}

std::string makeValues(std::string_view kind, std::span<const Parameter> parameters, Values &values) {
  values = Values();
  for (values.kind = ValuesKind::Float; kind != name(values.kind);
       values.kind = static_cast<ValuesKind>(static_cast<int>(values.kind) + 1))
    if (values.kind == ValuesKind::Codebook)
      return "'" + std::string(kind) + "' is no way to write values; there are float, int, codebook";
  for (const Parameter &parameter : parameters) {
    const int64_t value = parameter.value.size() == 1 ? parameter.value[0] : -1;
    if (value < 0)
      return "parameter '" + parameter.name + "' must be one number, not negative";
    if (parameter.name == "bits")
      values.bits = value;
    else if (parameter.name == "signed")
      values.isSigned = value != 0;
    else if (parameter.name == "zero_points")
      values.hasZeroPoints = value != 0;
    else if (parameter.name == "granularity" && value <= int64_t(Granularity::Group))
      values.granularity = static_cast<Granularity>(value);
    else if (parameter.name == "group")
      values.group = value;
    else if (parameter.name == "type")
      values.type = static_cast<uint32_t>(value);
    else
      return "values have no parameter '" + parameter.name + "' of " + number(value);
  }
  return "";
}

static std::string checkShape(const WeightShape &shape) {
  // Also bounds the product of the window, which is at most k.
  constexpr int64_t limit = int64_t(1) << 31;
  for (int64_t size : {shape.n, shape.k, shape.kh, shape.kw})
    if (size < 1 || size > limit)
      return "shape has a size " + number(size) + "; sizes are 1 to 2147483648";
  if (shape.n > limit / shape.k)
    return "shape " + number(shape.n) + " x " + number(shape.k) + " has more than 2147483648 elements";
  if (shape.k % shape.window() != 0)
    return "shape has " + number(shape.k) + " columns, which the window " + number(shape.kh) + " x " + number(shape.kw) +
           " does not divide";
  return "";
}

std::string check(const Structure &structure, const WeightShape &shape) {
  const StructureRow *row = structureRow(structure.kind);
  if (!row)
    return "structure " + number(static_cast<int>(structure.kind)) + " is not known";
  if (std::string error = checkShape(shape); !error.empty())
    return error;
  return row->check(structure, shape);
}

std::string check(const Encoding &encoding, const WeightShape &shape) {
  std::string error = check(encoding.structure, shape);
  return error.empty() ? checkValues(encoding.values, shape) : error;
}

std::string describe(const Structure &structure, const WeightShape &shape) {
  return structureRow(structure.kind)->describe(structure, shape);
}

std::string describe(const Values &values) {
  std::string text;
  if (values.kind == ValuesKind::Float)
    return ajour_element_name(values.type);
  if (values.kind == ValuesKind::Int)
    text = (values.isSigned ? "int" : "uint") + number(values.bits) + (values.hasZeroPoints ? " with zero points" : "");
  else
    text = "codebook of " + number(int64_t(1) << values.bits);
  switch (values.granularity) {
  case Granularity::Tensor:
    return text;
  case Granularity::Channel:
    return text + " per channel";
  case Granularity::Group:
    return text + " per " + number(values.group) + " columns";
  }
  return text;
}

} // namespace ajour::encoding
