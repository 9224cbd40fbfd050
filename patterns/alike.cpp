#include "patterns/alike.h"

#include <algorithm>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/scores/form_reader.h"

namespace attn_opt {
namespace {

bool alike(Value& one, Value& other, int& left, Facts& facts);

/// True if ONE and OTHER add up the same, in whatever words.
bool add_up_alike(Value& one, Value& other, int& left, Facts& facts) {
  const auto adds = [](const Value& value) { return value.producer && has(*value.producer, Trait::kAdds); };
  if (!adds(canonical(one, facts)) || !adds(canonical(other, facts))) return false;
  const std::vector<Addend> terms = FormReader(facts).linear_terms(one);
  std::vector<Addend> others = FormReader(facts).linear_terms(other);
  if (terms.size() != others.size() || terms.size() < 2) return false;
  return std::ranges::all_of(terms, [&](const Addend& term) {
    const auto twin = std::ranges::find_if(others, [&](const Addend& each) {
      return each.coefficient == term.coefficient && alike(*each.value, *term.value, left, facts);
    });
    if (twin == others.end()) return false;
    others.erase(twin);
    return true;
  });
}

/// computes_same(), of at most LEFT nodes.
bool alike(Value& one, Value& other, int& left, Facts& facts) {
  const auto also = [&](Value& a, Value& b, int& rest) { return add_up_alike(a, b, rest, facts); };
  return are_alike(one, other, left, facts, also);
}

}  // namespace

bool computes_same(Value& one, Value& other, Facts& facts) {
  int left = kMaxAlike;
  return alike(one, other, left, facts);
}

}  // namespace attn_opt
