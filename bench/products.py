#!/usr/bin/env python3
"""CPU time in ONNX Runtime of one softmax whose result is multiplied with several V, against that of an Attention node for each, in turns, on
one thread.

    bench/products.py

A ratio below 1: the nodes are slower. `--target ort` leaves such sites (src/rewrite/faster_operators.cpp). Needs onnx, onnxruntime and numpy.
"""
import statistics

import numpy as np
from rewrites import cpu_ratios, session_of

# heads, queries and keys, features of a head of Q and K, features of a head of V
SHAPES = [(4, 256, 32, 12), (4, 512, 32, 12), (4, 1024, 32, 12), (8, 64, 64, 64), (8, 256, 64, 64), (8, 512, 64, 64), (8, 1024, 64, 64)]


def joined(format_of_one, products, between=" "):
    return between.join(format_of_one.format(i) for i in range(products))


def measure(shape, products, has_mask):
    heads, rows, size, width = shape
    inputs = f"float[1,{heads},{rows},{size}] q, float[1,{heads},{size},{rows}] kt, float[1,1,{rows},{rows}] mask, " + joined(
        f"float[1,{heads},{rows},{width}] v{{0}}", products, ", ")
    outputs = joined(f"float[1,{heads},{rows},{width}] y{{0}}", products, ", ")
    masked = "x = Add (z, mask)" if has_mask else "x = Identity (z)"
    softmax = f"z = MatMul (q, kt) {masked} p = Softmax <axis = -1> (x) " + joined("y{0} = MatMul (p, v{0})", products)
    given = "q, k, v{0}, mask" if has_mask else "q, k, v{0}"
    nodes = "k = Transpose <perm = [0, 1, 3, 2]> (kt) " + joined(f"y{{0}} = Attention <scale = 1.0> ({given})", products)
    before, after = session_of(inputs, outputs, "", softmax), session_of(inputs, outputs, "", nodes)
    generator = np.random.default_rng(1)
    sizes = {one.name: one.shape for one in before.get_inputs()}
    feeds = {name: generator.standard_normal(dims).astype(np.float32) / 4 for name, dims in sizes.items()}
    for one, other in zip(before.run(None, feeds), after.run(None, feeds)):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
    low, middle, high = statistics.quantiles(cpu_ratios([lambda: before.run(None, feeds), lambda: after.run(None, feeds)]), n=4)
    shown = "x".join(map(str, (heads, rows, rows, size, width)))
    print(f"{shown:>22}  {'mask' if has_mask else 'none':5}{products:8}{middle:8.2f}   {low:.2f} to {high:.2f}", flush=True)


if __name__ == "__main__":
    print(f"{'H x L x S x D x Dv':>22}  mask  products   ratio   middle half")
    for shape in SHAPES:
        for products in (1, 2, 3):
            for has_mask in (False, True):
                measure(shape, products, has_mask)
