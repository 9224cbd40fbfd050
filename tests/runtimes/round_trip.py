"""What --target ort-contrib writes is read back: each operator of com.microsoft that it wrote is one site of the portable target,
fused and verified.

usage: round_trip.py ATTN_OPT SOURCE_FOLDER [MODELS_FOLDER]
"""

import collections
import concurrent.futures
import functools
import json
import pathlib
import subprocess
import sys
import tempfile

import onnx

import models

PATTERN_OF = {"MultiHeadAttention": "contrib_multi_head_attention", "GroupQueryAttention": "contrib_group_query_attention"}
OTHER_CASES = ("contrib/", "opset/", "rewrites/", "rules/", "yobx/")  # which have no attention, or none that is written
# Two sizes are taken for one, which what the operator is given, a bias or an Expand to the larger, does not say: its site is not
# verified again.
NOT_READ_BACK = ("softmax_attention/open_sizes_beside_names",)


def run(attn_opt, model, target, folder, options=()):
    """(path of the model written, its report), or None where attn-opt refuses it."""
    path, report = folder / f"{target}.onnx", folder / f"{target}.json"
    done = subprocess.run([attn_opt, model, "-o", path, "--target", target, "--report", report, "-q", "--no-config", *options],
                          capture_output=True, text=True, check=False)
    return (path, json.loads(report.read_text())) if done.returncode == 0 else None


def operators(path):
    graphs = [onnx.load(path, load_external_data=False).graph]
    for graph in graphs:
        for node in graph.node:
            graphs += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return collections.Counter(node.op_type for graph in graphs for node in graph.node
                               if node.domain == "com.microsoft" and node.op_type in PATTERN_OF)


def judge(attn_opt, one):
    """(operators written, what is wrong)."""
    with tempfile.TemporaryDirectory() as folder:
        return judge_in(pathlib.Path(folder), attn_opt, one)


def judge_in(folder, attn_opt, one):
    before = folder / "before.onnx"
    onnx.save(one.model(), before) if one.path.suffix == ".onnxtxt" else before.write_bytes(one.path.read_bytes())
    had = operators(before)
    written = run(attn_opt, before, "ort-contrib", folder, one.options)
    if had or not written:
        return had - had, ""
    made = operators(written[0])
    again = run(attn_opt, written[0], "portable", folder) if made else None
    if not made or not again:
        return made, "is not read back" if made else ""
    for operator, count in made.items():
        read = [site for site in again[1]["sites"] if site["pattern"] == PATTERN_OF[operator]]
        good = [site for site in read if site["outcome"] == "fused" and site["verification"]["verdict"] == "verified"]
        if len(good) != count:
            return made, f"{count} {operator}, of which {len(good)} are fused and verified: {read}"[:400]
    return made, ""


def main():
    attn_opt, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    chosen = models.models_in(pathlib.Path(sys.argv[3])) if len(sys.argv) > 3 else models.bundled(source)
    all_made, failed = collections.Counter(), 0
    chosen = [one for one in chosen if "ort-contrib" in one.targets and not one.name.startswith(OTHER_CASES)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for one, (made, fault) in zip(chosen, pool.map(functools.partial(judge, attn_opt), chosen)):
            all_made += made
            if fault and one.name not in NOT_READ_BACK:
                failed += 1
                print("FAIL", one.name, fault, flush=True)
    print(f"{len(chosen)} models; written and read back:", dict(all_made))
    lacks_some = len(sys.argv) == 3 and len(all_made) < len(PATTERN_OF)
    return 1 if failed or lacks_some else 0


if __name__ == "__main__":
    sys.exit(main())
