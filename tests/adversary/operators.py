"""Draws operators that compute attention already, and judges what attn-opt makes of each by ONNX Runtime.

    python tests/adversary/operators.py --bin build/attn-opt --count 1000 [--seed 0]

Model SEED is always the same one. Status 1 if a model that ran does not run after the rewrite, or has other results, or if more
than one model in ten is left though its operator is known.
"""
import argparse
import collections
import pathlib
import sys
import tempfile

import numpy as np

import runtimes
from operators_drawn import draw_operator

OPTIONS = ([], ["--strict"], ["--target", "ort"], ["--target", "ort-contrib"], ["--also", "all"])
TOLERANCE = {np.dtype(np.float32): 2e-5, np.dtype(np.float16): 8e-3}
# These change numbers, or NaN, where the drawn inputs breach them.
BREACHED = {"rows-keep-a-key", "scores-finite", "biases-small"}
UNWANTED = {"verification.failed", "verification.unverified", "internal.defect"}
MOST_LEFT = 0.1


def run(model, feeds, level):
    return runtimes.OnnxRuntime(model, level).run(feeds)


def difference(before, after, tolerance):
    """Where results differ by more than TOLERANCE of their size, as text; empty if they do not."""
    for name, was in before.items():
        now = after[name]
        if was.shape != now.shape:
            return f"{name}: {was.shape} became {now.shape}"
        one, other = (np.nan_to_num(array.astype(np.float64), nan=1e35, posinf=1e30, neginf=-1e30) for array in (was, now))
        far = np.abs(one - other) > tolerance * (1 + np.abs(one))
        if far.any():
            return f"{name}: {one[far][0]:.6g} became {other[far][0]:.6g}"
    return ""


def runs_before(drawn):
    """Results of the model, or None where it does not run, or not twice alike: kernels leave some rows unwritten."""
    try:
        first, again = run(drawn.model, drawn.feeds, "off"), run(drawn.model, drawn.feeds, "all")
    except Exception:  # of several kinds
        return None
    return None if difference(first, again, 5 * TOLERANCE[drawn.dtype]) else first


def findings(drawn, binary, path, counts):
    before = runs_before(drawn)
    path.write_bytes(drawn.model)
    for options in OPTIONS:
        tool = runtimes.ToolRun(binary, path, options)
        if tool.status is None or tool.status < 0 or tool.output is None:
            yield f"status {tool.status} {options} {tool.error}"
            continue
        if before is None:
            continue
        missed = [site["miss"]["id"] for site in tool.report["sites"] if site["miss"]]
        counts[f"{' '.join(options) or 'default'}: {'fused' if tool.fused else missed[0] if missed else 'left'}"] += 1
        if not options and set(missed) & UNWANTED:
            counts["left"] += 1
        yield from differences_after(drawn, before, tool, options)
    counts["models" if before is not None else "not run"] += 1


def differences_after(drawn, before, tool, options):
    for level in ("off", "all"):
        try:
            what = difference(before, run(tool.output, drawn.feeds, level), TOLERANCE[drawn.dtype])
        except Exception as error:  # of several kinds
            yield f"does not run {options} {level} assumed={sorted(tool.assumed)}: {str(error)[:200]}"
            return
        if what and not tool.assumed & BREACHED:
            yield f"{what} {options} {level} assumed={sorted(tool.assumed)}"
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=runtimes.program, required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    counts, found = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.seed, given.seed + given.count):
            drawn = draw_operator(seed)
            for text in findings(drawn, given.bin, pathlib.Path(folder) / "model.onnx", counts):
                found += 1
                print(f"{seed} {drawn.kind} {text} | {drawn.notes}", flush=True)
    print("\n".join(f"{key}: {count}" for key, count in sorted(counts.items())))
    print(f"{given.count} models, {found} findings")
    return 1 if found or counts["left"] > MOST_LEFT * counts["models"] else 0


if __name__ == "__main__":
    sys.exit(main())
