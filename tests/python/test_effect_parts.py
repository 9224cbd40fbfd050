"""attn_opt.effect: sizes, inputs, statistics and the choice, without a runtime."""
import math

import numpy as np
import onnx.parser
import pytest
from conftest import MODELS

import attn_opt
from attn_opt.effect import CONTROL, ORIGINAL, Ratio, Row
from attn_opt.effect._declared import Declared, bytes_of, declared_inputs
from attn_opt.effect._draw import draw
from attn_opt.effect._results import choose
from attn_opt.effect._sizes import combinations, given_sizes, sizes_of
from attn_opt.effect._statistics import largest_difference, paired_ratio

LLAMA = MODELS / "llama-past-ts17s.onnx"


def drawn(*inputs, **sizes):
    return draw(inputs, sizes_of(inputs, sizes), {})


def test_sizes_of_a_decoder():
    inputs = declared_inputs(str(LLAMA))
    assert sizes_of(inputs, {}) == {"batch": 1, "seq": 1, "total": 129, "past": 128}
    assert sizes_of(inputs, {"past": 7, "seq": 4}) == {"batch": 1, "seq": 4, "total": 11, "past": 7}
    assert sizes_of(inputs, {"past": 7, "total": 9})["total"] == 9


def test_sizes_by_what_names_say():
    assert sizes_of(declared_inputs(str(MODELS / "encoder-dy20e.onnx")), {}) == {"batch": 1, "seq": 128}
    image = [Declared("pixel_values", "float32", ("batch", "channels", "height", "width"))]
    assert sizes_of(image, {}) == {"batch": 1, "channels": 3, "height": 224, "width": 224}
    unnamed = [Declared("x", "float32", ("x:0", "x:1", 8))]
    assert sizes_of(unnamed, {"x:1": 5}) == {"x:0": 1, "x:1": 5}


def test_sizes_that_are_sums_of_others():
    inputs = [Declared("input_ids", "int64", ("b", "new")), Declared("attention_mask", "int64", ("b", "old + new")),
              Declared("past_key_values.0.key", "float32", ("b", 2, "old", 8)), Declared("twice", "float32", ("2*new - 1",))]
    assert sizes_of(inputs, {"old": 10, "new": 3}) == {"b": 128, "new": 3, "old + new": 13, "old": 10, "2*new - 1": 5}


def test_sizes_that_are_given():
    assert given_sizes(["past=128,2000", "x:1=3"]) == {"past": [128, 2000], "x:1": [3]}
    assert list(combinations({"a": [1, 2], "b": [3]})) == [{"a": 1, "b": 3}, {"a": 2, "b": 3}]
    for wrong in ("past", "past=0", "past=1,", "past=x", "=1"):
        with pytest.raises(attn_opt.UsageError, match="is not NAME=SIZE"):
            given_sizes([wrong])
    with pytest.raises(attn_opt.UsageError, match="no input has an axis 'pasts'; there are batch, seq, total, past"):
        sizes_of(declared_inputs(str(LLAMA)), {"pasts": 1})


