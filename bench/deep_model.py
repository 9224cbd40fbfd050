#!/usr/bin/env python3
"""Writes a transformer of SITES attention layers, 25 nodes each, at opset 24: a model on which to see how work grows.

usage: deep_model.py SITES OUTPUT.onnx [--static]

Every layer has weights of its own; batch and sequence length are symbolic unless --static.
Needs the Python package onnx.
"""
import argparse

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HIDDEN, HEADS = 16, 2
HEAD_SIZE = HIDDEN // HEADS


class Layers:
    def __init__(self):
        self.nodes, self.initializers = [], []
        self.random = np.random.default_rng(0)

    def constant(self, name, value):
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, name, *shape):
        return self.constant(name, (self.random.standard_normal(shape) * 0.1).astype(np.float32))

    def node(self, op, inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def heads(self, layer, role, source, perm):
        prefix = f"layer{layer}/{role}"
        projected = self.node("MatMul", [source, self.weight(f"{prefix}/weight", HIDDEN, HIDDEN)], f"{prefix}/matmul")
        biased = self.node("Add", [projected, self.weight(f"{prefix}/bias", HIDDEN)], f"{prefix}/add")
        split = self.node("Reshape", [biased, "split_shape"], f"{prefix}/reshape")
        return self.node("Transpose", [split], f"{prefix}/transpose", perm=perm)

    def layer(self, layer, x):
        name = f"layer{layer}"
        norm = self.node("LayerNormalization", [x, self.weight(f"{name}/norm/weight", HIDDEN)], f"{name}/norm", axis=-1)
        q = self.heads(layer, "q", norm, [0, 2, 1, 3])
        k = self.heads(layer, "k", norm, [0, 2, 3, 1])
        v = self.heads(layer, "v", norm, [0, 2, 1, 3])
        scores = self.node("MatMul", [q, k], f"{name}/scores")
        scaled = self.node("Mul", [scores, "scale"], f"{name}/scaled")
        masked = self.node("Add", [scaled, "mask"], f"{name}/masked")
        probabilities = self.node("Softmax", [masked], f"{name}/softmax", axis=-1)
        context = self.node("MatMul", [probabilities, v], f"{name}/context")
        rows = self.node("Transpose", [context], f"{name}/rows", perm=[0, 2, 1, 3])
        merged = self.node("Reshape", [rows, "merge_shape"], f"{name}/merged")
        out = self.node("MatMul", [merged, self.weight(f"{name}/out/weight", HIDDEN, HIDDEN)], f"{name}/out")
        biased = self.node("Add", [out, self.weight(f"{name}/out/bias", HIDDEN)], f"{name}/out/add")
        residual = self.node("Add", [x, biased], f"{name}/residual")
        gate = self.node("Sigmoid", [residual], f"{name}/gate")
        return self.node("Mul", [residual, gate], f"{name}/swish")


def deep_model(sites, static):
    layers = Layers()
    layers.constant("split_shape", np.array([0, 0, HEADS, HEAD_SIZE], np.int64))
    layers.constant("merge_shape", np.array([0, 0, HIDDEN], np.int64))
    layers.constant("scale", np.float32(HEAD_SIZE**-0.5))
    batch, length = (2, 8) if static else ("batch", "sequence")
    x = "x"
    for layer in range(sites):
        x = layers.layer(layer, x)
    graph = helper.make_graph(
        layers.nodes, "deep",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, length, HIDDEN]),
         helper.make_tensor_value_info("mask", TensorProto.FLOAT, [batch, 1, 1, length])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, [batch, length, HIDDEN])], layers.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("sites", type=int)
    arguments.add_argument("output")
    arguments.add_argument("--static", action="store_true", help="batch and sequence length are numbers")
    given = arguments.parse_args()
    onnx.save(deep_model(given.sites, given.static), given.output)


if __name__ == "__main__":
    main()
