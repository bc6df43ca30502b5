//===- CommandsTest.cpp - run, inspect and bench as a user calls them -----===//

#include "Runtime/Fixture.h"
#include "ToolSupport/Commands.h"
#include "ToolSupport/Npy.h"
#include "Tools/TempDirectory.h"

#include <nlohmann/json.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ajour::tools;
using testing::internal::CaptureStderr;
using testing::internal::CaptureStdout;
using testing::internal::GetCapturedStderr;
using testing::internal::GetCapturedStdout;

namespace {

struct Outcome {
  int code;
  std::string out, err;
};

/// A directory with affine.ajour, z[N,4] = (x[N,4] + y[N,4]) * {1, 2, 3, 4}, and files for its inputs with N = 2.
struct Commands : testing::Test {
  Commands() : artifact(directory.file("affine.ajour")) {
    std::string bytes = ajour::test::makeAffine().bytes();
    writeFile(artifact, std::string_view(bytes));
    for (const char *name : {"x", "y"}) {
      HostTensor tensor = makeTensor(AJOUR_F32, {2, 4});
      for (int64_t i = 0; i < 8; ++i)
        setReal(tensor, i, *name == 'x' ? static_cast<double>(i) : 0.5);
      writeNpy(directory.file(std::string(name) + ".npy"), tensor);
    }
  }

  Outcome call(std::vector<std::string> arguments, const CommandHooks &hooks = {}) {
    CLI::App app("test", "program");
    app.require_subcommand(1);
    registerRuntimeCommands(app, hooks);
    arguments.insert(arguments.begin(), "program");
    std::vector<char *> argv;
    for (std::string &argument : arguments)
      argv.push_back(argument.data());
    CaptureStdout();
    CaptureStderr();
    int code = runProgram(app, static_cast<int>(argv.size()), argv.data());
    std::string err = GetCapturedStderr();
    return {code, GetCapturedStdout(), err};
  }

  /// run with both inputs and these further arguments.
  Outcome run(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"run",     artifact, "--input", "x=" + directory.file("x.npy"),
                                          "--input", "y=" + directory.file("y.npy")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return call(arguments);
  }

