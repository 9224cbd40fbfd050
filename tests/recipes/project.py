"""A user's project in a folder of its own, and attn-opt on PATH."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

import onnx


def slot_attention(path):
    """A model whose softmax runs over the queries: nothing can be fused in it."""
    value = lambda name, rows: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, rows, 8])
    nodes = [
        onnx.helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        onnx.helper.make_node("MatMul", ["q", "kt"], ["s"]),
        onnx.helper.make_node("Softmax", ["s"], ["p"], axis=1, name="/model/Softmax"),
        onnx.helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    graph = onnx.helper.make_graph(nodes, "g", [value("q", 6), value("k", 10), value("v", 10)], [value("y", 6)])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8), path)


def environment_with(attn_opt):
    return {**os.environ, "PATH": f"{attn_opt.parent}:{os.environ['PATH']}", "NO_COLOR": "1"}


def shell(attn_opt, folder, script, *arguments, **environment):
    """Runs SCRIPT as CI systems do: any command that fails ends it."""
    return subprocess.run(["bash", "-eo", "pipefail", "-c", script, "bash", *map(str, arguments)], cwd=folder, text=True,
                          env=environment_with(attn_opt) | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


class Project:
    """The example of a regression suite, copied; its models can lose their fusion."""

    def __init__(self, attn_opt, source, folder):
        self.folder = pathlib.Path(folder) / "project"
        shutil.copytree(source / "examples/regression-suite", self.folder)
        self.attn_opt, self.environment = attn_opt, {}

    def lose_a_fusion(self):
        slot_attention(self.folder / "models/sdpa.onnx")

    def break_a_case(self):
        case = self.folder / "cases/softmax_over_queries.onnxtxt"
        case.write_text(case.read_text().replace("fused=0 missed=1", "fused=1 missed=0"))

    def bash(self, script, **environment):
        return shell(self.attn_opt, self.folder, script, **self.environment, **environment)


@contextlib.contextmanager
def project(attn_opt, source):
    with tempfile.TemporaryDirectory() as folder:
        yield Project(attn_opt, source, folder)


def expect(condition, what):
    if not condition:
        raise AssertionError(what)
