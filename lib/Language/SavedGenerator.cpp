// What a generator keeps, as bytes.
#include "Generator.h"

#include "ajour/ABI/ArtifactHeader.h"
#include "ajour/Runtime/Message.h"
#include "ajour/Runtime/SessionAccess.h"


using namespace ajour::language;
using ajour::runtime::fail;
using Number = unsigned long long;

namespace {

/// In front; tokens (i32), logits (f32, if there are some) and the session's saved state follow without gaps.
struct SavedHeader {
  char magic[8];
  uint64_t version;
  uint64_t tokens, given;
  uint64_t logits; ///< how many: the vocabulary, or 0
  uint64_t state;  ///< bytes
  uint64_t seed, random;
  uint64_t checksum; ///< of what follows
};

constexpr char savedMagic[8] = {'A', 'J', 'O', 'U', 'R', 'G', 'N', 0};
constexpr uint64_t savedVersion = 1;

} // namespace

uint64_t ajour_generator::savedBytes() const {
  return sizeof(SavedHeader) + history.size() * sizeof(int32_t) + size_t(driver.vocabulary) * sizeof(float) +
         ajour_model_saved_state_bytes(ajour::runtime::modelOf(session));
}

ajour_status_code ajour_generator::save(uint8_t *to, uint64_t capacity, uint64_t &written) const {
  SavedHeader header = {};
  std::memcpy(header.magic, savedMagic, sizeof(savedMagic));
  header.version = savedVersion;
  header.tokens = history.size();
  header.given = given;
  header.logits = hasLogits ? logits.size() : 0;
  header.state = ajour_model_saved_state_bytes(ajour::runtime::modelOf(session));
  header.seed = sampler.position().seed;
  header.random = sampler.position().state;
  uint64_t content = header.tokens * sizeof(int32_t) + header.logits * sizeof(float) + header.state;
  if (capacity < sizeof(header) + content)
    return fail(AJOUR_INVALID_ARGUMENT, "%s: %llu bytes are too few for what a generator keeps, expected at least %llu", name(), (Number)capacity,
                (Number)(sizeof(header) + content));
  uint8_t *at = to + sizeof(header);
  if (history.size() != 0)
    std::memcpy(at, history.data(), history.size() * sizeof(int32_t));
  at += header.tokens * sizeof(int32_t);
  std::memcpy(at, logits.data(), header.logits * sizeof(float));
  at += header.logits * sizeof(float);
  TRY(ajour_session_save_state(session, at, header.state));
  header.checksum = ajour_checksum(to + sizeof(header), content);
  std::memcpy(to, &header, sizeof(header));
  written = sizeof(header) + content;
  return AJOUR_OK;
}

ajour_status_code ajour_generator::restore(const uint8_t *from, uint64_t bytes) {
  SavedHeader header;
  if (bytes < sizeof(header))
    return fail(AJOUR_BAD_FILE, "%s: what a generator kept has %llu bytes, fewer than its header", name(), (Number)bytes);
  std::memcpy(&header, from, sizeof(header));
  if (std::memcmp(header.magic, savedMagic, sizeof(savedMagic)) != 0)
    return fail(AJOUR_BAD_FILE, "%s: the bytes are not what a generator kept", name());
  if (header.version != savedVersion)
    return fail(AJOUR_VERSION, "%s: what a generator kept has version %llu, expected %llu", name(), (Number)header.version, (Number)savedVersion);
  uint64_t state = ajour_model_saved_state_bytes(ajour::runtime::modelOf(session)), vocabulary = uint64_t(driver.vocabulary);
  uint64_t most = driver.context < 0 ? bytes : uint64_t(driver.context) + 1;
  if (header.state != state || (header.logits != 0 && header.logits != vocabulary) || header.tokens > most || header.given > header.tokens)
    return fail(AJOUR_BAD_FILE, "%s: what a generator kept is that of another model", name());
  uint64_t content = header.tokens * sizeof(int32_t) + header.logits * sizeof(float) + header.state;
  if (bytes != sizeof(header) + content)
    return fail(AJOUR_BAD_FILE, "%s: what a generator kept has %llu bytes, expected %llu", name(), (Number)bytes, (Number)(sizeof(header) + content));
  uint64_t sum = ajour_checksum(from + sizeof(header), content);
  if (sum != header.checksum)
    return fail(AJOUR_CHECKSUM, "%s: what a generator kept is damaged: checksum %016llx, expected %016llx", name(), (Number)sum, (Number)header.checksum);
  if (!history.reserve(header.tokens))
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for %llu tokens", name(), (Number)header.tokens);
  const uint8_t *at = from + sizeof(header);
  for (uint64_t i = 0; i < header.tokens; ++i) {
    int32_t id;
    std::memcpy(&id, at + i * sizeof(id), sizeof(id));
    if (id < 0 || id >= driver.vocabulary)
      return fail(AJOUR_BAD_FILE, "%s: what a generator kept has a token %d, the vocabulary has %d", name(), id, driver.vocabulary);
  }
  const uint8_t *keptLogits = at + header.tokens * sizeof(int32_t);
  TRY(ajour_session_restore_state(session, keptLogits + header.logits * sizeof(float), header.state));
  history.clear();
  for (uint64_t i = 0; i < header.tokens; ++i) {
    int32_t id;
    std::memcpy(&id, at + i * sizeof(id), sizeof(id));
    history.push(id);
  }
  std::memcpy(logits.data(), keptLogits, header.logits * sizeof(float));
  hasLogits = header.logits != 0;
  given = header.given;
  sampler.setPosition({header.seed, header.random});
  return keepCheckpoint();
}
