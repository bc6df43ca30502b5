//===- Importer.cpp - ONNX graphs as nn -----------------------------------------===//
#include "Importer.h"
#include "Encodings.h"

#include "ajour/Dialect/Enc/Enc.h"
#include "ajour/Dialect/NN/Weights.h"
#include "ajour/Reference/Interpreter.h"
#include "ajour/Support/NodeLocation.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace ajour::onnx_import {

namespace {

constexpr int64_t oldestOpset = 6, newestOpset = 21;
constexpr unsigned deepestNesting = 16;

/// All rows by domain and name.
const OpRow *findRow(StringRef domain, StringRef name) {
  static const llvm::StringMap<OpRow> table = [] {
    llvm::StringMap<OpRow> rows;
    for (ArrayRef<OpRow> part : {elementwiseRows(), linearRows(), convRows(), normRows(), shapeRows(), indexingRows(),
                                 resampleRows(), quantizationRows(), recurrentRows(), controlRows()})
      for (const OpRow &row : part)
        rows[std::string(row.domain) + ":" + row.name] = row;
    return rows;
  }();
  auto it = table.find((domain + ":" + name).str());
  return it == table.end() ? nullptr : &it->second;
}

std::string domainOf(const std::string &domain) { return domain == "ai.onnx" ? "" : domain; }
std::string domainText(StringRef domain) { return domain.empty() ? "ai.onnx" : domain.str(); }

std::string sizesText(ArrayRef<int64_t> sizes) {
  return "[" + llvm::join(llvm::map_range(sizes, [](int64_t s) { return std::to_string(s); }), ", ") + "]";
}

} // namespace

Importer::Importer(MLIRContext *context, const ModelFile &model, const ImportOptions &options,
                   std::map<std::string, int64_t> &multiples)
    : context(context), builder(context), model(model), options(options), multiples(multiples),
      mostNodes((1 << 14) + model.fileBytes / 4), foldBudget(FoldBudget::forBytes(model.fileBytes)) {}

Location Importer::fileLoc() const { return FileLineColLoc::get(context, model.path, 0, 0); }

