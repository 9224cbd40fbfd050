"""What the tests of the Python package share. PYTHONPATH says where the package is."""
import pathlib

import numpy as np
import onnx
import onnx.parser
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODELS = ROOT / "testdata" / "models"
CASES = ROOT / "testdata" / "cases"


@pytest.fixture
def bert_path():
    """Two attentions with a bias, inputs (batch, seq)."""
    return MODELS / "bert-ts14s.onnx"


@pytest.fixture
def bert(bert_path):
    return onnx.load(bert_path)


@pytest.fixture
def bert_inputs():
    mask = np.ones((2, 7), np.int64)
    mask[1, 4:] = 0
    return {"input_ids": np.arange(14, dtype=np.int64).reshape(2, 7), "attention_mask": mask}


@pytest.fixture
def odds():
    """An attention whose exponentials are odds of a sigmoid, which attn-opt does not know."""
    return onnx.parser.parse_model((CASES / "rules/odds.onnxtxt").read_text())


@pytest.fixture
def without_attention():
    return onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (float[n] y) { y = Relu (x) }')


def count(model, op):
    return sum(node.op_type == op for node in model.graph.node)
