"""Decoders, with a KV cache (decode) or without one (prefill): GPT-2, and a Llama of 32 heads on 8."""

import numpy as np
from onnx import TensorProto

from .graph import Graph, attention, merge_heads, split_heads

LAYERS = 2


class Decoder:
    """The inputs and outputs of a decoder, its positions, and its mask (B, 1, L, S)."""

    def __init__(self, kv_heads, head_size, with_past, spelling):
        self.graph, self.kv_heads, self.head_size, self.with_past = Graph(spelling), kv_heads, head_size, with_past
        graph, total = self.graph, "total" if with_past else "seq"
        self.ids = graph.input("input_ids", TensorProto.INT64, "batch", "seq")
        padding = graph.input("attention_mask", TensorProto.INT64, "batch", total)
        self.pasts = [[self._cache_input(layer, role) for role in ("key", "value")] for layer in range(LAYERS)] if with_past else []
        self.positions = self._positions()
        self.mask = self._mask(padding)

    def _cache_input(self, layer, role):
        shape = ("batch", self.kv_heads, "past", self.head_size)
        return self.graph.input(f"past_key_values.{layer}.{role}", TensorProto.FLOAT, *shape)

    def _range(self, begin, end):
        scalar = lambda x: self.graph.node("Squeeze", x, self.graph.ints(0))
        return self.graph.node("Range", scalar(begin), scalar(end), self.graph.constant(np.int64(1)))

    def _positions(self):
        """(L), from the end of the past on."""
        graph = self.graph
        self.past = graph.size(self.pasts[0][0], 2) if self.with_past else graph.ints(0)
        self.end = graph.node("Add", self.past, graph.size(self.ids, 1))
        return self._range(self.past, self.end)

    def _mask(self, padding):
        """0 where a key is neither later nor padding, else the lowest number."""
        graph = self.graph
        keys = self._range(graph.ints(0), self.end)
        causal = graph.node("LessOrEqual", keys, graph.node("Unsqueeze", self.positions, graph.ints(1)))
        kept = graph.node("Cast", graph.node("Unsqueeze", padding, graph.ints(1, 2)), to=TensorProto.BOOL)
        both = graph.node("And", graph.node("Unsqueeze", causal, graph.ints(0, 1)), kept)
        return graph.node("Where", both, graph.floats(0.0), graph.floats(float(np.finfo(np.float32).min)))

    def cached(self, layer, role, new):
        """NEW (B, H, L, D) behind the past; it is the present, too."""
        index = ("key", "value").index(role)
        whole = self.graph.node("Concat", self.pasts[layer][index], new, axis=2) if self.with_past else new
        self.graph.output(f"present.{layer}.{role}", whole, "batch", self.kv_heads, "total" if self.with_past else "seq", self.head_size)
        return whole

    def finish(self, x, width, path):
        self.graph.output("logits", self.graph.linear(x, width, 1000, bias=False), "batch", "seq", 1000)
        self.graph.save(path)


def _gpt2_attention(made, layer, x, width, heads):
    graph, size = made.graph, width // heads
    qkv = graph.linear(x, width, 3 * width)
    q, k, v = (graph.node("Slice", qkv, graph.ints(n * width), graph.ints((n + 1) * width), graph.ints(2)) for n in range(3))
    q, k, v = (split_heads(graph, one, heads, size) for one in (q, k, v))
    k, v = made.cached(layer, "key", k), made.cached(layer, "value", v)
    return graph.linear(merge_heads(graph, attention(graph, q, k, v, size, made.mask), width), width, width)


