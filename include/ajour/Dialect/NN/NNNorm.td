//===- NNNorm.td - reductions and normalisations ---------------------------===//

def NN_ReduceOp : NN_InferredOp<"reduce"> {
  let summary = "reduction over axes";
  let description = [{
    f16 and bf16 accumulate in f32; integers in their own type (mean truncates towards zero). An empty
    reduction gives 0 (sum, mean), 1 (prod), the lowest or highest value (max, min). On i1 max is any, min all;
    the others need numbers. NaN wins max and min.
    C1: axes are distinct, ascending, in [0, rank).
  }];
  let arguments = (ins NN_ReduceKindAttr:$kind, NN_Tensor:$input, DenseI64ArrayAttr:$axes, UnitAttr:$keep_dims);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$kind $input attr-dict `:` functional-type(operands, results)";
}

def NN_ArgReduceOp : NN_InferredOp<"arg_reduce"> {
  let summary = "index (i64) of the extreme along an axis: the first, or with select_last the last";
  let description = [{C1: axis in [0, rank). C2: the axis is not empty.}];
  let arguments = (ins NN_ArgKindAttr:$kind, NN_Tensor:$input, I64Attr:$axis, UnitAttr:$keep_dims,
                       UnitAttr:$select_last);
  let results = (outs NN_IntTensor:$result);
  let assemblyFormat = "$kind $input attr-dict `:` functional-type(operands, results)";
}

def NN_SoftmaxOp : NN_InferredOp<"softmax"> {
  let summary = "softmax along an axis, or its logarithm";
  let description = [{exp(x - max) / sum(exp(x - max)). C1: axis in [0, rank). C2: float.}];
  let arguments = (ins NN_FloatTensor:$input, I64Attr:$axis, UnitAttr:$log);
  let results = (outs NN_FloatTensor:$result);
}

def NN_LayerNormOp : NN_InferredOp<"layer_norm", [AttrSizedOperandSegments]> {
  let summary = "normalisation over the trailing dimensions from `axis` on";
  let description = [{
    (x - mean) / sqrt(variance + epsilon) * scale + bias; with `rms` x / sqrt(mean(x^2) + epsilon).
    scale and bias broadcast to the operand's shape. C1: axis in [0, rank). C2: scale and bias broadcastable.
  }];
  let arguments = (ins NN_FloatTensor:$input, Optional<NN_FloatTensor>:$scale, Optional<NN_FloatTensor>:$bias,
                       I64Attr:$axis, F32Attr:$epsilon, UnitAttr:$rms);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input (`scale` $scale^)? (`bias` $bias^)? attr-dict `:` functional-type(operands, results)";
}

def NN_CumsumOp : NN_InferredOp<"cumsum"> {
  let summary = "running sum along an axis";
  let description = [{C1: axis in [0, rank).}];
  let arguments = (ins NN_Tensor:$input, I64Attr:$axis, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs NN_Tensor:$result);
}

def NN_TopKOp : NN_InferredOp<"top_k"> {
  let summary = "the k largest (or smallest) along an axis, in order, with their indices (i64)";
  let description = [{
    Equal values keep the order of their indices; NaN exceeds every number. C1: axis in [0, rank).
    C2: 0 <= k <= dim(axis).
  }];
  let arguments = (ins NN_Tensor:$input, I64Attr:$k, I64Attr:$axis, UnitAttr:$smallest);
  let results = (outs NN_Tensor:$values, NN_IntTensor:$indices);
}