void Importer::error(const Twine &message) {
  emitError(fileLoc()) << message;
  ++errors;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

Entry *Importer::find(Scope &scope, const std::string &name) {
  for (Scope *s = &scope; s; s = s->parent)
    if (auto it = s->names.find(name); it != s->names.end())
      return &it->second;
  return nullptr;
}

Entry &Importer::lookup(Node &n, const std::string &name) {
  if (Entry *entry = find(n.scope, name))
    return *entry;
  for (Scope *s = &n.scope; s; s = s->parent)
    if (auto it = s->producers.find(name); it != s->producers.end())
      n.refuse("input '" + Twine(name) + "' is made by " + it->second +
               ", which does not come earlier: the nodes are out of order or form a cycle");
  n.refuse("input '" + Twine(name) + "' is not defined by any input, initializer or earlier node");
}

void Importer::define(Node &n, const std::string &name, Entry entry) {
  if (n.scope.names.count(name))
    n.refuse("output '" + Twine(name) + "' has the name of another value; names must be unique");
  n.scope.names[name] = std::move(entry);
}

void Importer::poison(Scope &scope, const ::onnx::NodeProto &proto) {
  for (const std::string &name : proto.output())
    if (!name.empty()) {
      Entry &entry = scope.names[name];
      if (!entry.value && !entry.exprs && !entry.tensor)
        entry.poisoned = true;
    }
}

bool Importer::dependsOnPoison(Scope &scope, const ::onnx::NodeProto &proto) {
  return llvm::any_of(proto.input(), [&](const std::string &name) {
    Entry *entry = name.empty() ? nullptr : find(scope, name);
    return entry && entry->poisoned;
  });
}

const ::onnx::AttributeProto *Importer::resolve(Scope &scope, const ::onnx::AttributeProto &attr) const {
  if (attr.ref_attr_name().empty())
    return &attr;
  for (Scope *s = &scope; s; s = s->parent)
    if (s->call) {
      for (const ::onnx::AttributeProto &given : s->call->attribute())
        if (given.name() == attr.ref_attr_name())
          return resolve(*s->callScope, given);
      return nullptr;
    }
  return nullptr;
}

Value Importer::materialize(Node &n, Entry &entry, const std::string &name) {
  if (entry.tensor) {
    TensorData data;
    std::string problem;
    if (!readTensor(model, *entry.tensor, context, data, problem))
      n.refuse("initializer '" + Twine(name) + "' " + problem);
    if (entry.tensor->data_location() == ::onnx::TensorProto::EXTERNAL) {
      FoldBudget more = FoldBudget::forBytes(int64_t(data.bytes.size())), none = FoldBudget::forBytes(0);
      foldBudget.bytes += more.bytes - none.bytes;
      foldBudget.steps += more.steps - none.steps;
    }
    entry.onnxType = entry.tensor->data_type();
    return n.constant(data.type, data.bytes);
  }
  Type element = entry.exprElement ? entry.exprElement : n.i64Type();
  Ints known;
  for (AffineExpr expr : *entry.exprs)
    if (std::optional<int64_t> value = nn::getConstant(expr))
      known.push_back(*value);
  if (known.size() == entry.exprs->size()) {
    Value v = isa<FloatType>(element) ? n.constantFloats(std::vector<float>(known.begin(), known.end()), element)
                                      : n.constantInts(known, element);
    return entry.isScalar ? n.reshape(v, ArrayRef<int64_t>()) : v;
  }
  // The size that an expression stands for is the sum of as many ones.
  SmallVector<Value> parts;
  for (AffineExpr expr : *entry.exprs) {
    if (std::optional<int64_t> known = nn::getConstant(expr)) {
      parts.push_back(n.constantInts({*known}, n.i64Type()));
      continue;
    }
    Value ones = n.broadcast(n.constantInts({1}, n.i64Type()), {expr});
    parts.push_back(n.reduce(nn::ReduceKind::sum, ones, {0}, /*keepDims=*/true));
  }
  Value joined = parts.empty() ? n.constantInts({}, n.i64Type()) : n.concat(parts, 0);
  if (entry.isScalar)
    joined = n.reshape(joined, ArrayRef<int64_t>());
  return n.cast(joined, element);
}

bool Importer::fold(Operation *op, SmallVector<Value> &results) {
  // Dequantised constants stay integers for the passes that compute with them or store them.
  if (isa<nn::ConstantOp>(op) || nn::isStoredForm(op))
    return false;
  int64_t consumed = 0, created = 0;
  for (Value operand : op->getOperands()) {
    if (!nn::getConstantValue(operand))
      return false;
    auto type = cast<RankedTensorType>(operand.getType());
    consumed += type.getNumElements() * nn::elementBytes(type.getElementType());
  }
  for (Type t : op->getResultTypes()) {
    auto type = cast<RankedTensorType>(t);
    int64_t elements = type.hasStaticShape() ? checkedElements(type.getShape()) : -1;
    if (elements < 0 || elements > (int64_t(1) << 36))
      return false;
    created += elements * nn::elementBytes(type.getElementType());
  }
  // What grows a small file much stays an operation.
  if (created - consumed > int64_t(16) << 20)
    return false;
  return foldConstants(op, &results, /*maxBytes=*/int64_t(1) << 32, &foldBudget);
}

//===----------------------------------------------------------------------===//
// The graph's surroundings
//===----------------------------------------------------------------------===//

bool Importer::readOpsets(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto> &imports,
                          std::map<std::string, int64_t> &opsets) {
  for (const ::onnx::OperatorSetIdProto &import : imports) {
    std::string domain = domainOf(import.domain());
    if (!opsets.emplace(domain, import.version()).second) {
      error("imports operator set " + domainText(domain) + " twice");
      return false;
    }
  }
  auto it = opsets.find("");
  if (it == opsets.end())
    return true;
  if (it->second < oldestOpset) {
    error("uses operator set ai.onnx " + Twine(it->second) + ", the oldest that can be read is " +
          Twine(oldestOpset) + "; convert the model with onnx.version_converter");
    return false;
  }
  if (it->second > newestOpset) {
    if (!options.allowNewerOpset) {
      error("uses operator set ai.onnx " + Twine(it->second) + ", the newest that is known is " + Twine(newestOpset) +
            "; --allow-newer-opset reads it as that");
      return false;
    }
    it->second = newestOpset;
  }
  return true;
}

void Importer::declare(Scope &scope, const ::onnx::GraphProto &graph, bool isMain) {
  for (const ::onnx::TensorProto &tensor : graph.initializer()) {
    if (scope.names.count(tensor.name())) {
      error("initializer '" + Twine(tensor.name()) + "' appears twice");
      continue;
    }
    // An input that has a default but is bound or given outside takes the other value.
    if (isMain && options.bindings.count(tensor.name()))
      continue;
    Entry &entry = scope.names[tensor.name()];
    entry.tensor = &tensor;
    entry.onnxType = tensor.data_type();
  }
  for (const ::onnx::SparseTensorProto &sparse : graph.sparse_initializer())
    error("initializer '" + Twine(sparse.values().name()) + "' is sparse, expected a dense tensor");
  for (auto [index, node] : llvm::enumerate(graph.node()))
    for (const std::string &name : node.output())
      if (!name.empty())
        scope.producers.try_emplace(name, "node '" + (node.name().empty() ? node.op_type() : node.name()) + "' (#" +
                                              std::to_string(index) + ")");
}

AffineExpr Importer::dimension(const std::string &name) {
  if (auto it = dimensionsSeen.find(name); it != dimensionsSeen.end())
    return it->second;
  AffineExpr expr;
  DimBounds bounds;
  if (auto it = options.dims.find(name); it != options.dims.end())
    bounds = it->second;
  if (bounds.min < 0 || (bounds.max != -1 && bounds.max < bounds.min))
    error("dimension '" + Twine(name) + "' is bounded by " + Twine(bounds.min) + ".." + Twine(bounds.max) +
          ", which holds no size");
  if (bounds.min == bounds.max) {
    expr = getAffineConstantExpr(bounds.min, context);
  } else {
    // With a multiple m the symbol counts in steps of m.
    auto it = multiples.find(name);
    int64_t multiple = it == multiples.end() ? 1 : it->second;
    expr = getAffineSymbolExpr(unsigned(symbols.size()), context) * multiple;
    symbols.push_back({name, int64_t(llvm::divideCeilSigned(bounds.min, multiple)),
                       bounds.max == -1 ? -1 : bounds.max / multiple});
    if (bounds.max != -1 && symbols.back().max < symbols.back().min)
      error("dimension '" + Twine(name) + "' must be a multiple of " + Twine(multiple) + ", and " + Twine(bounds.min) +
            ".." + Twine(bounds.max) + " holds none");
    names.push_back(name);
  }
  dimensionsSeen[name] = expr;
  return expr;
}

RankedTensorType Importer::inputType(const ::onnx::ValueInfoProto &info) {
  if (!info.type().has_tensor_type()) {
    error("input '" + Twine(info.name()) + "' is not a tensor (sequences, maps and optionals are not supported)");
    return nullptr;
  }
  const auto &tensor = info.type().tensor_type();
  Type element = elementTypeOf(tensor.elem_type(), context);
  if (!element || tensor.elem_type() >= OnnxFloat8E4M3FN) {
    error("input '" + Twine(info.name()) + "' has elements of " + onnxTypeName(tensor.elem_type()) +
          ", expected float, float16, bfloat16, double, bool or integers of 8 to 64 bits");
    return nullptr;
  }
  if (!tensor.has_shape()) {
    error("input '" + Twine(info.name()) + "' has no rank, expected a shape (its sizes may be symbolic)");
    return nullptr;
  }
  Dims dims;
  for (auto [axis, dim] : llvm::enumerate(tensor.shape().dim())) {
    if (dim.has_dim_value() && dim.dim_value() != -1) {
      if (dim.dim_value() < 0 || dim.dim_value() > std::numeric_limits<int32_t>::max()) {
        error("input '" + Twine(info.name()) + "' has size " + Twine(dim.dim_value()) + " in dimension " +
              Twine(axis));
        return nullptr;
      }
      dims.push_back(getAffineConstantExpr(dim.dim_value(), context));
    } else {
      dims.push_back(dimension(dim.dim_param().empty() ? info.name() + "." + std::to_string(axis) : dim.dim_param()));
    }
  }
  return nn::makeTensor(dims, element);
}

/// Whether a bound value's shape can be an input of this type.
static bool fits(const HostTensor &value, RankedTensorType type) {
  if (value.elementType != nn::getElementTypeId(type.getElementType()) || value.shape.size() != size_t(type.getRank()))
    return false;
  for (auto [size, wanted] : llvm::zip_equal(value.shape, type.getShape()))
    if (!ShapedType::isDynamic(wanted) && wanted != size)
      return false;
  return true;
}

void Importer::importInputs(Scope &scope) {
  Block *block = builder.getInsertionBlock();
  llvm::StringSet<> seen;
  SmallVector<DictionaryAttr> attrs;
  for (const ::onnx::ValueInfoProto &info : model.proto.graph().input()) {
    if (!seen.insert(info.name()).second) {
      error("input '" + Twine(info.name()) + "' appears twice");
      continue;
    }
    // Old files list initializers as inputs too.
    if (scope.names.count(info.name()))
      continue;
    Entry &entry = scope.names[info.name()];
    auto bound = options.bindings.find(info.name());
    if (bound != options.bindings.end()) {
      size_t knownSymbols = symbols.size();
      RankedTensorType type = inputType(info);
      // Dimensions that only a bound input has are no symbols of the result.
      for (auto it = dimensionsSeen.begin(); it != dimensionsSeen.end();) {
        bool added = false;
        it->second.walk([&](AffineExpr e) {
          auto symbol = dyn_cast<AffineSymbolExpr>(e);
          added |= symbol && symbol.getPosition() >= knownSymbols;
        });
        it = added ? dimensionsSeen.erase(it) : std::next(it);
      }
      symbols.resize(knownSymbols);
      names.resize(knownSymbols);
      boundInputs.insert(info.name());
      entry.poisoned = !type;
      if (!type)
        continue;
      const HostTensor &value = bound->second;
      if (!fits(value, type)) {
        error("input '" + Twine(info.name()) + "' is " + nn::toString(type) + ", the value bound to it is " +
              nn::elementName(nn::getElementType(value.elementType, context)) + sizesText(value.shape));
        entry.poisoned = true;
        continue;
      }
      auto fixed = RankedTensorType::get(value.shape, type.getElementType());
      entry.value = nn::ConstantOp::create(builder, fileLoc(), fixed, nn::makeConstant(fixed, value.data));
      continue;
    }
    RankedTensorType type = inputType(info);
    entry.poisoned = !type;
    if (!type)
      continue;
    entry.value = block->addArgument(type, fileLoc());
    argumentNames.push_back(info.name());
    attrs.push_back(builder.getDictionaryAttr(builder.getNamedAttr("nn.name", builder.getStringAttr(info.name()))));
  }
  function.setFunctionType(builder.getFunctionType(block->getArgumentTypes(), {}));
  for (auto [i, attr] : llvm::enumerate(attrs))
    function.setArgAttrs(i, attr);
}

void Importer::checkOptionsUsed() {
  for (const auto &[name, bounds] : options.dims)
    if (!dimensionsSeen.count(name)) {
      std::string known;
      for (const auto &[other, expr] : dimensionsSeen)
        known += (known.empty() ? "'" : ", '") + other + "'";
      error("has no dimension called '" + Twine(name) + "'; its dimensions are " + (known.empty() ? "all fixed" : known));
    }
  for (const auto &[name, value] : options.bindings)
    if (!boundInputs.contains(name)) {
      std::string known;
      for (const auto &info : model.proto.graph().input())
        known += (known.empty() ? "'" : ", '") + info.name() + "'";
      error("has no input called '" + Twine(name) + "' to bind; its inputs are " + known);
    }
}

void Importer::unify(Node &n, ArrayRef<AffineExpr> lhs, ArrayRef<AffineExpr> rhs) {
  constexpr int64_t largestMultiple = 1024;
  size_t common = std::min(lhs.size(), rhs.size());
  for (auto [a, b] : llvm::zip_equal(lhs.take_back(common), rhs.take_back(common))) {
    if (a == b || nn::getConstant(a) || nn::getConstant(b))
      continue;
    llvm::SmallSet<unsigned, 4> used;
    for (AffineExpr e : {a, b})
      e.walk([&](AffineExpr inner) {
        if (auto symbol = dyn_cast<AffineSymbolExpr>(inner))
          used.insert(symbol.getPosition());
      });
    for (int64_t multiple = 2; multiple <= largestMultiple; multiple *= 2) {
      SmallVector<AffineExpr> replacements;
      for (unsigned i = 0; i < symbols.size(); ++i)
        replacements.push_back(getAffineSymbolExpr(i, context) * multiple);
      auto scaled = [&](AffineExpr e) {
        return simplifyAffineExpr(e.replaceDimsAndSymbols({}, replacements), 0, unsigned(symbols.size()));
      };
      if (scaled(a) != scaled(b))
        continue;
      for (unsigned position : used)
        multiples.emplace(symbols[position].name, 1).first->second *= multiple;
      retry = true;
      n.refuse("the sizes " + n.text({a}) + " and " + n.text({b}) + " differ");
    }
  }
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

std::string Importer::describe(Node &n) {
  std::string domain = domainOf(n.proto.domain());
  std::string text = " [" + n.type().str() + " of " + domainText(domain) + " " + std::to_string(n.opset) + "; inputs:";
  for (const std::string &name : n.proto.input()) {
    Entry *entry = name.empty() ? nullptr : find(n.scope, name);
    text += (&name == &n.proto.input(0) ? " " : ", ");
    if (name.empty())
      text += "none";
    else if (!entry || entry->poisoned)
      text += "unknown";
    else if (entry->value)
      text += nn::toString(cast<RankedTensorType>(entry->value.getType()), names);
    else if (entry->tensor)
      text += onnxTypeName(entry->tensor->data_type()) +
              sizesText(SmallVector<int64_t>(entry->tensor->dims().begin(), entry->tensor->dims().end()));
    else
      text += "the shape value " + nn::toString(*entry->exprs, names);
  }
  return text + (n.proto.input().empty() ? " none]" : "]");
}

void Importer::dispatch(Node &n, const OpRow *row) {
  if (!importShapeArithmetic(n))
    row->handler(n);
  for (const std::string &name : n.proto.output())
    if (!name.empty() && !n.scope.names.count(name))
      n.refuse("output '" + Twine(name) + "' is not one that this operator has");
}

void Importer::importNode(Scope &scope, const ::onnx::NodeProto &proto, int64_t index) {
  std::string domain = domainOf(proto.domain());
  Location loc = makeNodeLocation(context, {model.path, nodeName(proto, index), proto.op_type(), index});
  auto opset = scope.opsets.find(domain);
  Node n(*this, scope, proto, loc, opset == scope.opsets.end() ? 0 : opset->second);

  std::vector<std::string> problems;
  {
    ScopedDiagnosticHandler capture(context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        problems.push_back(diagnostic.str());
      return success();
    });
    try {
      if (++nodesExpanded > mostNodes)
        n.refuse("is one node too many: a model may have " + Twine(mostNodes) + " after functions are expanded");
      auto function = functions.find(domain + ":" + proto.op_type());
      const OpRow *row = findRow(domain, proto.op_type());
      if (function != functions.end()) {
        if (!dependsOnPoison(scope, proto))
          callFunction(n, *function->second);
      } else if (!row) {
        n.refuse(Twine("this operator is not supported") +
                 (domain.empty() || domain == "com.microsoft"
                      ? ""
                      : "; of other domains than ai.onnx and com.microsoft only functions that the model defines are"));
      } else if (!row->handler) {
        n.refuse(Twine("this operator is not supported: ") + row->refusal);
      } else if (opset == scope.opsets.end()) {
        n.refuse("the model does not import operator set " + domainText(domain));
      } else if (!dependsOnPoison(scope, proto)) {
        dispatch(n, row);
      }
    } catch (Refused) {
      poison(scope, proto);
    }
  }
  if (dependsOnPoison(scope, proto))
    poison(scope, proto);
  if (problems.empty())
    return;
  poison(scope, proto);
  errors += int64_t(problems.size());
  emitError(loc) << llvm::join(problems, "; ") << describe(n);
}

void Importer::importNodes(Scope &scope, const google::protobuf::RepeatedPtrField<::onnx::NodeProto> &nodes,
                           bool isMain) {
  for (auto [index, node] : llvm::enumerate(nodes)) {
    if (isMain && options.progress && index % 64 == 0)
      options.progress("import", int64_t(index), nodes.size());
    importNode(scope, node, int64_t(index));
  }
}

std::vector<Entry> Importer::importBranch(Node &n, const ::onnx::GraphProto &graph) {
  Scope inner;
  inner.parent = &n.scope;
  inner.opsets = n.scope.opsets;
  inner.depth = n.scope.depth + 1;
  if (inner.depth > deepestNesting)
    n.refuse("is nested deeper than " + Twine(deepestNesting) + " graphs");
  int64_t before = errors;
  declare(inner, graph, /*isMain=*/false);
  importNodes(inner, graph.node(), /*isMain=*/false);
  if (errors != before)
    throw Refused();
  std::vector<Entry> results;
  for (const ::onnx::ValueInfoProto &output : graph.output()) {
    Entry *entry = find(inner, output.name());
    if (!entry)
      n.refuse("its branch's output '" + Twine(output.name()) + "' is not defined");
    if (entry->poisoned)
      throw Refused();
    if (entry->tensor && !entry->value)
      entry->value = materialize(n, *entry, output.name());
    results.push_back(*entry);
  }
  return results;
}

void Importer::callFunction(Node &n, const ::onnx::FunctionProto &function) {
  Scope body;
  body.call = &n.proto;
  body.callScope = &n.scope;
  body.depth = n.scope.depth + 1;
  if (body.depth > deepestNesting)
    n.refuse("functions call each other deeper than " + Twine(deepestNesting));
  int64_t before = errors;
  if (!readOpsets(function.opset_import(), body.opsets))
    throw Refused();
  if (body.opsets.empty())
    body.opsets = n.scope.opsets;
  if (n.proto.input_size() > function.input_size() || n.proto.output_size() > function.output_size())
    n.refuse("gives " + Twine(n.proto.input_size()) + " inputs and takes " + Twine(n.proto.output_size()) +
             " outputs, the function has " + Twine(function.input_size()) + " and " + Twine(function.output_size()));
  std::vector<::onnx::NodeProto> nodes(function.node().begin(), function.node().end());
  llvm::StringSet<> absent;
  for (int i = 0; i < function.input_size(); ++i) {
    if (n.has(i))
      body.names[function.input(i)] = n.entry(i);
    else
      absent.insert(function.input(i));
  }
  for (auto [index, node] : llvm::enumerate(nodes)) {
    for (std::string &input : *node.mutable_input())
      if (absent.contains(input))
        input.clear();
    if (node.name().empty())
      node.set_name((n.proto.name().empty() ? n.proto.op_type() : n.proto.name()) + "/" + node.op_type() + "_" +
                    std::to_string(index));
    importNode(body, node, int64_t(index));
  }
  if (errors != before)
    throw Refused();
  for (int i = 0; i < n.proto.output_size(); ++i) {
    if (!n.wants(i))
      continue;
    Entry *entry = find(body, function.output(i));
    if (!entry)
      n.refuse("the function's output '" + Twine(function.output(i)) + "' is not defined");
    if (entry->poisoned)
      throw Refused();
    define(n, n.proto.output(i), *entry);
  }
}

//===----------------------------------------------------------------------===//
// The whole model
//===----------------------------------------------------------------------===//

/// Erases what nobody uses.
static void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (!op.hasTrait<OpTrait::IsTerminator>() && op.use_empty())
      op.erase();
}

