"""The command: python -m attn_opt.effect MODEL."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from typing import List, Optional, Sequence

from .._errors import Error
from ._arrays import given_arrays
from ._effect import measure
from ._results import SCHEMA_VERSION, Effect
from ._runtimes import RUNTIMES
from ._sizes import given_sizes
from ._table import table

FINE, USAGE, FAILED, DIFFERS = 0, 2, 3, 4

_EPILOG = """\
exit status: 0 all models ran with the same numbers; 2 usage; 3 the model or the runtime failed, or a written model does not run;
4 outputs differ beyond the tolerance. docs/effect.md is the manual."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m attn_opt.effect", epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Optimises MODEL for each target that makes sense for a runtime, runs the original and the results there in "
                    "turns, and says which to choose.")
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--runtime", choices=sorted(RUNTIMES), default="onnxruntime", help="the default is onnxruntime")
    parser.add_argument("--target", action="append", default=[], help="in the place of those that make sense; repeatable")
    parser.add_argument("--dim", action="append", nargs="+", default=[], metavar="NAME=SIZE,...",
                        help="sizes of a symbolic axis; every combination is measured")
    parser.add_argument("--inputs", metavar="FILE.npz", help="arrays by input, in the place of drawn ones")
    parser.add_argument("--threads", type=int, default=1, help="of the runtime (1); 0: those it takes by itself")
    parser.add_argument("--repeats", type=int, default=15, help="turns that are measured (15)")
    parser.add_argument("--tolerance", type=float, default=0.0, help="of outputs, relative to their largest magnitude")
    parser.add_argument("--keep", metavar="DIR", help="leave the models there, as TARGET/model.onnx")
    parser.add_argument("--json", action="store_true", help="print JSON (docs/schema/effect-1.schema.json)")
    return parser


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _status(effects: Sequence[Effect]) -> int:
    if any(effect.failed for effect in effects):
        return FAILED
    return DIFFERS if any(effect.differs for effect in effects) else FINE


def _print(effects: Sequence[Effect], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"schema_version": SCHEMA_VERSION, "effects": [effect.to_dict() for effect in effects]}, indent=2))
    else:
        print("\n".join(map(table, effects)), end="")


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the command; returns its exit status."""
    given = _parser().parse_args(arguments)
    try:
        effects = measure(given.model, runtime=given.runtime, targets=given.target,
                          dims=given_sizes(text for texts in given.dim for text in texts),
                          inputs=given_arrays(given.inputs) if given.inputs else {}, threads=given.threads, repeats=given.repeats,
                          tolerance=given.tolerance, keep=given.keep, progress=_to_stderr)
    except Error as error:
        _to_stderr(f"attn_opt.effect: {error}")
        return error.status
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    _print(effects, given.json)
    return _status(effects)
