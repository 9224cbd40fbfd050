// A use-def view of an ONNX model.
//
// The view owns no data of the model: nodes, initializers and types stay in the ModelProto, so whatever is not edited
// is written back untouched (metadata, unknown fields, quantization annotations). Graphs of If, Loop and Scan bodies
// and bodies of model-local functions are Graphs too; a Value of an outer graph that a nested node reads is a use like
// any other. Nodes and Values live as long as the ModelGraph and never move.
//
//   Expected<std::unique_ptr<ModelGraph>> view = ModelGraph::create(model.proto);
//   for (Node* node : (*view)->main().nodes()) ...
#pragma once

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <memory_resource>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "attn_opt/name_table.h"
#include "attn_opt/status.h"

namespace attn_opt {

class Graph;
class ModelGraph;
struct Node;

/// NODE reads a value as its input number INPUT. A null NODE: the value is an output of a graph nested in its own.
struct Use {
  Node* node = nullptr;
  int input = 0;
};

/// A value of a graph: an input, an initializer, an output of a node, or what a body reads from outside.
struct Value {
  explicit Value(std::pmr::memory_resource* memory) : uses(memory) {}

  std::string name;
  Graph* graph = nullptr;
  uint32_t index = 0;                              ///< number among the values of its graph, never reused
  Node* producer = nullptr;                        ///< null: graph input, initializer, or implicit input of a body
  int output = 0;                                  ///< which output of the producer
  std::pmr::vector<Use> uses;                      ///< reads in this graph and, captured, in nested ones
  const onnx::TensorProto* initializer = nullptr;  ///< null too if the caller may override it (it is also an input)
  onnx::TypeProto* declared_type = nullptr;        ///< of graph inputs, outputs and value_info; may be null
  bool is_input = false;                           ///< input of its graph (also: initializer that is an input)
  bool is_output = false;                          ///< output of its graph
  bool removed = false;
  bool is_new = false;  ///< not of the file

  bool unused() const { return uses.empty() && !is_output; }
  /// True if the file holds its contents: it is an initializer, or a Constant makes it.
  bool is_stored() const;
};

/// Where a node stands. One that is not of the file is written at the opset of edits, whatever the model's.
enum class Placement : uint8_t {
  kOfFile,
  kUnplaced,  ///< in no list yet: nothing of the model refers to it
  kAdded,     ///< put into its graph since
};

/// Version of ai.onnx that edits write unless ModelGraph::set_edit_opset() says otherwise.
inline constexpr int kEditOpset = 24;
/// Of set_edit_opset(): the model's own, whatever it is.
inline constexpr int kOwnOpset = 0;

/// A NodeProto with its values.
struct Node {
  explicit Node(std::pmr::memory_resource* memory) : inputs(memory), outputs(memory), use_slots(memory) {}

  uint32_t id = 0;        ///< unique in the model, never reused
  uint32_t position = 0;  ///< place in its graph's node list; for an added node that of the node it stands before
  onnx::NodeProto* proto = nullptr;
  Graph* graph = nullptr;
  std::pmr::vector<Value*> inputs;   ///< null: an omitted optional input
  std::pmr::vector<Value*> outputs;  ///< null: an omitted optional output
  std::vector<Graph*> bodies;        ///< graphs in its attributes, in the order of the attributes
  bool removed = false;
  Placement placement = Placement::kOfFile;
  uint8_t number = 0;                    ///< of its operator (src/graph/operator_number.h); see name_operator()
  std::pmr::vector<uint32_t> use_slots;  ///< where each input's Use stands in its value's uses

  const std::string& op() const { return proto->op_type(); }
  /// "" for ai.onnx.
  std::string_view domain() const {
    const std::string& name = proto->domain();
    return name.empty() || name == "ai.onnx" ? std::string_view() : std::string_view(name);
  }
  /// True for OP of the ai.onnx domain. In the line, since every pattern asks it of every node: a large source leaves it out
  /// otherwise.
  [[gnu::always_inline]] bool is(std::string_view op_type) const { return op() == op_type && domain().empty(); }
  Value* input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  Value* output(size_t i) const { return i < outputs.size() ? outputs[i] : nullptr; }
  /// True if nothing that it makes is read.
  bool is_dead() const {
    return std::ranges::all_of(outputs, [](const Value* value) { return !value || value->unused(); });
  }
  /// Takes the number of the operator that the proto names; to be called whenever that has got another.
  void name_operator();
  const onnx::AttributeProto* attribute(std::string_view name) const;
  int64_t int_attribute(std::string_view name, int64_t otherwise) const;
  float float_attribute(std::string_view name, float otherwise) const;
  std::string string_attribute(std::string_view name, const std::string& otherwise) const;
  /// Null when the attribute is absent.
  const google::protobuf::RepeatedField<int64_t>* ints_attribute(std::string_view name) const;
  /// The node's name, or that of its first output when it has none: what a user can search for.
  const std::string& label() const;
};

/// One list of nodes with one scope of names: the main graph, a body of a control-flow node, or a local function.
class Graph {
 public:
  Graph* parent() const { return parent_; }  ///< graph of the node this is a body of; null for main and functions
  /// The main graph or the function that this is, or is nested in.
  const Graph& outermost() const;
  Node* owner() const { return owner_; }  ///< node this is a body of
  /// The node of this graph that NODE is, or is nested in; null if there is none.
  Node* holder_of(const Node& node) const;
  ModelGraph& model() const { return *model_; }
  const onnx::FunctionProto* function() const { return function_; }
  onnx::GraphProto* proto() const { return proto_; }  ///< null for a function

