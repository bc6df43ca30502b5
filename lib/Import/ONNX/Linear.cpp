//===- Linear.cpp - ONNX matrix products -----------------------------------------===//
#include "Linear.h"

#include "llvm/ADT/SmallString.h"

using namespace mlir;

namespace ajour::onnx_import {

Value matrixProduct(Node &n, Value lhs, Value rhs) {
  Type element = Node::elementOf(lhs);
  if (element != Node::elementOf(rhs))
    n.refuse("multiplies " + n.text(lhs) + " and " + n.text(rhs) + ", expected equal element types");
  if (isa<FloatType>(element))
    return n.matmul(lhs, rhs);
  unsigned width = cast<IntegerType>(element).getWidth();
  if (width == 32)
    return n.cast(n.matmul(lhs, rhs), element); // products of 32-bit integers wrap alike, signed or not
  if (width != 64)
    n.refuse("multiplies matrices of " + n.text(lhs) + ", expected floats or 32- or 64-bit integers");
  // There is no 64-bit integer product in nn: sum the broadcast products.
  int64_t a = Node::rankOf(lhs), b = Node::rankOf(rhs);
  Dims left = Node::dimsOf(lhs), right = Node::dimsOf(rhs);
  left.push_back(n.dim(1));
  right.insert(right.begin() + b - 2, n.dim(1));
  Value products = n.mul(n.reshape(lhs, left), n.reshape(rhs, right));
  return n.reduce(nn::ReduceKind::sum, products, {std::max(a, b) - 1}, /*keepDims=*/false);
}

Value matMulLike(Node &n, Value lhs, Value rhs, llvm::function_ref<Value(Value, Value)> product) {
  int64_t a = Node::rankOf(lhs), b = Node::rankOf(rhs);
  if (a == 0 || b == 0)
    n.refuse("multiplies " + n.text(lhs) + " and " + n.text(rhs) + ", expected ranks of at least 1");
  if (a == 1)
    lhs = n.reshape(lhs, {n.dim(1), Node::dimsOf(lhs)[0]});
  if (b == 1)
    rhs = n.reshape(rhs, {Node::dimsOf(rhs)[0], n.dim(1)});
  Value result = product(lhs, rhs);
  Dims dims = Node::dimsOf(result);
  if (b == 1)
    dims.pop_back();
  if (a == 1)
    dims.erase(dims.end() - (b == 1 ? 1 : 2));
  return n.reshape(result, dims);
}

namespace {

void matMul(Node &n) {
  n.set(0, matMulLike(n, n.in(0), n.in(1), [&](Value a, Value b) { return matrixProduct(n, a, b); }));
}

void gemm(Node &n) {
  Value a = n.in(0), b = n.in(1), c = n.inOrNull(2);
  float alpha = n.attrFloat("alpha", 1), beta = n.attrFloat("beta", 1);
  bool transposeA = n.attrInt("transA", 0), transposeB = n.attrInt("transB", 0);
  if (n.opset < 7 && c && !n.attrInt("broadcast", 0) && Node::rankOf(c) != 2)
    n.refuse("adds " + n.text(c) + ", expected a matrix since attribute 'broadcast' is not set");
  if (Node::rankOf(a) != 2 || Node::rankOf(b) != 2)
    n.refuse("multiplies " + n.text(a) + " and " + n.text(b) + ", expected two matrices");
  if (!Node::isFloat(a)) {
    if (transposeA)
      a = n.transpose(a, {1, 0});
    if (transposeB)
      b = n.transpose(b, {1, 0});
    if (alpha != std::floor(alpha) || beta != std::floor(beta))
      n.refuse("scales integers by " + numberText(alpha) + " and " + numberText(beta) + ", expected whole numbers");
    Value result = matrixProduct(n, a, b);
    if (alpha != 1)
      result = n.mul(result, n.like(alpha, result));
    if (c)
      result = n.add(result, beta == 1 ? c : n.mul(c, n.like(beta, c)));
    return n.set(0, result);
  }
  // With one bias for each column the product takes it in.
  AffineExpr columns = Node::dimsOf(b)[transposeB ? 0 : 1];
  bool isBias = c && alpha == 1 && beta == 1 && Node::rankOf(c) >= 1 && Node::dimsOf(c).back() == columns &&
                (Node::rankOf(c) == 1 || nn::getConstant(Node::dimsOf(c)[0]) == 1);
  if (isBias)
    return n.set(0, n.matmul(a, b, n.reshape(c, ArrayRef<AffineExpr>(columns)), transposeA, transposeB));
  Value result = n.matmul(a, b, {}, transposeA, transposeB);
  if (alpha != 1)
    result = n.mul(result, n.like(alpha, result));
  if (c && beta != 0)
    result = n.add(result, beta == 1 ? c : n.mul(c, n.like(beta, c)));
  n.set(0, result);
}

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

/// The subscripts of one term, with the ellipsis written out as digits from the right.
std::string subscripts(Node &n, StringRef term, int64_t rank, int64_t ellipsisRank) {
  std::string out;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term.substr(i).starts_with("...")) {
      int64_t count = rank < 0 ? ellipsisRank : rank - int64_t(term.size() - 3);
      for (int64_t k = count; k-- > 0;)
        out += char('0' + k);
      i += 2;
    } else if (isalpha(term[i])) {
      out += term[i];
    } else {
      n.refuse("equation term '" + term + "' holds '" + Twine(term[i]) + "', expected letters and '...'");
    }
  }
  if (rank >= 0 && int64_t(out.size()) != rank)
    n.refuse("equation term '" + term + "' names " + Twine(out.size()) + " dimensions, the operand has " + Twine(rank));
  return out;
}

