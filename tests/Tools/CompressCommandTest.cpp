//===- CompressCommandTest.cpp - compress as a user calls it -------------------===//

#include "Commands.h"
#include "Import/ONNX/ModelBuilder.h"
#include "ToolSupport/Npy.h"
#include "Tools/TempDirectory.h"

#include <filesystem>

using namespace ajour::tools;
using ajour::onnx_test::ModelBuilder;
using testing::internal::CaptureStderr;
using testing::internal::CaptureStdout;
using testing::internal::GetCapturedStderr;
using testing::internal::GetCapturedStdout;

namespace {

/// A directory with net.onnx: y[1,8] = x[1,12] * w, and two.onnx with inputs of two sizes that are added.
struct CompressCommandTest : testing::Test {
  CompressCommandTest() : model(directory.file("net.onnx")), output(directory.file("small.onnx")) {
    ModelBuilder m(13);
    m.input("x", {1, 12}).initializer("w", ajour::onnx_test::ramp({12, 8}, -40, 1));
    m.node("MatMul", {"x", "w"}, {"y"}).lastNode().set_name("fc");
    m.output("y");
    save(m, model);
    ModelBuilder t(13);
    t.input("a", {1, 12}).input("b", {1, 8}).initializer("w", ajour::onnx_test::ramp({12, 8}, -40, 1));
    t.node("MatMul", {"a", "w"}, {"p"}).node("Add", {"p", "b"}, {"y"}).output("y");
    save(t, directory.file("two.onnx"));
    writeFile(directory.file("recipe.yaml"), std::string_view("rules: [{structure: c4n, n: 2}]\n"));
  }

  void save(const ModelBuilder &m, const std::string &path) {
    std::string bytes;
    ASSERT_TRUE(m.proto.SerializeToString(&bytes));
    writeFile(path, std::string_view(bytes));
  }

  void saveNpy(const std::string &name, std::vector<int64_t> shape) {
    HostTensor tensor = makeTensor(AJOUR_F32, std::move(shape));
    for (int64_t i = 0; i < tensor.numElements(); ++i)
      setReal(tensor, i, double((i * 7919 + i * i % 13) % 101) / 101);
    writeNpy(directory.file(name), tensor);
  }

  int call(std::vector<std::string> arguments) {
    CLI::App app("test", "ajour");
    registerCommands(app);
    arguments.insert(arguments.begin(), "ajour");
    std::vector<char *> argv;
    for (std::string &argument : arguments)
      argv.push_back(argument.data());
    CaptureStdout();
    CaptureStderr();
    int code = runProgram(app, static_cast<int>(argv.size()), argv.data());
    err = GetCapturedStderr();
    out = GetCapturedStdout();
    return code;
  }

  /// compress with these options more.
  int compress(std::vector<std::string> more, const std::string &file = "net.onnx", const std::string &recipe = "recipe.yaml") {
    std::vector<std::string> arguments{"compress", directory.file(file), "--recipe", directory.file(recipe), "-o", output};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return call(arguments);
  }

  void expectRefused(std::vector<std::string> more, const std::string &message, const std::string &file = "net.onnx",
                     const std::string &recipe = "recipe.yaml") {
    EXPECT_EQ(compress(std::move(more), file, recipe), 1);
    EXPECT_EQ(err, "error: " + message + "\n");
    EXPECT_EQ(out, "");
    EXPECT_FALSE(std::filesystem::exists(output));
  }