void Importer::finish(Scope &scope) {
  SmallVector<Value> results;
  SmallVector<Attribute> resultAttrs;
  ::onnx::NodeProto proto;
  proto.set_op_type("output");
  Node n(*this, scope, proto, fileLoc(), 0);
  for (const ::onnx::ValueInfoProto &output : model.proto.graph().output()) {
    try {
      Entry &entry = lookup(n, output.name());
      if (entry.poisoned)
        continue;
      if (!entry.value)
        entry.value = materialize(n, entry, output.name());
      results.push_back(entry.value);
    } catch (Refused) {
      ++errors;
      continue;
    }
    resultAttrs.push_back(
        builder.getDictionaryAttr(builder.getNamedAttr("nn.name", builder.getStringAttr(output.name()))));
  }
  if (model.proto.graph().output().empty())
    error("has no outputs");
  func::ReturnOp::create(builder, fileLoc(), results);
  SmallVector<Type> types(ValueRange(results).getTypes());
  function.setFunctionType(
      builder.getFunctionType(builder.getInsertionBlock()->getArgumentTypes(), types));
  function.setResAttrsAttr(builder.getArrayAttr(resultAttrs));
  eraseUnused(*builder.getInsertionBlock());
  SmallVector<Attribute> symbolAttrs;
  for (const Symbol &symbol : symbols)
    symbolAttrs.push_back(nn::SymbolAttr::get(context, builder.getStringAttr(symbol.name), symbol.min, symbol.max));
  (*module)->setAttr("nn.symbols", builder.getArrayAttr(symbolAttrs));
  (*module)->setAttr("nn.source", builder.getStringAttr(model.path));
  std::string problem;
  if (DictionaryAttr declared = readDeclaredEncodings(model.proto, context, problem))
    (*module)->setAttr(enc::declaredAttrName, declared);
  if (!problem.empty())
    error(problem);
}

