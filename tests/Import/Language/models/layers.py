"""Parts of language models, written from their publications in PyTorch's float64, and weights that come into being when asked for."""

import math

import torch


class Model:
    """Random weights by name (float32, as files hold them), made when a forward pass first asks for them."""

    def __init__(self, seed, pack=None):
        """`pack` makes the linear layers within layers quantised: pack(model, name, out, in) stores their tensors and returns the weight."""
        self.random = torch.Generator().manual_seed(seed)
        self.weights = {}
        self.pack = pack
        self.packed = {}

    def get(self, name, shape, spread, centre=0.0):
        if name not in self.weights:
            values = torch.randn(*shape, generator=self.random) * spread + centre
            self.weights[name] = values.to(torch.float32)
        return self.weights[name].to(torch.float64)

    def matrix(self, name, rows, columns):
        return self.get(name, (rows, columns), 1.5 / math.sqrt(columns))

    def linear(self, x, name, out, bias=False):
        if self.pack and ".layers." in name:
            if name not in self.packed:
                self.packed[name] = self.pack(self, name, out, x.shape[-1]).to(torch.float64)
            weight = self.packed[name]
        else:
            weight = self.matrix(name + ".weight", out, x.shape[-1])
        y = x @ weight.T
        return y + self.get(name + ".bias", (out,), 0.3) if bias else y

    def conv1d(self, x, name, out):
        """GPT-2's: the weight is [in, out]."""
        return x @ self.matrix(name + ".weight", x.shape[-1], out) + self.get(name + ".bias", (out,), 0.3)

    def rms(self, x, name, epsilon, offset=0.0):
        scale = self.get(name + ".weight", (x.shape[-1],), 0.3, 1.0 - offset) + offset
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * scale

    def layer_norm(self, x, name, epsilon):
        scale = self.get(name + ".weight", (x.shape[-1],), 0.3, 1.0)
        return standardize(x, epsilon) * scale + self.get(name + ".bias", (x.shape[-1],), 0.3)

    def gated(self, x, prefix, width, activation, names=("gate_proj", "up_proj", "down_proj"), bias=False):
        gate, up, down = names
        middle = activation(self.linear(x, prefix + gate, width, bias)) * self.linear(x, prefix + up, width, bias)
        return self.linear(middle, prefix + down, x.shape[-1], bias)


def standardize(x, epsilon):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + epsilon)


def silu(x):
    return x / (1 + torch.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def heads(x, size):
    """[tokens, heads * size] as [tokens, heads, size]."""
    return x.reshape(x.shape[0], -1, size)


def frequencies(size, base):
    return base ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)


def rotate(x, turns, magnitude=1.0):
    """Turns dimension i of each head with i + pairs by position times turns[i]; dimensions behind stay."""
    pairs = len(turns)
    angles = torch.arange(x.shape[0], dtype=torch.float64)[:, None] * turns[None, :]
    cos, sin = magnitude * torch.cos(angles)[:, None, :], magnitude * torch.sin(angles)[:, None, :]
    a, b = x[..., :pairs], x[..., pairs : 2 * pairs]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, x[..., 2 * pairs :]], -1)


def attend(q, k, v, scale=None, window=0, cap=0.0, slopes=None):
    """q [tokens, heads, size]; k, v [tokens, fewer heads, size]; each token sees itself and those before it within the window."""
    tokens, count, size = q.shape
    shared = count // k.shape[1]
    place = torch.arange(tokens)
    distance = place[:, None] - place[None, :]
    hidden = (distance < 0) | ((distance >= window) if window else torch.zeros_like(distance, dtype=torch.bool))
    result = []
    for head in range(count):
        scores = q[:, head] @ k[:, head // shared].T * (scale or 1 / math.sqrt(size))
        if slopes:
            scores = scores - slopes[head] * distance
        if cap:
            scores = cap * torch.tanh(scores / cap)
        result.append(torch.softmax(scores.masked_fill(hidden, -math.inf), -1) @ v[:, head // shared])
    return torch.cat(result, -1)


def mixture(m, x, router, expert, count, chosen, normalize):
    """Each token's best experts, weighted by their shares; expert(i, rows) gives what expert i makes of rows."""
    shares = torch.softmax(m.linear(x, router, count), -1)
    rows = []
    for t in range(x.shape[0]):
        best = torch.topk(shares[t], chosen)
        weight = best.values / best.values.sum() if normalize else best.values
        rows.append(sum(weight[i] * expert(int(best.indices[i]), x[t : t + 1])[0] for i in range(chosen)))
    every = [expert(i, x[:1]) for i in range(count)]  # all weights exist, chosen or not
    assert len(every) == count
    return torch.stack(rows)


def llama3_turns(turns, factor, low, high, original):
    result = []
    for f in turns.tolist():
        wave = 2 * math.pi / f
        if wave < original / high:
            result.append(f)
        elif wave > original / low:
            result.append(f / factor)
        else:
            smooth = (original / wave - low) / (high - low)
            result.append((1 - smooth) * f / factor + smooth * f)
    return torch.tensor(result, dtype=torch.float64)


def yarn_turns(size, base, factor, original, fast=32, slow=1):
    """Frequencies and the magnitude of cosines and sines."""
    turns = frequencies(size, base)

    def pair(count):
        return size * math.log(original / (count * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(math.floor(pair(fast)), 0), min(math.ceil(pair(slow)), size - 1)
    ramp = torch.clamp((torch.arange(size // 2, dtype=torch.float64) - low) / max(high - low, 0.001), 0, 1)
    return turns / factor * ramp + turns * (1 - ramp), 0.1 * math.log(factor) + 1
