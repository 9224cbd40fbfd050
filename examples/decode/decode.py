#!/usr/bin/env python3
"""Decodes with caches that grow and with caches that are buffers, and compares the tokens.

    decode.py ATTN_OPT MODEL [--steps N] [--target ort|ort-contrib]

MODEL is a decoder with the inputs input_ids (batch, seq), attention_mask (batch, total) and past_key_values.*, and the outputs
logits and present.*, as exporters write it. It is run as it is by Growing, and by Static as `attn-opt --kv-cache static` writes it.
"""
import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

PROMPT = [3, 17, 42, 7, 99]


def session_of(path):
    ort.set_default_logger_severity(3)
    return ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def cache_names(session):
    """Pairs of the input and the output of each cache."""
    return [(i.name, i.name.replace("past_key_values", "present")) for i in session.get_inputs() if "past_key_values" in i.name]


def empty_cache(session, name, rows):
    """Zeros of one sequence: (1, heads, rows, head size)."""
    heads, size = next(i.shape[1::2] for i in session.get_inputs() if i.name == name)
    return np.zeros((1, heads, rows, size), np.float32)


class Growing:
    """The model as it was exported: each run gives caches that are longer than those that it was given."""

    def __init__(self, path):
        self.session = session_of(path)
        self.names = cache_names(self.session)
        self.caches = {past: empty_cache(self.session, past, 0) for past, _ in self.names}
        self.held = 0

    def step(self, tokens):
        """Logits of the last of TOKENS, which come behind those of earlier steps."""
        self.held += len(tokens)
        feeds = {"input_ids": np.array([tokens]), "attention_mask": np.ones((1, self.held), np.int64), **self.caches}
        logits, *presents = self.session.run(["logits"] + [present for _, present in self.names], feeds)
        self.caches = {past: cache for (past, _), cache in zip(self.names, presents)}
        return logits[0, -1]


class Static:
    """The model with buffers: each is bound as an input and as the output that it becomes, so that no cache is copied."""

    def __init__(self, path, rows):
        self.session = session_of(path)
        self.rows, self.held = rows, 0
        self.binding = self.session.io_binding()
        for past, present in cache_names(self.session):
            buffer = ort.OrtValue.ortvalue_from_numpy(empty_cache(self.session, past, rows))
            self.binding.bind_ortvalue_input(past, buffer)
            self.binding.bind_ortvalue_output(present, buffer)

    def step(self, tokens):
        """As Growing.step()."""
        if self.held + len(tokens) > self.rows:
            raise ValueError(f"the buffers of {self.rows} rows are full")
        self.binding.bind_cpu_input("past_sequence_length", np.array([self.held]))
        self.held += len(tokens)
        self.binding.bind_cpu_input("input_ids", np.array([tokens]))
        self.binding.bind_cpu_input("attention_mask", np.ones((1, self.held), np.int64))
        self.binding.bind_output("logits")
        self.session.run_with_iobinding(self.binding)
        return self.binding.get_outputs()[-1].numpy()[0, -1]


def decode(model, steps):
    """Tokens of greedy decoding behind PROMPT, all logits, and seconds that the steps took."""
    start = time.perf_counter()
    logits = [model.step(PROMPT)]
    for _ in range(steps - 1):
        logits.append(model.step([int(logits[-1].argmax())]))
    return [int(row.argmax()) for row in logits], np.array(logits), time.perf_counter() - start


def of_one_sequence(source, target):
    """SOURCE with a batch of 1, written to TARGET: GroupQueryAttention takes a mask behind a past of no other batch."""
    model = onnx.load(source)
    for value in [*model.graph.input, *model.graph.output]:
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param == "batch":
                size.dim_value = 1
    onnx.save(model, target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attn_opt")
    parser.add_argument("model", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--target", default="ort", choices=["ort", "ort-contrib"])
    arguments = parser.parse_args()
    rows = len(PROMPT) + arguments.steps
    with tempfile.TemporaryDirectory() as folder:
        given, static = Path(folder, "given.onnx"), Path(folder, "static.onnx")
        of_one_sequence(arguments.model, given)
        subprocess.run([arguments.attn_opt, given, "-o", static, "--target", arguments.target, f"--kv-cache=static={rows}"], check=True)
        operators = {node.op_type for node in onnx.load(static).graph.node}
        wanted = "TensorScatter" if arguments.target == "ort" else "GroupQueryAttention"
        if wanted not in operators:
            raise SystemExit(f"the model has no {wanted}")
        grown, grown_logits, grown_seconds = decode(Growing(given), arguments.steps)
        fixed, fixed_logits, fixed_seconds = decode(Static(static, rows), arguments.steps)
    print("tokens:", *grown)
    print(f"largest difference of logits: {np.abs(grown_logits - fixed_logits).max():.2g}")
    print(f"growing: {grown_seconds:.3f} s, static: {fixed_seconds:.3f} s")
    if grown != fixed:
        step = next(i for i, (one, other) in enumerate(zip(grown, fixed)) if one != other)
        raise SystemExit(f"{arguments.steps} steps: other tokens from step {step} on")
    print(f"{wanted}: the same tokens in {arguments.steps} steps")


if __name__ == "__main__":
    main()
