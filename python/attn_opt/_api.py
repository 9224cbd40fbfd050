"""optimize(), explain(), run(), compare(), patterns() and test()."""

from __future__ import annotations

import difflib
import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core
from ._description import Pattern, Rewrite
from ._errors import MismatchError, UsageError
from ._models import given_model
from ._report import Comparison, OutputDifference, Report, Rewritten, Site, SiteMiss, TestResults

Patterns = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]", Pattern]]]
Dims = Mapping[str, Union[int, Sequence[int]]]
Trace = Callable[[str, str, SiteMiss], Any]


def _without_none(options: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _names(given: Union[str, Sequence[str]]) -> List[str]:
    return given.split(",") if isinstance(given, str) else list(given)


# NumPy's too, of which shapes and counts are often made.
_INTEGERS = (int, np.integer)


def _assumed(given: Union[str, Sequence[str], None]) -> List[str]:
    """As --assume has it, where an empty list is the word none."""
    return [] if given is None else _names(given) or ["none"]


def _dims(given: Optional[Dims]) -> List[str]:
    """{"batch": 2, "seq": [1, 7]} as "batch=2", "seq=1,7"."""
    sizes = {name: [size] if isinstance(size, _INTEGERS) else size for name, size in (given or {}).items()}
    return [f"{name}={','.join(map(str, all_of_it))}" for name, all_of_it in sizes.items()]


def _is_written_as_rewrite(given: Any) -> bool:
    return callable(getattr(given, "match", None)) and callable(getattr(given, "apply", None))


def _no_pattern(given: Any, name: str) -> TypeError:
    called = getattr(given, "__name__", type(given).__name__)
    if isinstance(given, type) or _is_written_as_rewrite(given):
        return TypeError(f"{name}: {called} is no rewrite yet: decorate the class with @attn_opt.rewrite(anchor=...), the operator that "
                         "it is to be tried at")
    if callable(given):
        return TypeError(f"{name}: {called}() is no pattern yet: decorate it with @attn_opt.pattern(anchor=...), "
                         "the operator that it is to be tried at")
    return TypeError(f"{name} is {given!r}, a {type(given).__name__}: patterns are functions with @attn_opt.pattern(anchor=...), "
                     "classes with @attn_opt.rewrite(anchor=...), folders of rules, or a list of these")


def _patterns(given: Patterns) -> Dict[str, Any]:
    members = (str, os.PathLike, Pattern, Rewrite)
    if isinstance(given, members):
        parts: List[Any] = [given]
    elif isinstance(given, Iterable) and not isinstance(given, (bytes, Mapping)):
        parts = list(given)
    else:
        raise _no_pattern(given, "patterns")
    for index, part in enumerate(parts):
        if not isinstance(part, members):
            raise _no_pattern(part, f"patterns[{index}]")
    return {"rules": [os.fspath(part) for part in parts if isinstance(part, (str, os.PathLike))],
            "patterns": [part for part in parts if isinstance(part, Pattern)],
            "rewrites": [part for part in parts if isinstance(part, Rewrite)]}


def _tracer(trace: Optional[Trace]) -> Optional[Callable[[str, str, Dict[str, Any]], None]]:
    """What calls TRACE with a SiteMiss."""
    if trace is None:
        return None
    if not callable(trace):
        raise TypeError(f"trace={trace!r}: a {type(trace).__name__} is no function of (pattern, node, miss)")
    told = trace

    def call(pattern: str, node: str, miss: Dict[str, Any]) -> None:
        told(pattern, node, SiteMiss(miss))

    return call


def _priorities(given: Optional[Mapping[str, int]]) -> List[str]:
    return [f"{name}={int(priority)}" for name, priority in (given or {}).items()]


def _opset(given: Union[int, str, None]) -> str:
    """What --opset is given: a number, "keep", or nothing."""
    if given is None or given == "keep" or isinstance(given, _INTEGERS):
        return "" if given is None else str(given)
    raise TypeError(f"opset={given!r}: a {type(given).__name__} is no value of it")


def _trial(dims: Optional[Dims], rtol: Optional[float], atol: Optional[float], threads: int,
           memory_limit: Optional[int]) -> Dict[str, Any]:
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance is not None and not 0 <= tolerance < float("inf"):
            raise UsageError(f"{tolerance!r} is no number of at least 0", name)
    return {"dims": _dims(dims), "rtol": rtol, "atol": atol, "threads": threads, "memory_limit": memory_limit}


def _required(require_fused: Union[int, str, None]) -> Dict[str, Any]:
    if require_fused is None or require_fused == "all":
        return {"require_all_fused": require_fused == "all"}
    if isinstance(require_fused, _INTEGERS) and int(require_fused) >= 0:
        return {"require_fused": int(require_fused)}
    raise UsageError(f"{require_fused!r} is neither a number nor 'all'", "require_fused")


def optimize(model: Any, output: Union[str, "os.PathLike[str]", None] = None, *, opset: Union[int, str, None] = None, target: str = "portable",
             form: str = "auto", stage: str = "attention", kv_cache: str = "growing", only: Union[str, Sequence[str]] = (),
             disable: Union[str, Sequence[str]] = (), patterns: Patterns = (), also: Union[str, Sequence[str]] = (),
             priorities: Optional[Mapping[str, int]] = None, verify: str = "sites", strict: bool = False,
             exact: bool = False, assume: Union[str, Sequence[str], None] = None, allow_unverified: bool = False, stop_after: int = -1, on_mismatch: str = "skip", require_fused: Union[int, str, None] = None, allow_none: bool = False, check: bool = False,
             external_data: str = "auto", test_data: Union[str, "os.PathLike[str]", None] = None, dims: Optional[Dims] = None,
             rtol: Optional[float] = None, atol: Optional[float] = None, threads: int = 0, memory_limit: Optional[int] = None,
             base_dir: Union[str, "os.PathLike[str]", None] = None, allow_data_dirs: Sequence[Union[str, "os.PathLike[str]"]] = (),
             progress: Optional[Callable[[str, float], None]] = None, trace: Optional[Trace] = None) -> Tuple[Any, Report]:
    """Rewrites the attention in a model into ONNX Attention nodes and verifies that the numbers stay.

    Args:
        model: a path, an onnx.ModelProto, an onnx_ir.Model, a torch.onnx.ONNXProgram or an onnxscript function. It is not changed.
        output: path to write to. Weights go from file to file: the model may have any size.
        opset: the model is raised to it: 23, 24 or 25; 24 by default, the model's own for "directml" and "webgpu". One above it is never lowered. "keep": the model's own.
        target: runtime whose restrictions the written nodes satisfy: "portable", "spec", "ort", "openvino", "ort-contrib", "cuda", "directml", "webgpu".
        form: operands of the written nodes: "auto", "3d", "4d".
        stage: "attention", or "functions": calls of local functions at the model's opset.
        kv_cache: "growing", or "static" or "static=N": caches become buffers, and the model is called otherwise (docs/kv_cache.md).
        only, disable: names of patterns and rewrites to use alone, or not to use.
        patterns: patterns made by @attn_opt.pattern, rewrites made by @attn_opt.rewrite, and folders of rules (docs/rules.md): one, or
            a list of them.
        also: names of rewrites that attn-opt has to apply, too, or "all".
        priorities: of rewrites, by name, in the place of their own; those above 100 run before attention is fused. Of patterns, which
                have 100: where two recognise the same attention, that of the higher one is written.
        verify: "sites", "all-sites" (equal ones too), "model" (and the whole model), "off".
        strict: assume nothing but what ASSUME lists.
        exact: as strict, and what is NaN stays NaN.
        assume: ids of the only preconditions to assume (docs/verification.md); none of them: ().
        allow_unverified: fuse sites that cannot be run, too.
        stop_after: fuse at most so many sites; negative: all.
        on_mismatch: a site whose numbers differ is left as it was ("skip"), or raises ("fail").
        require_fused: so many sites, or "all", must be fused.
        allow_none: with require_fused="all", a model in which no attention is found passes.
        check: write nothing; raise if anything could be fused.
        external_data: large tensors of an output: "auto", "inline", "external".
        test_data, dims, rtol, atol, threads, memory_limit: how the whole model is run, with verify="model": folder of ONNX
            test data, sizes of symbolic dimensions, tolerances, threads, bytes that tensors may take.
        base_dir: folder of the external data of an onnx.ModelProto; the current one by default.
        allow_data_dirs: further folders that links to external data may lead to.
        progress: called with what is being done and how far it is, 0 to 1.
        trace: called with everything that kept a pattern or rewrite from matching: its name, the name of the node that it was tried
            at, and the SiteMiss, which says what was found at which node. trace=print prints them.

    Returns:
        (output, report) if an output was asked for. Else (model, report): the new model, of the kind that was given (an
        onnx.ModelProto for a path or a function), or the very one that was given if nothing was fused.

    Raises:
        Error: with the `status` that the command exits with; `report` is set where there is one. Nothing was written then.
        PatternError: a pattern written in Python raised.
        TypeError: a model or an option of another type.
    """
    if on_mismatch not in ("skip", "fail"):
        raise UsageError(f"there is no '{on_mismatch}'", "on_mismatch", "skip or fail")
    given = given_model(model, base_dir, allow_data_dirs)
    path = "" if output is None or check else os.fspath(output)
    options = dict(_trial(dims, rtol, atol, threads, memory_limit), output=path, opset=_opset(opset),
                   target=target, form=form, stage=stage, kv_cache=kv_cache, only=_names(only), disable=_names(disable), also=_names(also), priorities=_priorities(priorities), verify=verify,
                   strict=strict, exact=exact, assume=_assumed(assume), allow_unverified=allow_unverified, stop_after=stop_after, fail_on_mismatch=on_mismatch == "fail", allow_none=allow_none, check=check,
                   external_data=external_data, test_data="" if test_data is None else os.fspath(test_data))
    options.update(_patterns(patterns), **_required(require_fused))
    wants_model = output is None and not check
    data, json_text, text, explanations, error = _core.optimize(given.source, _without_none(options), wants_model, progress, _tracer(trace))
    report = Report(json_text, text, explanations)
    if error is not None:
        error.report = report
        raise error
    if path:
        return output, report
    return (given.original if data is None else given.of_bytes(data)), report


class Explanation(List[Site]):
    """Sites of a model, the fused ones first, then those refused, then the misses, the nearest first. str() explains them, and the
    places of rewrites (`rewrites`) below them."""

    report: Report
    rewrites: List[Rewritten]

    def __str__(self) -> str:
        reasons = [f"nothing can be fused: opset.raise: {reason}\n" for reason in self.report.not_raised]
        places = [str(site) for site in self] + reasons + [rewrite.explanation for rewrite in self.rewrites]
        return "\n".join(places) or "no attention found\n"


def _names_of(place: Union[Site, Rewritten], *more: Optional[str]) -> List[Optional[str]]:
    """What `node` may call PLACE: its node, where it stopped, and MORE."""
    return [place.name, f"{place.graph}/{place.name}", *more, *([place.miss.node] if place.miss else [])]


def explain(model: Any, node: Optional[str] = None, **options: Any) -> Explanation:
    """Says of every attention in a model how it is fused, or what stands in the way, and in `rewrites` of every place where a
    rewrite matched what became of it.

    Args:
        model: as optimize() takes it. It is not changed.
        node: only the attention, or the rewrite, of this node (or GRAPH/NODE), or those of this module.
        **options: those of optimize().

    Raises:
        UsageError: no attention, and no place of a rewrite, is called NODE.
        Error: as optimize().
    """
    given = given_model(model, options.pop("base_dir", None), options.pop("allow_data_dirs", ()))
    trace = _tracer(options.pop("trace", None))
    options.update(_patterns(options.get("patterns", ())))
    options.update(opset=_opset(options.get("opset")), only=_names(options.get("only", ())), disable=_names(options.get("disable", ())),
                   also=_names(options.get("also", ())), priorities=_priorities(options.get("priorities")),
                   assume=_assumed(options.get("assume")))
    unknown = set(options) - {"opset", "target", "form", "stage", "kv_cache", "only", "disable", "patterns", "rules", "rewrites", "also", "priorities", "verify", "strict", "exact",
                              "assume", "allow_unverified", "stop_after"}
    if unknown:
        raise TypeError(f"explain() has no option {', '.join(sorted(unknown))}")
    _, json_text, text, explanations, _ = _core.optimize(given.source, options, False, None, trace)
    report = Report(json_text, text, explanations)
    rank = {"fused": 0, "refused": 1, "missed": 2}
    sites = sorted(report.sites, key=lambda site: (rank[site.outcome], -len(site.peeled) if site.outcome == "missed" else 0))
    rewrites = report.rewrites
    if node is not None:
        near = difflib.get_close_matches(node, [place.name for place in (*sites, *rewrites)], 1)
        what = "attention and no place of a rewrite" if rewrites else "attention"
        sites = [site for site in sites if node in _names_of(site, site.module, *(miss.node for miss in site.other_misses))]
        rewrites = [rewrite for rewrite in rewrites if node in _names_of(rewrite, *rewrite.nodes)]
        if not sites and not rewrites:
            raise UsageError(f"no {what} is called '{node}'", "node", f"did you mean '{near[0]}'?" if near else "")
    explanation = Explanation(sites)
    explanation.report = report
    explanation.rewrites = rewrites
    return explanation


def run(model: Any, inputs: Mapping[str, Any], *, compute: str = "model", threads: int = 0, memory_limit: Optional[int] = None,
        base_dir: Union[str, "os.PathLike[str]", None] = None,
        allow_data_dirs: Sequence[Union[str, "os.PathLike[str]"]] = ()) -> Dict[str, np.ndarray]:
    """Runs a model on the embedded CPU executor.

    Args:
        model: as optimize() takes it.
        inputs: an array for each input, by name (a list of arrays for a sequence, None for an optional that is empty). Types that
            NumPy lacks are those of ml_dtypes.
        compute: "model", or "f64": all floats are held in double.
        threads: that operators use; 0: one for each processor. Results do not depend on it.
        memory_limit: bytes that tensors may take (4 GB); weights that lie in files do not count.

    Returns:
        The outputs by name.

    Raises:
        UsageError: an input that the model does not have. InvalidModelError: one that is missing, or whose shape does not fit.
        UnsupportedError: an operator that the executor lacks. LimitError: more memory than memory_limit.
    """
    given = given_model(model, base_dir, allow_data_dirs)
    options = {"compute": _compute(compute), "threads": threads, "memory_limit": memory_limit}
    return _core.run(given.source, dict(inputs), _without_none(options))


def _compute(compute: str) -> str:
    if compute not in ("model", "f64"):
        raise UsageError(f"there is no '{compute}'", "compute", "model or f64")
    return compute


def compare(a: Any, b: Any, *, seeds: int = 3, dims: Optional[Dims] = None, rtol: Optional[float] = None,
            atol: Optional[float] = None, compute: str = "model", threads: int = 0, memory_limit: Optional[int] = None,
            base_dir: Union[str, "os.PathLike[str]", None] = None,
            allow_data_dirs: Sequence[Union[str, "os.PathLike[str]"]] = (), must_agree: bool = False) -> Comparison:
    """Runs two models on the same drawn inputs and compares their outputs, which are paired by name, or else by position.

    Args:
        a, b: models, as optimize() takes them. Inputs are drawn for `a`.
        seeds: draws with each combination of sizes.
        dims: sizes of symbolic dimensions: a number, or several to try.
        rtol, atol: what values may differ by; by default what docs/cli.md says of their type.
        compute, threads, memory_limit: as run() has them.
        must_agree: raise where outputs differ.

    Returns:
        How far each output of `a` lies from b's; true if all agree.

    Raises:
        MismatchError: inputs or outputs that the other model does not have; with must_agree, numbers that differ.
        Error: as run().
    """
    if seeds < 1:
        raise UsageError(f"{seeds} draws compare nothing", "seeds")
    first, second = (given_model(model, base_dir, allow_data_dirs) for model in (a, b))
    options = dict(_trial(dims, rtol, atol, threads, memory_limit), compute=_compute(compute))
    found = _core.compare(first.source, second.source, seeds, _without_none(options))
    comparison = Comparison(OutputDifference(output) for output in found)
    if must_agree and not comparison:
        raise MismatchError("outputs differ: " + "; ".join(str(one) for one in comparison if not one.agrees))
    return comparison


def patterns(patterns: Patterns = ()) -> Dict[str, str]:
    """The patterns that attn-opt has, and those that are given as optimize() takes them: a line about each by name."""
    given = _patterns(patterns)
    return dict(_core.pattern_names(given["rules"], given["patterns"], given["rewrites"]))


def test(paths: Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]], *, patterns: Patterns = (),
         update_golden: bool = False) -> TestResults:
    """Runs pattern regression cases (docs/cases.md), as `attn-opt test` does.

    Args:
        paths: cases (.onnxtxt), or folders that are searched for them: one, or several.
        patterns: as optimize() takes them, for all cases, beside the rules that a case names itself. Cases call them by their
            names: `# RUN --only my_pattern`.
        update_golden: rewrite golden outputs that differ.

    Returns:
        What came of each case; true if all passed. str() is what the command prints. A pattern that raises fails the case.

    Raises:
        UsageError, InvalidModelError: there is no such path, or no case; patterns that cannot be used.
    """
    given = _patterns(patterns)
    where = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    if not isinstance(where, Iterable):
        raise TypeError(f"paths is {paths!r}, a {type(paths).__name__}: cases and folders of cases are str or os.PathLike, or a list of these")
    cases = [os.fspath(path) for path in where]
    if not cases:
        raise UsageError("there are no paths", "paths")
    results, summary = _core.test(cases, given["rules"], given["patterns"], given["rewrites"], update_golden)
    return TestResults(results, summary)


setattr(test, "__test__", False)  # for pytest: it is no test itself
