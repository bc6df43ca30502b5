//===- NNStateSpace.td - what state-space models are made of ---------------===//
//
// Both operations take any number of tokens and carry on where their initial state left off, so that a text may be given in
// pieces. Tokens are the first dimension, channels the last.
//
//===----------------------------------------------------------------------===//

def NN_CausalConvOp : NN_InferredOp<"causal_conv", [AttrSizedOperandSegments]> {
  let summary = "convolution of each channel over the tokens so far";
  let description = [{
    input [T, C], filter [K, C], bias [C], initial [K - 1, C]: the input's rows of the K - 1 tokens before (zeros without). With s the
    rows of initial followed by those of input, output[t, c] = bias[c] + sum over k of filter[k, c] s[t + k, c], so that filter[K - 1]
    meets the newest row; with `silu` x / (1 + exp(-x)) of that. Results: output [T, C], and final [K - 1, C], the last
    rows of s. Sums are taken in at least f32.
    C1: ranks and shapes as above; C and K known, K at least 2. C2: equal floating point element types.
  }];
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$filter, Optional<NN_FloatTensor>:$bias,
                       Optional<NN_FloatTensor>:$initial, UnitAttr:$silu);
  let results = (outs NN_FloatTensor:$output, NN_FloatTensor:$final);
  let assemblyFormat = "$input `,` $filter (`bias` $bias^)? (`initial` $initial^)? attr-dict `:` functional-type(operands, results)";
}

def NN_SelectiveScanOp : NN_InferredOp<"selective_scan", [AttrSizedOperandSegments]> {
  let summary = "recurrence of a state-space model whose step, input and output depend on the token";
  let description = [{
    x [T, H, P]: tokens, heads, channels of a head; delta [T, H]; a [N, H], or [1, H] where all of a head's N states decay alike;
    b and c [T, G, N]: G groups, head h takes group h / (H / G). The state h [N, H, P] begins as initial (zeros without). For each token t

      d = delta[t, h] + delta_bias[h], with `softplus` log(1 + exp(d)) of that, limited to [delta_min, delta_max]
      h[n, h, p] = exp(d a[n, h]) h[n, h, p] + d b[t, g, n] x[t, h, p]
      y[t, h, p] = (sum over n of c[t, g, n] h[n, h, p] + skip[h] x[t, h, p]) silu(gate[t, h, p])

    delta_bias [H], skip [H] and gate [T, H, P] are optional. Results: y [T, H, P], and final [N, H, P], the state after all tokens. Computed in at
    least f32. With P = 1 this is the scan of Mamba (Gu and Dao, 2023), with a [1, H] that of Mamba-2 (Dao and Gu, 2024).
    C1: ranks and shapes as above; N, H, P known, H a multiple of G. C2: equal floating point element types.
    C3: delta_min at most delta_max, neither NaN.
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$delta, NN_FloatTensor:$a, NN_FloatTensor:$b, NN_FloatTensor:$c,
                       Optional<NN_FloatTensor>:$delta_bias, Optional<NN_FloatTensor>:$skip, Optional<NN_FloatTensor>:$gate,
                       Optional<NN_FloatTensor>:$initial, UnitAttr:$softplus,
                       DefaultValuedAttr<F32Attr, "-std::numeric_limits<float>::infinity()">:$delta_min,
                       DefaultValuedAttr<F32Attr, "std::numeric_limits<float>::infinity()">:$delta_max);
  let results = (outs NN_FloatTensor:$y, NN_FloatTensor:$final);
  let assemblyFormat = [{
    $x `,` $delta `,` $a `,` $b `,` $c (`delta_bias` $delta_bias^)? (`skip` $skip^)? (`gate` $gate^)? (`initial` $initial^)?
    attr-dict `:` functional-type(operands, results)
  }];
}
