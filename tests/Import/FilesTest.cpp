//===- FilesTest.cpp - what is no model file ------------------------------------------===//
#include "ajour/Import/Import.h"
#include "ajour/Support/Diagnostics.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

using namespace ajour;
namespace fs = std::filesystem;

namespace {

struct ImportFiles : testing::Test {
  ImportFiles() {
    std::string pattern = (fs::temp_directory_path() / "ajour-import-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~ImportFiles() override { fs::remove_all(folder); }

  std::string file(const std::string &name, const std::string &content) const {
    std::ofstream(folder / name, std::ios::binary) << content;
    return folder / name;
  }

  /// The message after the file's name.
  std::string refusal(const std::string &path) const {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    DiagnosticCollector diagnostics(&context, path);
    EXPECT_FALSE(importModel(&context, path, {}));
    std::string text = diagnostics.text();
    return text.substr(std::min(text.size(), text.find(": error: ") + 9));
  }

  fs::path folder;
};

TEST_F(ImportFiles, Absent) {
  EXPECT_EQ(refusal(folder / "none.onnx"), "cannot be read: No such file or directory");
  fs::create_symlink("nowhere", folder / "link.onnx");
  EXPECT_EQ(refusal(folder / "link.onnx"), "cannot be read: No such file or directory");
}

TEST_F(ImportFiles, Directory) { EXPECT_EQ(refusal(folder), "is a directory, expected a file"); }

TEST_F(ImportFiles, PipesAndDevices) {
  // Neither may be waited for or read to its end.
  ASSERT_EQ(mkfifo((folder / "pipe.onnx").c_str(), 0600), 0);
  EXPECT_EQ(refusal(folder / "pipe.onnx"), "is a pipe or device, expected a regular file");
  fs::create_symlink("/dev/zero", folder / "zero.onnx");
  EXPECT_EQ(refusal(folder / "zero.onnx"), "is a pipe or device, expected a regular file");
}

TEST_F(ImportFiles, Unreadable) {
  std::string path = file("secret.onnx", "x");
  fs::permissions(path, fs::perms::none);
  // The superuser may read everything, so it becomes nobody for a moment.
  uid_t self = geteuid();
  if (self == 0)
    ASSERT_EQ(seteuid(65534), 0);
  EXPECT_EQ(refusal(path), "cannot be read: Permission denied");
  if (self == 0)
    ASSERT_EQ(seteuid(0), 0);
}

TEST_F(ImportFiles, Content) {
  EXPECT_EQ(refusal(file("empty.onnx", "")), "is empty, expected an ONNX, TFLite, GGUF or safetensors model");
  EXPECT_NE(refusal(file("text.onnx", "hello\n")).find("is not an ONNX model or is damaged"), std::string::npos);
  EXPECT_NE(refusal(file("text.tflite", "hello world\n")).find("not a TFLite file"), std::string::npos);
  EXPECT_NE(refusal(file("text.txt", "hello\n")).find("is of no known format"), std::string::npos);
}

} // namespace
