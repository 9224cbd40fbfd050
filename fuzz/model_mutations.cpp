#include "fuzz/model_mutations.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "attn_opt/internal/model_walk.h"

namespace attn_opt::fuzzing {
namespace {

constexpr int64_t kNumbers[] = {
    0, 1, -1, 2, 3, -2, 4, 5, 7, 64, -100, 1 << 20, INT32_MAX, INT32_MIN, int64_t{1} << 40, INT64_MAX, INT64_MIN};
constexpr double kFloats[] = {0, 1, -1, 0.5, 1e-38, 3.4e38, -3.4e38, 1e300};
constexpr const char* kOperators[] = {"Squeeze",
                                      "Identity",
                                      "Relu",
                                      "Neg",
                                      "Flatten",
                                      "Shape",
                                      "Size",
                                      "Softmax",
                                      "Transpose",
                                      "Sqrt",
                                      "Exp",
                                      "Reciprocal",
                                      "IsNaN",
                                      "Not",
                                      "Cast",
                                      "MatMul",
                                      "Add",
                                      "Mul",
                                      "Sub",
                                      "Div",
                                      "Pow",
                                      "Where",
                                      "Gemm",
                                      "Einsum",
                                      "Concat",
                                      "Reshape",
                                      "Expand",
                                      "Unsqueeze",
                                      "Slice",
                                      "Gather",
                                      "Split",
                                      "ReduceMax",
                                      "ReduceSum",
                                      "Tile",
                                      "Pad",
                                      "Range",
                                      "Attention",
                                      "MultiHeadAttention",
                                      "GroupQueryAttention",
                                      "RotaryEmbedding"};
constexpr onnx::TensorProto::DataType kTypes[] = {
    onnx::TensorProto::FLOAT, onnx::TensorProto::FLOAT16,  onnx::TensorProto::DOUBLE, onnx::TensorProto::BFLOAT16,
    onnx::TensorProto::INT64, onnx::TensorProto::INT32,    onnx::TensorProto::BOOL,   onnx::TensorProto::STRING,
    onnx::TensorProto::UINT8, onnx::TensorProto::UNDEFINED};

class Mutator {
 public:
  Mutator(onnx::ModelProto& model, unsigned seed) : model_(model), random_(seed) {}

  void run() {
    constexpr void (Mutator::* kChanges[])() = {
        &Mutator::drop_value_info, &Mutator::change_rank,    &Mutator::change_size,      &Mutator::open_rank,
        &Mutator::open_rank,       &Mutator::change_type,    &Mutator::swap_inputs,      &Mutator::drop_inputs,
        &Mutator::rewire_input,    &Mutator::rewire_input,   &Mutator::change_attribute, &Mutator::change_attribute,
        &Mutator::drop_attribute,  &Mutator::rename,         &Mutator::change_tensor,    &Mutator::tensor_to_input,
        &Mutator::change_operator, &Mutator::change_opset,   &Mutator::drop_node,        &Mutator::copy_node,
        &Mutator::move_node,       &Mutator::output_of_node, &Mutator::drop_output,      &Mutator::change_number};
    for (size_t left = 1 + below(4); left-- > 0;) {
      graphs_.clear();
      collect(*model_.mutable_graph());
      (this->*kChanges[below(std::size(kChanges))])();
    }
  }

 private:
  size_t below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  template <class Choices>
  auto one_of(const Choices& choices) {
    return choices[below(std::size(choices))];
  }
  /// A random element of LIST, a repeated field; null if it is empty.
  template <class List>
  auto* one(List* list) {
    return list->empty() ? nullptr : list->Mutable(static_cast<int>(below(static_cast<size_t>(list->size()))));
  }

  void collect(onnx::GraphProto& graph) {
    graphs_.push_back(&graph);
    for (auto& node : *graph.mutable_node())
      for (auto& attribute : *node.mutable_attribute())
        if (attribute.has_g()) collect(*attribute.mutable_g());
  }