OwningOpRef<ModuleOp> Importer::run() {
  const ::onnx::ModelProto &proto = model.proto;
  if (!proto.has_graph() || (proto.graph().node().empty() && proto.graph().output().empty())) {
    error("holds no graph; it is not an ONNX model or is damaged");
    return nullptr;
  }
  if (proto.opset_import().empty()) {
    error("has IR version " + Twine(proto.ir_version()) +
          " and no operator set import, so the meaning of its nodes is unknown; expected IR version 3 or newer with "
          "ai.onnx " +
          Twine(oldestOpset) + " to " + Twine(newestOpset) + "; convert the model with a newer exporter");
    return nullptr;
  }
  Scope scope;
  if (!readOpsets(proto.opset_import(), scope.opsets))
    return nullptr;
  for (const ::onnx::FunctionProto &f : proto.functions())
    if (!functions.emplace(domainOf(f.domain()) + ":" + f.name(), &f).second)
      error("defines function '" + Twine(f.name()) + "' twice");
  if (proto.training_info_size())
    emitWarning(fileLoc()) << "the model's training information is left out";

  module = ModuleOp::create(fileLoc());
  builder.setInsertionPointToStart(module->getBody());
  function = func::FuncOp::create(builder, fileLoc(), "main", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  declare(scope, proto.graph(), /*isMain=*/true);
  importInputs(scope);
  checkOptionsUsed();
  importNodes(scope, proto.graph().node(), /*isMain=*/true);
  finish(scope);
  if (errors || failed(verify(*module)))
    return nullptr;
  return std::move(module);
}

} // namespace ajour::onnx_import

