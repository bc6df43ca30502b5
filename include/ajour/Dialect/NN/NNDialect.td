//===- NNDialect.td - the nn dialect, its attributes and enumerations ------===//
#ifndef AJOUR_DIALECT_NN_NNDIALECT_TD
#define AJOUR_DIALECT_NN_NNDIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::ajour::nn";
  let summary = "What a model says: tensor operations with exact semantics, without layouts";
  let dependentDialects = ["::ajour::enc::EncDialect"];
  let description = [{
    Operations work on ranked tensors whose dimensions are logical: no operation has a memory layout.
    Spatial operations take channels last: input [N, spatial..., C], filter [O, window..., I/groups].
    Importers of channels-first formats write transposes, which later passes eliminate.

    Element types: f32, f16, bf16, f64, i8, i16, i32, i64 (signed, spelled signless), ui8, ui16, ui32,
    ui64 (unsigned) and i1 (boolean). Floating point reductions accumulate in at least f32.

    A dimension is a number or an expression over the module's symbols. A tensor type with such a
    dimension carries `#nn.dims<map>`, one affine expression for each dimension; two dynamic types are
    equal when their expressions are.

    Broadcasting is NumPy's: shapes are aligned at the right, and a dimension of 1 is repeated.

    Each operation numbers its constraints (C1, C2, ...); the verifier names them.
  }];
  let useDefaultAttributePrinterParser = 1;
}

class NN_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<NN_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def NN_DimsAttr : NN_Attr<"Dims", "dims", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "symbolic dimensions of a tensor";
  let description = [{
    A map `()[s0, s1, ...] -> (e0, e1, ...)` with one expression for each dimension over the module's
    symbols. C1: as many results as dimensions. C2: a static dimension's expression is its size.
  }];
  let parameters = (ins "::mlir::AffineMap":$map);
  let assemblyFormat = "`<` $map `>`";
}

def NN_SymbolAttr : NN_Attr<"Symbol", "symbol"> {
  let summary = "a symbolic dimension: the user's name and its inclusive bounds (-1: none)";
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$min, "int64_t":$max);
  let assemblyFormat = "`<` $name `,` $min `,` $max `>`";
}

class NN_Enum<string name, string description, list<I32EnumAttrCase> cases> : I32EnumAttr<name, description, cases> {
  let cppNamespace = "::ajour::nn";
  let genSpecializedAttr = 0;
}
class NN_EnumAttr<EnumAttrInfo info, string mnemonic> : EnumAttr<NN_Dialect, info, mnemonic> {
  let assemblyFormat = "`<` $value `>`";
}

def NN_UnaryKind : NN_Enum<"UnaryKind", "element-wise function of one operand", [
  I32EnumAttrCase<"neg", 0>, I32EnumAttrCase<"abs", 1>, I32EnumAttrCase<"sign", 2>, I32EnumAttrCase<"ceil", 3>,
  I32EnumAttrCase<"floor", 4>, I32EnumAttrCase<"round", 5>, I32EnumAttrCase<"trunc", 6>, I32EnumAttrCase<"sqrt", 7>,
  I32EnumAttrCase<"rsqrt", 8>, I32EnumAttrCase<"reciprocal", 9>, I32EnumAttrCase<"exp", 10>,
  I32EnumAttrCase<"log", 11>, I32EnumAttrCase<"sin", 12>, I32EnumAttrCase<"cos", 13>, I32EnumAttrCase<"tan", 14>,
  I32EnumAttrCase<"asin", 15>, I32EnumAttrCase<"acos", 16>, I32EnumAttrCase<"atan", 17>, I32EnumAttrCase<"sinh", 18>,
  I32EnumAttrCase<"cosh", 19>, I32EnumAttrCase<"tanh", 20>, I32EnumAttrCase<"asinh", 21>,
  I32EnumAttrCase<"acosh", 22>, I32EnumAttrCase<"atanh", 23>, I32EnumAttrCase<"erf", 24>,
  I32EnumAttrCase<"sigmoid", 25>, I32EnumAttrCase<"relu", 26>, I32EnumAttrCase<"softplus", 27>,
  I32EnumAttrCase<"softsign", 28>, I32EnumAttrCase<"hard_swish", 29>, I32EnumAttrCase<"mish", 30>,
  I32EnumAttrCase<"gelu", 31>, I32EnumAttrCase<"gelu_tanh", 32>, I32EnumAttrCase<"silu", 33>,
  I32EnumAttrCase<"logical_not", 34>, I32EnumAttrCase<"bitwise_not", 35>, I32EnumAttrCase<"is_nan", 36>,
  I32EnumAttrCase<"is_inf", 37>, I32EnumAttrCase<"elu", 38>, I32EnumAttrCase<"leaky_relu", 39>,
  I32EnumAttrCase<"selu", 40>, I32EnumAttrCase<"celu", 41>, I32EnumAttrCase<"thresholded_relu", 42>,
  I32EnumAttrCase<"hard_sigmoid", 43>, I32EnumAttrCase<"shrink", 44>, I32EnumAttrCase<"square", 45>,
]>;
def NN_UnaryKindAttr : NN_EnumAttr<NN_UnaryKind, "unary_kind">;

