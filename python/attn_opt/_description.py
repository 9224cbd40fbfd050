"""What a pattern written in Python returns, and what makes a function a pattern."""

from __future__ import annotations

import math
from typing import Any, Callable, Optional, Sequence, Tuple, Union

from . import _core
from ._core import Builder, Context, Node, Value
from ._errors import UsageError

Part = Union[Value, Tuple[Value, str]]


class Term:
    """What changes the scores before the softmax: a Bias, a Keep or a Drop."""

    __slots__ = ("kind", "value", "number")

    def __init__(self, kind: str, value: Value, number: float):
        if not isinstance(value, Value):
            raise TypeError(f"a term's value is a Value, not {type(value).__name__}")
        self.kind = kind
        self.value = value
        self.number = float(number)

    def __repr__(self) -> str:
        return f"{self.kind.capitalize()}({self.value!r}, {self.number})"


def Bias(value: Value, coefficient: float = 1.0) -> Term:
    """scores + coefficient * value. `value` is floating and broadcasts to (B, H, L, S)."""
    return Term("bias", value, coefficient)


def Keep(mask: Value, fill: float = -math.inf) -> Term:
    """Where(mask, scores, fill). `mask` is bool and broadcasts to (B, H, L, S)."""
    return Term("keep", mask, fill)


def Drop(mask: Value, fill: float = -math.inf) -> Term:
    """Where(mask, fill, scores). `mask` is bool and broadcasts to (B, H, L, S)."""
    return Term("drop", mask, fill)


class Sdpa:
    """Attention, described: softmax(terms(softcap(scale * Q K^T))) V.

    Q, K, V and the output are given as a Value whose axes are "bhsd", or as (Value, axes). Axes have a letter each: b batch,
    h heads, s rows (queries of Q and the output, keys of K and V), d features. Letters in brackets share an axis, the outer
    one first: "bs(hd)", "(bh)sd". What is not spelled has size 1.

    Args:
        q, k, v: of one floating type. Layout, scales, repeated heads and caches above them are found by themselves.
        output: the product of the probabilities with V, or a layout of it.
        scale: of the scores; None: 1 / sqrt(features of Q).
        heads, kv_heads: where heads share an axis; kv_heads is heads by default.
        softcap: scores become softcap * tanh(scores / softcap), before any term; 0: none.
        terms: Bias, Keep and Drop, innermost first.
        is_causal: query i sees the keys j <= i + length of the past.
        nonpad_kv_seqlen: int64 (B); keys from there on are masked.
        past_key, past_value: (B, Hkv, P, D); K is past_key and then k.
        present_key, present_value: what the model makes of both; without a past outputs of the node that makes `output`.
        softmax_precision: type of the softmax ("float32"), if it is not that of Q.
        guarded: probabilities of rows without a key are made 0; else they are NaN.
        subtracts_maximum: False if the softmax takes exp() of the scores as they are.
        assumed: ids of preconditions (docs/verification.md) that the pattern takes for granted; strict=True refuses the site.
        peeled: what was recognised, for the report.

    Raises:
        UsageError: axes that are spelled wrong, heads that are less than none.
    """

    def __init__(self, q: Part, k: Part, v: Part, output: Part, *, scale: Optional[float] = None, heads: int = 0,
                 kv_heads: int = 0, softcap: float = 0.0, terms: Sequence[Term] = (), is_causal: bool = False,
                 nonpad_kv_seqlen: Optional[Value] = None, past_key: Optional[Value] = None,
                 past_value: Optional[Value] = None, present_key: Optional[Value] = None,
                 present_value: Optional[Value] = None, softmax_precision: Optional[str] = None, guarded: bool = False,
                 subtracts_maximum: bool = True, assumed: Sequence[str] = (), peeled: Sequence[str] = ()):
        self.q, self.q_axes = _part("q", q)
        self.k, self.k_axes = _part("k", k)
        self.v, self.v_axes = _part("v", v)
        self.output, self.output_axes = _part("output", output)
        if heads < 0 or kv_heads < 0:
            raise UsageError(f"{min(heads, kv_heads)} heads", "Sdpa", "0: as the axes say")
        self.scale = None if scale is None else float(scale)
        self.heads = heads
        self.kv_heads = kv_heads
        self.softcap = float(softcap)
        self.terms = list(terms)
        self.is_causal = is_causal
        self.nonpad_kv_seqlen = nonpad_kv_seqlen
        self.past_key = past_key
        self.past_value = past_value
        self.present_key = present_key
        self.present_value = present_value
        self.softmax_precision = softmax_precision
        self.guarded = guarded
        self.subtracts_maximum = subtracts_maximum
        self.assumed = list(assumed)
        self.peeled = list(peeled)


def _part(name: str, given: Part) -> Tuple[Value, str]:
    value, axes = given if isinstance(given, tuple) else (given, "bhsd")
    if not isinstance(value, Value):
        raise TypeError(f"Sdpa.{name} is a Value or (Value, axes), not {type(value).__name__}")
    wrong = _core.wrong_axes(axes)
    if wrong:
        raise UsageError(wrong, f"Sdpa.{name}", "axes are spelled as 'bhsd' or 'bs(hd)'")
    return value, axes


