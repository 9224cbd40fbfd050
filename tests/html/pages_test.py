"""Opens reports in Chromium and uses them as a reader does.

usage: pages_test.py ATTN_OPT SOURCE_FOLDER
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

import chromium

ATTN_OPT, SOURCE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
HOSTILE = "a</script><script>hacked = 1</script><img src=x onerror='hacked = 1'>\"quoted\" & `code`"
PHONE = 375


def tensor(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def saved(path, nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def missed_model(path):
    """A softmax over the wrong axis, with names that are markup."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["scores" + HOSTILE], name="scores"),
        helper.make_node("Softmax", ["scores" + HOSTILE], ["p"], axis=-2, name=HOSTILE),
        helper.make_node("MatMul", ["p", "x"], ["y"], name="product"),
    ]
    return saved(path, nodes, [tensor("x", ["batch" + HOSTILE, 4, 4])], [tensor("y", None)])


def deep_model(path, layers):
    """LAYERS of plain attention, 2 heads of 4."""
    nodes, initializers, value = [], [], "x"

    def constant(name, array):
        initializers.append(numpy_helper.from_array(array, name))
        return name

    split, merged = constant("split", numpy.array([0, 0, 2, 4])), constant("merged", numpy.array([0, 0, 8]))
    scale = constant("scale", numpy.array(0.5, numpy.float32))
    for layer in range(layers):
        name = f"/model/layers.{layer}/attention"

        def add(op, inputs, output, **attributes):
            nodes.append(helper.make_node(op, inputs, [f"{name}/{output}"], name=f"{name}/{output}/{op}", **attributes))
            return f"{name}/{output}"

        heads = []
        for part in "qkv":
            weight = constant(f"{name}/{part}/weight", numpy.eye(8, dtype=numpy.float32))
            projected = add("MatMul", [value, weight], f"{part}_projected")
            perm = [0, 2, 3, 1] if part == "k" else [0, 2, 1, 3]
            heads.append(add("Transpose", [add("Reshape", [projected, split], f"{part}_split")], part, perm=perm))
        scores = add("Mul", [add("MatMul", heads[:2], "scores"), scale], "scaled")
        y = add("MatMul", [add("Softmax", [scores], "probabilities", axis=-1), heads[2]], "y")
        value = add("Reshape", [add("Transpose", [y], "rows", perm=[0, 2, 1, 3]), merged], "merged")
    return saved(path, nodes, [tensor("x", ["batch", "seq", 8])], [tensor(value, ["batch", "seq", 8])], initializers)


def report(folder, *words, status=0):
    """The page, and the JSON report, of a run with WORDS."""
    page, data = folder / "report.html", folder / "report.json"
    result = subprocess.run([ATTN_OPT, *map(str, words), "-q", "--report", page, "--report", data], capture_output=True, text=True)
    assert result.returncode == status, result
    return page, json.loads(data.read_bytes())


def check_layout(page):
    """Nothing is wider than the page, and boxes of a drawing do not overlap."""
    page.resize(PHONE, 700)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= PHONE, f"{wide} pixels wide on a phone"
    page.resize(1280, 900)
    overlaps = page.evaluate("""[...document.querySelectorAll("svg.diagram")].flatMap((svg) => {
        const boxes = [...svg.querySelectorAll("rect")].map((rect) => rect.getBBox());
        return boxes.filter((a, i) => boxes.some((b, j) => i < j && a.x < b.x + b.width && b.x < a.x + a.width &&
          a.y < b.y + b.height && b.y < a.y + a.height)).map((box) => svg.getAttribute("aria-label")); })""")
    assert not overlaps, overlaps
    outside = page.evaluate("""[...document.querySelectorAll("svg.diagram rect")].flatMap((rect) => {
        const text = [...rect.parentElement.querySelectorAll("text")];
        return text.filter((one) => one.getBBox().width > rect.getBBox().width + 1).map((one) => one.textContent); })""")
    assert not outside, f"texts wider than their boxes: {outside}"


def check_quiet(page):
    assert not page.console(), page.console()
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0, "nothing is fetched"
    assert page.evaluate("typeof hacked") == "undefined", "a name became a script"


def text_of(page, selector):
    return page.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")


