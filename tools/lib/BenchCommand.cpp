//===- BenchCommand.cpp - bench: how fast, and how fast are others --------===//

#include "Bench.h"
#include "ToolSupport/Inputs.h"
#include "ToolSupport/Peak.h"
#include "ToolSupport/Progress.h"

#include <algorithm>
#include <cmath>
#include <thread>

namespace ajour::tools {

std::optional<double> largestDifference(const std::vector<HostTensor> &a, const std::vector<HostTensor> &b) {
  if (a.size() != b.size())
    return std::nullopt;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].numElements() != b[i].numElements())
      return std::nullopt;
    for (int64_t k = 0, e = a[i].numElements(); k < e; ++k) {
      double difference = std::fabs(getReal(a[i], k) - getReal(b[i], k));
      largest = std::isnan(difference) ? difference : std::max(largest, difference);
      if (std::isnan(largest))
        return largest;
    }
  }
  return largest;
}

std::vector<std::unique_ptr<EngineProcess>> loadEngines(const std::vector<Contender> &contenders, uint32_t threads, Progress &progress) {
  std::vector<std::unique_ptr<EngineProcess>> engines;
  for (const Contender &contender : contenders) {
    progress.begin("load " + std::string(contender.kind->name), 0);
    EngineConfig config = contender.config;
    config.threads = threads;
    engines.push_back(std::make_unique<EngineProcess>(*contender.kind, config));
  }
  return engines;
}

BenchResult resultOf(EngineProcess &engine, const Contender &contender, const std::string &file, uint32_t threads,
                     const std::vector<double> &samples) {
  BenchResult result;
  result.engine = engine.name();
  result.version = engine.version();
  result.model = baseName(file);
  result.threads = threads;
  result.median = percentile(samples, 0.5);
  result.p10 = percentile(samples, 0.1);
  result.p90 = percentile(samples, 0.9);
  result.runs = samples.size();
  result.loadMs = engine.loadMilliseconds();
  result.peakBytes = engine.peakBytes();
  result.fileBytes = fileBytes(contender.config.model);
  return result;
}

namespace {

/// Milliseconds that one engine runs before the next has its turn.
constexpr double burstMs = 40;
constexpr uint32_t usualRepeat = 30;
constexpr uint32_t usualPrompt = 512, usualGenerate = 128;

std::vector<NamedTensor> makeInputs(const std::string &artifact, const BenchOptions &options) {
  ModelPointer model = loadModel(artifact, AJOUR_LOAD_SKIP_WEIGHT_CHECKSUMS);
  std::vector<TensorInfo> infos = inputInfos(model.get(), parseDims(options.dims));
  std::vector<NamedTensor> inputs;
  if (!options.inputs.empty()) {
    for (const InputFile &file : resolveInputFiles(options.inputs, infos))
      inputs.push_back({infos[file.input].name, loadInput(file, infos[file.input], options.image)});
    return inputs;
  }
  for (size_t i = 0; i < infos.size(); ++i) {
    if (std::count(infos[i].shape.begin(), infos[i].shape.end(), -1))
      throw ToolError(artifact + ": input '" + infos[i].name + "' has shape " + shapeText(infos[i].shape) +
                      "; give --dim NAME=N for its free dimensions, or --input");
    inputs.push_back({infos[i].name, randomInput(infos[i], i + 1)});
  }
  return inputs;
}

/// The file that a peer reads: FILE itself, or the first of --model with a fitting extension and, where there are several files, the
/// same name.
std::string modelForPeer(const EngineKind &kind, const std::string &file, const BenchOptions &options) {
  auto reads = [&](const std::string &path) {
    std::string formats = " " + std::string(kind.formats) + " ";
    return !extensionOf(path).empty() && formats.find(" " + extensionOf(path) + " ") != std::string::npos;
  };
  auto stem = [](const std::string &path) {
    std::string name = baseName(path);
    return name.substr(0, name.find('.'));
  };
  if (reads(file))
    return file;
  for (const std::string &model : options.models)
    if (reads(model) && (options.files.size() == 1 || stem(model) == stem(file)))
      return model;
  throw ToolError(file + ": " + kind.name + " reads ." + kind.formats + " files; give the model that " + file +
                  " was compiled from with --model");
}

/// Runs A B A B ... until each engine has enough runs.
std::vector<std::vector<double>> measure(std::vector<std::unique_ptr<EngineProcess>> &engines,
                                         const BenchOptions &options, uint32_t repeat, Progress &progress) {
  std::vector<std::vector<double>> times(engines.size());
  std::vector<uint32_t> burst(engines.size());
  for (size_t i = 0; i < engines.size(); ++i) {
    std::vector<double> warm = engines[i]->burst(std::max(options.warmup, 1u));
    double expected = std::max(percentile(warm, 0.5), 1e-3);
    burst[i] = static_cast<uint32_t>(std::clamp(burstMs / expected, 1.0, static_cast<double>(repeat)));
  }
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < engines.size(); ++i) {
      if (times[i].size() >= repeat)
        continue;
      if (engines.size() > 1)
        std::this_thread::sleep_for(pauseBetweenEngines);
      std::vector<double> some = engines[i]->burst(burst[i]);
      times[i].insert(times[i].end(), some.begin(), some.end());
      more |= times[i].size() < repeat;
      progress.update(std::min<uint64_t>(times[i].size(), repeat));
    }
  }
  return times;
}

