//===- NpyTest.cpp - NumPy array files ------------------------------------===//

#include "ToolSupport/Npy.h"
#include "Tools/TempDirectory.h"

#include <gtest/gtest.h>
#include <random>

using namespace ajour::tools;

namespace {

/// A version 1 file with this header text and these elements.
Bytes npyOf(std::string header, std::string_view elements) {
  header += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size() & 255);
  text += static_cast<char>(header.size() >> 8);
  return bytesOf(text + header + std::string(elements));
}

std::vector<double> valuesOf(const HostTensor &tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    values.push_back(getReal(tensor, i));
  return values;
}

TEST(Npy, EveryTypeAndShapeComesBack) {
  for (uint32_t type = AJOUR_F32; type <= AJOUR_BOOL; ++type) {
    for (const std::vector<int64_t> &shape : std::vector<std::vector<int64_t>>{{}, {5}, {2, 3}, {2, 0, 3}, {1, 2, 3, 4}}) {
      HostTensor tensor = makeTensor(type, shape);
      for (int64_t i = 0; i < tensor.numElements(); ++i)
        setReal(tensor, i, static_cast<double>(i % 2));
      HostTensor back = parseNpy(formatNpy(tensor), "f");
      EXPECT_EQ(back.type, type == AJOUR_BF16 ? uint32_t(AJOUR_U16) : type);
      EXPECT_EQ(back.shape, shape);
      EXPECT_EQ(back.data, tensor.data);
    }
  }
}

TEST(Npy, ElementsStartAtAMultipleOf64) {
  for (int64_t size = 1; size < 100000000000; size *= 10) {
    HostTensor tensor{AJOUR_U8, {size}, {}};
    EXPECT_EQ(formatNpy(tensor).size() % 64, 0u);
  }
}

TEST(Npy, FortranOrderIsReordered) {
  HostTensor tensor = parseNpy(npyOf("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }",
                                     std::string_view("\x01\x04\x02\x05\x03\x06", 6)),
                               "f");
  EXPECT_EQ(valuesOf(tensor), (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, BigEndianIsSwapped) {
  HostTensor tensor =
      parseNpy(npyOf("{'descr': '>i2', 'fortran_order': False, 'shape': (2,)}", std::string_view("\x01\x02\xff\xfe", 4)), "f");
  EXPECT_EQ(valuesOf(tensor), (std::vector<double>{258, -2}));
}

TEST(Npy, BoolBecomesZeroOrOne) {
  HostTensor tensor =
      parseNpy(npyOf("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", std::string_view("\x00\x07\x01", 3)), "f");
  EXPECT_EQ(tensor.data, (Bytes{std::byte(0), std::byte(1), std::byte(1)}));
}

TEST(Npy, MalformedFilesAreRefusedByName) {
  struct Case {
    std::string header, elements, message;
  };
  for (const Case &c : std::vector<Case>{
           {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "1234",
            "shape 2 of f32 takes 8 bytes, found 4"},
           {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "12345",
            "shape 1 of f32 takes 4 bytes, found 5"},
           {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999)}", "",
            "shape 99999999999x99999999999 of f32 takes too many bytes, found 0"},
           {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "",
            "a size in the shape is too large"},
           {"{'descr': '<c8', 'fortran_order': False, 'shape': ()}", "", "element type '<c8' is not supported"},
           {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "", "structured types are not supported"},
           {"{'descr': '<f4', 'shape': ()}", "", "the header lacks descr, fortran_order or shape"},
           {"{'descr': '<f4', 'descr': '<f4', 'shape': ()}", "", "unexpected key 'descr' in the header"},
           {"{'descr': '<f4', 'fortran_order': 1, 'shape': ()}", "", "fortran_order is neither True nor False"},
           {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "", "expected a size in the shape at byte 51"},
           {"{'descr': '<f4", "", "unterminated string in the header"},
           {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", "", "text after the header's dictionary"}}) {
    EXPECT_EQ(messageOf([&] { parseNpy(npyOf(c.header, c.elements), "a.npy"); }),
              "a.npy: not a .npy file that can be read: " + c.message);
  }
  EXPECT_EQ(messageOf([] { parseNpy(bytesOf("not numpy at all"), "a.npy"); }),
            "a.npy: not a .npy file that can be read: the magic bytes are missing");
  EXPECT_EQ(messageOf([] { parseNpy(bytesOf(std::string_view("\x93NUMPY\x09\x00\x00\x00\x00\x00", 12)), "a.npy"); }),
            "a.npy: not a .npy file that can be read: version 9, expected 1 to 3");
}

TEST(Npy, MessagesShowControlCharacters) {
  std::string header = "{'fortra\n\x1b_order': False}", length = {char(header.size()), 0};
  EXPECT_EQ(messageOf([&] { parseNpy(bytesOf(std::string("\x93NUMPY\x01\x00", 8) + length + header), "a.npy"); }),
            "a.npy: not a .npy file that can be read: unexpected key 'fortra\\x0a\\x1b_order' in the header");
}

TEST(Npy, EveryTruncationIsRefused) {
  HostTensor tensor = makeTensor(AJOUR_F32, {3, 4});
  Bytes whole = formatNpy(tensor);
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(parseNpy(std::span(whole).subspan(0, length), "f"), ToolError);
}

TEST(Npy, FlippedBytesAreReadOrRefused) {
  HostTensor tensor = makeTensor(AJOUR_I16, {3, 4});
  Bytes whole = formatNpy(tensor);
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    Bytes damaged = whole;
    for (int k = 0; k < 3; ++k)
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    try {
      HostTensor read = parseNpy(damaged, "f");
      ASSERT_EQ(read.data.size(), byteSize(read.shape, ajour_element_size(read.type)));
    } catch (const ToolError &) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(Npy, FilesAppearWhole) {
  TempDirectory directory;
  HostTensor tensor = makeTensor(AJOUR_F32, {2});
  writeNpy(directory.file("x.npy"), tensor);
  EXPECT_EQ(readNpy(directory.file("x.npy")).shape, tensor.shape);
  EXPECT_NE(messageOf([&] { readNpy(directory.file("y.npy")); }).find("y.npy: cannot open: "), std::string::npos);
}

} // namespace
