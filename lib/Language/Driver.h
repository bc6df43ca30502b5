/// How a language model's session is fed: the roles of its inputs by their names (docs/LANGUAGE_MODELS.md).
#ifndef AJOUR_LIB_LANGUAGE_DRIVER_H
#define AJOUR_LIB_LANGUAGE_DRIVER_H

#include "ajour/Language/Text.h"
#include "ajour/ajour.h"

namespace ajour::language {

class Driver {
public:
  /// Finds the roles of the model's inputs. Errors: INVALID_ARGUMENT, says what is missing or not known.
  ajour_status_code open(ajour_session *session);

  /// Gives the model `count` tokens, at most `batch`, behind `past` others. `all`: the logits of every one are wanted, else
  /// those of the last.
  ajour_status_code run(const int32_t *ids, size_t count, int64_t past, bool all);
  /// Logits of the last run's token number `i` of `count`; null when the model did not give them.
  const float *logits(size_t i, size_t count) const;

  ajour_session *session = nullptr;
  int64_t context = -1; ///< most tokens in all, -1: no bound
  int64_t batch = 1;    ///< most of one run
  int32_t vocabulary = 0;
  bool rewinds = true;  ///< states hold each position's part at its place and nothing else

private:
  enum class Role { Tokens, Positions, Visible, Rows, Past, Length, Count };
  struct Input {
    int index = -1;
    uint32_t elementType = 0, rank = 0;
    bool symbolic[AJOUR_MAX_RANK] = {}; ///< which dimensions are
  };

  ajour_status_code findInputs(const ajour_model *model);
  ajour_status_code takeInput(const ajour_model *model, Role role, int index, const ajour_tensor_info &info);
  ajour_status_code findStates(const ajour_model *model);
  ajour_status_code fill(Role role, const int32_t *ids, size_t count, int64_t past, bool all);
  const Input &input(Role role) const { return inputs[int(role)]; }

  Input inputs[int(Role::Count)];
  int output = -1;
  const float *given = nullptr; ///< of the last run
  size_t rows = 0;
};

} // namespace ajour::language

#endif
