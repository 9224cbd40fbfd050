#include "tests/io/stripped_case.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "attn_opt/internal/model_walk.h"

namespace attn_opt {
namespace {

class TensorMaker {
 public:
  /// Eight bytes and more that no other tensor has, and fields on both sides of raw_data.
  void fill(onnx::TensorProto& tensor, bool is_plain = false) {
    const int number = ++count_;
    tensor.set_name("t" + std::to_string(number));
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_dims(2 + number);
    tensor.set_raw_data(std::string(4 * static_cast<size_t>(2 + number), static_cast<char>('A' + number)));
    if (is_plain) return;
    tensor.set_doc_string("behind the weights");
    auto* property = tensor.add_metadata_props();
    property->set_key("key");
    property->set_value("value");
    tensor.GetReflection()->MutableUnknownFields(&tensor)->AddLengthDelimited(1000)->assign("unknown");
  }

  void fill(onnx::SparseTensorProto& sparse) {
    fill(*sparse.mutable_values(), true);
    const int64_t count = sparse.values().dims(0);
    sparse.add_dims(count);
    auto* indices = sparse.mutable_indices();
    indices->set_data_type(onnx::TensorProto::INT64);
    indices->add_dims(count);
    std::string bytes;
    for (int64_t i = 0; i < count; ++i) bytes.append(reinterpret_cast<const char*>(&i), sizeof i);
    indices->set_raw_data(bytes);
  }

 private:
  int count_ = 0;
};

void add_value(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& values, const std::string& name, int type) {
  auto* value = values.Add();
  value->set_name(name);
  value->mutable_type()->mutable_tensor_type()->set_elem_type(type);
  value->mutable_type()->mutable_tensor_type()->mutable_shape();
}

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

onnx::AttributeProto& add_constant(Nodes& nodes, const std::string& output, const std::string& name,
                                   onnx::AttributeProto::AttributeType type) {
  auto* node = nodes.Add();
  node->set_op_type("Constant");
  node->add_output(output);
  auto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return *attribute;
}

onnx::TensorProto& add_tensor_constant(Nodes& nodes, const std::string& output) {
  return *add_constant(nodes, output, "value", onnx::AttributeProto::TENSOR).mutable_t();
}

onnx::SparseTensorProto& add_sparse_constant(Nodes& nodes, const std::string& output) {
  return *add_constant(nodes, output, "sparse_value", onnx::AttributeProto::SPARSE_TENSOR).mutable_sparse_tensor();
}

void add_if(onnx::GraphProto& graph, TensorMaker& maker) {
  auto* node = graph.add_node();
  node->set_op_type("If");
  node->add_input("condition");
  node->add_output("y");
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto* attribute = node->add_attribute();
    attribute->set_name(branch);
    attribute->set_type(onnx::AttributeProto::GRAPH);
    auto* body = attribute->mutable_g();
    body->set_name(branch);
    maker.fill(*body->add_initializer());
    body->mutable_initializer(0)->set_name(std::string(branch) + ".w");
    maker.fill(add_tensor_constant(*body->mutable_node(), std::string(branch) + ".c"));
    body->add_output()->set_name(std::string(branch) + ".c");
  }
}

}  // namespace

onnx::ModelProto StrippedTest::tensors_everywhere() {
  TensorMaker maker;
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.set_producer_name("test");
  for (const char* domain : {"", "own"}) {
    auto* import = model.add_opset_import();
    import->set_domain(domain);
    import->set_version(domain[0] == 0 ? 21 : 1);
  }
  auto& graph = *model.mutable_graph();
  graph.set_name("main");
  add_value(*graph.mutable_input(), "condition", onnx::TensorProto::BOOL);
  add_value(*graph.mutable_output(), "y", onnx::TensorProto::FLOAT);
  maker.fill(*graph.add_initializer());
  maker.fill(*graph.add_initializer());
  graph.mutable_initializer(1)->set_data_location(onnx::TensorProto::DEFAULT);
  maker.fill(*graph.add_sparse_initializer());
  graph.mutable_sparse_initializer(0)->mutable_values()->set_name("sparse");
  maker.fill(add_tensor_constant(*graph.mutable_node(), "c"));
  maker.fill(add_sparse_constant(*graph.mutable_node(), "s"));
  add_if(graph, maker);
  auto& function = *model.add_functions();
  function.set_domain("own");
  function.set_name("f");
  function.add_output("k");
  function.add_opset_import()->set_version(21);
  maker.fill(add_tensor_constant(*function.mutable_node(), "k"));
  auto& training = *model.add_training_info()->mutable_initialization();
  training.set_name("initialization");
  maker.fill(*training.add_initializer());
  return model;
}

std::optional<onnx::ModelProto> StrippedTest::parse_whole(const std::string& bytes) {
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  input.SetRecursionLimit(100);
  onnx::ModelProto model;
  if (!model.ParseFromCodedStream(&input) || !input.ConsumedEntireMessage()) return std::nullopt;
  return model;
}

Expected<onnx::ModelProto> StrippedTest::parse_and_fill(const std::string& bytes) {
  fs::remove(folder_ / "m.onnx");  // some file systems flush a file that is truncated and written
  write_file(folder_ / "m.onnx", bytes);
  ATTN_OPT_TRY(const FileBytes file, FileBytes::open(folder_ / "m.onnx"));
  ATTN_OPT_TRY(StrippedModel stripped, parse_stripped(file, 1, "m"));
  for_each_tensor(stripped.proto, [&](onnx::TensorProto& tensor) {
    if (const auto index = stripped.tokens.index(tensor.raw_data())) {
      tensor.set_raw_data(bytes.substr(stripped.ranges[*index].offset, stripped.ranges[*index].length));
    }
  });
  return std::move(stripped.proto);
}

std::string StrippedTest::bytes_of(const onnx::ModelProto& proto) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  proto.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

Expected<Model> StrippedTest::load_stripped(const std::string& bytes, uint64_t min_bytes) {
  write_file(folder_ / "m.onnx", bytes);
  return load_model(folder_ / "m.onnx", {.allowed_data_dirs = {}, .min_stripped_bytes = min_bytes});
}

size_t StrippedTest::count_stored(const Model& model) {
  size_t count = 0;
  for_each_tensor(model.proto, [&count](const onnx::TensorProto& tensor) {
    count += tensor.data_location() == onnx::TensorProto::EXTERNAL;
  });
  return count;
}

std::string short_field(int number, const std::string& content) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(content.size())} + content;
}

}  // namespace attn_opt
