// Sizes for which a site runs though its nodes ask a computed size to be a number: 64 = floor(height/14)*floor(width/14).
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "src/verify/sizes.h"

namespace attn_opt {

/// SIZE is NUMBER in every run, or 1 where it BROADCASTS.
struct NumberEquation {
  Dim size;
  int64_t number = 0;
  bool broadcasts = false;
};

/// Pairs of sizes that products and Concats among the nodes that SITE replaces need equal: without that, they do not run.
std::vector<std::pair<Dim, Dim>> required_sizes(const CutSite& site, Facts& facts);

/// What products and broadcasts among the nodes that SITE replaces, and the operator that SDPA describes, ask of sizes that the
/// model computes.
std::vector<NumberEquation> number_equations(const CutSite& site, const Sdpa& sdpa, Facts& facts);

/// The sizes in SITE, given or computed, that are quotients of others, with those that symbols are taken for.
std::vector<Dim> quotients_in(const CutSite& site, SizeEquations& equations);

/// The symbols that some of SIZES divides, those that others stand for left out.
std::set<std::string> dividends(const std::vector<Dim>& sizes, SizeEquations& equations);

/// Leaves out the assignments with which some of QUOTIENTS is 0, as the patches of an image smaller than one are, unless that
/// leaves none.
void drop_empty_quotients(const std::vector<Dim>& quotients, std::vector<SizeAssignment>& assignments);

/// Where an assignment breaks EQUATIONS, gives the sizes of images, or whatever the computed sizes are quotients of, numbers
/// with which they hold, if small ones do. Several assignments get several solutions, if there are. A size that broadcasts is
/// taken for the number.
void solve(const std::vector<NumberEquation>& equations, std::vector<SizeAssignment>& assignments);

/// Adds the first of ASSIGNMENTS once more, before all fallbacks, for each symbol that broadcasts with a number in EQUATIONS:
/// there it is 1.
void add_ones(const std::vector<NumberEquation>& equations, std::vector<SizeAssignment>& assignments);

}  // namespace attn_opt
