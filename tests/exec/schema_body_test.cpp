// Operators that have both a kernel and a function body in ONNX's schemas: each is run both ways.
#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include <map>
#include <random>

#include "src/exec/kernel.h"
#include "tests/exec/models.h"
#include "tests/exec/node_case.h"

namespace attn_opt::testing {
namespace {

using P = onnx::TensorProto;

bool has_body(const onnx::OpSchema& schema) { return schema.HasFunction() || schema.HasContextDependentFunction(); }

std::vector<onnx::OpSchema> kernels_with_body() {
  std::vector<onnx::OpSchema> found;
  for (auto& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    if (!schema.domain().empty() || !has_body(schema)) continue;
    if (kernel_registry().find(schema.Name(), schema.since_version()) != nullptr) found.push_back(schema);
  }
  return found;
}

ExecutorOptions by_body(bool f64) {
  ExecutorOptions options;
  options.schema_bodies = SchemaBodies::kAlways;
  options.compute_f64 = f64;
  return options;
}

/// An opset for which SCHEMA has a body.
int opset_with_body(const onnx::OpSchema& schema) {
  const auto versions =
      schema.HasFunction() ? schema.function_opset_versions() : schema.context_dependent_function_opset_versions();
  return std::max(schema.since_version(), versions.front());
}

/// What the inputs of one trial look like; an operator takes some of them.
struct Guess {
  size_t inputs;
  Dims first, others;
  DataType others_type;  ///< where the schema allows it
};

std::vector<Guess> guesses(const onnx::OpSchema& schema) {
  const size_t most = static_cast<size_t>(std::min(schema.max_input(), schema.min_input() + 3));
  std::vector<Guess> all;
  for (size_t count = static_cast<size_t>(schema.min_input()); count <= most; ++count) {
    for (const Dims& first : {Dims{2, 4, 3}, Dims{2, 2, 3, 4}, Dims{2, 4}, Dims{}}) {
      std::vector<Dims> shapes{first, {}};
      if (!first.empty())
        shapes.insert(shapes.end(), {Dims{first.back()}, Dims{first[1]}, Dims{1}, Dims{first[0], first.back()}});
      for (const Dims& others : shapes) {
        for (const DataType type : {P::FLOAT, P::INT64}) all.push_back({count, first, others, type});
      }
    }
  }
  return all;
}

bool allows(const onnx::OpSchema& schema, size_t i, DataType type) {
  const auto& formal = schema.inputs()[std::min(i, schema.inputs().size() - 1)];
  for (const auto* name : formal.GetTypes()) {
    if (*name == "tensor(" + std::string(type == P::FLOAT ? "float" : type == P::BOOL ? "bool" : "int64") + ")") return true;
  }
  return false;
}

Tensor drawn(DataType type, const Dims& dims, std::mt19937& random) {
  Tensor tensor(P::FLOAT, dims);
  for (float& x : tensor.mutable_data<float>()) x = std::normal_distribution<float>()(random);
  if (type == P::FLOAT) return tensor;
  for (float& x : tensor.mutable_data<float>()) x = type == P::BOOL ? x > 0 : std::abs(std::round(x));
  return *tensor.cast(type);
}

class Trial {
 public:
  Trial(const onnx::OpSchema& schema, const Guess& guess) {
    std::mt19937 random(1);
    node_.set_op_type(schema.Name());
    for (size_t i = 0; i < guess.inputs; ++i) {
      DataType type = i == 0 || !allows(schema, i, guess.others_type) ? P::FLOAT : guess.others_type;
      for (const DataType other : {P::INT64, P::BOOL}) {
        if (!allows(schema, i, type)) type = other;
      }
      inputs_.push_back(drawn(type, i == 0 ? guess.first : guess.others, random));
      node_.add_input("i" + std::to_string(i));
    }
    for (int i = 0; i < schema.max_output() && i < 3; ++i) node_.add_output("o" + std::to_string(i));
    for (const auto& [name, attribute] : schema.attributes()) {
      if (attribute.required) add_attribute(name, attribute.type);
    }
    opsets_[""] = opset_with_body(schema);
  }

  Expected<std::vector<Tensor>> run(const ExecutorOptions& options) const { return run_node(node_, inputs_, opsets_, options); }

