// Rewrites: what stands around attention, or anything else, written otherwise.
//
// A Rewrite is two functions. match() looks at a node and says what it found there, or why it is not what is sought; it changes
// nothing. apply() makes new nodes and says which existing values they make from now on; that is data too (an Edit). Each is
// run against what it replaces before anything changes, and one whose numbers differ is refused. docs/rewrites.md has examples.
//
//   class MyRewrite : public Rewrite { ... };
//   ATTN_OPT_REGISTER_REWRITE(MyRewrite)        // of attn-opt itself; a program puts its own into OptimizeOptions::rewrites
#pragma once

#include <any>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attn_opt/edit.h"
#include "attn_opt/facts.h"
#include "attn_opt/graph.h"
#include "attn_opt/miss.h"

namespace attn_opt {

/// What match() reads.
struct RewriteContext {
  const ModelGraph& view;
  Facts& facts;
};

/// What match() found, for apply().
struct RewriteMatch {
  std::map<std::string, Value*, std::less<>> values;  ///< captures, by names of the rewrite's own
  std::map<std::string, double, std::less<>> numbers;
  std::any more;  ///< whatever else
  /// Where the new nodes go; null: before the node at which it matched, or the first that reads what is replaced.
  Node* insert_before = nullptr;
  std::vector<std::string> peeled;  ///< what was recognised, for the report
  /// Why the model may give NaN where the new nodes give a number, which --exact refuses; empty where it never does.
  std::string makes_numbers_of_nan;
  /// Why the model's own rounding may lead far from what the new nodes give, which --strict refuses; empty where it never does.
  std::string rounds_otherwise;
  /// Values whose contents the rewrite rests on: verification computes them as the model does, and draws what they are made of.
  std::vector<Value*> computed;

  Value* value(std::string_view name) const;  ///< null if there is none of that name
  /// 0 if there is none of that name.
  double number(std::string_view name) const;
};

/// EXISTING, a value of the model, is to be what MADE is: an output of a new node, or another value of the model.
struct Replacement {
  Value* existing = nullptr;
  Value* made = nullptr;
};

/// Where attention is fused among rewrites: those of a higher priority run before it, others behind it. Patterns of attention
/// have it unless OptimizeOptions::priorities says otherwise: of two that recognise the same, that of the higher one is
/// written.
inline constexpr int kAttentionPriority = 100;
/// Id of the miss of a node that is nothing like what a rewrite seeks. It is traced, but not reported.
inline constexpr std::string_view kNoMatch = "no-match";

/// A pattern and what it becomes. Stateless: both functions are called for many nodes, in any order.
class Rewrite {
 public:
  virtual ~Rewrite() = default;
  virtual std::string_view name() const = 0;     ///< for --only, --disable, --also, --priority and reports
  virtual std::string_view summary() const = 0;  ///< one line for `attn-opt patterns`
  /// The highest is tried first; equal ones in the order in which they are given.
  virtual int priority() const { return 0; }
  /// True for nodes at which match() is to be tried. Cheap: it is asked of every node.
  virtual bool is_anchor(const Node& node) const = 0;
  /// What is found at NODE. A miss of the id kNoMatch is not reported.
  virtual Matched<RewriteMatch> match(const Node& node, RewriteContext& context) const = 0;
  /// Makes the new nodes with BUILD. A value that is replaced keeps its name and its readers; what of the old nodes others read
  /// besides stays. Nothing is changed by a miss.
  virtual Matched<std::vector<Replacement>> apply(const RewriteMatch& match, GraphBuilder& build) const = 0;
};

/// All registered rewrites, by name. They are off unless they are asked for.
const std::vector<std::unique_ptr<Rewrite>>& rewrites();
/// Adds REWRITE to rewrites(); true, so that a constant can hold the call.
bool register_rewrite(std::unique_ptr<Rewrite> rewrite);

}  // namespace attn_opt

/// Registers the Rewrite class TYPE before main().
#define ATTN_OPT_REGISTER_REWRITE(type)                                                                      \
  namespace {                                                                                                \
  [[maybe_unused]] const bool type##_is_registered = ::attn_opt::register_rewrite(std::make_unique<type>()); \
  }
