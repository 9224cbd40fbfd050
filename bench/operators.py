#!/usr/bin/env python3
"""CPU time in ONNX Runtime of Attention, against that of MultiHeadAttention and GroupQueryAttention of com.microsoft, in turns, on one thread.

    bench/operators.py

A ratio above 1: the other operator is faster. `--target ort` writes it where all of a class are (src/rewrite/faster_operators.cpp). Needs onnx,
onnxruntime and numpy.
"""
import statistics

import numpy as np
from rewrites import cpu_ratios, session_of

# batch, heads, heads of K and V, queries, keys, features of a head
SHAPES = {
    "no mask": [(1, 12, 12, 197, 197, 64), (1, 12, 12, 512, 512, 64), (1, 8, 8, 4096, 77, 40), (1, 8, 8, 1024, 1024, 40), (1, 16, 16, 1024, 1024, 64),
                (1, 8, 8, 1500, 1500, 64), (1, 8, 8, 2048, 2048, 40), (1, 8, 8, 4096, 4096, 40), (2, 8, 8, 4096, 4096, 40)],
    "causal": [(1, 12, 12, 512, 512, 64), (1, 12, 12, 1024, 1024, 64), (1, 12, 12, 2048, 2048, 64), (1, 32, 8, 512, 512, 64), (1, 32, 8, 1024, 1024, 64),
               (1, 32, 8, 2048, 2048, 64), (1, 32, 4, 4096, 4096, 64)],
}


def bodies(shape, is_causal):
    """By operator: constants and the node."""
    batch, heads, kv_heads, queries, keys, _ = shape
    yield "Attention", "", f"y = Attention <q_num_heads = {heads}, kv_num_heads = {kv_heads}, is_causal = {is_causal}> (q, k, v)"
    if heads == kv_heads:
        yield "MultiHeadAttention", "", f"y = com.microsoft.MultiHeadAttention <num_heads = {heads}, unidirectional = {is_causal}> (q, k, v)"
    if is_causal and queries == keys:
        counts = ",".join([str(keys - 1)] * batch)
        yield ("GroupQueryAttention", f"int32[{batch}] last = {{{counts}}}, int32 total = {{{keys}}}",
               f"y = com.microsoft.GroupQueryAttention <num_heads = {heads}, kv_num_heads = {kv_heads}> (q, k, v, , , last, total)")


def measure(mask, shape):
    batch, heads, kv_heads, queries, keys, size = shape
    dims = {"q": (batch, queries, heads * size), "k": (batch, keys, kv_heads * size), "v": (batch, keys, kv_heads * size)}
    inputs = ", ".join(f"float[{','.join(map(str, d))}] {name}" for name, d in dims.items())
    made = {name: session_of(inputs, f"float[{batch},{queries},{heads * size}] y", constants, node)
            for name, constants, node in bodies(shape, int(mask == "causal"))}
    generator = np.random.default_rng(1)
    feeds = {name: generator.standard_normal(d).astype(np.float32) for name, d in dims.items()}
    reference, *others = made
    for other in others:
        np.testing.assert_allclose(made[other].run(None, feeds)[0], made[reference].run(None, feeds)[0], rtol=1e-3, atol=1e-4)
        low, middle, high = statistics.quantiles(cpu_ratios([lambda one=made[name]: one.run(None, feeds) for name in (reference, other)]), n=4)
        print(f"{mask:10}{'x'.join(map(str, shape)):>24}  {other:20}{middle:8.2f}   {low:.2f} to {high:.2f}", flush=True)


if __name__ == "__main__":
    print(f"{'':10}{'B x H x Hkv x L x S x D':>24}  {'':20}   ratio   middle half")
    for mask, shapes in SHAPES.items():
        for shape in shapes:
            measure(mask, shape)
