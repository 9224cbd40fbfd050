// Names, order and nesting of whole models.
#include <algorithm>
#include <map>
#include <set>

#include "attn_opt/internal/model_walk.h"
#include "tests/metamorphic/respelling.h"

namespace attn_opt {
namespace {

/// Names of inputs and outputs of the main graph, which feeds and results go by.
std::set<std::string> public_names(const onnx::GraphProto& graph) {
  std::set<std::string> names{""};
  for (const auto& input : graph.input()) names.insert(input.name());
  for (const auto& output : graph.output()) names.insert(output.name());
  return names;
}

/// New names in an order that has nothing to do with that of the old ones.
class Renaming {
 public:
  Renaming(std::set<std::string> kept, Random& random) : kept_(std::move(kept)), salt_(random.below(89)) {}

  std::string operator()(const std::string& name) {
    if (kept_.contains(name)) return name;
    const auto found = names_.find(name);
    if (found != names_.end()) return found->second;
    const size_t number = (names_.size() + 1) * 37 + salt_;
    std::string letters{static_cast<char>('a' + number % 26)};
    return names_[name] = letters + "_" + std::to_string(number);
  }

 private:
  std::set<std::string> kept_;
  size_t salt_;
  std::map<std::string, std::string> names_;
};

void rename_node(onnx::NodeProto& node, Renaming& renamed) {
  for (auto& input : *node.mutable_input()) input = renamed(input);
  for (auto& output : *node.mutable_output()) output = renamed(output);
}

void rename_all(onnx::ModelProto& model, Renaming& renamed) {
  // A function's attributes and nodes have names of their own, which nothing outside refers to.
  for_each_graph(model, [&renamed](onnx::GraphProto& graph) {
    for (auto* infos : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
      for (auto& info : *infos) info.set_name(renamed(info.name()));
    for (auto& tensor : *graph.mutable_initializer()) tensor.set_name(renamed(tensor.name()));
    for (auto& tensor : *graph.mutable_sparse_initializer()) tensor.mutable_values()->set_name(renamed(tensor.values().name()));
    for (auto& annotation : *graph.mutable_quantization_annotation())
      annotation.set_tensor_name(renamed(annotation.tensor_name()));
    for (auto& node : *graph.mutable_node()) rename_node(node, renamed);
  });
}

std::vector<Change> other_names(Spelling& spelling, Random& random) {
  const bool annotated = spelling.proto().graph().quantization_annotation_size() > 0;
  if (annotated || spelling.proto().functions_size() > 0) return {};
  return {[&random](Spelling& d) {
    Renaming renamed(public_names(d.proto().graph()), random);
    rename_all(d.proto(), renamed);
    // Operators that draw do so by the name of their node.
    for_each_node(d.proto(), [](onnx::NodeProto& node) {
      if (!node.op_type().starts_with("Random") && node.op_type() != "Bernoulli" && node.op_type() != "Dropout")
        node.clear_name();
    });
  }};
}

/// TYPE and sizes of VALUE as far as numbers and the model's own symbols say them.
void declare(const Value& value, Facts& facts, onnx::GraphProto& graph) {
  const MaybeShape shape = facts.shape(value);
  if (!shape || facts.type(value) == onnx::TensorProto::UNDEFINED || value.declared_type) return;
  auto* info = graph.add_value_info();
  info->set_name(value.name);
  auto* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(facts.type(value));
  tensor->mutable_shape();
  for (const Dim& size : *shape) {
    auto* dim = tensor->mutable_shape()->add_dim();
    const auto atoms = size.atoms();
    if (size.is_constant())
      dim->set_dim_value(size.value());
    else if (atoms.size() == 1 && !atoms[0]->unknown && size == Dim::symbol(atoms[0]->name))
      dim->set_dim_param(size.str());
  }
}

std::vector<Change> with_value_info(Spelling& spelling, Random&) {
  return {[](Spelling& s) {
    Facts facts(s.view(), *s.model().tensors, false);  // sizes that are only taken for equal would be declared so
    for (const Node* node : s.view().main().nodes())
      for (const Value* output : node->outputs)
        if (output) declare(*output, facts, *s.proto().mutable_graph());
  }};
}

/// The nodes of GRAPH in another order that is topological as well.
std::vector<const Node*> shuffled(const Graph& graph, Random& random) {
  std::map<const Node*, std::set<const Node*>> needs;
  const auto top = [&graph](const Node* node) {
    while (node && node->graph != &graph) node = node->graph->owner();
    return node;
  };
  for (const Node* node : graph.nodes()) needs[node];
  for (const auto& inner : graph.model().graphs()) {
    for (const Node* node : inner->nodes())
      if (const Node* reader = top(node))
        for (const Value* input : node->inputs)
          if (input && input->producer && input->producer->graph == &graph) needs[reader].insert(input->producer);
    const Node* owner = top(inner->owner());
    for (const Value* output : inner->outputs())
      if (owner && output->producer && output->producer->graph == &graph) needs[owner].insert(output->producer);
  }
  std::vector<const Node*> order, left(graph.nodes().begin(), graph.nodes().end());
  std::set<const Node*> placed;
  while (!left.empty()) {
    random.shuffle(left);
    for (size_t i = 0; i < left.size();) {
      const bool ready = std::ranges::all_of(needs[left[i]], [&](const Node* needed) { return placed.contains(needed); });
      if (!ready) {
        ++i;
        continue;
      }
      placed.insert(left[i]);
      order.push_back(left[i]);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return order;
}

std::vector<Change> other_order(Spelling& spelling, Random& random) {
  if (spelling.view().main().nodes().size() < 3) return {};
  return {[&random](Spelling& d) {
    onnx::GraphProto reordered;
    for (const Node* node : shuffled(d.view().main(), random)) *reordered.add_node() = *node->proto;
    d.proto().mutable_graph()->mutable_node()->Swap(reordered.mutable_node());
  }};
}

/// The nodes of the main graph as a body that makes the same outputs, its own names marked with MARK.
onnx::GraphProto as_body(const onnx::GraphProto& graph, const std::string& mark) {
  onnx::GraphProto body;
  body.set_name(graph.name() + mark);
  *body.mutable_node() = graph.node();
  *body.mutable_output() = graph.output();
  std::set<std::string> made;
  for (const auto& node : graph.node()) made.insert(node.output().begin(), node.output().end());
  made.erase("");
  const auto marked = [&](const std::string& name) { return made.contains(name) ? name + mark : name; };
  onnx::ModelProto holder;
  holder.mutable_graph()->Swap(&body);
  for_each_node(holder, [&](onnx::NodeProto& node) {
    for (auto& input : *node.mutable_input()) input = marked(input);
    for (auto& output : *node.mutable_output()) output = marked(output);
  });
  holder.mutable_graph()->Swap(&body);
  for (auto& output : *body.mutable_output()) output.set_name(marked(output.name()));
  return body;
}

/// True if GRAPH's nodes can be put elsewhere: names of bodies stay their own, and every output is made by a node.
bool is_movable(const onnx::ModelProto& model) {
  const onnx::GraphProto& graph = model.graph();
  std::set<std::string> made;
  for (const auto& node : graph.node()) {
    made.insert(node.output().begin(), node.output().end());
    for (const auto& attribute : node.attribute())
      if (attribute.has_g() || attribute.graphs_size() > 0) return false;
  }
  return graph.sparse_initializer_size() == 0 && graph.quantization_annotation_size() == 0 &&
         std::ranges::all_of(graph.output(), [&](const auto& output) { return made.contains(output.name()); });
}

std::vector<Change> inside_if(Spelling& spelling, Random&) {
  constexpr int kFirstWithoutTypesOfBodies = 13;
  if (!is_movable(spelling.proto()) || opset_version(spelling.proto()) < kFirstWithoutTypesOfBodies) return {};
  return {[](Spelling& d) {
    onnx::GraphProto& graph = *d.proto().mutable_graph();
    onnx::NodeProto choice = node_of("If", {d.fresh("condition")}, graph.output(0).name());
    for (int i = 1; i < graph.output_size(); ++i) choice.add_output(graph.output(i).name());
    for (const std::string branch : {"then_branch", "else_branch"}) {
      auto* attribute = choice.add_attribute();
      attribute->set_name(branch);
      attribute->set_type(onnx::AttributeProto::GRAPH);
      *attribute->mutable_g() = as_body(graph, "_" + branch);
    }
    onnx::TensorProto yes;
    yes.set_data_type(onnx::TensorProto::BOOL);
    yes.add_int32_data(1);
    graph.clear_node();
    graph.clear_value_info();
    *graph.add_node() = constant_node(yes, choice.input(0));
    *graph.add_node() = std::move(choice);
  }};
}

constexpr const char* kDomain = "respelled";

std::vector<Change> inside_function(Spelling& spelling, Random&) {
  constexpr int kFirstWithFunctions = 8;
  if (!is_movable(spelling.proto()) || spelling.proto().ir_version() < kFirstWithFunctions) return {};
  if (opset_version(spelling.proto(), kDomain) > 0) return {};
  return {[](Spelling& d) {
    onnx::GraphProto& graph = *d.proto().mutable_graph();
    const std::string name = "main_graph";
    onnx::FunctionProto& function = *d.proto().add_functions();
    function.set_domain(kDomain);
    function.set_name(name);
    *function.mutable_opset_import() = d.proto().opset_import();
    function.mutable_node()->Swap(graph.mutable_node());
    onnx::NodeProto& call = *graph.add_node();
    call.set_domain(kDomain);
    call.set_op_type(name);
    std::set<std::string> given;
    for (const auto& input : graph.input())
      if (given.insert(input.name()).second) call.add_input(input.name());
    for (const auto& tensor : graph.initializer())
      if (given.insert(tensor.name()).second) call.add_input(tensor.name());
    for (const auto& output : graph.output()) call.add_output(output.name());
    *function.mutable_input() = call.input();
    *function.mutable_output() = call.output();
    graph.clear_value_info();
    auto* import = d.proto().add_opset_import();
    import->set_domain(kDomain);
    import->set_version(1);
  }};
}

}  // namespace

std::vector<Respelling> model_respellings() {
  return {{"other names", other_names},
          {"with value_info", with_value_info},
          {"nodes in another order", other_order},
          {"inside both branches of an If", inside_if, 2},
          {"inside a local function", inside_function}};
}

}  // namespace attn_opt
