#!/usr/bin/env python3
"""Counts the attention operators that each tool makes of the bundled models, and prints a Markdown table.

    bench/compare_tools.py [--attn-opt build/attn-opt] [--tools NAME,...] [--write PAGE | --check PAGE] [MODEL...]

A tool that is not installed has a column that says so. Every tool runs in a process of its own with its defaults; the
ONNX Runtime optimizer, which wants a model type, is given seven of them and the best result counts. --write puts the table
between the marks of PAGE; --check compares the columns of tools that are installed in the version that PAGE names.
"""

import argparse
import collections
import importlib.metadata
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- table: bench/compare_tools.py -->\n", "<!-- end -->\n"
FUSED = re.compile("Attention$|^(ScaledDotProductAttention|QAttention|SDPA)")
SECONDS = 900
MODEL_TYPES = ("bert", "bart", "gpt2", "phi", "swin", "t5", "unet")


def operators(model):
    """Names of attention operators in an onnx.ModelProto, bodies and functions included, and how many of each there are."""
    counts = collections.Counter()

    def visit(nodes):
        for node in nodes:
            if FUSED.search(node.op_type):
                counts[node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op_type}"] += 1
            for attribute in node.attribute:
                for graph in [attribute.g, *attribute.graphs]:
                    visit(graph.node)

    visit(model.graph.node)
    for function in model.functions:
        visit(function.node)
    return counts


def counted(path):
    import onnx

    return operators(onnx.load(path, load_external_data=False))


def by_attn_opt(model, folder, program):
    output = folder / "model.onnx"
    subprocess.run([program, model, "-o", output, "-q", "--no-config"], check=True)
    return counted(output)


def by_session(level):
    def run(model, folder, _):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
        options.optimized_model_filepath = str(folder / "model.onnx")
        onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return counted(folder / "model.onnx")

    return run


def by_transformers_optimizer(model, folder, _):
    import logging

    from onnxruntime.transformers import optimizer

    logging.disable()
    best = None
    for model_type in MODEL_TYPES:
        if model_type not in optimizer.MODEL_TYPES:
            continue
        try:
            made = operators(optimizer.optimize_model(str(model), model_type=model_type, opt_level=0).model)
        except Exception:  # pylint: disable=broad-except  # a type that is not that of this model
            continue
        best = made if best is None or made.total() > best.total() else best
    if best is None:
        raise RuntimeError("no model type is taken")
    return best


def by_onnxscript(model, folder, _):
    import onnx_ir
    from onnxscript.rewriter.ort_fusions import optimize_for_ort

    loaded = onnx_ir.load(model)
    made = optimize_for_ort(loaded)
    return operators(onnx_ir.to_proto(made[0] if isinstance(made, tuple) else made))


def by_openvino(model, folder, _):
    """After OpenVINO's common transformations: a plug-in may take the operator apart again for its processor."""
    import openvino
    from openvino._offline_transformations import apply_moc_transformations

    read = openvino.Core().read_model(str(model))
    apply_moc_transformations(read, False)
    counts = collections.Counter()

    def visit(graph):
        for node in graph.get_ops():
            if FUSED.search(node.get_type_name()):
                counts[node.get_type_name()] += 1
            if node.get_type_name() == "If":
                for body in (0, 1):
                    visit(node.get_function(body))

    visit(read)
    return counts


def by_onnxslim(model, folder, _):
    import onnx
    import onnxslim

    return operators(onnxslim.slim(onnx.load(model)))


def by_onnxsim(model, folder, _):
    import onnx
    import onnxsim

    return operators(onnxsim.simplify(onnx.load(model))[0])


#        column                              package to ask for its version
TOOLS = {
    "attn-opt": ("attn-opt", None, by_attn_opt),
    "ort-basic": ("ONNX Runtime, basic", "onnxruntime", by_session("BASIC")),
    "ort-extended": ("ONNX Runtime, extended", "onnxruntime", by_session("EXTENDED")),
    "ort-transformers": ("onnxruntime.transformers", "onnxruntime", by_transformers_optimizer),
    "onnxscript": ("onnxscript ort_fusions", "onnxscript", by_onnxscript),
    "openvino": ("OpenVINO", "openvino", by_openvino),
    "onnxslim": ("onnxslim", "onnxslim", by_onnxslim),
    "onnxsim": ("onnxsim", "onnxsim", by_onnxsim),
}


def title_of(tool):
    """The tool's column; None if it is not installed. attn-opt is the one of this checkout."""
    title, package, _ = TOOLS[tool]
    if package is None:
        return title
    try:
        return f"{title} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def cell_of(counts):
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items())) or "0"


def run_tool(tool, program, models):
    """In the tool's own process: a line of JSON for each model, so that what it made before a crash is known."""
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                cell = cell_of(TOOLS[tool][2](model, pathlib.Path(folder), program))
            except Exception as error:  # pylint: disable=broad-except  # whatever a tool does with a model is a result
                cell = "fails"
                print(f"{tool}: {model}: {error}", file=sys.stderr)
        print("\n" + json.dumps({"model": str(model), "cell": cell}), flush=True)


def column_of(tool, program, models):
    """What a tool makes of each model."""
    command = [sys.executable, __file__, "--attn-opt", program, "--run", tool, *map(str, models)]
    try:
        made = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=False).stdout
    except subprocess.TimeoutExpired as expired:
        made = (expired.stdout or b"").decode()
    cells = {}
    for line in made.splitlines():
        if line.startswith('{"model"'):
            entry = json.loads(line)
            cells[entry["model"]] = entry["cell"]
    return [cells.get(str(model), "fails") for model in models]


def name_of(model):
    return model.parent.name if model.name == "model.onnx" else model.stem


def table_of(tools, program, models):
    """Columns by title; the first two are the models and what is in them before."""
    columns = {"model": [name_of(model) for model in models], "before": [cell_of(counted(model)) for model in models]}
    for tool in tools:
        title = title_of(tool)
        columns[title or TOOLS[tool][0]] = column_of(tool, program, models) if title else ["not installed"] * len(models)
    return columns


def markdown(columns):
    rows = [list(columns), ["---"] * len(columns), *zip(*columns.values())]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def parsed(page):
    """The table of PAGE: columns by title."""
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in page.split(BEGIN)[1].split(END)[0].splitlines()]
    return dict(zip(rows[0], zip(*rows[2:])))


def check(page, columns):
    """Differences between the columns of PAGE and those made; those of other versions, or not installed, are not compared."""
    said = parsed(page.read_text())
    return [f"{title}, {model}: the page says {old}, now {new}" for title, cells in columns.items() if title in said
            for model, old, new in zip(columns["model"], said[title], cells) if old != new]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--attn-opt", default=str(ROOT / "build/attn-opt"))
    parser.add_argument("--tools", default=",".join(TOOLS), help="of " + ", ".join(TOOLS))
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--check", type=pathlib.Path)
    parser.add_argument("--run", choices=TOOLS, help=argparse.SUPPRESS)
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    given = parser.parse_args()
    models = given.models or [*sorted((ROOT / "testdata/models").rglob("*.onnx")), *sorted((ROOT / "testdata/examples").glob("*.onnx"))]
    if given.run:
        run_tool(given.run, given.attn_opt, models)
        return
    columns = table_of(given.tools.split(","), given.attn_opt, models)
    print(markdown(columns), end="")
    if given.write:
        before, rest = given.write.read_text().split(BEGIN)
        given.write.write_text(before + BEGIN + markdown(columns) + END + rest.split(END)[1])
    if given.check and (differences := check(given.check, columns)):
        sys.exit("\n".join(differences))


main()
