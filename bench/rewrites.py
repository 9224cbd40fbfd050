#!/usr/bin/env python3
"""CPU time in ONNX Runtime of what each built-in rewrite replaces, against that of the operator which it writes, in turns, on one thread.

    bench/rewrites.py [NAME...]

A ratio above 1: the operator is faster. `swish` is not offered as a rewrite; its figures say why. Needs onnx, onnxruntime and numpy.
"""
import statistics
import sys
import time

import numpy as np
import onnx.parser
import onnxruntime

TURNS, ROUNDS = 15, 3

# name: (operator's version and inputs, constants, decomposition, operator); x is (batch, tokens, width) or (batch, heads, tokens, width).
WEIGHT = "float[W] w"
NORM = ("float two = {2}, float eps = {1e-6}, int64[1] last = {-1}", "square = Pow (X, two) mean = ReduceMean (square, last) sum = Add (mean, eps) root = Sqrt (sum) ")
REWRITES = {
    "rms-norm (Reciprocal)": (WEIGHT, NORM[0], NORM[1].replace("X", "x") + "inverse = Reciprocal (root) normal = Mul (x, inverse) y = Mul (normal, w)",
                              "y = RMSNormalization <axis = -1, epsilon = 1e-6> (x, w)"),
    "rms-norm (Div)": (WEIGHT, NORM[0], NORM[1].replace("X", "x") + "normal = Div (x, root) y = Mul (normal, w)",
                       "y = RMSNormalization <axis = -1, epsilon = 1e-6> (x, w)"),
    "layer-norm": (WEIGHT + ", float[W] bias", NORM[0], "middle = ReduceMean (x, last) less = Sub (x, middle) " + NORM[1].replace("X", "less") +
                   "normal = Div (less, root) scaled = Mul (normal, w) y = Add (scaled, bias)",
                   "y = LayerNormalization <axis = -1, epsilon = 1e-6> (x, w, bias)"),
    "gelu (erf)": ("", "float root = {1.41421356}, float one = {1}, float half = {0.5}",
                   "scaled = Div (x, root) erf = Erf (scaled) more = Add (erf, one) product = Mul (x, more) y = Mul (product, half)", "y = Gelu (x)"),
    "gelu (tanh)": ("", "float three = {3}, float cubic = {0.044715}, float root = {0.79788456}, float one = {1}, float half = {0.5}",
                    "cube = Pow (x, three) part = Mul (cube, cubic) sum = Add (x, part) inner = Mul (sum, root) tanh = Tanh (inner) more = Add (tanh, one) "
                    "product = Mul (x, more) y = Mul (product, half)", 'y = Gelu <approximate = "tanh"> (x)'),
    "rotary": ("float[1,T,H] cos, float[1,T,H] sin", "int64[1] zero = {0}, int64[1] half = {H}, int64[1] end = {W}, int64[1] last = {-1}, int64[1] one = {1}",
               "cc = Concat <axis = -1> (cos, cos) ss = Concat <axis = -1> (sin, sin) c = Unsqueeze (cc, one) s = Unsqueeze (ss, one) "
               "x1 = Slice (x, zero, half, last) x2 = Slice (x, half, end, last) n = Neg (x2) turned = Concat <axis = -1> (n, x1) "
               "own = Mul (x, c) other = Mul (turned, s) y = Add (own, other)", "y = RotaryEmbedding (x, cos, sin)"),
    "swish": ("", "float one = {1}", "gate = Sigmoid (x) y = Mul (x, gate)", "y = Swish (x)"),
}
SHAPES = {"rotary": [(1, 32, 1, 64), (1, 32, 128, 64), (1, 32, 1024, 64), (1, 32, 128, 128)]}
OTHERS = [(1, 1, 2048), (1, 128, 2048), (1, 1024, 2048)]


def session(inputs, constants, body, shape):
    """BODY as a model that ONNX Runtime optimises as it does by default."""
    sizes = ",".join(map(str, shape))
    texts = [f'float[{sizes}] x{", " + inputs if inputs else ""}', f"float[{sizes}] y", constants, body]
    for letter, size in (("W", shape[-1]), ("H", shape[-1] // 2), ("T", shape[-2])):
        texts = [text.replace(f"[{letter}]", f"[{size}]").replace(f"{{{letter}}}", f"{{{size}}}").replace(f",{letter}", f",{size}") for text in texts]
    return session_of(*texts)


def session_of(inputs, outputs, constants, body):
    """One thread, ONNX Runtime's default optimisations."""
    text = f'<ir_version: 10, opset_import: ["": 24, "com.microsoft": 1]> g ({inputs}) => ({outputs}) <{constants}> {{ {body} }}'
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(onnx.parser.parse_model(text).SerializeToString(), options, providers=["CPUExecutionProvider"])


def seconds(run, count):
    """CPU seconds of a call."""
    start = time.process_time()
    for _ in range(count):
        run()
    return (time.process_time() - start) / count


def cpu_ratios(runs):
    """CPU time of the first of two RUNS divided by that of the second, in turns."""
    count = max(1, int(0.02 / max(seconds(run, ROUNDS) for run in runs)))
    ratios = []
    for _ in range(TURNS):
        before, after = (seconds(run, count) for run in runs)
        ratios.append(before / after)
    return ratios


def measure(name, shape):
    """Lower quartile, median and upper quartile of the ratios."""
    inputs, constants, apart, operator = REWRITES[name]
    sessions = [session(inputs, constants, body, shape) for body in (apart, operator)]
    generator = np.random.default_rng(1)
    feeds = {i.name: generator.standard_normal(i.shape).astype(np.float32) for i in sessions[0].get_inputs()}
    outputs = [one.run(None, feeds)[0] for one in sessions]
    np.testing.assert_allclose(*outputs, rtol=1e-3, atol=1e-4)
    return statistics.quantiles(cpu_ratios([lambda one=one: one.run(None, feeds) for one in sessions]), n=4)


def measured(wanted=()):
    """(name, shape, lower quartile, median, upper quartile) of each rewrite whose name begins with one of WANTED; of all if there is none."""
    for name in REWRITES:
        if not wanted or name.startswith(tuple(wanted)):
            for shape in SHAPES.get(name, OTHERS):
                yield (name, "x".join(map(str, shape)), *measure(name, shape))


def markdown_table(rows):
    lines = ["| rewrite | shape of x | ratio | middle half |", "| --- | --- | --- | --- |"]
    return "\n".join(lines + [f"| {name} | {shape} | {middle:.2f} | {low:.2f} to {high:.2f} |" for name, shape, low, middle, high in rows])


if __name__ == "__main__":
    print(f"{'':24}{'shape':>16}   ratio   middle half")
    for name, shape, low, middle, high in measured(sys.argv[1:]):
        print(f"{name:24}{shape:>16}{middle:8.2f}   {low:.2f} to {high:.2f}", flush=True)
