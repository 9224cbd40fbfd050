"""Runs models: ONNX Runtime, OpenVINO, ONNX's reference, and attn-opt itself."""
import argparse
import json
import shutil
import subprocess

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime
from onnx.reference import ReferenceEvaluator

try:
    import openvino
except ImportError:  # judged without it
    openvino = None

onnxruntime.set_default_logger_severity(4)
LEVELS = {"off": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL}


def program(text):
    """TEXT, if a program has that path: an argument's type, since a judge without the program would find nothing."""
    if not shutil.which(text):
        raise argparse.ArgumentTypeError(f"{text} is not a program that can be run")
    return text


def raised(model, after):
    """MODEL at the opset of AFTER (bytes), by ONNX's converter: optimisers do more, and other things, to newer opsets."""
    opset = next(one.version for one in onnx.load_from_string(after).opset_import if not one.domain)
    return onnx.version_converter.convert_version(model, opset).SerializeToString()


class OnnxRuntime:
    """MODEL (bytes) in ONNX Runtime on the CPU; raises if it does not load."""

    def __init__(self, model, level="off"):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = LEVELS[level]
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]
        self.inputs = [given.name for given in self.session.get_inputs()]

    def run(self, arrays):
        """Outputs by name; raises if the model does not run on ARRAYS."""
        given = {name: arrays[name] for name in self.inputs}
        return dict(zip(self.names, self.session.run(self.names, given)))


class Reference:
    """MODEL in ONNX's reference evaluator, which rounds after each node: half types as they are meant."""

    def __init__(self, model):
        self.session = ReferenceEvaluator(model)

    def run(self, arrays):
        with np.errstate(all="ignore"):
            return dict(zip(self.session.output_names, self.session.run(None, arrays)))


class OpenVino:
    """MODEL (bytes) in OpenVINO on the CPU, in float32; raises if it does not compile."""

    def __init__(self, model):
        core = openvino.Core()
        core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
        self.model = core.compile_model(core.read_model(model), "CPU")
        # By place: what an inference Dropout reads is called by what that makes.
        self.names = [output.name for output in onnx.load_model_from_string(model).graph.output]

    def run(self, arrays):
        # An input has the names too of what it was found to be equal to.
        given = {name: arrays[name] for port in self.model.inputs for name in port.get_names() if name in arrays}
        results = self.model(given)
        return {name: np.array(results[port]) for name, port in zip(self.names, self.model.outputs)}


class ToolRun:
    """attn-opt on the file INPUT: `status` (None: it hung), `error`, `report`, and `output` (bytes)."""

    def __init__(self, binary, path, options=()):
        output, report = path.with_suffix(".after.onnx"), path.with_suffix(".json")
        for file in (output, report):
            file.unlink(missing_ok=True)
        command = [binary, str(path), "-o", str(output), "--report", str(report), "-q", "--no-config", *options]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
            self.status, self.error = done.returncode, done.stderr.strip()
        except subprocess.TimeoutExpired:
            self.status, self.error = None, "no end within 120 s"
        self.report = json.loads(report.read_text()) if report.exists() else None
        self.output = output.read_bytes() if output.exists() else None

    @property
    def fused(self):
        return [site for site in (self.report or {}).get("sites", []) if site["outcome"] == "fused"]

    @property
    def assumed(self):
        return {p["id"] for site in self.fused for p in site["preconditions"] if not p["proven"]}

    def takes_for_equal(self, model, arrays):
        """Does it assume that two sizes are equal which are not, where the axes of ARRAYS, inputs of MODEL, tell both?"""
        sizes = {f"?{name}.{axis}": size for name, array in arrays.items() for axis, size in enumerate(array.shape)}
        for given in model.graph.input:
            dims = given.type.tensor_type.shape.dim
            sizes.update({dim.dim_param: size for dim, size in zip(dims, arrays[given.name].shape) if dim.dim_param})
        equal = [p["detail"] for site in self.fused for p in site["preconditions"] if p["id"] == "sizes-equal" and not p["proven"]]
        sides = [tuple(map(sizes.get, equation.split(" = "))) for equation in equal]
        return any(one != other for one, other in sides if one is not None and other is not None)
