//===- Companions.cpp - what stands beside a tokenizer.json ------------------------===//
//
// tokenizer_config.json names the tokens that begin and end texts and brings the chat template, chat_template.jinja brings it too, and
// generation_config.json says which tokens end what a model says. All may be absent.
//
//===----------------------------------------------------------------------===//
#include "Builder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <nlohmann/json.hpp>

using namespace llvm;

namespace ajour::text {

namespace {

using json = nlohmann::json;

/// A file's contents; empty: there is none.
std::string contentsOf(const std::string &path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(path);
  return file ? (*file)->getBuffer().str() : "";
}

/// An object; null where the file is absent. False: it is something else.
bool readObject(const std::string &path, json &object) {
  std::string contents = contentsOf(path);
  if (contents.empty())
    return true;
  object = json::parse(contents, nullptr, /*allow_exceptions=*/false);
  return object.is_object();
}

/// The id of a token that is given as its text, or as an object with it; -1: none.
int32_t tokenOf(const json &config, const char *key, const Builder &b) {
  if (!config.is_object() || !config.contains(key))
    return -1;
  const json &value = config[key];
  const json &text = value.is_object() && value.contains("content") ? value["content"] : value;
  if (!text.is_string())
    return -1;
  for (const auto &added : b.t.added)
    if (added->text == text.get<std::string>())
      return int32_t(added->id);
  return b.find(text.get<std::string>());
}

void addEnd(int64_t id, Builder &b) {
  if (id >= 0 && id < b.size() && !is_contained(b.t.end_of_generation, uint32_t(id)))
    b.t.end_of_generation.push_back(uint32_t(id));
}

/// The template among one or several with names: the one called "default", or the only one.
std::string templateOf(const json &config) {
  if (!config.is_object() || !config.contains("chat_template"))
    return "";
  const json &value = config["chat_template"];
  if (value.is_string())
    return value.get<std::string>();
  for (const json &entry : value.is_array() ? value : json::array())
    if (entry.is_object() && entry.value("template", json()).is_string() && (value.size() == 1 || entry.value("name", json()) == "default"))
      return entry["template"].get<std::string>();
  return "";
}

} // namespace

std::string readCompanions(StringRef tokenizerPath, Builder &b) {
  std::string folder = sys::path::parent_path(tokenizerPath).str();
  folder += folder.empty() ? "" : "/";
  json config, generation;
  for (auto [name, object] : {std::pair("tokenizer_config.json", &config), {"generation_config.json", &generation}})
    if (!readObject(folder + name, *object))
      return folder + name + ": is no JSON object";
  if (int32_t bos = tokenOf(config, "bos_token", b); bos >= 0)
    b.t.bos = bos;
  if (int32_t eos = tokenOf(config, "eos_token", b); eos >= 0)
    b.t.eos = eos;
  if (generation.is_object() && generation.contains("eos_token_id")) {
    const json &ids = generation["eos_token_id"];
    for (const json &id : ids.is_array() ? ids : json::array({ids}))
      if (id.is_number_integer())
        addEnd(id.get<int64_t>(), b);
  }
  for (const auto &added : b.t.added)
    if (added->special && is_contained(turnEnds, StringRef(added->text)))
      addEnd(added->id, b);
  b.t.chat_template = contentsOf(folder + "chat_template.jinja");
  if (b.t.chat_template.empty())
    b.t.chat_template = templateOf(config);
  return "";
}

} // namespace ajour::text
