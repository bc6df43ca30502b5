//===- RunCommand.cpp - run: files in, answers out ------------------------===//

#include "ToolSupport/Inputs.h"
#include "ToolSupport/Npy.h"
#include "ToolSupport/Outputs.h"
#include "ToolSupport/Progress.h"
#include "ToolSupport/RuntimeModel.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sys/stat.h>

namespace ajour::tools {

namespace {

struct RunOptions {
  std::string file;
  std::vector<std::string> inputs, dims;
  ImageOptions image;
  std::string outputDirectory, labelsFile, topOutput, profile;
  int64_t top = 0;
  uint32_t threads = 0;
  int64_t repeat = 1;
  bool sequence = false;
};

void makeDirectory(const std::string &path) {
  struct stat status;
  if (mkdir(path.c_str(), 0777) == 0 || (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)))
    return;
  throw ToolError(path + ": cannot make the directory: " + std::strerror(errno));
}

/// The output that --top ranks: the one named, or the only one.
size_t findTopOutput(const RunOptions &options, const std::vector<TensorInfo> &outputs) {
  std::string list;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (options.topOutput.empty() ? outputs.size() == 1 : outputs[i].name == options.topOutput)
      return i;
    list += (list.empty() ? "'" : ", '") + outputs[i].name + "'";
  }
  if (options.topOutput.empty())
    throw ToolError("--top: the model has several outputs " + list + "; give --top-output NAME");
  throw ToolError("--top-output " + options.topOutput + ": the model's outputs are " + list);
}

/// The answer to --top: a matrix of several rows has a ranking for each row.
std::string formatRanking(const RunOptions &options, const HostTensor &tensor, const TensorInfo &info) {
  std::vector<std::string> labels;
  if (!options.labelsFile.empty()) {
    labels = readLines(options.labelsFile);
    if (labels.empty())
      throw ToolError(options.labelsFile + ": is empty, expected a label for each index, one a line");
  }
  int64_t rows = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
  size_t rowBytes = rows > 0 ? tensor.data.size() / static_cast<size_t>(rows) : 0;
  std::string text;
  for (int64_t row = 0; row < rows; ++row) {
    HostTensor part{tensor.type, {}, {}};
    auto begin = tensor.data.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(row) * rowBytes);
    part.data.assign(begin, begin + static_cast<ptrdiff_t>(rowBytes));
    text += formatTop(topElements(part, info, options.top), labels, options.labelsFile);
  }
  return text;
}

void runRepeatedly(ajour_session *session, const RunOptions &options) {
  using Clock = std::chrono::steady_clock;
  Progress progress;
  progress.begin("run", static_cast<uint64_t>(options.repeat));
  std::vector<double> milliseconds;
  for (int64_t i = 0; i < options.repeat; ++i) {
    Clock::time_point start = Clock::now();
    check(ajour_session_run(session));
    milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    progress.update(static_cast<uint64_t>(i + 1));
  }
  progress.finish();
  if (options.repeat > 1) {
    auto middle = milliseconds.begin() + static_cast<ptrdiff_t>(milliseconds.size() / 2);
    std::nth_element(milliseconds.begin(), middle, milliseconds.end());
    std::fprintf(stderr, "ran %lld times, median %.3f ms\n", static_cast<long long>(options.repeat), *middle);
  }
}

/// Runs once for each element of the sequences that the files hold, with the states of the run before, and gives the
/// outputs with that dimension in front.
std::vector<HostTensor> runSequence(ajour_session *session, const RunOptions &options, const std::vector<InputFile> &files,
                                    const std::vector<TensorInfo> &inputs, size_t outputs) {
  std::vector<std::vector<HostTensor>> sequences;
  size_t runs = 1;
  for (const InputFile &file : files) {
    sequences.push_back(loadSequence(file, inputs[file.input], options.image));
    size_t count = sequences.back().size();
    if (count != 1 && runs != 1 && count != runs)
      throw ToolError(file.path + ": has a sequence of " + std::to_string(count) + ", another file one of " +
                      std::to_string(runs));
    runs = count != 1 ? count : runs;
  }
  std::vector<HostTensor> results(outputs);
  for (size_t run = 0; run < runs; ++run) {
    for (size_t i = 0; i < files.size(); ++i)
      setInput(session, static_cast<uint32_t>(files[i].input), sequences[i][sequences[i].size() == 1 ? 0 : run]);
    check(ajour_session_run(session));
    for (uint32_t i = 0; i < outputs; ++i) {
      HostTensor output = copyOutput(session, i);
      if (run == 0) {
        results[i] = {output.type, output.shape, {}};
        results[i].shape.insert(results[i].shape.begin(), static_cast<int64_t>(runs));
      }
      results[i].data.insert(results[i].data.end(), output.data.begin(), output.data.end());
    }
  }
  return results;
}

void writeProfile(ajour_session *session, const std::string &target) {
  if (target != "true") // What a flag without a value holds.
    return check(ajour_session_write_profile(session, AJOUR_PROFILE_TRACE_JSON, target.c_str()));
  size_t length = ajour_session_format_profile(session, AJOUR_PROFILE_TEXT, nullptr, 0);
  std::string text(length + 1, '\0');
  ajour_session_format_profile(session, AJOUR_PROFILE_TEXT, text.data(), text.size());
  std::fputs(text.c_str(), stderr);
}

