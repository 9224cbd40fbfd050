"""measure(): what each target's output is worth in the user's runtime."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from .._core import __version__
from .._errors import UsageError
from ._declared import Declared, bytes_of, declared_inputs
from ._draw import draw
from ._process import RunFailed
from ._results import CONTROL, ORIGINAL, Effect, Row, choose
from ._runtimes import Runtime, installed_runtime
from ._sizes import LONGEST, combinations, sizes_of, sizes_of_arrays
from ._statistics import largest_difference, paired_ratio
from ._targets import Written, chosen_targets, write_for_targets
from ._turns import Measured, in_turns


def _of(measured: Measured, original: Measured, tolerance: float) -> Dict[str, Any]:
    """The fields of a row that a measurement gives."""
    if measured.failure:
        return {"failure": measured.failure}
    fields: Dict[str, Any] = {f"{clock}_seconds": measured.median(clock) for clock in ("cpu", "wall")}
    fields["peak_bytes"] = measured.peak
    if measured is not original:
        fields.update({f"{clock}_ratio": paired_ratio(original.seconds(clock), measured.seconds(clock)) for clock in ("cpu", "wall")})
        fields["difference"] = largest_difference(original.outputs, measured.outputs, tolerance)
    return fields


def _same_as(written: Written) -> Optional[str]:
    return written.same_as or (None if written.changed else ORIGINAL)


def _rows(model: str, written: Mapping[str, Written], others: Mapping[str, str], measured: Mapping[str, Measured],
          tolerance: float) -> List[Row]:
    original = measured[ORIGINAL]
    rows = [Row(name, bytes=bytes_of(model), **_of(measured[name], original, tolerance)) for name in (ORIGINAL, CONTROL)]
    for target, one in written.items():
        fields = _of(measured[target], original, tolerance) if target in measured else {"same_as": _same_as(one)}
        rows.append(Row(target, fused=one.fused, bytes=bytes_of(one.path), reason=one.reason or None, **fields))
    return rows + [Row(name, bytes=bytes_of(path), **_of(measured[name], original, tolerance)) for name, path in others.items()]


@contextlib.contextmanager
def _folder(keep: Optional[str]) -> Iterator[str]:
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="attn-opt-effect-") as folder:
        yield folder


def measure_models(model: str, written: Mapping[str, Written], feeds: Mapping[str, Any], *, runtime: str, threads: int, repeats: int,
                   tolerance: float = 0.0, sizes: Optional[Mapping[str, int]] = None, others: Optional[Mapping[str, str]] = None) -> Effect:
    """Measures MODEL, the models that were WRITTEN of it, and OTHERS (paths by name), on the arrays FEEDS.

    Raises:
        RunFailed: the original does not run.
    """
    paths = {ORIGINAL: model, CONTROL: model, **{name: one.path for name, one in written.items() if not _same_as(one)}, **(others or {})}
    measured = in_turns(runtime, paths, feeds, threads, repeats)
    if measured[ORIGINAL].failure:
        raise RunFailed(measured[ORIGINAL].failure, model, "the drawn inputs may not fit it: give sizes with --dim, or arrays with --inputs")
    rows = _rows(model, written, others or {}, measured, tolerance)
    clock = "cpu" if threads == 1 else "wall"
    return Effect(model, runtime, measured[ORIGINAL].version, __version__, threads, repeats, dict(sizes or {}), clock, rows,
                  choose(rows, clock))


Feeds = Tuple[Dict[str, int], Dict[str, Any]]  # sizes, and arrays of them


def _feeds(declared: Sequence[Declared], chosen: Mapping[str, int], inputs: Mapping[str, Any]) -> List[Feeds]:
    """What to try, one behind the other where the original does not run: shorter and shorter where the length is not chosen."""
    tried: Dict[Tuple[Tuple[str, int], ...], Feeds] = {}
    for longest in LONGEST:
        sizes = sizes_of(declared, sizes_of_arrays(declared, inputs, chosen), longest)
        if tuple(sizes.items()) not in tried:
            tried[tuple(sizes.items())] = (sizes, draw(declared, sizes, inputs))
    return list(tried.values())


def _first_that_runs(drawn: Sequence[Feeds], measured: Callable[[Dict[str, int], Dict[str, Any]], Effect]) -> Effect:
    """What is MEASURED of the first of DRAWN that the original runs on; the failure is that of the first."""
    failures: List[RunFailed] = []
    for sizes, feeds in drawn:
        try:
            return measured(sizes, feeds)
        except RunFailed as failure:
            failures.append(failure)
    raise failures[0]


def measure(model: Union[str, "os.PathLike[str]"], *, runtime: str = "onnxruntime", targets: Sequence[str] = (),
            dims: Optional[Mapping[str, Sequence[int]]] = None, inputs: Optional[Mapping[str, Any]] = None, threads: int = 1,
            repeats: int = 15, tolerance: float = 0.0, keep: Optional[str] = None,
            others: Optional[Mapping[str, Union[str, "os.PathLike[str]"]]] = None,
            progress: Callable[[str], None] = lambda text: None) -> List[Effect]:
    """Optimises a model for each target, and runs the original and the results in turns in a runtime.

    Args:
        model: a path.
        runtime: "onnxruntime" or "openvino", whose Python package must be installed.
        targets: to write for; none: those that make sense for the runtime.
        dims: sizes of symbolic axes; every combination of them is measured. Others have defaults (docs/effect.md).
        inputs: arrays by name, in the place of drawn ones.
        threads: of the runtime; 0: those it takes by itself.
        repeats: turns that are measured.
        tolerance: of outputs, relative to their largest magnitude; 0: by type (docs/effect.md).
        keep: folder to leave the models in, as TARGET/model.onnx; else they are removed.
        others: further models to measure, by name: what another tool made of the same model. They are never the choice.
        progress: called with what is being done.

    Returns:
        An Effect for each combination of sizes.

    Raises:
        UsageError: a runtime, target, axis or number that there is not.
        Error: the runtime is not installed, the model cannot be read, or the original does not run.
    """
    if threads < 0 or repeats < 1:
        raise UsageError(f"{threads} threads and {repeats} repeats are no numbers to measure with")
    found: Runtime = installed_runtime(runtime)
    names = chosen_targets(found, targets)
    path = os.fspath(model)
    declared = declared_inputs(path)
    beside = {name: os.fspath(other) for name, other in (others or {}).items()}
    drawn = [_feeds(declared, chosen, inputs or {}) for chosen in combinations(dims or {})]  # what does not fit is said before the work

    def measured(sizes: Dict[str, int], feeds: Dict[str, Any]) -> Effect:
        progress("running " + (" ".join(f"{name}={size}" for name, size in sizes.items()) or "with the sizes it has"))
        return measure_models(path, written, feeds, runtime=runtime, threads=threads, repeats=repeats, tolerance=tolerance,
                              sizes=sizes, others=beside)

    with _folder(keep) as folder:
        progress(f"optimising for {', '.join(names)}")
        written = write_for_targets(path, names, folder)
        return [_first_that_runs(feeds, measured) for feeds in drawn]
