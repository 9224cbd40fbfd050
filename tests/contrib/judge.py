"""Drawn nodes of com.microsoft against ONNX Runtime: by attn-opt's kernels, and fused.

    python tests/contrib/judge.py --bin build/attn-opt [--count 60] [--only MultiHeadAttention] [--write testdata/contrib]

Each drawn node is run by ONNX Runtime. attn-opt runs it with its own kernel; fuses it; runs what it made; and ONNX Runtime
runs that too. All must give what ONNX Runtime gave. --write keeps the models of float32 with inputs and outputs for ctest.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import group_query_attention
import multi_head_attention
import projected_attention
import quantized_attention
from node_model import run

OPERATORS = {"MultiHeadAttention": multi_head_attention, "GroupQueryAttention": group_query_attention,
             "Attention": projected_attention, "QAttention": quantized_attention}
TOLERANCE = {"float32": 1e-5, "float16": 1e-2}


def difference(one, other):
    worst = 0.0
    for name, expected in one.items():
        if expected.shape != other[name].shape:
            return np.inf
        expected, got = expected.astype(np.float64), other[name].astype(np.float64)
        if not np.array_equal(np.isfinite(expected), np.isfinite(got)):
            return np.inf
        gap = np.abs(expected - got) / np.maximum(1, np.abs(expected))
        worst = max(worst, float(np.max(gap[np.isfinite(gap)], initial=0)))
    return worst


class Judge:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, pathlib.Path(folder)
        self.counts = collections.Counter()
        self.worst = collections.defaultdict(float)
        self.problems = []

    def tool(self, *arguments):
        return subprocess.run([self.binary, *map(str, arguments)], capture_output=True, text=True, check=False)

    def outputs(self, model, feeds):
        np.savez(self.folder / "in.npz", **feeds)
        result = self.tool("run", model, "--inputs", self.folder / "in.npz", "--outputs", self.folder / "out.npz")
        if result.returncode:
            raise RuntimeError(result.stdout + result.stderr)
        return dict(np.load(self.folder / "out.npz"))

    def note(self, what, model, outputs, expected):
        gap = difference(expected, outputs)
        self.worst[what] = max(self.worst[what], gap)
        self.counts[what] += gap <= TOLERANCE[model.dtype.name]
        if gap > TOLERANCE[model.dtype.name]:
            self.problems.append(f"{model.operator} {model.name} {model.dtype}: {what}: off by {gap:.3g}")

    def judge(self, model, is_symbolic):
        """True if the node was fused and everything agrees."""
        path, fused = self.folder / "model.onnx", self.folder / "fused.onnx"
        try:
            expected = model.expected()
        except Exception as error:  # ONNX Runtime's own types of errors
            self.problems.append(f"{model.operator} {model.name}: ONNX Runtime does not run it: {error}")
            return False
        path.write_bytes(model.proto(is_symbolic).SerializeToString())
        before = len(self.problems)
        self.counts["drawn"] += 1
        try:
            self.note("kernel", model, self.outputs(path, model.run_inputs()), expected)
            report = self.folder / "report.json"
            result = self.tool(path, "-o", fused, "--require-fused", "1", "--report", report)
            if result.returncode:
                what = f"{result.stdout}{result.stderr}"
                self.problems.append(f"{model.operator} {model.name} {model.dtype}: not fused: {what.splitlines()[-1]}")
                return False
            self.counts["fused"] += 1
            sites = json.loads(report.read_text())["sites"]
            self.counts["verified"] += all(site["verification"]["verdict"] == "verified" for site in sites)
            self.note("fused, here", model, self.outputs(fused, model.run_inputs()), expected)
            self.note("fused in ONNX Runtime", model, run(fused.read_bytes(), model.run_inputs()), expected)
        except Exception as error:  # also those of ONNX Runtime
            self.problems.append(f"{model.operator} {model.name}: {error}")
        return len(self.problems) == before


def keep(model, is_symbolic, folder, index):
    stem = folder / f"{model.operator}_{index:02}"
    stem.with_suffix(".onnx").write_bytes(model.proto(is_symbolic).SerializeToString())
    np.savez_compressed(f"{stem}.inputs.npz", **model.run_inputs())
    np.savez_compressed(f"{stem}.expected.npz", **model.expected())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/attn-opt")
    parser.add_argument("--count", type=int, default=60, help="nodes of each operator")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=OPERATORS)
    parser.add_argument("--write", type=pathlib.Path)
    arguments = parser.parse_args()
    failed = False
    for operator, module in OPERATORS.items():
        if arguments.only not in (None, operator):
            continue
        with tempfile.TemporaryDirectory() as folder:
            judge = Judge(arguments.bin, folder)
            kept = 0
            for index in range(arguments.count):
                random = np.random.default_rng([arguments.seed, index])
                dtype = "float16" if index % 5 == 4 else "float32"
                model = module.draw(random, dtype)
                agrees = judge.judge(model, is_symbolic=index % 2 == 0)
                if arguments.write and agrees and dtype == "float32":
                    arguments.write.mkdir(parents=True, exist_ok=True)
                    keep(model, index % 2 == 0, arguments.write, kept)
                    kept += 1
        print(operator, dict(judge.counts), {what: f"{gap:.2g}" for what, gap in judge.worst.items()})
        print(*judge.problems, sep="\n")
        failed |= bool(judge.problems)
    return failed


if __name__ == "__main__":
    sys.exit(main())
