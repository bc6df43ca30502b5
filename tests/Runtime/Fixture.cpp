#include "Fixture.h"

#include <cstring>
#include <fstream>
#include <sstream>
#include <unistd.h>

#ifdef AJOUR_TEST_ASAN
// Hostile files ask for memory that does not exist; the runtime must see malloc fail.
extern "C" const char *__asan_default_options() { return "allocator_may_return_null=1"; }
#endif

namespace ajour::test {

std::unique_ptr<artifact::ExprT> expr(Code code) {
  auto result = std::make_unique<artifact::ExprT>();
  result->code = std::move(code);
  return result;
}

uint32_t TestModel::addSegment(std::string name, std::string bytes) {
  segmentNames.push_back(std::move(name));
  segmentBytes.push_back(std::move(bytes));
  return static_cast<uint32_t>(segmentBytes.size() - 1);
}

uint32_t TestModel::addExecutable(const std::string &code, uint32_t level) {
  auto executable = std::make_unique<artifact::ExecutableT>();
  executable->segment = addSegment("code-" + code, readCode(code));
  executable->level = level;
  program().executables.push_back(std::move(executable));
  return static_cast<uint32_t>(program().executables.size() - 1);
}

uint32_t TestModel::addBuffer(artifact::BufferKind kind, Code size, uint32_t first, uint32_t last) {
  auto buffer = std::make_unique<artifact::BufferT>();
  buffer->kind = kind;
  buffer->size = expr(std::move(size));
  buffer->first_use = first;
  buffer->last_use = last;
  program().buffers.push_back(std::move(buffer));
  return static_cast<uint32_t>(program().buffers.size() - 1);
}

uint32_t TestModel::addConstant(const void *data, size_t size) {
  uint32_t index = addBuffer(artifact::BufferKind::Constant, constant(static_cast<int64_t>(size)));
  program().buffers[index]->segment = addSegment("weights", std::string(static_cast<const char *>(data), size));
  return index;
}

static std::unique_ptr<artifact::TensorT> makeTensor(const std::string &name, std::vector<Code> shape, uint32_t buffer,
                                                     uint32_t type) {
  auto tensor = std::make_unique<artifact::TensorT>();
  tensor->name = name;
  tensor->element_type = type;
  tensor->buffer = buffer;
  for (Code &code : shape)
    tensor->shape.push_back(expr(std::move(code)));
  return tensor;
}

void TestModel::addInput(const std::string &name, std::vector<Code> shape, uint32_t buffer, uint32_t type) {
  description.inputs.push_back(makeTensor(name, std::move(shape), buffer, type));
}

void TestModel::addOutput(const std::string &name, std::vector<Code> shape, uint32_t buffer, uint32_t type) {
  description.outputs.push_back(makeTensor(name, std::move(shape), buffer, type));
}

void TestModel::addSymbol(const std::string &name, int64_t min, int64_t max, uint32_t input, uint32_t dim) {
  auto symbol = std::make_unique<artifact::SymbolT>();
  symbol->name = name;
  symbol->min = min;
  symbol->max = max;
  symbol->input = input;
  symbol->dim = dim;
  description.symbols.push_back(std::move(symbol));
}

artifact::VariantT &TestModel::addVariant(artifact::DispatchT &dispatch, uint32_t level, uint64_t features,
                                          uint32_t executable, const std::string &symbol,
                                          std::vector<uint32_t> operands, Code work, Code scratch) {
  auto variant = std::make_unique<artifact::VariantT>();
  variant->level = level;
  variant->features = features;
  variant->executable = executable;
  variant->symbol = symbol;
  variant->operands = std::move(operands);
  variant->work = expr(std::move(work));
  if (!scratch.empty())
    variant->scratch = expr(std::move(scratch));
  dispatch.variants.push_back(std::move(variant));
  return *dispatch.variants.back();
}

artifact::DispatchT &TestModel::addDispatch(const std::string &name, const std::string &symbol,
                                            std::vector<uint32_t> operands, Code work, Code scratch) {
  auto dispatch = std::make_unique<artifact::DispatchT>();
  dispatch->name = name;
  dispatch->kind = "elementwise";
  // No features: runs on every CPU of the architecture.
  addVariant(*dispatch, lowLevel, 0, 0, symbol, std::move(operands), std::move(work), std::move(scratch));
  program().dispatches.push_back(std::move(dispatch));
  return *program().dispatches.back();
}

std::string TestModel::bytes() {
  std::vector<SegmentSource> sources;
  for (size_t i = 0; i < segmentBytes.size(); ++i)
    sources.push_back({segmentNames[i], segmentBytes[i].data(), segmentBytes[i].size()});
  std::string path = temporaryPath("bytes.ajour");
  std::string wrong = writeArtifact(path, description, sources);
  EXPECT_EQ(wrong, "");
  std::string result = readFile(path);
  unlink(path.c_str());
  return result;
}

static TestModel makeEmpty() {
  TestModel model;
  model.description.compiler = "0.1.0";
  model.description.source = "affine.onnx";
  model.description.programs.push_back(std::make_unique<artifact::ProgramT>());
  model.program().arch = hostArch;
  return model;
}

TestModel makeAffine(int64_t min, int64_t max, const std::string &code) {
  using artifact::BufferKind;
  TestModel model = makeEmpty();
  const float weights[4] = {1, 2, 3, 4};
  model.addExecutable(code, lowLevel);
  uint32_t x = model.addBuffer(BufferKind::Input, times(0, 16)), y = model.addBuffer(BufferKind::Input, times(0, 16));
  uint32_t sum = model.addBuffer(BufferKind::Arena, times(0, 16), 0, 1);
  uint32_t w = model.addConstant(weights, sizeof(weights));
  uint32_t z = model.addBuffer(BufferKind::Output, times(0, 16));
  model.addInput("x", {symbol(0), constant(4)}, x);
  model.addInput("y", {symbol(0), constant(4)}, y);
  model.addOutput("z", {symbol(0), constant(4)}, z);
  model.addSymbol("N", min, max, 0, 0);
  artifact::DispatchT &add = model.addDispatch("sum", "test_add", {x, y, sum}, symbol(0));
  add.nodes = {"Add_0"};
  add.macs = expr(times(0, 4));
  model.addDispatch("scaled", "test_scale", {sum, w, z}, symbol(0), constant(16)).nodes = {"Mul_1", "Mul_2"};
  return model;
}

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string readCode(const std::string &name) { return readFile(std::string(AJOUR_TEST_CODE_DIR) + "/" + name + ".so"); }

void writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string temporaryPath(const std::string &name) {
  return ::testing::TempDir() + "ajour-" + std::to_string(getpid()) + "-" + name;
}

void refreshHeader(std::string &bytes) {
  ajour_artifact_header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.description_offset <= bytes.size() && header.description_size <= bytes.size() - header.description_offset)
    header.description_checksum = ajour_checksum(bytes.data() + header.description_offset, header.description_size);
  header.header_checksum = ajour_checksum(&header, offsetof(ajour_artifact_header, header_checksum));
  std::memcpy(bytes.data(), &header, sizeof(header));
}

