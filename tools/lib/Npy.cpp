//===- Npy.cpp - NumPy array files ----------------------------------------===//

#include "ToolSupport/Npy.h"
#include "ajour/Support/Printable.h"

#include <algorithm>
#include <cstring>

namespace ajour::tools {

namespace {

constexpr size_t maxHeaderBytes = 65536;
constexpr size_t maxRank = 32;

/// Reads the header's dictionary: only the three keys, in any order, as NumPy's own reader demands.
class HeaderParser {
public:
  HeaderParser(std::string_view text, const std::string &file) : text(text), file(file) {}

  std::string descr;
  bool fortranOrder = false;
  std::vector<int64_t> shape;

  void parse() {
    bool seen[3] = {};
    expect('{');
    while (!accept('}')) {
      std::string key = parseString();
      expect(':');
      int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (which < 0 || seen[which])
        fail("unexpected key '" + key + "' in the header");
      seen[which] = true;
      if (which == 0)
        descr = parseString();
      else if (which == 1)
        fortranOrder = parseBool();
      else
        parseShape();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!seen[0] || !seen[1] || !seen[2])
      fail("the header lacks descr, fortran_order or shape");
    skipSpace();
    if (position != text.size())
      fail("text after the header's dictionary");
  }

  [[noreturn]] void fail(const std::string &what) const {
    throw ToolError(file + ": not a .npy file that can be read: " + printable(what));
  }

private:
  void skipSpace() {
    while (position < text.size() && (text[position] == ' ' || text[position] == '\n' || text[position] == '\t'))
      ++position;
  }

  bool accept(char c) {
    skipSpace();
    if (position >= text.size() || text[position] != c)
      return false;
    ++position;
    return true;
  }

  void expect(char c) {
    if (!accept(c))
      fail(std::string("expected '") + c + "' in the header at byte " + std::to_string(position));
  }

  std::string parseString() {
    skipSpace();
    char quote = position < text.size() ? text[position] : '\0';
    if (quote == '[')
      fail("structured types are not supported");
    if (quote != '\'' && quote != '"')
      fail("expected a string in the header at byte " + std::to_string(position));
    size_t end = text.find(quote, position + 1);
    if (end == std::string_view::npos)
      fail("unterminated string in the header");
    std::string value(text.substr(position + 1, end - position - 1));
    position = end + 1;
    return value;
  }

  bool parseBool() {
    skipSpace();
    for (std::string_view word : {std::string_view("True"), std::string_view("False")}) {
      if (text.substr(position, word.size()) == word) {
        position += word.size();
        return word == "True";
      }
    }
    fail("fortran_order is neither True nor False");
  }

  int64_t parseInteger() {
    skipSpace();
    size_t start = position;
    int64_t value = 0;
    while (position < text.size() && text[position] >= '0' && text[position] <= '9') {
      if (value > (int64_t(1) << 58))
        fail("a size in the shape is too large");
      value = value * 10 + (text[position++] - '0');
    }
    if (position == start)
      fail("expected a size in the shape at byte " + std::to_string(start));
    return value;
  }

  void parseShape() {
    expect('(');
    while (!accept(')')) {
      if (shape.size() == maxRank)
        fail("more than " + std::to_string(maxRank) + " dimensions");
      shape.push_back(parseInteger());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }

  std::string_view text;
  const std::string &file;
  size_t position = 0;
};

/// The element type of a NumPy descriptor without its byte order, or 0. "u2" is ui16: bf16 has no descriptor of its own.
uint32_t typeFromDescr(std::string_view descr) {
#define AJOUR_ROW(id, enumerator, name, bits, npy)                                                                     \
  if (id != AJOUR_BF16 && descr == std::string_view(npy).substr(1))                                                    \
    return id;
  AJOUR_ELEMENT_TYPES(AJOUR_ROW)
#undef AJOUR_ROW
  return 0;
}

const char *descrFromType(uint32_t type) {
  switch (type) {
#define AJOUR_ROW(id, enumerator, name, bits, npy)                                                                     \
  case id:                                                                                                             \
    return npy;
    AJOUR_ELEMENT_TYPES(AJOUR_ROW)
#undef AJOUR_ROW
  default:
    return nullptr;
  }
}

/// Copies elements stored first-index-fastest to C order.
void fromFortranOrder(const std::byte *source, HostTensor &tensor) {
  size_t size = ajour_element_size(tensor.type);
  std::vector<int64_t> index(tensor.shape.size(), 0);
  for (int64_t i = 0, e = tensor.numElements(); i < e; ++i) {
    int64_t offset = 0, stride = 1;
    for (size_t d = 0; d < index.size(); ++d) {
      offset += index[d] * stride;
      stride *= tensor.shape[d];
    }
    std::memcpy(tensor.data.data() + i * size, source + offset * size, size);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < tensor.shape[d])
        break;
      index[d] = 0;
    }
  }
}

} // namespace