def test_ids_fit_their_table(tmp_path):
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> g (int32[n] ids, float[n] x) => (float[n,2] y)
        <float[3,2] table = {1, 2, 3, 4, 5, 6}> { wide = Cast<to = 7>(ids) y = Gather(table, wide) }""")
    onnx.save(model, tmp_path / "m.onnx")
    inputs = declared_inputs(str(tmp_path / "m.onnx"))
    assert inputs == [Declared("ids", "int32", ("n",), 3), Declared("x", "float32", ("n",))]
    ids = draw(inputs, {"n": 200}, {})["ids"]
    assert ids.dtype == np.int32 and set(ids) == {0, 1, 2}


def test_arrays_have_their_inputs_types_and_meaning():
    cache = Declared("past_key_values.0.key", "float16", ("batch", 2, "past", 8))
    arrays = drawn(Declared("input_ids", "int64", ("batch", "seq")), Declared("position_ids", "int64", ("batch", "seq")),
                   Declared("attention_mask", "int64", ("batch", "total")), Declared("keep_mask", "bool", ("batch", "total")),
                   Declared("bias_mask", "float32", ("batch", 1, "seq", "total")), Declared("use_cache_branch", "bool", (1,)),
                   Declared("seqlens_k", "int32", ("batch",)), Declared("total_sequence_length", "int32", ()), cache, past=5, seq=2)
    assert arrays["past_key_values.0.key"].dtype == np.float16 and arrays["past_key_values.0.key"].shape == (1, 2, 5, 8)
    assert arrays["position_ids"].tolist() == [[5, 6]] and arrays["input_ids"].dtype == np.int64
    assert arrays["attention_mask"].tolist() == [[1] * 7] and arrays["keep_mask"].dtype == bool and arrays["keep_mask"].all()
    assert not arrays["bias_mask"].any() and arrays["use_cache_branch"].tolist() == [True]
    assert arrays["seqlens_k"].tolist() == [6] and arrays["total_sequence_length"].shape == () and arrays["total_sequence_length"] == 7


def test_arrays_that_are_given_are_taken():
    inputs = [Declared("x", "float32", ("n",))]
    assert draw(inputs, {"n": 2}, {"x": np.ones(3)})["x"].tolist() == [1, 1, 1]
    with pytest.raises(attn_opt.InvalidModelError, match="no input 'y'"):
        draw(inputs, {"n": 2}, {"y": np.ones(3)})


@pytest.mark.parametrize("declared, what", [("string[n] x", "strings"), ("seq(float[n]) x", "no tensor"), ("bfloat16[n] x", "NumPy has no bfloat16")])
def test_inputs_that_are_not_drawn_are_named(declared, what, tmp_path):
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g ({declared}) => (float y) {{ y = Constant<value_float = 1.0>() }}'),
              tmp_path / "m.onnx")
    with pytest.raises(attn_opt.UnsupportedError, match=f"input 'x': .*{what}"):
        inputs = declared_inputs(str(tmp_path / "m.onnx"))
        draw(inputs, {"n": 1}, {})


def test_bytes_count_data_files():
    folder = MODELS / "llama-past-dy18s-extdata"
    assert bytes_of(str(folder / "model.onnx")) == sum(file.stat().st_size for file in folder.iterdir())


def test_ratios_are_of_pairs():
    """The machine became ten times slower in between: the pairs do not notice."""
    before, after = [2.0] * 8 + [20.0] * 7, [1.0] * 8 + [10.0] * 7
    assert paired_ratio(before, after) == Ratio(2.0, 2.0, 2.0)


@pytest.mark.parametrize("count, outside", [(1, 0), (5, 0), (6, 0), (10, 1), (15, 3), (20, 5)])
def test_intervals_are_those_of_the_sign_test(count, outside):
    """Ranks as tables of the confidence interval of a median have them."""
    ratio = paired_ratio([float(n + 1) for n in range(count)], [1.0] * count)
    assert (ratio.low, ratio.high) == (outside + 1, count - outside)


def test_differences():
    ones = np.ones(4, np.float32)
    assert not largest_difference({"y": ones}, {"y": ones * 1.0005}).beyond
    assert largest_difference({"y": ones}, {"y": ones * 1.002}).beyond
    assert not largest_difference({"y": ones}, {"y": ones * 1.002}, tolerance=0.01).beyond
    assert not largest_difference({"y": ones.astype(np.float16)}, {"y": (ones * 1.002).astype(np.float16)}).beyond
    found = largest_difference({"y": ones * 4, "z": ones}, {"y": ones * 5, "z": ones})
    assert (found.output, found.absolute, found.relative) == ("y", 1.0, 0.25)
    for other in (np.ones(3, np.float32), np.array([1, 1, 1, np.nan], np.float32), np.array([1, 1, 1, np.inf], np.float32), None):
        assert math.isinf(largest_difference({"y": ones}, {"y": other}).relative)
    nans = np.array([np.nan, -np.inf, 1], np.float32)
    assert largest_difference({"y": nans}, {"y": nans}).relative == 0
    assert largest_difference({"y": np.array([7])}, {"y": np.array([8])}, tolerance=1.0).beyond


@pytest.mark.parametrize("targets, choice", [
    ({"portable": (1.3, 1.2, 1.4), "ort": (1.5, 1.45, 1.6)}, "ort"),
    ({"portable": (1.45, 1.3, 1.55), "ort": (1.5, 1.45, 1.6)}, "portable"),  # which cannot be told from the fastest
    ({"portable": (1.3, 0.99, 1.4)}, ORIGINAL),
    ({"portable": (1.3, 1.04, 1.4)}, ORIGINAL),  # within what the original differs from itself
    ({"portable": (0.5, 0.4, 0.6)}, ORIGINAL),
    ({}, ORIGINAL)])
def test_choice(targets, choice):
    rows = [Row(ORIGINAL), Row(CONTROL, cpu_ratio=Ratio(1.0, 0.95, 1.05))]
    assert choose(rows + [Row(name, fused=1, cpu_ratio=Ratio(*ratio)) for name, ratio in targets.items()], "cpu") == choice


def test_models_of_other_tools_are_never_the_choice():
    assert choose([Row(ORIGINAL), Row("another optimizer", cpu_ratio=Ratio(9.0, 8.0, 9.5))], "cpu") == ORIGINAL


def test_what_gives_other_numbers_is_never_the_choice():
    wrong = largest_difference({"y": np.ones(1)}, {"y": np.zeros(1)})
    assert choose([Row(ORIGINAL), Row("portable", fused=1, cpu_ratio=Ratio(9.0, 8.0, 9.5), difference=wrong)], "cpu") == ORIGINAL
