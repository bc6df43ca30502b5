//===- EncDialect.td - the enc dialect --------------------------------------===//
#ifndef AJOUR_DIALECT_ENC_ENCDIALECT_TD
#define AJOUR_DIALECT_ENC_ENCDIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

def Enc_Dialect : Dialect {
  let name = "enc";
  let cppNamespace = "::ajour::enc";
  let summary = "How weights are stored";
  let description = [{
    Attributes on operations of other dialects; there are no operations. `enc.weight` on a product (nn.matmul, nn.conv) says what was found
    in its constant weights. `enc.declared` on a module holds what the model itself says of them.
  }];
  let useDefaultAttributePrinterParser = 1;
}

def Enc_WeightAttr : AttrDef<Enc_Dialect, "Weight"> {
  let mnemonic = "weight";
  let summary = "a structure times values (ajour/Encoding/Encoding.h)";
  let description = [{
    `structure` and `values` are named as in the table of encodings, each with its parameters as lists of integers. `densities`: thousandths
    of the dense products that kernels compute whose 1, 2, 4, 8 or 16 neighbouring rows share what they skip.
    C1: the structure and its parameters are known. C2: the values and theirs. C3: five densities from 0 to 1000, which ascend.
  }];
  let parameters = (ins "::mlir::StringAttr":$structure, "::mlir::DictionaryAttr":$structure_parameters,
                        "::mlir::StringAttr":$values, "::mlir::DictionaryAttr":$value_parameters,
                        ArrayRefParameter<"int64_t">:$densities);
  let assemblyFormat = [{
    `<` $structure $structure_parameters `x` $values $value_parameters `,` `densities` `=` `[` $densities `]` `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static WeightAttr get(::mlir::MLIRContext *context, const ::ajour::encoding::Encoding &encoding,
                          ::llvm::ArrayRef<int64_t> densities);
    ::ajour::encoding::Encoding getEncoding() const;
  }];
}

#endif
