"""attn_opt.effect: what is measured in a runtime, and what the command says of it."""
import json
import re
import sys

import jsonschema
import numpy as np
import onnx.parser
import pytest
from conftest import MODELS, ROOT

import attn_opt.effect
from attn_opt.effect import CONTROL, ORIGINAL, RunFailed
from attn_opt.effect import _effect as effect_module
from attn_opt.effect._command import _parser, main
from attn_opt.effect._effect import measure_models
from attn_opt.effect._process import Process
from attn_opt.effect._targets import Written

LLAMA = MODELS / "llama-past-dy18s-extdata" / "model.onnx"
X = {"x": np.ones((64, 64), np.float32)}


def chain(path, products, factor=1.0, op="MatMul"):
    """A model that multiplies by 64 x 64 PRODUCTS times, and by FACTOR. A product with the identity changes nothing."""
    build = attn_opt.GraphBuilder(opset=17)
    made, eye = build.input("x", "float32", [64, 64]), build.initializer("eye", np.eye(64, dtype=np.float32))
    build.import_opset("nowhere", 1)
    for _ in range(products):
        made = build.node(op, [made, eye])
        build.declare(made, "float32", [64, 64])
    build.output("y", build.node("Mul", [made, build.initializer("factor", np.float32(factor))]))
    onnx.save(build.model(), path)
    return str(path)


def written(path, **fields):
    return Written(**{"path": path, "fused": 1, "changed": True, "same_as": "", **fields})


def fakes(monkeypatch, **models):
    """What is "written" for targets in the place of what attn_opt writes."""
    monkeypatch.setattr(effect_module, "write_for_targets", lambda model, targets, folder: {name: written(path) for name, path in models.items()})


def row(effect, name):
    return next(row for row in effect.rows if row.name == name)


def test_faster_and_slower_models_are_told(tmp_path):
    models = {name: written(chain(tmp_path / f"{name}.onnx", n)) for name, n in (("fast", 4), ("slow", 160))}
    effect = measure_models(chain(tmp_path / "m.onnx", 40), models, X, runtime="onnxruntime", threads=1, repeats=7)
    assert row(effect, "slow").cpu_ratio.high < 1 < row(effect, "fast").cpu_ratio.low and effect.choice == "fast"
    assert row(effect, CONTROL).difference.absolute == 0 and not effect.failed and not effect.differs
    del models["fast"]
    effect = measure_models(str(tmp_path / "m.onnx"), models, X, runtime="onnxruntime", threads=1, repeats=7)
    assert effect.choice == ORIGINAL and attn_opt.effect.table(effect).rstrip().split("\n")[-1].startswith("keep the original")


def test_models_of_other_tools_are_measured_beside(tmp_path):
    model, other = chain(tmp_path / "m.onnx", 8), chain(tmp_path / "other.onnx", 2)
    (effect,) = attn_opt.effect.measure(model, others={"mine": other}, repeats=3)
    assert effect.choice == ORIGINAL and row(effect, "mine").cpu_ratio.median > 1 and row(effect, "mine").fused is None


def test_memory_is_of_one_model_alone(tmp_path):
    """The large one has 64 MB more, and the small one behind it nothing of it."""
    large = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> g (float[64,64] x) => (float y) {
        shape = Constant<value_ints = [4096, 64, 64]>() wide = Expand(x, shape) y = ReduceMax<keepdims = 0>(wide) }""")
    onnx.save(large, tmp_path / "large.onnx")
    models = {"small": written(chain(tmp_path / "small.onnx", 1))}
    effect = measure_models(str(tmp_path / "large.onnx"), models, X, runtime="onnxruntime", threads=1, repeats=2)
    assert row(effect, ORIGINAL).peak_bytes - row(effect, "small").peak_bytes > 50e6
    assert effect.differs and np.isinf(row(effect, "small").difference.relative)
    assert json.dumps(effect.to_dict(), allow_nan=False)


def test_other_numbers_are_reported(tmp_path, monkeypatch, capsys):
    model = chain(tmp_path / "m.onnx", 2)
    fakes(monkeypatch, portable=chain(tmp_path / "right.onnx", 3), ort=chain(tmp_path / "wrong.onnx", 2, factor=1.01))
    assert main([model, "--repeats", "2"]) == 4
    assert "ort: output 'y' is beyond the tolerance (!)" in capsys.readouterr().out
    assert main([model, "--repeats", "2", "--tolerance", "0.1"]) == 0


def test_what_differs_is_the_reason_to_keep_the_original(tmp_path, monkeypatch, capsys):
    model = chain(tmp_path / "m.onnx", 40)
    fakes(monkeypatch, portable=chain(tmp_path / "wrong.onnx", 2, factor=1.01))
    assert main([model, "--repeats", "2"]) == 4
    assert capsys.readouterr().out.endswith("keep the original: portable gives other numbers, and no other output is faster\n")


@pytest.mark.parametrize("name, sizes", [("bert-ts14s", "batch = 1, seq = 32"), ("gpt2-past-ts17s", "past = 32")])
def test_models_whose_tables_are_short_run_with_the_defaults(name, sizes, capsys):
    assert main([str(MODELS / f"{name}.onnx"), "--repeats", "1", "--target", "portable"]) == 0
    assert sizes in capsys.readouterr().out.splitlines()[0]


def test_sizes_are_those_of_the_arrays_that_are_given(tmp_path, capsys):
    ids = np.ones((2, 10), np.int64)
    np.savez(tmp_path / "in.npz", input_ids=ids, attention_mask=ids)
    arguments = [str(MODELS / "bert-ts14s.onnx"), "--inputs", str(tmp_path / "in.npz"), "--repeats", "1", "--target", "portable"]
    assert main(arguments) == 0
    assert "batch = 2, seq = 10" in capsys.readouterr().out.splitlines()[0]
    assert main([*arguments, "--dim", "seq=9"]) == 2
    assert "'input_ids' has 10 along 'seq', which is 9 elsewhere" in capsys.readouterr().err


def test_a_written_model_that_does_not_run_is_reported(tmp_path, monkeypatch, capsys):
    model = chain(tmp_path / "m.onnx", 2)
    fakes(monkeypatch, portable=chain(tmp_path / "bad.onnx", 2, op="nowhere::Operator"), ort=chain(tmp_path / "right.onnx", 2))
    assert main([model, "--repeats", "2", "--json"]) == 3
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["effects"][0]["rows"]}
    assert "nowhere" in rows["portable"]["failure"] and rows["ort"]["cpu_seconds"] > 0


def test_random_models_are_not_blamed(tmp_path, monkeypatch, capsys):
    model = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> g (float[64,64] x) => (float[64,64] y) {
        noise = RandomNormalLike(x) y = Add(x, noise) }"""), model)
    fakes(monkeypatch, portable=str(model))
    assert main([str(model), "--repeats", "2"]) == 0
    assert "outputs differ from run to run" in capsys.readouterr().out


