#!/usr/bin/env python3
"""Compares the executor's Attention kernel with ONNX Runtime's, one thread each, run in turns.

    bench/attention.py build/attention_kernel [--rounds N] [--cases abcdefgh]

Prints the median CPU milliseconds of both and their ratio, above 1 where the executor is faster. Needs onnx, onnxruntime
and numpy.
"""
import argparse
import statistics
import subprocess
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper


def session_and_inputs(batch, heads, kv_heads, queries, keys, width, mask):
    draw = np.random.default_rng(1)
    normal = lambda *dims: draw.standard_normal(dims, dtype=np.float32)
    feeds = {"q": normal(batch, heads, queries, width), "k": normal(batch, kv_heads, keys, width),
             "v": normal(batch, kv_heads, keys, width)}
    if mask == "float":
        feeds["mask"] = normal(1, 1, queries, keys)
    if mask == "padding":
        valid = keys * (20 + draw.integers(0, 55, (batch, 1, 1, 1))) // 100
        feeds["mask"] = np.broadcast_to(np.arange(keys) < valid, (batch, 1, queries, keys)).copy()
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feeds.items()]
    node = helper.make_node("Attention", list(feeds), ["y"], is_causal=int(mask == "causal"))
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = helper.make_model(helper.make_graph([node], "attention", infos, [output]),
                              opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]), feeds


def turn_of(session, feeds, runs):
    """Milliseconds of CPU time of each of RUNS runs; one before them is not counted."""
    session.run(None, feeds)
    times = []
    for _ in range(runs):
        start = time.process_time()
        session.run(None, feeds)
        times.append(1e3 * (time.process_time() - start))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--cases", default="abcdefgh")
    arguments = parser.parse_args()
    for line in subprocess.check_output([arguments.program], text=True).splitlines():
        name, *sizes, mask = line.split()
        if name not in arguments.cases:
            continue
        session, feeds = session_and_inputs(*map(int, sizes), mask)
        # As many runs as take 30 ms: in its first few a process still fetches memory, and the clock ticks in microseconds.
        runs = max(3, round(30 / statistics.median(turn_of(session, feeds, 3))))
        ours, theirs = [], []
        for _ in range(arguments.rounds):
            printed = subprocess.check_output([arguments.program, name, str(runs)], text=True)
            ours.append(statistics.median(map(float, printed.split())))
            theirs.append(statistics.median(turn_of(session, feeds, runs)))
        ratio = statistics.median(t / o for o, t in zip(ours, theirs))
        print(f"{line:36} executor {statistics.median(ours):8.2f} ms   onnxruntime {statistics.median(theirs):8.2f} ms"
              f"   {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
