#!/usr/bin/env python3
"""Judges the opset raise with ONNX Runtime.

    tests/opset/judge.py [--bin build/attn-opt] [--sweep] [--optimize] [-v] [CASE.onnxtxt | FOLDER ...]

Each case of testdata/cases/opset is a small attention beside an operator that ONNX changed. attn-opt fuses the attention and
raises the rest; ONNX Runtime runs the model before and after on the same drawn inputs, and every output but that of the
attention must be equal to the last bit. --sweep gives each case every opset from 7 to 23 at which it is valid, so that one
case judges the operator at all its versions; --optimize lets ONNX Runtime rewrite both models first.

Needs onnx, onnxruntime and numpy. Status 1 if an output differs, or a model is raised or refused against its case.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnx.checker
import onnx.parser
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPSETS = range(7, 24)
SEEDS = 3
SIZES = {"n": 3, "m": 5}  # of symbols that FEED does not set; others are 2
# ONNX Runtime computes their later versions (LayerNormalization: of halves with a scale of floats) in another order:
# equal to the last digits only.
OTHER_KERNELS = {"AveragePool", "LayerNormalization"}


def header(text, key):
    return " ".join(re.findall(rf"^# {key}[ \t]+(.*)$", text, re.M))


def is_valid(model):
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def at_opset(model, opset):
    other = onnx.ModelProto()
    other.CopyFrom(model)
    other.opset_import[0].version = opset
    return other


def models_of(text, sweep):
    """The case's model, or one for each opset at which it is valid and means what it says."""
    model = onnx.parser.parse_model(text)
    own = model.opset_import[0].version
    if not sweep:
        return [model]
    return [one for opset in OPSETS if is_valid(one := at_opset(model, opset)) or opset == own]


def draw(info, fill, sizes, random):
    tensor = info.type.tensor_type
    dims = [d.dim_value if d.HasField("dim_value") else sizes.get(d.dim_param, 2) for d in tensor.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if fill.startswith("const"):
        return numpy.full(dims, float(fill[6:-1]), dtype)
    if fill.startswith("uniform"):
        low, high = map(float, fill[8:-1].split(","))
        if numpy.issubdtype(dtype, numpy.integer):
            return random.integers(int(low), int(high) + 1, dims).astype(dtype)
        return random.uniform(low, high, dims).astype(dtype)
    if dtype == bool or numpy.issubdtype(dtype, numpy.integer):
        return random.integers(0, 2, dims).astype(dtype)
    return random.standard_normal(dims).astype(dtype)


def feeds_of(model, text, seed):
    fills = dict(word.split("=", 1) for word in header(text, "FEED").split())
    sizes = SIZES | {name: int(fill) for name, fill in fills.items() if fill.isdigit()}
    random = numpy.random.default_rng(seed)
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [info for info in model.graph.input if info.name not in constants]
    return {info.name: draw(info, fills.get(info.name, "normal"), sizes, random) for info in inputs}


def session(path, optimize):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def is_close(old, new):
    return old.dtype == new.dtype and old.shape == new.shape and numpy.allclose(old, new, rtol=1e-5, atol=1e-6)


def is_equal(old, new):
    return old.dtype == new.dtype and old.shape == new.shape and old.tobytes() == new.tobytes()


def difference(names, before, after, same=is_equal):
    """The first output that is not the same, or None."""
    for name, old, new in zip(names, before, after):
        if not (is_close if name == "attention" else same)(old, new):
            return name
    return None


def refusal(report):
    """What the report says is in the way of the raise."""
    found = re.findall(r'"found": "((?:[^"\\]|\\.)*)"', json.dumps(report))
    return found[0] if found else "no site"


def judge(model, text, arguments, folder):
    """(outcome, detail): equal, close, differs, refused, not run by ONNX Runtime (before or after), or failed."""
    before, after, report = folder / "before.onnx", folder / "after.onnx", folder / "report.json"
    onnx.save(model, before)
    command = [arguments.bin, before, "-o", after, "-q", "--report", report]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        return "failed", run.stderr.strip()
    if onnx.load(after).opset_import[0].version == model.opset_import[0].version:
        return "refused", refusal(json.loads(report.read_text()))
    names = [output.name for output in model.graph.output]
    try:
        old = session(before, arguments.optimize)
        expected = [old.run(None, feeds_of(model, text, seed)) for seed in range(SEEDS)]
    except Exception as error:  # ONNX Runtime has an exception class of its own for each of its errors
        return "not run before", str(error).splitlines()[0]
    try:
        new = session(after, arguments.optimize)
        actual = [new.run(None, feeds_of(model, text, seed)) for seed in range(SEEDS)]
    except Exception as error:
        return "not run after", str(error).splitlines()[0]
    outcome = "equal"
    for seed, pair in enumerate(zip(expected, actual)):
        name = difference(names, *pair)
        if name is None:
            continue
        outcome = "close"
        if OTHER_KERNELS.isdisjoint(node.op_type for node in model.graph.node) or difference(names, *pair, is_close):
            at = names.index(name)
            return "differs", f"output {name}, seed {seed}:\n{pair[0][at]}\n{pair[1][at]}"
    return outcome, ""


def cases_of(paths):
    for path in paths:
        yield from sorted(path.rglob("*.onnxtxt")) if path.is_dir() else [path]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=pathlib.Path, default=[ROOT / "testdata/cases/opset"])
    parser.add_argument("--bin", default=ROOT / "build/attn-opt")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--optimize", action="store_true")
    parser.add_argument("-v", action="store_true", help="a line for each model")
    arguments = parser.parse_args()
    counts, bad = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        for path in cases_of(arguments.paths):
            text = path.read_text()
            may_refuse = "miss=opset.raise" in header(text, "EXPECT")
            for model in models_of(text, arguments.sweep):
                outcome, detail = judge(model, text, arguments, pathlib.Path(folder))
                counts[outcome] += 1
                wrong = outcome in ("differs", "failed", "not run after") or (outcome == "refused" and not may_refuse)
                bad += wrong
                if wrong or arguments.v:
                    print(f"{path.stem} opset {model.opset_import[0].version}: {outcome} {detail}")
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
