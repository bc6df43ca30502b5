// What a generator keeps, reuses and says.
#include "TextModel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <unistd.h>

using namespace ajour::test;

using Ids = std::vector<int32_t>;

namespace {

/// What follows, by the definition of the test's model.
Ids continuation(Ids tokens, size_t count) {
  size_t before = tokens.size();
  for (size_t i = 0; i < count; ++i)
    tokens.push_back(nextToken(tokens));
  return {tokens.begin() + long(before), tokens.end()};
}

/// A beginning behind which this many tokens follow without one that ends.
Ids beginning(size_t length, size_t count) {
  for (int32_t first = 16;; ++first) {
    Ids tokens = {bosToken};
    for (size_t i = 1; i < length; ++i)
      tokens.push_back(16 + (first + int32_t(i) * 5) % 26);
    Ids next = continuation(tokens, count);
    if (std::find(next.begin(), next.end(), eosToken) == next.end())
      return tokens;
  }
}

std::string textOf(const Ids &ids) {
  std::string text;
  for (int32_t id : ids)
    text += id == bosToken || id == eosToken ? "" : tokenTexts()[size_t(id)];
  return text;
}

struct Generator : testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Models, Generator, testing::Values(true, false), [](const auto &info) { return info.param ? "Rewinds" : "Recurs"; });

TEST_P(Generator, ContinuesAPrompt) {
  TextFixture f(makeTextModel(GetParam()));
  for (size_t length : {1, 7, 8, 9, 20}) {
    Ids prompt = beginning(length, 12);
    ASSERT_DONE(ajour_generator_reset(f.generator));
    ASSERT_DONE(f.prompt(prompt));
    EXPECT_EQ(f.generate(12), continuation(prompt, 12)) << length;
    EXPECT_EQ(f.result.end, AJOUR_END_LENGTH);
    EXPECT_EQ(f.result.tokens, 12u);
  }
}

TEST_P(Generator, GoesOnWhereItStopped) {
  TextFixture f(makeTextModel(GetParam()));
  Ids prompt = beginning(5, 12), expected = continuation(prompt, 12);
  ASSERT_DONE(f.prompt(prompt));
  Ids first = f.generate(5), second = f.generate(7);
  first.insert(first.end(), second.begin(), second.end());
  EXPECT_EQ(first, expected);
}

TEST_P(Generator, ReusesWhatItHasSeen) {
  TextFixture f(makeTextModel(GetParam()));
  Ids prompt = beginning(6, 4);
  size_t reused = 99;
  ASSERT_DONE(f.prompt(prompt, &reused));
  EXPECT_EQ(reused, 0u);
  Ids said = f.generate(4), longer = prompt;
  longer.insert(longer.end(), said.begin(), said.end());
  longer.push_back(20);
  // The last token that was said has not been given to the model; all before it have.
  ASSERT_DONE(f.prompt(longer, &reused));
  EXPECT_EQ(reused, prompt.size() + 3);
  EXPECT_EQ(f.generate(1), continuation(longer, 1));
  // The same prompt costs nothing.
  ASSERT_DONE(f.prompt(longer, &reused));
  ajour_generator_stats before = AJOUR_INIT(ajour_generator_stats), after = AJOUR_INIT(ajour_generator_stats);
  ASSERT_DONE(ajour_generator_get_stats(f.generator, &before));
  ASSERT_DONE(f.prompt(longer, &reused));
  ASSERT_DONE(ajour_generator_get_stats(f.generator, &after));
  EXPECT_EQ(reused, longer.size());
  EXPECT_EQ(after.prompt_tokens, before.prompt_tokens);
  EXPECT_EQ(f.generate(1), continuation(longer, 1));
}

// Another answer than the one that was said: back to the end of the prompt, or to where they part.
TEST_P(Generator, TakesAnotherWay) {
  TextFixture f(makeTextModel(GetParam()));
  Ids prompt = beginning(6, 6);
  ASSERT_DONE(f.prompt(prompt));
  Ids said = f.generate(6), other = prompt;
  other.insert(other.end(), said.begin(), said.begin() + 3);
  for (int32_t id : {17, 18, 19})
    other.push_back(id);
  size_t reused = 0;
  ASSERT_DONE(f.prompt(other, &reused));
  EXPECT_EQ(reused, GetParam() ? prompt.size() + 3 : prompt.size());
  EXPECT_EQ(f.generate(1), continuation(other, 1));
  // Shorter than the prompt was.
  Ids part(prompt.begin(), prompt.begin() + 3);
  ASSERT_DONE(f.prompt(part, &reused));
  EXPECT_EQ(reused, GetParam() ? 2u : 0u);
  EXPECT_EQ(f.generate(1), continuation(part, 1));
}

