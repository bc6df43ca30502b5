#include "ajour/Encoding/Codec.h"

#include <cmath>

#include "Structures.h"
#include "ValueStream.h"

namespace ajour::encoding {

static constexpr uint8_t magic[4] = {'A', 'J', 'W', 'T'};
static constexpr uint8_t version = 1;
static constexpr uint8_t signedFlag = 1, zeroPointsFlag = 2;

//===----------------------------------------------------------------------===//
// Header
//===----------------------------------------------------------------------===//

/// Little-endian base 128, seven bits a byte: most numbers of a header are small.
static void putNumber(std::vector<uint8_t> &bytes, uint64_t value) {
  for (; value >= 128; value >>= 7)
    bytes.push_back(static_cast<uint8_t>(value | 128));
  bytes.push_back(static_cast<uint8_t>(value));
}

/// Magic, version, kinds, value parameters, then numbers: n, k, kh, kw, group, the structure's parameters (a list begins with its length),
/// the bits of the index, the number of kept elements. Index, scales and elements follow, each starting at a byte.
static std::vector<uint8_t> makeHeader(const Encoding &encoding, const WeightShape &shape, int64_t indexBits, int64_t kept) {
  const Values &v = encoding.values;
  std::vector<uint8_t> bytes(magic, magic + 4);
  for (int64_t byte : {int64_t(version), int64_t(encoding.structure.kind), int64_t(v.kind), int64_t(v.granularity),
                       int64_t(v.type), v.bits, int64_t(v.isSigned * signedFlag + v.hasZeroPoints * zeroPointsFlag)})
    bytes.push_back(static_cast<uint8_t>(byte));
  for (int64_t value : {shape.n, shape.k, shape.kh, shape.kw, v.group})
    putNumber(bytes, value);
  for (const FieldRow &field : structureRow(encoding.structure.kind)->fields) {
    if (!field.list) {
      putNumber(bytes, encoding.structure.*field.number);
      continue;
    }
    putNumber(bytes, (encoding.structure.*field.list).size());
    for (int64_t value : encoding.structure.*field.list)
      putNumber(bytes, value);
  }
  putNumber(bytes, indexBits);
  putNumber(bytes, kept);
  return bytes;
}

namespace {
/// Reads the header's fields; the first fault stays.
class HeaderReader {
public:
  explicit HeaderReader(std::span<const uint8_t> bytes) : bytes(bytes) {}

  uint8_t byte(const char *field) {
    if (next == bytes.size()) {
      fail(std::string(field) + ": the bytes end here");
      return 0;
    }
    return bytes[next++];
  }
  /// Below 2^42, beyond all that a size may be.
  int64_t number(const char *field) {
    uint64_t value = 0;
    for (int shift = 0; shift < 42; shift += 7) {
      const uint8_t part = byte(field);
      value |= static_cast<uint64_t>(part & 127) << shift;
      if (part < 128)
        return static_cast<int64_t>(value);
    }
    fail(std::string(field) + ": the number is too large");
    return 0;
  }
  void fail(std::string message) {
    if (error.empty())
      error = std::move(message);
  }
  size_t left() const { return bytes.size() - next; }
  std::span<const uint8_t> take(size_t count) {
    std::span<const uint8_t> part = bytes.subspan(next, count);
    next += count;
    return part;
  }

