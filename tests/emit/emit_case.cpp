#include "tests/emit/emit_case.h"

#include <onnx/checker.h>
#include <onnx/defs/parser.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace attn_opt {
namespace {

Tensor random_tensor(DataType type, const Dims& dims, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(element_count(dims)));
  for (float& value : values) value = type == onnx::TensorProto::BOOL ? (normal(random) > 0) : normal(random);
  return *Tensor::of<float>(dims, values).cast(type);
}

Feeds random_feeds(const onnx::GraphProto& graph, const std::map<std::string, int64_t>& sizes, const Feeds& fixed) {
  std::mt19937 random(7);
  Feeds feeds = fixed;
  for (const auto& input : graph.input()) {
    Dims dims;
    const auto& type = input.type().tensor_type();
    for (const auto& dim : type.shape().dim())
      dims.push_back(dim.has_dim_value() ? dim.dim_value() : sizes.at(dim.dim_param()));
    Tensor drawn = random_tensor(static_cast<DataType>(type.elem_type()), dims, random);
    feeds.try_emplace(input.name(), std::move(drawn));
  }
  return feeds;
}

std::vector<Tensor> run(const onnx::ModelProto& model, const Feeds& feeds) {
  auto executor = Executor::create(model, inline_tensors(), {});
  if (!executor) {
    ADD_FAILURE() << executor.error().message();
    return {};
  }
  auto outputs = executor->run(feeds);
  if (!outputs) {
    ADD_FAILURE() << outputs.error().message();
    return {};
  }
  return *std::move(outputs);
}

double difference_of(const Tensor& one, const Tensor& other) {
  if (one.dims() != other.dims() || one.type() != other.type()) return INFINITY;
  const Tensor a = *one.cast(onnx::TensorProto::DOUBLE), b = *other.cast(onnx::TensorProto::DOUBLE);
  double largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.data<double>()[i], y = b.data<double>()[i];
    if (std::isnan(x) != std::isnan(y)) return INFINITY;
    if (!std::isnan(x)) largest = std::max(largest, std::abs(x - y));
  }
  return largest;
}

}  // namespace

EmitCase::EmitCase(const std::string& text) {
  const std::string model = R"(<ir_version: 10, opset_import: ["" : 24]> )" + text;
  const auto status = onnx::OnnxParser::Parse(original_, model.c_str());
  if (!status.IsOK()) throw std::invalid_argument(status.ErrorMessage());
  onnx::checker::check_model(original_, true);
  proto_ = original_;
  auto view = ModelGraph::create(proto_);
  if (!view) throw std::invalid_argument(view.error().message());
  view_ = *std::move(view);
  facts_ = std::make_unique<Facts>(*view_, inline_tensors());
}

Value& EmitCase::value(const std::string& name) {
  Value* found = view_->main().find(name);
  if (!found) throw std::invalid_argument("no value " + name);
  return *found;
}

AxisMap EmitCase::axes(const std::string& name, const std::string& roles) {
  std::vector<Role> list;
  for (char role : roles) list.push_back(static_cast<Role>(std::string("bhsd").find(role)));
  return AxisMap::of(shape(name), list);
}

OperandView EmitCase::view_3d(const std::string& name, int64_t heads) {
  const Shape merged = shape(name);
  const Dim size = *exact_quotient(merged[2], heads);
  const AxisMap split =
      AxisMap::of({merged[0], merged[1], heads, size}, {Role::kBatch, Role::kRow, Role::kHead, Role::kFeature});
  return {&value(name), *split.regrouped(merged)};
}

OutputView EmitCase::output_3d(const std::string& name, int64_t heads) { return {&value(name), view_3d(name, heads).axes}; }

ScoreTerm EmitCase::term(ScoreTerm::Kind kind, const std::string& name, const std::string& scores, double fill) {
  return {kind, &value(name), 1, fill, shape(scores)};
}

Match EmitCase::site(const std::string& probabilities, const std::string& output, Sdpa sdpa) {
  Match match;
  match.anchor = value(probabilities).producer;
  match.insert_before = value(output).producer;
  match.sdpa = std::move(sdpa);
  match.peeled = {"softmax"};
  return match;
}

Matched<Emission> EmitCase::emit(const Match& match, const EmitOptions& options) {
  MatchContext context{*view_, *facts_};
  return emit_attention(match, context, shared_, options);
}

void EmitCase::rewrite(const std::vector<Match>& matches, const EmitOptions& options) {
  for (const Match& match : matches) {
    auto emission = emit(match, options);
    ASSERT_TRUE(emission) << emission.error().id << ": " << emission.error().found;
    emission->edit.commit(shared_);
    preconditions_ = emission->preconditions;
  }
  view_->compact();
  ASSERT_NO_THROW(onnx::checker::check_model(proto_, true));
}

std::vector<std::string> EmitCase::ops() const {
  std::vector<std::string> ops;
  for (const auto& node : graph().node())
    if (node.op_type() != "Constant") ops.push_back(node.op_type());
  return ops;
}

int EmitCase::count(const std::string& op) const {
  const auto all = ops();
  return static_cast<int>(std::count(all.begin(), all.end(), op));
}

const onnx::NodeProto& EmitCase::attention(int which) const {
  for (const auto& node : graph().node())
    if (node.op_type() == "Attention" && which-- == 0) return node;
  throw std::invalid_argument("no such Attention");
}

const onnx::NodeProto& EmitCase::maker(const std::string& output) const {
  for (const auto& node : graph().node())
    if (std::find(node.output().begin(), node.output().end(), output) != node.output().end()) return node;
  throw std::invalid_argument("nothing makes " + output);
}

std::string EmitCase::attributes(int which) const {
  std::vector<std::string> all;
  for (const auto& attribute : attention(which).attribute()) {
    char text[64];
    if (attribute.has_f())
      std::snprintf(text, sizeof text, "%s=%g", attribute.name().c_str(), attribute.f());
    else
      std::snprintf(text, sizeof text, "%s=%lld", attribute.name().c_str(), static_cast<long long>(attribute.i()));
    all.push_back(text);
  }
  std::ranges::sort(all);
  std::string line;
  for (const auto& one : all) line += (line.empty() ? "" : " ") + one;
  return line;
}

double EmitCase::difference(const std::map<std::string, int64_t>& sizes, const Feeds& fixed) const {
  const Feeds feeds = random_feeds(original_.graph(), sizes, fixed);
  const auto before = run(original_, feeds), after = run(proto_, feeds);
  if (before.empty() || before.size() != after.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < before.size(); ++i) largest = std::max(largest, difference_of(before[i], after[i]));
  return largest;
}

Sdpa plain_sdpa(EmitCase& c) {
  Sdpa sdpa;
  sdpa.q.views = {c.view("q", "bhsd")};
  sdpa.k.views = {c.view("kt", "bhds"), c.view("k", "bhsd")};
  sdpa.v.views = {c.view("v", "bhsd")};
  sdpa.type = onnx::TensorProto::FLOAT;
  sdpa.batch = c.shape("q")[0];
  sdpa.query_heads = c.shape("q")[1];
  sdpa.scale = 0.5;
  sdpa.outputs = {c.output("y", "bhsd")};
  return sdpa;
}

}  // namespace attn_opt
