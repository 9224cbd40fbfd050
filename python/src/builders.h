// Models that Python builds from nothing.
#pragma once

#include "attn_opt/graph_builder.h"
#include "python/src/scope.h"

namespace attn_opt::python {

/// The builder of a graph of a model from nothing: a BuilderHandle with one of its own.
struct GraphBuilderHandle : BuilderHandle {};

/// In a function: what the call gives as the attribute NAME.
struct Parameter {
  std::string name;
  onnx::AttributeProto::AttributeType type;
};

/// Python's exception for the first error of BUILD, which is forgotten: what was wrong is not in the model.
void raise_error_of(const BuilderHandle& build);

}  // namespace attn_opt::python