  std::string error;

private:
  std::span<const uint8_t> bytes;
  size_t next = 0;
};

struct Header {
  Encoding encoding;
  WeightShape shape;
  int64_t indexBits = 0, kept = 0;
};
} // namespace

static void readParameters(HeaderReader &in, Structure &structure) {
  for (const FieldRow &field : structureRow(structure.kind)->fields) {
    if (!field.list) {
      structure.*field.number = in.number(field.name);
      continue;
    }
    const int64_t size = in.number(field.name);
    // An entry takes a byte, so a list cannot be longer than what is left.
    if (size > static_cast<int64_t>(in.left()))
      in.fail(std::string(field.name) + ": " + std::to_string(size) + " entries are more than there are bytes");
    for (int64_t i = 0; i < size && in.error.empty(); ++i)
      (structure.*field.list).push_back(in.number(field.name));
  }
}

static std::string readHeader(HeaderReader &in, Header &header) {
  for (uint8_t expected : magic)
    if (in.byte("magic") != expected)
      in.fail("magic: these are not the bytes of a weight");
  if (const uint8_t found = in.byte("version"); found != version)
    in.fail("version: " + std::to_string(found) + " is not known; this reader knows 1");
  Values &values = header.encoding.values;
  header.encoding.structure.kind = static_cast<StructureKind>(in.byte("structure"));
  values.kind = static_cast<ValuesKind>(in.byte("values"));
  values.granularity = static_cast<Granularity>(in.byte("granularity"));
  values.type = in.byte("type");
  values.bits = in.byte("bits");
  const uint8_t flags = in.byte("flags");
  values.isSigned = flags & signedFlag;
  values.hasZeroPoints = flags & zeroPointsFlag;
  header.shape.n = in.number("n");
  header.shape.k = in.number("k");
  header.shape.kh = in.number("kh");
  header.shape.kw = in.number("kw");
  values.group = in.number("group");
  if (!structureRow(header.encoding.structure.kind))
    in.fail("structure: " + std::to_string(static_cast<int>(header.encoding.structure.kind)) + " is not known");
  if (values.kind > ValuesKind::Codebook)
    in.fail("values: " + std::to_string(static_cast<int>(values.kind)) + " is not known");
  if (values.granularity > Granularity::Group)
    in.fail("granularity: " + std::to_string(static_cast<int>(values.granularity)) + " is not known");
  if (flags > signedFlag + zeroPointsFlag)
    in.fail("flags: " + std::to_string(flags) + " has unknown bits");
  if (!in.error.empty())
    return in.error;
  readParameters(in, header.encoding.structure);
  header.indexBits = in.number("index bits");
  header.kept = in.number("kept elements");
  if (!in.error.empty())
    return in.error;
  return check(header.encoding, header.shape);
}

//===----------------------------------------------------------------------===//
// Encode
//===----------------------------------------------------------------------===//

/// The magnitudes that a structure with levels orders by.
static std::vector<float> magnitudes(const Weight &weight, const Values &values) {
  std::vector<float> result(weight.shape.elements());
  for (size_t i = 0; i < result.size(); ++i) {
    if (values.kind != ValuesKind::Int) {
      result[i] = std::fabs(weight.numbers[i]);
      continue;
    }
    const int64_t unit = unitOf(values, weight.shape, static_cast<uint32_t>(i));
    const int64_t zero = values.hasZeroPoints ? weight.zeroPoints[unit] : 0;
    result[i] = std::fabs(weight.scales[unit] * static_cast<float>(weight.codes[i] - zero));
  }
  return result;
}

std::string encode(const Weight &weight, const Encoding &encoding, std::vector<uint8_t> &bytes) {
  if (std::string error = check(encoding, weight.shape); !error.empty())
    return error;
  if (std::string error = checkParts(weight, encoding.values); !error.empty())
    return error;
  const std::vector<uint8_t> nonzero = nonzeroMask(weight, encoding.values);
  std::vector<float> magnitude;
  if (encoding.structure.kind == StructureKind::Nested)
    magnitude = magnitudes(weight, encoding.values);
  BitWriter index;
  Positions positions;
  if (std::string error = structureRow(encoding.structure.kind)
                              ->write(encoding.structure, {weight.shape, nonzero, magnitude}, index, positions);
      !error.empty())
    return error;
  const int64_t indexBits = index.bitCount();
  std::vector<uint8_t> scales, elements;
  if (std::string error = writeScales(weight, encoding.values, scales); !error.empty())
    return error;
  if (std::string error = writeElements(weight, encoding.values, positions, elements); !error.empty())
    return error;
  bytes = makeHeader(encoding, weight.shape, indexBits, positions.kept.size());
  for (const std::vector<uint8_t> &part : {index.take(), scales, elements})
    bytes.insert(bytes.end(), part.begin(), part.end());
  return "";
}

//===----------------------------------------------------------------------===//
// Decode
//===----------------------------------------------------------------------===//

static std::string read(std::span<const uint8_t> bytes, Weight &weight, Encoding &encoding, const DecodeOptions &options,
                        bool store) {
  HeaderReader in(bytes);
  Header header;
  if (std::string error = readHeader(in, header); !error.empty())
    return error;
  const WeightShape &shape = header.shape;
  const Values &values = header.encoding.values;
  if (shape.elements() > options.maxElements)
    return "shape " + number(shape.n) + " x " + number(shape.k) + " has more than " + number(options.maxElements) +
           " elements";
  // Numbers are below 2^42, and the elements at most 2^31: products with a few bits and their sums fit.
  const int64_t indexBytes = ceilDiv(header.indexBits, 8), scales = scaleBytes(values, shape);
  const int64_t elementBytes = ceilDiv(header.kept * valueBits(values), 8);
  if (header.kept > shape.elements())
    return "kept elements: " + number(header.kept) + " of " + number(shape.elements());
  if (indexBytes + scales + elementBytes != static_cast<int64_t>(in.left()))
    return "index, scales and values need " + number(indexBytes + scales + elementBytes) + " bytes, but " +
           number(in.left()) + " follow the header";
  BitReader index(in.take(indexBytes));
  Positions positions;
  positions.limit = header.kept;
  if (std::string error = structureRow(header.encoding.structure.kind)
                              ->read(header.encoding.structure, shape, index, positions);
      !error.empty())
    return error;
  if (!index.atEnd())
    return "index does not end where its size says";
  if (static_cast<int64_t>(positions.kept.size()) != header.kept)
    return "kept elements: " + number(header.kept) + ", but the index has " + number(positions.kept.size());
  int64_t count = header.kept;
  if (options.level >= 0 && !positions.levelEnds.empty()) {
    if (options.level >= static_cast<int64_t>(positions.levelEnds.size()))
      return "level " + number(options.level) + " of " + number(positions.levelEnds.size());
    count = positions.levelEnds[options.level];
  }
  weight = Weight();
  weight.shape = shape;
  encoding = header.encoding;
  if (std::string error = readScales(in.take(scales), values, weight); !error.empty())
    return error;
  return readElements(in.take(elementBytes), values, positions, count, store, weight);
}

std::string decode(std::span<const uint8_t> bytes, Weight &weight, Encoding &encoding, const DecodeOptions &options) {
  return read(bytes, weight, encoding, options, /*store=*/true);
}

std::string verify(std::span<const uint8_t> bytes, const DecodeOptions &options) {
  Weight weight;
  Encoding encoding;
  return read(bytes, weight, encoding, options, /*store=*/false);
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

static StoredSize sizeOf(const Encoding &encoding, const WeightShape &shape, int64_t indexBits, int64_t kept) {
  StoredSize size;
  size.indexBits = indexBits;
  size.kept = kept;
  size.scaleBytes = scaleBytes(encoding.values, shape);
  size.headerBytes = makeHeader(encoding, shape, indexBits, kept).size();
  size.totalBytes = size.headerBytes + ceilDiv(indexBits, 8) + size.scaleBytes + ceilDiv(kept * valueBits(encoding.values), 8);
  return size;
}

std::optional<StoredSize> storedSize(const Encoding &encoding, const WeightShape &shape) {
  const StructureRow *row = structureRow(encoding.structure.kind);
  if (!row->fixedSize)
    return std::nullopt;
  const FixedSize fixed = row->fixedSize(encoding.structure, shape);
  return sizeOf(encoding, shape, fixed.indexBits, fixed.kept);
}

std::optional<StoredSize> storedSize(const Encoding &encoding, const WeightShape &shape, std::span<const uint8_t> nonzero,
                                     std::string &error) {
  error = check(encoding, shape);
  if (!error.empty())
    return std::nullopt;
  const StructureKind kind = encoding.structure.kind;
  BitWriter index = BitWriter::counter();
  Positions positions;
  positions.onlyCounted = kind != StructureKind::Dense && kind != StructureKind::Nested;
  error = structureRow(kind)->write(encoding.structure, {shape, nonzero, {}}, index, positions);
  if (!error.empty())
    return std::nullopt;
  return sizeOf(encoding, shape, index.bitCount(), positions.count());
}

} // namespace ajour::encoding
