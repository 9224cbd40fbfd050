// One way to write the same model otherwise.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/metamorphic/spelling.h"

namespace attn_opt {

/// Changes the spelling whose place it is.
using Change = std::function<void(Spelling&)>;

struct Respelling {
  std::string name;
  /// The places of a spelling where it is legal: results stay equal (those of floats but for their rounding).
  std::function<std::vector<Change>(Spelling&, Random&)> places;
  int sites = 1;  ///< how many sites each site becomes
  /// What is written stays the same operators with the same operands and attributes: a rule, which is for one spelling,
  /// still fits.
  bool keeps_operators = true;
  /// It writes another formula: not every one of those is known, where several come together.
  bool is_algebra = false;
};

std::vector<Respelling> copy_respellings();
std::vector<Respelling> operand_respellings();
std::vector<Respelling> constant_respellings();
std::vector<Respelling> axis_respellings();
std::vector<Respelling> layout_respellings();
std::vector<Respelling> model_respellings();
std::vector<Respelling> algebra_respellings();

}  // namespace attn_opt