  TempDirectory directory;
  std::string artifact;
};

TEST_F(Commands, RunPrintsOneLineForEachOutput) {
  Outcome outcome = run();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "z f32 2x4 0.5 3 7.5 14 4.5 11 19.5 30\n");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Commands, RunRanksEveryRow) {
  writeFile(directory.file("labels.txt"), "ant\nbee\ncat\nbig dog\n");
  Outcome outcome = run({"--top", "2", "--labels", directory.file("labels.txt")});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "3 14 big dog\n2 7.5 cat\n3 30 big dog\n2 19.5 cat\n");
  EXPECT_EQ(run({"--top", "1"}).out, "3 14\n3 30\n");
  EXPECT_EQ(run({"--top", "1", "--top-output", "z"}).out, "3 14\n3 30\n");
  Outcome wrong = run({"--top", "1", "--top-output", "q"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_EQ(wrong.err, "error: --top-output q: the model's outputs are 'z'\n");
}

TEST_F(Commands, RunWritesOutputsAsFiles) {
  EXPECT_EQ(run({"--output", directory.file("out")}).code, 0);
  HostTensor z = readNpy(directory.file("out/z.npy"));
  EXPECT_EQ(z.shape, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(getReal(z, 7), 30);
}

TEST_F(Commands, RunTakesRawFilesAndDims) {
  writeFile(directory.file("x.bin"), std::string(8, '\1'));
  Outcome outcome = call({"run", artifact, "--input", "x=" + directory.file("x.bin") + ":i8", "--input",
                          "y=" + directory.file("y.npy"), "--dim", "N=2"});
  EXPECT_EQ(outcome.out, "z f32 2x4 1.5 3 4.5 6 1.5 3 4.5 6\n");
  Outcome wrong = run({"--dim", "M=2"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_EQ(wrong.err, "error: --dim M=2: the model has no such dimension; it has N\n");
  EXPECT_EQ(run({"--dim", "N"}).code, 2);
}

TEST_F(Commands, OptionsMayComeBeforeTheFile) {
  Outcome outcome = call({"run", "--input", "x=" + directory.file("x.npy"), "--input", "y=" + directory.file("y.npy"), "--dim", "N=2", artifact});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, run().out);
}

TEST_F(Commands, RunRepeatsAndProfilesOnStderr) {
  Outcome outcome = run({"--repeat", "3", "--profile"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, run().out);
  EXPECT_EQ(outcome.err.find("ran 3 times, median "), 0u);
  EXPECT_NE(outcome.err.find("Add_0"), std::string::npos);
  std::string trace = directory.file("trace.json");
  EXPECT_EQ(run({"--profile=" + trace}).err, "");
  Bytes text = readFile(trace);
  EXPECT_TRUE(nlohmann::json::accept(reinterpret_cast<const char *>(text.data()),
                                     reinterpret_cast<const char *>(text.data()) + text.size()));
}

TEST_F(Commands, ExitCodesAndMessages) {
  Outcome missing = call({"run", artifact, "--input", "x=" + directory.file("x.npy")});
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.out, "");
  EXPECT_EQ(missing.err, "error: input 'y' (f32 ?x4) has no file; give --input y=FILE\n");
  Outcome none = call({"run", directory.file("none.ajour")});
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.err.find("none.ajour"), std::string::npos);
  EXPECT_EQ(call({"run"}).code, 2);
  EXPECT_EQ(call({"run", artifact, "--thraeds", "2"}).code, 2);
  EXPECT_EQ(call({"run", artifact, "--threads", "0"}).code, 2);
  EXPECT_EQ(call({"run", artifact, "--labels", "f"}).code, 2);
  EXPECT_EQ(call({}).code, 2);
  EXPECT_EQ(call({}).err.find("error: a subcommand is required"), 0u);
  Outcome help = call({"run", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("--input"), std::string::npos);
}

TEST_F(Commands, InputsOfUnequalSizeAreRefused) {
  writeNpy(directory.file("y.npy"), makeTensor(AJOUR_F32, {3, 4}));
  Outcome outcome = run();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err.find("error: "), 0u);
}

TEST_F(Commands, InspectPrintsWhatIsThere) {
  Outcome outcome = call({"inspect", artifact, "--memory", "--ops", "--threads", "1"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char *line : {"source affine.onnx\n", "compiler 0.1.0\n", "dispatches 2\n", "input x f32 N(0..64)x4\n",
                           "input y f32 N(0..64)x4\n", "output z f32 N(0..64)x4\n", "weight_bytes 16\n", "arena_bytes ",
                           "dispatch 0 sum elementwise ", ": Add_0\n", ": Mul_1, Mul_2\n"})
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << outcome.out;
}

TEST_F(Commands, InspectCountsMemoryAtSizes) {
  auto bytesOf = [&](std::vector<std::string> more, const std::string &what) {
    std::vector<std::string> arguments = {"inspect", artifact, "--memory", "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Outcome outcome = call(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    size_t at = outcome.out.find("\n" + what + " ");
    return at == std::string::npos ? -1LL : std::stoll(outcome.out.substr(at + what.size() + 2));
  };
  // Inputs and output are N x 4 floats each, N at most 64.
  long long most = bytesOf({}, "io_bytes"), two = bytesOf({"--dim", "N=2"}, "io_bytes");
  EXPECT_GE(most, 3 * 64 * 16);
  EXPECT_GE(two, 3 * 2 * 16);
  EXPECT_LT(two, most / 4);
  EXPECT_EQ(bytesOf({"--dim", "N=2"}, "total_bytes") - bytesOf({"--dim", "N=2"}, "session_bytes"),
            bytesOf({}, "total_bytes") - bytesOf({}, "session_bytes"));
  EXPECT_EQ(call({"inspect", artifact, "--dim", "N=2"}).code, 2);
  Outcome outcome = call({"inspect", artifact, "--memory", "--dim", "M=2"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "error: --dim M=2: the model has no such dimension\n");
  EXPECT_EQ(call({"inspect", artifact, "--memory", "--dim", "N=65"}).code, 1);
}

TEST_F(Commands, BenchMeasuresAndReports) {
  std::string json = directory.file("r.json"), plot = directory.file("r.svg");
  Outcome outcome =
      call({"bench", artifact, "--dim", "N=8", "--threads", "1,2", "--repeat", "5", "--json", json, "--plot", plot});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 3);
  Bytes text = readFile(json);
  auto root = nlohmann::json::parse(reinterpret_cast<const char *>(text.data()),
                                    reinterpret_cast<const char *>(text.data()) + text.size());
  ASSERT_EQ(root["results"].size(), 2u);
  const auto &result = root["results"][1];
  EXPECT_EQ(result["engine"], "ajour");
  EXPECT_EQ(result["model"], "affine.ajour");
  EXPECT_EQ(result["threads"], 2);
  EXPECT_EQ(result["metric"], "latency");
  EXPECT_EQ(result["unit"], "ms");
  EXPECT_GE(result["runs"], 5);
  EXPECT_GT(result["median"], 0);
  EXPECT_LE(result["p10"], result["median"]);
  EXPECT_LE(result["median"], result["p90"]);
  EXPECT_GT(result["load_ms"], 0);
  EXPECT_GT(result["peak_bytes"], 0);
  EXPECT_EQ(result["file_bytes"], fileBytes(artifact));
  EXPECT_TRUE(result["bits_per_weight"].is_null());
  EXPECT_FALSE(root["machine"]["cpu_level"].get<std::string>().empty());
  EXPECT_GT(fileBytes(plot), 0u);
}

TEST_F(Commands, BenchSaysWhatItNeeds) {
  Outcome outcome = call({"bench", artifact});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "error: " + artifact +
                             ": input 'x' has shape ?x4; give --dim NAME=N for its free dimensions, or --input\n");
  EXPECT_EQ(call({"bench", artifact, "--against", "nobody"}).code, 2);
  outcome = call({"bench", artifact, "--dim", "N=1", "--against", "onnxruntime=/nowhere"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "error: " + artifact + ": onnxruntime reads .onnx files; give the model that " + artifact +
                             " was compiled from with --model\n");
  writeFile(directory.file("affine.onnx"), "x");
  outcome = call({"bench", artifact, "--dim", "N=1", "--against", "onnxruntime=/nowhere", "--model",
                  directory.file("affine.onnx")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err.find("error: /nowhere: cannot open the library: "), 0u);
  EXPECT_NE(outcome.err.find("npm install"), std::string::npos);
  outcome = call({"bench", artifact, "--dim", "N=1", "--against", "llama.cpp=/nowhere"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "error: " + artifact + ": llama.cpp runs language models only; leave out --against llama.cpp\n");
  outcome = call({"bench", artifact, "--dim", "N=1", "--prompt", "8"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "error: " + artifact + ": --prompt and --generate are for language models; this model has no input 'tokens' and output "
                                                "'logits'\n");
}

TEST_F(Commands, ModelsAreCompiledThroughTheHooks) {
  CommandHooks hooks;
  std::string made;
  hooks.isModel = [](const std::string &path) { return extensionOf(path) == "onnx"; };
  hooks.compile = [&](const std::string &model, const std::string &target) {
    if (readFile(model) != bytesOf("good"))
      throw ToolError(model + ": no good");
    Bytes bytes = readFile(artifact);
    writeFile(target, bytes);
  };
  writeFile(directory.file("m.onnx"), "good");
  std::vector<std::string> arguments = {"run",     directory.file("m.onnx"), "--input", "x=" + directory.file("x.npy"),
                                        "--input", "y=" + directory.file("y.npy")};
  Outcome outcome = call(arguments, hooks);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, run().out);
  writeFile(directory.file("m.onnx"), "bad");
  outcome = call(arguments, hooks);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "error: " + directory.file("m.onnx") + ": no good\n");
  // What the compiler says is printed as it is, and once.
  hooks.compile = [&](const std::string &model, const std::string &) {
    throw DiagnosedError(model + ": error: first\n" + model + ": error: second");
  };
  outcome = call(arguments, hooks);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, directory.file("m.onnx") + ": error: first\n" + directory.file("m.onnx") + ": error: second\n");
  hooks.compile = [](const std::string &, const std::string &) { std::abort(); };
  outcome = call(arguments, hooks);
  EXPECT_EQ(outcome.code, 1);
  // An emulator may add a line of its own.
  EXPECT_TRUE(outcome.err.ends_with("error: " + directory.file("m.onnx") + ": compiling: died of signal 6\n"))
      << outcome.err;
}

TEST_F(Commands, ForcedLevelsThatAreNoneAreRefused) {
  setenv("AJOUR_CPU", "bogus", 1);
  Outcome outcome = run();
  unsetenv("AJOUR_CPU");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.find("error: " + artifact + ": the environment variable AJOUR_CPU asks for 'bogus', which is no code level of "),
            0u)
      << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
}

TEST_F(Commands, UnknownCommandsAreNamed) {
  Outcome outcome = call({"frobnicate"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "error: there is no command 'frobnicate'; there are run, inspect, generate, chat, perplexity, bench\n"
                         "run 'program --help' for the options\n");
  EXPECT_EQ(run({"--dim", "N"}).err, "error: --dim N: expected NAME=N with a whole number N of at least 0\nrun 'program run --help' for the options\n");
  EXPECT_EQ(run({"--repeat", "0"}).err, "error: --repeat: '0' is no whole number from 1 to 1000000\nrun 'program run --help' for the options\n");
  EXPECT_EQ(run({"--mean", "nan"}).err, "error: --mean: 'nan' is no finite number\nrun 'program run --help' for the options\n");
}

TEST_F(Commands, InputsAreNotOverwritten) {
  std::string text = ": would overwrite a file that is read; give another name\n", before = directory.file("x.npy");
  Bytes model = readFile(artifact), x = readFile(before);
  EXPECT_EQ(run({"--profile=" + artifact}).err, "error: --profile " + artifact + text);
  std::filesystem::copy(before, directory.file("z.npy"));
  Outcome outcome = call({"run", artifact, "--input", "x=" + directory.file("z.npy"), "--input", "y=" + directory.file("y.npy"), "--output", directory.path});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "error: --output " + directory.path + "/z.npy" + text);
  EXPECT_EQ(readFile(directory.file("z.npy")), x);
  for (const std::string &file : {artifact, before}) {
    outcome = call({"bench", artifact, "--input", "x=" + before, "--input", "y=" + directory.file("y.npy"), "--json", file});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err, "error: --json " + file + text);
  }
  outcome = call({"bench", artifact, "--dim", "N=1", "--plot", directory.file("none/p.svg")});
  EXPECT_EQ(outcome.err, "error: " + directory.file("none/p.svg") + ": cannot write: No such file or directory\n");
  EXPECT_EQ(readFile(artifact), model);
  EXPECT_EQ(readFile(before), x);
}

TEST_F(Commands, FilesThatAreNothing) {
  EXPECT_EQ(call({"run", artifact, "--input", "x="}).err, "error: --input 'x=': names no file; expected NAME=FILE\n");
  writeFile(directory.file("labels.txt"), "");
  EXPECT_EQ(run({"--top", "1", "--labels", directory.file("labels.txt")}).err,
            "error: " + directory.file("labels.txt") + ": is empty, expected a label for each index, one a line\n");
  writeNpy(directory.file("none.npy"), makeTensor(AJOUR_F32, {0, 2, 4}));
  Outcome outcome = call({"run", artifact, "--sequence", "--input", "x=" + directory.file("none.npy"), "--input", "y=" + directory.file("y.npy")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "error: " + directory.file("none.npy") + ": has shape 0x2x4, a sequence of nothing; expected at least one of ?x4 for input 'x'\n");
}

TEST_F(Commands, MomentaryArtifactsAreNotNamed) {
  CommandHooks hooks;
  hooks.isModel = [](const std::string &path) { return extensionOf(path) == "onnx"; };
  hooks.compile = [](const std::string &, const std::string &target) { writeFile(target, std::string(100, 'x')); };
  writeFile(directory.file("m.onnx"), "good");
  Outcome outcome = call({"run", directory.file("m.onnx")}, hooks);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err.rfind("error: " + directory.file("m.onnx") + ": not an ajour artifact", 0), 0u) << outcome.err;
}

TEST_F(Commands, FilesLargerThanAllowedAreErrorsOfWriting) {
  rlimit small;
  getrlimit(RLIMIT_FSIZE, &small);
  small.rlim_cur = 1;
  std::string out = directory.file("out");
  std::filesystem::create_directory(out);
  pid_t child = fork();
  if (child == 0) {
    setrlimit(RLIMIT_FSIZE, &small);
    std::string x = "x=" + directory.file("x.npy"), y = "y=" + directory.file("y.npy");
    std::vector<std::string> arguments = {"program", "run", artifact, "--input", x, "--input", y, "--output", out};
    std::vector<char *> argv;
    for (std::string &argument : arguments)
      argv.push_back(argument.data());
    CLI::App app("test", "program");
    registerRuntimeCommands(app);
    std::freopen("/dev/null", "w", stderr);
    _exit(runProgram(app, static_cast<int>(argv.size()), argv.data()));
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_TRUE(std::filesystem::is_empty(out));
}

} // namespace
