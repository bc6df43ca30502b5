//===- CompileOptions.cpp - options of every command that compiles -------------===//
#include "Commands.h"
#include "ToolSupport/Npy.h"
#include "ajour/Target/CpuTarget.h"

#include <memory>

namespace ajour::tools {

namespace {

/// The CPU levels that --target and --cpu name: those of the targets that are among the levels asked for.
/// Levels without a target bring their own architecture along. Nothing left is an error of the command line.
std::vector<ajour_cpu_level> levelsOf(const CompileArguments &arguments) {
  std::vector<ajour_cpu_level> levels;
  for (const CpuLevelInfo &info : cpuLevels()) {
    bool wanted = arguments.targets.empty() && !arguments.cpus.empty();
    for (const std::string &target : arguments.targets) {
      ajour_arch arch = target == "host"     ? hostArch()
                        : target == "x86-64" ? AJOUR_ARCH_X86_64
                                             : AJOUR_ARCH_AARCH64;
      wanted |= info.arch == arch;
    }
    if (wanted && (arguments.cpus.empty() || llvm::is_contained(arguments.cpus, info.name)))
      levels.push_back(info.level);
  }
  if (levels.empty() && !arguments.cpus.empty())
    throw CLI::ValidationError("--cpu", "none of these code levels belongs to a target of --target");
  return levels;
}

DimBounds parseBounds(const std::string &text) {
  DimBounds bounds;
  size_t dots = text.find("..");
  auto number = [&](const std::string &digits) {
    size_t used = 0;
    int64_t value = -1;
    try {
      value = std::stoll(digits, &used);
    } catch (const std::exception &) {
    }
    if (used != digits.size() || digits.empty() || value < 0)
      throw ToolError("'" + text + "' is neither a size nor MIN..MAX");
    return value;
  };
  if (dots == std::string::npos) {
    bounds.min = bounds.max = number(text);
  } else {
    bounds.min = number(text.substr(0, dots));
    bounds.max = number(text.substr(dots + 2));
  }
  return bounds;
}

std::pair<std::string, std::string> splitNamed(const std::string &text) {
  size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    throw ToolError("'" + text + "' is not NAME=VALUE");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// What --kv takes.
const std::map<std::string, CacheType> &cacheTypes() {
  static const std::map<std::string, CacheType> types = {
      {"f32", CacheType::F32}, {"f16", CacheType::F16}, {"int8", CacheType::I8}, {"int4", CacheType::I4}};
  return types;
}

} // namespace

CompileOptions optionsOf(const CompileArguments &arguments) {
  CompileOptions options;
  options.levels = levelsOf(arguments);
  options.optimization = arguments.optimization;
  options.lowering.winograd = arguments.winograd;
  options.sparse = arguments.sparse;
  options.import.allowNewerOpset = arguments.allowNewerOpset;
  if (!arguments.caches.empty()) {
    options.import.keys = cacheTypes().at(arguments.caches.front());
    options.import.values = cacheTypes().at(arguments.caches.back());
  }
  options.import.floatProducts = arguments.floatProducts;
  for (const std::string &text : arguments.dims) {
    auto [name, value] = splitNamed(text);
    if (!options.import.dims.emplace(name, parseBounds(value)).second)
      throw CLI::ValidationError("--dim", "'" + name + "' is given twice");
  }
  for (const std::string &text : arguments.bindings) {
    auto [name, file] = splitNamed(text);
    if (options.import.bindings.count(name))
      throw CLI::ValidationError("--bind", "'" + name + "' is given twice");
    tools::HostTensor array = readNpy(file);
    ajour::HostTensor tensor;
    tensor.elementType = array.type;
    tensor.shape = array.shape;
    const char *bytes = reinterpret_cast<const char *>(array.data.data());
    tensor.data.assign(bytes, bytes + array.data.size());
    options.import.bindings[name] = std::move(tensor);
  }
  return options;
}

std::vector<std::string> filesRead(const CompileArguments &arguments) {
  std::vector<std::string> files = {arguments.model};
  for (const std::string &text : arguments.bindings)
    files.push_back(splitNamed(text).second);
  return files;
}

void attachProgress(CompileOptions &options, Progress &progress) {
  auto phase = std::make_shared<std::string>();
  options.progress = [&progress, phase](const char *name, int64_t done, int64_t total) {
    if (*phase != name) {
      *phase = name;
      progress.begin(name, total);
    }
    progress.update(done);
  };
  options.import.progress = options.progress;
}

void addImportOptions(CLI::App &command, CompileArguments &arguments) {
  command.add_option("model", arguments.model, "Model file")->required()->type_name("MODEL");
  addImportSettings(command, arguments);
}

void addImportSettings(CLI::App &command, CompileArguments &arguments) {
  command.add_option("--dim", arguments.dims, "NAME=SIZE or NAME=MIN..MAX of a symbolic dimension")
      ->check(checkedBy([](const std::string &text) { parseBounds(splitNamed(text).second); }));
  command.add_option("--bind", arguments.bindings, "NAME=FILE.npy makes an input a constant")
      ->check(checkedBy([](const std::string &text) { splitNamed(text); }));
  command.add_option("--kv", arguments.caches, "How a language model keeps keys and values: f32, f16, int8 or int4; KEYS,VALUES for each its own")
      ->delimiter(',')
      ->expected(1, 2)
      ->check(CLI::IsMember(cacheTypes()));
  command.add_flag("--allow-newer-opset", arguments.allowNewerOpset,
                   "Read operator sets newer than the newest known one as that one");
  command.add_flag("--float-products", arguments.floatProducts,
                   "TFLite: compute products of quantised operands in f32, as simulations of quantised models do");
}

void addCodeOptions(CLI::App &command, CompileArguments &arguments) {
  command.add_option("--target", arguments.targets, "host, x86-64, aarch64-linux, aarch64-android or (static) arm64-ios; several separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember({"host", "x86-64", "aarch64-linux", "aarch64-android", "arm64-ios"}));
  std::vector<std::string> names;
  for (const CpuLevelInfo &info : cpuLevels())
    names.push_back(info.name);
  command.add_option("--cpu", arguments.cpus, "Only these code levels: avx2, avx512, avx512vnni, avx512vbmi, neon, dotprod, i8mm")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  command.add_option("-O", arguments.optimization, "Optimisation level 0 to 3")->check(CLI::Range(0, 3));
  command.add_flag("!--no-sparse", arguments.sparse, "Compute with the zeros of pruned weights as with other values, to compare");
  command.add_flag("!--no-winograd", arguments.winograd, "Compute 3x3 convolutions as they are defined, which rounds less and takes longer");
}

} // namespace ajour::tools
