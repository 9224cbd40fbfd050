// What is counted over the models of a batch.
#pragma once

#include <map>
#include <string>

#include "src/report/report_stream.h"

namespace attn_opt {

struct BatchTotals {
  int models = 0;
  std::map<int, int> by_status;       ///< exit status -> models
  std::map<std::string, int> misses;  ///< id -> sites
  int sites = 0, fused = 0, refused = 0, missed = 0;
  int rewrites = 0, rewritten = 0;     ///< places where one matched, those where it was applied
  std::map<std::string, int> assumed;  ///< id of a precondition -> fused sites
  int refined = 0, unverified = 0;     ///< fused sites
  int worst_status = 0;                ///< the highest

  void add(const ModelOutcome& model);
};

/// Keys status, models, by_status, sites, fused, refused, missed, assumed, refined, unverified, misses, rewrites, rewritten.
nlohmann::json to_json(const BatchTotals& totals);
/// What assurance_phrase() says of all fused sites.
std::string assurance_phrase(const BatchTotals& totals);
/// "3 of 4 attention sites fused, 2 of 2 rewrites applied"; "can be fused", "can be applied" unless they are WRITTEN. Of
/// rewrites alone, or of attention alone, where there is nothing else.
std::string results_phrase(const BatchTotals& totals, bool written);
/// "12 models: 10 done, 1 unmet requirement, 1 unreadable".
std::string status_phrase(const BatchTotals& totals);

}  // namespace attn_opt
