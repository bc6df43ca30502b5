//===- EngineProcess.cpp - An engine in a process of its own --------------===//

#include "ToolSupport/EngineProcess.h"
#include "ToolSupport/Npy.h"
#include "ToolSupport/Progress.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <csignal>
#if defined(__linux__)
#include <sys/prctl.h>
#endif
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ajour::tools {

namespace {

enum Command : uint32_t { Burst = 1, Outputs = 2, Peak = 3, Prompt = 4, Generate = 5 };

struct Request {
  uint32_t command, argument;
  uint32_t behind; ///< tokens that others are generated behind
};

/// Before every answer: how many bytes follow and whether they are an error message.
struct AnswerHead {
  uint64_t size;
  uint64_t failed;
};

bool sendAll(int socket, const void *data, size_t size) {
  const auto *bytes = static_cast<const char *>(data);
  while (size) {
    ssize_t count = send(socket, bytes, size, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    bytes += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

bool receiveAll(int socket, void *data, size_t size) {
  auto *bytes = static_cast<char *>(data);
  while (size) {
    ssize_t count = recv(socket, bytes, size, 0);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    bytes += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

template <typename T> void append(Bytes &bytes, const T &value) {
  const auto *data = reinterpret_cast<const std::byte *>(&value);
  bytes.insert(bytes.end(), data, data + sizeof(T));
}

template <typename T> T take(std::span<const std::byte> &bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes = bytes.subspan(sizeof(T));
  return value;
}

using Clock = std::chrono::steady_clock;

double millisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Bytes runBurst(Engine &engine, uint32_t count) {
  engine.run();
  Bytes times;
  times.reserve(count * sizeof(double));
  for (uint32_t i = 0; i < count; ++i) {
    Clock::time_point start = Clock::now();
    engine.run();
    append(times, millisecondsSince(start));
  }
  return times;
}

/// Tokens that mean nothing, the same for every engine.
std::vector<int32_t> someTokens(uint32_t count, uint32_t vocabulary) {
  std::vector<int32_t> tokens(count);
  for (uint32_t i = 0; i < count; ++i)
    tokens[i] = static_cast<int32_t>((1 + uint64_t(i) * 7919) % vocabulary);
  return tokens;
}

/// Milliseconds that `count` tokens of a prompt, or generated behind `behind` tokens, take. `read` is how many tokens the generation before
/// followed, 0: there was none.
Bytes runTokens(LanguageEngine &engine, uint32_t command, uint32_t count, uint32_t behind, uint32_t &read) {
  uint32_t vocabulary = engine.vocabulary();
  if (vocabulary < 2)
    throw ToolError("the model's vocabulary has " + std::to_string(vocabulary) + " tokens");
  if (command == Generate && read == behind)
    engine.rewind(someTokens(behind, vocabulary));
  else if (command == Generate)
    engine.prompt(someTokens(behind, vocabulary));
  read = command == Generate ? behind : 0;
  std::vector<int32_t> tokens = someTokens(count, vocabulary);
  Clock::time_point start = Clock::now();
  if (command == Generate)
    engine.generate(count);
  else
    engine.prompt(tokens);
  Bytes bytes;
  append(bytes, millisecondsSince(start));
  return bytes;
}

Bytes packOutputs(Engine &engine) {
  Bytes bytes;
  for (const HostTensor &tensor : engine.outputs()) {
    Bytes npy = formatNpy(tensor);
    append(bytes, static_cast<uint64_t>(npy.size()));
    bytes.insert(bytes.end(), npy.begin(), npy.end());
  }
  return bytes;
}

bool answer(int socket, bool failed, std::span<const std::byte> bytes) {
  AnswerHead head{bytes.size(), failed};
  return sendAll(socket, &head, sizeof(head)) && sendAll(socket, bytes.data(), bytes.size());
}

/// The child's life: load, then answer requests until the parent hangs up.
void serve(int socket, const EngineKind &kind, const EngineConfig &config) {
  Clock::time_point start = Clock::now();
  LanguageEngine *language = nullptr;
  std::unique_ptr<Engine> engine;
  if (config.context > 0) {
    std::unique_ptr<LanguageEngine> created = kind.createLanguage(config);
    language = created.get();
    engine = std::move(created);
  } else {
    engine = kind.create(config);
  }
  double loadMs = millisecondsSince(start);
  Bytes hello;
  append(hello, loadMs);
  append(hello, engine->macs());
  append(hello, engine->weights());
  for (char c : engine->version())
    append(hello, c);
  if (!answer(socket, false, hello))
    return;
  Request request;
  uint32_t read = 0;
  while (receiveAll(socket, &request, sizeof(request))) {
    Bytes bytes;
    if (request.command == Burst)
      bytes = runBurst(*engine, request.argument);
    else if (language && (request.command == Prompt || request.command == Generate))
      bytes = runTokens(*language, request.command, request.argument, request.behind, read);
    else if (request.command == Outputs)
      bytes = packOutputs(*engine);
    else
      append(bytes, peakResidentBytes());
    if (!answer(socket, false, bytes))
      return;
  }
}

} // namespace

EngineProcess::EngineProcess(const EngineKind &kind, const EngineConfig &config) : engineName(kind.name) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    throw ToolError(engineName + ": cannot make a socket: " + std::strerror(errno));
  std::fflush(nullptr);
  child = fork();
  if (child < 0) {
    close(sockets[0]);
    close(sockets[1]);
    throw ToolError(engineName + ": cannot start a process: " + std::strerror(errno));
  }
  if (child == 0) {
    close(sockets[0]);
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    try {
      serve(sockets[1], kind, config);
    } catch (const std::exception &error) {
      answer(sockets[1], true, std::as_bytes(std::span(error.what(), std::strlen(error.what()))));
    }
    // Without the exit handlers: they belong to the parent.
    _exit(0);
  }
  close(sockets[1]);
  socket = sockets[0];
  Bytes hello = receive();
  std::span<const std::byte> bytes(hello);
  loadMs = take<double>(bytes);
  engineMacs = take<MacCounts>(bytes);
  engineWeights = take<WeightCounts>(bytes);
  engineVersion.assign(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

EngineProcess::~EngineProcess() {
  if (socket >= 0) {
    // Closing alone is not seen: engines that were started later hold a copy of this end.
    shutdown(socket, SHUT_RDWR);
    close(socket);
  }
  if (child > 0)
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
}

Bytes EngineProcess::receive() {
  AnswerHead head;
  Bytes bytes;
  bool whole = receiveAll(socket, &head, sizeof(head));
  if (whole) {
    bytes.resize(head.size);
    whole = receiveAll(socket, bytes.data(), bytes.size());
  }
  if (whole && !head.failed)
    return bytes;
  close(socket);
  socket = -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  child = -1;
  if (whole)
    throw ToolError(std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
  throw ToolError(engineName + ": the engine's process died" +
                  (WIFSIGNALED(status) ? " of signal " + std::to_string(WTERMSIG(status)) : ""));
}

Bytes EngineProcess::request(uint32_t command, uint32_t argument, uint32_t behind) {
  Request request{command, argument, behind};
  // When the child is gone, receive() finds out why.
  sendAll(socket, &request, sizeof(request));
  return receive();
}

std::vector<double> EngineProcess::burst(uint32_t count) {
  Bytes bytes = request(Burst, count);
  std::vector<double> times(bytes.size() / sizeof(double));
  std::memcpy(times.data(), bytes.data(), times.size() * sizeof(double));
  return times;
}

double EngineProcess::tokens(uint32_t command, uint32_t count, uint32_t behind) {
  Bytes packed = request(command, count, behind);
  std::span<const std::byte> bytes(packed);
  return take<double>(bytes);
}

double EngineProcess::prompt(uint32_t count) { return tokens(Prompt, count, 0); }
double EngineProcess::generate(uint32_t count, uint32_t behind) { return tokens(Generate, count, behind); }

std::vector<HostTensor> EngineProcess::outputs() {
  Bytes packed = request(Outputs);
  std::span<const std::byte> bytes(packed);
  std::vector<HostTensor> tensors;
  while (!bytes.empty()) {
    uint64_t size = take<uint64_t>(bytes);
    tensors.push_back(parseNpy(bytes.subspan(0, size), engineName));
    bytes = bytes.subspan(size);
  }
  return tensors;
}

uint64_t EngineProcess::peakBytes() {
  Bytes packed = request(Peak);
  std::span<const std::byte> bytes(packed);
  return take<uint64_t>(bytes);
}

} // namespace ajour::tools
