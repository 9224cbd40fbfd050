#include "src/optimizer/loadable_int8.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <vector>

#include "attn_opt/edit.h"
#include "attn_opt/facts.h"
#include "attn_opt/graph_builder.h"
#include "attn_opt/internal/model_walk.h"
#include "src/graph/provenance.h"
#include "src/io/onnx_domain.h"

namespace attn_opt {
namespace {

constexpr int kOpsetOfOutputTypes = 21;

/// Identity is no move of ONNX Runtime's, but gone before it looks for them.
bool moves_elements(const std::string& op) {
  static const std::set<std::string> all{"Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"};
  return all.contains(op);
}

/// Operands of products that ONNX Runtime makes a Gemm, with a Reshape in front, where something is added to them.
bool multiplies_rows(const std::string& op) { return op == "MatMul"; }

/// The zero point of NODE, a QuantizeLinear or DequantizeLinear with all that these have, if it is known and one of int8.
std::optional<double> int8_zero_point(const Node& node, Facts& facts) {
  const bool is_whole = node.input(0) && node.input(1) && node.input(2) && node.output(0);
  return is_whole && facts.type(*node.input(2)) == onnx::TensorProto::INT8 ? facts.scalar(*node.input(2)) : std::nullopt;
}

/// True if NODE makes numbers of int8, whose type a function leaves open, and not, in a model that no runtime runs, of what
/// another one made.
bool dequantizes_int8(const Node& node, Facts& facts) {
  return node.is("DequantizeLinear") && int8_zero_point(node, facts) && !is_floating(facts.type(*node.input(0)));
}

Attributes attributes_of(const Node& node) { return {node.proto->attribute().begin(), node.proto->attribute().end()}; }

/// What DequantizeLinear nodes make of int8 for products, of uint8: as the QuantizeLinear makes it that they alone read, or
/// else 128 above.
class UnsignedPairs {
 public:
  UnsignedPairs(ModelGraph& view, const TensorStore& tensors, const std::set<std::string>& kept)
      : view_(view), facts_(view, tensors), kept_(kept) {}

  bool run() {
    std::vector<std::pair<Node*, Value*>> pairs;  // what dequantizes, and what it reads: in the order of the graph
    for (const auto& graph : view_.graphs())
      for (Node* node : graph->nodes())
        if (dequantizes_int8(*node, facts_) && !node->input(0)->is_stored() &&
            (is_read_by_product(*node->output(0)) || is_paired(*node->input(0))))
          pairs.emplace_back(node, node->input(0));
    for (const auto& [node, read] : pairs) make_unsigned(*node, *read);
    return !pairs.empty();
  }

 private:
  bool is_read_by_product(const Value& value) const {
    return std::ranges::any_of(value.uses, [this](const Use& use) {
      return use.node && use.node->domain().empty() && multiplies_rows(use.node->op()) && use.node->output(0) &&
             !kept_.contains(use.node->output(0)->name);
    });
  }

  /// True if a QuantizeLinear makes VALUE, int8 that DequantizeLinear nodes of its graph alone read, one of them for a product.
  bool is_paired(const Value& value) {
    const Node* node = value.producer;
    if (!node || !node->is("QuantizeLinear") || !int8_zero_point(*node, facts_) || value.is_output) return false;
    const auto is_pair = [&](const Use& use) {
      return use.node && use.input == 0 && use.node->graph == node->graph && dequantizes_int8(*use.node, facts_);
    };
    return std::ranges::all_of(value.uses, is_pair) &&
           std::ranges::any_of(value.uses, [this](const Use& use) { return is_read_by_product(*use.node->output(0)); });
  }

  /// NODE, with another zero point, of FIRST.
  Value* again(Node& node, Value* first, GraphBuilder& build) {
    Attributes attributes = attributes_of(node);
    std::erase_if(attributes, [](const onnx::AttributeProto& one) { return one.name() == "output_dtype"; });
    const auto zero = static_cast<uint8_t>(*int8_zero_point(node, facts_) + 128);
    return build.new_node(node.op(), {first, node.input(1), build.constant(Tensor::scalar<uint8_t>(zero))}, {true}, attributes)
        ->outputs[0];
  }

  /// DEQUANTIZE, of READ, as it is of uint8. The first that reads it stands in front of all others.
  void make_unsigned(Node& dequantize, Value& read) {
    Edit edit(view_, dequantize);
    GraphBuilder build(edit, shared_, dequantize.label());
    Value*& made = unsigned_.try_emplace({&read, dequantize.graph}, nullptr).first->second;
    const bool is_first = !made, is_pair = is_paired(read);
    if (is_first) made = is_pair ? again(*read.producer, read.producer->input(0), build) : raised(read, build);
    edit.take_over(*dequantize.output(0), *again(dequantize, made, build));
    carry_metadata(is_pair ? std::vector<const Node*>{&dequantize, read.producer} : std::vector<const Node*>{&dequantize},
                   edit.nodes());
    edit.commit(shared_);
  }

