// Puts the bodies of a model's local functions in the place of their calls, and keeps where each node came from.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace attn_opt {

using FunctionName = std::pair<std::string, std::string>;  // domain, name

/// The calls that were inlined, told in the nodes and names of the model as it was read. That model must outlive it.
class InlinedCalls {
 public:
  /// One list of nodes: the main graph (number 0), the body of a call, or a graph in a node of another scope.
  struct Scope {
    int outer = -1;                                      ///< where the call, or the node with the graph, stands
    const onnx::NodeProto* call = nullptr;               ///< null: no call
    const onnx::FunctionProto* function = nullptr;       ///< that it calls
    std::unordered_map<std::string, std::string> names;  ///< that values made here have now
    /// Values that an inlined call makes here: the scope of its body, and their names there.
    std::unordered_map<std::string, std::pair<int, std::string>> made_by_calls;
  };
  /// Where a node comes from.
  struct Origin {
    int scope = 0;
    const onnx::NodeProto* node = nullptr;  ///< null: a copy of what the body of SCOPE hands through
    std::string handed_through;             ///< its name in the body
  };

  /// Null if INLINED, a node of the model with its calls inlined, was not in a function.
  const Origin* origin(const onnx::NodeProto& inlined) const;
  const Scope& scope(int number) const { return scopes_[static_cast<size_t>(number)]; }
  /// The scope of the innermost call whose body SCOPE is, or lies in; null if it is the main graph or lies there.
  const Scope* call_around(int scope) const;
  /// What a reader of NAME in SCOPE has to read now: followed through what the calls are given, and what they make. Empty for
  /// an input that a call omits.
  std::string resolved(int scope, const std::string& name) const;
  /// Whoever had to read NAME, of the model with its calls inlined, reads EQUAL from now on.
  void read_instead(const std::string& name, const std::string& equal) { equals_[name] = equal; }
  /// The function that NODE calls, if its calls were inlined.
  const onnx::FunctionProto* function_of(const onnx::NodeProto& node) const;
  /// True if the node's attributes, or those of nodes in its graphs, are told by the call's.
  static bool takes_attributes(const Origin& origin);

 private:
  friend class FunctionInliner;
  std::string inlined_name(int scope, const std::string& name) const;

  std::vector<Scope> scopes_;
  std::unordered_map<const onnx::NodeProto*, Origin> origins_;
  std::unordered_map<std::string, const onnx::FunctionProto*> functions_;  ///< that were inlined
  std::unordered_map<std::string, std::string> equals_;                    ///< see read_instead()
};

/// MODEL with the calls of the functions SELECTED inlined, and the functions removed. Left as they are: functions that take
/// graphs for attributes, or do not make all of their outputs. Operators in SELECTED must mean the same at the opsets that the
/// model imports. Calls of functions must end somewhere.
struct InlinedModel {
  onnx::ModelProto proto;
  InlinedCalls calls;
};
InlinedModel inline_functions(const onnx::ModelProto& model, const std::set<FunctionName>& selected);

}  // namespace attn_opt