def gpt2(path, with_past, spelling="eager"):
    width, heads = 768, 12
    made = Decoder(heads, width // heads, with_past, spelling)
    graph = made.graph
    x = graph.node("Add", graph.node("Gather", graph.weight(1000, width), made.ids),
                   graph.node("Gather", graph.weight(4096, width), made.positions))
    for layer in range(LAYERS):
        x = graph.node("Add", x, _gpt2_attention(made, layer, graph.layer_norm(x, width), width, heads))
        hidden = graph.gelu(graph.linear(graph.layer_norm(x, width), width, 4 * width))
        x = graph.node("Add", x, graph.linear(hidden, 4 * width, width))
    made.finish(graph.layer_norm(x, width), width, path)


def _rms_norm(graph, x, width):
    squares = graph.node("ReduceMean", graph.node("Pow", x, graph.floats(2.0)), graph.ints(-1))
    root = graph.node("Sqrt", graph.node("Add", squares, graph.floats(1e-5)))
    return graph.node("Mul", graph.constant(np.ones(width, np.float32)), graph.node("Div", x, root))


def _angles(made):
    """Cosines and sines (L, D) of the positions."""
    graph, half = made.graph, made.head_size // 2
    frequencies = graph.constant((10000.0 ** (-np.arange(half) / half)).astype(np.float32))
    column = graph.node("Unsqueeze", graph.node("Cast", made.positions, to=TensorProto.FLOAT), graph.ints(1))
    angles = graph.node("Mul", column, frequencies)
    both = graph.node("Concat", angles, angles, axis=-1)
    return graph.node("Cos", both), graph.node("Sin", both)


def _rotated(graph, x, half, angles):
    cos, sin = angles
    first = graph.node("Slice", x, graph.ints(0), graph.ints(half), graph.ints(3))
    second = graph.node("Slice", x, graph.ints(half), graph.ints(2**62), graph.ints(3))
    turned = graph.node("Concat", graph.node("Neg", second), first, axis=-1)
    return graph.node("Add", graph.node("Mul", x, cos), graph.node("Mul", turned, sin))


def _repeated(made, x, heads):
    """Heads of K or V, each for all the query heads that share it. Runtimes compute what nothing reads, too."""
    if made.graph.spelling == "none":
        return x
    graph, times = made.graph, heads // made.kv_heads
    shape = graph.node("Concat", graph.size(x, 0), graph.ints(made.kv_heads, times), made.end, graph.ints(made.head_size), axis=0)
    wide = graph.node("Expand", graph.node("Unsqueeze", x, graph.ints(2)), shape)
    return graph.node("Reshape", wide, graph.ints(0, heads, -1, made.head_size))


def _llama_attention(made, layer, x, width, heads, angles):
    graph, size, kv_width = made.graph, made.head_size, made.kv_heads * made.head_size
    q = _rotated(graph, split_heads(graph, graph.linear(x, width, width, False), heads, size), size // 2, angles)
    k, v = (split_heads(graph, graph.linear(x, width, kv_width, False), made.kv_heads, size) for _ in range(2))
    k, v = made.cached(layer, "key", _rotated(graph, k, size // 2, angles)), made.cached(layer, "value", v)
    k, v = _repeated(made, k, heads), _repeated(made, v, heads)
    return graph.linear(merge_heads(graph, attention(graph, q, k, v, size, made.mask), width), width, width, False)


def _swiglu(graph, x, width, hidden):
    gate = graph.linear(x, width, hidden, False)
    silu = graph.node("Mul", gate, graph.node("Sigmoid", gate))
    return graph.linear(graph.node("Mul", silu, graph.linear(x, width, hidden, False)), hidden, width, False)


def llama(path, with_past, spelling="eager"):
    width, heads = 2048, 32
    made = Decoder(8, width // heads, with_past, spelling)
    graph, angles = made.graph, _angles(made)
    x = graph.node("Gather", graph.weight(1000, width), made.ids)
    for layer in range(LAYERS):
        x = graph.node("Add", x, _llama_attention(made, layer, _rms_norm(graph, x, width), width, heads, angles))
        x = graph.node("Add", x, _swiglu(graph, _rms_norm(graph, x, width), width, 5632))
    made.finish(_rms_norm(graph, x, width), width, path)
