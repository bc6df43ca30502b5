//===- ErrorsTest.cpp - what is refused, and what is said ------------------------------===//
#include "ModelBuilder.h"

#include <filesystem>

using namespace ajour;
using namespace ajour::onnx_test;

namespace {

ModelBuilder relu(int64_t opset = 13) {
  ModelBuilder m(opset);
  m.input("x", {2, 3}).node("Relu", {"x"}, {"y"}).output("y");
  return m;
}

/// One node with these inputs of shape [2, 3] and attributes.
Outcome oneNode(const std::string &type, int64_t inputs, std::vector<Attr> attrs = {}, int64_t opset = 13,
                Shape shape = {2, 3}) {
  ModelBuilder m(opset);
  std::vector<std::string> names;
  for (int64_t i = 0; i < inputs; ++i) {
    names.push_back("x" + std::to_string(i));
    m.input(names.back(), std::vector<Dim>(shape.begin(), shape.end()));
  }
  m.node(type, names, {"y"}, attrs).output("y");
  return importOnly(m);
}

TEST(Errors, EveryUnsupportedNodeIsListedInOneRun) {
  ModelBuilder m(13);
  m.input("x", {2, 3});
  m.node("NonZero", {"x"}, {"a"}).lastNode().set_name("first");
  m.node("Frobnicate", {"a"}, {"b"}).node("Relu", {"b"}, {"c"}).node("Loop", {"c"}, {"d"});
  m.node("Special", {"x"}, {"e"}, {}, "com.example").output("d");
  Outcome o = importOnly(m);
  expectError(o, {"model.onnx: error: node 'first' (NonZero, #0): ", "depends on data", "node 'Frobnicate_1' (Frobnicate, #1)",
                  "node 'Loop_3' (Loop, #3)", "loops are not supported", "Special of com.example 1", "inputs: f32[2, 3]",
                  "of ai.onnx 13"});
  EXPECT_EQ(std::count(o.error.begin(), o.error.end(), '\n'), 3) << "four problems, and none for Relu:\n" << o.error;
}

TEST(Errors, ParametersForEachChannelHaveOneDimension) {
  ModelBuilder m(13);
  m.input("x", {1, 2, 3, 3}).input("scale", {}).input("bias", {2});
  m.node("InstanceNormalization", {"x", "scale", "bias"}, {"y"}).output("y");
  expectError(importOnly(m), {"InstanceNormalization", "a parameter for each channel is f32[], expected one dimension"});
}

TEST(Errors, Opsets) {
  expectError(importOnly(relu(22)), {"operator set ai.onnx 22", "newest that is known is 21", "--allow-newer-opset"});
  ImportOptions options;
  options.allowNewerOpset = true;
  EXPECT_EQ(importOnly(relu(22), options).error, "");
  expectError(importOnly(relu(5)), {"operator set ai.onnx 5", "oldest that can be read is 6"});
  ModelBuilder none = relu();
  none.proto.clear_opset_import();
  none.proto.set_ir_version(1);
  expectError(importOnly(none), {"IR version 1 and no operator set import"});
  ModelBuilder twice = relu();
  twice.proto.add_opset_import()->set_domain("ai.onnx");
  expectError(importOnly(twice), {"imports operator set ai.onnx twice"});
  ModelBuilder other = relu();
  other.proto.mutable_opset_import(0)->set_domain("com.microsoft");
  expectError(importOnly(other), {"does not import operator set ai.onnx"});
}

TEST(Errors, Graph) {
  ModelBuilder undefined(13);
  undefined.input("x", {2}).node("Add", {"x", "z"}, {"y"}).output("y");
  expectError(importOnly(undefined), {"input 'z' is not defined"});
  ModelBuilder cycle(13);
  cycle.input("x", {2}).node("Add", {"x", "b"}, {"a"}).node("Relu", {"a"}, {"b"}).output("b");
  expectError(importOnly(cycle), {"input 'b' is made by node 'Relu' (#1)", "form a cycle"});
  ModelBuilder again(13);
  again.input("x", {2}).node("Relu", {"x"}, {"x"}).output("x");
  expectError(importOnly(again), {"output 'x' has the name of another value"});
  ModelBuilder missing = relu();
  missing.output("nothing");
  expectError(importOnly(missing), {"'nothing' is not defined"});
  ModelBuilder noOutput = relu();
  noOutput.proto.mutable_graph()->clear_output();
  expectError(importOnly(noOutput), {"has no outputs"});
  ModelBuilder twice = relu();
  twice.input("x", {2});
  expectError(importOnly(twice), {"input 'x' appears twice"});
  ModelBuilder weights = relu();
  weights.initializer("w", ramp({2})).initializer("w", ramp({2}));
  expectError(importOnly(weights), {"initializer 'w' appears twice"});
  ModelBuilder extra(13);
  extra.input("x", {2}).node("Relu", {"x"}, {"y", "z"}).output("y");
  expectError(importOnly(extra), {"output 'z' is not one that this operator has"});
  ModelBuilder sparse = relu();
  sparse.proto.mutable_graph()->add_sparse_initializer()->mutable_values()->set_name("w");
  expectError(importOnly(sparse), {"'w' is sparse"});
}

TEST(Errors, Inputs) {
  ModelBuilder text = relu();
  text.input("s", {1}, ::onnx::TensorProto::STRING);
  expectError(importOnly(text), {"input 's' has elements of string"});
  ModelBuilder negative = relu();
  negative.input("s", {-7});
  expectError(importOnly(negative), {"input 's' has size -7 in dimension 0"});
  ModelBuilder rankless = relu();
  rankless.input("s", {}).proto.mutable_graph()->mutable_input(1)->mutable_type()->mutable_tensor_type()->clear_shape();
  expectError(importOnly(rankless), {"input 's' has no rank"});
  ModelBuilder sequence = relu();
  sequence.proto.mutable_graph()->add_input()->set_name("q");
  expectError(importOnly(sequence), {"input 'q' is not a tensor"});
}

TEST(Errors, Options) {
  ImportOptions dims;
  dims.dims["M"] = {1, 2};
  ModelBuilder m(13);
  m.input("x", {std::string("N")}).node("Relu", {"x"}, {"y"}).output("y");
  expectError(importOnly(m, dims), {"no dimension called 'M'", "'N'"});
  ImportOptions wrong;
  wrong.dims["N"] = {3, 2};
  expectError(importOnly(m, wrong), {"dimension 'N' is bounded by 3..2"});
  ImportOptions bind;
  bind.bindings["z"] = ramp({2});
  expectError(importOnly(m, bind), {"no input called 'z'", "'x'"});
  ImportOptions type;
  type.bindings["x"] = int64s({2}, {1, 2});
  expectError(importOnly(m, type), {"input 'x' is f32", "i64[2]"});
}

TEST(Errors, Initializers) {
  auto withTensor = [](auto change) {
    ModelBuilder m(13);
    m.input("x", {2}).initializer("w", ramp({2})).node("Add", {"x", "w"}, {"y"}).output("y");
    change(*m.proto.mutable_graph()->mutable_initializer(0));
    return importOnly(m);
  };
  using Tensor = ::onnx::TensorProto;
  expectError(withTensor([](Tensor &t) { t.set_dims(0, 3); }), {"initializer 'w' has 8 bytes", "need 12"});
  expectError(withTensor([](Tensor &t) { t.set_dims(0, -2); }), {"dimensions [-2]"});
  expectError(withTensor([](Tensor &t) { t.add_dims(int64_t(1) << 62); t.add_dims(8); }), {"no tensor can have"});
  expectError(withTensor([](Tensor &t) { t.set_data_type(Tensor::STRING); }), {"elements of string"});
  expectError(withTensor([](Tensor &t) { t.set_data_type(99); }), {"elements of type 99"});
  expectError(withTensor([](Tensor &t) { t.clear_raw_data(); t.add_float_data(1); }), {"1 values in float_data", "need 2"});
  expectError(withTensor([](Tensor &t) { t.mutable_segment(); }), {"segments"});
}

/// A model whose weight lies in another file.
ModelBuilder external(const std::string &location, const std::string &offset = "0", const std::string &length = "8") {
  ModelBuilder m(13);
  m.input("x", {2}).initializer("w", ramp({2})).node("Add", {"x", "w"}, {"y"}).output("y");
  auto *t = m.proto.mutable_graph()->mutable_initializer(0);
  t->clear_raw_data();
  t->set_data_location(::onnx::TensorProto::EXTERNAL);
  for (auto [key, value] : {std::pair("location", location), std::pair("offset", offset), std::pair("length", length)}) {
    auto *entry = t->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  return m;
}

std::string importIn(TempDir &dir, const ModelBuilder &m) {
  writeFile(dir / "model.onnx", m.proto.SerializeAsString());
  return importFile(dir / "model.onnx");
}

TEST(Errors, ExternalData) {
  TempDir dir, elsewhere;
  float values[] = {0, 1, 2, 3};
  writeFile(dir / "w.bin", std::string(reinterpret_cast<char *>(values), sizeof values));
  writeFile(elsewhere / "secret", std::string(64, 'x'));
  std::filesystem::create_symlink(elsewhere / "secret", dir / "link");
  EXPECT_EQ(importIn(dir, external("w.bin", "8")), "");
  auto refused = [&](const ModelBuilder &m, const char *part) {
    std::string error = importIn(dir, m);
    EXPECT_NE(error.find(part), std::string::npos) << "'" << part << "' in: " << error;
  };
  refused(external("../../../etc/passwd"), "expected a file inside the model's folder");
  refused(external("/etc/passwd"), "expected a file inside the model's folder");
  refused(external(""), "expected a file inside the model's folder");
  refused(external("link"), "a link that leads out");
  refused(external("absent.bin"), "not a file next to the model");
  refused(external("*/_ORT_MEM_ADDR_/*"), "not a file next to the model");
  refused(external("w.bin", "-8"), "offset '-8'");
  refused(external("w.bin", "12"), "at offset 12 of 'w.bin', which has 16");
  refused(external("w.bin", "9223372036854775807"), "at offset 9223372036854775807");
  refused(external("w.bin", "0", "4"), "needs 8 bytes of external data, found length 4");
  refused(external("w.bin", "0", "many"), "length 'many'");
}

TEST(Errors, Attributes) {
  expectError(oneNode("Softmax", 1, {{"axis", 1.0f}}), {"attribute 'axis' holds a float, expected an int"});
  expectError(oneNode("Softmax", 1, {{"axis", int64_t(2)}}), {"axis 2 is outside a tensor of rank 2"});
  expectError(oneNode("Concat", 2), {"needs attribute 'axis', which is missing"});
  expectError(oneNode("Gelu", 1, {{"approximate", std::string("fast")}}, 20), {"'approximate' is 'fast'"});
  expectError(oneNode("Mod", 2), {"'fmod' is 0"});
  expectError(oneNode("BitShift", 2, {{"direction", std::string("UP")}}), {"'direction' is 'UP'"});
  expectError(oneNode("Cast", 1, {{"to", int64_t(8)}}), {"casts to string"});
  expectError(oneNode("Cast", 1, {{"to", int64_t(17)}}), {"casts to float8e4m3fn"});
  expectError(oneNode("ReduceMean", 1, {{"axes", Int64s{0, -2}}}), {"axis 0 is given twice"});
  expectError(oneNode("MaxPool", 1), {"expected rank 3 to 5"});
  expectError(oneNode("MaxPool", 1, {}, 13, {1, 1, 4}), {"needs attribute 'kernel_shape'"});
  expectError(oneNode("MaxPool", 1, {{"kernel_shape", Int64s{2, 2}}}, 13, {1, 1, 4}), {"has 2 values, expected 1"});
  expectError(oneNode("MaxPool", 1, {{"kernel_shape", Int64s{0}}}, 13, {1, 1, 4}), {"holds 0, expected at least 1"});
  expectError(oneNode("MaxPool", 1, {{"kernel_shape", Int64s{2}}, {"auto_pad", std::string("SAME")}}, 13, {1, 1, 4}),
              {"'auto_pad' is 'SAME'"});
  expectError(oneNode("MaxPool", 1, {{"kernel_shape", Int64s{9}}}, 13, {1, 1, 4}), {"window of 9 exceeds"});
  expectError(oneNode("LpPool", 1, {{"kernel_shape", Int64s{2}}, {"p", int64_t(0)}}, 13, {1, 1, 4}), {"'p' is 0"});
  expectError(oneNode("DepthToSpace", 1, {{"blocksize", int64_t(2)}}, 13, {1, 3, 2, 2}), {"block 2 for 3 channels"});
  expectError(oneNode("Transpose", 1, {{"perm", Int64s{0, 0}}}), {"not a permutation"});
  expectError(oneNode("Flatten", 1, {{"axis", int64_t(5)}}), {"axis 5"});
  expectError(oneNode("GroupNormalization", 3, {{"num_groups", int64_t(3)}}, 21, {4, 4, 4}), {"3 groups for 4 channels"});
  expectError(oneNode("GridSample", 2, {}, 16), {"expected rank 4"});
  expectError(oneNode("Upsample", 1, {{"scales", Floats{1, -1}}}, 8), {"scale -1"});
  expectError(oneNode("Einsum", 1, {{"equation", std::string("i!->i")}}), {"holds '!'"});
  expectError(oneNode("Constant", 0), {"holds no dense tensor"});
  expectError(oneNode("ConstantOfShape", 1), {"--bind x0=FILE"});
  expectError(oneNode("Dropout", 1, {{"is_test", int64_t(0)}}, 6), {"'is_test' is 0"});
}

/// A GRU of 2 units on sequences of 3 values, with weights of these shapes.
static ModelBuilder gruModel(Shape w, Shape r, std::vector<Attr> attrs, Shape bias = {1, 12}, Shape lengths = {2}) {
  ModelBuilder m(14);
  m.input("x", {5, 2, 3}).initializer("w", ramp(w)).initializer("r", ramp(r)).initializer("b", ramp(bias));
  m.input("n", {lengths.begin(), lengths.end()}, ::onnx::TensorProto::INT32);
  m.node("GRU", {"x", "w", "r", "b", "n"}, {"y"}, attrs).output("y");
  return m;
}

TEST(Errors, Recurrent) {
  expectError(oneNode("LSTM", 1), {"needs input 2, which is missing"});
  expectError(importOnly(gruModel({1, 6, 3}, {1, 6, 2}, {{"hidden_size", int64_t(3)}})), {"'hidden_size' is 3", "'r'"});
  expectError(importOnly(gruModel({1, 6, 4}, {1, 6, 2}, {})), {"'w'", "expected [1, 6, 3]"});
  ModelBuilder wide(14);
  wide.input("x", {5, 2, 3}).input("w", {1, 6, 3}).input("r", {1, 6, int64_t(1) << 29});
  wide.node("GRU", {"x", "w", "r"}, {"y"}).output("y");
  expectError(importOnly(wide), {"has 536870912 units, at most 268435456"});
  expectError(importOnly(gruModel({1, 6, 3}, {6, 2}, {})), {"expected a sequence of rank 3 and recurrent weights"});
  expectError(importOnly(gruModel({1, 6, 3}, {1, 6, 2}, {}, {1, 6})), {"'b'", "expected [1, 12]"});
  expectError(importOnly(gruModel({1, 6, 3}, {1, 6, 2}, {}, {1, 12}, {3})), {"'n'", "one length for each"});
  expectError(importOnly(gruModel({1, 6, 3}, {1, 6, 2}, {{"direction", std::string("up")}})),
              {"'direction' is 'up'", "bidirectional"});
  expectError(importOnly(gruModel({1, 6, 3}, {1, 6, 2}, {{"activations", std::string("Tanh")}})), {"no list of names"});
  ModelBuilder named = gruModel({1, 6, 3}, {1, 6, 2}, {});
  ::onnx::AttributeProto *names = named.lastNode().add_attribute();
  names->set_name("activations");
  names->set_type(::onnx::AttributeProto::STRINGS);
  names->add_strings("Sigmoid");
  expectError(importOnly(named), {"'activations' has 1 names, expected 2"});
  names->add_strings("Sine");
  expectError(importOnly(named), {"names 'Sine', expected Sigmoid, Tanh"});
}

TEST(Errors, Operands) {
  expectError(oneNode("Add", 1), {"needs input 1, which is missing"});
  ModelBuilder shapes(13);
  shapes.input("a", {2, 3}).input("b", {4}).node("Add", {"a", "b"}, {"y"}).output("y");
  expectError(importOnly(shapes), {"shapes do not broadcast", "f32[2, 3]", "f32[4]"});
  ModelBuilder types(13);
  types.input("a", {2}).input("b", {2}, ::onnx::TensorProto::INT64).node("Add", {"a", "b"}, {"y"}).output("y");
  expectError(importOnly(types), {"element types differ"});
  ModelBuilder index(13);
  index.input("x", {3}).initializer("i", int64s({1}, {3})).node("Gather", {"x", "i"}, {"y"}).output("y");
  expectError(importOnly(index), {"takes index 3 of a dimension of 3"});
  ModelBuilder symbolic(13);
  symbolic.input("x", {std::string("N")}).initializer("s", int64s({1}, {2})).initializer("e", int64s({1}, {7}));
  symbolic.node("Slice", {"x", "s", "e"}, {"y"}).output("y");
  expectError(importOnly(symbolic), {"slices a symbolic dimension", "--dim NAME=SIZE"});
  ModelBuilder conv(13);
  conv.input("x", {1, 3, 8, 8}).initializer("w", ramp({4, 2, 3, 3})).node("Conv", {"x", "w"}, {"y"}).output("y");
  expectError(importOnly(conv), {"'Conv_0' (Conv, #0)", "1 groups", "inputs: f32[1, 3, 8, 8]"});
}

TEST(Errors, Nesting) {
  ::onnx::GraphProto inner;
  auto *node = inner.add_node();
  node->set_op_type("Relu");
  node->add_input("x");
  node->add_output("r");
  inner.add_output()->set_name("r");
  for (int depth = 0; depth < 20; ++depth) {
    ::onnx::GraphProto outer;
    auto *branch = outer.add_node();
    branch->set_op_type("If");
    branch->add_input("c");
    branch->add_output("r");
    auto *attr = branch->add_attribute();
    attr->set_name("then_branch");
    attr->set_type(::onnx::AttributeProto::GRAPH);
    *attr->mutable_g() = inner;
    outer.add_output()->set_name("r");
    inner = outer;
  }
  ModelBuilder m(13);
  m.input("x", {2}).initializer("c", booleans({}, {1}));
  *m.proto.mutable_graph()->add_node() = inner.node(0);
  m.output("r");
  expectError(importOnly(m), {"nested deeper than 16"});
}

// Attributes of few words name what was found and what is known.
TEST(Errors, AttributesThatAreNoneOfTheKnown) {
  struct Case {
    const char *type;
    int64_t inputs;
    Attr attribute;
    int64_t opset;
    Shape shape;
    const char *message;
  };
  for (const Case &c : std::initializer_list<Case>{
           {"Conv", 2, {"auto_pad", std::string("SAME")}, 13, {1, 1, 3, 3}, "attribute 'auto_pad' is 'SAME', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER"},
           {"Gelu", 1, {"approximate", std::string("erf")}, 20, {2}, "attribute 'approximate' is 'erf', expected 'none' or 'tanh'"},
           {"BitShift", 2, {"direction", std::string("UP")}, 13, {2}, "attribute 'direction' is 'UP', expected 'LEFT' or 'RIGHT'"},
           {"ScatterElements", 3, {"reduction", std::string("sub")}, 18, {2}, "attribute 'reduction' is 'sub', expected 'none', 'add', 'mul', 'max' or 'min'"},
           {"NegativeLogLikelihoodLoss", 2, {"reduction", std::string("max")}, 13, {2, 2}, "attribute 'reduction' is 'max', expected 'none', 'mean' or 'sum'"},
           {"LSTM", 3, {"direction", std::string("up")}, 14, {1, 4, 4}, "attribute 'direction' is 'up', expected forward, reverse or bidirectional"},
           {"Pad", 1, {"mode", std::string("mirror")}, 10, {2}, "attribute 'mode' is 'mirror', expected 'constant', 'reflect', 'edge' or 'wrap'"},
           {"EyeLike", 1, {"dtype", int64_t(8)}, 13, {2, 2}, "attribute 'dtype' is string"},
           {"Einsum", 1, {"equation", std::string("i1->i")}, 13, {2, 2}, "equation term 'i1' holds '1', expected letters and '...'"},
           {"Einsum", 1, {"equation", std::string("ijk->i")}, 13, {2, 2}, "equation term 'ijk' names 3 dimensions, the operand has 2"},
           {"Einsum", 1, {"equation", std::string("ii->i")}, 13, {2, 3}, "the dimensions of 'i' in f32[2, 3] differ"},
           {"Pad", 1, {"pads", Int64s{1, 2}}, 10, {2, 3}, "has 2 pads for 2 axes, expected two for each"},
           {"Split", 1, {"split", Int64s{1, 2}}, 11, {2, 3}, "has 2 sizes for 1 outputs, expected sizes that sum to 2"},
       }) {
    SCOPED_TRACE(c.message);
    expectError(oneNode(c.type, c.inputs, {c.attribute}, c.opset, c.shape), {std::string("(") + c.type + ", #0)", c.message});
  }
}

TEST(Errors, OperandsThatDoNotFit) {
  auto refused = [](const std::string &type, std::vector<std::pair<std::string, HostTensor>> constants, std::vector<Dim> shape, int64_t opset, const std::string &message,
                    std::vector<Attr> attrs = {}) {
    SCOPED_TRACE(message);
    ModelBuilder m(opset);
    m.input("x", std::move(shape));
    std::vector<std::string> inputs{"x"};
    for (const auto &[name, value] : constants) {
      m.initializer(name, value);
      inputs.push_back(name);
    }
    m.node(type, inputs, {"y"}, std::move(attrs)).output("y");
    expectError(importOnly(m), {"(" + type + ", #0)", message});
  };
  refused("Tile", {{"r", int64s({1}, {2})}}, {2, 3}, 13, "has 1 repeats for f32[2, 3]");
  refused("Tile", {{"r", int64s({2}, {2, -1})}}, {2, 3}, 13, "hold a negative number");
  refused("Add", {{"b", ramp({3})}}, {2, 3}, 6, "its operands are f32[2, 3] and f32[3], expected equal shapes since attribute 'broadcast' is not set");
  refused("Add", {{"b", ramp({3, 1})}}, {2, 3}, 6, "aligns f32[3, 1] at axis 1 of f32[2, 3], which it exceeds", {{"broadcast", int64_t(1)}, {"axis", int64_t(1)}});
  refused("Gemm", {{"b", ramp({3, 2})}, {"c", ramp({2})}}, {2, 3}, 6, "adds f32[2], expected a matrix since attribute 'broadcast' is not set");
  refused("Conv", {{"w", ramp({3, 1, 1, 1})}}, {1, 2, 3, 3}, 13, "2 groups for input f32[1, 3, 3, 2] and filter f32[3, 1, 1, 1]", {{"group", int64_t(2)}});
  refused("Pad", {{"p", int64s({3}, {1, 1, 1})}}, {2, 3}, 13, "has 3 pads for 2 axes, expected two for each");
  refused("Split", {{"s", int64s({1}, {5})}}, {2, 3}, 13, "has 1 sizes for 1 outputs, expected sizes that sum to 2");
  refused("EyeLike", {}, {2}, 13, "its input is f32[2], expected a matrix");
  refused("Resize", {{"roi", ramp({0})}, {"scales", floats({1}, {2})}}, {2, 3}, 13, "has 1 scales, expected 2");
  refused("Resize", {{"roi", ramp({0})}, {"scales", floats({2}, {-1, 2})}}, {2, 3}, 13, "has scale -1, expected a positive number");
  refused("Resize", {{"roi", ramp({0})}, {"scales", ramp({0})}, {"sizes", int64s({2}, {4, 6})}}, {2, 3}, 18,
          "attribute 'keep_aspect_ratio_policy' is 'fit', expected 'stretch', 'not_larger' or 'not_smaller'", {{"keep_aspect_ratio_policy", std::string("fit")}});
}

} // namespace