HostTensor parseNpy(std::span<const std::byte> bytes, const std::string &file) {
  auto byteAt = [&](size_t i) { return static_cast<size_t>(bytes[i]); };
  HeaderParser noHeader("", file);
  if (bytes.size() < 12 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0)
    noHeader.fail("the magic bytes are missing");
  size_t version = byteAt(6);
  if (version < 1 || version > 3)
    noHeader.fail("version " + std::to_string(version) + ", expected 1 to 3");
  size_t start = version == 1 ? 10 : 12;
  size_t length = byteAt(8) | byteAt(9) << 8;
  if (version > 1)
    length |= byteAt(10) << 16 | byteAt(11) << 24;
  if (length > maxHeaderBytes || length > bytes.size() - start)
    noHeader.fail("the header is cut off or too long");
  HeaderParser header({reinterpret_cast<const char *>(bytes.data()) + start, length}, file);
  header.parse();

  std::string_view descr = header.descr;
  bool bigEndian = descr.substr(0, 1) == ">";
  if (!descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos)
    descr.remove_prefix(1);
  uint32_t type = typeFromDescr(descr);
  if (!type)
    header.fail("element type '" + header.descr + "' is not supported");
  size_t elementSize = ajour_element_size(type);
  std::span<const std::byte> elements = bytes.subspan(start + length);
  std::optional<uint64_t> expected = byteSize(header.shape, elementSize);
  if (!expected || *expected != elements.size())
    header.fail("shape " + shapeText(header.shape) + " of " + ajour_element_name(type) + " takes " +
                (expected ? std::to_string(*expected) : std::string("too many")) + " bytes, found " +
                std::to_string(elements.size()));

  HostTensor tensor = makeTensor(type, std::move(header.shape));
  if (header.fortranOrder && tensor.shape.size() > 1)
    fromFortranOrder(elements.data(), tensor);
  else
    std::copy(elements.begin(), elements.end(), tensor.data.begin());
  if (bigEndian)
    for (size_t i = 0; i < tensor.data.size(); i += elementSize)
      std::reverse(tensor.data.begin() + i, tensor.data.begin() + i + elementSize);
  if (type == AJOUR_BOOL)
    for (std::byte &value : tensor.data)
      value = std::byte(value != std::byte(0));
  return tensor;
}

HostTensor readNpy(const std::string &path) { return parseNpy(readFile(path), path); }

Bytes formatNpy(const HostTensor &tensor) {
  std::string header = std::string("{'descr': '") + descrFromType(tensor.type) + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    header += (i ? ", " : "") + std::to_string(tensor.shape[i]);
  header += tensor.shape.size() == 1 ? ",), }" : "), }";
  // The elements start at a multiple of 64 bytes; the header ends with a line feed.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  Bytes bytes(10 + header.size() + tensor.data.size());
  std::memcpy(bytes.data(), "\x93NUMPY\x01\x00", 8);
  bytes[8] = static_cast<std::byte>(header.size() & 255);
  bytes[9] = static_cast<std::byte>(header.size() >> 8);
  std::memcpy(bytes.data() + 10, header.data(), header.size());
  std::copy(tensor.data.begin(), tensor.data.end(), bytes.begin() + 10 + header.size());
  return bytes;
}

void writeNpy(const std::string &path, const HostTensor &tensor) { writeFile(path, formatNpy(tensor)); }

} // namespace ajour::tools
