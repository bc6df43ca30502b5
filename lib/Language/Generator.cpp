#include "Generator.h"

#include "ajour/Runtime/Message.h"
#include "ajour/Runtime/SessionAccess.h"

#include <algorithm>
#include <cmath>


using namespace ajour::language;
using ajour::runtime::fail;
using ajour::runtime::nowNs;

using Number = unsigned long long;

const Tokenizer ajour_generator::none;

Bytes StopMatcher::take(bool end, bool &stopped) {
  size_t free = pending.size();
  for (uint32_t i = 0; i < count; ++i) {
    Bytes stop(stops[i], std::strlen(stops[i]));
    // The first place where the stop string stands, or where the text's end begins it.
    for (size_t at = 0; at < free; ++at) {
      size_t length = std::min(stop.size, pending.size() - at);
      if (std::memcmp(pending.data() + at, stop.data, length) != 0 || (end && length < stop.size))
        continue;
      free = at;
      break;
    }
  }
  for (uint32_t i = 0; i < count && !stopped; ++i) {
    size_t length = std::strlen(stops[i]);
    stopped = length <= pending.size() - free && std::memcmp(pending.data() + free, stops[i], length) == 0;
  }
  shown = stopped ? pending.size() : free;
  return {pending.data(), free};
}

ajour_generator::~ajour_generator() { ajour::runtime::setStopFlag(session, nullptr); }

const char *ajour_generator::name() const { return ajour::runtime::nameOf(ajour::runtime::modelOf(session)); }

ajour_status_code ajour_generator::open() {
  TRY(driver.open(session));
  if (tokenizer && tokenizer->tokenizer.size() > driver.vocabulary)
    return fail(AJOUR_INVALID_ARGUMENT, "%s: gives logits of %d tokens, but the tokenizer has %d", name(), driver.vocabulary,
                tokenizer->tokenizer.size());
  constexpr size_t usualText = 4096, usualLength = 4096;
  size_t length = driver.context < 0 ? usualLength : size_t(driver.context) + 1, words = (size_t(driver.vocabulary) + 63) / 64;
  uint64_t states = driver.rewinds ? 0 : ajour_model_saved_state_bytes(ajour::runtime::modelOf(session));
  if (!history.reserve(length) || !logits.fill(size_t(driver.vocabulary), 0) || !sampler.reserve(driver.vocabulary) ||
      !allowed.fill(words, ~uint64_t(0)) || !matcher.reserve(usualText) || !checkpoint.fill(states, 0))
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for a generator of %zu tokens and %llu bytes of state", name(), length, (Number)states);
  ajour::runtime::setStopFlag(session, &stop);
  return AJOUR_OK;
}

void ajour_generator::cancel() {
  stop.store(true, std::memory_order_seq_cst);
  ajour_session_cancel(session);
}

ajour_status_code ajour_generator::reset() {
  TRY(ajour_session_reset_state(session));
  history.clear();
  given = checkpointLength = 0;
  hasLogits = false;
  return AJOUR_OK;
}

ajour_status_code ajour_generator::checkTokens(const int32_t *tokens, size_t count) const {
  if (count == 0)
    return fail(AJOUR_INVALID_ARGUMENT, "%s: there are no tokens to begin with", name());
  if (driver.context >= 0 && count > size_t(driver.context))
    return fail(AJOUR_SHAPE, "%s: the text is %zu tokens long, the model takes %lld", name(), count, (long long)driver.context);
  for (size_t i = 0; i < count; ++i)
    if (tokens[i] < 0 || tokens[i] >= driver.vocabulary)
      return fail(AJOUR_INVALID_ARGUMENT, "%s: there is no token %d, the vocabulary has %d", name(), tokens[i], driver.vocabulary);
  return AJOUR_OK;
}

ajour_status_code ajour_generator::keepCheckpoint() {
  if (driver.rewinds)
    return AJOUR_OK;
  checkpointLength = 0;
  TRY(ajour_session_save_state(session, checkpoint.data(), checkpoint.size()));
  checkpointLength = given;
  return AJOUR_OK;
}

ajour_status_code ajour_generator::rewind(size_t length, size_t &kept) {
  kept = std::min(length, given);
  if (kept == given || driver.rewinds) {
    hasLogits = hasLogits && kept == given;
    given = kept;
    return AJOUR_OK;
  }
  hasLogits = false;
  if (checkpointLength != 0 && checkpointLength <= kept) {
    kept = given = 0;
    TRY(ajour_session_restore_state(session, checkpoint.data(), checkpoint.size()));
    kept = given = checkpointLength;
    return AJOUR_OK;
  }
  kept = given = checkpointLength = 0;
  return ajour_session_reset_state(session);
}

