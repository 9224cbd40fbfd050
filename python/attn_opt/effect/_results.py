"""What was measured of a model, and which target it speaks for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Optional, Sequence

from ._statistics import Difference, Ratio

ORIGINAL, CONTROL = "original", "original again"
SCHEMA_VERSION = 1
_WORTHWHILE = 1.02  # below it the place that code and data have in memory decides


@dataclass(frozen=True)
class Row:
    """A model in the table: the original, the original in a second process, what was written for a target, or another model.

    Attributes:
        name: "original", "original again", the target's or the other model's.
        same_as: the row whose model this is, too, and which was measured in its place; None: none.
        failure: why the runtime does not load or run it; None: it does.
        fused: attentions that were fused; None: the original, or a model that is none of attn_opt's.
        bytes: of the model's files.
        cpu_seconds, wall_seconds: medians of one run; None where nothing was measured, and so below.
        cpu_ratio, wall_ratio: to the original, in pairs.
        peak_bytes: of memory, in a process that had this model alone.
        difference: of the outputs to the original's.
        reason: why an attention was not fused, of the first such; None: all were.
    """

    name: str
    same_as: Optional[str] = None
    failure: Optional[str] = None
    fused: Optional[int] = None
    bytes: int = 0
    cpu_seconds: Optional[float] = None
    wall_seconds: Optional[float] = None
    cpu_ratio: Optional[Ratio] = None
    wall_ratio: Optional[Ratio] = None
    peak_bytes: Optional[int] = None
    difference: Optional[Difference] = None
    reason: Optional[str] = None


@dataclass(frozen=True)
class Effect:
    """What was measured with one choice of sizes.

    Attributes:
        model, runtime, runtime_version, attn_opt_version, threads, repeats: what was measured, with what. 0 threads: those that
            the runtime takes by itself.
        sizes: of the axes that have names.
        decided_by: "cpu" with one thread, else "wall".
        rows: the original, the original again, and a row for each target and each other model.
        choice: the target to write, or "original".
    """

    model: str
    runtime: str
    runtime_version: str
    attn_opt_version: str
    threads: int
    repeats: int
    sizes: Dict[str, int]
    decided_by: str
    rows: List[Row]
    choice: str

    @property
    def failed(self) -> bool:
        """A model does not run."""
        return any(row.failure for row in self.rows)

    @property
    def differs(self) -> bool:
        """Outputs of a target lie beyond the tolerance, though the original agrees with itself."""
        return not self.is_random and any(row.difference is not None and row.difference.beyond for row in self.rows)

    @property
    def is_random(self) -> bool:
        """The original's outputs differ from run to run, so that nothing is said of those of others."""
        return any(row.difference is not None and row.difference.beyond for row in self.rows if row.name == CONTROL)

    def to_dict(self) -> Dict[str, Any]:
        """As --json has it (docs/schema/effect-1.schema.json)."""
        found = asdict(self)
        for row in found["rows"]:
            if row["difference"] is not None:  # JSON has no infinity
                row["difference"].update({key: None for key in ("absolute", "relative") if row["difference"][key] == float("inf")})
        return found


def ratio_of(row: Row, clock: str) -> Optional[Ratio]:
    """By CLOCK, "cpu" or "wall"."""
    return row.cpu_ratio if clock == "cpu" else row.wall_ratio


def choose(rows: Sequence[Row], clock: str) -> str:
    """The target whose output is faster than the original beyond doubt; of several that cannot be told apart the first.

    Beyond doubt: its interval lies above 1, and above that of the original against itself; the median is above 1.02.
    """
    control = next((ratio for row in rows if row.name == CONTROL for ratio in [ratio_of(row, clock)] if ratio), None)
    floor = max(1.0, control.high) if control else 1.0
    faster = [(row.name, ratio) for row in rows if row.fused is not None and not (row.difference and row.difference.beyond)
              for ratio in [ratio_of(row, clock)] if ratio and ratio.low > floor and ratio.median > _WORTHWHILE]
    if not faster:
        return ORIGINAL
    best = max(ratio.median for _, ratio in faster)
    return next(name for name, ratio in faster if ratio.high >= best)