  /// INT8 plus 128, as uint8.
  static Value* raised(Value& int8, GraphBuilder& build) {
    const auto cast = [&](Value* value, DataType to) {
      return build.node("Cast", {value}, {GraphBuilder::attribute("to", int64_t{to})});
    };
    Value* wide = cast(&int8, onnx::TensorProto::INT16);
    Value* sum = build.node("Add", {wide, build.constant(Tensor::scalar<int16_t>(128))});
    return cast(sum, onnx::TensorProto::UINT8);
  }

  std::map<std::pair<const Value*, const Graph*>, Value*> unsigned_;  ///< by int8 numbers
  ModelGraph& view_;
  Facts facts_;
  const std::set<std::string>& kept_;
  SharedNodes shared_;
};

class Sinker {
 public:
  Sinker(ModelGraph& view, const TensorStore& tensors, const std::set<std::string>& kept)
      : view_(view), facts_(view, tensors), kept_(kept) {}

  bool run() {
    std::deque<Node*> waiting;
    for (const auto& graph : view_.graphs())
      std::ranges::copy_if(graph->nodes(), std::back_inserter(waiting), [this](Node* node) { return takes_int8(*node); });
    bool has_sunk = false;
    for (; !waiting.empty(); waiting.pop_front()) {
      for (Node* move : moves_of(*waiting.front())) {
        waiting.push_back(&behind(*move, *waiting.front()));
        has_sunk = true;
      }
    }
    return has_sunk;
  }

 private:
  /// True if NODE makes numbers of int8 with one scale and a zero point, all known. A positive scale keeps the order, which
  /// MaxPool asks for. What is done to weights alone runtimes compute beforehand.
  bool takes_int8(const Node& node) {
    if (node.removed || !dequantizes_int8(node, facts_) || node.input(0)->is_stored()) return false;
    const auto scale = facts_.scalar(*node.input(1));
    return scale && *scale > 0 && std::isfinite(*scale);
  }

  static bool moves_its_first_input(const Use& use, const Graph& graph) {
    return use.node && use.input == 0 && use.node->graph == &graph && use.node->domain().empty() &&
           moves_elements(use.node->op()) && use.node->outputs.size() == 1;
  }

  /// What is read as int8 again is no place for a QuantizeLinear of ONNX Runtime's.
  static bool is_quantized(const Value& value) {
    return !value.is_output && !value.uses.empty() && std::ranges::all_of(value.uses, [](const Use& use) {
      return use.node && use.input == 0 && use.node->is("QuantizeLinear");
    });
  }

  bool stays(const Node& move) const {
    const Value& made = *move.output(0);
    if (kept_.contains(made.name) || is_quantized(made)) return true;
    return move.is("Identity") && std::ranges::none_of(made.uses, [&](const Use& use) {
             return moves_its_first_input(use, *move.graph) && !stays(*use.node);
           });
  }

  std::vector<Node*> moves_of(const Node& dequantize) const {
    std::vector<Node*> moves;
    for (const Use& use : dequantize.output(0)->uses)
      if (moves_its_first_input(use, *dequantize.graph) && !stays(*use.node)) moves.push_back(use.node);
    return moves;
  }

  /// The DequantizeLinear that makes what MOVE made of what DEQUANTIZE gave it.
  Node& behind(Node& move, const Node& dequantize) {
    Edit edit(view_, move);
    GraphBuilder build(edit, shared_, move.label());
    std::vector<Value*> read(move.inputs.begin(), move.inputs.end());
    read[0] = dequantize.input(0);
    Value* moved = build.new_node(move.op(), read, {true}, attributes_of(move))->outputs[0];
    Node& sunk = *build.new_node("DequantizeLinear", {moved, dequantize.input(1), dequantize.input(2)}, {true},
                                 attributes_of(dequantize));
    edit.take_over(*move.output(0), *sunk.outputs[0]);
    carry_metadata({&move, &dequantize}, edit.nodes());
    edit.commit(shared_);
    return sunk;
  }

  ModelGraph& view_;
  Facts facts_;
  const std::set<std::string>& kept_;
  SharedNodes shared_;
};

}  // namespace

std::set<std::string> reads_behind_int8(const onnx::ModelProto& model) {
  std::set<std::string> made;
  if (opset_version(model) < kOpsetOfOutputTypes) return made;
  for_each_node(model, [&made](const onnx::NodeProto& node) {
    const bool is_of_int8 = moves_elements(node.op_type()) || multiplies_rows(node.op_type());
    if (is_onnx(node.domain()) && is_of_int8 && node.output_size() == 1) made.insert(node.output(0));
  });
  return made;
}

Status keep_int8_loadable(Model& model, const std::set<std::string>& kept) {
  if (opset_version(model.proto) < kOpsetOfOutputTypes) return {};
  ATTN_OPT_TRY(const auto view, ModelGraph::create(model.proto));
  view->set_edit_opset(kOwnOpset);
  const bool has_unsigned = UnsignedPairs(*view, *model.tensors, kept).run();
  if (Sinker(*view, *model.tensors, kept).run() || has_unsigned) view->compact();
  return {};
}

}  // namespace attn_opt
