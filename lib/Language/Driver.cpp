#include "Driver.h"

#include "ajour/ABI/ElementTypes.h"
#include "ajour/Runtime/Message.h"
#include "ajour/Runtime/SessionAccess.h"

#include <cstring>


namespace ajour::language {

using runtime::fail;
using runtime::nameOf;

/// The names of the roles, in their order, and how many of an input's last dimensions may be longer than 1.
static constexpr const char *roleNames[] = {"tokens", "positions", "visible", "rows", "past", "length"};
static constexpr uint32_t roleRanks[] = {1, 1, 2, 1, 0, 0};

ajour_status_code Driver::open(ajour_session *opened) {
  session = opened;
  const ajour_model *model = runtime::modelOf(session);
  TRY(findInputs(model));
  output = ajour_model_find_output(model, "logits");
  if (output < 0)
    return fail(AJOUR_INVALID_ARGUMENT, "%s: is no language model: it has no output 'logits'", nameOf(model));
  ajour_tensor_info info = AJOUR_INIT(ajour_tensor_info);
  TRY(ajour_model_output(model, uint32_t(output), &info));
  int64_t width = info.rank > 0 ? info.dims[info.rank - 1] : -1;
  if (info.element_type != AJOUR_F32 || width < 1 || width > INT32_MAX)
    return fail(AJOUR_INVALID_ARGUMENT, "%s: its output 'logits' has not one f32 for each token of a vocabulary of a fixed size", nameOf(model));
  vocabulary = int32_t(width);
  return findStates(model);
}

ajour_status_code Driver::findInputs(const ajour_model *model) {
  ajour_model_info whole = AJOUR_INIT(ajour_model_info);
  TRY(ajour_model_get_info(model, &whole));
  for (uint32_t i = 0; i < whole.input_count; ++i) {
    ajour_tensor_info info = AJOUR_INIT(ajour_tensor_info);
    TRY(ajour_model_input(model, i, &info));
    int role = 0;
    while (role < int(Role::Count) && std::strcmp(info.name, roleNames[role]) != 0)
      ++role;
    if (role == int(Role::Count))
      return fail(AJOUR_INVALID_ARGUMENT,
                  "%s: is no language model that can be driven: its input '%.100s' is none of 'tokens', 'positions', 'visible', 'rows', "
                  "'past', 'length'",
                  nameOf(model), info.name);
    TRY(takeInput(model, Role(role), int(i), info));
  }
  if (input(Role::Tokens).index < 0)
    return fail(AJOUR_INVALID_ARGUMENT, "%s: is no language model: it has no input 'tokens'", nameOf(model));
  return AJOUR_OK;
}

/// Takes the smaller of two bounds, where -1 is none.
static void tighten(int64_t &bound, int64_t other) {
  if (other >= 0 && (bound < 0 || other < bound))
    bound = other;
}

ajour_status_code Driver::takeInput(const ajour_model *model, Role role, int index, const ajour_tensor_info &info) {
  Input &taken = inputs[int(role)];
  taken.index = index;
  taken.elementType = info.element_type;
  taken.rank = info.rank;
  bool visible = role == Role::Visible;
  bool good = visible ? info.element_type == AJOUR_BOOL : info.element_type == AJOUR_I64 || info.element_type == AJOUR_I32;
  uint32_t needed = roleRanks[int(role)];
  good = good && info.rank >= needed;
  for (uint32_t d = 0; good && d < info.rank; ++d) {
    bool free = d + needed >= info.rank;
    taken.symbolic[d] = info.dims[d] < 0;
    // A model of a fixed number of tokens takes one at a time.
    good = info.dims[d] == 1 || (free && info.dims[d] < 0);
  }
  if (!good)
    return fail(AJOUR_INVALID_ARGUMENT, "%s: its input '%s' has the type %s and rank %u, expected %s with %u symbolic dimensions", nameOf(model),
                roleNames[int(role)], ajour_element_name(ajour_element_type(info.element_type)), info.rank,
                visible ? "bool" : "i64 or i32", needed);
  if (role == Role::Tokens)
    batch = taken.symbolic[info.rank - 1] ? info.dim_max[info.rank - 1] : 1;
  if (visible)
    tighten(context, info.dim_max[info.rank - 1]);
  // Where the model gives no bound, an ordinary amount at a time.
  if (batch < 0)
    batch = 512;
  return AJOUR_OK;
}

ajour_status_code Driver::findStates(const ajour_model *model) {
  ajour_model_info whole = AJOUR_INIT(ajour_model_info);
  TRY(ajour_model_get_info(model, &whole));
  int64_t rowsOfKeys = -1;
  for (uint32_t i = 0; i < whole.state_count; ++i) {
    ajour_tensor_info info = AJOUR_INIT(ajour_tensor_info);
    TRY(ajour_model_state(model, i, &info));
    bool byPosition = std::strncmp(info.name, "key", 3) == 0 || std::strncmp(info.name, "value", 5) == 0;
    rewinds = rewinds && byPosition;
    if (byPosition && info.rank > 0)
      tighten(rowsOfKeys, info.dims[0]);
  }
  for (uint32_t i = 0;; ++i) {
    ajour_symbol_info symbol = AJOUR_INIT(ajour_symbol_info);
    if (ajour_model_symbol(model, i, &symbol) != AJOUR_OK)
      break;
    if (std::strcmp(symbol.name, "length") == 0)
      tighten(context, symbol.max);
  }
  if (context < 0)
    context = rowsOfKeys;
  return AJOUR_OK;
}

ajour_status_code Driver::fill(Role role, const int32_t *ids, size_t count, int64_t past, bool all) {
  const Input &to = input(role);
  if (to.index < 0)
    return AJOUR_OK;
  int64_t total = past + int64_t(count), shape[AJOUR_MAX_RANK];
  int64_t rowCount = role == Role::Rows && !all ? 1 : int64_t(count);
  for (uint32_t d = 0; d < to.rank; ++d)
    shape[d] = !to.symbolic[d] ? 1 : role == Role::Visible && d + 1 == to.rank ? total : rowCount;
  TRY(ajour_session_set_input_shape(session, uint32_t(to.index), shape, to.rank));
  void *data = nullptr;
  size_t bytes = 0;
  TRY(ajour_session_input_data(session, uint32_t(to.index), &data, &bytes));
  if (role == Role::Visible) {
    auto *visible = static_cast<uint8_t *>(data);
    for (size_t i = 0; i < count; ++i) {
      size_t seen = size_t(past) + i + 1;
      std::memset(visible + i * size_t(total), 1, seen);
      std::memset(visible + i * size_t(total) + seen, 0, size_t(total) - seen);
    }
    return AJOUR_OK;
  }
  size_t elements = bytes / ajour_element_size(to.elementType);
  for (size_t i = 0; i < elements; ++i) {
    int64_t value = role == Role::Tokens      ? ids[i]
                    : role == Role::Positions ? past + int64_t(i)
                    : role == Role::Past      ? past
                    : role == Role::Length    ? total
                    : all                     ? int64_t(i)
                                              : int64_t(count) - 1;
    if (to.elementType == AJOUR_I64)
      static_cast<int64_t *>(data)[i] = value;
    else
      static_cast<int32_t *>(data)[i] = int32_t(value);
  }
  return AJOUR_OK;
}

ajour_status_code Driver::run(const int32_t *ids, size_t count, int64_t past, bool all) {
  given = nullptr;
  for (int role = 0; role < int(Role::Count); ++role)
    TRY(fill(Role(role), ids, count, past, all));
  TRY(ajour_session_run(session));
  ajour_tensor_view view = AJOUR_INIT(ajour_tensor_view);
  TRY(ajour_session_output(session, uint32_t(output), &view));
  given = static_cast<const float *>(view.data);
  rows = view.bytes / sizeof(float) / size_t(vocabulary);
  return AJOUR_OK;
}

const float *Driver::logits(size_t i, size_t count) const {
  // One row for each token, or for the last of them alone.
  size_t row = rows == count ? i : i + 1 == count ? rows - 1 : rows;
  return given && row < rows ? given + row * size_t(vocabulary) : nullptr;
}

} // namespace ajour::language
