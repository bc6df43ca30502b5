//===- InspectCommand.cpp - inspect: what is in an artifact ---------------===//

#include "ToolSupport/RuntimeModel.h"

namespace ajour::tools {

namespace {

struct InspectOptions {
  std::string file;
  std::vector<std::string> dims;
  bool ops = false, memory = false;
  uint32_t threads = 0;
};

/// "1x3xH(32..4096, multiple of 32)xW(1..)": symbolic sizes by name with their bounds.
std::string dimsText(const ajour_tensor_info &info) {
  std::string text;
  for (uint32_t d = 0; d < info.rank; ++d) {
    text += d ? "x" : "";
    if (info.dims[d] >= 0) {
      text += std::to_string(info.dims[d]);
      continue;
    }
    text += info.dim_names[d] ? info.dim_names[d] : "?";
    text += "(" + std::to_string(info.dim_min[d]) + "..";
    text += info.dim_max[d] < 0 ? std::string() : std::to_string(info.dim_max[d]);
    text += info.dim_multiple[d] > 1 ? ", multiple of " + std::to_string(info.dim_multiple[d]) + ")" : ")";
  }
  return info.rank ? text : "scalar";
}

void printTensor(const char *kind, const ajour_tensor_info &info) {
  std::printf("%s %s %s %s", kind, info.name ? info.name : "", ajour_element_name(info.element_type),
              dimsText(info).c_str());
  if (info.scale != 0)
    std::printf(" scale %.9g zero_point %d", static_cast<double>(info.scale), info.zero_point);
  std::printf("\n");
}

/// Sizes of all symbolic dimensions: as --dim says, else their upper bounds; empty when one has neither.
std::vector<int64_t> symbolSizes(const ajour_model *model, const std::vector<std::string> &dims) {
  DimValues values = parseDims(dims);
  std::vector<int64_t> sizes;
  bool known = true;
  for (uint32_t i = 0, e = modelInfo(model).symbol_count; i < e; ++i) {
    ajour_symbol_info symbol = AJOUR_INIT(ajour_symbol_info);
    check(ajour_model_symbol(model, i, &symbol));
    auto value = values.find(symbol.name);
    sizes.push_back(value == values.end() ? symbol.max : value->second);
    known &= sizes.back() >= 0;
    if (value != values.end())
      values.erase(value);
  }
  for (const auto &[name, value] : values)
    throw ToolError("--dim " + name + "=" + std::to_string(value) + ": the model has no such dimension");
  return known ? sizes : std::vector<int64_t>();
}

void printMemory(const ajour_model *model, const InspectOptions &inspected) {
  ajour_session_options options = AJOUR_INIT(ajour_session_options);
  options.threads = inspected.threads;
  ajour_memory_info memory = AJOUR_INIT(ajour_memory_info);
  std::vector<int64_t> sizes = symbolSizes(model, inspected.dims);
  ajour_status_code status = ajour_model_memory(model, &options, sizes.empty() ? nullptr : sizes.data(), &memory);
  if (status == AJOUR_SHAPE && inspected.dims.empty()) { // A dimension without an upper bound: the session decides.
    std::printf("memory depends on dimensions without an upper bound\n");
    return;
  }
  check(status);
  std::printf("arena_bytes %llu\n", static_cast<unsigned long long>(memory.arena_bytes));
  std::printf("io_bytes %llu\n", static_cast<unsigned long long>(memory.io_bytes));
  std::printf("scratch_bytes %llu\n", static_cast<unsigned long long>(memory.scratch_bytes));
  if (memory.state_bytes != 0)
    std::printf("state_bytes %llu\n", static_cast<unsigned long long>(memory.state_bytes));
  std::printf("session_bytes %llu\n", static_cast<unsigned long long>(memory.session_bytes));
  std::printf("total_bytes %llu\n", static_cast<unsigned long long>(memory.weight_bytes + memory.code_bytes + memory.session_bytes));
}

void printDispatches(const ajour_model *model, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    ajour_dispatch_info info = AJOUR_INIT(ajour_dispatch_info);
    check(ajour_model_dispatch(model, i, &info));
    std::printf("dispatch %u %s %s %s", i, info.name, info.kind, info.cpu_level);
    for (uint32_t n = 0; n < info.node_count; ++n)
      std::printf("%s%s", n ? ", " : ": ", ajour_model_dispatch_node(model, i, n));
    std::printf("\n");
  }
}

void inspectArtifact(const InspectOptions &options) {
  ModelPointer model = loadModel(options.file);
  ajour_model_info info = modelInfo(model.get());
  std::printf("source %s\ncompiler %s\nformat %u.%u\narch %s\ncpu_level %s\n", info.source, info.compiler,
              info.format_major, info.format_minor, info.arch, info.cpu_level);
  std::printf("file_bytes %llu\nweight_bytes %llu\ncode_bytes %llu\ndispatches %u\n",
              static_cast<unsigned long long>(info.file_bytes), static_cast<unsigned long long>(info.weight_bytes),
              static_cast<unsigned long long>(info.code_bytes), info.dispatch_count);
  for (uint32_t i = 0; i < info.input_count; ++i) {
    ajour_tensor_info tensor = AJOUR_INIT(ajour_tensor_info);
    check(ajour_model_input(model.get(), i, &tensor));
    printTensor("input", tensor);
  }
  for (uint32_t i = 0; i < info.output_count; ++i) {
    ajour_tensor_info tensor = AJOUR_INIT(ajour_tensor_info);
    check(ajour_model_output(model.get(), i, &tensor));
    printTensor("output", tensor);
  }
  for (uint32_t i = 0; i < info.state_count; ++i) {
    ajour_tensor_info tensor = AJOUR_INIT(ajour_tensor_info);
    check(ajour_model_state(model.get(), i, &tensor));
    printTensor("state", tensor);
  }
  if (options.memory)
    printMemory(model.get(), options);
  if (options.ops)
    printDispatches(model.get(), info.dispatch_count);
}

} // namespace

void registerInspectCommand(CLI::App &app, const CommandHooks &hooks) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App *command = app.add_subcommand("inspect", "print what is in an artifact" +
                                                        std::string(hooks.isModel ? " or a model" : ""));
  command->add_option("file", options->file, "artifact (.ajour)" + std::string(hooks.isModel ? " or model" : ""))
      ->required()
      ->type_name("FILE");
  command->add_flag("--memory", options->memory, "what a session would hold");
  command->add_flag("--ops", options->ops, "the compiled dispatches and the model's nodes that they compute");
  command->add_option("-t,--threads", options->threads, "threads of the session that --memory is about")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
  if (hooks.addInspectOptions)
    hooks.addInspectOptions(*command);
  // With a compiler the option is there already, of models.
  if (!command->get_option_no_throw("--dim"))
    command->add_option("--dim", "value of a symbolic dimension for --memory; default: its upper bound")
        ->take_all()
        ->expected(1)
        ->needs("--memory")
        ->type_name("NAME=N");
  command->callback([options, hooks, command] {
    options->dims = command->get_option("--dim")->results();
    if (hooks.isModel && hooks.inspect && hooks.isModel(options->file))
      hooks.inspect(options->file);
    else
      inspectArtifact(*options);
  });
}

} // namespace ajour::tools
