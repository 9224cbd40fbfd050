// A model in text, its view, and edits made by hand for one attention in it.
#pragma once

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attn_opt/internal/verifier.h"

namespace attn_opt {

inline const double kNextAboveLowest = std::nextafterf(std::numeric_limits<float>::lowest(), 0);

/// q, k and v in (B, heads, rows, features); their product with the scale 1/sqrt(8), the mask M if there is one, y.
struct AttentionModel {
  std::string type = "float";
  std::string scores = "  scores = Mul(product, c)\n";  ///< what makes scores of product
  std::string inputs = "";                              ///< further graph inputs, with a leading comma
  std::string heads = "  kh = Identity(k)\n  vh = Identity(v)\n";
  std::string weights = "  p = Softmax<axis = -1>(scores)\n";
  std::string outputs = "";
  int kv_heads = 4;
  std::string text() const;
};

/// TEXT with BY in the place of each NAME, which is no part of it.
inline std::string replaced(std::string text, const std::string& name, const std::string& by) {
  for (size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), by);
  return text;
}

/// TEXT of an AttentionModel with LENGTH queries, and as many KEYS or other ones.
inline std::string with_lengths(std::string text, const std::string& length, const std::string& keys) {
  return replaced(replaced(std::move(text), ",L,8]", "," + length + ",8]"), ",S,8]", "," + keys + ",8]");
}
inline std::string with_lengths(std::string text, const std::string& length) {
  return with_lengths(std::move(text), length, length);
}

class SiteFixture {
 public:
  explicit SiteFixture(const std::string& text) {
    const auto status = onnx::OnnxParser::Parse(proto_, text.c_str());
    EXPECT_TRUE(status.IsOK()) << status.ErrorMessage() << text;
    view_ = *ModelGraph::create(proto_);
    facts_ = std::make_unique<Facts>(*view_, inline_tensors());
  }
  explicit SiteFixture(const AttentionModel& model) : SiteFixture(model.text()) { sdpa = plain_sdpa(); }

  Value* value(const std::string& name) { return view_->main().find(name); }
  Facts& facts() { return *facts_; }
  ModelGraph& view() { return *view_; }
  MatchContext context() { return {*view_, *facts_}; }
  Edit edit() { return Edit(*view_, *value("y")->producer); }

  OperandView view_of(const std::string& name, Role third = Role::kRow) {
    Value* read = value(name);
    return {read, AxisMap::of(facts_->shape(*read).known(), {Role::kBatch, Role::kHead, third, Role::kFeature}), 1, nullptr,
            nullptr};
  }

  Sdpa plain_sdpa() {
    Sdpa plain;
    plain.q.views = {view_of("q")};
    plain.k.views = {view_of("kh")};
    plain.v.views = {view_of("vh")};
    plain.type = facts_->type(*value("q"));
    plain.batch = facts_->shape(*value("q")).known()[0];
    plain.query_heads = facts_->shape(*value("q")).known()[1];
    plain.scale = scale;
    const OperandView output = view_of("y");
    plain.outputs = {{output.value, output.axes}};
    return plain;
  }

  void add_term(ScoreTerm::Kind kind, const std::string& name, double fill = 0) {
    ScoreTerm term;
    term.kind = kind;
    term.value = value(name);
    term.fill = fill;
    term.frame = facts_->shape(*value("product")).known();
    sdpa.terms.push_back(term);
  }

  void assume(const std::string& id, bool proven = false) { sdpa.preconditions.push_back({id, proven, ""}); }

  /// An Attention of INPUTS whose outputs take over those in TAKEN.
  Emission attention(const std::function<std::vector<Value*>(GraphBuilder&)>& inputs, GraphBuilder::Attributes attributes = {},
                     const std::vector<std::string>& taken = {"y"}) {
    Emission emission{edit(), "4d", 1, false, nullptr, scale, sdpa.preconditions, {}, {}};
    GraphBuilder build(emission.edit, shared, "site");
    attributes.push_back(GraphBuilder::attribute("scale", static_cast<float>(scale)));
    emission.attention = build.new_node("Attention", inputs(build), std::vector<bool>(taken.size(), true), attributes);
    for (size_t i = 0; i < taken.size(); ++i) emission.edit.take_over(*value(taken[i]), *emission.attention->outputs[i]);
    return emission;
  }

  Emission attention(const std::vector<std::string>& inputs, const GraphBuilder::Attributes& attributes = {},
                     const std::vector<std::string>& taken = {"y"}) {
    return attention(
        [&](GraphBuilder&) {
          std::vector<Value*> values;
          for (const auto& name : inputs) values.push_back(name.empty() ? nullptr : value(name));
          return values;
        },
        attributes, taken);
  }

  /// The float mask NAME with the lowest number replaced by its neighbour.
  Value* without_lowest(GraphBuilder& build, const std::string& name) {
    Value* lowest = build.scalar(std::numeric_limits<float>::lowest(), onnx::TensorProto::FLOAT);
    Value* next = build.scalar(kNextAboveLowest, onnx::TensorProto::FLOAT);
    return build.node("Where", {build.node("Equal", {value(name), lowest}), next, value(name)});
  }
  /// An Attention of q, k, v and the float mask m.
  Emission masked_attention() {
    return attention([&](GraphBuilder& build) {
      return std::vector<Value*>{value("q"), value("k"), value("v"), without_lowest(build, "m")};
    });
  }

  Verification verify(const Emission& emission, const VerifyOptions& options = {}) {
    return Verifier(context(), inline_tensors(), options).verify(emission, sdpa);
  }

  Sdpa sdpa;
  SharedNodes shared;
  double scale = 0.35355338454246521;  ///< 1/sqrt(8) as a float

 private:
  onnx::ModelProto proto_;
  std::unique_ptr<ModelGraph> view_;
  std::unique_ptr<Facts> facts_;
};

inline std::string AttentionModel::text() const {
  const std::string keys = "[B," + std::to_string(kv_heads) + ",S,8]";
  return "<ir_version: 10, opset_import: [\"\" : 18]>\nm (" + type + "[B,4,L,8] q, " + type + keys + " k, " + type + keys +
         " v" + inputs + ") => (" + type + "[B,4,L,8] y" + outputs + ")\n{\n" + heads +
         "  kt = Transpose<perm = [0, 1, 3, 2]>(kh)\n  product = MatMul(q, kt)\n  " +
         "c32 = Constant<value = float {0.35355338454246521}>()\n  c = CastLike(c32, product)\n" + scores + weights +
         "  y = MatMul(p, vh)\n}\n";
}

}  // namespace attn_opt
