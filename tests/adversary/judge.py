"""Judges what attn-opt makes of one drawn model: findings are whatever a user would call wrong."""
import copy
import dataclasses
import pathlib

import numpy as np

import compare
import runtimes
from feeds import DRAWN_AS_FLOATS, draw_feeds, jittered

SINGLE = float(np.finfo(np.float32).eps)  # OpenVINO computes doubles in float32
# Defects of a runtime that a rewrite runs into, by its name and what it says: docs/runtimes.md. Of a value that is missing in
# what was written "ort-off" tells too.
KNOWN_DEFECTS = {"openvino": ("[SoftmaxDecomposition]", "Layout rank can't be larger than tensor rank"),
                 "ort-all": ("is not a graph input, initializer, or output of a previous node",)}


@dataclasses.dataclass
class Finding:
    seed: int
    kind: str       # status, load, run, wrong; with the options and the runtime
    text: str
    feed: str = ""
    assumed: tuple = ()
    verdicts: tuple = ()

    def line(self):
        listed = f" assumed={','.join(self.assumed)}" if self.assumed else ""
        return f"{self.seed} {self.kind} [{self.feed}] {' '.join(self.verdicts)}{listed}: {self.text}"


@dataclasses.dataclass
class Run:
    """One feed on which the original runs: its results, those of float64, and those of inputs that are a rounding off."""
    position: int
    feed: object
    before: dict
    truth: dict
    others: list
    facts: dict
    cancels: bool        # scores of another site are subtracted from those of one
    rounded: tuple = ()  # by ONNX's reference, of the feed and of inputs that are a rounding off, once it is asked for
    as_written: dict | None = None  # of what was written last, by ONNX Runtime without its optimisations

    def difference(self, name, result, unit=0.0):
        """Of output NAME, if it is RESULT; UNIT: see compare."""
        others = [other[name] for other in [*self.others, *self.rounded]]
        own = float(np.finfo(self.before[name].dtype).eps) if self.before[name].dtype.kind == "f" else 0.0
        # In double the truth rounds large scores as the model does. Scores that a model subtracts from each other leave no trace of
        # how they were rounded, in the type of its inputs.
        if self.before[name].dtype == np.float64 or self.cancels:
            unit = max(unit, own, self.facts["eps"] if self.cancels else 0) * max(1.0, self.facts["summed"] / 4)
        if self.before[name].dtype == np.float32:  # which sum of small numbers is rounded first is luck
            unit = max(unit, own * self.facts["summed"] / 16, self.facts["eps"])  # so it is in a model of halves
        return compare.Difference(name, self.before[name], self.truth[name], result, others, unit)


