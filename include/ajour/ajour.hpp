/// C++17 wrapper of ajour.h: owners for models and sessions, results that carry their message. Header
/// only; uses neither exceptions nor RTTI.
///
///   ajour::Result<ajour::Model> model = ajour::Model::load("net.ajour");
///   if (!model) { log(model.message()); return; }
///   ajour::Result<ajour::Session> session = model->createSession();
#ifndef AJOUR_AJOUR_HPP
#define AJOUR_AJOUR_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ajour/ajour.h"

namespace ajour {

/// What a call came to, with the message of a failure.
class [[nodiscard]] Status {
public:
  Status() = default;
  /// Takes this thread's message when `code` is a failure.
  explicit Status(ajour_status_code code) : code_(code), message_(code == AJOUR_OK ? "" : ajour_last_message()) {}

  bool ok() const { return code_ == AJOUR_OK; }
  explicit operator bool() const { return ok(); }
  ajour_status_code code() const { return code_; }
  const std::string &message() const { return message_; }

private:
  ajour_status_code code_ = AJOUR_OK;
  std::string message_;
};

/// A value, or why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  explicit operator bool() const { return value_.has_value(); }
  T &operator*() { return *value_; }
  T *operator->() { return &*value_; }
  const T &operator*() const { return *value_; }
  const T *operator->() const { return &*value_; }
  ajour_status_code code() const { return status_.code(); }
  const std::string &message() const { return status_.message(); }

private:
  std::optional<T> value_;
  Status status_;
};

