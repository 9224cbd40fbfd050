#include "src/match/facts/loop_copies.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/facts.h"
#include "attn_opt/model.h"
#include "src/match/facts/fact_store.h"

namespace attn_opt {
namespace {

constexpr size_t kMostNodes = 32;
constexpr size_t kMostBytes = 4096;

/// What the body hands on where CARRIED stands among its inputs; null if there is nothing.
const Value* handed_on(const Value& carried) {
  const auto& outputs = carried.graph->outputs();
  const size_t at = place_among_inputs(carried);  // behind the iteration's number
  return at >= 1 && at <= outputs.size() ? outputs[at - 1] : nullptr;
}

/// MADE as a model of its own, of CARRIED alone and constants.
class PartOfBody {
 public:
  explicit PartOfBody(const Value& carried) : carried_(carried) {}

  /// False if more goes into it.
  bool take(const Value& made) {
    std::vector<const Value*> open{&made};
    while (!open.empty()) {
      const Value& value = *open.back();
      open.pop_back();
      if (&value == &carried_ || !seen_.insert(&value).second) continue;
      if (!value.producer) {
        if (!take_constant(value)) return false;
        continue;
      }
      if (nodes_.size() == kMostNodes || !value.producer->bodies.empty()) return false;
      if (std::ranges::find(nodes_, value.producer) == nodes_.end()) nodes_.push_back(value.producer);
      for (const Value* input : value.producer->inputs)
        if (input) open.push_back(input);
    }
    return true;
  }

  /// True if MADE, which was taken, is a copy of the input, of the type and SHAPE that TYPE says.
  bool is_copy(const Value& made, DataType type, const Shape& shape) {
    std::ranges::sort(nodes_, {}, &Node::id);
    proto_.set_ir_version(carried_.graph->model().proto().ir_version());
    for (const Node* node : nodes_) *proto_.mutable_graph()->add_node() = *node->proto;
    onnx::OperatorSetIdProto& opset = *proto_.add_opset_import();
    opset.set_version(carried_.graph->model().onnx_opset(*nodes_.front()));
    onnx::ValueInfoProto& input = *proto_.mutable_graph()->add_input();
    input.set_name(carried_.name);
    input.mutable_type()->mutable_tensor_type()->set_elem_type(type);
    for (const Dim& size : shape) {
      auto& dim = *input.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim();
      if (size.is_constant())
        dim.set_dim_value(size.value());
      else
        dim.set_dim_param(size.str());
    }
    const auto view = ModelGraph::create(proto_);
    if (!view) return false;
    Facts facts(**view, inline_tensors());
    Value *own = (*view)->main().find(carried_.name), *copy = (*view)->main().find(made.name);
    return own && copy && &canonical(*copy, facts) == own;
  }

 private:
  bool take_constant(const Value& value) {
    if (!value.initializer || value.initializer->ByteSizeLong() > kMostBytes ||
        value.initializer->data_location() == onnx::TensorProto::EXTERNAL)
      return false;
    *proto_.mutable_graph()->add_initializer() = *value.initializer;
    return true;
  }

  const Value& carried_;
  std::unordered_set<const Value*> seen_;
  std::vector<const Node*> nodes_;
  onnx::ModelProto proto_;
};

bool is_handed_on(const Value& carried, const ValueFact& initial) {
  const Value* made = handed_on(carried);
  PartOfBody part(carried);
  return made && made->producer && part.take(*made) && part.is_copy(*made, initial.type, *initial.shape);
}

/// True if nothing but Identity stands between CARRIED and what the body hands on: whatever it is.
bool is_plainly_handed_on(const Value& carried) {
  constexpr int kMostCopies = 8;
  const Value* made = handed_on(carried);
  for (int step = 0; step < kMostCopies && made && made->producer && made->producer->is("Identity"); ++step)
    made = made->producer->input(0);
  return made == &carried;
}

}  // namespace

bool LoopCopies::hands_on(const Value& carried, const ValueFact& initial) {
  if (const auto known = known_.find(&carried); known != known_.end()) return known->second;
  if (is_plainly_handed_on(carried)) return known_[&carried] = true;
  return initial.shape && initial.type != onnx::TensorProto::UNDEFINED && (known_[&carried] = is_handed_on(carried, initial));
}

}  // namespace attn_opt
