// The two sides of a site that was cut out, as models.
#pragma once

#include "src/verify/model_writer.h"
#include "src/verify/site_cut.h"

namespace attn_opt {

struct SiteModels {
  onnx::ModelProto before, after;
  /// AFTER for double: the queries multiplied by the scale in double and the operator's scale 1.
  onnx::ModelProto after_exact;
};

/// Nodes of the side before that lay in functions are those of the model that was READ.
/// The side after has its probes and the inputs of its Attention node that it makes as further outputs, in their order.
SiteModels write_site(const CutSite& site, const Emission& emission, const LocalFunctionGraphs& functions,
                      const ReadNodes& read);

}  // namespace attn_opt