def NN_BinaryKind : NN_Enum<"BinaryKind", "element-wise function of two operands", [
  I32EnumAttrCase<"add", 0>, I32EnumAttrCase<"sub", 1>, I32EnumAttrCase<"mul", 2>, I32EnumAttrCase<"div", 3>,
  I32EnumAttrCase<"pow", 4>, I32EnumAttrCase<"floor_mod", 5>, I32EnumAttrCase<"trunc_mod", 6>,
  I32EnumAttrCase<"min", 7>, I32EnumAttrCase<"max", 8>, I32EnumAttrCase<"bit_and", 9>, I32EnumAttrCase<"bit_or", 10>,
  I32EnumAttrCase<"bit_xor", 11>, I32EnumAttrCase<"shift_left", 12>, I32EnumAttrCase<"shift_right", 13>,
  I32EnumAttrCase<"floor_div", 14>, I32EnumAttrCase<"squared_difference", 15>, I32EnumAttrCase<"prelu", 16>,
  I32EnumAttrCase<"atan2", 17>,
]>;
def NN_BinaryKindAttr : NN_EnumAttr<NN_BinaryKind, "binary_kind">;

def NN_CompareKind : NN_Enum<"CompareKind", "comparison", [
  I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>, I32EnumAttrCase<"le", 3>,
  I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>,
]>;
def NN_CompareKindAttr : NN_EnumAttr<NN_CompareKind, "compare_kind">;

def NN_ReduceKind : NN_Enum<"ReduceKind", "reduction", [
  I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"mean", 1>, I32EnumAttrCase<"prod", 2>, I32EnumAttrCase<"max", 3>,
  I32EnumAttrCase<"min", 4>,
]>;
def NN_ReduceKindAttr : NN_EnumAttr<NN_ReduceKind, "reduce_kind">;

def NN_ArgKind : NN_Enum<"ArgKind", "which extreme", [I32EnumAttrCase<"max", 0>, I32EnumAttrCase<"min", 1>]>;
def NN_ArgKindAttr : NN_EnumAttr<NN_ArgKind, "arg_kind">;

def NN_PadMode : NN_Enum<"PadMode", "what stands outside", [
  I32EnumAttrCase<"constant", 0>, I32EnumAttrCase<"reflect", 1>, I32EnumAttrCase<"edge", 2>,
  I32EnumAttrCase<"wrap", 3>, I32EnumAttrCase<"symmetric", 4>,
]>;
def NN_PadModeAttr : NN_EnumAttr<NN_PadMode, "pad_mode">;

def NN_ResizeMode : NN_Enum<"ResizeMode", "interpolation", [
  I32EnumAttrCase<"nearest", 0>, I32EnumAttrCase<"linear", 1>, I32EnumAttrCase<"cubic", 2>,
]>;
def NN_ResizeModeAttr : NN_EnumAttr<NN_ResizeMode, "resize_mode">;