/// An owned session; see the ajour_session_* functions for shapes, errors and threads.
class Session {
public:
  explicit Session(ajour_session *handle) : handle_(handle) {}
  Session(Session &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Session &operator=(Session &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Session() { ajour_session_destroy(handle_); }

  ajour_session *handle() const { return handle_; }

  /// Copies `data` in. Without a shape: the static or last set one.
  Status setInput(uint32_t index, const void *data, const std::vector<int64_t> &shape) {
    static const int64_t scalar = 0;
    const int64_t *dims = shape.empty() ? &scalar : shape.data();
    return Status(ajour_session_set_input(handle_, index, data, dims, static_cast<uint32_t>(shape.size())));
  }
  Status setInput(uint32_t index, const void *data) {
    return Status(ajour_session_set_input(handle_, index, data, nullptr, 0));
  }
  Status run() { return Status(ajour_session_run(handle_)); }
  /// From any thread.
  void cancel() { ajour_session_cancel(handle_); }
  /// A view of an output, valid until the next run or change of shape.
  Result<ajour_tensor_view> output(uint32_t index) {
    ajour_tensor_view view = AJOUR_INIT(ajour_tensor_view);
    if (ajour_status_code code = ajour_session_output(handle_, index, &view))
      return Status(code);
    return view;
  }
  /// Back to the model's initial values.
  Status resetState() { return Status(ajour_session_reset_state(handle_)); }
  /// All states, to be restored in any session of this model, which has `bytes` = Model::savedStateBytes().
  Result<std::vector<uint8_t>> saveState(uint64_t bytes) const {
    std::vector<uint8_t> saved(bytes);
    if (ajour_status_code code = ajour_session_save_state(handle_, saved.data(), saved.size()))
      return Status(code);
    return saved;
  }
  Status restoreState(const std::vector<uint8_t> &saved) {
    return Status(ajour_session_restore_state(handle_, saved.data(), saved.size()));
  }
  /// The profile as text or trace (ajour_profile_format).
  std::string profile(int format = AJOUR_PROFILE_TEXT) const {
    std::string text(ajour_session_format_profile(handle_, format, nullptr, 0) + 1, '\0');
    ajour_session_format_profile(handle_, format, text.data(), text.size());
    text.pop_back();
    return text;
  }

private:
  ajour_session *handle_;
};

/// An owned hold on a model; see the ajour_model_* functions.
class Model {
public:
  explicit Model(ajour_model *handle) : handle_(handle) {}
  Model(Model &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Model &operator=(Model &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Model() { ajour_model_destroy(handle_); }

  static Result<Model> load(const std::string &path, const ajour_load_options *options = nullptr) {
    ajour_model *handle = nullptr;
    if (ajour_status_code code = ajour_model_load_file(path.c_str(), options, &handle))
      return Status(code);
    return Model(handle);
  }
  static Result<Model> load(int fd, uint64_t offset, uint64_t size, const ajour_load_options *options = nullptr) {
    ajour_model *handle = nullptr;
    if (ajour_status_code code = ajour_model_load_fd(fd, offset, size, options, &handle))
      return Status(code);
    return Model(handle);
  }
  static Result<Model> load(const void *data, size_t size, const ajour_load_options *options = nullptr) {
    ajour_model *handle = nullptr;
    if (ajour_status_code code = ajour_model_load_memory(data, size, options, &handle))
      return Status(code);
    return Model(handle);
  }

  ajour_model *handle() const { return handle_; }

  ajour_model_info info() const {
    ajour_model_info info = AJOUR_INIT(ajour_model_info);
    ajour_model_get_info(handle_, &info);
    return info;
  }
  std::vector<ajour_tensor_info> inputs() const { return tensors(info().input_count, ajour_model_input); }
  std::vector<ajour_tensor_info> states() const { return tensors(info().state_count, ajour_model_state); }
  uint64_t savedStateBytes() const { return ajour_model_saved_state_bytes(handle_); }
  std::vector<ajour_tensor_info> outputs() const { return tensors(info().output_count, ajour_model_output); }
  Result<ajour_memory_info> memory(const ajour_session_options *options = nullptr,
                                   const int64_t *symbols = nullptr) const {
    ajour_memory_info memory = AJOUR_INIT(ajour_memory_info);
    if (ajour_status_code code = ajour_model_memory(handle_, options, symbols, &memory))
      return Status(code);
    return memory;
  }
  Result<Session> createSession(const ajour_session_options *options = nullptr) const {
    ajour_session *session = nullptr;
    if (ajour_status_code code = ajour_session_create(handle_, options, &session))
      return Status(code);
    return Session(session);
  }

private:
  template <typename Get> std::vector<ajour_tensor_info> tensors(uint32_t count, Get get) const {
    std::vector<ajour_tensor_info> result(count);
    for (uint32_t i = 0; i < count; ++i) {
      result[i].struct_size = sizeof(ajour_tensor_info);
      get(handle_, i, &result[i]);
    }
    return result;
  }

  ajour_model *handle_;
};

/// A model's own tokenizer; see the ajour_tokenizer_* functions.
class Tokenizer {
public:
  explicit Tokenizer(ajour_tokenizer *handle) : handle_(handle) {}
  Tokenizer(Tokenizer &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Tokenizer &operator=(Tokenizer &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Tokenizer() { ajour_tokenizer_destroy(handle_); }

  static Result<Tokenizer> open(const Model &model) {
    ajour_tokenizer *handle = nullptr;
    if (ajour_status_code code = ajour_tokenizer_create(model.handle(), &handle))
      return Status(code);
    return Tokenizer(handle);
  }

  ajour_tokenizer *handle() const { return handle_; }

  Result<std::vector<int32_t>> encode(std::string_view text, uint32_t flags = AJOUR_TEXT_ADD_SPECIAL) const {
    std::vector<int32_t> ids(text.size() + 16);
    for (size_t count = ids.size();;) {
      if (ajour_status_code code = ajour_tokenizer_encode(handle_, text.data(), text.size(), flags, ids.data(), ids.size(), &count))
        return Status(code);
      bool all = count <= ids.size();
      ids.resize(count);
      if (all)
        return ids;
    }
  }
  Result<std::string> decode(const std::vector<int32_t> &ids, uint32_t flags = 0) const {
    std::string text(ids.size() * 8, '\0');
    for (size_t bytes = 0;;) {
      if (ajour_status_code code = ajour_tokenizer_decode(handle_, ids.data(), ids.size(), flags, text.data(), text.size(), &bytes))
        return Status(code);
      bool all = bytes <= text.size();
      text.resize(bytes);
      if (all)
        return text;
    }
  }
  /// The text of a chat by the model's own template.
  Result<std::string> renderChat(const std::vector<ajour_chat_message> &messages, const ajour_chat_options &options) const {
    std::string text;
    for (size_t bytes = 0;;) {
      if (ajour_status_code code =
              ajour_tokenizer_render_chat(handle_, messages.data(), messages.size(), &options, text.data(), text.size(), &bytes))
        return Status(code);
      bool all = bytes <= text.size();
      text.resize(bytes);
      if (all)
        return text;
    }
  }

private:
  ajour_tokenizer *handle_;
};

/// A language model that speaks; see the ajour_generator_* functions. Session and tokenizer must outlive it.
class Generator {
public:
  explicit Generator(ajour_generator *handle) : handle_(handle) {}
  Generator(Generator &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Generator &operator=(Generator &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Generator() { ajour_generator_destroy(handle_); }

  static Result<Generator> create(const Session &session, const Tokenizer &tokenizer) {
    ajour_generator *handle = nullptr;
    if (ajour_status_code code = ajour_generator_create(session.handle(), tokenizer.handle(), &handle))
      return Status(code);
    return Generator(handle);
  }

  ajour_generator *handle() const { return handle_; }

  Status setPrompt(const std::vector<int32_t> &ids, size_t *reused = nullptr) {
    return Status(ajour_generator_set_prompt(handle_, ids.data(), ids.size(), reused));
  }
  /// `onText` gets whole UTF-8 as it comes and returns whether to go on; it replaces the options' callback.
  template <typename OnText> Result<ajour_generate_result> generate(ajour_generate_options options, OnText onText) {
    options.user = &onText;
    options.callback = [](void *user, const ajour_generated *generated) {
      return (*static_cast<OnText *>(user))(std::string_view(generated->text, generated->bytes)) ? 0 : 1;
    };
    ajour_generate_result result = AJOUR_INIT(ajour_generate_result);
    if (ajour_status_code code = ajour_generator_generate(handle_, &options, &result))
      return Status(code);
    return result;
  }
  /// From any thread.
  void cancel() { ajour_generator_cancel(handle_); }

private:
  ajour_generator *handle_;
};

} // namespace ajour

#endif
