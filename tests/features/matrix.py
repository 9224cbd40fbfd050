"""All pairs and triples of the features that an attention may have: fused, verified, and right in ONNX Runtime.

    matrix.py ATTN_OPT

Each model is written with the features of one combination; what exclude each other, or have no meaning together, is left out. A
combination that cannot be read yet must at least be listed with a miss.
"""

import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

LAYOUTS = {"keys_first", "einsum", "merged"}
MASKS = ("softcap", "clamp", "factor_mask", "where_mask")
FEATURES = (*sorted(LAYOUTS), *MASKS, "sinks", "guard", "factor", "renormalised", "divided_behind")
EXCLUDED = [{"divided_behind", "sinks"}, {"divided_behind", "guard"}, {"divided_behind", "renormalised"}]
NOT_READ = {"keys_first", "divided_behind"}  # sums of exponentials along another axis than the last
SIZES = {"batch": 2, "heads": 3, "batch_heads": 6, "query": 5, "keys": 6}
WIDTH = 8


class Writer:
    """The model of a set of features, node by node."""

    def __init__(self, features):
        self.has = features.__contains__
        self.leading = ["batch_heads"] if self.has("merged") else ["batch", "heads"]
        self.rank = len(self.leading) + 2
        self.keys = -2 if self.has("keys_first") else -1
        self.inputs, self.nodes, self.constants = [], [], []

    def input(self, name, sizes, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, sizes))
        return name

    def constant(self, values, kind=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, kind), name))
        return name

    def axis(self, *numbers):
        return self.constant(numbers, np.int64)

    def node(self, op, *inputs, **attributes):
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def turned(self, value):
        axes = list(range(self.rank))
        return self.node("Transpose", value, perm=[*axes[:-2], axes[-1], axes[-2]])

    def mask(self, name):
        sides = ["keys", "query"] if self.has("keys_first") else ["query", "keys"]
        return self.input(name, [self.leading[0], *[1] * (self.rank - 3), *sides], TensorProto.BOOL)

    def product(self):
        if self.has("keys_first"):
            return self.node("MatMul", "k", self.turned("q"))
        if self.has("einsum"):
            return self.node("Einsum", "q", "k", equation="bhld,bhsd->bhls")
        return self.node("MatMul", "q", self.turned("k"))

    def scores(self):
        scores = self.node("Mul", self.product(), self.constant(0.35))
        if self.has("softcap"):
            cap = self.constant(5.0)
            scores = self.node("Mul", self.node("Tanh", self.node("Div", scores, cap)), cap)
        if self.has("clamp"):
            scores = self.node("Clip", scores, self.constant(-5e4), self.constant(5e4))
        if self.has("factor_mask"):
            kept = self.node("Cast", self.mask("m1"), to=TensorProto.FLOAT)
            fills = self.node("Mul", self.node("Sub", self.constant(1.0), kept), self.constant(-1e9))
            scores = self.node("Add", self.node("Mul", scores, kept), fills)
        if self.has("where_mask"):
            scores = self.node("Where", self.mask("m2"), scores, self.constant(-1e9))
        if self.has("sinks"):
            sides = [1, "query"] if self.has("keys_first") else ["query", 1]
            scores = self.node("Concat", scores, self.input("sinks", [*self.leading, *sides]), axis=self.keys)
        return scores

    def probabilities(self, scores):
        """And what the product with V is divided by, if it is."""
        if self.has("divided_behind"):
            weights = self.node("Exp", self.node("Sub", scores, self.node("ReduceMax", scores, self.axis(self.keys))))
            return weights, self.node("ReduceSum", weights, self.axis(self.keys))
        found = self.node("Softmax", scores, axis=self.keys)
        if self.has("sinks"):
            found = self.node("Slice", found, self.axis(0), self.axis(-1), self.axis(self.rank + self.keys))
        if self.has("guard"):
            found = self.node("Where", self.node("IsNaN", found), self.constant(0.0), found)
        if self.has("renormalised"):
            some = self.node("Mul", found, self.node("Cast", self.mask("m3"), to=TensorProto.FLOAT))
            found = self.node("Div", some, self.node("ReduceSum", some, self.axis(self.keys)))
        return found, None

    def model(self):
        for name, rows in (("q", "query"), ("k", "keys"), ("v", "keys")):
            self.input(name, [*self.leading, rows, WIDTH])
        weights, divisor = self.probabilities(self.scores())
        if self.has("factor"):
            weights = self.node("Mul", weights, self.constant(0.5))
        if self.has("keys_first"):
            made = self.node("MatMul", self.turned("v"), weights)
        elif self.has("einsum"):
            made = self.node("Einsum", weights, "v", equation="bhls,bhsd->bhld")
        else:
            made = self.node("MatMul", weights, "v")
        made = self.node("Div", made, divisor) if divisor else made
        self.nodes.append(helper.make_node("Identity", [made], ["y"]))
        output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * self.rank)
        graph = helper.make_graph(self.nodes, "features", self.inputs, [output], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def feed(session):
    """Inputs that leave every row a key."""
    random, arrays = np.random.default_rng(0), {}
    for given in session.get_inputs():
        sizes = [SIZES.get(size, size) for size in given.shape]
        arrays[given.name] = random.random(sizes) > 0.3 if "bool" in given.type else random.standard_normal(sizes).astype(np.float32)
        if "bool" in given.type:
            arrays[given.name][..., 0, :] = arrays[given.name][..., 0] = True
    return arrays


def run(model):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, feed(session))[0]


def judged(tool, features, folder):
    """What is not as it should be; empty if nothing is."""
    model = Writer(features).model()
    onnx.checker.check_model(model, full_check=True)
    before, after, report = folder / "before.onnx", folder / "after.onnx", folder / "report.json"
    onnx.save(model, before)
    subprocess.run([tool, before, "-o", after, "--report", report, "-q", "--no-config"], check=True)
    sites = json.loads(report.read_text())["sites"]
    fused = [site for site in sites if site["outcome"] == "fused"]
    if NOT_READ <= features and not fused:
        return "" if sites and sites[0]["miss"] else "neither fused nor listed"
    if len(fused) != 1 or fused[0]["verification"]["verdict"] != "verified":
        return "; ".join(f"{site['outcome']}: {site['miss']}" for site in sites) or "not listed"
    difference = np.abs(run(str(before)) - run(str(after))).max()
    return "" if difference < 1e-5 else f"off by {difference} in ONNX Runtime"


def combinations(size):
    for names in itertools.combinations(FEATURES, size):
        features = set(names)
        if len(LAYOUTS & features) < 2 and not any(excluded <= features for excluded in EXCLUDED):
            yield features


def main():
    tried, failed = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for size in (1, 2, 3):
            for features in combinations(size):
                tried += 1
                reason = judged(sys.argv[1], features, pathlib.Path(folder))
                if reason:
                    failed += 1
                    print(" + ".join(sorted(features)), "-", reason)
    print(f"{tried} combinations, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
