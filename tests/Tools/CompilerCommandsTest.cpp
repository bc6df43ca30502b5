//===- CompilerCommandsTest.cpp - compile and inspect as a user calls them ----===//

#include "Commands.h"
#include "Import/ONNX/ModelBuilder.h"
#include "Import/TFLite/Builder.h"
#include "ToolSupport/Npy.h"
#include "Tools/TempDirectory.h"

#include <sys/stat.h>

using namespace ajour::tools;
using ajour::onnx_test::ModelBuilder;
using testing::internal::CaptureStderr;
using testing::internal::CaptureStdout;
using testing::internal::GetCapturedStderr;
using testing::internal::GetCapturedStdout;

namespace {

struct Outcome {
  int code;
  std::string out, err;
};

/// A directory with net.onnx: y[N,8] = Relu(x[N,4] * w + b), Sigmoid of it, and flags[2] that nothing reads.
struct CompilerCommands : testing::Test {
  CompilerCommands() : model(directory.file("net.onnx")), artifact(directory.file("net.ajour")) {
    ModelBuilder m(13);
    m.input("x", {std::string("N"), 4}).input("flags", {2});
    m.initializer("w", ajour::onnx_test::ramp({4, 8})).initializer("b", ajour::onnx_test::ramp({8}));
    m.node("MatMul", {"x", "w"}, {"p"}).lastNode().set_name("fc");
    m.node("Add", {"p", "b"}, {"s"}).node("Relu", {"s"}, {"r"}).node("Sigmoid", {"r"}, {"q"});
    m.node("Relu", {"q"}, {"y"}).output("y");
    save(m, model);
  }

  void save(const ModelBuilder &m, const std::string &path) {
    std::string bytes;
    ASSERT_TRUE(m.proto.SerializeToString(&bytes));
    writeFile(path, std::string_view(bytes));
  }

  Outcome call(std::vector<std::string> arguments) {
    CLI::App app("test", "ajour");
    registerCommands(app);
    arguments.insert(arguments.begin(), "ajour");
    std::vector<char *> argv;
    for (std::string &argument : arguments)
      argv.push_back(argument.data());
    CaptureStdout();
    CaptureStderr();
    int code = runProgram(app, static_cast<int>(argv.size()), argv.data());
    std::string err = GetCapturedStderr();
    return {code, GetCapturedStdout(), err};
  }

  /// compile fails with exit code 1, this on stderr as whole lines, nothing on stdout and no file of the output's name.
  void expectRefused(const std::string &path, std::vector<std::string> more, const std::string &message) {
    std::vector<std::string> arguments = {"compile", path, "-o", artifact};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Outcome outcome = call(arguments);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err, message);
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(std::filesystem::exists(artifact));
  }

  TempDirectory directory;
  std::string model, artifact;
};

