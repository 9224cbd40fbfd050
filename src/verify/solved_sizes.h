// Sizes for which a site runs though its nodes ask a computed size to be a number: 64 = floor(height/14)*floor(width/14).
#pragma once

#include "src/verify/sizes.h"

namespace attn_opt {

/// SIZE is NUMBER in every run, or 1 where it BROADCASTS.
struct NumberEquation {
  Dim size;
  int64_t number = 0;
  bool broadcasts = false;
};

/// What products and broadcasts among the nodes that SITE replaces ask of sizes that the model computes.
std::vector<NumberEquation> number_equations(const CutSite& site, Facts& facts);

/// Where an assignment breaks EQUATIONS, gives the sizes of images, or whatever the computed sizes are quotients of, numbers
/// with which they hold, if small ones do. Several assignments get several solutions, if there are. A size that broadcasts is
/// taken for the number.
void solve(const std::vector<NumberEquation>& equations, std::vector<SizeAssignment>& assignments);

/// Adds the first of ASSIGNMENTS once more, before all fallbacks, for each symbol that broadcasts with a number in EQUATIONS:
/// there it is 1.
void add_ones(const std::vector<NumberEquation>& equations, std::vector<SizeAssignment>& assignments);

}  // namespace attn_opt