  onnx::GraphProto& graph() { return below(4) == 0 ? *graphs_[below(graphs_.size())] : *graphs_.front(); }

  /// A node of a function now and then.
  onnx::NodeProto* node() {
    if (model_.functions_size() > 0 && below(4) == 0) return one(one(model_.mutable_functions())->mutable_node());
    return one(graph().mutable_node());
  }

  /// What some node of a graph, or the graph itself, makes.
  std::string value() {
    const onnx::GraphProto& from = graph();
    const auto inputs = static_cast<size_t>(from.input_size()), tensors = static_cast<size_t>(from.initializer_size());
    const size_t at = below(inputs + tensors + static_cast<size_t>(from.node_size()));
    if (at < inputs) return from.input(static_cast<int>(at)).name();
    if (at < inputs + tensors) return from.initializer(static_cast<int>(at - inputs)).name();
    if (from.node_size() == 0) return "nothing";
    const auto& maker = from.node(static_cast<int>(at - inputs - tensors));
    return maker.output_size() == 0 ? "" : maker.output(static_cast<int>(below(static_cast<size_t>(maker.output_size()))));
  }

  std::string fresh() { return "fuzz_" + std::to_string(random_() % 1000000); }

  onnx::TypeProto_Tensor* declared_type() {
    onnx::GraphProto& of = graph();
    auto* list = below(2) == 0 ? of.mutable_input() : below(2) == 0 ? of.mutable_output() : of.mutable_value_info();
    auto* info = one(list);
    return info && info->type().has_tensor_type() ? info->mutable_type()->mutable_tensor_type() : nullptr;
  }

  void set_size(onnx::TensorShapeProto::Dimension& dim) {
    constexpr const char* kNames[] = {"batch", "s", "", "-1", "s + 1", "min(s, 4)", "floor(s/0)", "9999999999999999999",
                                      "a*b*c"};
    dim.Clear();
    if (below(3) == 0)
      dim.set_dim_param(one_of(kNames));
    else if (below(4) != 0)
      dim.set_dim_value(one_of(kNumbers));
  }

  void drop_value_info() {
    if (below(2) == 0)
      graph().clear_value_info();
    else if (auto* type = declared_type())
      type->clear_shape();
  }

  void change_rank() {
    auto* type = declared_type();
    if (!type) return;
    auto& dims = *type->mutable_shape()->mutable_dim();
    if (!dims.empty() && below(2) == 0)
      dims.DeleteSubrange(static_cast<int>(below(static_cast<size_t>(dims.size()))), 1);
    else
      set_size(*dims.Add());
  }

  void change_size() {
    auto* type = declared_type();
    if (auto* dim = type ? one(type->mutable_shape()->mutable_dim()) : nullptr) set_size(*dim);
  }

  /// A node in front of an input of another, behind which the rank is open, or the value is a copy.
  void open_rank() {
    onnx::GraphProto& of = graph();
    if (of.node_size() == 0) return;
    const int at = static_cast<int>(below(static_cast<size_t>(of.node_size())));
    auto& inputs = *of.mutable_node(at)->mutable_input();
    const int number = static_cast<int>(below(static_cast<size_t>(inputs.size())));
    if (inputs.empty() || inputs[number].empty()) return;
    auto& made = *of.add_node();
    made.set_op_type(below(3) == 0 ? "Identity" : "Squeeze");
    made.add_input(inputs[number]);
    made.add_output(fresh());
    inputs[number] = made.output(0);
    for (int i = of.node_size() - 1; i > at; --i) of.mutable_node()->SwapElements(i, i - 1);
  }

  void change_type() {
    if (auto* type = declared_type()) type->set_elem_type(one_of(kTypes));
  }

  void swap_inputs() {
    auto* of = node();
    if (of && of->input_size() > 1)
      of->mutable_input()->SwapElements(static_cast<int>(below(static_cast<size_t>(of->input_size()))),
                                        static_cast<int>(below(static_cast<size_t>(of->input_size()))));
  }