def NN_CoordinateMode : NN_Enum<"CoordinateMode", "how an output index maps to an input coordinate", [
  I32EnumAttrCase<"half_pixel", 0>, I32EnumAttrCase<"pytorch_half_pixel", 1>, I32EnumAttrCase<"align_corners", 2>,
  I32EnumAttrCase<"asymmetric", 3>, I32EnumAttrCase<"tf_crop_and_resize", 4>,
  I32EnumAttrCase<"half_pixel_symmetric", 5>, I32EnumAttrCase<"tf_half_pixel_for_nn", 6>,
]>;
def NN_CoordinateModeAttr : NN_EnumAttr<NN_CoordinateMode, "coordinate_mode">;

def NN_NearestMode : NN_Enum<"NearestMode", "how a coordinate becomes an index", [
  I32EnumAttrCase<"round_prefer_floor", 0>, I32EnumAttrCase<"round_prefer_ceil", 1>, I32EnumAttrCase<"floor", 2>,
  I32EnumAttrCase<"ceil", 3>,
]>;
def NN_NearestModeAttr : NN_EnumAttr<NN_NearestMode, "nearest_mode">;

def NN_ScatterKind : NN_Enum<"ScatterKind", "how an update meets what is there", [
  I32EnumAttrCase<"set", 0>, I32EnumAttrCase<"add", 1>, I32EnumAttrCase<"mul", 2>, I32EnumAttrCase<"max", 3>,
  I32EnumAttrCase<"min", 4>,
]>;
def NN_ScatterKindAttr : NN_EnumAttr<NN_ScatterKind, "scatter_kind">;

def NN_SamplePadding : NN_Enum<"SamplePadding", "what a sample outside the image reads", [
  I32EnumAttrCase<"zeros", 0>, I32EnumAttrCase<"border", 1>, I32EnumAttrCase<"reflection", 2>,
]>;
def NN_SamplePaddingAttr : NN_EnumAttr<NN_SamplePadding, "sample_padding">;

def NN_CellActivation : NN_Enum<"CellActivation", "function inside a recurrent cell", [
  I32EnumAttrCase<"sigmoid", 0>, I32EnumAttrCase<"tanh", 1>, I32EnumAttrCase<"relu", 2>, I32EnumAttrCase<"affine", 3>,
  I32EnumAttrCase<"leaky_relu", 4>, I32EnumAttrCase<"thresholded_relu", 5>, I32EnumAttrCase<"scaled_tanh", 6>,
  I32EnumAttrCase<"hard_sigmoid", 7>, I32EnumAttrCase<"elu", 8>, I32EnumAttrCase<"softsign", 9>,
  I32EnumAttrCase<"softplus", 10>, I32EnumAttrCase<"relu6", 11>,
]>;
def NN_CellActivationAttr : NN_EnumAttr<NN_CellActivation, "cell_activation">;
def NN_CellActivations : TypedArrayAttrBase<NN_CellActivationAttr, "activations of a cell">;

def NN_Float : AnyTypeOf<[F32, F16, BF16, F64]>;
def NN_Int : AnyTypeOf<[I8, I16, I32, I64, UI8, UI16, UI32, UI64]>;
def NN_Element : AnyTypeOf<[NN_Float, NN_Int, I1]>;
def NN_Tensor : RankedTensorOf<[NN_Element]>;
def NN_FloatTensor : RankedTensorOf<[NN_Float]>;
def NN_IntTensor : RankedTensorOf<[NN_Int]>;
def NN_BoolTensor : RankedTensorOf<[I1]>;

// Every operation is pure and prints its operands' and results' types.
class NN_Op<string mnemonic, list<Trait> traits = []> : Op<NN_Dialect, mnemonic, !listconcat([Pure], traits)> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}
// An operation whose result types follow from its operands and attributes.
class NN_InferredOp<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat([InferTypeOpAdaptor], traits)>;

#endif