ajour_status_code ajour_generator::run(const int32_t *ids, size_t count, bool all) {
  hasLogits = false;
  ajour_status_code status = driver.run(ids, count, int64_t(given), all);
  if (status == AJOUR_OK) {
    given += count;
    return AJOUR_OK;
  }
  // What a cancelled run wrote lies behind the tokens seen, where nothing looks, if the model rewinds. Others must begin anew unless
  // their states are whole.
  if (driver.rewinds) {
    ajour::runtime::acceptStates(session);
    return status;
  }
  bool broken = false;
  ajour_model_info info = AJOUR_INIT(ajour_model_info);
  if (ajour_model_get_info(ajour::runtime::modelOf(session), &info) == AJOUR_OK)
    for (uint32_t i = 0; i < info.state_count; ++i)
      broken |= ajour::runtime::changesInPlace(ajour::runtime::modelOf(session), i);
  if (broken) {
    bool restored = checkpointLength != 0 && ajour_session_restore_state(session, checkpoint.data(), checkpoint.size()) == AJOUR_OK;
    given = restored ? checkpointLength : 0;
    if (!restored)
      ajour_session_reset_state(session);
    checkpointLength = given;
  }
  return status;
}

ajour_status_code ajour_generator::advance() {
  while (given < history.size()) {
    size_t count = std::min(size_t(driver.batch), history.size() - given);
    TRY(run(history.data() + given, count, false));
    if (given == history.size()) {
      const float *last = driver.logits(count - 1, count);
      if (!last)
        return fail(AJOUR_STATE, "%s: the model gave no logits", name());
      std::memcpy(logits.data(), last, size_t(driver.vocabulary) * sizeof(float));
      hasLogits = true;
    }
  }
  return AJOUR_OK;
}

ajour_status_code ajour_generator::setPrompt(const int32_t *tokens, size_t count, size_t &reused) {
  TRY(checkTokens(tokens, count));
  if (!history.reserve(count))
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for %zu tokens", name(), count);
  begin();
  uint64_t start = nowNs();
  size_t common = 0;
  while (common < count && common < given && history[common] == tokens[common])
    ++common;
  // What comes next is known behind the last token seen alone; behind another, that one is given once more.
  if (common == count && !(hasLogits && given == count))
    --common;
  TRY(rewind(common, reused));
  if (checkpointLength > common)
    checkpointLength = 0;
  history.shrink(reused);
  history.append(tokens + reused, count - reused);
  ajour_status_code status = advance();
  stats.prompt_ns += nowNs() - start;
  stats.reused_tokens += reused;
  stats.prompt_tokens += given > reused ? given - reused : 0;
  if (status != AJOUR_OK) {
    history.shrink(given);
    return status;
  }
  return keepCheckpoint();
}

/// Of all tokens, or of all but those that end texts.
bool ajour_generator::allowAll(bool ends) {
  if (ends)
    return false;
  std::fill_n(allowed.data(), allowed.size(), ~uint64_t(0));
  for (int32_t id = 0; tokenizer && id < tokenizer->tokenizer.size(); ++id)
    if (tokenizer->tokenizer.endsGeneration(id))
      allowed[size_t(id) >> 6] &= ~(uint64_t(1) << (id & 63));
  return true;
}

bool ajour_generator::isFirst() const {
  for (size_t i = 0; i < history.size(); ++i)
    if (!tokenizer->tokenizer.isControl(history[i]))
      return false;
  return true;
}

/// Which tokens the grammar allows now. `over`: none, because the text is complete.
ajour_status_code ajour_generator::constrain(const ajour_generate_options &options, bool &over) {
  const uint64_t *mask = grammar.allowed();
  if (!mask)
    return fail(AJOUR_OUT_OF_MEMORY, "%s: the grammar has too many ways to go on here", name());
  bool any = grammar.hasNext();
  choices = mask;
  if (any && (options.flags & AJOUR_GENERATE_IGNORE_END)) {
    any = false;
    std::memcpy(allowed.data(), mask, allowed.size() * sizeof(uint64_t));
    for (size_t i = 0; i < options.grammar->tree.ends.size(); ++i)
      allowed[size_t(options.grammar->tree.ends[i]) >> 6] &= ~(uint64_t(1) << (options.grammar->tree.ends[i] & 63));
    for (size_t i = 0; i < allowed.size(); ++i)
      any |= allowed[i] != 0;
    choices = allowed.data();
  }
  over = !any && grammar.mayEnd();
  if (!any && !over)
    return fail(AJOUR_STATE, "%s: the grammar allows no token of the vocabulary here", name());
  return AJOUR_OK;
}

ajour_status_code ajour_generator::choose(const ajour_generate_options &options, int32_t &id) {
  id = sampler.sample(logits.data(), driver.vocabulary, history.data(), history.size(), choices);
  if (id < 0)
    return fail(AJOUR_STATE, "%s: the model gave no number as a logit", name());
  if (!options.grammar || tokenizer->tokenizer.endsGeneration(id))
    return AJOUR_OK;
  Text bytes;
  tokenizer->tokenizer.decode(id, false, false, bytes);
  return !bytes.failed() && grammar.advance(bytesOf(bytes)) ? AJOUR_OK : fail(AJOUR_OUT_OF_MEMORY, "%s: the grammar has too many ways to go on here", name());
}

