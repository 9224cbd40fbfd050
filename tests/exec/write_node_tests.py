"""Writes ONNX's backend node tests as the installed onnx package defines them: for each a folder with model.onnx,
tolerance.json and test_data_set_N/{input,output}_M.pb.

    write_node_tests.py FOLDER

FOLDER appears whole: it is written beside its place and renamed. One that is there already is left as it is.
"""

import json
import os
import shutil
import sys
import warnings
from pathlib import Path

import numpy
import onnx
from onnx.backend.test.case.node import collect_testcases


def serialized(value, declared):
    if isinstance(value, onnx.TensorProto):
        return value.SerializeToString()
    kind = declared.type.WhichOneof("value")
    if kind == "sequence_type":
        return onnx.numpy_helper.from_list(value, declared.name).SerializeToString()
    if kind == "optional_type":
        return onnx.numpy_helper.from_optional(value, declared.name).SerializeToString()
    if kind == "map_type":
        return onnx.numpy_helper.from_dict(value, declared.name).SerializeToString()
    return onnx.numpy_helper.from_array(numpy.asarray(value), declared.name).SerializeToString()


def write_case(case, folder):
    folder.mkdir()
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    (folder / "tolerance.json").write_text(json.dumps({"rtol": case.rtol, "atol": case.atol}))
    graph = case.model.graph
    for number, (inputs, outputs) in enumerate(case.data_sets or []):
        data = folder / f"test_data_set_{number}"
        data.mkdir()
        for role, values, declared in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for i, (value, info) in enumerate(zip(values, declared)):
                (data / f"{role}_{i}.pb").write_bytes(serialized(value, info))


def main():
    target = Path(sys.argv[1])
    if target.exists():
        return
    work = target.with_name(f"{target.name}.{os.getpid()}")
    work.mkdir(parents=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the cases overflow and divide by zero on purpose
            cases = collect_testcases(None)
        for case in cases:
            if case.model is not None:
                write_case(case, work / case.name)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
