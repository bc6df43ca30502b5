#include "State.h"

#include "ajour/ABI/ElementTypes.h"
#include "ajour/Runtime/MemoryPlan.h"

#include <cstring>

namespace ajour::runtime {

using Number = unsigned long long;
using artifact::BufferKind;

/// In front of saved states; the states' bytes follow, one after the other without gaps.
struct SavedHeader {
  char magic[8];
  uint64_t version;
  uint64_t model;    ///< checksum of the states' names, types and shapes, and of what tells the model's weights from others
  uint64_t bytes;    ///< of the states
  uint64_t checksum; ///< of those bytes
};

static constexpr char savedMagic[8] = {'A', 'J', 'O', 'U', 'R', 'S', 'T', 0};
static constexpr uint64_t savedVersion = 1;

static uint32_t stateCount(const ajour_model &model) { return sizeOf(model.description->states()); }
static const artifact::State &stateOf(const ajour_model &model, uint32_t i) {
  return *model.description->states()->Get(i);
}

uint64_t stateBytes(const artifact::State &state) {
  uint64_t bytes = ajour_element_size(state.element_type());
  for (uint32_t d = 0; d < sizeOf(state.shape()); ++d)
    bytes *= static_cast<uint64_t>(state.shape()->Get(d));
  return bytes;
}

/// Bytes of one buffer of a state.
static uint64_t paddedBytes(const artifact::State &state) {
  uint64_t padded;
  paddedBufferSize(stateBytes(state), padded);
  return padded;
}

uint64_t stateMemory(const ajour_model &model) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < stateCount(model); ++i)
    total += paddedBytes(stateOf(model, i)) * (stateOf(model, i).buffer() == stateOf(model, i).next() ? 1 : 2);
  return total;
}

void connectStates(ajour_session &session) {
  uint8_t *at = session.states.data();
  for (uint32_t i = 0; i < stateCount(*session.model); ++i) {
    const artifact::State &state = stateOf(*session.model, i);
    uint64_t size = paddedBytes(state);
    bool inPlace = state.buffer() == state.next();
    session.pointers[state.buffer()] = at + (!inPlace && session.stateTurn ? size : 0);
    if (!inPlace)
      session.pointers[state.next()] = at + (session.stateTurn ? 0 : size);
    at += inPlace ? size : 2 * size;
  }
  for (const StateOperand &operand : session.stateOperands)
    session.operands[operand.operand] = session.pointers[operand.buffer];
}

ajour_status_code initStates(ajour_session &session) {
  const ajour_model &model = *session.model;
  if (stateCount(model) == 0)
    return AJOUR_OK;
  uint32_t found = 0;
  for (bool counting : {true, false}) {
    if (!counting && !session.stateOperands.reset(found))
      return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for %u operands", model.name, found);
    found = 0;
    for (const LoadedDispatch &dispatch : model.dispatches)
      for (uint32_t i = 0; i < sizeOf(dispatch.variant->operands()); ++i) {
        uint32_t buffer = dispatch.variant->operands()->Get(i);
        if (model.buffer(buffer).kind() != BufferKind::State)
          continue;
        if (!counting)
          session.stateOperands[found] = {dispatch.firstOperand + i, buffer};
        ++found;
      }
  }
  uint64_t bytes = stateMemory(model);
  if (session.memoryBudget != 0 && bytes > session.memoryBudget)
    return fail(AJOUR_OUT_OF_MEMORY, "%s: the states take %llu bytes; the budget is %llu", model.name, (Number)bytes,
                (Number)session.memoryBudget);
  if (!session.states.reset(bytes))
    return fail(AJOUR_OUT_OF_MEMORY, "%s: no memory for %llu bytes of state", model.name, (Number)bytes);
  resetStates(session);
  return AJOUR_OK;
}

void resetStates(ajour_session &session) {
  const ajour_model &model = *session.model;
  if (stateCount(model) == 0)
    return;
  session.stateTurn = false;
  session.statesBroken = false;
  std::memset(session.states.data(), 0, session.states.size());
  connectStates(session);
  for (uint32_t i = 0; i < stateCount(model); ++i) {
    const artifact::State &state = stateOf(model, i);
    if (state.initial_segment() == noInitialSegment)
      continue;
    uint64_t offset = model.description->segments()->Get(state.initial_segment())->offset() + state.initial_offset();
    std::memcpy(session.pointers[state.buffer()], model.source.data() + offset, stateBytes(state));
  }
}

void advanceStates(ajour_session &session) {
  session.statesBroken = false;
  if (stateCount(*session.model) == 0)
    return;
  session.stateTurn = !session.stateTurn;
  connectStates(session);
}