TEST_F(CompilerCommands, CompiledModelsRun) {
  Outcome compiled = call({"compile", model, "-o", artifact});
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  EXPECT_EQ(compiled.out, "");
  HostTensor x = makeTensor(AJOUR_F32, {1, 4});
  setReal(x, 0, -1000);
  setReal(x, 1, 1000);
  writeNpy(directory.file("x.npy"), x);
  writeNpy(directory.file("flags.npy"), makeTensor(AJOUR_F32, {2}));
  Outcome outcome = call({"run", artifact, "-i", "x=" + directory.file("x.npy"), "-i", "flags=" + directory.file("flags.npy")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "y f32 1x8 1 1 1 1 1 1 1 1\n");
}

/// y = Transpose(Conv(x)), which moves data at both borders: the convolution's operand and the output.
TEST_F(CompilerCommands, ReportsWhatRemainsOfLayouts) {
  ModelBuilder m(13);
  m.input("x", {1, 2, 4, 4}).initializer("w", ajour::onnx_test::ramp({3, 2, 3, 3}));
  m.node("Conv", {"x", "w"}, {"c"}, {{"pads", ajour::onnx_test::Int64s{1, 1, 1, 1}}}).lastNode().set_name("conv");
  m.node("Transpose", {"c"}, {"y"}, {{"perm", ajour::onnx_test::Int64s{0, 1, 3, 2}}}).output("y");
  save(m, model);
  Outcome text = call({"compile", model, "-o", artifact, "--cpu", "avx2,neon", "--report", "-"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("model net.onnx\n\n[layout]\nimported_ops 3\nimported_bytes 512\nimported_implied_ops 2\n"
                          "imported_implied_bytes 320\n"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("the input stays as the user passes it"), std::string::npos) << text.out;
  std::string file = directory.file("report.json");
  EXPECT_EQ(call({"compile", model, "-o", artifact, "--cpu", "avx2,neon", "--report", file}).out, "");
  auto bytes = readFile(file);
  std::string json(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  EXPECT_NE(json.find("\"imported_implied_ops\": 2"), std::string::npos) << json;
  Outcome wrong = call({"compile", model, "-o", artifact, "--emit", "nn", "--report", "-"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("--report: is written of what is compiled whole, not with --emit nn"), std::string::npos) << wrong.err;
}

/// total' = total + x, of three numbers, as a recurrent layer whose state is a variable.
static std::string accumulator() {
  using namespace ajour::tflite;
  ajour::test::TFLiteBuilder b;
  int x = b.tensor("x", TensorType::FLOAT32, {1, 1}), y = b.tensor("y", TensorType::FLOAT32, {1, 1});
  int one = b.constant<float>("one", TensorType::FLOAT32, {1, 1}, {1}), zero = b.constant<float>("zero", TensorType::FLOAT32, {1}, {0});
  int total = b.tensor("total", TensorType::FLOAT32, {1, 1});
  b.at(total).is_variable = true;
  b.op(Builtin::RNN, {x, one, one, zero, total}, {y}, RnnT());
  b.io({x}, {y});
  return b.bytes();
}

TEST_F(CompilerCommands, StateGoesOnAlongASequence) {
  std::string net = directory.file("total.tflite");
  writeFile(net, std::string_view(accumulator()));
  EXPECT_NE(call({"inspect", net}).out.find("state total f32 1x1\n"), std::string::npos);
  ASSERT_EQ(call({"compile", net, "-o", artifact}).code, 0);
  Outcome inspected = call({"inspect", artifact, "--memory", "-t", "1"});
  EXPECT_NE(inspected.out.find("state total f32 1x1\n"), std::string::npos) << inspected.out;
  EXPECT_NE(inspected.out.find("state_bytes 256\n"), std::string::npos) << inspected.out;
  HostTensor frames = makeTensor(AJOUR_F32, {3, 1, 1});
  for (int i = 0; i < 3; ++i)
    setReal(frames, i, 10 * (i + 1));
  std::string input = directory.file("frames.npy");
  writeNpy(input, frames);
  EXPECT_EQ(call({"run", artifact, "-i", input, "--sequence"}).out, "y f32 3x1x1 10 30 60\n");
  // A file without the further dimension is one run.
  writeNpy(directory.file("one.npy"), makeTensor(AJOUR_F32, {1, 1}));
  EXPECT_EQ(call({"run", artifact, "-i", directory.file("one.npy"), "--sequence"}).out, "y f32 1x1x1 0\n");
  EXPECT_EQ(call({"run", artifact, "-i", input, "--sequence", "--repeat", "2"}).code, 2);
  Outcome wrong = call({"run", artifact, "-i", input});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.err.find("has shape 3x1x1, expected 1x1 for input 'x'"), std::string::npos) << wrong.err;

  Outcome verified = call({"verify", net});
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_NE(verified.out.find("call 3 of 3\n"), std::string::npos) << verified.out;
  EXPECT_NE(verified.out.find("output state total"), std::string::npos) << verified.out;
  // Only levels that code is made for; the table names them.
  EXPECT_NE(call({"verify", net, "--cpu", "avx2"}).out.find(" avx2 "), std::string::npos);
  Outcome foreign = call({"verify", net, "--cpu", "neon,dotprod"});
  EXPECT_NE(foreign.code, 0);
  EXPECT_NE(foreign.err.find("this machine runs none of the code levels asked for: neon, dotprod; it runs avx2"), std::string::npos) << foreign.err;
  EXPECT_EQ(call({"verify", net, "--calls", "1"}).out.find("call 1"), std::string::npos);
}

TEST_F(CompilerCommands, SequencesOfUnequalLengthAreRefused) {
  ModelBuilder m(13);
  m.input("a", {2}).input("b", {2}).node("Add", {"a", "b"}, {"y"}).output("y");
  save(m, model);
  writeNpy(directory.file("a.npy"), makeTensor(AJOUR_F32, {3, 2}));
  writeNpy(directory.file("b.npy"), makeTensor(AJOUR_F32, {4, 2}));
  Outcome outcome = call({"run", model, "-i", "a=" + directory.file("a.npy"), "-i", "b=" + directory.file("b.npy"), "--sequence"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("b.npy: has a sequence of 4, another file one of 3"), std::string::npos) << outcome.err;
}

TEST_F(CompilerCommands, FilesThatAreNoModels) {
  std::string other = directory.file("net.pb"), none = directory.file("none.onnx"), empty = directory.file("empty.tflite");
  writeFile(other, "what");
  writeFile(empty, "");
  expectRefused(other, {},
                other + ": error: is of no known format: neither its content nor its name is that of an ONNX (.onnx), TFLite "
                        "(.tflite), GGUF (.gguf) or safetensors (.safetensors) model\n");
  expectRefused(none, {}, none + ": error: cannot be read: No such file or directory\n");
  expectRefused(empty, {}, empty + ": error: is empty, expected an ONNX, TFLite, GGUF or safetensors model\n");
  expectRefused(directory.path, {}, directory.path + ": error: is a directory, expected a file\n");
}

TEST_F(CompilerCommands, NamesThatTheModelLacks) {
  expectRefused(model, {"--dim", "M=2"}, model + ": error: has no dimension called 'M'; its dimensions are 'N'\n");
  writeNpy(directory.file("b.npy"), makeTensor(AJOUR_F32, {1}));
  expectRefused(model, {"--bind", "z=" + directory.file("b.npy")},
                model + ": error: has no input called 'z' to bind; its inputs are 'x', 'flags'\n");
  expectRefused(model, {"--bind", "flags=" + directory.file("b.npy")},
                model + ": error: input 'flags' is f32[2], the value bound to it is f32[1]\n");
  std::string none = directory.file("none.npy");
  expectRefused(model, {"--bind", "flags=" + none}, "error: " + none + ": cannot open: No such file or directory\n");
}

TEST_F(CompilerCommands, TFLiteNamesThatTheModelLacks) {
  std::string path = directory.file("net.tflite");
  ajour::test::TFLiteBuilder b;
  int x = b.tensor("x", ajour::tflite::TensorType::FLOAT32, {1, 4}), y = b.tensor("y", ajour::tflite::TensorType::FLOAT32, {1, 4});
  b.op(ajour::tflite::Builtin::RELU, {x}, {y});
  b.io({x}, {y});
  writeFile(path, std::string_view(b.bytes()));
  expectRefused(path, {"--dim", "M=2"}, path + ": error: no open dimension is called 'M'; the model has none\n");
  writeNpy(directory.file("b.npy"), makeTensor(AJOUR_F32, {1}));
  expectRefused(path, {"--bind", "z=" + directory.file("b.npy")},
                path + ": error: no input is called 'z' to bind; inputs are 'x'\n");
}

TEST_F(CompilerCommands, EveryUnsupportedNodeIsOneLine) {
  ModelBuilder m(13);
  m.input("x", {2, 3});
  m.node("NonZero", {"x"}, {"a"}).node("Relu", {"a"}, {"b"}).node("Frobnicate", {"b"}, {"c"});
  m.node("Special", {"x"}, {"y"}, {}, "com.example").output("c").output("y");
  std::string path = directory.file("bad.onnx");
  save(m, path);
  for (const char *command : {"compile", "inspect", "verify"}) {
    std::vector<std::string> arguments = {command, path};
    if (std::string(command) == "compile")
      arguments.insert(arguments.end(), {"-o", artifact});
    Outcome outcome = call(arguments);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 3) << outcome.err;
    for (const char *node : {"node 'NonZero_0' (NonZero, #0)", "node 'Frobnicate_2' (Frobnicate, #2)", "node 'Special_3' (Special, #3)"})
      EXPECT_NE(outcome.err.find(path + ": error: " + node + ": "), std::string::npos) << node << "\n" << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(artifact));
  }
}

TEST_F(CompilerCommands, OutputsThatCannotBeWritten) {
  std::string nowhere = directory.file("nowhere/net.ajour");
  Outcome outcome = call({"compile", model, "-o", nowhere});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "error: " + nowhere + ": cannot write: No such file or directory\n");
  outcome = call({"compile", model, "-o", directory.path});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "error: " + directory.path + ": cannot write: Is a directory\n");
  outcome = call({"compile", model, "--emit", "nn", "-o", nowhere});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "error: " + nowhere + ": cannot write: No such file or directory\n");
}

