// What is drawn of a site: the nodes that it replaces and those written, or the way to where recognition stopped.
#pragma once

#include "attn_opt/internal/emit.h"
#include "attn_opt/report.h"

namespace attn_opt {

/// Draws sites of one view. Nothing that decides on a site comes to know of it: what it asks of shapes goes to facts of its
/// own.
class SiteGraphs {
 public:
  SiteGraphs(ModelGraph& view, const TensorStore& tensors) : facts_(view, tensors) {}

  /// What EMISSION, not committed yet, replaces: from the values that it takes over upward to what it reads.
  SiteGraph before(const Emission& emission, const Sdpa& sdpa);
  /// What it is replaced with; nodes that earlier sites wrote and this one reads are among it.
  SiteGraph after(const Emission& emission, const Sdpa& sdpa);
  /// The surroundings of ANCHOR and the way from it to STOPPED; null: recognition stopped at an input.
  SiteGraph around(const Node& anchor, const Node* stopped);

 private:
  Facts facts_;
};

}  // namespace attn_opt
