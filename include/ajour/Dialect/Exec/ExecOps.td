//===- ExecOps.td - the exec dialect -----------------------------------------===//
#ifndef AJOUR_DIALECT_EXEC_EXECOPS_TD
#define AJOUR_DIALECT_EXEC_EXECOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::ajour::exec";
  let summary = "What the runtime does, one to one with the artifact";
  let description = [{
    The entry function is a list of dispatches over tensors. A tensor value is a buffer; what a dispatch
    computes is the body of the function that it names, in nn operations.
  }];
}

def Exec_DispatchOp : Op<Exec_Dialect, "dispatch", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a function over buffers";
  let description = [{
    C1: `callee` is a function of the module with these operand and result types. `kind` is the heaviest
    operation in it, for profiles.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, StrAttr:$kind, Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = "$kind $callee `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}

def Exec_AliasOp : Op<Exec_Dialect, "alias", [Pure]> {
  let summary = "the same buffer under another shape of as many elements";
  let arguments = (ins AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($result)";
}

#endif
