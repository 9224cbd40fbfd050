#include "src/rewrite/function_inliner.h"

#include <algorithm>
#include <unordered_set>

#include "attn_opt/internal/model_walk.h"
#include "attn_opt/model.h"
#include "src/exec/functions.h"
#include "src/io/check/runtime_operators.h"
#include "src/io/onnx_domain.h"

namespace attn_opt {

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using ValueInfos = google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>;

namespace {

/// Visits each graph in the attributes of NODE, with the one in ORIGINAL that it was.
template <class Visit>
void for_each_graph_pair(onnx::NodeProto& node, const onnx::NodeProto& original, const Visit& visit) {
  for (auto& attribute : *node.mutable_attribute()) {
    if (!attribute.has_g() && attribute.graphs_size() == 0) continue;
    const auto same = std::ranges::find(original.attribute(), attribute.name(), &onnx::AttributeProto::name);
    if (same == original.attribute().end()) continue;
    if (attribute.has_g()) visit(*attribute.mutable_g(), same->g());
    for (int i = 0; i < attribute.graphs_size(); ++i) visit(*attribute.mutable_graphs(i), same->graphs(i));
  }
}

bool refers_to_graphs(const onnx::NodeProto& node) {
  return std::ranges::any_of(node.attribute(), [](const onnx::AttributeProto& attribute) {
    return !attribute.ref_attr_name().empty() &&
           (attribute.type() == onnx::AttributeProto::GRAPH || attribute.type() == onnx::AttributeProto::GRAPHS);
  });
}

std::unordered_set<std::string> made_in(const NodeList& nodes) {
  std::unordered_set<std::string> made;
  for (const auto& node : nodes) made.insert(node.output().begin(), node.output().end());
  made.erase("");
  return made;
}

bool contains(const google::protobuf::RepeatedPtrField<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

const InlinedCalls::Origin* InlinedCalls::origin(const onnx::NodeProto& inlined) const {
  const auto found = origins_.find(&inlined);
  return found == origins_.end() ? nullptr : &found->second;
}

const InlinedCalls::Scope* InlinedCalls::call_around(int number) const {
  while (number >= 0 && !scope(number).call) number = scope(number).outer;
  return number < 0 ? nullptr : &scope(number);
}

std::string InlinedCalls::resolved(int number, const std::string& name) const {
  std::string wanted = inlined_name(number, name);
  for (auto equal = equals_.find(wanted); equal != equals_.end(); equal = equals_.find(wanted)) wanted = equal->second;
  return wanted;
}

std::string InlinedCalls::inlined_name(int number, const std::string& name) const {
  std::string wanted = name;
  while (!wanted.empty()) {
    const Scope& here = scope(number);
    if (const auto call = here.made_by_calls.find(wanted); call != here.made_by_calls.end()) {
      std::tie(number, wanted) = call->second;
      continue;
    }
    if (here.call) {
      const auto& inputs = here.function->input();
      const auto formal = std::ranges::find(inputs, wanted);
      if (formal != inputs.end()) {
        const int input = static_cast<int>(formal - inputs.begin());
        wanted = input < here.call->input_size() ? here.call->input(input) : "";
        number = here.outer;
        continue;
      }
    }
    if (const auto own = here.names.find(wanted); own != here.names.end()) return own->second;
    if (here.call || here.outer < 0) return wanted;
    number = here.outer;
  }
  return wanted;
}

const onnx::FunctionProto* InlinedCalls::function_of(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find(function_key(node.domain(), node.op_type(), node.overload()));
  return found == functions_.end() ? nullptr : found->second;
}

bool InlinedCalls::takes_attributes(const Origin& origin) {
  if (!origin.node) return false;
  const std::function<bool(const onnx::NodeProto&)> takes = [&](const onnx::NodeProto& node) {
    return std::ranges::any_of(node.attribute(), [&](const onnx::AttributeProto& attribute) {
      const auto any_in = [&](const onnx::GraphProto& graph) { return std::ranges::any_of(graph.node(), takes); };
      return !attribute.ref_attr_name().empty() || (attribute.has_g() && any_in(attribute.g())) ||
             std::ranges::any_of(attribute.graphs(), any_in);
    });
  };
  return takes(*origin.node);
}

class FunctionInliner {
 public:
  FunctionInliner(const onnx::ModelProto& model, const std::set<FunctionName>& selected) : original_(model) {
    result_.proto = model;
    result_.calls.scopes_.emplace_back();
    for_each_graph(model, [this](const onnx::GraphProto& graph) { take_names(graph); });
    for_each_node(model, [this](const onnx::NodeProto& node) { take_names(node); });
    for (const auto& function : model.functions())
      if (selected.count({function.domain(), function.name()}) && can_be_inlined(function))
        calls().functions_.emplace(function_key(function.domain(), function.name(), function.overload()), &function);
  }

  InlinedModel run() {
    auto& graph = *result_.proto.mutable_graph();
    expand(*graph.mutable_node(), original_.graph().node(), 0, *graph.mutable_value_info());
    if (!leaves_calls_) remove_functions();
    return std::move(result_);
  }

 private:
  InlinedCalls& calls() { return result_.calls; }
  InlinedCalls::Scope& scope(int number) { return calls().scopes_[static_cast<size_t>(number)]; }

  void take_names(const onnx::GraphProto& graph) {
    for (const auto& input : graph.input()) taken_.insert(input.name());
    for (const auto& initializer : graph.initializer()) taken_.insert(initializer.name());
    for (const auto& sparse : graph.sparse_initializer()) taken_.insert(sparse.values().name());
  }

  void take_names(const onnx::NodeProto& node) {
    taken_.insert(node.name());
    taken_.insert(node.input().begin(), node.input().end());
    taken_.insert(node.output().begin(), node.output().end());
  }

  std::string fresh(const std::string& name) {
    const std::string stem = name + suffix_;
    std::string made = stem;
    while (!taken_.insert(made).second) made = stem + "_" + std::to_string(++next_[stem]);
    return made;
  }

  bool can_be_inlined(const onnx::FunctionProto& function) const {
    if (may_be_an_operator(function.domain(), function.name())) return false;
    bool takes_graphs = false;
    for_each_node(function, [&](const onnx::NodeProto& node) { takes_graphs |= refers_to_graphs(node); });
    const auto made = made_in(function.node());
    return !takes_graphs && std::ranges::all_of(function.output(), [&](const std::string& output) {
      return made.count(output) || contains(function.input(), output);
    });
  }

  /// The function that NODE calls, if the call is inlined.
  const onnx::FunctionProto* callee(const onnx::NodeProto& node) {
    const onnx::FunctionProto* called = calls().function_of(node);
    if (!called) return nullptr;
    const onnx::FunctionProto& function = *called;
    const auto hands_nothing_through = [&](int output) {
      if (output >= function.output_size()) return true;
      const auto formal = std::ranges::find(function.input(), function.output(output));
      if (formal == function.input().end()) return false;
      const int input = static_cast<int>(formal - function.input().begin());
      return input >= node.input_size() || node.input(input).empty();
    };
    bool fits = node.input_size() <= function.input_size();
    for (int i = 0; i < node.output_size(); ++i) fits = fits && !hands_nothing_through(i);
    leaves_calls_ = leaves_calls_ || !fits;
    return fits ? &function : nullptr;
  }

  int new_scope(InlinedCalls::Scope made) {
    calls().scopes_.push_back(std::move(made));
    return static_cast<int>(calls().scopes_.size()) - 1;
  }

  int scope_of(const onnx::GraphProto& graph, int outer) {
    const auto [found, is_new] = graph_scopes_.try_emplace({outer, &graph}, 0);
    if (is_new) found->second = new_scope({outer, nullptr, nullptr, {}, {}});
    return found->second;
  }

  /// Replaces the calls in NODES, which are ORIGINALS of SCOPE with other names.
  void expand(NodeList& nodes, const NodeList& originals, int scope, ValueInfos& infos) {
    NodeList before;
    before.Swap(&nodes);
    for (int i = 0; i < before.size(); ++i) place(before[i], originals[i], scope, nodes, infos);
  }

  void place(onnx::NodeProto& node, const onnx::NodeProto& original, int scope, NodeList& nodes, ValueInfos& infos) {
    if (const onnx::FunctionProto* function = callee(node)) return inline_call(node, original, *function, scope, nodes, infos);
    onnx::NodeProto& placed = *nodes.Add();
    placed.Swap(&node);
    if (calls().call_around(scope)) calls().origins_[&placed] = {scope, &original, {}};
    for_each_graph_pair(placed, original, [&](onnx::GraphProto& graph, const onnx::GraphProto& own) {
      expand(*graph.mutable_node(), own.node(), scope_of(own, scope), *graph.mutable_value_info());
    });
  }

  void inline_call(const onnx::NodeProto& call, const onnx::NodeProto& original, const onnx::FunctionProto& function, int outer,
                   NodeList& nodes, ValueInfos& infos) {
    const int body = new_scope({outer, &original, &function, {}, {}});
    const std::string outer_suffix = std::exchange(suffix_, "__" + std::to_string(++inlined_));
    Renames renames(nullptr);
    for (int i = 0; i < function.input_size(); ++i) renames.set(function.input(i), i < call.input_size() ? call.input(i) : "");
    const auto copies = name_outputs(call, original, function, body);
    for (const auto& made : made_in(function.node())) scope(body).names.try_emplace(made, "");
    for (auto& [made, name] : scope(body).names) {
      if (name.empty()) name = fresh(made);
      renames.set(made, name);
    }
    onnx::FunctionProto bound = bound_function(function, call);
    for (int i = 0; i < bound.node_size(); ++i) rename(*bound.mutable_node(i), function.node(i), body, renames);
    suffix_ = outer_suffix;
    for (int i = 0; i < bound.node_size(); ++i) place(*bound.mutable_node(i), function.node(i), body, nodes, infos);
    for (const auto& [formal, actual] : copies) copy(renames.of(formal), actual, {body, nullptr, formal}, nodes);
    for (auto& info : *bound.mutable_value_info()) add_info(info, call, body, infos);
    for (const auto& import : function.opset_import())
      if (opset_version(result_.proto, import.domain()) == 0) *result_.proto.add_opset_import() = import;
  }

  /// Names what the body of FUNCTION makes of the outputs of CALL; what it hands through, or makes for several, is to be
  /// copied: the names in the body and outside.
  std::vector<std::pair<std::string, std::string>> name_outputs(const onnx::NodeProto& call, const onnx::NodeProto& original,
                                                                const onnx::FunctionProto& function, int body) {
    std::vector<std::pair<std::string, std::string>> copies;
    for (int i = 0; i < call.output_size(); ++i) {
      const std::string &formal = function.output(i), &actual = call.output(i);
      if (actual.empty()) continue;
      const bool is_made = !contains(function.input(), formal) && scope(body).names.emplace(formal, actual).second;
      if (!is_made) copies.emplace_back(formal, actual);
      auto& outside = scope(scope(body).outer);
      if (is_made)
        outside.made_by_calls[original.output(i)] = {body, formal};
      else
        outside.names[original.output(i)] = actual;
    }
    return copies;
  }

  void copy(const std::string& from, const std::string& to, InlinedCalls::Origin origin, NodeList& nodes) {
    onnx::NodeProto& node = *nodes.Add();
    node.set_op_type("Identity");
    node.add_input(from);
    node.add_output(to);
    calls().origins_[&node] = std::move(origin);
  }

  void add_info(onnx::ValueInfoProto& info, const onnx::NodeProto& call, int body, ValueInfos& infos) {
    const auto own = scope(body).names.find(info.name());
    if (own == scope(body).names.end() || contains(call.output(), own->second)) return;
    info.set_name(own->second);
    infos.Add()->Swap(&info);
  }

  /// What names of a scope are now, its own and those of scopes around it.
  class Renames {
   public:
    explicit Renames(const Renames* outer) : outer_(outer) {}
    void set(const std::string& name, const std::string& now) { names_[name] = now; }
    std::string of(const std::string& name) const {
      for (const Renames* scope = this; scope; scope = scope->outer_)
        if (const auto found = scope->names_.find(name); found != scope->names_.end()) return found->second;
      return name;
    }

   private:
    const Renames* outer_;
    std::unordered_map<std::string, std::string> names_;
  };

  void rename(onnx::NodeProto& node, const onnx::NodeProto& original, int in_scope, const Renames& renames) {
    if (!node.name().empty()) node.set_name(fresh(node.name()));
    for (auto& input : *node.mutable_input()) input = renames.of(input);
    for (auto& output : *node.mutable_output()) output = renames.of(output);
    for_each_graph_pair(node, original, [&](onnx::GraphProto& graph, const onnx::GraphProto& own) {
      rename(graph, own, scope_of(own, in_scope), renames);
    });
  }

  void rename(onnx::GraphProto& graph, const onnx::GraphProto& original, int own, const Renames& outer) {
    Renames renames(&outer);
    const auto name_anew = [&](std::string& name) {
      const std::string made = fresh(name);
      scope(own).names[name] = made;
      renames.set(name, made);
      name = made;
    };
    for (auto& input : *graph.mutable_input()) name_anew(*input.mutable_name());
    const auto rename_tensor = [&](std::string& name) {
      if (scope(own).names.count(name))
        name = renames.of(name);
      else
        name_anew(name);
    };
    for (auto& tensor : *graph.mutable_initializer()) rename_tensor(*tensor.mutable_name());
    for (auto& tensor : *graph.mutable_sparse_initializer()) rename_tensor(*tensor.mutable_values()->mutable_name());
    for (std::string made : made_in(graph.node())) name_anew(made);
    for (int i = 0; i < graph.node_size(); ++i) rename(*graph.mutable_node(i), original.node(i), own, renames);
    for (auto& output : *graph.mutable_output()) output.set_name(renames.of(output.name()));
    for (auto& info : *graph.mutable_value_info()) info.set_name(renames.of(info.name()));
    for (auto& annotation : *graph.mutable_quantization_annotation())
      annotation.set_tensor_name(renames.of(annotation.tensor_name()));
  }

  void remove_functions() {
    auto& functions = *result_.proto.mutable_functions();
    for (int i = functions.size(); i-- > 0;)
      if (calls().functions_.count(function_key(functions[i].domain(), functions[i].name(), functions[i].overload())))
        functions.DeleteSubrange(i, 1);
  }

  const onnx::ModelProto& original_;
  InlinedModel result_;
  std::map<std::pair<int, const onnx::GraphProto*>, int> graph_scopes_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> next_;
  std::string suffix_;
  int inlined_ = 0;
  bool leaves_calls_ = false;
};

InlinedModel inline_functions(const onnx::ModelProto& model, const std::set<FunctionName>& selected) {
  return FunctionInliner(model, selected).run();
}

}  // namespace attn_opt
