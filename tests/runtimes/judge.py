"""Runs a model before and after it is rewritten, in other people's runtimes: what ran must run, with the same numbers.

judge() is all that a generator of models needs: it is given a Judged and returns a Verdict.
"""

import dataclasses
import hashlib
import pathlib
import shutil
import subprocess
import tempfile

import onnx

import checks
import compare
import feeds
import in_double
import runtimes


@dataclasses.dataclass
class Finding:
    """What is wrong with the model written for a target. The runtime is "checker" for what ONNX's checker and inference say."""

    model: str
    target: str
    runtime: str
    what: str

    def __str__(self):
        return f"{self.model}, target {self.target}, {self.runtime}: {self.what}"


@dataclasses.dataclass
class Verdict:
    findings: list
    judged: dict        # runtime: models that ran before and were run after
    is_changed: bool    # attn-opt wrote something else than it read
    runs_nowhere: str   # if it is changed: why no runtime runs the model before, else empty


def _rewritten(attn_opt, before, judged, target, folder):
    """(path of the model written for TARGET, empty) or (None, what went wrong)."""
    path = folder / f"after-{target}" / "model.onnx"
    path.parent.mkdir()
    command = [str(attn_opt), str(before), "-o", str(path), "--target", target, "-q", "--no-config", *judged.options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return path, ""
    return None, f"attn-opt ends with {done.returncode}: {done.stderr.strip()[:200]}"


_ISOLATED = []  # not empty: each run has a process of its own


def _run(runtime, path, feed):
    """(outputs, empty) or (None, why it does not run)."""
    run = runtimes.RUNTIMES[runtime]
    try:
        return runtimes.in_own_process(run, str(path), feed) if _ISOLATED else run(str(path), feed), ""
    except runtimes.DidNotRun as reason:
        return None, str(reason)


def _truth(model, folder, feed, before):
    """(outputs, whether they are exact): in double by ONNX's reference, else by ONNX Runtime; if neither runs that, what ONNX
    Runtime gave BEFORE, or None."""
    path = folder / "double.onnx"
    try:
        onnx.save(in_double.model_in_double(model, str(folder)), path)
    except Exception:  # external data that is not there, more than 2 GB
        return before["onnxruntime"][0], False
    wide = {name: in_double.array_in_double(array) for name, array in feed.items()}
    for runtime in ("reference", "onnxruntime"):
        outputs, _ = _run(runtime, path, wide)
        if outputs is not None:
            return outputs, True
    return before["onnxruntime"][0], False


def _results(judged, path, feed):
    """What _run() says of each runtime."""
    return {runtime: _run(runtime, path, feed) if judged.asks(runtime) else (None, "") for runtime in runtimes.RUNTIMES}


def _feeds_that_run(judged, path):
    """(feeds, what each runtime makes of the first) of the first sizes that some runtime runs; (None, why) if there are none."""
    why = "no inputs"
    try:
        for tried, choice in enumerate(judged.choices_of_feeds()):
            results = _results(judged, path, choice[0])
            if any(outputs is not None for outputs, _ in results.values()):
                return choice, results
            why = "; ".join(f"{runtime}: {reason}" for runtime, (_, reason) in results.items())
            if tried > 20:
                break
    except feeds.NoInputs as reason:
        why = str(reason)
    return None, why


class _Site:
    """One model in a temporary folder, with its rewritings by content."""

    def __init__(self, judged, attn_opt, folder):
        self.judged, self.attn_opt, self.folder = judged, attn_opt, folder
        self.before = folder / "before" / "model.onnx"
        self.before.parent.mkdir()
        for sibling in judged.path.parent.iterdir() if judged.path.parent.name == judged.name else ():
            if sibling.suffix not in (".onnx", ".npz", ".json"):
                shutil.copyfile(sibling, self.before.parent / sibling.name)
        self.model = judged.model()
        if judged.path.suffix == ".onnx":
            shutil.copyfile(judged.path, self.before)
        else:
            onnx.save(self.model, self.before)
        self.findings, self.judged_in = [], {}

    def find(self, target, runtime, what):
        self.findings.append(Finding(self.judged.name, target, runtime, what))

    def rewrite(self):
        """Paths of what is written for each target, that which is the input left out."""
        written, same = {}, self.before.read_bytes()
        for target in self.judged.targets:
            path, wrong = _rewritten(self.attn_opt, self.before, self.judged, target, self.folder)
            if not path:
                self.find(target, "attn-opt", wrong)
            elif path.read_bytes() != same:
                written[target] = path
        return written

    def compare(self, written, feed, before, truth):
        seen = {}
        for target, path in written.items():
            content = hashlib.sha256(path.read_bytes()).digest()
            for runtime in runtimes.RUNTIMES_OF_TARGET[target]:
                outputs, _ = before[runtime]
                if outputs is None:
                    continue
                if (content, runtime) not in seen:
                    self.judged_in[runtime] = self.judged_in.get(runtime, 0) + 1
                    after, reason = _run(runtime, path, feed)
                    seen[content, runtime] = [f"does not run: {reason}"] if after is None else [
                        f"'{name}' {what}" for name, what in compare.differences(outputs, after, *truth).items()]
                for what in seen[content, runtime]:
                    self.find(target, runtime, what)

    def check(self, written):
        seen = set()
        for target, path in written.items():
            content = path.read_bytes()
            if content in seen:
                continue
            seen.add(content)
            for what in checks.failures(self.model, self.before, onnx.load(path, load_external_data=False), path):
                self.find(target, "checker", what)


def judge(judged, attn_opt):
    """The Verdict on JUDGED (models.Judged), rewritten by the command ATTN_OPT for each of its targets. A runtime that crashes
    has not run."""
    try:
        return runtimes.in_own_process(_judge, judged, attn_opt)
    except runtimes.Crashed:
        return runtimes.in_own_process(_judge_isolated, judged, attn_opt)


def _judge_isolated(judged, attn_opt):
    _ISOLATED.append(True)
    return _judge(judged, attn_opt)


def _judge(judged, attn_opt):
    with tempfile.TemporaryDirectory() as name:
        site = _Site(judged, attn_opt, pathlib.Path(name))
        written = site.rewrite()
        if not written:
            return Verdict(site.findings, {}, False, "")
        if not judged.infinities:
            site.check(written)
        chosen, results = _feeds_that_run(judged, site.before)
        if chosen is None:
            return Verdict(site.findings, {}, True, results)
        for i, feed in enumerate(chosen):
            if i > 0:
                results = _results(judged, site.before, feed)
            site.compare(written, feed, results, _truth(site.model, site.before.parent, feed, results))
        return Verdict(site.findings, site.judged_in, True, "")
