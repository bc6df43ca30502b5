"""Weights of few bits as quantising programs store them: random integers, and the weight that they stand for."""

import math

import torch

GROUP = 16


def draw(m, out, columns, bits):
    """Integers [out, in], zero points and scales [out, groups]."""
    top = 2**bits
    integers = torch.randint(0, top, (out, columns), generator=m.random)
    zeros = torch.randint(1, top, (out, columns // GROUP), generator=m.random)
    spread = 5.0 / (top * math.sqrt(columns))
    scales = (torch.rand(out, columns // GROUP, generator=m.random) * spread + spread / 2).to(torch.float16)
    return integers, zeros, scales


def dequantize(integers, zeros, scales, groups):
    """`groups` [in] says which group an input is of."""
    return (integers - zeros[:, groups]).double() * scales.double()[:, groups]


def words(fields, bits, order=None):
    """The last dimension, packed from the lowest bits of 32-bit words on."""
    if 32 % bits:
        # A row of bits over several words.
        row = (fields[..., None] >> torch.arange(bits) & 1).flatten(-2)
        return words(row, 1)
    count = 32 // bits
    fields = fields.reshape(*fields.shape[:-1], -1, count)
    shifts = torch.tensor([bits * i for i in range(count)])
    packed = (fields[..., order or list(range(count))] << shifts).sum(-1)
    return torch.where(packed >= 2**31, packed - 2**32, packed).to(torch.int32)


def gptq(bits, act_order):
    def pack(m, name, out, columns):
        integers, zeros, scales = draw(m, out, columns, bits)
        groups = torch.arange(columns) // GROUP
        if act_order:
            groups = groups[torch.randperm(columns, generator=m.random)]
        m.weights[name + ".qweight"] = words(integers, bits).T
        m.weights[name + ".qzeros"] = words((zeros - 1).T, bits)
        m.weights[name + ".scales"] = scales.T
        m.weights[name + ".g_idx"] = groups.to(torch.int32)
        return dequantize(integers, zeros, scales, groups)

    return pack, {"quant_method": "gptq", "bits": bits, "group_size": GROUP, "desc_act": act_order, "sym": False}


def awq():
    def pack(m, name, out, columns):
        integers, zeros, scales = draw(m, out, columns, 4)
        order = [0, 2, 4, 6, 1, 3, 5, 7]
        m.weights[name + ".qweight"] = words(integers.T, 4, order)
        m.weights[name + ".qzeros"] = words(zeros.T, 4, order)
        m.weights[name + ".scales"] = scales.T
        return dequantize(integers, zeros, scales, torch.arange(columns) // GROUP)

    return pack, {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"}


def packed():
    def pack(m, name, out, columns):
        integers, zeros, scales = draw(m, out, columns, 4)
        zeros[:] = 8
        m.weights[name + ".weight_packed"] = words(integers, 4)
        m.weights[name + ".weight_scale"] = scales.to(torch.bfloat16)
        m.weights[name + ".weight_shape"] = torch.tensor([out, columns])
        return dequantize(integers, zeros, scales.to(torch.bfloat16), torch.arange(columns) // GROUP)

    weights = {"num_bits": 4, "type": "int", "symmetric": True, "group_size": GROUP, "strategy": "group"}
    return pack, {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}


def sparse24():
    """Floats of which two in each four are kept."""

    def pack(m, name, out, columns):
        values = (torch.randn(out, columns, generator=m.random) * 2 / math.sqrt(columns)).to(torch.bfloat16)
        keys = torch.rand(out, columns // 4, 4, generator=m.random)
        mask = (keys >= keys.sort(-1).values[..., 2:3]).reshape(out, columns)
        m.weights[name + ".compressed"] = values[mask].reshape(out, columns // 2)
        m.weights[name + ".bitmask"] = (mask.reshape(out, -1, 8) * torch.tensor([1 << i for i in range(8)])).sum(-1).to(torch.uint8)
        m.weights[name + ".shape"] = torch.tensor([out, columns])
        return values.double() * mask

    return pack, {"quant_method": "compressed-tensors", "format": "dense", "sparsity_config": {"format": "sparse-24-bitmask", "targets": ["Linear"]}}


FORMS = {"gptq": gptq(4, False), "gptq_act_order": gptq(4, True), "gptq_8": gptq(8, False), "gptq_3": gptq(3, False), "awq": awq(), "packed": packed(), "sparse24": sparse24()}