def check_drawings(page, data):
    for number, group in enumerate(data["groups"]):
        drawn = page.evaluate(f"[...document.querySelectorAll('#model-0-card-{number} svg.diagram')]"
                              ".map((svg) => [...svg.querySelectorAll('.operator .heading')].map((text) => text.textContent))")
        wanted = [[node["op"].split("::")[-1] for node in group[side]["nodes"]] for side in ("before", "after") if group[side]]
        assert drawn == wanted, (drawn, wanted)


def check_keyboard(page):
    """Tab comes to the first square of the strip, Enter goes to its card."""
    page.evaluate("document.body.focus()")
    for _ in range(40):
        page.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('square')"):
            break
    else:
        raise AssertionError("the strip is not reached by Tab")
    page.press("Enter")
    page.wait_for("document.activeElement.classList.contains('card')")


def check_sizes(page, data):
    """Sizes that are typed and slid change the number of bytes, by the formula of the report."""
    set_field = """(name, value) => { const field = document.querySelector(`input[type="number"][aria-label="${name}"]`);
        field.value = value; field.dispatchEvent(new Event("input")); }"""
    sizes = {name: 2 + 3 * i for i, name in enumerate(data["effect"]["example_sizes"])}
    before = text_of(page, "output.value")
    for name, size in sizes.items():
        page.evaluate(f"({set_field})({json.dumps(name)}, {size})")
    after = text_of(page, "output.value")
    wanted = eval(data["effect"]["score_bytes"], {}, dict(sizes))  # a polynomial of names: Python reads it too
    shown = float(re.match(r"[\d.,]+", after).group().replace(",", "")) * {"b": 1, "k": 1e3, "M": 1e6, "G": 1e9}[after.split()[1][0]]
    assert after != before and abs(shown - wanted) <= 0.005 * wanted, (after, wanted)
    page.evaluate("(() => { const slider = document.querySelector('input[type=range]'); slider.value = 20;"
                  " slider.dispatchEvent(new Event('input')); })()")
    assert text_of(page, "output.value") != after, "the slider changes nothing"
    assert page.evaluate("document.querySelector('input[type=number]').value") == str(2**20)


def check_formulas(page):
    """What a Dim prints as, beyond polynomials."""
    for formula, wanted in (("96*batch*seq*seq", 96 * 2 * 49), ("8*floor((seq + 3)/4) - 2", 14), ("min(seq, 3)*max(batch, seq)", 21),
                            ("-batch + past seq*2", 2 * 11 - 2), ("floor(seq*(batch + 1)/4)", 5)):
        value = page.evaluate(f"evaluate({json.dumps(formula)}, {{batch: 2, seq: 7, 'past seq': 11}})")
        assert value == wanted, (formula, value, wanted)
    assert page.evaluate("Number.isNaN(evaluate('8*unknown', {}))")


def check_model(browser, folder, model, *options):
    path, data = report(folder, model, *options)
    page = browser.page(path)
    summary = data["summary"]
    assert text_of(page, "h1").startswith(f"{summary['fused']} of {summary['sites']} attention"), text_of(page, "h1")
    assert page.evaluate("document.querySelectorAll('.card').length") == len(data["groups"])
    assert page.evaluate("document.querySelectorAll('.strip .square').length") == summary["sites"]
    check_drawings(page, data)
    check_layout(page)
    check_keyboard(page)
    if data["effect"]["example_sizes"]:
        check_sizes(page, data)
        check_formulas(page)
    check_quiet(page)
    print(f"{model.name}: {summary['sites']} sites, {len(data['groups'])} cards, {path.stat().st_size} bytes")
    return page, path, data


def check_miss(browser, folder):
    model = missed_model(folder / "missed.onnx")
    page, _, data = check_model(browser, folder, model)
    card = text_of(page, ".card.missed")
    assert HOSTILE in card and "softmax.axis" in card and "Remedy" in card and "--case-out" in card, card
    assert page.evaluate("document.querySelectorAll('.stopped rect').length") == 1, "the node that stopped it"
    assert data["manual"]["misses"]["softmax.axis"]["remedy"].replace("`", "") in card
    path, _ = report(folder, model, "--require-fused", "all", status=1)
    page = browser.page(path)
    assert page.evaluate("document.querySelector('.verdict.bad [role=alert]') !== null"), "a gate that failed is said first"
    check_quiet(page)


