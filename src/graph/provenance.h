// What exporters write into the metadata of nodes: the module and the source line that a node comes from.
#pragma once

#include <string>
#include <vector>

#include "attn_opt/graph.h"

namespace attn_opt {

/// Where in the user's program a node comes from.
struct Provenance {
  std::string module;       ///< "model.layers.0.self_attn"; empty: not known, or the outermost module
  std::string source_file;  ///< as the exporter has it; empty: not known
  int source_line = 0;      ///< from 1
};

/// Of torch.onnx's metadata (name_scopes, stack_trace). The source line is the innermost one of the user's own files, or the
/// innermost of all. The module is else that of a name like "/model/layers.0/self_attn/Softmax".
Provenance provenance_of(const Node& node);

/// Is FILE one of an installed package, and not of the user's?
bool is_installed(const std::string& file);

/// Gives each of MADE that has no metadata that of the nodes REPLACED. Of each key the first value counts, as in onnxscript's
/// rewriter; names of its rules are joined.
void carry_metadata(const std::vector<const Node*>& replaced, const std::vector<Node*>& made);

}  // namespace attn_opt
