// A model in ONNX text, attention described by hand, and what emission makes of it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attn_opt/executor.h"
#include "attn_opt/internal/emit.h"

namespace attn_opt {

inline constexpr double kTolerance = 2e-6;
inline const std::map<std::string, int64_t> kSizes{{"B", 2}, {"L", 3}, {"S", 5}, {"P", 4}};

class EmitCase {
 public:
  /// TEXT: a graph in ONNX textual syntax, opset 24.
  explicit EmitCase(const std::string& text);

  Value& value(const std::string& name);
  Shape shape(const std::string& name) { return facts_->shape(value(name)).known(); }
  /// NAME with one role an axis: b batch, h head, s row, d feature.
  AxisMap axes(const std::string& name, const std::string& roles);
  OperandView view(const std::string& name, const std::string& roles) { return {&value(name), axes(name, roles)}; }
  /// NAME of shape (B, L, HEADS * D).
  OperandView view_3d(const std::string& name, int64_t heads);
  OutputView output(const std::string& name, const std::string& roles) { return {&value(name), axes(name, roles)}; }
  OutputView output_3d(const std::string& name, int64_t heads);
  ScoreTerm term(ScoreTerm::Kind kind, const std::string& name, const std::string& scores, double fill = 0);

  /// The site of SDPA: its softmax makes PROBABILITIES, its product with V OUTPUT.
  Match site(const std::string& probabilities, const std::string& output, Sdpa sdpa);
  Matched<Emission> emit(const Match& match, const EmitOptions& options = {});
  /// Emits and commits each of MATCHES; then the model is compacted and checked.
  void rewrite(const std::vector<Match>& matches, const EmitOptions& options = {});

  const onnx::GraphProto& graph() const { return proto_.graph(); }
  std::vector<std::string> ops() const;
  int count(const std::string& op) const;
  const onnx::NodeProto& attention(int which = 0) const;
  const onnx::NodeProto& maker(const std::string& output) const;
  /// Attributes of an Attention node as text: "scale=0.5 is_causal=1".
  std::string attributes(int which = 0) const;

  /// Largest difference between the outputs before and after, on random feeds; FIXED replaces some of them.
  double difference(const std::map<std::string, int64_t>& sizes, const Feeds& fixed = {}) const;

  const std::vector<Precondition>& preconditions() const { return preconditions_; }
  /// True if nothing is assumed but that no size is 0.
  bool assumes_nothing_else() const {
    return std::ranges::all_of(
        preconditions_, [](const Precondition& condition) { return condition.proven || condition.id == kSizesNotEmpty; });
  }

 private:
  onnx::ModelProto original_, proto_;
  std::unique_ptr<ModelGraph> view_;
  std::unique_ptr<Facts> facts_;
  SharedNodes shared_;
  std::vector<Precondition> preconditions_;
};

/// q, K as its Transpose kt makes it, v, y: 4-D, scale 0.5.
inline constexpr const char* kPlain = R"(
  mha (float[B,2,L,4] q, float[B,2,S,4] k, float[B,2,S,6] v) => (float[B,2,L,6] y) {
    kt = Transpose<perm = [0,1,3,2]>(k)
    scores = MatMul(q, kt)
    half = Constant<value = float {0.5}>()
    scaled = Mul(scores, half)
    p = Softmax<axis = -1>(scaled)
    y = MatMul(p, v)
  })";

/// Views of kPlain and of graphs with the same names.
Sdpa plain_sdpa(EmitCase& c);

}  // namespace attn_opt
