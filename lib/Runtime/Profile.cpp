#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "Session.h"

namespace ajour::runtime {

namespace {

/// Text that may not fit: counts all of it, keeps what the capacity allows.
class Text {
public:
  Text(char *text, size_t capacity) : text(text), capacity(capacity) {}

  __attribute__((format(printf, 2, 3))) void add(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t room = length < capacity ? capacity - length : 0;
    int added = std::vsnprintf(room ? text + length : nullptr, room, format, arguments);
    va_end(arguments);
    length += added > 0 ? static_cast<size_t>(added) : 0;
  }

  /// Adds a string as the contents of a JSON string.
  void addEscaped(const char *string) {
    for (; *string != 0; ++string) {
      unsigned char c = static_cast<unsigned char>(*string);
      if (c == '"' || c == '\\')
        add("\\%c", c);
      else if (c < 0x20)
        add("\\u%04x", c);
      else
        add("%c", c);
    }
  }

  size_t length = 0;

private:
  char *text;
  size_t capacity;
};

} // namespace

static void addNodes(Text &text, const artifact::Dispatch &dispatch, const char *separator, bool escaped) {
  for (uint32_t i = 0; i < sizeOf(dispatch.nodes()); ++i) {
    if (i != 0)
      text.add("%s", separator);
    if (escaped)
      text.addEscaped(textOf(dispatch.nodes()->Get(i)));
    else
      text.add("%s", textOf(dispatch.nodes()->Get(i)));
  }
}

static void formatTable(const ajour_session &session, Text &text) {
  uint32_t count = static_cast<uint32_t>(session.profile.size());
  Array<uint32_t> order;
  if (!order.reset(count))
    return;
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) {
    order[i] = i;
    total += session.profile[i].totalNs;
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    uint64_t left = session.profile[a].totalNs, right = session.profile[b].totalNs;
    return left != right ? left > right : a < b;
  });
  text.add("%8s %6s %6s %10s %8s %8s  %-14s %s\n", "ms", "%", "calls", "us/call", "GMAC/s", "GB/s", "kind",
           "dispatch: nodes");
  for (uint32_t i : order) {
    const DispatchProfile &entry = session.profile[i];
    const artifact::Dispatch &dispatch = *session.model->dispatches[i].description;
    double ns = entry.calls ? double(entry.totalNs) / double(entry.calls) : 0;
    double perNs = ns > 0 ? 1 / ns : 0;
    text.add("%8.3f %6.2f %6llu %10.2f %8.2f %8.2f  %-14s %s: ", double(entry.totalNs) * 1e-6,
             total ? 100.0 * double(entry.totalNs) / double(total) : 0.0, (unsigned long long)entry.calls, ns * 1e-3,
             double(profileValue(session, dispatch.macs())) * perNs, double(operandBytes(session, i)) * perNs,
             textOf(dispatch.kind()), textOf(dispatch.name()));
    addNodes(text, dispatch, ", ", false);
    text.add("\n");
  }
  text.add("%8.3f ms in all\n", double(total) * 1e-6);
}

static void formatTrace(const ajour_session &session, Text &text) {
  text.add("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
  bool first = true;
  for (uint32_t i = 0; i < session.profile.size(); ++i) {
    const DispatchProfile &entry = session.profile[i];
    const artifact::Dispatch &dispatch = *session.model->dispatches[i].description;
    if (entry.calls == 0)
      continue;
    text.add("%s\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":\"", first ? "" : ",");
    first = false;
    text.addEscaped(textOf(dispatch.name()));
    text.add("\",\"cat\":\"");
    text.addEscaped(textOf(dispatch.kind()));
    text.add("\",\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"nodes\":\"", double(entry.lastStartNs) * 1e-3,
             double(entry.lastNs) * 1e-3);
    addNodes(text, dispatch, ", ", true);
    text.add("\",\"macs\":%llu,\"bytes\":%llu}}", (unsigned long long)profileValue(session, dispatch.macs()),
             (unsigned long long)operandBytes(session, i));
  }
  text.add("\n]}\n");
}

size_t formatProfile(const ajour_session &session, int format, char *text, size_t capacity) {
  Text out(text, capacity);
  if (format == AJOUR_PROFILE_TRACE_JSON)
    formatTrace(session, out);
  else
    formatTable(session, out);
  return out.length;
}

} // namespace ajour::runtime