namespace ajour {

OwningOpRef<ModuleOp> importONNX(MLIRContext *context, const std::string &path, const ImportOptions &options) {
  context->loadDialect<nn::NNDialect, func::FuncDialect>();
  std::string error;
  std::unique_ptr<onnx_import::ModelFile> model = onnx_import::readModel(path, error);
  if (!model) {
    emitError(FileLineColLoc::get(context, path, 0, 0)) << error;
    return nullptr;
  }
  // Each attempt may find dimensions that must be multiples; there are few, and each grows.
  std::map<std::string, int64_t> multiples;
  constexpr int mostAttempts = 8;
  for (int attempt = 1;; ++attempt) {
    std::vector<std::pair<Location, std::string>> problems;
    OwningOpRef<ModuleOp> module;
    bool retry = false;
    {
      ScopedDiagnosticHandler capture(context, [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          problems.emplace_back(diagnostic.getLocation(), diagnostic.str());
        return success(diagnostic.getSeverity() == DiagnosticSeverity::Error);
      });
      onnx_import::Importer importer(context, *model, options, multiples);
      module = importer.run();
      retry = importer.shouldRetry() && attempt < mostAttempts;
    }
    if (retry)
      continue;
    for (const auto &[loc, message] : problems)
      emitError(loc) << message;
    if (module)
      for (const auto &[name, multiple] : multiples)
        emitRemark(FileLineColLoc::get(context, path, 0, 0))
            << "dimension '" << name << "' must be a multiple of " << multiple << " for shapes to agree";
    return module;
  }
}

} // namespace ajour
