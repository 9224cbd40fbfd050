"""The user's runtimes, each behind the same two calls. Only child processes import them."""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import Any, Callable, Dict, Mapping, NamedTuple, Tuple

from .._errors import UnsupportedError, UsageError


class Session(NamedTuple):
    """A model that a runtime has loaded. `run` gives outputs, by name, for inputs by name."""

    version: str
    run: Callable[[Mapping[str, Any]], Dict[str, Any]]


class Runtime(NamedTuple):
    """A runtime: the Python package that it is, the targets that are written for it, and how it loads a model.

    `load` takes a path and a number of threads (0: as many as the runtime takes by itself).
    """

    package: str
    targets: Tuple[str, ...]
    load: Callable[[str, int], Session]


def _onnxruntime(path: str, threads: int) -> Session:
    runtime = importlib.import_module("onnxruntime")
    runtime.set_default_logger_severity(4)
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = min(threads, 1)
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]

    def run(feeds: Mapping[str, Any]) -> Dict[str, Any]:
        return dict(zip(names, session.run(names, dict(feeds))))

    return Session(str(runtime.__version__), run)


def _openvino(path: str, threads: int) -> Session:
    runtime = importlib.import_module("openvino")
    options: Dict[str, Any] = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    if threads:
        options["INFERENCE_NUM_THREADS"] = threads
    compiled = runtime.Core().compile_model(path, "CPU", options)
    request = compiled.create_infer_request()

    def run(feeds: Mapping[str, Any]) -> Dict[str, Any]:
        made = request.infer(dict(feeds), share_inputs=True)
        return {output.any_name: made[output] for output in compiled.outputs}

    return Session(str(runtime.__version__).split("-", maxsplit=1)[0], run)


RUNTIMES: Dict[str, Runtime] = {
    "onnxruntime": Runtime("onnxruntime", ("portable", "ort", "ort-contrib"), _onnxruntime),
    "openvino": Runtime("openvino", ("portable", "openvino"), _openvino),
}


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # sys.modules has None for it
        return False


def installed_runtime(name: str) -> Runtime:
    """The runtime called NAME.

    Raises:
        UsageError: there is none of the name. UnsupportedError: its Python package is not installed.
    """
    if name not in RUNTIMES:
        raise UsageError(f"there is no runtime '{name}'", "--runtime", "there are " + ", ".join(RUNTIMES))
    runtime = RUNTIMES[name]
    if not _is_installed(runtime.package):
        raise UnsupportedError(f"the Python package {runtime.package} is not installed; attn_opt measures in the runtime that you use",
                               "--runtime", f"pip install {runtime.package}")
    return runtime


def silent_stdout() -> int:
    """Sends what runtimes print to standard error; returns a descriptor of what was standard output."""
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept
