"""ONNX Runtime, OpenVINO and ONNX's reference evaluator as functions from a model's file and inputs to its outputs."""

import multiprocessing
import os

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator


class DidNotRun(Exception):
    """What the runtime said when it was to load or to run the model: one line."""


class Crashed(DidNotRun):
    """The process is gone."""


def in_own_process(run, *arguments):
    """RUN(*ARGUMENTS) in a process of its own. Raises Crashed if it dies, and what RUN raises."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def tell():
        try:
            sender.send((run(*arguments), None))
        except Exception as error:
            sender.send((None, error))

    process = context.Process(target=tell)
    process.start()
    sender.close()
    try:
        result, error = receiver.recv()
    except EOFError:
        process.join()
        raise Crashed(f"crashed with status {process.exitcode}") from None
    process.join()
    if error:
        raise error
    return result


def _one_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:300]


def _through_float(model):
    """MODEL with inputs and outputs of bfloat16 as float: no runtime takes or gives bfloat16 arrays from Python alike."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph, front, back = changed.graph, [], []
    for values, nodes, is_input in ((graph.input, front, True), (graph.output, back, False)):
        for value in values:
            if value.type.tensor_type.elem_type != TensorProto.BFLOAT16:
                continue
            inner, value.name = value.name, value.name + "_as_float"
            value.type.tensor_type.elem_type = TensorProto.FLOAT
            ends = ([value.name], [inner], TensorProto.BFLOAT16) if is_input else ([inner], [value.name], TensorProto.FLOAT)
            nodes.append(helper.make_node("Cast", ends[0], ends[1], to=ends[2]))
    nodes = [*front, *graph.node, *back]
    del graph.node[:]
    graph.node.extend(nodes)
    return changed, bool(front or back)


def _readable(path, feeds, run):
    """RUN on a path and feeds without bfloat16 at the model's ends; its outputs are named as the model's."""
    model = onnx.load(path, load_external_data=False)
    through_float, changed = _through_float(model)
    if not changed:
        return run(path, feeds)
    other = os.path.join(os.path.dirname(path), "through_float_" + os.path.basename(path))
    onnx.save(through_float, other)
    as_float = {name + "_as_float": array.astype(np.float32) if array.dtype.name == "bfloat16" else array for name, array in feeds.items()}
    outputs = run(other, as_float | feeds)
    return {name.removesuffix("_as_float"): array for name, array in outputs.items()}


def _in_onnxruntime(level):
    def run(path, feeds):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        options.graph_optimization_level = level
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        wanted = {value.name for value in session.get_inputs()}
        outputs = session.run(None, {name: array for name, array in feeds.items() if name in wanted})
        return dict(zip([value.name for value in session.get_outputs()], outputs))

    return run


_CORE = []


def _core():
    if not _CORE:
        _CORE.append(openvino.Core())
        _CORE[0].set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
    return _CORE[0]


def _in_openvino(path, feeds):
    compiled = _core().compile_model(_core().read_model(path), "CPU")
    given = {port: feeds[name] for port in compiled.inputs for name in port.get_names() if name in feeds}
    request = compiled.create_infer_request()
    request.infer(given)
    outputs = {}
    for name in (value.name for value in onnx.load(path, load_external_data=False).graph.output):
        ports = [port for port in compiled.outputs if name in port.get_names()]
        if not ports:
            raise DidNotRun(f"no output is named {name}")
        outputs[name] = np.array(request.get_tensor(ports[0]).data)
    return outputs


def _in_reference(path, feeds):
    session = ReferenceEvaluator(path)
    with np.errstate(all="ignore"):
        return dict(zip(session.output_names, session.run(None, feeds)))


def _arrays(outputs):
    """OUTPUTS with the elements of a sequence as outputs of their own; what is absent is left out."""
    flat = {}
    for name, value in outputs.items():
        elements = {f"{name}[{i}]": element for i, element in enumerate(value)} if isinstance(value, (list, tuple)) else {name: value}
        flat |= {key: np.asarray(element) for key, element in elements.items() if element is not None}
    return flat


def _guarded(run):
    def guarded(path, feeds):
        try:
            return _arrays(_readable(path, feeds, run))
        except DidNotRun:
            raise
        except Exception as error:  # whatever a runtime throws
            raise DidNotRun(_one_line(error)) from error

    return guarded


_LEVEL = onnxruntime.GraphOptimizationLevel

"""Runtimes by name. Each takes (path, feeds) and returns arrays by output name, or raises DidNotRun."""
RUNTIMES = {
    "onnxruntime": _guarded(_in_onnxruntime(_LEVEL.ORT_DISABLE_ALL)),
    "onnxruntime-optimized": _guarded(_in_onnxruntime(_LEVEL.ORT_ENABLE_ALL)),
    "openvino": _guarded(_in_openvino),
    "reference": _guarded(_in_reference),
}
"""Runtimes that a model written for a target is to run in."""
RUNTIMES_OF_TARGET = {
    "portable": tuple(RUNTIMES),
    "ort": ("onnxruntime", "onnxruntime-optimized"),
    "ort-contrib": ("onnxruntime", "onnxruntime-optimized"),
    "cuda": ("onnxruntime", "onnxruntime-optimized"),
    "directml": ("onnxruntime", "onnxruntime-optimized"),
    "webgpu": ("onnxruntime", "onnxruntime-optimized"),
    "openvino": ("openvino",),
    "spec": ("reference",),
}
VERSIONS = {"onnxruntime": onnxruntime.__version__, "openvino": openvino.__version__.split("-")[0], "reference": onnx.__version__}
