// The words of reports.
#pragma once

#include <string_view>

#include "attn_opt/report.h"

namespace attn_opt {

std::string_view name_of(SiteReport::Outcome outcome);  ///< "fused", "missed", "refused"
std::string_view name_of(SiteGraph::Node::Role role);   ///< "plain", "anchor", "walked", "stopped", "written"
std::string_view name_of(Verdict verdict);              ///< "verified", "failed", "unverified"

/// "proven", "refined" (where it does not hold NaN becomes a number) or "assumed".
std::string_view state_of(const Precondition& condition);

/// What docs/misses.md calls a verdict that is not kVerified.
std::string_view miss_id_of(Verdict verdict);

/// The command that prints what docs/misses.md says of the miss MISS_ID; empty if it says nothing: a pattern of the user's has
/// ids of its own.
std::string hint_of(const std::string& miss_id);

}  // namespace attn_opt