TEST_F(CompilerCommands, OutputsThatWouldDestroySomething) {
  Bytes before = readFile(model);
  std::string text = ": would overwrite a file that is read; give another name\n", weights = directory.file("net.onnx.data");
  std::vector<std::string> compile = {"compile", model, "--bind", "flags=" + directory.file("flags.npy")};
  auto refusal = [&](std::vector<std::string> more) {
    more.insert(more.begin(), compile.begin(), compile.end());
    Outcome outcome = call(more);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  writeNpy(directory.file("flags.npy"), makeTensor(AJOUR_F32, {2}));
  EXPECT_EQ(refusal({"-o", model}), "error: --output " + model + text);
  EXPECT_EQ(refusal({"-o", model, "--emit", "nn"}), "error: --output " + model + text);
  EXPECT_EQ(refusal({"-o", directory.file("flags.npy")}), "error: --output " + directory.file("flags.npy") + text);
  EXPECT_EQ(refusal({"-o", artifact, "--report", model}), "error: --report " + model + text);
  EXPECT_EQ(refusal({"-o", artifact, "--report", artifact}),
            "error: --report " + artifact + ": would overwrite what --output writes; give another name\n");
  EXPECT_EQ(refusal({"-o", artifact, "--report", directory.file("none/r.txt")}),
            "error: " + directory.file("none/r.txt") + ": cannot write: No such file or directory\n");
  writeFile(weights, std::string_view("weights"));
  EXPECT_EQ(refusal({"-o", weights}), "error: --output " + weights + ": is there and is no artifact; give another name, or remove it\n");
  EXPECT_EQ(readFile(model), before);
  EXPECT_EQ(fileBytes(weights), 7u);
  EXPECT_FALSE(std::filesystem::exists(artifact));
  // A name of one's own, over nothing, over an empty file and over an artifact.
  std::string own = directory.file("own");
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(call({"compile", model, "-o", own}).code, 0);
  writeFile(own, std::string_view(""));
  EXPECT_EQ(call({"compile", model, "-o", own}).code, 0);
}

TEST_F(CompilerCommands, NamesOfNodesCannotFeignMessages) {
  ModelBuilder m(13);
  m.input("x", {4}).node("Frob\nicate", {"x"}, {"y"}).lastNode().set_name("a\n\x1b[31mb");
  m.output("y");
  save(m, directory.file("feign.onnx"));
  Outcome outcome = call({"compile", directory.file("feign.onnx"), "-o", artifact});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("node 'a\\x0a\\x1b[31mb' (Frob\\x0aicate, #0)"), std::string::npos) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST_F(CompilerCommands, VerifyTakesNumbersWithinBounds) {
  for (std::vector<std::string> more : std::vector<std::vector<std::string>>{{"--tolerance", "nan"}, {"--calls", "1000001"}, {"--rows", "-1"}, {"--seed", "-1"}, {"--steps", "-1"}}) {
    more.insert(more.begin(), {"verify", model});
    EXPECT_EQ(call(more).code, 2) << more[2];
  }
}

TEST_F(CompilerCommands, TokenizeNeedsAText) {
  Outcome outcome = call({"tokenize", model});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "error: TEXT: is missing, as are --file and --decode; give one of them\nrun 'ajour tokenize --help' for the options\n");
}