  void drop_inputs() {
    auto* of = node();
    if (!of || of->input_size() == 0) return;
    if (below(2) == 0)
      of->mutable_input()->RemoveLast();
    else
      one(of->mutable_input())->clear();
  }

  /// An input becomes another value, which may be made later: a cycle.
  void rewire_input() {
    auto* of = node();
    if (!of) return;
    if (below(4) == 0)
      *of->add_input() = value();
    else if (auto* input = one(of->mutable_input()))
      *input = value();
  }

  void change_attribute() {
    auto* of = node();
    auto* attribute = of ? one(of->mutable_attribute()) : nullptr;
    if (!attribute) return;
    switch (attribute->type()) {
      case onnx::AttributeProto::INT: attribute->set_i(one_of(kNumbers)); break;
      case onnx::AttributeProto::FLOAT:
        attribute->set_f(below(4) == 0 ? std::nanf("") : static_cast<float>(std::min(one_of(kFloats), 3.4e38)));
        break;
      case onnx::AttributeProto::INTS: change_list(*attribute->mutable_ints()); break;
      case onnx::AttributeProto::STRING: change_string(*attribute->mutable_s()); break;
      case onnx::AttributeProto::TENSOR: change(*attribute->mutable_t()); break;
      default: attribute->set_name(fresh());
    }
  }

  template <class List>
  void change_list(List& list) {
    if (list.empty() || below(3) == 0)
      list.Add(one_of(kNumbers));
    else if (below(2) == 0)
      list.RemoveLast();
    else
      list.Set(static_cast<int>(below(static_cast<size_t>(list.size()))), one_of(kNumbers));
  }

  void change_string(std::string& text) {
    constexpr const char* kTexts[] = {"",           "bhqk->bhq", "...ij,...jk->...ik", "->,",    ",", "abc,abc->",
                                      "i...,j->ij", "NOTSET",    "constant",           "reflect"};
    if (below(2) == 0 || text.empty())
      text = one_of(kTexts);
    else
      text[below(text.size())] = static_cast<char>("abij.,->"[below(8)]);
  }

  void drop_attribute() {
    auto* of = node();
    if (of && of->attribute_size() > 0)
      of->mutable_attribute()->DeleteSubrange(static_cast<int>(below(static_cast<size_t>(of->attribute_size()))), 1);
  }

  /// Two things of one name.
  void rename() {
    onnx::GraphProto& of = graph();
    auto* info = one(below(2) == 0 ? of.mutable_input() : of.mutable_output());
    auto* made = node();
    switch (below(4)) {
      case 0:
        if (info) info->set_name(value());
        break;
      case 1:
        if (made) made->set_name(of.node_size() > 0 ? of.node(0).name() : "x");
        break;
      case 2:
        if (auto* tensor = one(of.mutable_initializer())) tensor->set_name(value());
        break;
      default:
        if (auto* output = made ? one(made->mutable_output()) : nullptr) *output = value();
    }
  }

  void change_tensor() {
    if (auto* tensor = one(graph().mutable_initializer())) change(*tensor);
  }

  void change(onnx::TensorProto& tensor) {
    switch (below(5)) {
      case 0: change_list(*tensor.mutable_dims()); break;
      case 1: tensor.set_data_type(one_of(kTypes)); break;
      case 2:
        if (!tensor.raw_data().empty()) tensor.mutable_raw_data()->pop_back();
        break;
      case 3: {
        std::string& bytes = *tensor.mutable_raw_data();
        const int64_t number = one_of(kNumbers);
        if (bytes.size() >= sizeof number)
          bytes.replace(below(bytes.size() / sizeof number) * sizeof number, sizeof number,
                        reinterpret_cast<const char*>(&number), sizeof number);
        break;
      }
      default:
        if (tensor.int64_data_size() > 0)
          change_list(*tensor.mutable_int64_data());
        else if (tensor.float_data_size() > 0)
          tensor.set_float_data(0, below(2) == 0 ? INFINITY : NAN);
    }
  }