/// Takes the diagonal of dimensions that carry the same letter.
Value diagonal(Node &n, Value x, std::string &labels) {
  for (size_t i = 0; i < labels.size(); ++i)
    for (size_t j = labels.size() - 1; j > i; --j) {
      if (labels[i] != labels[j])
        continue;
      // Sum over dimension j of x where its index equals that of i.
      Dims dims = Node::dimsOf(x);
      if (dims[i] != dims[j])
        n.refuse("the dimensions of '" + Twine(labels[i]) + "' in " + n.text(x) + " differ");
      Dims mask(dims.size(), n.dim(1));
      mask[i] = dims[i];
      mask[j] = dims[j];
      Value same = n.compare(nn::CompareKind::eq, n.iota(mask, i, n.i32()), n.iota(mask, j, n.i32()));
      x = n.reduce(nn::ReduceKind::sum, n.select(same, x, n.like(0, x)), {int64_t(j)}, false);
      labels.erase(j, 1);
    }
  return x;
}

/// Brings an operand to the dimensions of `all`, with 1 for those it lacks.
Value spread(Node &n, Value x, const std::string &labels, StringRef all) {
  Ints perm;
  Dims in = Node::dimsOf(x), dims;
  for (char label : all) {
    size_t at = labels.find(label);
    if (at == std::string::npos) {
      dims.push_back(n.dim(1));
    } else {
      perm.push_back(int64_t(at));
      dims.push_back(in[at]);
    }
  }
  return n.reshape(n.transpose(x, perm), dims);
}

struct Term {
  Value value;
  std::string labels;
};

/// Sums the labels out that appear in no other term and not in the result.
void sumOut(Node &n, Term &term, StringRef kept) {
  Ints axes;
  std::string labels;
  for (auto [i, label] : llvm::enumerate(term.labels)) {
    if (kept.contains(label))
      labels += label;
    else
      axes.push_back(int64_t(i));
  }
  term.value = n.reduce(nn::ReduceKind::sum, term.value, axes, false);
  term.labels = labels;
}