void breakStates(ajour_session &session) {
  for (uint32_t i = 0; i < stateCount(*session.model); ++i)
    session.statesBroken |= stateOf(*session.model, i).buffer() == stateOf(*session.model, i).next();
}

ajour_status_code checkStates(const ajour_session &session) {
  if (!session.statesBroken)
    return AJOUR_OK;
  return fail(AJOUR_STATE, "%s: a run that was cancelled has left its states half changed; reset or restore them",
              session.model->name);
}

/// Two artifacts of one model, for different CPUs or compiled anew, have the same.
static uint64_t fingerprint(const ajour_model &model) {
  uint64_t sum = savedVersion;
  auto add = [&sum](const void *data, size_t bytes) {
    uint64_t both[2] = {sum, ajour_checksum(data, bytes)};
    sum = ajour_checksum(both, sizeof(both));
  };
  for (uint32_t i = 0; i < stateCount(model); ++i) {
    const artifact::State &state = stateOf(model, i);
    add(state.name()->c_str(), state.name()->size());
    uint64_t type = state.element_type();
    add(&type, sizeof(type));
    for (uint32_t d = 0; d < sizeOf(state.shape()); ++d) {
      int64_t size = state.shape()->Get(d);
      add(&size, sizeof(size));
    }
  }
  // A damaged one has a checksum of its own, which is as good as an unknown one.
  for (uint32_t i = 0; i < sizeOf(model.description->attachments()); ++i) {
    const artifact::Attachment &attachment = *model.description->attachments()->Get(i);
    uint64_t checksum = model.description->segments()->Get(attachment.segment())->checksum();
    if (std::strcmp(textOf(attachment.name()), "identity") == 0)
      add(&checksum, sizeof(checksum));
  }
  return sum;
}

static uint64_t contentBytes(const ajour_model &model) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < stateCount(model); ++i)
    bytes += stateBytes(stateOf(model, i));
  return bytes;
}

uint64_t savedStateBytes(const ajour_model &model) { return sizeof(SavedHeader) + contentBytes(model); }

void saveStates(const ajour_session &session, uint8_t *to) {
  const ajour_model &model = *session.model;
  SavedHeader header = {};
  std::memcpy(header.magic, savedMagic, sizeof(savedMagic));
  header.version = savedVersion;
  header.model = fingerprint(model);
  header.bytes = contentBytes(model);
  uint8_t *at = to + sizeof(header);
  for (uint32_t i = 0; i < stateCount(model); ++i) {
    uint64_t bytes = stateBytes(stateOf(model, i));
    std::memcpy(at, session.pointers[stateOf(model, i).buffer()], bytes);
    at += bytes;
  }
  header.checksum = ajour_checksum(to + sizeof(header), header.bytes);
  std::memcpy(to, &header, sizeof(header));
}

ajour_status_code restoreStates(ajour_session &session, const uint8_t *from, uint64_t size) {
  const ajour_model &model = *session.model;
  SavedHeader header;
  if (size < sizeof(header))
    return fail(AJOUR_BAD_FILE, "%s: a saved state has %llu bytes, fewer than its header", model.name, (Number)size);
  std::memcpy(&header, from, sizeof(header));
  if (std::memcmp(header.magic, savedMagic, sizeof(savedMagic)) != 0)
    return fail(AJOUR_BAD_FILE, "%s: the bytes are no saved state", model.name);
  if (header.version != savedVersion)
    return fail(AJOUR_VERSION, "%s: the saved state has version %llu, expected %llu", model.name,
                (Number)header.version, (Number)savedVersion);
  if (header.model != fingerprint(model))
    return fail(AJOUR_BAD_FILE, "%s: the saved state is that of another model: its weights are others, or its states have other names, types or shapes",
                model.name);
  if (header.bytes != contentBytes(model) || size != sizeof(header) + header.bytes)
    return fail(AJOUR_BAD_FILE, "%s: a saved state has %llu bytes, expected %llu", model.name, (Number)size,
                (Number)savedStateBytes(model));
  uint64_t sum = ajour_checksum(from + sizeof(header), header.bytes);
  if (sum != header.checksum)
    return fail(AJOUR_CHECKSUM, "%s: the saved state is damaged: checksum %016llx, expected %016llx", model.name,
                (Number)sum, (Number)header.checksum);
  const uint8_t *at = from + sizeof(header);
  for (uint32_t i = 0; i < stateCount(model); ++i) {
    uint64_t bytes = stateBytes(stateOf(model, i));
    std::memcpy(session.pointers[stateOf(model, i).buffer()], at, bytes);
    at += bytes;
  }
  session.statesBroken = false;
  return AJOUR_OK;
}

} // namespace ajour::runtime
