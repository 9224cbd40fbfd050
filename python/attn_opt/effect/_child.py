"""A process that has one model loaded and runs it when told: so its peak of memory is that of the model.

    python -m attn_opt.effect._child RUNTIME MODEL THREADS INPUTS.npz OUTPUTS.npz  (_arrays.py)

loads the model, runs it once, writes the outputs and answers {"version", "seconds"}. Then each line N on standard input runs it N
times and answers {"cpu", "wall"}, seconds of one run, and {"peak"}, bytes: the largest resident set so far.
A failure is the last answer: {"error"}.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
import time
from typing import Any, Dict, List, Mapping, TextIO

import numpy as np

from ._arrays import read_arrays, write_arrays
from ._runtimes import RUNTIMES, Session, silent_stdout

_KIBIBYTE = 1024


def peak_memory() -> int:
    """Bytes of the largest resident set that this process had."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            found = re.search(r"VmHWM:\s*(\d+) kB", status.read())
    except OSError:
        found = None
    if found:  # on Linux ru_maxrss counts what the process was before exec(), the parent's copy
        return int(found[1]) * _KIBIBYTE
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else _KIBIBYTE)


def _flat(outputs: Mapping[str, Any]) -> Dict[str, Any]:
    """Sequences of tensors as tensors of their own, types that .npz lacks in float32."""
    flat: Dict[str, Any] = {}
    for name, value in outputs.items():
        for key, array in ((f"{name}[{n}]", one) for n, one in enumerate(value)) if isinstance(value, list) else ((name, value),):
            array = np.asarray(array)
            flat[key] = array if array.dtype.kind in "biufc" else array.astype(np.float32)
    return flat


def timed(session: Session, feeds: Mapping[str, Any], runs: int) -> Dict[str, float]:
    """CPU and wall seconds of one run, the mean of RUNS."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(runs):
        session.run(feeds)
    return {"cpu": (time.process_time() - cpu) / runs, "wall": (time.perf_counter() - wall) / runs}


def _serve(answers: TextIO, arguments: List[str]) -> None:
    runtime, model, threads, inputs, outputs = arguments
    session = RUNTIMES[runtime].load(model, int(threads))
    feeds = read_arrays(inputs)
    write_arrays(outputs, _flat(session.run(feeds)))
    print(json.dumps({"version": session.version, "seconds": timed(session, feeds, 1)["wall"]}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps({**timed(session, feeds, int(line)), "peak": peak_memory()}), file=answers, flush=True)


def main(arguments: List[str]) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent ends its children
    answers = os.fdopen(silent_stdout(), "w")
    try:
        _serve(answers, arguments)
    except BrokenPipeError:  # the parent has gone
        os._exit(1)
    except Exception as error:  # runtimes raise whatever they like
        print(json.dumps({"error": " ".join(str(error).split()) or type(error).__name__}), file=answers, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