TEST_F(CompilerCommands, InputsOfLanguageModelsAreNotBound) {
  writeNpy(directory.file("t.npy"), makeTensor(AJOUR_I64, {1}));
  writeFile(directory.file("m.gguf"), std::string_view("GGUF and more of it"));
  expectRefused(directory.file("m.gguf"), {"--bind", "tokens=" + directory.file("t.npy")},
                directory.file("m.gguf") + ": error: is a language model, whose inputs cannot be made constants; leave out 'tokens'\n");
}

TEST_F(CompilerCommands, CommandLinesThatAreWrong) {
  for (std::vector<std::string> arguments : std::vector<std::vector<std::string>>{
           {"compile"},
           {"compile", model},
           {"compile", model, "-o", artifact, "--dim", "N"},
           {"compile", model, "-o", artifact, "--dim", "N=x"},
           {"compile", model, "-o", artifact, "--dim", "N=1", "--dim", "N=2"},
           {"compile", model, "-o", artifact, "--bind", "flags"},
           {"compile", model, "-o", artifact, "--emit", "elf"},
           {"compile", model, "-o", artifact, "--cpu", "sse"},
           {"compile", model, "-o", artifact, "-O", "4"},
           {"inspect", model, "--memory"},
           {"inspect", artifact, "--sparsity"},
           {"inspect", artifact, "--dim", "N=1"}}) {
    Outcome outcome = call(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments.back();
    EXPECT_NE(outcome.err, "");
    EXPECT_FALSE(std::filesystem::exists(artifact));
  }
  EXPECT_NE(call({"inspect", model, "--memory"}).err.find("--memory"), std::string::npos);
  EXPECT_NE(call({"inspect", artifact, "--dim", "N=1"}).err.find("is for models"), std::string::npos);
}

TEST_F(CompilerCommands, TargetsAndLevelsAreTakenTogether) {
  // Both architectures in one file: it runs here.
  ASSERT_EQ(call({"compile", model, "-o", artifact, "--target", "host,aarch64-linux"}).code, 0);
  EXPECT_EQ(call({"inspect", artifact}).code, 0);
  // A level that is named twice is made once.
  ASSERT_EQ(call({"compile", model, "-o", artifact, "--cpu", "avx2"}).code, 0);
  uint64_t once = fileBytes(artifact);
  ASSERT_EQ(call({"compile", model, "-o", artifact, "--cpu", "avx2,avx2"}).code, 0);
  EXPECT_EQ(fileBytes(artifact), once);
  std::filesystem::remove(artifact);
  Outcome outcome = call({"compile", model, "-o", artifact, "--target", "aarch64-linux", "--cpu", "avx2"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("none of these code levels belongs to a target of --target"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(artifact));
}

TEST_F(CompilerCommands, InspectPrintsWhatAModelHas) {
  Outcome outcome = call({"inspect", model});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out, "source net.onnx\ninput x f32 N(1..)x4\ninput flags f32 2\noutput y f32 N(1..)x8\n"
                         "parameters 40\nparameter_bytes 160\nmacs (N * 32)\n"
                         "nodes 5\nnode_type Relu 2\nnode_type Add 1\nnode_type MatMul 1\nnode_type Sigmoid 1\n"
                         "ops 5\nop_type unary 3\nop_type binary 1\nop_type matmul 1\n");
  writeNpy(directory.file("flags.npy"), makeTensor(AJOUR_F32, {2}));
  outcome = call({"inspect", model, "--ops", "--dim", "N=3", "--bind", "flags=" + directory.file("flags.npy")});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out.find("flags"), std::string::npos);
  for (const char *line : {"\ninput x f32 3x4\n", "\nmacs 96\n",
                           "\nop 0 matmul (f32[3, 4], f32[4, 8]) -> f32[3, 8]: node 'fc' (MatMul, #0)\n",
                           "\nop 4 unary (f32[3, 8]) -> f32[3, 8]: node 'Relu_4' (Relu, #4)\n"})
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << outcome.out;
  outcome = call({"inspect", model, "--dim", "N=2..64"});
  EXPECT_NE(outcome.out.find("input x f32 N(2..64)x4\n"), std::string::npos) << outcome.out;
}

TEST_F(CompilerCommands, InspectTellsHowWeightsAreMade) {
  Outcome outcome = call({"inspect", model, "--sparsity", "--dim", "N=3"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char *line : {"\nmacs 96\n", "\n[weights]\nlayers 1\n", "\nlayers (1)\n", "\nother_structures (", "\n  fc,Add_1 8x4 "})
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << outcome.out;
  EXPECT_EQ(call({"inspect", model}).out.find("[weights]"), std::string::npos);
}

TEST_F(CompilerCommands, InspectTellsQuantisation) {
  std::string path = directory.file("net.tflite");
  ajour::test::TFLiteBuilder b;
  int x = b.tensor("x", ajour::tflite::TensorType::INT8, {1, 4}), y = b.tensor("y", ajour::tflite::TensorType::INT8, {1, 4});
  b.quantize(x, {0.5f}, {-3});
  b.quantize(y, {0.5f}, {-3});
  b.op(ajour::tflite::Builtin::RELU, {x}, {y});
  b.io({x}, {y});
  writeFile(path, std::string_view(b.bytes()));
  Outcome outcome = call({"inspect", path, "--ops"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char *line : {"input x i8 1x4 scale 0.5 zero_point -3\n", "output y i8 1x4 scale 0.5 zero_point -3\n",
                           "node_type RELU 1\n", "macs 0\n", " (RELU, #0)\n"})
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << outcome.out;
}

TEST_F(CompilerCommands, TokenizeShowsTokensAndText) {
  std::string file = directory.file("tokenizer.json");
  writeFile(file, std::string_view(R"({"added_tokens": [{"id": 3, "content": "<s>", "special": true}],
      "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]},
      "model": {"type": "BPE", "vocab": {"a": 0, "\n": 1, "a\n": 2}, "merges": ["a \n"]}})"));
  EXPECT_EQ(call({"tokenize", file, "aa\n"}).out, "0 2\n");
  EXPECT_EQ(call({"tokenize", file, "aa\n", "--add-special", "--pieces"}).out, "3 \"<s>\"\n0 \"a\"\n2 \"a\\x0a\"\n");
  EXPECT_EQ(call({"tokenize", file, "<s>a", "--special"}).out, "3 0\n");
  EXPECT_EQ(call({"tokenize", file, "--decode", "3,0,0"}).out, "aa\n");
  EXPECT_EQ(call({"tokenize", file, "--decode", "3,0", "--special"}).out, "<s>a\n");
  std::string text = directory.file("text");
  writeFile(text, std::string_view("aaa"));
  EXPECT_EQ(call({"tokenize", file, "--file", text}).out, "0 0 0\n");
  Outcome outcome = call({"tokenize", file, "--decode", "9"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "error: " + file + ": there is no token 9, the vocabulary has 4\n");
  EXPECT_EQ(call({"tokenize", model, "a"}).err, "error: " + model + ": is neither a GGUF file nor a tokenizer.json\n");
}

TEST_F(CompilerCommands, GenerateTakesLanguageModels) {
  EXPECT_NE(call({"generate", model}).err.find("is no language model"), std::string::npos);
  EXPECT_EQ(call({"generate", model, "--stop", ""}).code, 2);
  std::string folder = directory.file("hf");
  ASSERT_EQ(mkdir(folder.c_str(), 0777), 0);
  writeFile(folder + "/config.json", std::string_view(R"({"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 2,
      "num_attention_heads": 1, "vocab_size": 2, "max_position_embeddings": 8})"));
  Outcome outcome = call({"compile", folder, "-o", artifact});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find(folder + "/model.safetensors: cannot be read"), std::string::npos) << outcome.err;
  EXPECT_EQ(call({"compile", folder, "-o", artifact, "--dim", "batch=1..2"}).err,
            folder + ": error: has no dimension called 'batch'; its dimensions are 'tokens', 'length'\n");
  EXPECT_EQ(call({"compile", folder, "-o", artifact, "--dim", "length=1..9"}).err,
            folder + ": error: the dimension 'length' goes from 1 to at most 8, the model's context; found 1..9\n");
  writeFile(folder + "/config.json", std::string_view(R"({"model_type": "nosuch"})"));
  EXPECT_EQ(call({"compile", folder, "-o", artifact}).err.find(folder + ": error: config.json: model_type is 'nosuch', an architecture that is not known; known are llama, mistral, "), 0u);
}

} // namespace
