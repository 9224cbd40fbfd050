#include "src/emit/local_function.h"

#include <onnx/defs/parser.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "attn_opt/canonical.h"
#include "src/emit/frame.h"
#include "src/emit/operands.h"
#include "src/emit/order.h"
#include "src/emit/outputs.h"
#include "src/emit/plan.h"
#include "src/io/text_format.h"

namespace attn_opt {
namespace {

constexpr int kFirstOpset = 18;
constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

struct HidingMask {
  Value* value = nullptr;
  bool hides_where_true = false;
  Shape frame;
};

/// The mask that TERM lays over the scores, if it is bool and hides keys with -inf.
std::optional<HidingMask> hiding_mask(const ScoreTerm& term, Facts& facts) {
  const bool is_where = term.kind == ScoreTerm::Kind::kKeep || term.kind == ScoreTerm::Kind::kDrop;
  if (is_where) {
    if (term.fill * term.coefficient != kMinusInf) return std::nullopt;
    return HidingMask{term.value, term.kind == ScoreTerm::Kind::kDrop, term.frame};
  }
  Node* where = canonical(*term.value, facts).producer;
  if (term.kind != ScoreTerm::Kind::kBias || !where || !where->is("Where") || !(term.coefficient > 0)) return std::nullopt;
  const auto if_true = facts.uniform(*where->inputs[1]), if_false = facts.uniform(*where->inputs[2]);
  if (if_true == 0.0 && if_false == kMinusInf) return HidingMask{where->inputs[0], false, term.frame};
  if (if_true == kMinusInf && if_false == 0.0) return HidingMask{where->inputs[0], true, term.frame};
  return std::nullopt;
}

/// What of the description the functions do not say; empty if nothing.
std::string beyond_function(const Sdpa& sdpa) {
  if (sdpa.softcap != 0) return "softcap";
  if (sdpa.is_causal || sdpa.nonpad_kv_seqlen || sdpa.left_window || sdpa.right_window)
    return "causality or lengths of an Attention node";
  if (sdpa.softmax_precision != onnx::TensorProto::UNDEFINED && sdpa.softmax_precision != sdpa.type)
    return "a softmax in " + type_name(sdpa.softmax_precision);
  if (sdpa.scores_output) return "scores as an output";
  if (!(sdpa.scale > 0)) return "a scale that is not positive";
  return {};
}

std::string function_name(const Sdpa& sdpa, bool repeats, bool hides_where_true) {
  return std::string("LocalAttention") + (repeats ? "GQA" : "") + (hides_where_true ? "SW" : "") + "_to" +
         std::to_string(sdpa.type);
}

Expected<onnx::FunctionProto> function_called(const std::string& name, const Sdpa& sdpa, bool repeats, bool hides_where_true,
                                              int opset) {
  const std::string type = onnx::PrimitiveTypeNameMap::ToString(sdpa.type);
  const std::string minus_inf = sdpa.type == onnx::TensorProto::FLOAT16 ? "64512" : "-inf";  // its bits
  const std::string mask = hides_where_true ? "not_mask" : "mask";
  std::string text =
      "<domain: \"" + std::string(kLocalAttentionDomain) + "\", opset_import: [\"\" : " + std::to_string(opset) + "]>\n";
  text +=
      name + " (query, keys, values, " + mask + ", scale_sqrt" + (repeats ? ", expand_shape, gqa_shape" : "") + ") => (Y) {\n";
  text += "scaled_keys = Mul (keys, scale_sqrt)\n";
  if (repeats)
    text += R"(two = Constant <value = int64[1] {2}> ()
      single_keys = Unsqueeze (scaled_keys, two)
      single_values = Unsqueeze (values, two)
      repeated_keys = Expand (single_keys, expand_shape)
      repeated_values = Expand (single_values, expand_shape)
      all_keys = Reshape (repeated_keys, gqa_shape)
      all_values = Reshape (repeated_values, gqa_shape)
    )";
  text += "scaled_query = Mul (query, scale_sqrt)\n";
  text += std::string("keys_transposed = Transpose <perm = [0, 1, 3, 2]> (") + (repeats ? "all_keys" : "scaled_keys") + ")\n";
  text += "zero = Constant <value = " + type + "[1] {0}> ()\nminus_inf = Constant <value = " + type + "[1] {" + minus_inf +
          "}> ()\n";
  text += "scores = MatMul (scaled_query, keys_transposed)\n";
  text += "masked = Where (" + mask + ", " + (hides_where_true ? "minus_inf, scores" : "scores, minus_inf") + ")\n";
  text += R"(softmax = Softmax <axis = -1> (masked)
    no_numbers = IsNaN (softmax)
    probabilities = Where (no_numbers, zero, softmax)
    )";
  text += std::string("Y = MatMul (probabilities, ") + (repeats ? "all_values" : "values") + ")\n}\n";
  ATTN_OPT_TRY(auto functions, parse_functions(text, name));
  return std::move(functions.front());
}

