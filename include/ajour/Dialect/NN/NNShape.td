//===- NNShape.td - data movement ------------------------------------------===//

def NN_TransposeOp : NN_InferredOp<"transpose"> {
  let summary = "permutes dimensions: result dimension i is operand dimension perm[i]";
  let description = [{C1: perm is a permutation of the dimensions.}];
  let arguments = (ins NN_Tensor:$input, DenseI64ArrayAttr:$perm);
  let results = (outs NN_Tensor:$result);
  let hasFolder = 1;
}

def NN_ReshapeOp : NN_Op<"reshape"> {
  let summary = "the same elements in row-major order under another shape";
  let description = [{C1: equal element types. C2: as many elements (as far as it can be proved).}];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NN_BroadcastOp : NN_Op<"broadcast"> {
  let summary = "repeats dimensions of 1 to the result's shape, aligned at the right";
  let description = [{C1: equal element types. C2: broadcastable to the result's shape.}];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NN_SliceOp : NN_Op<"slice"> {
  let summary = "result[i] = input[start + i * step] in each dimension";
  let description = [{
    Sizes are the result's. C1: one start and one step (not 0, may be negative) for each dimension. C2: equal element types. C3: every
    index read is inside the operand (as far as it can be proved).
  }];
  let arguments = (ins NN_Tensor:$input, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$steps);
  let results = (outs NN_Tensor:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NN_ConcatOp : NN_InferredOp<"concat"> {
  let summary = "joins tensors along an axis";
  let description = [{C1: at least one operand. C2: equal element types, ranks and other dimensions. C3: axis in [0, rank).}];
  let arguments = (ins Variadic<NN_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs NN_Tensor:$result);
}

def NN_PadOp : NN_InferredOp<"pad"> {
  let summary = "adds (or with negative amounts removes) elements at both ends of each dimension";
  let description = [{
    Negative amounts crop first. `value` is a scalar tensor for constant mode (default 0). reflect leaves
    the edge out, symmetric repeats it, wrap continues at the other end. C1: one low and one high for each
    dimension. C2: the result's sizes are not negative. C3: reflect adds less than the (cropped) size, symmetric and wrap at
    most the size. C4: value has the operand's element type and one element.
  }];
  let arguments = (ins NN_Tensor:$input, Optional<NN_Tensor>:$value, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DefaultValuedAttr<NN_PadModeAttr, "::ajour::nn::PadMode::constant">:$mode);
  let results = (outs NN_Tensor:$result);
}

def NN_GatherOp : NN_InferredOp<"gather"> {
  let summary = "takes slices along an axis by index";
  let description = [{
    Result shape: data[:axis] + indices[batch_dims:] + data[axis+1:]; the first batch_dims dimensions of
    both are the same. Negative indices count from the end; then they are clamped to the axis.
    C1: axis in [batch_dims, rank(data)). C2: equal batch dimensions. C3: integer indices.
  }];
  let arguments = (ins NN_Tensor:$data, NN_IntTensor:$indices, I64Attr:$axis,
                       DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs NN_Tensor:$result);
}

def NN_GatherElementsOp : NN_InferredOp<"gather_elements"> {
  let summary = "result[i] = data[i with i[axis] = indices[i]]";
  let description = [{Indices as in nn.gather. C1: equal ranks. C2: axis in [0, rank). C3: indices no larger than data elsewhere.}];
  let arguments = (ins NN_Tensor:$data, NN_IntTensor:$indices, I64Attr:$axis);
  let results = (outs NN_Tensor:$result);
}

def NN_GatherNDOp : NN_InferredOp<"gather_nd"> {
  let summary = "takes slices by index tuples (the last dimension of indices)";
  let description = [{Indices as in nn.gather. C1: static tuple length <= rank(data) - batch_dims. C2: equal batch dimensions.}];
  let arguments = (ins NN_Tensor:$data, NN_IntTensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs NN_Tensor:$result);
}

def NN_ScatterElementsOp : NN_InferredOp<"scatter_elements"> {
  let summary = "copy of data with updates[i] at i with i[axis] = indices[i], in row-major order of updates";
  let description = [{Indices as in nn.gather. C1: equal ranks, updates shaped as indices. C2: axis in [0, rank). C3: equal element types.}];
  let arguments = (ins NN_Tensor:$data, NN_IntTensor:$indices, NN_Tensor:$updates, I64Attr:$axis,
                       DefaultValuedAttr<NN_ScatterKindAttr, "::ajour::nn::ScatterKind::set">:$kind);
  let results = (outs NN_Tensor:$result);
}

def NN_ScatterNDOp : NN_InferredOp<"scatter_nd"> {
  let summary = "copy of data with slices of updates at index tuples";
  let description = [{Indices as in nn.gather. C1: static tuple length <= rank(data). C2: updates: indices[:-1] + data[tuple:]. C3: equal element types.}];
  let arguments = (ins NN_Tensor:$data, NN_IntTensor:$indices, NN_Tensor:$updates,
                       DefaultValuedAttr<NN_ScatterKindAttr, "::ajour::nn::ScatterKind::set">:$kind);
  let results = (outs NN_Tensor:$result);
}

def NN_ReverseSequenceOp : NN_InferredOp<"reverse_sequence"> {
  let summary = "reverses the first lengths[b] elements along time_axis for each b of batch_axis";
  let description = [{C1: axes differ and lie in [0, rank). C2: lengths is [dim(batch_axis)].}];
  let arguments = (ins NN_Tensor:$input, NN_IntTensor:$lengths, I64Attr:$batch_axis, I64Attr:$time_axis);
  let results = (outs NN_Tensor:$result);
}

def NN_IotaOp : NN_Op<"iota"> {
  let summary = "the index along an axis";
  let description = [{C1: axis in [0, rank).}];
  let arguments = (ins I64Attr:$axis);
  let results = (outs NN_Tensor:$result);
  let hasVerifier = 1;
}