TEST_P(Generator, SavesAndRestores) {
  TextFixture f(makeTextModel(GetParam())), other(makeTextModel(GetParam()));
  Ids prompt = beginning(9, 8), expected = continuation(prompt, 8);
  ASSERT_DONE(f.prompt(prompt));
  f.generate(3);
  ajour_generator_info info = AJOUR_INIT(ajour_generator_info);
  ASSERT_DONE(ajour_generator_get_info(f.generator, &info));
  EXPECT_EQ(info.rewinds, GetParam());
  EXPECT_EQ(info.batch, 8);
  EXPECT_EQ(info.context, GetParam() ? 64 : -1);
  EXPECT_EQ(info.vocabulary, vocabulary);
  std::vector<uint8_t> saved(info.saved_bytes);
  size_t bytes = saved.size();
  ASSERT_DONE(ajour_generator_save(f.generator, saved.data(), &bytes));
  EXPECT_LE(bytes, saved.size());
  saved.resize(bytes);
  Ids rest(expected.begin() + 3, expected.end());
  EXPECT_EQ(f.generate(5), rest);
  // Back, and in another session.
  for (TextFixture *to : {&f, &other}) {
    ASSERT_DONE(ajour_generator_restore(to->generator, saved.data(), saved.size()));
    EXPECT_EQ(to->tokens().size(), prompt.size() + 3);
    EXPECT_EQ(to->generate(5), rest);
  }
  size_t few = bytes - 1;
  EXPECT_STATUS(ajour_generator_save(f.generator, saved.data(), &few), AJOUR_INVALID_ARGUMENT, "too few for what a generator keeps");
  Ids before = f.tokens();
  auto refused = [&](ajour_status_code status, const char *part, size_t at, uint8_t change, size_t size) {
    std::vector<uint8_t> wrong = saved;
    wrong[at] ^= change;
    EXPECT_STATUS(ajour_generator_restore(f.generator, wrong.data(), size), status, part);
    EXPECT_EQ(f.tokens(), before);
  };
  refused(AJOUR_BAD_FILE, "not what a generator kept", 0, 1, bytes);
  refused(AJOUR_VERSION, "version 0, expected 1", 8, 1, bytes);
  refused(AJOUR_CHECKSUM, "damaged", bytes - 1, 1, bytes);
  refused(AJOUR_BAD_FILE, "of another model", 16 + 5, 1, bytes);
  refused(AJOUR_BAD_FILE, "expected", 0, 0, bytes - 1);
  refused(AJOUR_BAD_FILE, "fewer than its header", 0, 0, 10);
  TextFixture foreign(makeTextModel(!GetParam()));
  EXPECT_STATUS(ajour_generator_restore(foreign.generator, saved.data(), saved.size()), AJOUR_BAD_FILE, "of another model");
}

// States of equal shapes are not enough: the model that is fine-tuned, or of other bits, would go on with what it never saw.
TEST_P(Generator, RestoresWhatTheSameWeightsKept) {
  auto withIdentity = [](const std::string &bytes) {
    TestModel model = makeTextModel(GetParam());
    auto attachment = std::make_unique<ajour::artifact::AttachmentT>();
    attachment->name = "identity";
    attachment->segment = model.addSegment("identity", bytes);
    model.description.attachments.push_back(std::move(attachment));
    return model;
  };
  TextFixture one(withIdentity("12345678")), same(withIdentity("12345678")), other(withIdentity("12345679")), without(makeTextModel(GetParam()));
  ASSERT_DONE(one.prompt(beginning(9, 8)));
  ajour_generator_info info = AJOUR_INIT(ajour_generator_info);
  ASSERT_DONE(ajour_generator_get_info(one.generator, &info));
  std::vector<uint8_t> saved(info.saved_bytes);
  size_t bytes = saved.size();
  ASSERT_DONE(ajour_generator_save(one.generator, saved.data(), &bytes));
  EXPECT_STATUS(ajour_generator_restore(same.generator, saved.data(), bytes), AJOUR_OK, "");
  EXPECT_EQ(same.generate(5), one.generate(5));
  for (TextFixture *to : {&other, &without})
    EXPECT_STATUS(ajour_generator_restore(to->generator, saved.data(), bytes), AJOUR_BAD_FILE, "that of another model: its weights are others");
  std::vector<char> state(ajour_model_saved_state_bytes(one.loaded.model));
  ASSERT_DONE(ajour_session_save_state(one.session, state.data(), state.size()));
  EXPECT_STATUS(ajour_session_restore_state(other.session, state.data(), state.size()), AJOUR_BAD_FILE, "its weights are others");
}

