"""Measures what optimising a model is worth in the runtime that its user has.

    python -m attn_opt.effect model.onnx
    effects = attn_opt.effect.measure("model.onnx", runtime="onnxruntime", dims={"past": [128, 2000]})

docs/effect.md is the manual. It needs the Python packages onnx and that of the runtime, neither of which attn_opt depends on.
"""

from ._effect import measure
from ._process import RunFailed
from ._results import CONTROL, ORIGINAL, Effect, Row
from ._statistics import Difference, Ratio
from ._table import table

__all__ = ["CONTROL", "Difference", "Effect", "ORIGINAL", "Ratio", "Row", "RunFailed", "measure", "table"]