/// Where --output puts each output; empty without it.
std::vector<std::string> outputPaths(const RunOptions &options, const std::vector<TensorInfo> &outputs) {
  std::vector<std::string> paths;
  if (!options.outputDirectory.empty())
    for (const std::string &name : outputFileNames(outputs))
      paths.push_back(options.outputDirectory + "/" + name + ".npy");
  return paths;
}

void checkOutputs(const RunOptions &options, const std::vector<InputFile> &files, const std::vector<std::string> &written) {
  std::vector<OutputPath> outputs;
  for (const std::string &path : written)
    outputs.push_back({"--output", path});
  if (options.profile != "true") // What a flag without a value holds.
    outputs.push_back({"--profile", options.profile});
  std::vector<std::string> inputs = {options.file, options.labelsFile};
  for (const InputFile &file : files)
    inputs.push_back(file.path);
  checkOutputPaths(outputs, inputs);
}

void runModel(const RunOptions &options, const CommandHooks &hooks) {
  ArtifactFor artifact(options.file, hooks);
  ModelPointer model = loadModel(artifact.path());
  std::vector<TensorInfo> inputs = inputInfos(model.get(), parseDims(options.dims));
  std::vector<TensorInfo> outputs = outputInfos(model.get());
  std::vector<InputFile> files = resolveInputFiles(options.inputs, inputs);
  size_t topOutput = options.top > 0 ? findTopOutput(options, outputs) : 0;
  std::vector<std::string> written = outputPaths(options, outputs);
  checkOutputs(options, files, written);

  SessionPointer session =
      createSession(model.get(), options.threads, options.profile.empty() ? 0 : AJOUR_SESSION_PROFILE);
  std::vector<HostTensor> results;
  if (options.sequence) {
    results = runSequence(session.get(), options, files, inputs, outputs.size());
  } else {
    for (const InputFile &file : files)
      setInput(session.get(), static_cast<uint32_t>(file.input), loadInput(file, inputs[file.input], options.image));
    runRepeatedly(session.get(), options);
    for (uint32_t i = 0; i < outputs.size(); ++i)
      results.push_back(copyOutput(session.get(), i));
  }
  std::string answer;
  if (options.top > 0) {
    answer = formatRanking(options, results[topOutput], outputs[topOutput]);
  } else {
    for (size_t i = 0; i < results.size(); ++i)
      answer += formatOutput(outputs[i].name, results[i]);
  }
  if (!options.outputDirectory.empty()) {
    makeDirectory(options.outputDirectory);
    for (size_t i = 0; i < results.size(); ++i)
      writeNpy(written[i], results[i]);
  }
  if (!options.profile.empty())
    writeProfile(session.get(), options.profile);
  std::fputs(answer.c_str(), stdout);
}

} // namespace

void registerRunCommand(CLI::App &app, const CommandHooks &hooks) {
  auto options = std::make_shared<RunOptions>();
  CLI::App *command = app.add_subcommand("run", "run a model on files and print its answers");
  command->add_option("file", options->file, "artifact (.ajour)" + std::string(hooks.isModel ? " or model" : ""))
      ->required()
      ->type_name("FILE");
  command
      ->add_option("-i,--input", options->inputs,
                   "a file for an input: .npy, picture (.png .jpg .bmp), .wav, or raw elements (of the input's type, or "
                   "FILE:TYPE); NAME may be left out where there is one input")
      ->take_all()
      ->expected(1)
      ->type_name("[NAME=]FILE");
  command->add_option("--dim", options->dims, "value of a symbolic dimension that no file decides")
      ->take_all()
      ->check(checkedBy([](const std::string &spec) { parseDims({spec}); }))
      ->expected(1)
      ->type_name("NAME=N");
  command->add_option("-o,--output", options->outputDirectory, "write each output to DIR/NAME.npy")->type_name("DIR");
  CLI::Option *top =
      command->add_option("--top", options->top, "print the K largest elements of the output as 'index score label'")
      ->check(wholeNumber(1, 1000000000))
      ->type_name("K");
  command->add_option("--labels", options->labelsFile, "names of the indices, one a line from 0")
      ->needs(top)
      ->type_name("FILE");
  command->add_option("--top-output", options->topOutput, "which output --top ranks")->needs(top)->type_name("NAME");
  command->add_option("-t,--threads", options->threads, "threads; default: the number of performance cores")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
  command->add_flag("--profile", options->profile,
                    "print the time of each dispatch to stderr, or write a trace that trace viewers open: "
                    "--profile=FILE.json");
  CLI::Option *repeat =
      command->add_option("--repeat", options->repeat, "run N times and print the median time to stderr")
          ->check(wholeNumber(1, 1000000))
          ->type_name("N");
  command
      ->add_flag("--sequence", options->sequence,
                 "the .npy files have one dimension more in front: run once for each, a model with state going on "
                 "from run to run, and give outputs with that dimension")
      ->excludes(repeat)
      ->excludes(top);
  addImageOptions(*command, options->image);
  command->callback([options, hooks] { runModel(*options, hooks); });
}

} // namespace ajour::tools