class Miss:
    """Why there is no match: a stable id ("power.scores"), what was found, and the node that was looked at (else the anchor).

    A pattern returns None where there is simply no attention: that is not reported.
    """

    def __init__(self, id: str, detail: str = "", node: Optional[Node] = None, peeled: Sequence[str] = ()):
        if not id or any(c.isspace() for c in id):
            raise UsageError(f"{id!r} is no id of a miss", "Miss", "a word such as 'power.scores'")
        self.id = id
        self.detail = detail
        self.node = node
        self.peeled = list(peeled)

    def __repr__(self) -> str:
        return f"Miss({self.id!r}, {self.detail!r})"


def _check_tried_at(kind: str, name: str, anchor: Sequence[str]) -> None:
    if not name or not all(c.isalnum() or c in "_-" for c in name):
        raise UsageError(f"'{name}' is no name of a {kind}", remedy="letters, digits, _ and -")
    if not anchor:
        raise UsageError(f"a {kind} has an operator that it is tried at", f"{kind} '{name}'", "give anchor=('Softmax',)")
    for operator in anchor:
        _core.check_anchor(operator, f"{kind} '{name}', anchor")


Match = Callable[[Node, Context], Union[Sdpa, Miss, None]]


class Pattern:
    """A pattern written in Python: give it to optimize(patterns=[...]). It can be called like its function."""

    def __init__(self, match: Match, name: str, summary: str, anchor: Sequence[str]):
        self.match = match
        self.name = name
        self.summary = summary
        self.anchor = [anchor] if isinstance(anchor, str) else list(anchor)
        _check_tried_at("pattern", name, self.anchor)

    def __call__(self, node: Node, context: Context) -> Any:
        return self.match(node, context)

    def __repr__(self) -> str:
        return f"<Pattern {self.name} at {', '.join(self.anchor)}>"


def pattern(bare: None = None, /, *, anchor: Union[str, Sequence[str]], name: Optional[str] = None,
            summary: Optional[str] = None) -> Callable[[Match], Pattern]:
    """Makes a function match(node, context) a pattern, which is tried at every node whose operator is one of `anchor`.

    Args:
        anchor: operators: "Softmax" of ai.onnx, "domain::Op" of others.
        name: for only=, disable= and reports; by default the function's.
        summary: one line; by default the first of the function's docstring.
    """
    if bare is not None:  # without anchor= Python says what is missing
        raise TypeError("a function is decorated with @attn_opt.pattern(anchor=...), not handed to it")

    def make(match: Match) -> Pattern:
        described = (match.__doc__ or "").strip().split("\n")[0]
        return Pattern(match, name or match.__name__, summary or described, anchor)

    return make


class RewriteMatch:
    """What match() of a rewrite may return where apply() needs to be told more than what was found.

    Args:
        found: what apply() gets.
        insert_before: the node that the new ones go in front of; by default that of match(), or the first that reads what is replaced.
        computed: values whose contents the rewrite rests on: verification computes them as the model does, and draws what they are
            made of.
        peeled: what was recognised, for the report.
    """

    def __init__(self, found: Any, *, insert_before: Optional[Node] = None, computed: Sequence[Value] = (), peeled: Sequence[str] = ()):
        self.found = found
        self.insert_before = insert_before
        self.computed = list(computed)
        self.peeled = list(peeled)


class Rewrite:
    """A rewrite written in Python: give it to optimize(patterns=[...])."""

    def __init__(self, match: Callable[[Node, Context], Any], apply: Callable[[Any, Builder], Any], name: str, summary: str,
                 anchor: Union[str, Sequence[str]], priority: int = 0):
        self.match = match
        self.apply = apply
        self.name = name
        self.summary = summary
        self.anchor = [anchor] if isinstance(anchor, str) else list(anchor)
        self.priority = int(priority)
        self._class: Optional[type] = None
        _check_tried_at("rewrite", name, self.anchor)

    def __mro_entries__(self, bases: Tuple[Any, ...]) -> Tuple[type, ...]:
        """A class that derives from a rewrite derives from the class that was decorated."""
        if self._class is None:
            raise TypeError(f"{self!r} was made of two functions: there is no class to derive from")
        return (self._class,)

    def __repr__(self) -> str:
        return f"<Rewrite {self.name} at {', '.join(self.anchor)}>"


def rewrite(bare: None = None, /, *, anchor: Union[str, Sequence[str]], name: Optional[str] = None, summary: Optional[str] = None,
            priority: int = 0) -> Callable[[type], Rewrite]:
    """Makes a class with match(self, node, context) and apply(self, match, build) a rewrite.

    match() is tried at every node whose operator is one of `anchor`. It returns None where there is nothing to rewrite, a Miss where
    something is in the way, or whatever apply() needs, also in a RewriteMatch. apply() makes nodes with `build` and returns {value: new value}: each value of
    the model that is replaced, and what it is from now on. What is written is run against what it replaces, and refused if numbers differ.

    Args:
        anchor: operators: "Relu" of ai.onnx, "domain::Op" of others.
        name: for only=, disable= and reports; by default the class's.
        summary: one line; by default the first of the class's docstring.
        priority: the highest is tried first; those above 100 run before attention is fused.
    """
    if bare is not None:
        raise TypeError("a class is decorated with @attn_opt.rewrite(anchor=...), not handed to it")

    def make(written: type) -> Rewrite:
        for function in ("match", "apply"):
            if not callable(getattr(written, function, None)):
                raise TypeError(f"{written.__name__} has no {function}()")
        one = written()
        described = (written.__doc__ or "").strip().split("\n")[0]
        made = Rewrite(one.match, one.apply, name or written.__name__, summary or described, anchor, priority)
        made._class = written
        return made

    return make
