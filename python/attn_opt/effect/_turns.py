"""Runs models in turns, each in a process of its own."""

from __future__ import annotations

import contextlib
import math
import statistics
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping

from ._process import Process, RunFailed, Turn

_SHORTEST = 0.02  # seconds: a turn takes as many runs as fill it
_MOST_RUNS = 100


@dataclass
class Measured:
    """What came of one model.

    Attributes:
        failure: why it did not run; "": it did.
        version: of the runtime.
        turns: in the order they were taken.
        outputs: of its first run, by name.
    """

    failure: str = ""
    version: str = ""
    turns: List[Turn] = field(default_factory=list)
    outputs: Dict[str, Any] = field(default_factory=dict)

    def seconds(self, clock: str) -> List[float]:
        """Of each turn: "cpu" or "wall"."""
        return [getattr(turn, clock) for turn in self.turns]

    def median(self, clock: str) -> float:
        return statistics.median(self.seconds(clock))

    @property
    def peak(self) -> int:
        """Bytes of memory at the most."""
        return max(turn.peak for turn in self.turns)


def _runs(processes: Mapping[str, Process]) -> int:
    """How many runs make a turn: the same for all models."""
    seconds = max(min(process.seconds for process in processes.values()), 1e-6)
    return min(max(math.ceil(_SHORTEST / seconds), 1), _MOST_RUNS)


def _in_order(names: List[str], turn: int) -> List[str]:
    """Each turn begins with another model, so that none always follows the same one."""
    first = turn % max(len(names), 1)
    return names[first:] + names[:first]


def in_turns(runtime: str, models: Mapping[str, str], feeds: Mapping[str, Any], threads: int, repeats: int) -> Dict[str, Measured]:
    """Runs MODELS, paths by name, REPEATS times in turns on the same inputs, behind a run that does not count.

    A model that fails says so in its `failure`; the others go on.
    """
    measured = {name: Measured() for name in models}
    with contextlib.ExitStack() as stack:
        processes: Dict[str, Process] = {}
        for name, path in models.items():
            with _noted(measured[name]):
                processes[name] = stack.enter_context(Process(runtime, path, threads, feeds))
                measured[name].version, measured[name].outputs = processes[name].version, processes[name].outputs
        runs = _runs(processes) if processes else 0
        for turn in range(repeats):
            for name in _in_order(list(processes), turn):
                if not measured[name].failure:
                    with _noted(measured[name]):
                        measured[name].turns.append(processes[name].turn(runs))
    return measured


@contextlib.contextmanager
def _noted(measured: Measured) -> Iterator[None]:
    """Notes in MEASURED that its model does not run."""
    try:
        yield
    except RunFailed as error:
        measured.failure = error.what

