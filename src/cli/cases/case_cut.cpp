#include "src/cli/cases/case_cut.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "src/graph/operator_name.h"
#include "src/optimizer/function_inlining.h"
#include "src/optimizer/sites.h"

namespace attn_opt {
namespace {

constexpr int kOldestWithInitializersThatAreNoInputs = 4;
constexpr size_t kWidestElement = 16;  // complex128

void declare_dims(const Shape& shape, onnx::TensorShapeProto& dims) {
  for (const Dim& size : shape) {
    auto* dim = dims.add_dim();
    if (size.is_constant())
      dim->set_dim_value(size.value());
    else
      dim->set_dim_param(size.str());
  }
}

/// Collects the nodes around an attention and writes them.
class Cut {
 public:
  Cut(ModelGraph& view, Facts& facts, const TensorStore& tensors, const CutLimits& limits)
      : view_(view), facts_(facts), tensors_(tensors), limits_(limits) {}

  void collect(const std::vector<const Node*>& anchors) {
    std::vector<const Node*> below;
    for (const Node* anchor : anchors) add(*anchor, below);
    const size_t few = limits_.nodes / 8;
    for (size_t i = 0; i < below.size() && below.size() < few; ++i)
      for (const Value* output : below[i]->outputs)
        if (output)
          for (const Use& use : output->uses)
            if (use.node && use.node->graph == output->graph) add(*use.node, below);
    std::vector<const Node*> above = below;
    for (size_t i = 0; i < above.size() && above.size() < limits_.nodes; ++i)
      for (const Value* input : above[i]->inputs)
        if (input && input->producer) add(*input->producer, above);
    nodes_ = std::move(above);
    std::ranges::sort(nodes_, [](const Node* one, const Node* other) {
      return std::pair(depth(*one), one->position) < std::pair(depth(*other), other->position);
    });
  }

  Expected<CaseModel> write() {
    onnx::ModelProto& proto = result_.proto;
    proto.set_ir_version(std::max<int64_t>(view_.proto().ir_version(), kOldestWithInitializersThatAreNoInputs));
    proto.mutable_graph()->set_name("reduced");
    for (const Node* node : nodes_) write_node(*node);
    for (const auto& import : view_.proto().opset_import())
      if (domains_.contains(import.domain()) || import.domain().empty()) *proto.add_opset_import() = import;
    for (const Node* node : nodes_)
      for (const Value* input : node->inputs) {
        if (input && !made_.contains(input)) {
          ATTN_OPT_CHECK(write_leaf(*input));
        }
      }
    for (const Node* node : nodes_)
      for (const Value* output : node->outputs)
        if (output && is_wanted(*output)) write_output(*output);
    if (proto.graph().output_size() == 0)
      return fail(ErrorCode::kUnsupported, "", "no type of the attention's output is known");
    return std::move(result_);
  }

 private:
  static size_t depth(const Node& node) {
    size_t levels = 0;
    for (const Graph* graph = node.graph; graph->parent(); graph = graph->parent()) ++levels;
    return levels;
  }

  bool is_opaque(const Node& node) const {
    if (!node.bodies.empty()) return true;
    return std::ranges::any_of(view_.proto().functions(), [&node](const auto& function) {
      return function.name() == node.op() && function.domain() == node.proto->domain();
    });
  }

  void add(const Node& node, std::vector<const Node*>& list) {
    if (is_opaque(node) || !chosen_.insert(&node).second) return;
    list.push_back(&node);
  }

  void write_node(const Node& node) {
    onnx::NodeProto& proto = *result_.proto.mutable_graph()->add_node();
    proto.set_op_type(node.op());
    proto.set_domain(node.proto->domain());
    *proto.mutable_attribute() = node.proto->attribute();
    for (auto& attribute : *proto.mutable_attribute()) attribute.clear_doc_string();
    domains_.insert(node.proto->domain());
    for (const Value* input : node.inputs) proto.add_input(input ? input->name : "");
    for (const Value* output : node.outputs) {
      proto.add_output(output ? output->name : "");
      if (!output) continue;
      made_.insert(output);
      const auto type = type_of(*output);
      if (!type) continue;
      result_.types[output->name] = *type;
      if (!output->declared_type || is_wanted(*output)) continue;
      auto* info = result_.proto.mutable_graph()->add_value_info();
      info->set_name(output->name);
      *info->mutable_type() = *type;
    }
  }

  std::optional<onnx::TypeProto> type_of(const Value& value) {
    const DataType type = facts_.type(value);
    if (type == onnx::TensorProto::UNDEFINED) return std::nullopt;
    onnx::TypeProto proto;
    proto.mutable_tensor_type()->set_elem_type(type);
    if (const MaybeShape shape = facts_.shape(value)) declare_dims(*shape, *proto.mutable_tensor_type()->mutable_shape());
    return proto;
  }

