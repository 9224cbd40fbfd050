#include "src/cli/cases/case_shrinking.h"

#include <algorithm>

namespace attn_opt {
namespace {

class Shrinking {
 public:
  Shrinking(CaseModel& model, const CaseTest& holds, Integers integers) : model_(model), holds_(holds), integers_(integers) {}

  void run() {
    drop_declarations();
    drop_outputs();
    cut_front();
    constexpr int kMaxRounds = 6;
    for (int round = 0; round < kMaxRounds && !holds_.is_over(); ++round) {
      const int before = size();
      drop_outputs();
      lift_outputs();
      cut_producers();
      leave_out_nodes();
      free_constants();
      if (size() == before) break;
    }
    drop_declarations();
  }

 private:
  const onnx::GraphProto& graph() const { return model_.proto.graph(); }
  int size() const { return graph().node_size() + graph().output_size() + graph().initializer_size(); }

  /// Keeps CHANGED if it holds.
  bool try_out(onnx::ModelProto changed) {
    drop_unneeded(*changed.mutable_graph());
    if (changed.graph().output_size() == 0 || !holds_(changed)) return false;
    model_.proto.Swap(&changed);
    return true;
  }

  void drop_declarations() {
    if (graph().value_info_size() == 0) return;
    onnx::ModelProto changed = model_.proto;
    changed.mutable_graph()->clear_value_info();
    try_out(std::move(changed));
  }

  void drop_outputs() {
    for (int i = graph().output_size(); i-- > 0 && graph().output_size() > 1 && !holds_.is_over();) {
      onnx::ModelProto changed = model_.proto;
      changed.mutable_graph()->mutable_output()->DeleteSubrange(i, 1);
      try_out(std::move(changed));
    }
  }

  /// An output may be what the node that makes it reads.
  void lift_outputs() {
    for (int i = 0; i < graph().output_size(); ++i)
      while (lift_output(i)) {
      }
  }

  bool lift_output(int number) {
    const std::string old = graph().output(number).name();
    for (const auto& node : graph().node()) {
      if (std::ranges::find(node.output(), old) == node.output().end()) continue;
      for (const std::string& name : node.input()) {
        const onnx::TypeProto* type = type_of(name);
        if (!type || !is_made(name) || holds_.is_over()) continue;
        onnx::ModelProto changed = model_.proto;
        auto& output = *changed.mutable_graph()->mutable_output(number);
        output.set_name(name);
        *output.mutable_type() = *type;
        if (try_out(std::move(changed))) return true;
      }
      return false;
    }
    return false;
  }

  /// True for what a node makes that is no output.
  bool is_made(const std::string& name) const {
    if (std::ranges::any_of(graph().output(), [&](const auto& output) { return output.name() == name; })) return false;
    return std::ranges::any_of(graph().node(),
                               [&](const auto& node) { return std::ranges::find(node.output(), name) != node.output().end(); });
  }

  /// True if all that NODE makes can be inputs; CHANGED has them as such.
  bool make_inputs(const onnx::NodeProto& node, onnx::GraphProto& changed) const {
    for (const std::string& name : node.output()) {
      if (name.empty()) continue;
      const auto type = model_.types.find(name);
      const bool is_output = std::ranges::any_of(changed.output(), [&](const auto& output) { return output.name() == name; });
      if (type == model_.types.end() || is_output || !may_be_input(type->second)) return false;
      auto* input = changed.add_input();
      input->set_name(name);
      *input->mutable_type() = type->second;
    }
    return true;
  }

  /// The nodes with the numbers FIRST to LAST become inputs.
  bool cut_range(int first, int last) {
    onnx::ModelProto changed = model_.proto;
    onnx::GraphProto& changed_graph = *changed.mutable_graph();
    for (int i = first; i < last; ++i)
      if (!make_inputs(graph().node(i), changed_graph)) return false;
    changed_graph.mutable_node()->DeleteSubrange(first, last - first);
    return try_out(std::move(changed));
  }

  /// The most of the first nodes that can go at once: what stands far above is seldom part of it.
  void cut_front() {
    for (int count = graph().node_size() / 2; count > 0 && !holds_.is_over(); count /= 2)
      while (count < graph().node_size() && cut_range(0, count)) {
      }
  }

  void cut_producers() {
    for (int i = graph().node_size(); i-- > 0 && !holds_.is_over();) {
      i = std::min(i, graph().node_size() - 1);
      if (i >= 0 && graph().node_size() > 1) cut_range(i, i + 1);
    }
  }

  const onnx::TypeProto* type_of(const std::string& name) const {
    const auto found = model_.types.find(name);
    return found == model_.types.end() ? nullptr : &found->second;
  }

  /// Readers of what NODE makes read its input number INPUT instead.
  bool leave_out(int number, int input) {
    const onnx::NodeProto& node = graph().node(number);
    if (node.output_size() == 0 || node.input(input).empty()) return false;
    const onnx::TypeProto *from = type_of(node.input(input)), *to = type_of(node.output(0));
    if (!from || !to || from->SerializeAsString() != to->SerializeAsString()) return false;
    const std::string old = node.output(0), fresh = node.input(input);
    onnx::ModelProto changed = model_.proto;
    for (auto& output : *changed.mutable_graph()->mutable_output())
      if (output.name() == old) return false;
    for (auto& reader : *changed.mutable_graph()->mutable_node())
      for (auto& name : *reader.mutable_input())
        if (name == old) name = fresh;
    return try_out(std::move(changed));
  }

  void leave_out_nodes() {
    for (int i = graph().node_size(); i-- > 0 && !holds_.is_over();)
      for (int input = 0; i < graph().node_size() && input < graph().node(i).input_size(); ++input)
        if (leave_out(i, input)) break;
  }

  /// Constants of more than one element as inputs.
  void free_constants() {
    for (int i = graph().initializer_size(); i-- > 0 && !holds_.is_over();) {
      if (i >= graph().initializer_size()) continue;
      const auto& tensor = graph().initializer(i);
      const onnx::TypeProto* type = type_of(tensor.name());
      const bool is_number = std::ranges::all_of(tensor.dims(), [](int64_t size) { return size == 1; });
      if (!type || is_number || !may_be_input(*type)) continue;
      onnx::ModelProto changed = model_.proto;
      auto* input = changed.mutable_graph()->add_input();
      input->set_name(tensor.name());
      *input->mutable_type() = *type;
      changed.mutable_graph()->mutable_initializer()->DeleteSubrange(i, 1);
      try_out(std::move(changed));
    }
  }

  bool may_be_input(const onnx::TypeProto& type) const {
    return integers_ == Integers::kMayBeInputs || type.tensor_type().elem_type() != onnx::TensorProto::INT64;
  }

  CaseModel& model_;
  const CaseTest& holds_;
  Integers integers_;
};

}  // namespace

void shrink(CaseModel& model, const CaseTest& holds, Integers integers) {
  Shrinking(model, holds, integers).run();
  shrink_sizes(model, holds);
}

}  // namespace attn_opt
