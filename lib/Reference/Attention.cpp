//===- Attention.cpp - attention --------------------------------------------------===//
#include "Evaluation.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace ajour::nn;

namespace ajour::reference {

namespace {

/// Keys or values as [leading, row, head, element] of numbers.
class Rows {
public:
  Rows(const HostTensor &stored, const HostTensor *scales) {
    ArrayRef<int64_t> shape = stored.shape;
    rows = shape[shape.size() - 3], groups = shape[shape.size() - 2];
    int64_t bytes = shape.back();
    bool isPacked = stored.elementType == AJOUR_U8;
    size = isPacked ? bytes * 2 : bytes;
    int64_t heads = sizeOf(shape, 0, shape.size() - 1);
    numbers.resize(heads * size);
    dispatch(stored.elementType, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T *data = stored.as<T>();
      for (int64_t head = 0; head < heads; ++head) {
        double scale = scales ? scales->as<float>()[head] : 1;
        for (int64_t i = 0; i < size; ++i)
          if constexpr (std::is_same_v<T, uint8_t>)
            numbers[head * size + i] = ((data[head * bytes + i % bytes] >> (i < bytes ? 0 : 4) & 15) - 8) * scale;
          else
            numbers[head * size + i] = static_cast<Compute<T>>(data[head * bytes + i]) * scale;
      }
    });
  }
  const double *at(int64_t leading, int64_t row, int64_t head) const {
    return numbers.data() + ((leading * rows + row) * groups + head) * size;
  }
  int64_t rows, groups, size;

private:
  std::vector<double> numbers;
};

int64_t positionOf(const HostTensor &positions, int64_t token) {
  return positions.elementType == AJOUR_I32 ? positions.as<int32_t>()[token] : positions.as<int64_t>()[token];
}

/// What one operation is made of.
class Attention {
public:
  Attention(AttentionOp op, Evaluation &e)
      : scale(op.getScale().convertToFloat()), cap(op.getSoftCap().convertToFloat()), window(int64_t(op.getWindow())) {
    size_t next = 3;
    for (auto [operand, tensor] : {std::pair(op.getPositions(), &positions), {op.getMask(), &mask}, {op.getSlopes(), &slopes},
                                   {op.getSinks(), &sinks}, {op.getKeyScales(), &keyScales}, {op.getValueScales(), &valueScales}})
      *tensor = operand ? &e.operand(next++) : nullptr;
  }

  void run(Evaluation &e) {
    const HostTensor &query = e.operand(0);
    ArrayRef<int64_t> shape = query.shape;
    tokens = shape[shape.size() - 3], heads = shape[shape.size() - 2];
    int64_t size = shape.back(), leading = sizeOf(shape, 0, shape.size() - 3);
    Rows key(e.operand(1), keyScales), value(e.operand(2), valueScales);
    Shape scoreShape(shape.begin(), shape.end() - 3);
    rows = key.rows;
    scoreShape.append({heads, tokens, rows});
    if (mask) {
      std::vector<float> joined(sizeOf(scoreShape, 0, scoreShape.size()));
      forEachIndex<1>(scoreShape, {broadcastStrides(mask->shape, scoreShape)},
                      [&](int64_t i, auto &offsets) { joined[i] = mask->as<float>()[offsets[0]]; });
      masks = std::move(joined);
    }
    for (int64_t l = 0; l < leading; ++l)
      for (int64_t t = 0; t < tokens; ++t)
        for (int64_t h = 0; h < heads; ++h) {
          const float *q = query.as<float>() + ((l * tokens + t) * heads + h) * size;
          attend(l, t, h, q, key, value, e.result().as<float>() + ((l * tokens + t) * heads + h) * value.size);
        }
  }

private:
  /// The rows that a token attends to.
  std::pair<int64_t, int64_t> range(int64_t token, int64_t rows) const {
    if (!positions)
      return {0, rows};
    int64_t position = positionOf(*positions, token);
    int64_t first = window > 0 && position >= window ? position - window + 1 : 0;
    return {first, std::clamp<int64_t>(position >= rows ? rows : position + 1, 0, rows)};
  }

  double score(int64_t l, int64_t t, int64_t h, int64_t j, const float *q, const double *k, int64_t size) const {
    double sum = 0;
    for (int64_t i = 0; i < size; ++i)
      sum += double(q[i]) * k[i];
    sum *= scale;
    if (cap != 0)
      sum = cap * std::tanh(sum / cap);
    if (slopes)
      sum += double(slopes->as<float>()[h]) * double(j - positionOf(*positions, t));
    return mask ? sum + masks[((l * heads + h) * tokens + t) * rows + j] : sum;
  }

  void attend(int64_t l, int64_t t, int64_t h, const float *q, const Rows &key, const Rows &value, float *result) {
    int64_t group = h / (heads / key.groups);
    auto [first, last] = range(t, key.rows);
    std::vector<double> scores;
    double most = sinks ? sinks->as<float>()[h] : -std::numeric_limits<double>::infinity();
    for (int64_t j = first; j < last; ++j) {
      scores.push_back(score(l, t, h, j, q, key.at(l, j, group), key.size));
      most = std::max(most, scores.back());
    }
    bool isNaN = std::any_of(scores.begin(), scores.end(), [](double s) { return std::isnan(s); });
    if (most == -std::numeric_limits<double>::infinity() && !isNaN)
      return; // zeros
    double sum = sinks ? std::exp(sinks->as<float>()[h] - most) : 0;
    for (double &s : scores)
      sum += s = std::exp(s - most);
    for (int64_t i = 0; i < value.size; ++i) {
      double total = 0;
      for (int64_t j = first; j < last; ++j)
        total += scores[j - first] * value.at(l, j, group)[i];
      result[i] = float(total / sum);
    }
  }

  double scale, cap;
  int64_t window;
  const HostTensor *positions, *mask, *slopes, *sinks, *keyScales, *valueScales;
  int64_t tokens = 0, heads = 0, rows = 0;
  std::vector<float> masks; ///< broadcast to [leading, H, T, S]
};

} // namespace

LogicalResult evaluate(AttentionOp op, Evaluation &e) {
  Attention(op, e).run(e);
  return success();
}

} // namespace ajour::reference