/// The kind of most multiply-accumulates, if there is one.
std::optional<PeakKind> mainKind(const MacCounts &macs) {
  if (macs.int8 > macs.all / 2)
    return PeakKind::Int8;
  if (macs.f32 > macs.all / 2)
    return PeakKind::F32;
  return std::nullopt;
}

void benchOne(const std::string &file, const std::vector<Contender> &contenders, uint32_t threads,
              const BenchOptions &options, std::vector<BenchResult> &results) {
  uint32_t repeat = options.repeat ? options.repeat : usualRepeat;
  Progress progress;
  std::vector<std::unique_ptr<EngineProcess>> engines = loadEngines(contenders, threads, progress);
  progress.begin(baseName(file) + ", " + std::to_string(threads) + " threads", repeat);
  // Before and after, in case that the clock changes or others disturb.
  std::optional<PeakKind> kind = mainKind(engines[0]->macs());
  double peak = kind ? measurePeak(*kind, threads) : 0;
  std::vector<std::vector<double>> times = measure(engines, options, repeat, progress);
  if (kind)
    peak = std::max(peak, measurePeak(*kind, threads));
  std::vector<HostTensor> ours = engines[0]->outputs();
  for (size_t i = 0; i < engines.size(); ++i) {
    BenchResult result = resultOf(*engines[i], contenders[i], file, threads, times[i]);
    // A peer does the same work.
    result.macs = engines[0]->macs().all;
    if (peak > 0) {
      result.peakGops = peak;
      result.peakInstruction = peakInstruction(*kind);
    }
    if (i > 0) {
      result.ratio = result.median / percentile(times[0], 0.5);
      result.maxDifference = largestDifference(ours, engines[i]->outputs());
    }
    results.push_back(std::move(result));
  }
}

struct Peer {
  const EngineKind *kind;
  std::string library;
};

/// Measures one file, with each number of threads.
void benchFile(const std::string &file, const std::vector<Peer> &found, BenchOptions options, const CommandHooks &hooks,
               std::vector<BenchResult> &results) {
  ArtifactFor artifact(file, hooks);
  bool isLanguage = isLanguageModel(loadModel(artifact.path(), AJOUR_LOAD_SKIP_WEIGHT_CHECKSUMS).get());
  EngineConfig config{artifact.path(), "", 1, {}, 0};
  if (!isLanguage && !(options.prompt.empty() && options.generate.empty() && options.depth.empty()))
    throw ToolError(file + ": --prompt and --generate are for language models; this model has no input 'tokens' and output 'logits'");
  if (isLanguage) {
    if (!options.inputs.empty())
      throw ToolError(file + ": --input does not go with a language model, whose tokens bench chooses; give --prompt and --generate");
    bool isEmpty = options.prompt.empty() && options.generate.empty();
    if (isEmpty && options.depth.empty())
      options.prompt = {usualPrompt};
    if (options.generate.empty() && (isEmpty || !options.depth.empty()))
      options.generate = {usualGenerate};
    config.context = contextOf(options);
  } else {
    config.inputs = makeInputs(artifact.path(), options);
  }
  std::vector<Contender> contenders = {{&ajourEngine(), config}};
  for (const Peer &peer : found) {
    if (!(isLanguage ? peer.kind->createLanguage != nullptr : peer.kind->create != nullptr))
      throw ToolError(file + ": " + peer.kind->name + (isLanguage ? " cannot be measured with language models" : " runs language models only") +
                      "; leave out --against " + peer.kind->name);
    config.model = modelForPeer(*peer.kind, file, options);
    config.library = peer.library;
    contenders.push_back({peer.kind, config});
  }
  for (uint32_t threads : options.threads)
    (isLanguage ? benchLanguage : benchOne)(file, contenders, threads, options, results);
}