/// True if MODEL has a function called as FUNCTION whose body is another.
bool is_taken(const onnx::FunctionProto& function, const onnx::ModelProto& model) {
  return std::any_of(model.functions().begin(), model.functions().end(), [&](const onnx::FunctionProto& other) {
    return other.domain() == function.domain() && other.name() == function.name() &&
           other.SerializeAsString() != function.SerializeAsString();
  });
}

Matched<Emission> write_call(const WritingPlan& plan, const HidingMask& mask, const Match& match, MatchContext& context,
                             const SharedNodes& shared) {
  const Sdpa& sdpa = match.sdpa;
  const double scale = sdpa.scale * plan.q->scale * plan.k->scale;
  const Shape scores{sdpa.batch, sdpa.query_heads, plan.q->axes.size(Role::kRow), plan.k->axes.size(Role::kRow)};
  Emission emission{
      Edit(context.view, *match.insert_before), "4d", plan.kv_group, false, nullptr, scale, sdpa.preconditions, scores, {}};
  GraphBuilder build(emission.edit, shared, match.anchor->label());
  Site site{match, sdpa, context.facts, rules_of(Target::kPortable), build, SizeSource(build, context.facts), scores, {}};
  ATTN_OPT_MATCH(const Operands operands, write_operands(plan, scale, site));
  if (!is_scores_frame(mask.frame, site))
    return missed("stage.mask", mask.value->producer, "it is laid over scores of " + to_string(mask.frame));
  const bool repeats = plan.kv_group > 1;
  const Dim features = plan.k->axes.size(Role::kFeature);
  if (repeats && (!features.is_constant() || features != plan.v->axes.size(Role::kFeature)))
    return missed("stage.scores", match.anchor,
                  "repeated heads of sizes " + features.str() + " and " + plan.v->axes.size(Role::kFeature).str());
  const std::string name = function_name(sdpa, repeats, mask.hides_where_true);
  auto function = function_called(name, sdpa, repeats, mask.hides_where_true, context.view.opset(emission.edit.graph()));
  if (!function) return missed("stage.name", match.anchor, function.error().message());
  if (is_taken(*function, context.view.proto())) return missed("stage.name", match.anchor, name);
  Value* root = build.constant(*Tensor::of<double>({1}, {std::sqrt(static_cast<double>(operands.scale))}).cast(sdpa.type));
  std::vector<Value*> inputs{operands.q.value, operands.k.value, operands.v.value, mask.value, root};
  if (repeats) {
    inputs.push_back(build.ints({1, 1, plan.kv_group, 1, 1}));
    inputs.push_back(build.ints({0, sdpa.query_heads.value(), -1, features.value()}));
  }
  Node* call = build.new_node(std::string(kLocalAttentionDomain) + "::" + name, inputs, {true}, {});
  emission.edit.add_function(*std::move(function));
  // Heads are repeated by a Reshape that finds the number of keys itself.
  const std::string sizes = repeats ? sizes_that_may_be_0({sdpa.batch, scores.back()}) : "";
  if (!sizes.empty()) site.assumed.push_back({std::string(kSizesNotEmpty), false, sizes});
  ATTN_OPT_DONE(take_over_outputs(plan, {}, *call, *call->output(0), site));
  ATTN_OPT_DONE(complete(emission, site));
  return emission;
}

}  // namespace

Matched<Emission> emit_local_function(const Match& match, MatchContext& context, const SharedNodes& shared) {
  const Sdpa& sdpa = match.sdpa;
  const auto miss = [&](std::string id, std::string found) {
    return missed(std::move(id), match.anchor, std::move(found), match.peeled);
  };
  const int opset = context.view.opset(*match.anchor->graph);
  if (opset < kFirstOpset) return miss("stage.opset", "opset " + std::to_string(opset) + ", and 18 is the first");
  if (const std::string what = beyond_function(sdpa); !what.empty()) return miss("stage.scores", what);
  const auto mask = sdpa.terms.size() == 1 ? hiding_mask(sdpa.terms[0], context.facts) : std::nullopt;
  if (!mask) return miss("stage.mask", std::to_string(sdpa.terms.size()) + " terms, which are not one bool mask of -inf");
  std::optional<Emission> written;
  Miss reason{"emit.operands", match.anchor, "K and V have no views at one level", match.peeled};
  EmitOptions options;
  options.form = Form::k4d;
  options.target = Target::kSpec;  // the body repeats heads by itself
  auto planned = try_plans(sdpa, options, context.facts, [&](const WritingPlan& plan) {
    if (plan.has_past) return false;  // the cache stays outside
    auto emission = write_call(plan, *mask, match, context, shared);
    if (emission)
      written.emplace(*std::move(emission));
    else
      reason = std::move(emission.error());
    return written.has_value();
  });
  if (written) return *std::move(written);
  return tl::unexpected<Miss>(std::move(planned ? reason : planned.error()));
}

}  // namespace attn_opt