TEST_P(Generator, ScoresTexts) {
  TextFixture f(makeTextModel(GetParam()));
  Ids tokens = beginning(20, 1);
  double nll = 0, expected = 0;
  ASSERT_DONE(ajour_generator_score(f.generator, tokens.data(), tokens.size(), 5, &nll));
  for (size_t i = 5; i < tokens.size(); ++i) {
    int32_t best = nextToken(Ids(tokens.begin(), tokens.begin() + long(i)));
    double sum = 0, own = 0;
    for (int32_t t = 0; t < vocabulary; ++t) {
      double logit = t == best ? 9 : t == (best + 1) % vocabulary ? 8 : -((t * 7 + 3) % 11);
      sum += std::exp(logit);
      own = t == tokens[i] ? logit : own;
    }
    expected += std::log(sum) - own;
  }
  EXPECT_NEAR(nll, expected, 1e-9 * expected);
  EXPECT_STATUS(ajour_generator_score(f.generator, tokens.data(), tokens.size(), 0, &nll), AJOUR_INVALID_ARGUMENT, "expected 1 to 19");
  EXPECT_STATUS(ajour_generator_score(f.generator, tokens.data(), tokens.size(), 20, &nll), AJOUR_INVALID_ARGUMENT, "number 20");
}

TEST_P(Generator, IsCancelledInAPromptAndInGeneration) {
  TextFixture f(makeTextModel(GetParam(), 64, 8, true), 2);
  Ids prompt = beginning(8, 10);
  for (bool inPrompt : {true, false}) {
    ASSERT_DONE(ajour_generator_reset(f.generator));
    if (!inPrompt)
      ASSERT_DONE(f.prompt(prompt));
    std::atomic<bool> started{false};
    std::chrono::steady_clock::time_point asked;
    std::thread canceller([&] {
      while (!started)
        std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      asked = std::chrono::steady_clock::now();
      ajour_generator_cancel(f.generator);
    });
    started = true;
    Ids all = beginning(60, 1);
    ajour_status_code status = inPrompt ? f.prompt(all) : ajour_generator_generate(f.generator, nullptr, nullptr);
    auto done = std::chrono::steady_clock::now();
    canceller.join();
    // A machine without time to spare may have been done before.
    if (status == AJOUR_OK)
      continue;
    EXPECT_EQ(status, AJOUR_CANCELLED) << ajour_last_message();
    EXPECT_LT(done - asked, std::chrono::seconds(2));
    // It goes on as if nothing had been.
    ASSERT_DONE(f.prompt(prompt));
    EXPECT_EQ(f.generate(2), continuation(prompt, 2));
  }
}

TEST_P(Generator, StopsBetweenRunsToo) {
  TextFixture f(makeTextModel(GetParam()));
  ASSERT_DONE(f.prompt(beginning(6, 20)));
  ajour_generate_options options = AJOUR_INIT(ajour_generate_options);
  options.callback = [](void *user, const ajour_generated *) {
    ajour_generator_cancel(static_cast<TextFixture *>(user)->generator);
    return 0;
  };
  options.user = &f;
  ajour_generate_result result = AJOUR_INIT(ajour_generate_result);
  EXPECT_STATUS(ajour_generator_generate(f.generator, &options, &result), AJOUR_CANCELLED, "cancelled");
  EXPECT_EQ(result.tokens, 1u);
  EXPECT_EQ(f.tokens().size(), 7u);
}

