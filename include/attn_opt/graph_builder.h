// GraphBuilder makes nodes: those of a model from nothing, or those of an Edit in front of an existing node.
//
//   GraphBuilder build;                                    // a model of opset 24
//   Value* x = build.input("x", onnx::TensorProto::FLOAT, {"batch", 4});
//   Value* y = build.node("Softmax", {x}, {{"axis", -1}});
//   build.output("y", y);
//   Expected<Model> model = build.model();                 // has passed ONNX's full check
//
// Of a model from nothing each node is checked against its schema as it is made, and its outputs get the types and shapes
// that ONNX infers. The first error is kept: status() and model() return it, and nothing is added after it. So calls can be
// nested without a check each. docs/builder.md is the manual.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "attn_opt/attribute.h"
#include "attn_opt/graph.h"
#include "attn_opt/model.h"
#include "attn_opt/status.h"
#include "attn_opt/tensor.h"

namespace attn_opt {

class BuilderBackend;
class Edit;
class GraphDraft;
class SharedNodes;

/// A size of an axis: a number or the name of a symbol; "" where it is open.
using AxisSize = std::variant<int64_t, std::string>;
/// AxisSizes of the axes, outermost first.
using AxisSizes = std::vector<AxisSize>;

/// A tensor of any rank.
onnx::TypeProto tensor_type(DataType type);
/// A tensor with axes of SIZES.
onnx::TypeProto tensor_type(DataType type, const AxisSizes& sizes);

/// What a model from nothing is to be.
struct BuilderOptions {
  int opset = kEditOpset;  ///< of ai.onnx
  std::string name = "main";
};

/// Makes the nodes of one graph; equal nodes are made once, those of random operators excepted. Copies make nodes of the same.
class GraphBuilder {
 public:
  using Attributes = attn_opt::Attributes;

  /// A model from nothing. Its main graph is this builder's.
  explicit GraphBuilder(const BuilderOptions& options = {});
  /// Nodes of EDIT. STEM begins the names of what is made. Nodes are not checked here: those of rewrites are after apply().
  GraphBuilder(Edit& edit, const SharedNodes& shared, std::string stem);

  /// First output of a node with one output; OP is "Op" of ai.onnx or "domain::Op". The same node is made once.
  /// INPUTS may be values of this graph and, in a body, of the graphs around it; null: an omitted optional input.
  /// Errors: kUsage for an operator that the opset lacks, a wrong number of inputs, an attribute that is unknown, missing or
  /// of another type, and inputs whose types or shapes the operator does not take.
  Value* node(const std::string& op, const std::vector<Value*>& inputs, const Attributes& attributes = {});
  /// A node with an output for each of WANTED, never shared; false: an omitted optional output. Errors: as node().
  Node* new_node(const std::string& op, const std::vector<Value*>& inputs, const std::vector<bool>& wanted,
                 const Attributes& attributes = {});
  /// OP (Squeeze, Unsqueeze, ReduceMax, ...) of VALUE along AXES, which are an attribute at the older opsets.
  Value* along(const std::string& op, Value& value, const std::vector<int64_t>& axes, Attributes attributes = {});
  Value* constant(const Tensor& tensor);
  Value* constant(const Tensor& numbers, DataType type);  ///< NUMBERS in TYPE; in float where no tensor is made of that
  Value* ints(const std::vector<int64_t>& values);        ///< int64 [n]
  Value* scalar(double value, DataType type);             ///< rank 0, of a floating type, else as constant()
  /// FACTOR times VALUE, of a floating TYPE; a quotient where that holds the inverse of FACTOR and not FACTOR.
  Value* scaled(Value* value, double factor, DataType type);
  /// The same, in float where a half type holds FACTOR only rounded.
  Value* scaled_exactly(Value* value, double factor, DataType type);
  /// AxisSizes of axes [BEGIN, END) of VALUE: int64 [END - BEGIN].
  Value* shape(Value& value, int64_t begin, int64_t end);
  /// Names of what is made from now on begin with STEM.
  void begin_names_with(std::string stem) { stem_ = std::move(stem); }

  template <class T>
  static onnx::AttributeProto attribute(const std::string& name, const T& value) {
    return Attribute(name, value).proto();
  }

  /// As VALUE is declared or was inferred; UNDEFINED where that is not known.
  static DataType type(const Value& value);
  /// As VALUE is declared or was inferred; none where the rank is not known.
  static std::optional<AxisSizes> sizes(const Value& value);

  // What follows is for models from nothing: with a builder of an Edit each is the error kUsage.

  /// An input of the graph. Errors: kUsage for a name that the model has.
  Value* input(const std::string& name, DataType type, const AxisSizes& sizes);
  /// An input of any TYPE; inputs of functions have none.
  Value* input(const std::string& name, const onnx::TypeProto& type = {});
  /// A constant of the graph that has a name. Errors: as input().
  Value* initializer(const std::string& name, const Tensor& tensor);
  /// VALUE becomes the next output and is called NAME; what is an input or has a name already is copied by Identity.
  /// In bodies NAME is a wish. Errors: as input(); a type that is not known.
  Value* output(const std::string& name, Value* value);
  /// VALUE is of TYPE, of which ONNX infers less or nothing. Errors: kUsage where it infers another type.
  void declare(Value* value, const onnx::TypeProto& type);

  /// The body of an If, Loop or Scan of this graph: its nodes read values of this graph too. A node takes it as an attribute.
  GraphBuilder body(const std::string& name = "body");
  /// A function of the model, called by the operator "DOMAIN::NAME". Attributes that its nodes refer to
  /// (Attribute::reference) are its parameters; DEFAULTS are of those that a call may omit. It is finished by the first call.
  GraphBuilder function(const std::string& domain, const std::string& name, const Attributes& defaults = {});
  /// DOMAIN's operators are those of VERSION.
  void import_opset(const std::string& domain, int version);
  void set_metadata(const std::string& key, const std::string& value);

  /// The first error of the model that this graph belongs to.
  Status status() const;
  /// The same, and the error is forgotten: what could not be made is not in the model.
  Status take_status();
  /// The whole model, from whichever of its builders, after onnx.checker.check_model with full_check. The builder can be used
  /// further. Errors: that of status(); kInvalidInput with the checker's reason.
  Expected<Model> model() const;

  /// What nodes are added to. Error: Defect, of a model from nothing.
  Edit& edit() const;
  /// The model that nodes are added to.
  ModelGraph& view() const;

 private:
  friend class Attribute;
  explicit GraphBuilder(std::shared_ptr<BuilderBackend> backend) : backend_(std::move(backend)) {}
  /// A node that the back end does not have yet.
  Node* detached_node(const std::string& op, const std::vector<Value*>& inputs, const std::vector<bool>& wanted,
                      const Attributes& attributes);
  void add_output(Node& node, bool is_wanted);
  /// The first output of the node that KEY stands for.
  Value* made_once(const std::string& key, const std::string& op, const std::vector<Value*>& inputs,
                   const Attributes& attributes);
  /// Null, and an error, for a builder of an Edit.
  GraphDraft* draft(const char* wanted) const;

  std::shared_ptr<BuilderBackend> backend_;
  std::string stem_;
  mutable std::optional<Error> misuse_;
};

}  // namespace attn_opt