Loaded loadBytes(std::string bytes, ajour_load_options options) {
  Loaded loaded;
  loaded.bytes = std::move(bytes);
  options.flags |= AJOUR_LOAD_COPY;
  loaded.status = ajour_model_load_memory(loaded.bytes.data(), loaded.bytes.size(), &options, &loaded.model);
  if (loaded.status != AJOUR_OK)
    loaded.message = ajour_last_message();
  return loaded;
}

Session::Session(ajour_model *model, uint32_t threads, uint32_t flags) {
  ajour_session_options options = AJOUR_INIT(ajour_session_options);
  options.threads = threads;
  options.flags = flags;
  EXPECT_EQ(ajour_session_create(model, &options, &handle), AJOUR_OK) << ajour_last_message();
}

ajour_status_code Session::set(uint32_t index, const std::vector<float> &values, std::vector<int64_t> shape) {
  return ajour_session_set_input(handle, index, values.data(), shape.data(), static_cast<uint32_t>(shape.size()));
}

std::vector<float> Session::output(uint32_t index) {
  ajour_tensor_view view = AJOUR_INIT(ajour_tensor_view);
  EXPECT_EQ(ajour_session_output(handle, index, &view), AJOUR_OK) << ajour_last_message();
  std::vector<float> values(view.bytes / sizeof(float));
  if (!values.empty())
    std::memcpy(values.data(), view.data, view.bytes);
  return values;
}

std::vector<float> ramp(int64_t rows, float start, float step) {
  std::vector<float> values(static_cast<size_t>(rows) * 4);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = start + static_cast<float>(i) * step;
  return values;
}

std::vector<float> affine(const std::vector<float> &x, const std::vector<float> &y) {
  std::vector<float> z(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    z[i] = (x[i] + y[i]) * static_cast<float>(i % 4 + 1);
  return z;
}

} // namespace ajour::test