TEST(GeneratorEnds, ForEachReason) {
  TextFixture f(makeTextModel(true, 16));
  Ids prompt = beginning(10, 8);
  ASSERT_DONE(f.prompt(prompt));
  f.generate(0);
  EXPECT_EQ(f.result.end, AJOUR_END_CONTEXT);
  EXPECT_EQ(f.tokens().size(), 17u) << "the token behind the last place is known";
  ajour_generate_options options = AJOUR_INIT(ajour_generate_options);
  options.callback = [](void *, const ajour_generated *) { return 1; };
  ASSERT_DONE(f.prompt(prompt));
  EXPECT_EQ(f.generate(5, options).size(), 1u);
  EXPECT_EQ(f.result.end, AJOUR_END_CALLBACK);
  // A beginning behind which the model ends at once.
  Ids ends;
  for (int32_t a = 0; ends.empty() && a < 62; ++a)
    for (int32_t b = 0; ends.empty() && b < 62; ++b)
      if (nextToken({bosToken, a, b}) == eosToken)
        ends = {bosToken, a, b};
  ASSERT_FALSE(ends.empty());
  ASSERT_DONE(f.prompt(ends));
  EXPECT_EQ(f.generate(5), Ids());
  EXPECT_EQ(f.result.end, AJOUR_END_MODEL);
  options = AJOUR_INIT(ajour_generate_options);
  options.flags = AJOUR_GENERATE_IGNORE_END;
  // The second choice stands behind the first: token 0.
  EXPECT_EQ(f.generate(1, options), Ids{0});
}

/// Says these tokens by looking them up: each text is put together with stop strings as a generator would.
TEST(GeneratorText, StopStringsAcrossTokens) {
  TextFixture f(makeTextModel(true));
  Ids prompt = beginning(4, 12), said = continuation(prompt, 12);
  std::string whole;
  size_t cut = 0;
  // From the middle of one token into the middle of another, by bytes; both halves of a character would be U+FFFD.
  for (size_t i = 0; i < said.size(); ++i) {
    cut = i == 5 ? whole.size() : cut;
    whole += tokenTexts()[size_t(said[i])];
  }
  ASSERT_DONE(f.prompt(prompt));
  f.generate(12);
  std::string all = f.text;
  ASSERT_GE(all.size(), 8u);
  for (size_t at = 1; at + 4 < all.size(); ++at) {
    std::string stop = all.substr(at, 4);
    const char *stops[] = {"never said", stop.c_str()};
    ajour_generate_options options = AJOUR_INIT(ajour_generate_options);
    options.stops = stops;
    options.stop_count = 2;
    ASSERT_DONE(f.prompt(prompt));
    f.text.clear();
    f.generate(12, options);
    EXPECT_EQ(f.result.end, AJOUR_END_STOP) << stop;
    EXPECT_EQ(f.text, all.substr(0, all.find(stop))) << stop;
  }
}

TEST(GeneratorText, WholeCharactersAlone) {
  TextFixture f(makeTextModel(true));
  for (int32_t first = 16; first < 42; ++first) {
    ASSERT_DONE(f.prompt({bosToken, first}));
    struct Seen {
      std::string text;
      bool whole = true;
    } seen;
    ajour_generate_options options = AJOUR_INIT(ajour_generate_options);
    options.max_tokens = 30;
    options.user = &seen;
    options.callback = [](void *user, const ajour_generated *generated) {
      auto &seen = *static_cast<Seen *>(user);
      seen.text.append(generated->text, generated->bytes);
      // A piece never ends within a character.
      size_t tail = seen.text.size();
      while (tail > 0 && (uint8_t(seen.text[tail - 1]) & 0xc0) == 0x80)
        --tail;
      size_t length = seen.text.size() - tail;
      uint8_t lead = tail > 0 ? uint8_t(seen.text[tail - 1]) : 0;
      seen.whole &= lead < 0xc0 ? length == 0 : length + 1 == (lead < 0xe0 ? 2u : lead < 0xf0 ? 3u : 4u);
      return 0;
    };
    ASSERT_DONE(ajour_generator_generate(f.generator, &options, nullptr));
    EXPECT_TRUE(seen.whole) << seen.text;
    // All at once.
    Ids tokens = f.tokens();
    std::string decoded(1000, 0);
    size_t bytes = 0;
    ASSERT_DONE(ajour_tokenizer_decode(f.tokenizer, tokens.data() + 2, tokens.size() - 2, 0, decoded.data(), decoded.size(), &bytes));
    EXPECT_EQ(seen.text, decoded.substr(0, bytes));
  }
}

