//===- SmallModels.h - a small language model of each architecture -*- C++ -*-===//
//
// Random weights, and logits from forward passes that are written in PyTorch from the models' publications
// (models/families.py). Each is there as a Hugging Face folder and as a GGUF file.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_TESTS_IMPORT_LANGUAGE_SMALLMODELS_H
#define AJOUR_TESTS_IMPORT_LANGUAGE_SMALLMODELS_H

#include "ajour/Reference/HostTensor.h"

#include <filesystem>
#include <string>
#include <vector>

namespace ajour::test {

/// Whether Debian's python3-torch is installed, which makes the models.
bool hasTorch();

/// Names of the models; architectures that have options have several.
std::vector<const char *> smallModels();
/// Those that GGUF can say: windows of Qwen 2 and StarCoder 2 are not in it, nor which layers of a mixture have no experts.
std::vector<const char *> smallModelsOfGGUF();

/// A model's name as that of a test.
std::string testName(const std::string &model);

/// The files of one model, in a folder that goes with the object.
class SmallModel {
public:
  /// Makes the files; failures are test failures.
  explicit SmallModel(const std::string &name);
  ~SmallModel();

  std::string safetensors() const { return (folder / name / "model.safetensors").string(); }
  std::string gguf() const { return (folder / name / "model.gguf").string(); }
  std::string config() const { return (folder / name / "config.json").string(); }

  /// Tokens and their positions. Tokens alone where the model asks for no more.
  std::vector<HostTensor> inputs() const;

  /// Compares logits and prints the largest difference. f32 arithmetic of a few layers of 64 wide stays within 1e-4 of the largest logit
  /// (about 64 * 6 sums with an error of 6e-8 each, which norms and softmax pass on about as they are); what is computed otherwise
  /// shows in the first digits.
  void compare(const HostTensor &found, const std::string &form) const;

private:
  std::string name;
  std::filesystem::path folder;
  std::vector<int64_t> tokens;
  std::vector<float> logits;
};

} // namespace ajour::test

#endif
