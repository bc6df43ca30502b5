//===- NNWeights.td - weights stored in few bits ---------------------------===//
//
// What a constant weight of few bits stands for. Values are a byte each here; how they are stored is decided when
// weights are packed. Passes keep these operations beside the product or gather that reads them.

def NN_NarrowFloat : AnyTypeOf<[F32, F16, BF16]>;
def NN_ByteTensor : RankedTensorOf<[I8, UI8]>;
def NN_NarrowFloatTensor : RankedTensorOf<[NN_NarrowFloat]>;

def NN_DequantizeGroupedOp : NN_Op<"dequantize_grouped"> {
  let summary = "integers of few bits with parameters in groups: (x - zero_point) * scale";
  let description = [{
    The parameters of the element at index i stand at index j with j[axis] = i[axis] / group; in every other
    dimension j[d] = i[d], or 0 where the parameters have size 1. A group at least as long as its dimension
    gives parameters per channel or per tensor. Without zero points they are 0. The difference and the product are each
    rounded to f32, the product then to the result's type. With `offsets` the zero points are numbers that are added instead: x * scale + offset, the product
    and the sum each rounded to f32. Scales and such offsets may themselves come from an nn.dequantize_grouped (codes of few bits with scales of longer groups:
    K-quants). Each element, and each integer zero point, fits `bits`: it lies in [0, 2^bits) for
    ui8 and in [-2^(bits-1), 2^(bits-1)) for i8; which value another element has is unspecified.
    C1: static and equal shapes. C2: axis in [0, rank), group >= 1. C3: scales have the operand's rank, the size
    ceil(dim(axis) / group) along the axis, elsewhere 1 or the operand's size. C4: zero points have the scales' shape, and
    the element type of the operand or of the scales. C5: 1 <= bits <= 8. C6: `offsets` needs zero points of a floating point type.
  }];
  let arguments = (ins NN_ByteTensor:$input, NN_NarrowFloatTensor:$scales, Optional<NN_Tensor>:$zero_points,
                       I64Attr:$axis, I64Attr:$group, DefaultValuedAttr<I64Attr, "8">:$bits, UnitAttr:$offsets);
  let results = (outs NN_NarrowFloatTensor:$result);
  let hasVerifier = 1;
}

def NN_DequantizeCodebookOp : NN_Op<"dequantize_codebook"> {
  let summary = "indices into a table of values, times scales in groups: table[x] * scale";
  let description = [{
    The table holds the entries of the whole tensor, [entries], or has the operand's dimensions before them, each of
    size 1 or the operand's (entries per channel): the element at i is table[i or 0 in each dimension, x[i]]. Indices
    beyond the table are clamped. Scales, if given, follow the rules of nn.dequantize_grouped; the product is rounded to f32
    and then to the result's type.
    C1: static and equal shapes. C2: axis in [0, rank), group >= 1. C3: scales as in nn.dequantize_grouped. C4: a table of
    rank 1 or the operand's rank + 1, whose sizes before the last are 1 or the operand's. C5: 1 to 256 entries.
  }];
  let arguments = (ins RankedTensorOf<[UI8]>:$input, NN_NarrowFloatTensor:$table,
                       Optional<NN_NarrowFloatTensor>:$scales, DefaultValuedAttr<I64Attr, "0">:$axis,
                       DefaultValuedAttr<I64Attr, "1">:$group);
  let results = (outs NN_NarrowFloatTensor:$result);
  let hasVerifier = 1;
}