  /// One number, or its negative, becomes another wherever sizes are declared and integers listed: what fits together still
  /// does.
  void change_number() {
    std::vector<int64_t*> places;
    std::vector<onnx::TensorShapeProto::Dimension*> sizes;
    for (onnx::GraphProto* of : graphs_) {
      for (auto& tensor : *of->mutable_initializer())
        for (int64_t& number : *tensor.mutable_int64_data()) places.push_back(&number);
      for (auto* list : {of->mutable_input(), of->mutable_output(), of->mutable_value_info()})
        for (auto& info : *list)
          if (info.type().tensor_type().has_shape())
            for (auto& size : *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
              sizes.push_back(&size);
    }
    if (places.empty()) return;
    const int64_t from = *places[below(places.size())], to = one_of(kNumbers);
    if (from == 0 || from == std::numeric_limits<int64_t>::min() || to == std::numeric_limits<int64_t>::min()) return;
    for (int64_t* place : places)
      if (*place == from || *place == -from) *place = *place == from ? to : -to;
    for (auto* size : sizes)
      if (size->dim_value() == std::abs(from)) size->set_dim_value(std::abs(to));
  }

  /// A constant that the caller may override, or must give.
  void tensor_to_input() {
    onnx::GraphProto& of = graph();
    if (of.initializer_size() == 0) return;
    const int at = static_cast<int>(below(static_cast<size_t>(of.initializer_size())));
    auto* input = of.add_input();
    input->set_name(of.initializer(at).name());
    auto& type = *input->mutable_type()->mutable_tensor_type();
    type.set_elem_type(of.initializer(at).data_type());
    for (const int64_t size : of.initializer(at).dims()) type.mutable_shape()->add_dim()->set_dim_value(size);
    if (below(2) == 0) of.mutable_initializer()->DeleteSubrange(at, 1);
    if (below(3) == 0) type.clear_shape();
  }

  void change_operator() {
    auto* of = node();
    if (!of) return;
    of->set_op_type(one_of(kOperators));
    if (below(8) == 0) of->set_domain(below(2) == 0 ? "com.microsoft" : "");
  }

  void change_opset() {
    if (below(2) == 0) {
      auto* added = model_.add_opset_import();
      added->set_domain(below(2) == 0 ? "com.microsoft" : "");
      added->set_version(1);
    } else if (auto* import = one(model_.mutable_opset_import())) {
      import->set_version(below(4) == 0 ? one_of(kNumbers) : static_cast<int64_t>(7 + below(20)));
    }
  }

  void drop_node() {
    onnx::GraphProto& of = graph();
    if (of.node_size() > 0) of.mutable_node()->DeleteSubrange(static_cast<int>(below(static_cast<size_t>(of.node_size()))), 1);
  }

  void copy_node() {
    onnx::GraphProto& of = graph();
    if (of.node_size() == 0) return;
    onnx::NodeProto copy = of.node(static_cast<int>(below(static_cast<size_t>(of.node_size()))));
    for (auto& output : *copy.mutable_output())
      if (below(4) != 0) output = fresh();
    *of.add_node() = std::move(copy);
  }

  void move_node() {
    onnx::GraphProto& of = graph();
    const auto count = static_cast<size_t>(of.node_size());
    if (count > 1) of.mutable_node()->SwapElements(static_cast<int>(below(count)), static_cast<int>(below(count)));
  }

  void output_of_node() {
    auto* output = graphs_.front()->add_output();
    output->set_name(value());
    output->mutable_type()->mutable_tensor_type()->set_elem_type(one_of(kTypes));
  }

  void drop_output() {
    auto* of = node();
    if (of && of->output_size() > 0) one(of->mutable_output())->clear();
  }

  onnx::ModelProto& model_;
  std::mt19937 random_;
  std::vector<onnx::GraphProto*> graphs_;
};

}  // namespace

void mutate(onnx::ModelProto& model, unsigned seed) { Mutator(model, seed).run(); }

}  // namespace attn_opt::fuzzing
