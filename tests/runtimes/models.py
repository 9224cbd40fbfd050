"""The models that are judged, with the inputs that they are run on."""

import dataclasses
import pathlib
import re

import numpy as np
import onnx

import feeds

ALL_TARGETS = ("portable", "spec", "ort", "openvino", "ort-contrib", "cuda", "directml", "webgpu")


@dataclasses.dataclass
class Judged:
    """A model before it is rewritten, and how."""

    name: str
    path: pathlib.Path
    options: list = dataclasses.field(default_factory=list)
    targets: tuple = ALL_TARGETS
    fills: dict = dataclasses.field(default_factory=dict)
    sizes: dict = dataclasses.field(default_factory=dict)
    archives: list = dataclasses.field(default_factory=list)  # .npz of inputs; without any they are random
    runtimes: tuple = ()      # none but these; empty: all
    infinities: bool = False  # run with infinities in one input after the other, too

    def model(self):
        if self.path.suffix == ".onnxtxt":
            return onnx.parser.parse_model(self.path.read_text())
        return onnx.load(self.path, load_external_data=False)

    def asks(self, runtime):
        return not self.runtimes or runtime in self.runtimes

    def choices_of_feeds(self):
        """Lists of feeds: of the first list that the model runs with each is judged."""
        if self.archives:
            yield [dict(np.load(archive)) for archive in self.archives]
            return
        model = self.model()
        for sizes in feeds.size_choices(model, self.sizes):
            feed = feeds.feeds_for(model, self.fills, sizes)
            yield [feed, *(feeds.with_infinities(model, self.fills, feed) if self.infinities else ())]


def _case(path, cases):
    """A regression case (docs/cases.md): its RUN and FEED lines."""
    header = re.findall(r"^# (RUN|FEED)[ \t]+(.*)$", path.read_text(), flags=re.M)
    options = [word for key, text in header if key == "RUN" for word in text.split()]
    words = [word.split("=", 1) for key, text in header if key == "FEED" for word in text.split()]
    judged = Judged(str(path.relative_to(cases).with_suffix("")), path)
    judged.fills = {name: fill for name, fill in words if not fill.isdigit()}
    judged.sizes = {name: int(fill) for name, fill in words if fill.isdigit()}
    if "--target" in options:
        at = options.index("--target")
        judged.targets = (options[at + 1],)
        del options[at:at + 2]
    elif "--opset" in options:
        judged.targets = tuple(target for target in ALL_TARGETS if target != "directml")  # which runs no opset that has Attention
    if "--stage" in options:
        judged.targets = ("portable",)
    for at, option in enumerate(options):
        if option in ("--rules", "--patterns"):
            options[at + 1] = str(path.parent / options[at + 1])
    judged.options = options
    return judged


def cases(source):
    folder = source / "testdata/cases"
    judged = [_case(path, folder) for path in sorted(folder.rglob("*.onnxtxt")) if not path.name.endswith(".after.onnxtxt")]
    return [case for case in judged if "--kv-cache" not in case.options]  # called otherwise: examples/decode runs such a model


def strict_cases(source):
    """The cases as --strict writes them, which is to hold for infinities too. Left out are operators of com.microsoft, each of
    which has its own way with infinities, and models that are only raised to another opset."""
    excluding = {"--exact", "--stage", "--allow-unverified"}
    judged = [case for case in cases(source)
              if not excluding & set(case.options) and case.name.split("/")[0] not in ("contrib", "ort_contrib", "opset")]
    for case in judged:
        case.options = [*case.options, "--strict"]
        case.targets = case.targets if len(case.targets) == 1 else ("portable",)
        case.runtimes, case.infinities = ("onnxruntime", "reference"), True
    return judged


def models_in(folder, archives=None):
    """The models of FOLDER: X.onnx, or X/model.onnx, or X/X.onnx. Inputs lie in ARCHIVES (FOLDER), as X.inputs.npz, or in
    X/inputs*.npz."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            models = [model for model in (path / "model.onnx", path / f"{path.name}.onnx") if model.exists()]
            models += sorted(path.glob("*.onnx"))
            if models:
                found.append(Judged(path.name, models[0], archives=sorted(path.glob("inputs*.npz"))))
        elif path.suffix == ".onnx":
            found.append(Judged(path.stem, path))
    for judged in found:
        archive = (archives or folder) / f"{judged.name}.inputs.npz"
        if not judged.archives and archive.exists():
            judged.archives = [archive]
    return found


def bundled(source):
    testdata = source / "testdata"
    return [*cases(source), *models_in(testdata / "models", testdata / "runs"), *models_in(testdata / "contrib")]