  Status write_leaf(const Value& value) {
    if (!leaves_.insert(&value).second) return {};
    const int64_t elements =
        value.initializer
            ? element_count({value.initializer->dims().data(), static_cast<size_t>(value.initializer->dims_size())})
            : -1;
    const size_t left = limits_.bytes - constant_bytes_;
    if (value.initializer && elements >= 0 && elements <= limits_.constant &&
        static_cast<size_t>(elements) * kWidestElement <= left) {
      ATTN_OPT_TRY(const Tensor tensor, to_tensor(*value.initializer, tensors_));
      constant_bytes_ += static_cast<size_t>(elements) * kWidestElement;
      *result_.proto.mutable_graph()->add_initializer() = to_proto(tensor, value.name);
      if (const auto type = type_of(value)) result_.types[value.name] = *type;
      return {};
    }
    const auto type = type_of(value);
    if (!type)
      return fail(ErrorCode::kUnsupported, "", "the type of '" + value.name + "' is not known", "run shape inference first");
    auto* input = result_.proto.mutable_graph()->add_input();
    input->set_name(value.name);
    *input->mutable_type() = *type;
    result_.types[value.name] = *type;
    return {};
  }

  /// True for what is read outside of the cut, or by nothing.
  bool is_wanted(const Value& value) const {
    return value.is_output || value.uses.empty() ||
           std::ranges::any_of(value.uses, [this](const Use& use) { return !use.node || !chosen_.contains(use.node); });
  }

  void write_output(const Value& value) {
    const auto type = result_.types.find(value.name);
    if (type == result_.types.end()) return;
    auto* output = result_.proto.mutable_graph()->add_output();
    output->set_name(value.name);
    *output->mutable_type() = type->second;
  }

  ModelGraph& view_;
  Facts& facts_;
  const TensorStore& tensors_;
  const CutLimits& limits_;
  std::vector<const Node*> nodes_;
  std::unordered_set<const Node*> chosen_;
  std::unordered_set<const Value*> made_, leaves_;
  std::set<std::string> domains_;
  size_t constant_bytes_ = 0;  ///< no more than those of the constants kept
  CaseModel result_;
};

}  // namespace

Expected<std::unique_ptr<CaseCutter>> CaseCutter::create(Model model, const OptimizeOptions& options) {
  std::unique_ptr<CaseCutter> cutter(new CaseCutter(std::move(model)));
  ATTN_OPT_TRY(auto before_inlining, inline_attention_functions(cutter->model_, options));
  ATTN_OPT_TRY(cutter->view_, ModelGraph::create(cutter->model_.proto));
  cutter->facts_ = std::make_unique<Facts>(*cutter->view_, *cutter->model_.tensors);
  return cutter;
}

const Node* CaseCutter::find(const std::string& name, const std::string& op, const std::string& graph) const {
  for (const auto& candidate : view_->graphs()) {
    if (!graph.empty() && graph_path(*candidate) != graph) continue;
    for (const Node* node : candidate->nodes())
      if (node->label() == name && operator_name(*node) == op) return node;
  }
  return nullptr;
}

Expected<SitePlace> CaseCutter::place_of(const PlaceReport& site) const {
  const Node* anchor = find(site.name, site.op, site.graph);
  if (!anchor) return fail(ErrorCode::kInvalidInput, site.name, "the model has no such node before anything is written");
  if (anchor->graph->outermost().function())
    return fail(ErrorCode::kUnsupported, site.name, "it is in a local function", "inline the model's functions first");
  return SitePlace{anchor, view_.get(), facts_.get()};
}

Expected<CaseModel> CaseCutter::cut(const PlaceReport& site, const CutLimits& limits) {
  ATTN_OPT_TRY(const SitePlace place, place_of(site));
  std::vector<const Node*> anchors{place.anchor};
  const bool stopped_elsewhere = site.outcome != PlaceReport::Outcome::kFused && !site.miss_node.empty();
  if (const Node* stop = stopped_elsewhere ? find(site.miss_node, site.miss_op, "") : nullptr) anchors.push_back(stop);
  Cut cut(*view_, *facts_, *model_.tensors, limits);
  cut.collect(anchors);
  return cut.write();
}

void drop_unneeded(onnx::GraphProto& graph) {
  std::unordered_set<std::string> needed;
  for (const auto& output : graph.output()) needed.insert(output.name());
  auto& nodes = *graph.mutable_node();
  std::vector<bool> kept(static_cast<size_t>(nodes.size()));
  for (int i = nodes.size(); i-- > 0;) {
    kept[static_cast<size_t>(i)] =
        std::ranges::any_of(nodes[i].output(), [&](const auto& name) { return needed.contains(name); });
    if (kept[static_cast<size_t>(i)]) needed.insert(nodes[i].input().begin(), nodes[i].input().end());
  }
  onnx::GraphProto rest;
  std::unordered_set<std::string> inside;
  for (int i = 0; i < nodes.size(); ++i) {
    if (!kept[static_cast<size_t>(i)]) continue;
    inside.insert(nodes[i].output().begin(), nodes[i].output().end());
    *rest.add_node() = nodes[i];
  }
  for (const auto& info : graph.value_info())
    if (inside.contains(info.name())) *rest.add_value_info() = info;
  for (const auto& tensor : graph.initializer())
    if (needed.contains(tensor.name())) *rest.add_initializer() = tensor;
  for (const auto& input : graph.input())
    if (needed.contains(input.name())) *rest.add_input() = input;
  rest.set_name(graph.name());
  *rest.mutable_output() = graph.output();
  graph.Swap(&rest);
}

}  // namespace attn_opt