def check_order(browser, folder):
    """What is not fused comes first; a drawing that is wider than a phone shows its middle and says that it scrolls."""
    nodes, outputs = [], []
    for name, axis in (("softmax_a", -1), ("softmax_b", -2)):
        nodes += [helper.make_node("MatMul", ["q", "k"], [f"{name}_s"], name=f"{name}_product"),
                  helper.make_node("Softmax", [f"{name}_s"], [f"{name}_p"], axis=axis, name=name),
                  helper.make_node("MatMul", [f"{name}_p", "v"], [f"{name}_y"], name=f"{name}_values")]
        outputs.append(tensor(f"{name}_y", [1, 2, 8, 4]))
    inputs = [tensor("q", [1, 2, 8, 4]), tensor("k", [1, 2, 4, 8]), tensor("v", [1, 2, 8, 4])]
    path, data = report(folder, saved(folder / "order.onnx", nodes, inputs, outputs))
    assert [site["outcome"] for site in data["sites"]] == ["fused", "missed"], data["summary"]
    page = browser.page(path)
    assert page.evaluate("[...document.querySelectorAll('.card')].map((card) => card.classList[1])") == ["missed", "fused"]
    page = browser.page(report(folder, SOURCE / "testdata/models/bert-ts14s.onnx")[0])
    page.resize(PHONE, 700)
    page.wait_for("document.querySelector('.scroll').scrollLeft > 0")
    assert page.evaluate("document.querySelector('.scroll').previousSibling.offsetHeight") > 0, "the hint"
    page.resize(1280, 900)
    page.wait_for("document.querySelector('.scroll').previousSibling.offsetHeight === 0")
    assert re.search(r"\d+ nodes drawn", text_of(page, ".card figure"))


def check_places(browser, folder):
    """Sites are called by module and line of the program, as in the other reports."""
    page = browser.page(report(folder, SOURCE / "testdata/models/encoder-dy20e.onnx")[0])
    heading, square = text_of(page, ".card h3"), page.evaluate("document.querySelectorAll('.strip a')[1].title")
    assert "layers.0 (model.py:12) node_softmax" in heading, heading
    assert square.startswith("layers.1 (model.py:12) node_softmax_1: "), square
    assert "layers.1 (model.py:12) node_softmax_1" in text_of(page, "#model-0-card-1 h3")


def check_picture(browser, folder):
    """A .svg file is XML and one picture, in which names are text."""
    picture = folder / "drawings.svg"
    subprocess.run([ATTN_OPT, missed_model(folder / "missed.onnx"), "-q", "--report", picture], check=True)
    texts = ["".join(one.itertext()) for one in xml.etree.ElementTree.parse(picture).getroot().iter("{http://www.w3.org/2000/svg}text")]
    assert "Softmax" in texts and any(HOSTILE in text for text in texts), texts
    check_quiet(browser.page(picture))


def check_optimised(browser, folder):
    subprocess.run([ATTN_OPT, SOURCE / "testdata/models/bert-ts14s.onnx", "-q", "-o", folder / "optimised.onnx"], check=True)
    path, _ = report(folder, folder / "optimised.onnx")
    page = browser.page(path)
    assert text_of(page, "h1") == "No attention to fuse: 2 are attention operators already", text_of(page, "h1")


def check_rewrites(browser, folder):
    """A model with rewrites alone says what became of each: those that are refused first, equal ones on one card."""
    nodes = [helper.make_node(op, [read], [made], name=f"{name}_{layer}") for layer in range(3)
             for name, op, read, made in (("negated", "Neg", "x", f"n{layer}"), ("relu", "Relu", f"n{layer}", f"y{layer}"))]
    model = saved(folder / "rewrites.onnx", nodes, [tensor("x", ["batch", 4])], [tensor(f"y{layer}", ["batch", 4]) for layer in range(3)])
    path, data = report(folder, model, "--rules", SOURCE / "testdata/cases/rewrites/relu")
    assert data["summary"]["sites"] == 0 and data["summary"]["rewritten"] == 3, data["summary"]
    page = browser.page(path)
    assert text_of(page, "h1") == "3 of 3 rewrites can be applied", text_of(page, "h1")
    card = text_of(page, ".card.rewrite.fused")
    assert "3 × negated_relu at relu_0 (Relu)" in card and "equal places" in card and "Min" in card, card
    assert page.evaluate("document.querySelectorAll('.card').length") == 1
    check_layout(page)
    check_quiet(page)
    nodes[0].op_type = "Sin"  # one of the three is what the rule that is wrong finds
    saved(model, nodes, [tensor("x", ["batch", 4])], [tensor(f"y{layer}", ["batch", 4]) for layer in range(3)])
    page = browser.page(report(folder, model, "--rules", SOURCE / "testdata/cases/rewrites/relu")[0])
    assert page.evaluate("[...document.querySelectorAll('.card')].map((card) => card.classList[2])") == ["refused", "fused"]
    assert page.evaluate("document.querySelector('.verdict.bad') !== null"), "numbers that differ"
    refused = text_of(page, ".card.refused")
    assert "careless_relu at relu_0" in refused and "verification.failed" in refused and "--node relu_0 --rules" in refused, refused
    assert "Remedy" in refused
    check_quiet(page)