 private:
  void add_attribute(const std::string& name, onnx::AttributeProto::AttributeType type) {
    auto* attribute = node_.add_attribute();
    attribute->set_name(name);
    attribute->set_type(type);
    if (type == onnx::AttributeProto::INT) attribute->set_i(name == "to" ? P::DOUBLE : 2);
    if (type == onnx::AttributeProto::FLOAT) attribute->set_f(0.5f);
    if (type == onnx::AttributeProto::INTS) attribute->add_ints(1);
  }

  onnx::NodeProto node_;
  std::vector<Tensor> inputs_;
  Opsets opsets_;
};

/// Runs the trials of SCHEMA that the kernel and the body both take; returns how many. WHY: what was wrong with another.
int compare_trials(const onnx::OpSchema& schema, bool f64, std::string& why) {
  int compared = 0;
  for (const Guess& guess : guesses(schema)) {
    const Trial trial(schema, guess);
    const auto expected = trial.run(by_body(f64));
    ExecutorOptions options;
    options.compute_f64 = f64;
    const auto actual = trial.run(options);
    if (!expected) why = expected.error().message();
    if (!expected || !actual) continue;
    ++compared;
    const double tolerance = f64 ? 1e-7 : 1e-5;  // bodies hold constants in float
    for (size_t o = 0; o < std::min(expected->size(), actual->size()); ++o) {
      if (!(*expected)[o].has_value() || !(*actual)[o].has_value()) continue;
      // Bodies that hold constants of shape [1] make [1] of a scalar.
      const bool is_scalar = (*actual)[o].rank() == 0 && (*expected)[o].size() == 1;
      const Tensor wanted = is_scalar ? (*expected)[o].reshaped({}) : (*expected)[o];
      EXPECT_LE(excess((*actual)[o], wanted, tolerance, tolerance), 1)
          << schema.Name() << " " << schema.since_version() << ", output " << o << ", inputs " << print_dims(guess.first)
          << ", " << print_dims(guess.others);
    }
  }
  return compared;
}

TEST(SchemaBodies, AgreeWithKernelsOnDrawnInputs) {
  for (const auto& schema : kernels_with_body()) {
    for (const bool f64 : {false, true}) {
      std::string why;
      EXPECT_GT(compare_trials(schema, f64, why), 0) << schema.Name() << " " << schema.since_version() << ": " << why;
    }
  }
}

/// The node test in FOLDER is of one of the operators that have both.
bool is_of_both(const std::filesystem::path& folder) {
  static const auto names = [] {
    std::map<std::string, bool> all;
    for (const auto& schema : kernels_with_body()) all[schema.Name()] = true;
    return all;
  }();
  onnx::ModelProto model;
  return model.ParseFromString(read_file(folder / "model.onnx")) && model.graph().node_size() == 1 &&
         names.contains(model.graph().node(0).op_type());
}

TEST(SchemaBodies, GiveTheReferenceOutputs) {
  int count = 0;
  for (const auto& folder : node_cases(ATTN_OPT_TESTDATA "/node_tests")) {
    if (!is_of_both(folder)) continue;
    for (const bool f64 : {false, true}) {
      const NodeResult result = run_node_case(folder, by_body(f64));
      if (result.outcome == Outcome::kUnsupported) continue;
      ++count;
      EXPECT_EQ(result.outcome, Outcome::kPass) << folder.filename() << ": " << result.detail;
    }
  }
  EXPECT_GT(count, 100);
}

TEST(SchemaBodies, RunWhereTheyAreAskedFor) {
  const auto node = parse_node("y = Attention (q, k, v)");
  const auto softmax = parse_node("y = Softmax (x)");
  const Tensor x = Tensor::of<float>({1, 1, 1, 1}, {1});
  // Batches that broadcast are no business of the schema; its body takes them, the kernel does not.
  const Tensor wide = Tensor::of<float>({2, 1, 1, 1}, {1, 2});
  const auto attention = [&](SchemaBodies bodies) {
    ExecutorOptions options;
    options.schema_bodies = bodies;
    return run_node(node, std::vector<Tensor>{wide, x, x}, {{"", 24}}, options).has_value();
  };
  EXPECT_FALSE(attention(SchemaBodies::kWithoutKernel));
  EXPECT_TRUE(attention(SchemaBodies::kAttention));
  EXPECT_TRUE(attention(SchemaBodies::kAlways));
  EXPECT_FALSE(attention(SchemaBodies::kWithoutKernel));
  EXPECT_TRUE(run_node(softmax, std::vector<Tensor>{x}, {{"", 24}}).has_value());
}

}  // namespace
}  // namespace attn_opt::testing
