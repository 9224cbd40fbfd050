// Rewrites in words.
#pragma once

#include <string>

#include "attn_opt/report.h"

namespace attn_opt {

/// "rewritten", "missed" or "refused".
std::string_view outcome_of(const RewriteReport& rewrite);

/// What became of REWRITE in one line: "rms-norm: 6 nodes become RMSNormalization, verified (0, 0.5 ulp)".
std::string rewrite_phrase(const RewriteReport& rewrite);

/// How many ended as OUTCOME.
int count_of_rewrites(const Report& report, PlaceReport::Outcome outcome);
/// How many there were; empty if there were none.
std::string rewrites_total(const Report& report);
/// A place in two lines or more, each.
std::string rewrite_lines(const Report& report);
/// The first MOST of those that were not applied, and why.
std::string unapplied_rewrite_lines(const Report& report, size_t most);

}  // namespace attn_opt
