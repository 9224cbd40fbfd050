"""What attn_opt raises."""

from __future__ import annotations

import os
import re
import traceback
from typing import TYPE_CHECKING, Optional, Tuple

if TYPE_CHECKING:
    from ._report import Report


# Options that texts of the command name, with what follows the name.
_OPTION = re.compile(r"--(on-mismatch|verify|target|stage|kv-cache|opset) ([\w-]+)|--(allow-none|check|strict|exact)\b|--(opset|assume)\b")


def _in_python(text: str) -> str:
    """TEXT with the command's options as arguments, "--verify sites" as 'verify="sites"'; commands in it stay."""
    def argument(found: "re.Match[str]") -> str:
        name, value, flag, alone = found.groups()
        if name:
            return f"{name.replace('-', '_')}={value if value.isdigit() else chr(34) + value + chr(34)}"
        return f"{flag.replace('-', '_')}=True" if flag else f"{alone}="

    return text if "attn-opt " in text else _OPTION.sub(argument, text)


class Error(Exception):
    """A run that failed. Its text is one line, "WHERE: WHAT; REMEDY".

    Attributes:
        status: the command's exit status for failures of this kind (docs/cli.md).
        what: what is wrong.
        where: the file, node or value; may be empty.
        remedy: what to do about it; may be empty.
        report: the report of the run, where there is one (requirements and mismatches).
    """

    status: int = 3

    def __init__(self, what: str, where: str = "", remedy: str = ""):
        if where.startswith("--"):  # an option as the command has it
            where = where[2:].replace("-", "_")
        remedy = _in_python(remedy)
        super().__init__((f"{where}: " if where else "") + what + (f"; {remedy}" if remedy else ""))
        self.what = what
        self.where = where
        self.remedy = remedy
        self.report: Optional[Report] = None

    def __reduce__(self) -> Tuple[type, Tuple[str, str, str]]:
        return type(self), (self.what, self.where, self.remedy)


class RequirementError(Error):
    """A requirement (require_fused, check) is not met. Status 1."""

    status = 1


class UsageError(Error, ValueError):
    """An option that there is not, or a value that it cannot have. Status 2."""

    status = 2


class InvalidModelError(Error):
    """The model cannot be read or is not valid ONNX. Status 3."""


class UnsupportedError(Error):
    """The executor lacks an operator or a type. Status 3."""


class LimitError(Error):
    """The model is beyond a limit (size, nesting, memory, time). Status 3."""


class MismatchError(Error):
    """Numbers differ. Status 4."""

    status = 4


class OutputError(Error):
    """An output cannot be written. Status 5."""

    status = 5


class PatternError(Error):
    """A pattern or rewrite written in Python raised an exception, which is the __cause__. Status 2."""

    status = 2


def pattern_error(pattern: str, node: str, cause: BaseException) -> PatternError:
    """What the extension module raises for CAUSE, raised by PATTERN ("pattern 'mine'", "rewrite 'mine'") at NODE."""
    package = os.path.dirname(__file__)
    places = [place for place in traceback.extract_tb(cause.__traceback__) if os.path.dirname(place.filename) != package]
    line = f", {places[-1].filename}:{places[-1].lineno}" if places else ""
    error = PatternError(f"{type(cause).__name__}: {cause}", f"{pattern} at node '{node}'{line}")
    error.__cause__ = cause
    return error