TEST(GeneratorSeeds, GiveTheSameTextOnAnyThreads) {
  auto say = [](uint32_t threads, uint64_t seed) {
    TextFixture f(makeTextModel(true), threads);
    EXPECT_EQ(f.prompt({bosToken, 20}), AJOUR_OK);
    ajour_generate_options options = AJOUR_INIT(ajour_generate_options);
    options.temperature = 4;
    options.seed = seed;
    options.flags = AJOUR_GENERATE_IGNORE_END;
    return f.generate(40, options);
  };
  EXPECT_EQ(say(1, 5), say(3, 5));
  EXPECT_NE(say(1, 5), say(1, 6));
}

TEST(GeneratorThreads, CreateRunAndDestroyOverOneModel) {
  Loaded loaded = loadBytes(makeTextModel(true).bytes());
  ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
  ajour_tokenizer *tokenizer = nullptr;
  ASSERT_DONE(ajour_tokenizer_create(loaded.model, &tokenizer));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 6; ++round) {
        ajour_session *session = nullptr;
        ajour_generator *generator = nullptr;
        ajour_session_options options = AJOUR_INIT(ajour_session_options);
        options.threads = 1 + uint32_t(t % 2);
        wrong += ajour_session_create(loaded.model, &options, &session) != AJOUR_OK;
        wrong += ajour_generator_create(session, tokenizer, &generator) != AJOUR_OK;
        Ids prompt = {bosToken, 16 + t, 16 + round};
        wrong += ajour_generator_set_prompt(generator, prompt.data(), prompt.size(), nullptr) != AJOUR_OK;
        ajour_generate_options generate = AJOUR_INIT(ajour_generate_options);
        generate.max_tokens = 3;
        generate.flags = AJOUR_GENERATE_IGNORE_END;
        wrong += ajour_generator_generate(generator, &generate, nullptr) != AJOUR_OK;
        const int32_t *ids = nullptr;
        size_t count = 0;
        wrong += ajour_generator_tokens(generator, &ids, &count) != AJOUR_OK || count != 6;
        int32_t next = nextToken(prompt);
        wrong += count != 6 || (next != eosToken && ids[3] != next);
        ajour_generator_destroy(generator);
        ajour_session_destroy(session);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  ajour_tokenizer_destroy(tokenizer);
}

TEST(GeneratorMessages, NameWhatIsWrong) {
  TextFixture f(makeTextModel(true, 16));
  EXPECT_STATUS(ajour_generator_generate(f.generator, nullptr, nullptr), AJOUR_STATE, "set a prompt");
  EXPECT_STATUS(f.prompt({}), AJOUR_INVALID_ARGUMENT, "no tokens to begin with");
  EXPECT_STATUS(f.prompt({1, 64}), AJOUR_INVALID_ARGUMENT, "no token 64, the vocabulary has 64");
  EXPECT_STATUS(f.prompt(Ids(17, 1)), AJOUR_SHAPE, "17 tokens long, the model takes 16");
  const float *logits = nullptr;
  size_t count = 0;
  EXPECT_STATUS(ajour_generator_logits(f.generator, &logits, &count), AJOUR_STATE, "there are no logits");
  ASSERT_DONE(f.prompt({bosToken}));
  ASSERT_DONE(ajour_generator_logits(f.generator, &logits, &count));
  EXPECT_EQ(count, size_t(vocabulary));
  EXPECT_EQ(logits[nextToken({bosToken})], 9.0f);
  ajour_generate_options options = AJOUR_INIT(ajour_generate_options);
  options.top_p = 1.5f;
  EXPECT_STATUS(ajour_generator_generate(f.generator, &options, nullptr), AJOUR_INVALID_ARGUMENT, "top_p and min_p 0 to 1");
  options = AJOUR_INIT(ajour_generate_options);
  const char *empty = "";
  options.stops = &empty;
  options.stop_count = 1;
  EXPECT_STATUS(ajour_generator_generate(f.generator, &options, nullptr), AJOUR_INVALID_ARGUMENT, "stop string number 0 is empty");
  options = AJOUR_INIT(ajour_generate_options);
  options.flags = 64;
  EXPECT_STATUS(ajour_generator_generate(f.generator, &options, nullptr), AJOUR_INVALID_ARGUMENT, "unknown option flags");
  EXPECT_STATUS(ajour_generator_create(nullptr, nullptr, &f.generator), AJOUR_INVALID_ARGUMENT, "'session' is null");
}

