// A positive case, what its sites are fused to, and whether a respelled model of it is fused to the same.
#pragma once

#include <string>
#include <vector>

#include "src/cli/cases/case_checks.h"

namespace attn_opt {

/// What must not depend on how a site is spelled.
struct FusedSite {
  std::string verdict;
  int64_t kv_heads = 0;
  bool past = false, is_causal = false;
  double softcap = 0, scale = 0;
};

/// Of what optimising left: the fused sites, in an order of their own.
std::vector<FusedSite> fused_sites(const Report& report);

struct Parent {
  Case one;
  std::string header;  ///< the lines of the case's file that its respelled models share with it
  Model model;
  std::vector<FusedSite> sites;
  bool is_of_a_rule = false;  ///< a rule matches some of them
};

/// The case at PATH; nothing if it fuses no site.
Expected<std::optional<Parent>> read_parent(const std::filesystem::path& path);

/// True if ONNX's checker, with shape inference, takes MODEL.
bool is_valid(const Model& model);

/// What is not as it was: SITES that are described otherwise or left, which makes a model no worse than before, and what is
/// WRONG.
struct Differences {
  Failures sites, wrong;
};

/// What of MODEL, each site of PARENT being SITES of it, is not as in PARENT; COMPARE runs the models as well.
Differences differences(const Parent& parent, const Model& model, int sites, bool compare);

/// MODEL as a case file; SOURCE says what it was made by.
std::string case_text(const Parent& parent, const Model& model, const std::string& source);

}  // namespace attn_opt
