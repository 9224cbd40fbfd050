// What verification found of a site, and how far it may go.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "attn_opt/precondition.h"

namespace attn_opt {

class InlinedCalls;

/// What verification says of a site.
enum class Verdict {
  kVerified,
  kFailed,      ///< numbers differ: must not be applied
  kUnverified,  ///< could not be run (unknown rank, unsupported operator, over a limit)
};

/// A verdict and what it stands on.
struct Verification {
  Verdict verdict = Verdict::kUnverified;
  std::string reason;              ///< of kFailed and kUnverified: what differed and on which draw, or what was in the way
  double algebra_difference = 0;   ///< judgement (a): largest relative difference over all draws
  double type_difference_ulp = 0;  ///< judgement (b): largest difference in ulps of the row's bound
  int draws = 0;                   ///< input sets that both sides ran on
  double seconds = 0;
  bool shared = false;                    ///< an equal site was verified before
  std::vector<std::string> explained_by;  ///< ids of assumed preconditions that differences were put down to
  std::vector<Precondition> found = {};   ///< those of them that the rewrite did not list: draws showed that it needs them
  bool is_of_zero_row = false;            ///< kFailed: the model makes 0 of the row that differs
};

/// Limits of the verification of one site.
struct VerifyOptions {
  size_t memory_limit = size_t{1} << 30;         ///< bytes a site's run may hold
  std::chrono::milliseconds time_limit{10'000};  ///< of CPU time, for a site, all draws together
  AcceptedAssumptions accepted = {};             ///< a difference that another precondition explains is a failure
  bool share_verdicts = true;                    ///< equal sites are run once
  /// Calls that were inlined: what lay in a function runs as the model that was read has it. Null if there are none.
  const InlinedCalls* calls = nullptr;
};

}  // namespace attn_opt
