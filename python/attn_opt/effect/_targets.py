"""The targets that make sense for a runtime, and the model written for each."""

from __future__ import annotations

import filecmp
import os
from dataclasses import dataclass
from typing import Dict, List, Sequence

from .._api import optimize
from .._errors import Error, UsageError
from .._report import Report
from ._runtimes import Runtime


@dataclass(frozen=True)
class Written:
    """A model that was written for a target.

    Attributes:
        path: of the model.
        fused: attentions that were fused.
        changed: false: the output is the input.
        reason: why an attention was not fused, of the first such; "": all were.
        same_as: the earlier target whose output has the same bytes; "": none has.
    """

    path: str
    fused: int
    changed: bool
    same_as: str
    reason: str = ""


def _reason(report: Report) -> str:
    """Why an attention of REPORT is not fused."""
    left = next((site for site in report.sites if not site.fused), None)
    if left is None:
        return "" if report.sites else "no attention was found"
    if left.miss is None:
        return f"{left.name}: {left.outcome}"
    return f"{left.miss.id} at {left.miss.node or left.name}: {left.miss.found}"


def is_known(target: str) -> bool:
    """True if this version of attn_opt writes for TARGET."""
    try:
        optimize("", target=target)
    except UsageError as error:
        return error.where != "target"
    except Error:  # there is no model of that name
        pass
    return True


def chosen_targets(runtime: Runtime, given: Sequence[str]) -> List[str]:
    """Those that were given, or those of RUNTIME that there are.

    Raises:
        UsageError: there is no such target.
    """
    for target in given:
        if not is_known(target):
            raise UsageError(f"there is no target '{target}'", "--target")
    return list(given) or [target for target in runtime.targets if is_known(target)]


def write_for_targets(model: str, targets: Sequence[str], folder: str) -> Dict[str, Written]:
    """MODEL optimised for each target, as FOLDER/TARGET/model.onnx with its weights beside it.

    Raises:
        Error: the model cannot be read.
    """
    written: Dict[str, Written] = {}
    for target in targets:
        path = os.path.join(folder, target, "model.onnx")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _, report = optimize(model, path, target=target)
        same = next((name for name, one in written.items() if report.changed and filecmp.cmp(one.path, path, shallow=False)), "")
        written[target] = Written(path, report.fused, report.changed, same, _reason(report))
    return written