  const std::vector<Node*>& nodes() const { return nodes_; }  ///< in the order of the file, removed ones included
  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  /// Every Value's index is below it.
  uint32_t value_count() const { return value_count_; }
  /// The value called NAME here or in an enclosing graph; null if there is none, or it was removed.
  Value* find(std::string_view name) const;
  /// True if VALUE can be read by a node of this graph: it belongs to this graph or to an enclosing one.
  bool sees(const Value& value) const;

 private:
  friend class ModelGraph;
  friend class GraphReader;
  Graph() = default;
  Value* find_own(std::string_view name) const;
  /// False if the graph has a value of VALUE's name.
  bool enter(Value& value, size_t hash);

  ModelGraph* model_ = nullptr;
  Graph* parent_ = nullptr;
  Node* owner_ = nullptr;
  onnx::GraphProto* proto_ = nullptr;
  onnx::FunctionProto* function_ = nullptr;
  std::vector<Node*> nodes_;
  std::vector<Node*> added_;  ///< linked since create(), in order; compact() puts them in their places
  bool changed_ = false;
  uint32_t value_count_ = 0;
  std::vector<Value*> inputs_, outputs_;
  NameTable<Value*> values_;
};

/// The view of a whole model.
class ModelGraph {
 public:
  /// Builds the view in one pass. Errors (kInvalidInput): a name that nothing defines, a value defined twice, nodes
  /// out of topological order, bodies nested deeper than the limit.
  static Expected<std::unique_ptr<ModelGraph>> create(onnx::ModelProto& proto);

  onnx::ModelProto& proto() const { return *proto_; }
  Graph& main() const { return *graphs_.front(); }
  /// Main graph, then every body and function, outer before inner.
  const std::deque<std::unique_ptr<Graph>>& graphs() const { return graphs_; }
  /// Version of DOMAIN that GRAPH's nodes are of: the model's, or the function's own import.
  int opset(const Graph& graph, const std::string& domain = "") const;
  /// Version of ai.onnx that edits write, the model's own if that is higher.
  int edit_opset() const { return edit_opset_; }
  /// OPSET: of Attention, or kOwnOpset.
  void set_edit_opset(int opset);
  /// Version of ai.onnx that NODE is of: its graph's, or that of edits if it is not of the file.
  int onnx_opset(const Node& node) const { return node.placement == Placement::kOfFile ? opset(*node.graph) : edit_opset_; }

  /// A name that no value or node of the model has: STEM, or STEM with a number.
  std::string fresh_name(const std::string& stem);

  /// A node of GRAPH that is in no list yet, with a proto of its own to fill. Values it makes and reads are set by the
  /// caller; until link() nothing of the model refers to it.
  Node* new_node(Graph& graph);
  Value* new_value(Graph& graph, const std::string& name);
  /// Puts NODE before ANCHOR, a node of the same graph or nested in one of it, and enters its reads into the use lists.
  void link(Node& node, const Node& anchor);
  /// Puts NODE, of the file, right before ANCHOR, a node of the file that stands above it in the same graph.
  void raise(Node& node, const Node& anchor);
  /// Makes the output number OUTPUT of the linked node MAKER the producer of VALUE: VALUE keeps its name, readers and
  /// type; what MAKER made there before is dropped, and VALUE's old producer gets an unread output in its place.
  void take_over(Value& value, Node& maker, int output);
  /// Makes input number INPUT of NODE read VALUE instead.
  void set_input(Node& node, int input, Value& value);
  /// Records TYPE for VALUE in its graph's value_info.
  void declare(Value& value, onnx::TypeProto type);

  /// Removes NODE if none of its outputs is read, then in turn whatever only it read (nodes, initializers,
  /// value_info).
  void remove_if_dead(Node& node);
  /// Removes all nodes of which nothing is read, and whatever only they read. Those of others' operators and those that hold
  /// graphs are left: they may do more than make their outputs.
  void remove_dead();
  /// Writes removals and additions into the protos, once, after the last edit. Node and Value pointers stay valid.
  void compact();

  /// That the view holds together, edits that are not in the protos yet included: what is read or is an output is there and
  /// made above its readers, by one node that knows of it; use lists and names are those of the nodes. Linear in the size of
  /// the model. Error: kInvalidInput with the first node that is wrong.
  Status check() const;

 private:
  friend class GraphReader;
  /// The nodes of GRAPH as compact() will list them, removed ones included.
  static std::vector<Node*> in_order(const Graph& graph);
  void add_use(Value& value, Node* node, int input);
  void drop_use(Node& node, int input);
  void drop_unread(Value& value, std::vector<Node*>& pending);
  void remove(Node& node, std::vector<Node*>& pending);

  /// True if no value or node was called NAME, which is taken from now on. A rare false "taken" costs a number only.
  bool take_name(std::string_view name) { return take_name(name_hash(name)); }
  bool take_name(size_t hash) {
    return taken_names_.insert(hash, {}, [](Taken) { return true; });
  }
  Value& add_value(Graph& graph, std::string name);
  Node& add_node(Graph& graph);

  int edit_opset_ = kEditOpset;
  std::pmr::monotonic_buffer_resource memory_;  ///< of the many small lists of Nodes and Values, which only grow
  onnx::ModelProto* proto_ = nullptr;
  std::deque<std::unique_ptr<Graph>> graphs_;
  std::deque<Node> node_pool_;
  std::deque<Value> value_pool_;
  std::unordered_map<const Node*, std::unique_ptr<onnx::NodeProto>> unlisted_protos_;  ///< until compact() lists them
  std::unordered_set<const onnx::TensorProto*> removed_initializers_;
  struct Taken {};
  NameTable<Taken> taken_names_;
  std::unordered_map<std::string, int> next_suffix_;
};

}  // namespace attn_opt