/// Gives the callback a token, -1 for the end. False: it wants no more.
bool ajour_generator::say(const ajour_generate_options &options, int32_t id, bool &stopped) {
  Bytes shown;
  if (tokenizer) {
    if (id >= 0)
      decoder.add(id, matcher.text());
    else
      decoder.finish(matcher.text());
    shown = matcher.take(id < 0, stopped);
  }
  if (!options.callback || (id < 0 && shown.size == 0))
    return true;
  ajour_generated event = {sizeof(event), id, shown.data ? shown.data : "", shown.size};
  return options.callback(options.user, &event) == 0;
}

static SamplerOptions samplerOptions(const ajour_generate_options &options) {
  SamplerOptions result;
  result.temperature = options.temperature;
  result.topK = options.top_k;
  result.topP = options.top_p == 0 ? 1 : options.top_p;
  result.minP = options.min_p;
  result.repetitionPenalty = options.repetition_penalty == 0 ? 1 : options.repetition_penalty;
  result.frequencyPenalty = options.frequency_penalty;
  result.presencePenalty = options.presence_penalty;
  result.penaltyWindow = options.penalty_window == 0 ? 64 : options.penalty_window;
  result.seed = options.seed;
  return result;
}

ajour_status_code ajour_generator::generate(const ajour_generate_options &options, ajour_generate_result &result) {
  begin();
  uint64_t start = nowNs();
  sampler.setOptions(samplerOptions(options));
  restricted = allowAll(!(options.flags & AJOUR_GENERATE_IGNORE_END));
  choices = restricted ? allowed.data() : nullptr;
  if (options.grammar && !grammar.reset(options.grammar->grammar, options.grammar->tree, options.grammar->identity, driver.vocabulary))
    return fail(AJOUR_OUT_OF_MEMORY, "%s: the grammar has too many ways to begin", name());
  matcher.reset(options.stops, options.stop_count);
  if (tokenizer)
    decoder.reset(isFirst());
  decoder.special = options.flags & AJOUR_GENERATE_SPECIAL;
  ajour_status_code status = AJOUR_OK;
  bool stopped = false;
  for (;;) {
    if (options.max_tokens != 0 && result.tokens >= options.max_tokens) {
      result.end = AJOUR_END_LENGTH;
      break;
    }
    // The last token that was chosen has not been given to the model yet.
    if (driver.context >= 0 && history.size() > size_t(driver.context)) {
      result.end = AJOUR_END_CONTEXT;
      break;
    }
    if ((status = advance()) != AJOUR_OK)
      break;
    int32_t id;
    bool over = false;
    if (options.grammar && (status = constrain(options, over)) != AJOUR_OK)
      break;
    if (over) {
      result.end = AJOUR_END_GRAMMAR;
      break;
    }
    if ((status = choose(options, id)) != AJOUR_OK)
      break;
    if (tokenizer && tokenizer->tokenizer.endsGeneration(id)) {
      result.end = AJOUR_END_MODEL;
      break;
    }
    if (!history.reserve(history.size() + 1)) {
      status = fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for %zu tokens", name(), history.size() + 1);
      break;
    }
    history.push(id);
    hasLogits = false;
    ++result.tokens;
    bool goOn = say(options, id, stopped);
    if (stopped || !goOn) {
      result.end = stopped ? AJOUR_END_STOP : AJOUR_END_CALLBACK;
      break;
    }
  }
  if (!stopped)
    say(options, -1, stopped);
  stats.generated_tokens += result.tokens;
  stats.generate_ns += nowNs() - start;
  return status;
}

/// Negative logarithm of a token's probability.
static double surprise(const float *logits, int32_t count, int32_t id) {
  double most = double(*std::max_element(logits, logits + count)), sum = 0;
  for (int32_t i = 0; i < count; ++i)
    sum += std::exp(double(logits[i]) - most);
  return most + std::log(sum) - double(logits[id]);
}

ajour_status_code ajour_generator::score(const int32_t *tokens, size_t count, size_t first, double &nll) {
  TRY(checkTokens(tokens, count));
  if (first == 0 || first >= count)
    return fail(AJOUR_INVALID_ARGUMENT, "%s: the first token to score is number %zu, expected 1 to %zu", name(), first, count - 1);
  begin();
  TRY(reset());
  if (!history.reserve(count))
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for %zu tokens", name(), count);
  uint64_t start = nowNs();
  double sum = 0;
  ajour_status_code status = AJOUR_OK;
  // A model that gives the last token's logits alone is asked token by token.
  size_t batch = size_t(driver.batch);
  while (given < count - 1 && status == AJOUR_OK) {
    size_t n = std::min(batch, count - 1 - given), from = given;
    bool all = from + n >= first;
    if ((status = run(tokens + from, n, all)) != AJOUR_OK)
      break;
    history.append(tokens + from, n);
    if (all && n > 1 && !driver.logits(0, n)) {
      batch = 1;
      TRY(reset());
      sum = 0;
      continue;
    }
    for (size_t i = 0; all && i < n; ++i)
      if (from + i + 1 >= first)
        sum += surprise(driver.logits(i, n), driver.vocabulary, tokens[from + i + 1]);
  }
  stats.prompt_tokens += given;
  stats.prompt_ns += nowNs() - start;
  if (status == AJOUR_OK)
    nll += sum;
  return status;
}
