//===- NNAttention.td - attention ------------------------------------------===//

def NN_AttentionOp : NN_InferredOp<"attention", [AttrSizedOperandSegments]> {
  let summary = "attention: values weighted by the softmax of how queries and keys agree";
  let description = [{
    query [..., T, H, D], key [..., S, K, D], value [..., S, K, E], leading dimensions equal; result [..., T, H, E]. H is a multiple of K:
    query head h meets key and value head h / (H / K) (grouped-query attention). For each token t and head h

      score(j) = cap(scale <query[t, h], key[j]>) + slopes[h] (j - positions[t]) + mask[..., h, t, j]
      weight(j) = exp(score(j)) / (sum over attended j of exp(score(j)) + exp(sinks[h]))
      result[t, h] = sum over attended j of weight(j) value[j]

    with exponentials relative to the largest score. cap(x) is soft_cap tanh(x / soft_cap) when soft_cap is not 0, otherwise x.
    With positions [T], row j of key and value is position j, and token t attends to j <= positions[t], and with window > 0 also only to
    j > positions[t] - window; without positions to all rows. Rows that no token attends to are not read; those that some tokens attend to
    must be finite, or the others may become NaN. Where nothing is attended to, or every score is -infinity, the result is 0. slopes [H] (ALiBi), mask (broadcast to
    [..., H, T, S]; NaN makes the result NaN) and sinks [H] are optional.

    Key and value are each f32, f16, i8 or ui8. i8 stands for element * scale, ui8 for pairs of 4-bit numbers: byte i of a head holds element i
    in its low half and element i + D / 2 in its high half, each standing for (number - 8) * scale; the last dimension then is
    D / 2 (E / 2). key_scales and value_scales [..., S, K] are f32. Sums are taken in at least f32.
    C1: shapes as above. C2: H a multiple of K. C3: query, mask, slopes, sinks and scales are f32. C4: key and value types as above, with scales
    for i8 and ui8 only. C5: positions is i32 or i64 [T]. C6: window and slopes need positions; window and soft_cap are not negative.
  }];
  let arguments = (ins NN_Tensor:$query, NN_Tensor:$key, NN_Tensor:$value, Optional<NN_IntTensor>:$positions,
                       Optional<NN_FloatTensor>:$mask, Optional<NN_FloatTensor>:$slopes, Optional<NN_FloatTensor>:$sinks,
                       Optional<NN_FloatTensor>:$key_scales, Optional<NN_FloatTensor>:$value_scales, F32Attr:$scale,
                       DefaultValuedAttr<F32Attr, "0.0f">:$soft_cap, DefaultValuedAttr<I64Attr, "0">:$window);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`positions` $positions^)? (`mask` $mask^)? (`slopes` $slopes^)? (`sinks` $sinks^)?
    (`key_scales` $key_scales^)? (`value_scales` $value_scales^)? attr-dict `:` functional-type(operands, results)
  }];
}
