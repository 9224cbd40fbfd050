// What ONNX's checker lets pass though no runtime runs it, and what everything here relies on.
#pragma once

#include "attn_opt/graph.h"
#include "attn_opt/status.h"

namespace attn_opt {

/// No node of VIEW leaves out an input that its operator requires or, of one of ONNX or com.microsoft, its first output; every
/// `perm` of a Transpose is a permutation, and every `equation` of an Einsum one for its inputs. Error: kInvalidInput, with the
/// node.
Status check_nodes(const ModelGraph& view);

}  // namespace attn_opt
