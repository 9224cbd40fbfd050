"""The parent's side of a child process that has a model loaded (_child.py)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Dict, Mapping, Optional, Type

from .._errors import Error
from ._arrays import read_arrays, write_arrays


class RunFailed(Error):
    """The runtime did not load or run a model. Status 3."""


@dataclass(frozen=True)
class Turn:
    """One measurement: seconds of CPU and wall time of one run, bytes of memory at the most so far."""

    cpu: float
    wall: float
    peak: int


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    killed = "; it may have been out of memory" if status == -signal.SIGKILL else ""
    return f"was ended by {signal.Signals(-status).name}{killed}"


class Process:
    """A process that has MODEL, a path, loaded in RUNTIME and has run it once. As a context it ends with the block.

    Attributes:
        version: of the runtime.
        seconds: wall time of one run behind the first one.
        outputs: of the first run, by name.

    Raises:
        RunFailed: it cannot be loaded or run.
    """

    def __init__(self, runtime: str, model: str, threads: int, feeds: Mapping[str, Any]):
        self._model = model
        with tempfile.TemporaryDirectory() as folder:
            inputs, outputs = (os.path.join(folder, name) for name in ("inputs.npz", "outputs.npz"))
            write_arrays(inputs, feeds)
            # The child has the package from where this process has it, whatever the current folder is.
            package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
            path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}._child", runtime, model, str(threads), inputs, outputs],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path})
            try:
                answer = self._answer()
                self.version, self.seconds = str(answer["version"]), float(answer["seconds"])
                self.outputs = read_arrays(outputs)
            except BaseException:
                self.end()
                raise

    def _answer(self) -> Dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        answer: Dict[str, Any] = json.loads(line) if line else {"error": "its process " + _how_it_ended(self._process.wait())}
        if "error" in answer:
            raise RunFailed(str(answer["error"]), self._model)
        return answer

    def turn(self, runs: int) -> Turn:
        """Runs the model RUNS times; the means of one run."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended; its answer says so
            self._process.stdin.write(f"{runs}\n")
            self._process.stdin.flush()
        return Turn(**self._answer())

    def end(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.end()
