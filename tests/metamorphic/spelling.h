// A model that is being respelled: what is known of it, and the few changes that respelling takes.
//
// The view and the facts are those of the model before any change: a Spelling is changed once, and what comes next is
// decided on a Spelling of the changed model.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"
#include "attn_opt/model.h"

namespace attn_opt {

/// The same numbers with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  /// 0 to COUNT - 1.
  size_t below(size_t count) { return static_cast<size_t>(engine_() % count); }
  bool coin() { return below(2) == 0; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::mt19937_64 engine_;
};

class Spelling {
 public:
  /// Null if the graph of MODEL does not hold together.
  static std::unique_ptr<Spelling> of(const Model& model);

  const Model& model() const { return model_; }
  onnx::ModelProto& proto() { return model_.proto; }
  ModelGraph& view() { return *view_; }
  Facts& facts() { return *facts_; }

  /// Every node of the main graph, the bodies and the functions.
  std::vector<Node*> nodes() const;
  /// Version of ai.onnx that NODE is of.
  int opset(const Node& node) const { return view_->opset(*node.graph); }
  /// The tensor of an initializer that no caller overrides, or of a Constant node; null otherwise.
  static const onnx::TensorProto* constant(const Value& value);
  /// The same as numbers, if they are floats, doubles or halves; empty otherwise.
  std::vector<double> numbers(const Value& value) const;

  std::string fresh(const std::string& stem) { return view_->fresh_name(stem); }
  void insert_before(const Node& place, onnx::NodeProto node);
  void insert_after(const Node& place, onnx::NodeProto node);
  /// The name of a new constant that PLACE can read.
  std::string add_constant(const Node& place, onnx::TensorProto tensor);

 private:
  explicit Spelling(const Model& model) : model_(model) {}
  static google::protobuf::RepeatedPtrField<onnx::NodeProto>& list_of(const Node& node);
  static int index_of(const Node& node);
  static void insert(const Node& neighbour, int index, onnx::NodeProto node);

  Model model_;
  std::unique_ptr<ModelGraph> view_;
  std::unique_ptr<Facts> facts_;
};

onnx::NodeProto node_of(const std::string& op, const std::vector<std::string>& inputs, const std::string& output);
void set_attribute(onnx::NodeProto& node, const std::string& name, int64_t value);
void set_attribute(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values);
void drop_attribute(onnx::NodeProto& node, const std::string& name);
onnx::NodeProto constant_node(const onnx::TensorProto& tensor, const std::string& output);
onnx::TensorProto int64_tensor(const std::vector<int64_t>& values);
/// VALUE as a tensor of TYPE (a floating one) and DIMS.
onnx::TensorProto filled_tensor(DataType type, const std::vector<int64_t>& dims, double value);

}  // namespace attn_opt
