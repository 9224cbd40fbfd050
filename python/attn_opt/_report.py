"""What a run did: a typed view of the JSON report (docs/report.md)."""

from __future__ import annotations

import html
import json
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from . import _core


def _attribute(key: str, doc: str) -> Any:
    return property(lambda self: self._json[key], doc=doc)


class _View:
    """An object of the report; `to_dict()` has all of it, keys of later versions included."""

    __slots__ = ("_json",)

    def __init__(self, json_object: Mapping[str, Any]):
        self._json = dict(json_object)

    def to_dict(self) -> Dict[str, Any]:
        """The object as the JSON report has it."""
        return dict(json.loads(json.dumps(self._json)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._json == other._json

    __hash__ = None  # type: ignore[assignment]


class SiteMiss(_View):
    """Why a site was not fused."""

    __slots__ = ()
    id: str = _attribute("id", "Stable id; docs/misses.md has a paragraph for each.")
    node: Optional[str] = _attribute("node", "Where recognition stopped.")
    op: Optional[str] = _attribute("op", "Operator of that node.")
    found: str = _attribute("found", "What was found there.")
    hint: Optional[str] = _attribute("hint", "The command that prints what the manual says of it; None for an id of a pattern of one's own.")

    def __repr__(self) -> str:
        return f"<Miss {self.id} at {self.node}: {self.found}>"


class OtherMiss(SiteMiss):
    """What a further pattern missed at a site."""

    __slots__ = ()
    pattern: str = _attribute("pattern", "Name of the pattern.")
    peeled: List[str] = _attribute("peeled", "What it had recognised.")


class Precondition(_View):
    """Something that must hold for a rewrite to be exact."""

    __slots__ = ()
    id: str = _attribute("id", "As docs/verification.md describes them.")
    proven: bool = _attribute("proven", "False: it is assumed, and strict=True refuses the site unless it is a refinement.")
    refinement: bool = _attribute("refinement", "Where it does not hold NaN becomes a number, and nothing else differs.")
    detail: str = _attribute("detail", "What it is about, or why it is proven.")


class Verification(_View):
    """What came of running a site before and after."""

    __slots__ = ()
    verdict: str = _attribute("verdict", "'verified', 'failed' (numbers differ) or 'unverified' (could not be run).")
    reason: Optional[str] = _attribute("reason", "Of the last two.")
    algebra_difference: float = _attribute("algebra_difference", "Largest relative difference in double.")
    type_difference_ulp: float = _attribute("type_difference_ulp", "Largest difference in the model's own type.")
    draws: int = _attribute("draws", "Input sets that both sides ran on.")
    seconds: float = _attribute("seconds", "Wall time.")
    shared: bool = _attribute("shared", "The verdict is that of an equal site.")
    explained_by: List[str] = _attribute("explained_by", "Assumed preconditions that differences were put down to.")


class _Place(_View):
    """One place of the model and what came of it."""

    __slots__ = ()
    name: str = _attribute("name", "The node at which it was found.")
    op: str = _attribute("op", "That node's operator.")
    graph: str = _attribute("graph", "'main', or the path of bodies.")
    pattern: Optional[str] = _attribute("pattern", "Name of the pattern or rewrite.")

    @property
    def miss(self) -> Optional[SiteMiss]:
        """Why nothing was written; of missed places, and of refused ones that could not be written."""
        return SiteMiss(self._json["miss"]) if self._json["miss"] else None

    @property
    def verification(self) -> Optional[Verification]:
        return Verification(self._json["verification"]) if self._json["verification"] else None


class Site(_Place):
    """One attention and what came of it."""

    __slots__ = ("explanation",)
    module: Optional[str] = _attribute("module", "Module of the user's program, 'model.layers.0.self_attn'; None: not known.")
    source_file: Optional[str] = _attribute("source_file", "The user's file; None: not known.")
    source_line: Optional[int] = _attribute("source_line", "From 1.")
    outcome: str = _attribute("outcome", "'fused', 'refused' or 'missed'.")
    form: Optional[str] = _attribute("form", "'3d' or '4d': operands of the written node.")
    q_heads: Optional[int] = _attribute("q_heads", "None where the model does not fix them.")
    kv_heads: Optional[int] = _attribute("kv_heads", "None where the model does not fix them.")
    past: Optional[bool] = _attribute("past", "The written node has a KV cache.")
    is_causal: Optional[bool] = _attribute("is_causal", "The written node masks later keys by its attribute.")
    mask: Optional[str] = _attribute("mask", "Which masks is_causal says, and why not the others.")
    scale: Optional[float] = _attribute("scale", "Of the scores.")
    softcap: Optional[float] = _attribute("softcap", "0: none.")
    peeled: List[str] = _attribute("peeled", "What was recognised, from the anchor on.")
    group: int = _attribute("group", "Its place in `Report.groups`.")
    type: Optional[str] = _attribute("type", "Of Q, K and V.")
    tensors: Dict[str, List[str]] = _attribute("tensors", "Names by role: 'Q', 'K', 'V', 'mask', 'output', ...")
    nodes_before: Optional[List[str]] = _attribute("nodes_before", "What the site replaces, or the way to where it was missed.")
    nodes_after: Optional[List[str]] = _attribute("nodes_after", "What is written.")
    effect: Optional[Dict[str, Any]] = _attribute("effect", "What a fused site spares each run.")
    match_seconds: float = _attribute("match_seconds", "Wall time.")
    explanation: str

    def __init__(self, json_object: Mapping[str, Any], explanation: str):
        super().__init__(json_object)
        self.explanation = explanation

    @property
    def fused(self) -> bool:
        return self.outcome == "fused"

    @property
    def other_misses(self) -> List[OtherMiss]:
        """What further patterns missed at the same node."""
        return [OtherMiss(one) for one in self._json["other_misses"]]

    @property
    def preconditions(self) -> List[Precondition]:
        return [Precondition(one) for one in self._json["preconditions"]]

    def __str__(self) -> str:
        return self.explanation

    def __repr__(self) -> str:
        return f"<Site {self.name}: {self.outcome}>"


class Rewritten(_Place):
    """What became of one place where a rewrite matched."""

    __slots__ = ("explanation",)
    outcome: str = _attribute("outcome", "'rewritten', 'refused' or 'missed'.")
    summary: str = _attribute("summary", "What happened, in one line.")
    nodes: List[str] = _attribute("nodes", "Names of the nodes that were replaced.")
    written: List[str] = _attribute("written", "Operators of those that were written.")
    peeled: List[str] = _attribute("peeled", "What was recognised, as far as the rewrite says it.")
    match_seconds: float = _attribute("match_seconds", "Wall time.")
    explanation: str

    def __init__(self, json_object: Mapping[str, Any], explanation: str = ""):
        super().__init__(json_object)
        self.explanation = explanation

    @property
    def applied(self) -> bool:
        return bool(self._json["outcome"] == "rewritten")

    def __str__(self) -> str:
        return f"{self.name}  {self.summary}"

    def __repr__(self) -> str:
        return f"<Rewritten {self.name}: {self.outcome}>"


class Report(_View):
    """What a run did, site by site. `str(report)` is the text report of the command."""

    __slots__ = ("_text", "_explanations")
    schema_version: int = _attribute("schema_version", "Grows when a key changes its meaning or goes.")
    input: str = _attribute("input", "Path of the model; empty for one in memory.")
    output: Optional[str] = _attribute("output", "Path of what was written.")
    changed: bool = _attribute("changed", "False: nothing was fused.")
    opset: Dict[str, int] = _attribute("opset", "Version of ai.onnx: {'before': ..., 'after': ...}.")
    nodes: Dict[str, int] = _attribute("nodes", "Number of nodes: {'before': ..., 'after': ...}.")
    attention_nodes: int = _attribute("attention_nodes", "Operators of attention that the model had already and that are no sites.")
    operators: List[Dict[str, Any]] = _attribute("operators", "Those whose number changed: {'op', 'before', 'after'}.")
    effect: Dict[str, Any] = _attribute("effect", "What all fused sites spare each run.")
    model_verification: Optional[Dict[str, Any]] = _attribute("model_verification", "With verify='model'.")
    kv_cache: Optional[Dict[str, Any]] = _attribute("kv_cache", "With kv_cache='static': what became of the caches.")
    not_raised: List[str] = _attribute("not_raised", "What kept the model from being raised to the opset.")
    seconds: Dict[str, float] = _attribute("seconds", "Wall time of 'read', 'match', 'verify', 'write', and the 'total'.")
    options: str = _attribute("options", "Those that are not their defaults.")
    bytes: Dict[str, Optional[int]] = _attribute("bytes", "Sizes of the files 'input' and 'output', and of all 'weights'.")
    groups: List[Dict[str, Any]] = _attribute("groups", "Equal sites, and what is drawn of them.")
    manual: Dict[str, Any] = _attribute("manual", "What the documentation says of the ids that occur.")

    def __init__(self, text_of_json: str, text: str = "", explanations: Sequence[str] = ()):
        super().__init__(json.loads(text_of_json))
        self._text = text
        self._explanations = list(explanations) or [""] * (len(self._json["sites"]) + len(self._json["rewrites"]))

    @property
    def sites(self) -> List[Site]:
        """Every attention that was found."""
        return [Site(site, explanation) for site, explanation in zip(self._json["sites"], self._explanations)]

    @property
    def rewrites(self) -> List[Rewritten]:
        """Every place where a rewrite matched."""
        return [Rewritten(one, explanation) for one, explanation in zip(self._json["rewrites"], self._explanations[len(self._json["sites"]):])]

    @property
    def rewritten(self) -> int:
        """Number of rewrites that were applied."""
        return int(self._json["summary"]["rewritten"])

    @property
    def fused(self) -> int:
        """Number of sites that were fused."""
        return int(self._json["summary"]["fused"])

    @property
    def refused(self) -> int:
        """Number of sites that were recognised and not written."""
        return int(self._json["summary"]["refused"])

    @property
    def missed(self) -> int:
        """Number of sites that were not recognised."""
        return int(self._json["summary"]["missed"])

    @property
    def assumed(self) -> Dict[str, int]:
        """Fused sites that depend on each precondition that is assumed, by its id."""
        return dict(self._json["summary"]["assumed"])

    @property
    def refined(self) -> int:
        """Number of fused sites at which NaN may become a number."""
        return int(self._json["summary"]["refined"])

    @property
    def unverified(self) -> int:
        """Number of fused sites that were not verified."""
        return int(self._json["summary"]["unverified"])

    @property
    def misses(self) -> List[SiteMiss]:
        """Why sites were not fused, in the order of the sites: of each the miss that got furthest, then those of other patterns."""
        return [miss for site in self.sites if site.miss is not None for miss in (site.miss, *site.other_misses)]

    def to_json(self, indent: Optional[int] = 2) -> str:
        """The report as `--report FILE.json` writes it."""
        return json.dumps(self._json, indent=indent, ensure_ascii=False)

    def to_html(self) -> str:
        """The page that `--report FILE.html` writes: one that needs nothing but itself."""
        return str(_core.rendered(json.dumps(self._json), "html"))

    def to_markdown(self) -> str:
        """What `--report FILE.md` writes: for a comment on a pull request."""
        return str(_core.rendered(json.dumps(self._json), "md"))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f'<iframe srcdoc="{html.escape(self.to_html())}" style="width: 100%; height: 40rem; border: 0"></iframe>'

    def __iter__(self) -> Iterator[Site]:
        return iter(self.sites)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        rewrites = self._json["rewrites"]
        rewritten = f"; {self.rewritten} of {len(rewrites)} rewrites applied" if rewrites else ""
        return f"<Report: {self.fused} fused, {self.refused} refused, {self.missed} missed{rewritten}>"


class OutputDifference(_View):
    """How far an output of one model lies from that of another."""

    __slots__ = ()
    name: str = _attribute("name", "The first model's name for it.")
    agrees: bool = _attribute("agrees", "Within the tolerance.")
    absolute: float = _attribute("absolute", "Largest absolute difference.")
    relative: float = _attribute("relative", "Largest relative difference.")
    ulp: float = _attribute("ulp", "Largest difference in units in the last place.")
    nans_elsewhere: int = _attribute("nans_elsewhere", "Elements of which one is NaN.")
    infinities_elsewhere: int = _attribute("infinities_elsewhere", "Elements that are not the same infinity.")
    beyond: int = _attribute("beyond", "Elements beyond the tolerance.")

    def __str__(self) -> str:
        return f"{self.name}  {'agrees' if self.agrees else 'differs'}: {self._json['text']}"

    __repr__ = __str__


class Comparison(List[OutputDifference]):
    """The outputs of two models on the same inputs; true if all agree."""

    @property
    def agrees(self) -> bool:
        return all(output.agrees for output in self)

    def __bool__(self) -> bool:
        return self.agrees

    def __str__(self) -> str:
        return "\n".join(map(str, self))


class CaseResult(_View):
    """What came of a pattern regression case."""

    __slots__ = ()
    name: str = _attribute("name", "As its CASE line has it.")
    path: str = _attribute("path", "Its file.")
    failures: List[str] = _attribute("failures", "What was not as expected; empty: the case passed.")
    seconds: float = _attribute("seconds", "Wall time.")

    @property
    def passed(self) -> bool:
        return not self.failures

    def __repr__(self) -> str:
        return f"<Case {self.name}: {'passed' if self.passed else 'failed'}>"


class TestResults(List[CaseResult]):
    """What came of pattern regression cases; true if all passed."""

    __test__ = False  # for pytest

    def __init__(self, results: Sequence[Mapping[str, Any]], summary: str):
        super().__init__(CaseResult(result) for result in results)
        self._text = "".join(result["text"] for result in results) + summary

    @property
    def failed(self) -> List[CaseResult]:
        """The cases that did not pass."""
        return [result for result in self if not result.passed]

    def __bool__(self) -> bool:
        return not self.failed

    def __str__(self) -> str:
        return self._text