class Judge:
    def __init__(self, binary, folder, use_openvino=True):
        self.binary, self.folder = binary, pathlib.Path(folder)
        self.use_openvino = use_openvino and runtimes.openvino is not None
        self.counts = {}
        self.skips_zero = False            # sizes of 0 crash a runtime on some originals
        self.stage = lambda text: None     # told before each step that may crash

    def count(self, what, number=1):
        self.counts[what] = self.counts.get(what, 0) + number

    def original_runs(self, drawn):
        """The feeds on which DRAWN runs as it is; raises if it does not load."""
        model, truth = runtimes.OnnxRuntime(drawn.model.SerializeToString()), runtimes.OnnxRuntime(drawn.truth.SerializeToString())
        random, kept = np.random.default_rng(drawn.seed), []
        for position, feed in enumerate(draw_feeds(drawn)):
            if self.skips_zero and feed.kind == "zero":
                continue
            self.stage(f"original on feed {position}")
            try:
                before, exact = model.run(feed.arrays), truth.run(feed.in_double())
                others = [model.run(jittered(random, feed, drawn.graph).arrays) for _ in range(3)]
            except Exception:  # pylint: disable=broad-except: the runtime's own kinds; what does not run judges nothing
                continue
            if feed.kind != "zero" and not all(before[name].size for name in drawn.outputs):
                continue  # sizes that do not fit each other, which a Reshape to -1 let pass
            if any(before[one.name].ndim != len(one.type.tensor_type.shape.dim) for one in drawn.model.graph.output):
                self.count("feeds on which an original breaks the rank that it declares")
                continue  # a Squeeze of all axes takes more away where a size is 1
            probes = {kind: exact[name] for kind, name in drawn.probes.items()}
            given = [feed.arrays[i.name] for i in drawn.graph.inputs if i.role in DRAWN_AS_FLOATS]
            types = [np.dtype(i.name) for i in (a.dtype for a in given)] or [np.dtype(np.float32)]
            facts = compare.breached(probes, given, min(types, key=lambda t: t.itemsize))
            facts["finite"] &= facts["largest"] < float(np.finfo(np.float16).max) or "through-half" not in drawn.graph.notes
            facts["fill"] = max((float(note[5:]) for note in drawn.graph.notes if note.startswith("fill=")), default=-np.inf)
            factors = [feed.arrays[i.name] for i in drawn.graph.inputs if i.role == "factor"]
            facts["negative factor"] = any((factor < 0).any() for factor in factors)
            facts["adds_up_queries"] = "probabilities-transposed" in drawn.graph.notes
            kept.append(Run(position, feed, before, exact, others, facts, "second=crossing" in drawn.graph.notes))
        return kept

    def judge(self, drawn):
        """Findings of DRAWN, and how many feeds it was judged on."""
        path = self.folder / f"{drawn.seed}.onnx"
        path.write_bytes(drawn.model.SerializeToString())
        try:
            runs = self.original_runs(drawn)
        except Exception:  # pylint: disable=broad-except: a model that the runtime does not take
            runs = []
            self.count("originals that do not load")
        found = []
        default = runtimes.ToolRun(self.binary, path, drawn.options)
        found += self.judge_tool(drawn, default, runs, "")
        if default.assumed or any(v != "verified" for v in verdicts(default)):
            found += self.judge_tool(drawn, runtimes.ToolRun(self.binary, path, [*drawn.options, "--strict"]), runs, "strict ")
        self.count("feeds", len(runs))
        return found

    def judge_tool(self, drawn, tool, runs, prefix):
        made = {"assumed": tuple(sorted(tool.assumed)), "verdicts": tuple(sorted(set(verdicts(tool))))}
        if tool.status != 0:
            return [Finding(drawn.seed, f"{prefix}status {tool.status}", tool.error[:300])] if runs else []
        for site in tool.report["sites"]:
            self.count(f"{prefix}{site['outcome']}")
            if site["outcome"] == "fused":
                self.count(f"{prefix}fused {site['verification']['verdict']}")
            else:
                self.count(f"{prefix}miss {site['miss']['id'] if site['miss'] else 'failed'}")
        if not tool.report["changed"] or not runs:
            return []
        found = []
        for run in runs:
            run.as_written = None
        for runtime in self.runtimes_of(drawn):
            known = {finding.kind.split()[-2] for finding in found}
            found += [finding for finding in self.in_runtime(drawn, tool, runs, prefix, runtime, made)
                      if finding.kind.split()[-2] not in known]
        return found

    def runtimes_of(self, drawn):
        """The runtimes that a target promises, but for OpenVINO on loops: it overwrites a query from around the loop (docs/runtimes.md)."""
        names = [] if "openvino" in drawn.options else ["ort-off", "ort-all"]
        return names + ["openvino"] * (self.use_openvino and "ort" not in drawn.options and "wrap=loop" not in drawn.graph.notes)

    def in_runtime(self, drawn, tool, runs, prefix, runtime, made):
        """Findings of RUNTIME, at most one of each kind."""
        def load(model):
            return runtimes.OpenVino(model) if runtime == "openvino" else runtimes.OnnxRuntime(model, runtime[4:])

        self.stage(f"original in {runtime}")
        original = Lazy(lambda: load(drawn.model.SerializeToString()))
        raised = Lazy(lambda: load(runtimes.raised(drawn.model, tool.output)))
        if runtime == "openvino" and not original.get():
            return []
        self.stage(f"after in {runtime}")
        try:
            after = load(tool.output)
        except Exception as error:  # pylint: disable=broad-except
            is_known = any(text in str(error) for text in KNOWN_DEFECTS.get(runtime, ()))
            if is_known:
                self.count(f"does not load in {runtime} by a known defect")
            return [] if is_known or not original.get() else [Finding(drawn.seed, f"{prefix}load {runtime}", brief(error), **made)]
        found = {}
        for run in runs:
            breached = set(made["assumed"])
            if not tool.takes_for_equal(drawn.model, run.feed.arrays):
                breached.discard("sizes-equal")
            finding = self.on_feed(drawn, after, (original, raised), run, prefix, runtime, made, breached)
            if finding:
                found.setdefault(finding.kind, finding)
        return list(found.values())

    def on_feed(self, drawn, after, originals, run, prefix, runtime, made, breached):
        """BREACHED: what is assumed, without that sizes are equal which are so here."""
        original = originals[0]
        if run.feed.kind == "zero" and "sizes-not-empty" in made["assumed"]:
            return None
        where = f"{run.position} {run.feed.kind} {run.feed.sizes}"
        if run.feed.kind == "zero" and runtime != "ort-off" and not self.zero_runs(original, run, runtime):
            return None
        self.stage(f"after in {runtime} on feed {where}")
        try:
            results = after.run(run.feed.arrays)
        except Exception as error:  # pylint: disable=broad-except
            if runtime != "ort-off" and not runs_on(original, run.feed.arrays):
                return None
            if not self.is_legal(drawn, run):
                return None
            what = "run-zero" if run.feed.kind == "zero" else "run"
            return Finding(drawn.seed, f"{prefix}{what} {runtime}", brief(error), where, **made)
        if runtime == "ort-off":
            run.as_written = results
        for name in drawn.outputs:
            if name not in results:
                return Finding(drawn.seed, f"{prefix}output {runtime}", f"no output {name}", where, **made)
            unit = SINGLE if runtime == "openvino" else 0.0
            difference = run.difference(name, results[name], unit)
            if not difference or compare.covered(difference, breached, run.facts):
                continue
            if not self.rounded_difference(drawn, run, name, results[name]):
                continue
            if runtime != "ort-off" and any(self.is_off(one, run, name, difference, breached) for one in originals):
                continue
            if runtime == "openvino" and has_square_heads(drawn, run):
                self.count("off in OpenVINO, which mistakes as many queries as heads")
                continue
            if runtime == "openvino" and difference.nan_only and run.as_written and not run.difference(name, run.as_written[name]):
                self.count("off in OpenVINO, which makes numbers of what is written as NaN (docs/runtimes.md)")
                continue
            if runtime != "openvino" and is_above_lowest(drawn, run, name):
                self.count("off in ONNX Runtime, whose lowest number hides no score that is half as large (docs/runtimes.md)")
                continue
            kind = "nan" if difference.nan_only else "wrong"
            return Finding(drawn.seed, f"{prefix}{kind} {runtime}", difference.text, where, **made)
        return None

    @staticmethod
    def rounded_difference(drawn, run, name, result):
        """Does RESULT differ too where each node rounds to its type? ONNX Runtime computes half types in float32."""
        flattens = drawn.graph.opset < 13 and {"softmax=default", "softmax=other"} & set(drawn.graph.notes)
        if drawn.graph.dtype[name] != "f16" or flattens:  # the reference knows no flattening Softmax
            return True
        if not run.rounded:
            reference, random = runtimes.Reference(drawn.graph.model()), np.random.default_rng(drawn.seed)
            feeds = [run.feed, *(jittered(random, run.feed, drawn.graph) for _ in range(3))]
            run.rounded = tuple(reference.run(feed.arrays) for feed in feeds)
        return bool(run.difference(name, result))

    def is_legal(self, drawn, run):
        """Does ONNX's reference take the feed? ONNX Runtime joins an empty tensor of another rank (a Squeeze of all axes leaves it
        so), which the specification does not."""
        try:
            runtimes.Reference(drawn.graph.model()).run(run.feed.arrays)
            return True
        except Exception:  # pylint: disable=broad-except: whatever the reference has to say
            self.count("off on feeds that ONNX Runtime alone takes")
            return False

    def zero_runs(self, original, run, runtime):
        self.stage(f"original in {runtime} on sizes of 0")
        return runs_on(original, run.feed.arrays)

    @staticmethod
    def is_off(original, run, name, difference, assumed):
        """Does ORIGINAL, as it is or raised, differ as much in this runtime, or in all rows that nothing ASSUMED covers? Then the
        runtime is off, not the rewrite: OpenVINO compares doubles as float, which may empty a row."""
        if not original.get():
            return False
        try:
            own = original.get().run(run.feed.arrays)[name]
        except Exception:  # pylint: disable=broad-except
            return True
        mine = run.difference(name, own, SINGLE if isinstance(original.get(), runtimes.OpenVino) else 0.0)
        if not mine or mine.worst >= difference.worst / 4 or mine.fraction >= difference.fraction:
            return bool(mine)
        rest = copy.copy(difference)
        rest.bad = difference.bad & ~mine.bad
        return compare.covered(rest, assumed, run.facts)