def test_a_missing_runtime_is_one_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert main([str(LLAMA)]) == 3
    assert capsys.readouterr().err == ("attn_opt.effect: runtime: the Python package onnxruntime is not installed; attn_opt measures in the runtime "
                                       "that you use; pip install onnxruntime\n")


@pytest.mark.parametrize("arguments, status, said", [
    ([str(MODELS / "gpt2-past-ts17s.onnx"), "--dim", "past=128"], 3, "give sizes with --dim, or arrays with --inputs"),
    (["none.onnx"], 3, "none.onnx: cannot be read as ONNX"),
    ([str(LLAMA), "--target", "none"], 2, "there is no target 'none'"),
    ([str(LLAMA), "--dim", "past=0"], 2, "'past=0' is not NAME=SIZE"),
    ([str(LLAMA), "--repeats", "0"], 2, "0 repeats"),
    ([str(LLAMA), "--inputs", str(LLAMA)], 3, "cannot be read as .npz")])
def test_errors_are_one_line(arguments, status, said, capsys):
    assert main(arguments) == status
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith("attn_opt.effect: ") and said in last


def test_a_process_that_dies_is_a_failure(tmp_path):
    with Process("onnxruntime", chain(tmp_path / "m.onnx", 1), 1, X) as process:
        process._process.kill()
        with pytest.raises(RunFailed, match="was ended by SIGKILL; it may have been out of memory"):
            process.turn(1)


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_a_real_decoder_with_external_data(runtime, tmp_path, capsys):
    arguments = [str(LLAMA), "--runtime", runtime, "--dim", "past=3,5", "seq=2", "--repeats", "2", "--keep", str(tmp_path), "--json"]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, json.loads((ROOT / "docs/schema/effect-1.schema.json").read_text()))
    assert [effect["sizes"] for effect in found["effects"]] == [{"batch": 1, "seq": 2, "total": 2 + past, "past": past} for past in (3, 5)]
    names = [row["name"] for row in found["effects"][0]["rows"]]
    assert names[:3] == [ORIGINAL, CONTROL, "portable"] and {"onnxruntime": "ort", "openvino": "openvino"}[runtime] in names
    fused = {row["name"]: row["fused"] for row in found["effects"][0]["rows"][2:]}
    fused.pop("ort-contrib", None)  # whose operators cannot express every mask
    assert set(fused.values()) == {2} and (tmp_path / "portable/model.onnx").exists()


def test_nothing_to_fuse_is_said_and_not_measured(tmp_path, capsys):
    assert main([chain(tmp_path / "m.onnx", 2), "--repeats", "2", "--target", "portable"]) == 0
    printed = capsys.readouterr().out
    assert "portable: nothing is fused; the output is the original (no attention was found)" in printed and "keep the original" in printed


def test_the_manual_runs(monkeypatch, capsys):
    """Its example, and its block of Python."""
    manual = (ROOT / "docs" / "effect.md").read_text()
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r"\$ python -m attn_opt.effect (.*)", manual)
    assert main([*example.split(), "--repeats", "2"]) == 0
    head, _, names, *_ = re.search(r"\$ python -m.*\n((?:    .*\n|\n)*)", manual)[1].splitlines()
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split(",")[1:] == head.split(",")[1:] and printed[2].split() == names.split()
    (block,) = re.findall(r"```python\n(.*?)```", manual, re.S)
    exec(compile(block, "docs/effect.md", "exec"), {})
    assert capsys.readouterr().out.count("original again") == 4


def test_the_manual_has_every_option_and_status():
    manual = (ROOT / "docs" / "effect.md").read_text()
    for option in re.findall(r"--[a-z]+", _parser().format_help()):
        assert option == "--help" or f"`{option}" in manual, option
    assert re.findall(r"^\| (\d) \|", manual, re.M) == ["0", "2", "3", "4"]
