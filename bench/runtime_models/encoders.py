"""Encoders: BERT-base, ViT-B/16, the encoder of Whisper-base, a transformer block of Stable Diffusion 1.5."""

import numpy as np
from onnx import TensorProto

from .graph import Graph, self_attention

LAYERS = 2


def _pre_norm_layer(graph, x, width, heads):
    x = graph.node("Add", x, self_attention(graph, graph.layer_norm(x, width), width, heads))
    hidden = graph.gelu(graph.linear(graph.layer_norm(x, width), width, 4 * width))
    return graph.node("Add", x, graph.linear(hidden, 4 * width, width))


def _post_norm_layer(graph, x, width, heads, mask):
    x = graph.layer_norm(graph.node("Add", self_attention(graph, x, width, heads, mask), x), width)
    hidden = graph.gelu(graph.linear(x, width, 4 * width))
    return graph.layer_norm(graph.node("Add", graph.linear(hidden, 4 * width, width), x), width)


def _padding_mask(graph, mask):
    """(1 - mask) * lowest, (B, 1, 1, S)."""
    wide = graph.node("Unsqueeze", graph.node("Unsqueeze", mask, graph.ints(1)), graph.ints(2))
    wide = graph.node("Cast", wide, to=TensorProto.FLOAT)
    return graph.node("Mul", graph.node("Sub", graph.floats(1.0), wide), graph.floats(float(np.finfo(np.float32).min)))


def bert(path, spelling="eager"):
    graph, width, heads = Graph(spelling), 768, 12
    ids = graph.input("input_ids", TensorProto.INT64, "batch", "seq")
    mask = _padding_mask(graph, graph.input("attention_mask", TensorProto.INT64, "batch", "seq"))
    x = graph.node("Gather", graph.weight(1000, width), ids)
    positions = graph.node("Slice", graph.weight(512, width), graph.ints(0), graph.size(ids, 1), graph.ints(0))
    x = graph.layer_norm(graph.node("Add", x, positions), width)
    for _ in range(LAYERS):
        x = _post_norm_layer(graph, x, width, heads, mask)
    graph.output("last_hidden_state", x, "batch", "seq", width)
    graph.save(path)


def vit(path, spelling="eager"):
    graph, width, heads = Graph(spelling), 768, 12
    pixels = graph.input("pixel_values", TensorProto.FLOAT, "batch", 3, 224, 224)
    patches = graph.node("Conv", pixels, graph.weight(width, 3, 16, 16), kernel_shape=[16, 16], strides=[16, 16])
    x = graph.node("Transpose", graph.node("Reshape", patches, graph.ints(0, width, 196)), perm=[0, 2, 1])
    token_shape = graph.node("Concat", graph.size(pixels, 0), graph.ints(1, width), axis=0)
    x = graph.node("Concat", graph.node("Expand", graph.weight(1, 1, width), token_shape), x, axis=1)
    x = graph.node("Add", x, graph.weight(1, 197, width))
    for _ in range(LAYERS):
        x = _pre_norm_layer(graph, x, width, heads)
    graph.output("last_hidden_state", graph.layer_norm(x, width), "batch", 197, width)
    graph.save(path)


def whisper(path, spelling="eager"):
    graph, width, heads = Graph(spelling), 512, 8
    x = graph.input("input_features", TensorProto.FLOAT, "batch", 80, 3000)
    for channels, stride in ((80, 1), (width, 2)):
        x = graph.gelu(graph.node("Conv", x, graph.weight(width, channels, 3), kernel_shape=[3], pads=[1, 1], strides=[stride]))
    x = graph.node("Add", graph.node("Transpose", x, perm=[0, 2, 1]), graph.weight(1500, width))
    for _ in range(LAYERS):
        x = _pre_norm_layer(graph, x, width, heads)
    graph.output("last_hidden_state", graph.layer_norm(x, width), "batch", 1500, width)
    graph.save(path)


def diffusion_block(path, spelling="eager"):
    """4096 places of 320 channels, 8 heads of 40; attention to themselves and to 77 tokens of text; GEGLU."""
    graph, width, heads = Graph(spelling), 320, 8
    x = graph.input("hidden_states", TensorProto.FLOAT, "batch", 4096, width)
    text = graph.input("encoder_hidden_states", TensorProto.FLOAT, "batch", 77, 768)
    x = graph.node("Add", self_attention(graph, graph.layer_norm(x, width), width, heads, bias=False), x)
    x = graph.node("Add", self_attention(graph, graph.layer_norm(x, width), width, heads, None, text, 768, bias=False), x)
    norm = graph.layer_norm(x, width)
    gated = graph.node("Mul", graph.linear(norm, width, 4 * width), graph.gelu(graph.linear(norm, width, 4 * width)))
    graph.output("out", graph.node("Add", graph.linear(gated, 4 * width, width), x), "batch", 4096, width)
    graph.save(path)