/// Two terms as one batched matrix product: batch labels are in both and kept, K in both and not kept. Nothing
/// when broadcasting would be needed.
std::optional<Term> contract(Node &n, Term a, Term b, StringRef kept) {
  std::string batch, m, nLabels, k;
  for (char label : a.labels)
    (b.labels.find(label) == std::string::npos ? m : kept.contains(label) ? batch : k) += label;
  for (char label : b.labels)
    if (a.labels.find(label) == std::string::npos)
      nLabels += label;
  auto dimOf = [&](const Term &t, char label) { return Node::dimsOf(t.value)[t.labels.find(label)]; };
  for (char label : batch + k)
    if (dimOf(a, label) != dimOf(b, label))
      return std::nullopt;
  if (!Node::isFloat(a.value) || k.empty())
    return std::nullopt;
  Dims batchDims, mDims, nDims, kDims;
  for (char label : batch)
    batchDims.push_back(dimOf(a, label));
  for (char label : m)
    mDims.push_back(dimOf(a, label));
  for (char label : nLabels)
    nDims.push_back(dimOf(b, label));
  for (char label : k)
    kDims.push_back(dimOf(a, label));
  Dims left = batchDims, right = batchDims, result = batchDims;
  left.append({n.product(mDims), n.product(kDims)});
  right.append({n.product(kDims), n.product(nDims)});
  llvm::append_range(result, mDims);
  llvm::append_range(result, nDims);
  Value product = n.matmul(n.reshape(spread(n, a.value, a.labels, batch + m + k), left),
                           n.reshape(spread(n, b.value, b.labels, batch + k + nLabels), right));
  return Term{n.reshape(product, result), batch + m + nLabels};
}

void einsum(Node &n) {
  std::string equation = n.attrString("equation", "");
  llvm::erase(equation, ' ');
  auto [left, right] = StringRef(equation).split("->");
  SmallVector<StringRef> inputs;
  left.split(inputs, ',');
  if (inputs.size() != n.numInputs())
    n.refuse("equation '" + equation + "' has " + Twine(inputs.size()) + " terms for " + Twine(n.numInputs()) + " inputs");
  std::vector<Term> terms;
  int64_t ellipsisRank = 0;
  std::map<char, int> uses;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    Value x = n.in(i);
    if (input.contains("..."))
      ellipsisRank = std::max(ellipsisRank, Node::rankOf(x) - int64_t(input.size() - 3));
    if (ellipsisRank > 8)
      n.refuse("equation '" + equation + "' has an ellipsis of " + Twine(ellipsisRank) + " dimensions, at most 8 are read");
    Term term{x, subscripts(n, input, Node::rankOf(x), 0)};
    for (char label : term.labels)
      ++uses[label];
    term.value = diagonal(n, x, term.labels);
    terms.push_back(term);
  }
  std::string out;
  if (equation.find("->") != std::string::npos) {
    out = subscripts(n, right, -1, ellipsisRank);
  } else {
    for (int64_t k = ellipsisRank; k-- > 0;)
      out += char('0' + k);
    for (auto [label, count] : uses)
      if (count == 1 && isalpha(label))
        out += label;
  }
  for (char label : out)
    if (!uses.count(label))
      n.refuse("equation '" + equation + "' has '" + Twine(label) + "' in its result only");
  while (true) {
    // What the other terms or the result still need of the first.
    std::string kept = out;
    for (size_t i = 1; i < terms.size(); ++i)
      kept += terms[i].labels;
    sumOut(n, terms[0], kept);
    if (terms.size() == 1)
      break;
    kept = out;
    for (size_t i = 2; i < terms.size(); ++i)
      kept += terms[i].labels;
    sumOut(n, terms[1], kept + terms[0].labels);
    std::optional<Term> joined = contract(n, terms[0], terms[1], kept);
    if (!joined) {
      std::string all = terms[0].labels;
      for (char label : terms[1].labels)
        if (all.find(label) == std::string::npos)
          all += label;
      joined = Term{n.mul(spread(n, terms[0].value, terms[0].labels, all), spread(n, terms[1].value, terms[1].labels, all)), all};
    }
    terms.erase(terms.begin());
    terms[0] = *joined;
  }
  n.set(0, spread(n, terms[0].value, terms[0].labels, out));
}

constexpr OpRow rows[] = {
    {"", "MatMul", matMul},
    {"", "Gemm", gemm},
    {"", "Einsum", einsum},
};

} // namespace

ArrayRef<OpRow> linearRows() { return rows; }

} // namespace ajour::onnx_import