def check_deep(browser, folder, layers):
    page, path, data = check_model(browser, folder, deep_model(folder / f"deep_{layers}.onnx", layers))
    assert data["summary"]["fused"] == layers and len(data["groups"]) == 1, data["summary"]
    assert path.stat().st_size < 2_000_000, path.stat().st_size
    assert page.evaluate("document.querySelectorAll('.card .names code').length") >= layers


def check_dark(browser, path):
    shades = [browser.page(path, dark=dark).evaluate("getComputedStyle(document.body).backgroundColor") for dark in (False, True)]
    assert shades[0] != shades[1], shades


def check_batch(browser, folder):
    (folder / "models").mkdir()
    missed_model(folder / "models/missed.onnx")
    (folder / "models/bad.onnx").write_text("no model")
    for layers in range(1, 13):
        deep_model(folder / f"models/layers_{layers}.onnx", layers)
    path, data = report(folder, "batch", SOURCE / "testdata/models", folder / "models", status=3)
    page = browser.page(path)
    rows = len(data["models"])
    visible = "[...document.querySelectorAll('.models tbody tr')].filter((row) => row.offsetHeight > 0).length"
    assert page.evaluate(visible) == rows >= 20
    check_layout(page)

    def filter_by(words):
        page.evaluate(f"(() => {{ const box = document.getElementById('filter'); box.value = {json.dumps(words)};"
                      " box.dispatchEvent(new Event('input')); })()")
        return page.evaluate(visible)

    assert filter_by("swin") == 1 and filter_by("SOFTMAX.axis missed") == 1 and filter_by("") == rows
    assert filter_by("bad") >= 1 and filter_by("no such model") == 0 and filter_by("") == rows
    for number, model in enumerate(data["models"]):
        page.evaluate(f"location.hash = '#model-{number}'")
        page.wait_for(f"document.querySelector('header strong')?.textContent === {json.dumps(model['input'])}")
        if model["report"]:
            cards = page.evaluate("[...document.querySelectorAll('.card')].map((card) => card.querySelectorAll('svg').length)")
            assert len(cards) == len(model["report"]["groups"]) and all(cards), (model["input"], cards)
    page.evaluate("location.hash = ''")
    page.wait_for("document.querySelector('.models') !== null")
    check_quiet(page)
    print(f"batch: {rows} models, {path.stat().st_size} bytes")


def main():
    program = chromium.find()
    assert program, "no Chromium: scripts/test installs it"
    with tempfile.TemporaryDirectory() as name, chromium.Browser(program) as browser:
        folder = pathlib.Path(name)
        for model in ("bert-ts14s", "llama-past-ts17s", "timm-swin-ts17e", "opt-t5-decoder_model_merged"):
            _, path, _ = check_model(browser, folder, SOURCE / f"testdata/models/{model}.onnx")
        check_dark(browser, path)
        check_model(browser, folder, SOURCE / "testdata/models/llama-past-ts17s.onnx", "--exact", "--verify", "off")
        check_miss(browser, folder)
        check_order(browser, folder)
        check_places(browser, folder)
        check_picture(browser, folder)
        check_optimised(browser, folder)
        check_rewrites(browser, folder)
        for layers in (12, 48):
            check_deep(browser, folder, layers)
        check_batch(browser, folder)


main()