void bench(BenchOptions options, const CommandHooks &hooks) {
  if (options.threads.empty())
    options.threads = {ajour_cpu_performance_cores()};
  std::vector<std::string> inputs = options.files;
  inputs.insert(inputs.end(), options.models.begin(), options.models.end());
  for (const std::string &spec : options.inputs) // with and without NAME= in front
    inputs.insert(inputs.end(), {spec, spec.substr(spec.find('=') + 1)});
  checkOutputPaths({{"--json", options.jsonFile}, {"--plot", options.plotFile}}, inputs);
  for (const std::string &path : {options.jsonFile, options.plotFile})
    if (!path.empty())
      checkWritable(path);
  std::vector<Peer> found;
  for (const std::string &spec : options.against) {
    size_t equals = spec.find('=');
    found.push_back(
        {&findPeer(spec.substr(0, equals)), equals == std::string::npos ? std::string() : spec.substr(equals + 1)});
  }
  std::vector<BenchResult> results;
  for (const std::string &file : options.files)
    benchFile(file, found, options, hooks, results);
  Machine machine = describeMachine();
  if (!options.jsonFile.empty())
    writeFile(options.jsonFile, formatBenchJson(machine, results));
  if (!options.plotFile.empty())
    writeFile(options.plotFile, formatBenchSvg(machine, results));
  std::fputs(formatBenchText(results).c_str(), stdout);
}

} // namespace

void registerBenchCommand(CLI::App &app, const CommandHooks &hooks) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App *command = app.add_subcommand("bench", "measure how long a run takes, alone or beside other engines");
  std::string peerNames;
  for (const EngineKind &kind : peers())
    peerNames += (peerNames.empty() ? "" : ", ") + std::string(kind.name);
  command->add_option("file", options->files, "artifacts (.ajour)" + std::string(hooks.isModel ? " or models" : ""))
      ->required()
      ->type_name("FILE...");
  command->add_option("-t,--threads", options->threads, "thread counts; default: the number of performance cores")
      ->delimiter(',')
      ->expected(1, 16)
      ->check(CLI::Range(1, 256))
      ->type_name("N[,N...]");
  command->add_option("--repeat", options->repeat, "timed runs of each engine, at least; default 30, of a language model 5")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N");
  command->add_option("--warmup", options->warmup, "runs before the timed ones; default 3")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N");
  command
      ->add_option("--against", options->against,
                   "another engine, and its library or a directory with it: " + peerNames +
                       "; engines take turns in processes of their own")
      ->take_all()
      ->check(checkedBy([](const std::string &spec) { findPeer(spec.substr(0, spec.find('='))); }))
      ->expected(1)
      ->type_name("PEER[=PATH]");
  command->add_option("--model", options->models, "the model that the artifact was compiled from, for --against")
      ->take_all()
      ->expected(1)
      ->type_name("MODEL");
  command->add_option("-i,--input", options->inputs, "a file for an input, as in run; default: random values")
      ->take_all()
      ->expected(1)
      ->type_name("[NAME=]FILE");
  command->add_option("--dim", options->dims, "value of a symbolic dimension")
      ->take_all()
      ->check(checkedBy([](const std::string &spec) { parseDims({spec}); }))
      ->expected(1)
      ->type_name("NAME=N");
  for (auto [name, target, what] : {std::tuple("--prompt", &options->prompt, "language models: tokens of a prompt to read"),
                                    {"--generate", &options->generate, "language models: tokens to generate, one after the other"},
                                    {"--depth", &options->depth, "language models: tokens that those generated follow; default 1"}})
    command->add_option(name, *target, what)->delimiter(',')->expected(1, 16)->check(CLI::Range(1, 1 << 20))->type_name("N[,N...]");
  command->add_flag("--force", options->force, "language models: compare engines that store weights in different numbers of bits");
  command->add_option("--json", options->jsonFile, "write the results as JSON")->type_name("FILE");
  command->add_option("--plot", options->plotFile, "draw the results as SVG")->type_name("FILE.svg");
  addImageOptions(*command, options->image);
  command->callback([options, hooks] { bench(*options, hooks); });
}

} // namespace ajour::tools
