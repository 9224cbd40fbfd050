"""Finds attention in ONNX models and rewrites it into ONNX Attention nodes.

    import attn_opt
    model, report = attn_opt.optimize("model.onnx")
    print(report)

docs/python.md in the folder of this package is the manual.
"""

from ._api import Explanation, compare, explain, optimize, patterns, run, test
from ._core import Builder, Context, Dim, Facts, Graph, GraphBuilder, Node, Parameter, Value, __version__
from ._description import Bias, Drop, Keep, Miss, Pattern, Rewrite, RewriteMatch, Sdpa, Term, pattern, rewrite
from ._errors import (Error, InvalidModelError, LimitError, MismatchError, OutputError, PatternError, RequirementError,
                      UnsupportedError, UsageError)
from ._report import (CaseResult, Comparison, OtherMiss, OutputDifference, Precondition, Report, Rewritten, Site, SiteMiss, TestResults,
                      Verification)

__all__ = [
    "Bias", "Builder", "CaseResult", "Comparison", "Context", "Dim", "Drop", "Error", "Explanation", "Facts", "Graph", "GraphBuilder", "InvalidModelError", "Keep",
    "LimitError", "MismatchError", "Miss", "Node", "OtherMiss", "OutputDifference", "OutputError", "Parameter", "Pattern", "PatternError", "Precondition",
    "Report", "RequirementError", "Rewrite", "RewriteMatch", "Rewritten", "Sdpa", "Site", "SiteMiss", "Term", "TestResults", "UnsupportedError", "UsageError", "Value", "Verification",
    "__version__", "compare", "explain", "optimize", "pattern", "patterns", "rewrite", "run", "test",
]
