"""Combinators for what a value is to be: docs/rewrites.md#combinators describes them.

    from attn_opt.matcher import fits, op

    found = fits(op("Relu", [op("Neg", ["x"])]), node.outputs[0], context)  # {"x": ...}, or a Miss

In the place of a matcher stands a name, which is one value everywhere; a number, which is that within rounding; or a list of integers.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Sequence, Tuple, Union

from ._core import Context, Facts, Node, Value, fitted
from ._description import Miss

__all__ = ["Matcher", "any", "commuted", "either", "fits", "number", "number_is", "number_near", "op", "optional", "product_near",
           "product_of", "reduced_over", "reduced_over_last", "repeated", "where"]


class Matcher:
    """What a value is to be. The functions of this module make them; they may be used any number of times."""

    __slots__ = ("kind", "arguments")

    def __init__(self, kind: str, *arguments: Any):
        self.kind = kind
        self.arguments = arguments

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(map(repr, self.arguments))})"


Wanted = Union[Matcher, str, float, Sequence[int]]


def fits(wanted: Wanted, value: Value, context: Union[Context, Facts], id: str = "no-match") -> Union[Dict[str, Any], Miss]:
    """What `wanted` captures at `value`, by name, None for what is not there; or a Miss of the id `id` that says what was found where
    matching got furthest. `context` is what match() was given, or its facts. A Miss of the id "no-match" is traced, but not reported.
    """
    found = fitted(_checked(wanted), value, context)
    return found if isinstance(found, dict) else Miss(id, *found)


def any(name: str = "") -> Matcher:
    """Fits every value. A name in the place of a matcher is the same, and one value everywhere."""
    return Matcher("any", name)


def number(name: str = "") -> Matcher:
    """Fits a value all of whose elements are one number known beforehand."""
    return Matcher("number", name)


def number_is(wanted: float) -> Matcher:
    """number() of one that equals `wanted`."""
    return Matcher("number_is", float(wanted))


def number_near(wanted: float, relative: float = 1e-3) -> Matcher:
    """number() of one that differs from `wanted` by at most `relative` of it. A number in the place of a matcher is this one."""
    return Matcher("number_near", float(wanted), float(relative))


def op(op: str, inputs: Sequence[Wanted] = (), node: str = "", **attributes: Any) -> Matcher:
    """Fits the first output of a node of the operator `op` ("Op" or "domain::Op") whose first inputs fit; more inputs may follow.

    Args:
        node: the name under which the node is captured.
        attributes: what attributes are to be, given or by default: ints, strings, lists; floats within rounding; or a function of
            the value, which is None where there is none.
    """
    operands: List[Tuple[Any, bool]] = []
    for one in inputs:
        is_optional = isinstance(one, Matcher) and one.kind == "optional"
        operands.append((one.arguments[0] if isinstance(one, Matcher) and is_optional else _checked(one), is_optional))
    return Matcher("op", op, operands, node, {name: _test_of(wanted) for name, wanted in attributes.items()})


def optional(wanted: Wanted) -> Matcher:
    """An operand of op() that may be absent; if it is there it fits `wanted`."""
    return Matcher("optional", _checked(wanted))


def commuted(op_type: str, one: Wanted, other: Wanted, node: str = "", **attributes: Any) -> Matcher:
    """op() for two inputs in either order."""
    return either(op(op_type, [one, other], node, **attributes), op(op_type, [other, one], node, **attributes))


def either(*alternatives: Wanted) -> Matcher:
    """Fits if one of the alternatives does; the first that does sets its captures."""
    return Matcher("either", [_checked(one) for one in alternatives])


def repeated(op: str, inner: Wanted, most: int = 8) -> Matcher:
    """Fits what `inner` fits, or the operator `op` of that, at most `most` times."""
    return Matcher("repeated", op, _checked(inner), most)


def where(inner: Wanted, test: Callable[[Node], bool]) -> Matcher:
    """Fits what `inner` fits if `test` is true of the node that makes it."""
    return Matcher("where", _checked(inner), test)


def product_of(factors: Sequence[Wanted], coefficient: str = "") -> Matcher:
    """Fits a product, in any order and nesting of Mul, and of Div by a number, of values that fit `factors`, one each. What the
    numbers in it multiply to is captured under the name `coefficient`.
    """
    return Matcher("product_of", [_checked(one) for one in factors], coefficient)


def product_near(wanted: float, factors: Sequence[Wanted]) -> Matcher:
    """product_of() whose numbers multiply to about `wanted`."""
    return Matcher("product_near", float(wanted), [_checked(one) for one in factors])


def reduced_over(op: str, axes: Sequence[int], input: Wanted) -> Matcher:
    """Fits ReduceSum, ReduceMax, ... (`op`) of `input` over `axes`, which are kept with size 1, be they an attribute or an input."""
    return Matcher("reduced_over", op, list(axes), _checked(input))


def reduced_over_last(op: str, input: Wanted) -> Matcher:
    """reduced_over() the last axis alone."""
    return reduced_over(op, [-1], input)


def _checked(wanted: Any) -> Any:
    if isinstance(wanted, Matcher) and wanted.kind == "optional":
        raise TypeError("optional() is for operands of op() alone")
    if isinstance(wanted, (Matcher, str, int, float)) or (isinstance(wanted, (list, tuple)) and all(isinstance(one, int) for one in wanted)):
        return wanted
    raise TypeError(f"{wanted!r} is no matcher: what is one is made by attn_opt.matcher, or is a name, a number or a list of integers")


def _test_of(wanted: Any) -> Callable[[Any], bool]:
    return wanted if callable(wanted) else lambda found: _is_near(wanted, found)


def _is_near(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, (list, tuple)):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(_is_near, wanted, found))
    if isinstance(wanted, float):
        return isinstance(found, (int, float)) and math.isclose(wanted, found, rel_tol=1e-3)
    return bool(wanted == found)
