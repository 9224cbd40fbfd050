"""attn-opt as a pass of onnx_ir, for pipelines of onnxscript, Olive and Optimum.

    import onnx_ir.passes
    from attn_opt.ir_pass import FuseAttention

    pipeline = onnx_ir.passes.Sequential(FuseAttention(), ...)
    result = pipeline(model)
"""

from __future__ import annotations

from typing import Any, Optional

import onnx_ir as ir

from ._api import optimize
from ._errors import UsageError
from ._report import Report

__all__ = ["FuseAttention"]

_NOT_OF_A_PASS = ("output", "base_dir", "check", "external_data")


class FuseAttention(ir.passes.InPlacePass):
    """Rewrites attention into ONNX Attention nodes, in place: the model gets a new graph. If nothing is fused it stays as it was.

    Attributes:
        report: of the last model that it was called with.
    """

    def __init__(self, **options: Any):
        """OPTIONS are those of attn_opt.optimize(), but for output, base_dir, check and external_data."""
        for name in _NOT_OF_A_PASS:
            if name in options:
                raise UsageError(f"a pass has no option '{name}'", "FuseAttention")
        super().__init__()
        self.options = options
        self.report: Optional[Report] = None

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        made, self.report = optimize(model, **self.options)
        if self.report.changed:
            model.graph = made.graph
            model.ir_version = made.ir_version
            model.functions.clear()
            model.functions.update(made.functions)
        return ir.passes.PassResult(model, modified=self.report.changed)
