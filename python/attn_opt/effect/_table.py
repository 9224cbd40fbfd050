"""Effects as text."""

from __future__ import annotations

import os
from typing import List, Optional, Sequence

from ._results import CONTROL, ORIGINAL, Effect, Row, ratio_of
from ._statistics import Difference, Ratio

_HEAD = ("", "CPU ms", "wall ms", "CPU ratio", "wall ratio", "peak MB", "file MB", "abs diff", "rel diff", "fused")


def _number(value: Optional[float], factor: float, places: int) -> str:
    return "" if value is None else f"{value * factor:.{places}f}"


def ratio_text(ratio: Optional[Ratio]) -> str:
    """"1.25 (1.22 to 1.28)"."""
    return "" if ratio is None else f"{ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def _difference(difference: Optional[Difference]) -> List[str]:
    if difference is None:
        return ["", ""]
    return [f"{difference.absolute:.1e}", f"{difference.relative:.1e}" + ("!" if difference.beyond else "")]


def _cells(row: Row) -> List[str]:
    return [row.name, _number(row.cpu_seconds, 1e3, 2), _number(row.wall_seconds, 1e3, 2), ratio_text(row.cpu_ratio),
            ratio_text(row.wall_ratio), _number(row.peak_bytes, 1e-6, 0), _number(row.bytes, 1e-6, 1), *_difference(row.difference),
            "" if row.fused is None else str(row.fused)]


def _aligned(lines: Sequence[Sequence[str]]) -> List[str]:
    widths = [max(map(len, column)) for column in zip(*lines)]
    return ["  ".join(cell.ljust(width) if n == 0 else cell.rjust(width) for n, (cell, width) in enumerate(zip(cells, widths))).rstrip()
            for cells in lines]


def _remark(row: Row) -> Optional[str]:
    if row.failure:
        return f"{row.name}: does not run: {row.failure}"
    if row.same_as == ORIGINAL:
        return f"{row.name}: nothing is fused; the output is the original" + (f" ({row.reason})" if row.reason else "")
    if row.same_as:
        return f"{row.name}: the same bytes as {row.same_as}, and measured there"
    if row.name != CONTROL and row.difference is not None and row.difference.beyond:
        return f"{row.name}: output '{row.difference.output}' is beyond the tolerance (!)"
    return None


def closing_line(effect: Effect) -> str:
    """Which target to choose."""
    if effect.choice == ORIGINAL:
        wrong = [row.name for row in effect.rows if row.fused is not None and row.difference is not None and row.difference.beyond]
        if wrong:
            return f"keep the original: {' and '.join(wrong)} give{'s' * (len(wrong) == 1)} other numbers, and no other output is faster"
        return "keep the original: no output is faster than it beyond the spread"
    row = next(row for row in effect.rows if row.name == effect.choice)
    clock = {"cpu": "CPU", "wall": "wall"}[effect.decided_by]
    return f"choose --target {row.name}: the original takes {ratio_text(ratio_of(row, effect.decided_by))} times its {clock} time"


def table(effect: Effect) -> str:
    """EFFECT as `python -m attn_opt.effect` prints it, with a line feed at its end."""
    threads = f"{effect.threads} thread{'s' * (effect.threads != 1)}" if effect.threads else "its own number of threads"
    sizes = ", ".join(f"{name} = {size}" for name, size in effect.sizes.items())
    head = f"{os.path.basename(effect.model)} in {effect.runtime} {effect.runtime_version}, {threads}" + f"; {sizes}" * bool(sizes)
    remarks = [remark for remark in map(_remark, effect.rows) if remark]
    if effect.is_random:
        remarks.append("the original's outputs differ from run to run: nothing is said of those of others")
    return "\n".join([head, "", *_aligned([_HEAD, *map(_cells, effect.rows)]), "", *remarks, closing_line(effect), ""])
