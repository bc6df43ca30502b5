//===- NNRecurrent.td - recurrences over time ------------------------------===//
//
// A recurrent layer is a matrix product of all time steps (nn.matmul with the input's weights and bias), followed by
// one of these operations, which go through time. They work in one direction; a layer of two directions is two
// of them. Time is the first dimension.
//
//===----------------------------------------------------------------------===//

class NN_RecurrentOp<string mnemonic, dag inputs, dag attributes> : NN_InferredOp<mnemonic, [AttrSizedOperandSegments]> {
  let arguments = !con(inputs, attributes, (ins NN_CellActivations:$activations,
                       DefaultValuedAttr<DenseF32ArrayAttr, "{}">:$alphas,
                       DefaultValuedAttr<DenseF32ArrayAttr, "{}">:$betas, DefaultValuedAttr<F32Attr, "0.0f">:$clip,
                       UnitAttr:$reverse));
}

def NN_RnnOp : NN_RecurrentOp<"rnn",
    (ins NN_FloatTensor:$input, NN_FloatTensor:$recurrent, Optional<NN_FloatTensor>:$initial,
         Optional<NN_IntTensor>:$lengths), (ins)> {
  let summary = "recurrence h = f(x + R h) over the first dimension";
  let description = [{
    input [T, B, H] is what the layer's input contributes, recurrent is R [H, H], initial [B, H] the state before the
    first step (zeros without). Results: the states after all steps [T, B, H], and the last one [B, H].
    f is sigmoid, tanh, relu, affine (alpha x + beta), leaky_relu (alpha), thresholded_relu (alpha),
    scaled_tanh (alpha tanh(beta x)), hard_sigmoid (alpha, beta), elu (alpha), softsign, softplus, or relu6. A clip
    other than 0 limits f's operand to [-clip, clip]. With `reverse` the steps are taken from the last to the first,
    each result at its own place. `lengths` [B] ends a row early: at later steps its state stays and its
    result is 0; `reverse` then begins at the row's last step. Sums are taken and functions computed in at least f32,
    the state is rounded to the element type.
    C1: ranks and shapes as above. C2: equal floating point element types. C3: one activation, and none or as many
    alphas and betas. C4: lengths is [B].
  }];
  let results = (outs NN_FloatTensor:$output, NN_FloatTensor:$final);
  let assemblyFormat = "$input `,` $recurrent (`initial` $initial^)? (`lengths` $lengths^)? attr-dict `:` functional-type(operands, results)";
}

def NN_GruOp : NN_RecurrentOp<"gru",
    (ins NN_FloatTensor:$input, NN_FloatTensor:$recurrent, Optional<NN_FloatTensor>:$candidate_bias,
         Optional<NN_FloatTensor>:$initial, Optional<NN_IntTensor>:$lengths), (ins UnitAttr:$linear_before_reset)> {
  let summary = "gated recurrent unit over the first dimension";
  let description = [{
    As nn.rnn, with input [T, B, 3H] and recurrent [3H, H] for z (update), r (reset) and n (candidate), in that order:
    z = f(x_z + R_z h), r = f(x_r + R_r h), n = g(x_n + R_n (r h) + b), or with linear_before_reset
    n = g(x_n + r (R_n h + b)); then h = (1 - z) n + z h. b is candidate_bias [H]. The clip limits the operands of f and g.
    C1: ranks and shapes. C2: equal floating point element types. C3: activations are f and g, with none or as many
    alphas and betas. C4: lengths is [B].
  }];
  let results = (outs NN_FloatTensor:$output, NN_FloatTensor:$final);
  let assemblyFormat = "$input `,` $recurrent (`candidate_bias` $candidate_bias^)? (`initial` $initial^)? (`lengths` $lengths^)? attr-dict `:` functional-type(operands, results)";
}

def NN_LstmOp : NN_RecurrentOp<"lstm",
    (ins NN_FloatTensor:$input, NN_FloatTensor:$recurrent, Optional<NN_FloatTensor>:$peephole,
         Optional<NN_FloatTensor>:$norm, Optional<NN_FloatTensor>:$norm_bias, Optional<NN_FloatTensor>:$projection,
         Optional<NN_FloatTensor>:$projection_bias, Optional<NN_FloatTensor>:$initial,
         Optional<NN_FloatTensor>:$initial_cell, Optional<NN_IntTensor>:$lengths),
    (ins UnitAttr:$input_forget, DefaultValuedAttr<F32Attr, "0.0f">:$cell_clip,
         DefaultValuedAttr<F32Attr, "0.0f">:$projection_clip)> {
  let summary = "long short-term memory over the first dimension";
  let description = [{
    As nn.rnn, with a state h [B, R] and a cell c [B, H]: input [T, B, 4H] and recurrent [4H, R] for the gates
    i (input), o (output), f (forget) and c (candidate), in that order.
    i = f(x_i + R_i h + P_i c), f = f(x_f + R_f h + P_f c), or with input_forget f = 1 - i;
    c' = f c + i g(x_c + R_c h), limited to [-cell_clip, cell_clip] unless that is 0;
    o = f(x_o + R_o h + P_o c'); m = o h(c'); h' = m, or with a projection [R, H] projection m + projection_bias [R], limited by
    projection_clip. peephole [3, H] holds P of i, o and f. With norm [4, H] each gate's sum s over the H units becomes
    (s - mean) / sqrt(variance + 1e-8) norm + norm_bias before its function. R is H without a projection. The clip
    limits the operands of f and g. Results: all h [T, B, R], the last h [B, R], the last c [B, H].
    C1: ranks and shapes. C2: equal floating point element types. C3: activations are f, g and h, with none or as many
    alphas and betas. C4: lengths is [B].
  }];
  let results = (outs NN_FloatTensor:$output, NN_FloatTensor:$final, NN_FloatTensor:$final_cell);
  let assemblyFormat = [{
    $input `,` $recurrent (`peephole` $peephole^)? (`norm` $norm^)? (`norm_bias` $norm_bias^)?
    (`projection` $projection^)? (`projection_bias` $projection_bias^)? (`initial` $initial^)?
    (`initial_cell` $initial_cell^)? (`lengths` $lengths^)? attr-dict `:` functional-type(operands, results)
  }];
}