  TempDirectory directory;
  std::string model, output, out, err;
};

TEST_F(CompressCommandTest, WritesAModelAndReports) {
  saveNpy("many.npy", {30, 12});
  ASSERT_EQ(compress({"--calibration", directory.file("many.npy")}), 0) << err;
  EXPECT_TRUE(std::filesystem::exists(output));
  EXPECT_NE(out.find("fc"), std::string::npos) << out;
  EXPECT_NE(out.find("c4^2"), std::string::npos) << out;
  EXPECT_NE(out.find("50.0 %"), std::string::npos) << out;
  EXPECT_NE(out.find("expected us"), std::string::npos) << out;
  EXPECT_EQ(err, "");
  // What was written can be compiled.
  EXPECT_EQ(call({"inspect", output}), 0) << err;
}

TEST_F(CompressCommandTest, ManyWaysToCalibrate) {
  saveNpy("one.npy", {1, 12});
  saveNpy("flat.npy", {12});
  std::filesystem::create_directory(directory.file("folder"));
  saveNpy("folder/a.npy", {1, 12});
  saveNpy("folder/b.npy", {5, 12});
  for (std::vector<std::string> more : std::vector<std::vector<std::string>>{
           {}, {"--samples", "3", "--seed", "7"}, {"--calibration", directory.file("one.npy")},
           {"--calibration", "x=" + directory.file("flat.npy")}, {"--calibration", directory.file("folder")}})
    EXPECT_EQ(compress(more), 0) << err;
  saveNpy("b.npy", {6, 8});
  saveNpy("a.npy", {6, 12});
  EXPECT_EQ(compress({"--calibration", "a=" + directory.file("a.npy"), "--calibration", "b=" + directory.file("b.npy")},
                     "two.onnx"),
            0)
      << err;
}

TEST_F(CompressCommandTest, Refusals) {
  expectRefused({}, directory.file("none.yaml") + ": cannot open: No such file or directory", "net.onnx", "none.yaml");
  writeFile(directory.file("bad.yaml"), std::string_view("rules: [{structure: round}]"));
  expectRefused({}, "recipe '" + directory.file("bad.yaml") + "': rule 1: 'structure' is \"round\", expected dense, c4n, nm, "
                    "pattern, block, block_punched, 4x1 or unstructured", "net.onnx", "bad.yaml");
  std::filesystem::create_directory(directory.file("empty"));
  expectRefused({"--calibration", directory.file("empty")},
                directory.file("empty") + ": the folder holds no .npy, picture or .wav");
  saveNpy("a.npy", {6, 12});
  saveNpy("b.npy", {5, 8});
  expectRefused({"--calibration", "a=" + directory.file("a.npy"), "--calibration", "b=" + directory.file("b.npy")},
                directory.file("b.npy") + ": holds 5 inputs, but there are 6 of 'a'", "two.onnx");
  writeFile(directory.file("cpu.yaml"), std::string_view("rules: [{structure: 4x1, ratio: 0.9}]\ntarget: 0.5\ncpu: z80\n"));
  EXPECT_EQ(compress({}, "net.onnx", "cpu.yaml"), 1);
  EXPECT_EQ(err.rfind("error: 'cpu' is 'z80', expected one of ", 0), 0u) << err;
  saveNpy("wrong.npy", {5, 8});
  EXPECT_EQ(compress({"--calibration", directory.file("wrong.npy")}), 1);
  EXPECT_NE(err.find("wrong.npy"), std::string::npos) << err;
  EXPECT_EQ(compress({"--samples", "0"}), 2);
  EXPECT_EQ(call({"compress", model, "-o", output}), 2);
}

/// A model that cannot be imported: the importer's own lines.
TEST_F(CompressCommandTest, ModelErrors) {
  ModelBuilder m(13);
  m.input("x", {1, 12}).initializer("w", ajour::onnx_test::ramp({12, 8}));
  m.node("MatMul", {"x", "w"}, {"p"}).node("NoSuchThing", {"p"}, {"y"}).output("y");
  save(m, directory.file("odd.onnx"));
  EXPECT_EQ(compress({}, "odd.onnx"), 1);
  EXPECT_NE(err.find("NoSuchThing"), std::string::npos) << err;
  EXPECT_EQ(err.find("error: error"), std::string::npos) << err;
  EXPECT_FALSE(std::filesystem::exists(output));
}

TEST_F(CompressCommandTest, OutputsThatWouldDestroySomething) {
  saveNpy("one.npy", {1, 12});
  Bytes before = readFile(model), recipe = readFile(directory.file("recipe.yaml"));
  for (const std::string &file : {model, directory.file("recipe.yaml"), directory.file("one.npy")}) {
    output = file;
    EXPECT_EQ(compress({"--calibration", "x=" + directory.file("one.npy")}), 1);
    EXPECT_EQ(err, "error: --output " + file + ": would overwrite a file that is read; give another name\n");
  }
  EXPECT_EQ(readFile(model), before);
  EXPECT_EQ(readFile(directory.file("recipe.yaml")), recipe);
  output = directory.file("small.tflite");
  expectRefused({}, "--output " + output + ": is named like a model of another format, and .onnx is written");
  output = directory.file("none/small.onnx");
  expectRefused({}, output + ": cannot write: No such file or directory");
  std::filesystem::create_directory(directory.file("folder"));
  writeFile(directory.file("folder/config.json"), std::string_view("{}"));
  output = directory.path + "/./folder";
  EXPECT_EQ(compress({}, "folder"), 1);
  EXPECT_EQ(err, "error: --output " + output + ": would overwrite the model that is read; give another folder\n");
  output = model;
  EXPECT_EQ(compress({}, "folder"), 1);
  EXPECT_EQ(err, "error: --output " + output + ": is a file, expected a folder like the model\n");
}

TEST_F(CompressCommandTest, CalibrationThatSaysNothing) {
  saveNpy("none.npy", {0});
  saveNpy("nothing.npy", {0, 12});
  expectRefused({"--calibration", directory.file("none.npy")}, directory.file("none.npy") + ": has shape 0, expected 1x12 for input 'x'");
  expectRefused({"--calibration", directory.file("nothing.npy")}, directory.file("nothing.npy") + ": has shape 0x12, expected 1x12 for input 'x'");
  HostTensor tensor = makeTensor(AJOUR_F32, {1, 12});
  setReal(tensor, 5, std::numeric_limits<double>::quiet_NaN());
  writeNpy(directory.file("nan.npy"), tensor);
  expectRefused({"--calibration", directory.file("nan.npy")}, directory.file("nan.npy") + ": holds a value that is not finite, which says nothing of "
                "what weights are used for; give inputs as the model gets them");
  expectRefused({}, "'" + directory.file("nowhere.onnx") + "' cannot be read: there is no such file", "nowhere.onnx");
}

} // namespace
