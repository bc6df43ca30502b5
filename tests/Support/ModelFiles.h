//===- ModelFiles.h - trained models and data of the tests ------*- C++ -*-===//
//
// Models and data that other people published live beside the repository, in ../shared/models, and are never
// copied into it. A test whose file is absent names it and is skipped.
//
//===----------------------------------------------------------------------===//
#ifndef AJOUR_TESTS_SUPPORT_MODELFILES_H
#define AJOUR_TESTS_SUPPORT_MODELFILES_H

#include "ajour/Reference/HostTensor.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

namespace ajour::test {

/// The place of a model file, "" when it is absent.
std::string findModelFile(const std::string &name);

/// Sets `path` to the file or skips the test, naming it.
#define AJOUR_MODEL_FILE(path, name)                         \
  const std::string path = ::ajour::test::findModelFile(name); \
  if (path.empty())                                          \
  GTEST_SKIP() << "absent: " << (name)

/// A whole file. An unreadable file is a test failure and reads as empty, here and below.
std::string readFile(const std::string &path);

/// A NumPy array file (version 1, C order, little-endian).
HostTensor readNpy(const std::string &path);
/// The arrays of an .npz archive (stored or deflated), by name without ".npy".
std::map<std::string, HostTensor> readNpz(const std::string &path);
/// The regular files of a .tar.gz archive, by their paths in it.
std::map<std::string, std::string> readTarGz(const std::string &path);
/// A gzip file's contents.
std::string readGz(const std::string &path);

/// A labelled picture, bytes in [height, width, channel] order.
struct Picture {
  int label = -1;
  std::vector<uint8_t> pixels;
};
/// Pictures of a CIFAR-10 binary batch (label, then three 32 x 32 planes each), gzipped.
std::vector<Picture> readCifar(const std::string &path);
/// Pictures of an IDX pair of files, gzipped.
std::vector<Picture> readMnist(const std::string &images, const std::string &labels);
/// A PNG, JPEG or BMP file as RGB (or grey for 1 channel), resized by nearest neighbour as the
/// programs do it.
std::vector<uint8_t> readImage(const std::string &path, int width, int height, int channels = 3);

/// A part of a picture file as RGB, resized by cubic interpolation (a = -1/2) whose kernel grows with the reduction,
/// rounded after each direction: what imaging libraries do by default. `part` is left, top, right, bottom in pixels
/// (right 0: the whole picture).
std::vector<uint8_t> readImageSmooth(const std::string &path, int width, int height,
                                     const std::array<int, 4> &part = {});

/// A tensor from elements.
template <typename T> HostTensor makeTensor(uint32_t type, std::vector<int64_t> shape, const std::vector<T> &elements) {
  HostTensor tensor{type, std::move(shape), {}};
  const char *bytes = reinterpret_cast<const char *>(elements.data());
  tensor.data.assign(bytes, bytes + elements.size() * sizeof(T));
  return tensor;
}

} // namespace ajour::test

#endif