TEST(GeneratorMessages, SayWhyAModelIsNoLanguageModel) {
  auto refused = [](TestModel model, const char *part) {
    Loaded loaded = loadBytes(model.bytes());
    ASSERT_EQ(loaded.status, AJOUR_OK) << loaded.message;
    Session session(loaded.model);
    ajour_generator *generator = nullptr;
    EXPECT_STATUS(ajour_generator_create(session.handle, nullptr, &generator), AJOUR_INVALID_ARGUMENT, part);
  };
  refused(makeAffine(), "its input 'x' is none of");
  TestModel model = makeTextModel(true);
  model.description.inputs[0]->name = "rows";
  refused(std::move(model), "has no input 'tokens'");
  model = makeTextModel(true);
  model.description.outputs[0]->name = "scores";
  refused(std::move(model), "has no output 'logits'");
  model = makeTextModel(true);
  model.description.inputs[1]->element_type = AJOUR_F64;
  refused(std::move(model), "its input 'positions' has the type f64");
  model = makeTextModel(true);
  model.description.outputs[0]->element_type = AJOUR_I32;
  refused(std::move(model), "not one f32 for each token");
}

TEST(Wrapper, TokenizesAndGenerates) {
  std::string bytes = makeTextModel(true).bytes();
  ajour::Result<ajour::Model> model = ajour::Model::load(bytes.data(), bytes.size());
  ASSERT_TRUE(model) << model.message();
  ajour::Result<ajour::Tokenizer> tokenizer = ajour::Tokenizer::open(*model);
  ASSERT_TRUE(tokenizer) << tokenizer.message();
  ajour::Result<std::vector<int32_t>> ids = tokenizer->encode("a<s>b", AJOUR_TEXT_ADD_SPECIAL | AJOUR_TEXT_SPECIAL);
  ASSERT_TRUE(ids) << ids.message();
  EXPECT_EQ(*ids, (Ids{bosToken, 16, bosToken, 17}));
  EXPECT_EQ(*tokenizer->encode("<s>b", AJOUR_TEXT_ADD_SPECIAL | AJOUR_TEXT_SPECIAL), (Ids{bosToken, 17})) << "one begin token";
  EXPECT_EQ(*tokenizer->encode("<s>b", AJOUR_TEXT_ADD_SPECIAL), (Ids{bosToken, 60, 34, 61, 17})) << "text gives no commands";
  EXPECT_EQ(*tokenizer->decode(*ids), "ab");
  EXPECT_EQ(*tokenizer->decode({52, 53, 52, 16, 54}), "\u00e9\ufffd" "a\ufffd\ufffd");
  EXPECT_FALSE(tokenizer->decode({64}));
  ajour::Result<ajour::Session> session = model->createSession();
  ASSERT_TRUE(session);
  ajour::Result<ajour::Generator> generator = ajour::Generator::create(*session, *tokenizer);
  ASSERT_TRUE(generator) << generator.message();
  ASSERT_TRUE(generator->setPrompt({bosToken, 16}));
  ajour_generate_options options = AJOUR_INIT(ajour_generate_options);
  options.max_tokens = 3;
  std::string text;
  ajour::Result<ajour_generate_result> result = generator->generate(options, [&](std::string_view piece) {
    text += piece;
    return true;
  });
  ASSERT_TRUE(result) << result.message();
  EXPECT_EQ(result->tokens, 3u);
  EXPECT_EQ(text, *tokenizer->decode(continuation({bosToken, 16}, 3)));
}

TEST(GeneratorInC, TheExampleOfTheDocuments) {
  std::string path = temporaryPath("text.ajour"), out = temporaryPath("text.out");
  writeFile(path, makeTextModel(true).bytes());
  std::string command = std::string(AJOUR_GENERATE_IN_C) + " " + path + " ab 6 2>&1 >" + out;
  FILE *pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char line[200] = "";
  EXPECT_NE(fgets(line, sizeof(line), pipe), nullptr);
  EXPECT_EQ(pclose(pipe), 0) << line;
  Ids prompt = {bosToken, 14}, next;
  for (Ids all = prompt; next.size() < 6 && nextToken(all) != eosToken; all.push_back(next.back()))
    next.push_back(nextToken(all));
  EXPECT_EQ(std::string(line).substr(0, 8), std::to_string(next.size()) + " tokens");
  EXPECT_EQ(readFile(out), textOf(next));
  unlink(path.c_str());
  unlink(out.c_str());
}

} // namespace
