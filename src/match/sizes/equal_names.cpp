#include "src/match/sizes/equal_names.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "src/graph/operator_name.h"
#include "src/match/facts/fact_store.h"
#include "src/match/needed_nodes.h"
#include "src/match/sizes/rebuilt.h"
#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

bool computes_attention(const Node& node) {
  return std::ranges::find(kAttentionOperators, operator_name(node)) != kAttentionOperators.end();
}

using Equation = std::pair<Dim, Dim>;

/// Sizes that nodes of attention need equal wherever a graph runs.
class NeededEquations {
 public:
  /// NAMES: those that are known already.
  NeededEquations(ModelGraph& view, const TensorStore& tensors, const EqualNames& names) : store_(view, tensors) {
    static const std::set<std::string> kNoEquations;
    store_.assume_only(kNoEquations);
    store_.rename(names);
  }

  std::vector<Equation> of(const Graph& graph) {
    std::vector<Equation> found;
    bool has_attention = false;
    // The last first: what one needs, those above it need.
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
      const bool branches = (*node)->is("If") && (*node)->bodies.size() == 2;
      const bool is_of_interest = branches || computes_attention(**node);
      if (!is_of_interest || (*node)->placement != Placement::kOfFile || !needed_.contains(**node)) continue;
      if (branches)
        add_common(of(*(*node)->bodies[0]), of(*(*node)->bodies[1]), found);
      else
        read(**node, has_attention);
    }
    // What is computed above these nodes is needed too.
    if (!has_attention) return found;
    for (const SizeDemand& demand : store_.demands())
      if (!demand.broadcasts && demand.node->graph == &graph) found.emplace_back(demand.one, demand.other);
    return found;
  }

 private:
  void read(const Node& node, bool& has_attention) {
    has_attention = true;
    for (const Value* output : node.outputs)
      if (output) store_.fact(*output);
  }

  /// An If runs one of its branches: what both need is needed.
  static void add_common(const std::vector<Equation>& one, const std::vector<Equation>& other, std::vector<Equation>& found) {
    std::set<std::string> texts;
    for (const Equation& equation : other) texts.insert(equation_text(equation.first, equation.second));
    std::ranges::copy_if(one, std::back_inserter(found), [&](const Equation& equation) {
      return texts.contains(equation_text(equation.first, equation.second));
    });
  }

  FactStore store_;
  NeededNodes needed_;
};

/// Enters that ONE is OTHER, if one of them is a name: a number stands for it, or else what stands in ONE.
void enter(const Dim& one, const Dim& other, EqualNames& names) {
  const Dim known = renamed(one, names), same = renamed(other, names);
  if (known == same || !has_names_alone(known) || !has_names_alone(same)) return;
  const bool keeps_one = !symbol_name(same).empty();
  const Dim& kept = keeps_one ? known : same;
  const std::string name = symbol_name(keeps_one ? same : known);
  if (name.empty() || has_atom(kept, name)) return;
  const EqualNames equation{{name, kept}};
  for (auto& [_, size] : names) size = renamed(size, equation);
  names.insert(*equation.begin());
}

}  // namespace

Dim renamed(const Dim& size, const EqualNames& names) {
  if (size.is_constant() || names.empty()) return size;
  const auto other_name = [&](const Atom& atom) -> std::optional<Dim> {
    const auto found = names.find(atom.name);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  };
  return rebuilt(size, other_name, std::identity());
}

EqualNames equal_names(ModelGraph& view, const TensorStore& tensors) {
  // A number that stands for a name may say which of two others a size is.
  constexpr int kMostRounds = 4;
  EqualNames names;
  for (int round = 0; round < kMostRounds; ++round) {
    EqualNames more = names;
    for (const auto& [one, other] : NeededEquations(view, tensors, names).of(view.main())) enter(one, other, more);
    if (more.size() == names.size()) break;
    names = std::move(more);
  }
  return names;
}

}  // namespace attn_opt
