//===- State.cpp - resource variables and what keeps them -------------------------===//
#include "State.h"
#include "Importer.h"

using namespace mlir;
using namespace ajour::nn;

namespace ajour::tflite {

States::Entry &States::find(const std::string &key, const std::string &name, Location loc) {
  std::unique_ptr<Entry> &entry = entries[key];
  if (!entry)
    entry.reset(new Entry{name, {}, {}, {}, {}, loc});
  return *entry;
}

bool States::open(Entry &entry, RankedTensorType type) {
  if (entry.argument)
    return entry.type == type;
  if (entry.initial && entry.initial.getShapedType() != type)
    return false;
  entry.type = type;
  entry.argument = entry.current = function.getBody().front().addArgument(type, entry.loc);
  order.push_back(&entry);
  return true;
}

Value States::read(Entry &entry, RankedTensorType type) { return open(entry, type) ? entry.current : Value(); }

bool States::write(Entry &entry, Value value) {
  if (!open(entry, cast<RankedTensorType>(value.getType())))
    return false;
  entry.current = value;
  return true;
}

void States::finish(OpBuilder &builder, SmallVectorImpl<Value> &results) {
  std::vector<Entry *> kept;
  OpBuilder::InsertionGuard guard(builder);
  for (Entry *entry : order) {
    if (entry->current != entry->argument) {
      resultOf[entry] = results.size();
      results.push_back(entry->current);
      kept.push_back(entry);
      continue;
    }
    builder.setInsertionPointToStart(&function.getBody().front());
    ElementsAttr value = entry->initial;
    if (!value)
      value = DenseElementsAttr::get(entry->type, builder.getZeroAttr(entry->type.getElementType()));
    Value constant = ConstantOp::create(builder, entry->loc, entry->type, value);
    entry->argument.replaceAllUsesWith(constant);
    for (Value &result : results)
      if (result == entry->argument)
        result = constant;
    for (Entry *other : order)
      if (other != entry && other->current == entry->argument)
        other->current = constant;
    unsigned number = cast<BlockArgument>(entry->argument).getArgNumber();
    function.getBody().front().eraseArgument(number);
  }
  order = std::move(kept);
}

void States::mark() {
  // Names are the user's, and must differ.
  std::map<std::string, unsigned> seen;
  for (Entry *entry : order) {
    unsigned count = seen[entry->name]++;
    auto name = StringAttr::get(function.getContext(),
                                entry->name + (count ? "#" + std::to_string(count) : std::string()));
    unsigned argument = cast<BlockArgument>(entry->argument).getArgNumber();
    function.setArgAttr(argument, stateAttr, name);
    if (entry->initial)
      function.setArgAttr(argument, initialAttr, entry->initial);
    function.setResultAttr(resultOf[entry], stateAttr, name);
  }
}

Value Node::variable(size_t i) {
  const TensorData &tensor = in(i);
  States::Entry &entry = states.find("tensor " + std::to_string(op.inputs[i]), tensor.name, loc);
  RankedTensorType type = makeTensor(tensor.shape, tensor.elementType);
  // A reset sets 8-bit tensors to what stands for zero.
  if (!entry.argument && tensor.elementType.isInteger(8) && tensor.isQuantized())
    entry.initial = DenseElementsAttr::get(type, b.getIntegerAttr(tensor.elementType, tensor.quant->zeroPoints[0]));
  return states.read(entry, type);
}

LogicalResult Node::setVariable(size_t i, Value x) {
  if (!x)
    return failure();
  if (!has(i) || !in(i).isVariable || values[op.inputs[i]])
    return success();
  (void)variable(i);
  if (states.write(states.find("tensor " + std::to_string(op.inputs[i]), in(i).name, loc), x))
    return success();
  return error() << "its new value " << toString(cast<RankedTensorType>(x.getType())) << " does not fit the variable '"
                 << in(i).name << "'";
}

namespace {

States::Entry &resourceOf(Node &node, const OperatorData &op) {
  const VarHandle *o = op.table->options_as<VarHandle>();
  std::string container = o && o->container() ? o->container()->str() : "";
  std::string name = o && o->shared_name() ? o->shared_name()->str() : "";
  return node.states.find("resource " + container + "/" + name, name.empty() ? "variable" : name, node.loc);
}

LogicalResult importVarHandle(Node &node) {
  if (node.out().format != TensorType::RESOURCE)
    return node.error() << "result '" << node.out().name << "' has type " << typeName(node.out().format)
                        << ", expected RESOURCE";
  node.states.handles[node.op.outputs[0]] = &resourceOf(node, node.op);
  return success();
}

/// The variable that operand 0 is a handle of; null after a diagnostic.
States::Entry *handleOf(Node &node) {
  auto found = node.has(0) ? node.states.handles.find(node.op.inputs[0]) : node.states.handles.end();
  if (found != node.states.handles.end())
    return found->second;
  node.error() << "operand 0 is no handle that VAR_HANDLE made";
  return nullptr;
}

LogicalResult importReadVariable(Node &node) {
  States::Entry *entry = handleOf(node);
  if (!entry)
    return failure();
  const TensorData &out = node.out();
  if (!out.elementType)
    return node.error() << "result '" << out.name << "' has type " << typeName(out.format) << ", which is not supported";
  Value value = node.states.read(*entry, makeTensor(out.shape, out.elementType));
  if (!value)
    return node.error() << "reads variable '" << entry->name << "' as " << toString(makeTensor(out.shape, out.elementType))
                        << ", which it is not elsewhere";
  return node.set(value);
}

LogicalResult importAssignVariable(Node &node) {
  States::Entry *entry = handleOf(node);
  Value value = entry ? node.value(1) : Value();
  if (!value)
    return failure();
  if (!cast<RankedTensorType>(value.getType()).hasStaticShape() || !node.states.write(*entry, value))
    return node.error() << "assigns " << toString(cast<RankedTensorType>(value.getType())) << " to variable '"
                        << entry->name << "', which has another type elsewhere";
  return success();
}

/// The initialisation of variables by another subgraph, which may assign constants and nothing else.
LogicalResult importCallOnce(Node &node) {
  const CallOnce *o = node.options<CallOnce>();
  auto found = node.graph.initialisers.find(o ? o->init_subgraph_index() : 0);
  if (found == node.graph.initialisers.end())
    return node.error() << "its subgraph #" << (o ? o->init_subgraph_index() : 0) << " does not exist";
  const Graph &init = *found->second;
  std::map<int32_t, States::Entry *> handles;
  for (const OperatorData &op : init.operators) {
    if (op.code == Builtin::VAR_HANDLE && op.outputs.size() == 1) {
      handles[op.outputs[0]] = &resourceOf(node, op);
      continue;
    }
    auto handle = op.inputs.size() == 2 ? handles.find(op.inputs[0]) : handles.end();
    if (op.code != Builtin::ASSIGN_VARIABLE || handle == handles.end() || op.inputs[1] < 0 ||
        !init.tensors[op.inputs[1]].isConstant || !init.tensors[op.inputs[1]].elementType ||
        !init.tensors[op.inputs[1]].problem.empty())
      return node.error() << "its subgraph has operator " << op.type
                          << "; only assignments of constants to variables are supported there";
    const TensorData &value = init.tensors[op.inputs[1]];
    handle->second->initial = makeConstant(makeTensor(value.shape, value.elementType), value.bytes);
  }
  return success();
}

const OpRow rows[] = {
    {Builtin::VAR_HANDLE, 1, 0, 0, importVarHandle},
    {Builtin::READ_VARIABLE, 1, 1, 1, importReadVariable},
    {Builtin::ASSIGN_VARIABLE, 1, 2, 2, importAssignVariable, nullptr, /*hasResult=*/false},
    {Builtin::CALL_ONCE, 1, 0, 0, importCallOnce, nullptr, /*hasResult=*/false},
};

} // namespace

ArrayRef<OpRow> stateRows() { return rows; }

} // namespace ajour::tflite
