#include "TextModel.h"

#include "ajour/ABI/Tokenizer_generated.h"
#include "ajour/ABI/TokenHash.h"

namespace ajour::test {

const std::vector<std::string> &tokenTexts() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> t = {"\n", " ", "\"", "{", "}", "[", "]", ":", ",", "-", ".", "true", "false", "null", "ab", "abc"};
    for (char c = 'a'; c <= 'z'; ++c)
      t.push_back(std::string(1, c));
    for (char c = '0'; c <= '9'; ++c)
      t.push_back(std::string(1, c));
    // The two halves of U+00E9, and the bytes of U+1F60A in two pieces.
    for (const char *bytes : {"\xc3", "\xa9", "\xf0\x9f", "\x98\x8a", "\": ", "the", "{\"", "\\", "<", ">"})
      t.push_back(bytes);
    t.push_back("<s>");
    t.push_back("</s>");
    return t;
  }();
  return texts;
}

std::vector<uint8_t> describeTokenizer(const std::string &chatTemplate) {
  tokenizer::TokenizerT t;
  const std::vector<std::string> &texts = tokenTexts();
  t.model = tokenizer::ModelKind::SPM;
  t.token_table.assign(256, 0);
  t.token_starts.push_back(0);
  for (size_t id = 0; id < texts.size(); ++id) {
    t.token_bytes.insert(t.token_bytes.end(), texts[id].begin(), texts[id].end());
    t.token_starts.push_back(uint32_t(t.token_bytes.size()));
    bool control = int32_t(id) == bosToken || int32_t(id) == eosToken;
    t.types.push_back(uint8_t(control ? tokenizer::TokenType::Control : tokenizer::TokenType::Normal));
    t.scores.push_back(-float(id));
    if (control) {
      auto added = std::make_unique<tokenizer::AddedTokenT>();
      added->id = uint32_t(id);
      added->text = texts[id];
      added->special = true;
      t.added.push_back(std::move(added));
      continue;
    }
    uint32_t at = ajour_token_hash(texts[id].data(), texts[id].size()) & 255;
    while (t.token_table[at] != 0)
      at = (at + 1) & 255;
    t.token_table[at] = uint32_t(id) + 1;
  }
  t.bos = bosToken;
  t.eos = eosToken;
  t.prefix = {uint32_t(bosToken)};
  t.longest_token = 5;
  t.chat_template = chatTemplate;
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(tokenizer::Tokenizer::Pack(builder, &t), tokenizer::TokenizerIdentifier());
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

TestModel makeTextModel(bool rewinds, int64_t context, int64_t batch, bool slow) {
  using artifact::BufferKind;
  TestModel model;
  model.description.compiler = "0.1.0";
  model.description.source = "text.gguf";
  model.description.programs.push_back(std::make_unique<artifact::ProgramT>());
  model.program().arch = hostArch;
  model.addExecutable("level0", lowLevel);
  uint32_t tokens = model.addBuffer(BufferKind::Input, times(0, 8));
  model.addInput("tokens", {symbol(0)}, tokens, AJOUR_I64);
  model.addSymbol("tokens", 1, batch, 0, 0);
  auto state = std::make_unique<artifact::StateT>();
  state->element_type = AJOUR_I64;
  state->name = rewinds ? "key.0" : "hidden.0";
  state->shape = {rewinds ? context : 1};
  std::vector<uint32_t> operands = {tokens};
  if (rewinds) {
    operands.push_back(model.addBuffer(BufferKind::Input, times(0, 8)));
    model.addInput("positions", {symbol(0)}, operands[1], AJOUR_I64);
  }
  state->buffer = model.addBuffer(BufferKind::State, constant((rewinds ? context : 1) * 8));
  state->next = rewinds ? state->buffer : model.addBuffer(BufferKind::State, constant(8));
  operands.push_back(state->buffer);
  if (!rewinds)
    operands.push_back(state->next);
  operands.push_back(model.addBuffer(BufferKind::Output, times(0, 4 * vocabulary)));
  model.addOutput("logits", {symbol(0), constant(vocabulary)}, operands.back());
  if (slow) {
    uint32_t count = model.addBuffer(BufferKind::Output, constant(8));
    model.addOutput("count", {constant(1)}, count, AJOUR_I64);
    model.addDispatch("wait", "test_wait", {tokens, count}, constant(300));
  }
  if (!rewinds) {
    int64_t initial = 7;
    state->initial_segment = model.addSegment("initial", std::string(reinterpret_cast<const char *>(&initial), sizeof(initial)));
  }
  model.description.states.push_back(std::move(state));
  model.addDispatch("say", rewinds ? "test_attend" : "test_recur", operands, constant(1));
  std::vector<uint8_t> description = describeTokenizer();
  auto attachment = std::make_unique<artifact::AttachmentT>();
  attachment->name = "tokenizer";
  attachment->segment = model.addSegment("tokenizer", std::string(description.begin(), description.end()));
  model.description.attachments.push_back(std::move(attachment));
  return model;
}

int32_t nextToken(const std::vector<int32_t> &tokens) {
  uint64_t seen = 7;
  for (int32_t id : tokens)
    seen = seen * 31 + uint64_t(id);
  return int32_t((seen >> 3) % uint64_t(vocabulary));
}

TextFixture::TextFixture(TestModel model, uint32_t threads) : loaded(loadBytes(model.bytes())) {
  EXPECT_EQ(loaded.status, AJOUR_OK) << loaded.message;
  ajour_session_options options = AJOUR_INIT(ajour_session_options);
  options.threads = threads;
  EXPECT_EQ(ajour_tokenizer_create(loaded.model, &tokenizer), AJOUR_OK) << ajour_last_message();
  EXPECT_EQ(ajour_session_create(loaded.model, &options, &session), AJOUR_OK) << ajour_last_message();
  EXPECT_EQ(ajour_generator_create(session, tokenizer, &generator), AJOUR_OK) << ajour_last_message();
}

TextFixture::~TextFixture() {
  ajour_generator_destroy(generator);
  ajour_session_destroy(session);
  ajour_tokenizer_destroy(tokenizer);
}

std::vector<int32_t> TextFixture::tokens() const {
  const int32_t *ids = nullptr;
  size_t count = 0;
  EXPECT_EQ(ajour_generator_tokens(generator, &ids, &count), AJOUR_OK);
  return {ids, ids + count};
}

std::vector<int32_t> TextFixture::generate(uint64_t count, ajour_generate_options options) {
  size_t before = tokens().size();
  options.max_tokens = count;
  options.user = this;
  if (!options.callback)
    options.callback = [](void *user, const ajour_generated *generated) {
      static_cast<TextFixture *>(user)->text.append(generated->text, generated->bytes);
      return 0;
    };
  EXPECT_EQ(ajour_generator_generate(generator, &options, &result), AJOUR_OK) << ajour_last_message();
  std::vector<int32_t> all = tokens();
  return {all.begin() + long(before), all.end()};
}

} // namespace ajour::test
