// Patterns: front ends that recognise attention.
//
// match() reads the graph and returns data: a description of the attention (Sdpa) or a Miss. It changes nothing. Turning
// the description into nodes (an Edit) is the back end's part and the same for every pattern. One file in
// patterns/ registers one pattern:
//
//   class MyAttention : public Pattern { ... };
//   ATTN_OPT_REGISTER_PATTERN(MyAttention);
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "attn_opt/edit.h"
#include "attn_opt/facts.h"
#include "attn_opt/graph.h"
#include "attn_opt/internal/sdpa.h"
#include "attn_opt/miss.h"
#include "attn_opt/target.h"

namespace attn_opt {

struct NestedSoftmaxes;

/// What patterns read.
struct MatchContext {
  ModelGraph& view;
  Facts& facts;
  /// Values that patterns made for their descriptions. They can be used like any other; an emission that reads one
  /// puts the nodes behind it into the model. To make some, above NODE:
  ///   Edit draft(context.view, node);
  ///   GraphBuilder build(draft, context.unplaced, node.label());
  ///   Value* biased = build.node("Add", {q, bias});
  ///   draft.enter(context.unplaced);  // the next match finds the same nodes
  SharedNodes unplaced = {};
  /// Whose rules the model is to keep.
  const TargetRules& target = rules_of(Target::kPortable);
  /// What may be assumed: where there are two readings, the one that assumes more is of use only if that is accepted.
  AcceptedAssumptions accepted = {};
  NestedSoftmaxes* nested_softmaxes = nullptr;  ///< found below the one that is read just now; of patterns/softmax/weights.cpp
  /// Values that are no sums of blocks of keys, as long as the graph stays as it is; of patterns/softmax/key_blocks.cpp.
  std::unordered_set<const Value*> no_blocks = {};
  GivenFloats given = {};  ///< what is taken for granted in the match at hand; of patterns/given_floats.cpp
  size_t part = 0;         ///< which of the anchor's outputs is looked at, where Pattern::parts() tells several apart
};

/// A recognised attention and where it stands.
struct Match {
  Node* anchor = nullptr;         ///< what the site is called after
  Node* insert_before = nullptr;  ///< where the new nodes go: everything they read stands above it
  Sdpa sdpa;
  std::vector<std::string> peeled;  ///< what was recognised, from the anchor on
  /// The anchor is in the target's form already: it is worth rewriting only for more than this.
  bool is_target_form = false;
  bool breaks_target = false;  ///< yet it breaks a rule of the target's
  int64_t kv_group = 1;        ///< query heads per key/value head that the anchor has
  bool has_past = false;       ///< the anchor takes a past
  /// Further values that the anchor makes, and the unplaced values that are the same.
  std::vector<Edit::Takeover> copies;
};

/// A front end. Stateless: match() is called for many nodes, in any order.
class Pattern {
 public:
  virtual ~Pattern() = default;
  virtual std::string_view name() const = 0;     ///< for --only, --disable and reports
  virtual std::string_view summary() const = 0;  ///< one line for `attn-opt patterns`
  /// True for nodes at which match() is to be tried. Cheap: it is asked of every node.
  virtual bool is_anchor(const Node& node) const = 0;
  /// How many outputs of ANCHOR may each be a site of its own.
  virtual size_t parts(const Node& /*anchor*/) const { return 1; }
  /// Describes the attention at ANCHOR, of which CONTEXT says the part. A miss with the id "not-attention" says that there is
  /// none: it is not reported.
  virtual Matched<Match> match(Node& anchor, MatchContext& context) const = 0;
};

/// All registered patterns, by name.
const std::vector<std::unique_ptr<Pattern>>& patterns();
/// Adds PATTERN to patterns(); true, so that a constant can hold the call.
bool register_pattern(std::unique_ptr<Pattern> pattern);

/// Id of the miss of an anchor that belongs to no attention: not a site, and not reported.
inline constexpr std::string_view kNotAttention = "not-attention";

}  // namespace attn_opt

/// Registers the Pattern class TYPE before main().
#define ATTN_OPT_REGISTER_PATTERN(type)                                                                      \
  namespace {                                                                                                \
  [[maybe_unused]] const bool type##_is_registered = ::attn_opt::register_pattern(std::make_unique<type>()); \
  }
