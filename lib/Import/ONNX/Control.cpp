//===- Control.cpp - ONNX constants, branches, and what is refused ------------------===//
#include "Importer.h"

using namespace mlir;

namespace ajour::onnx_import {

namespace {

void constant(Node &n) {
  if (Value v = n.attrTensor("value"))
    return n.set(0, v, n.findAttr("value")->t().data_type());
  if (n.hasAttr("value_int"))
    return n.set(0, n.reshape(n.constantInts({n.attrInt("value_int")}, n.i64Type()), ArrayRef<int64_t>()));
  if (n.hasAttr("value_ints"))
    return n.set(0, n.constantInts(n.attrInts("value_ints"), n.i64Type()));
  if (n.hasAttr("value_float"))
    return n.set(0, n.scalar(n.attrFloat("value_float", 0), n.f32()));
  if (n.hasAttr("value_floats"))
    return n.set(0, n.constantFloats(n.attrFloats("value_floats"), n.f32()));
  n.refuse("holds no dense tensor of numbers, expected attribute 'value', 'value_int', 'value_ints', 'value_float' or "
           "'value_floats'");
}

const ::onnx::GraphProto &branch(Node &n, StringRef name) {
  const ::onnx::AttributeProto *attr = n.findAttr(name);
  if (!attr || attr->type() != ::onnx::AttributeProto::GRAPH)
    n.refuse("needs attribute '" + name + "' with a graph");
  return attr->g();
}

Value valueOf(Node &n, Entry &entry) {
  if (!entry.value)
    entry.value = n.importer.materialize(n, entry, "");
  return entry.value;
}

/// A constant condition leaves one branch. Otherwise both are computed and one is selected, which is right
/// because operations have no effects.
void ifOp(Node &n) {
  Value condition = n.in(0);
  if (nn::getConstantValue(condition)) {
    bool taken = n.oneInt(0, "condition");
    std::vector<Entry> results = n.importer.importBranch(n, branch(n, taken ? "then_branch" : "else_branch"));
    for (auto [i, entry] : llvm::enumerate(results))
      if (n.wants(i))
        n.importer.define(n, n.proto.output(int(i)), entry);
    return;
  }
  std::vector<Entry> yes = n.importer.importBranch(n, branch(n, "then_branch"));
  std::vector<Entry> no = n.importer.importBranch(n, branch(n, "else_branch"));
  if (yes.size() != no.size() || yes.size() < n.numOutputs())
    n.refuse("its branches have " + Twine(yes.size()) + " and " + Twine(no.size()) + " outputs");
  for (size_t i = 0; i < n.numOutputs(); ++i) {
    Value a = valueOf(n, yes[i]), b = valueOf(n, no[i]);
    if (a.getType() != b.getType())
      n.refuse("its branches give " + n.text(a) + " and " + n.text(b) +
               ", expected equal types or a condition that is known when compiling (--bind NAME=FILE)");
    n.set(i, n.select(n.reshape(condition, ArrayRef<int64_t>()), a, b));
  }
}

constexpr const char *loops = "loops are not supported; unroll the model when exporting";
constexpr const char *sequences = "sequences and optionals are not supported; export with tensors only";
constexpr const char *strings = "strings are not supported; do this before the model runs";
constexpr const char *training = "training is not supported; export for inference";
constexpr const char *dataSized = "the size of its result depends on data; do this after the model runs";
constexpr const char *random = "its result is random; give the values as an input";

constexpr OpRow rows[] = {
    {"", "Constant", constant},
    {"", "If", ifOp},
    {"", "Loop", nullptr, loops},
    {"", "Scan", nullptr, loops},
    {"", "SequenceAt", nullptr, sequences},
    {"", "SequenceConstruct", nullptr, sequences},
    {"", "SequenceEmpty", nullptr, sequences},
    {"", "SequenceErase", nullptr, sequences},
    {"", "SequenceInsert", nullptr, sequences},
    {"", "SequenceLength", nullptr, sequences},
    {"", "SequenceMap", nullptr, sequences},
    {"", "SplitToSequence", nullptr, sequences},
    {"", "ConcatFromSequence", nullptr, sequences},
    {"", "Optional", nullptr, sequences},
    {"", "OptionalGetElement", nullptr, sequences},
    {"", "OptionalHasElement", nullptr, sequences},
    {"", "StringNormalizer", nullptr, strings},
    {"", "StringConcat", nullptr, strings},
    {"", "StringSplit", nullptr, strings},
    {"", "RegexFullMatch", nullptr, strings},
    {"", "TfIdfVectorizer", nullptr, strings},
    {"ai.onnx.preview.training", "Adagrad", nullptr, training},
    {"ai.onnx.preview.training", "Adam", nullptr, training},
    {"ai.onnx.preview.training", "Gradient", nullptr, training},
    {"ai.onnx.preview.training", "Momentum", nullptr, training},
    {"", "NonZero", nullptr, dataSized},
    {"", "Unique", nullptr, dataSized},
    {"", "NonMaxSuppression", nullptr, dataSized},
    {"", "RandomNormal", nullptr, random},
    {"", "RandomNormalLike", nullptr, random},
    {"", "RandomUniform", nullptr, random},
    {"", "RandomUniformLike", nullptr, random},
    {"", "Bernoulli", nullptr, random},
    {"", "Multinomial", nullptr, random},
    {"", "RoiAlign", nullptr, "the nearest supported form is GridSample"},
    {"", "MaxRoiPool", nullptr, "the nearest supported form is GridSample"},
    {"", "Det", nullptr, "determinants are not supported"},
    {"", "DFT", nullptr, "the nearest supported form is MatMul with a constant matrix of sines"},
    {"", "STFT", nullptr, "the nearest supported form is Conv with a constant filter of sines"},
};

} // namespace

ArrayRef<OpRow> controlRows() { return rows; }

} // namespace ajour::onnx_import