class Lazy:
    """What MAKE makes, once; None if it raises."""

    def __init__(self, make):
        self.make, self.value, self.is_made = make, None, False

    def get(self):
        if not self.is_made:
            self.is_made = True
            try:
                self.value = self.make()
            except Exception:  # pylint: disable=broad-except
                self.value = None
        return self.value


def brief(error):
    """The part of a runtime's message that says what is wrong."""
    text = " ".join(str(error).split())
    return text if len(text) < 320 else text[:60] + " ... " + text[-250:]


def has_square_heads(drawn, run):
    """As many queries as heads, known before the run: OpenVINO mistakes one for the other (docs/runtimes.md)."""
    said = dict(note.split("=", 1) for note in drawn.graph.notes if "=" in note)
    fixed, heads = said.get("fixed", ""), said["heads"].split("/")[0]
    known = {"L"} | ({"H"} if heads == "H" else set()) <= set(fixed)
    return known and run.feed.sizes["L"] == (run.feed.sizes["H"] if heads == "H" else int(heads))


def is_above_lowest(drawn, run, name):
    """Something masks, and a score is larger than half of what ONNX Runtime masks with in the output's type (docs/runtimes.md)."""
    masks = any(note.startswith("fill=") or note == "causal" for note in drawn.graph.notes)
    return masks and 2 * run.facts["largest"] > float(np.finfo(run.before[name].dtype).max)


def runs_on(original, arrays):
    try:
        original.get().run(arrays)
        return True
    except Exception:  # pylint: disable=broad-except
        return False


def verdicts(tool):
    return [site["verification"]["verdict"] if site["verification"] else "none" for site in tool.fused]
