// What stands between the product and the softmax, but for the masks: scale, softcap, causality, guard, types.
#include <algorithm>
#include <cmath>

#include "tests/mutation/mutation.h"

namespace attn_opt {
namespace {

using Changes = std::vector<Change<Sdpa>>;

DescriptionMutation of_scale(std::string change, double (*scale)(double)) {
  return {"scale", std::move(change), [=](const Sdpa& sdpa, Facts&) {
            return once_if<Sdpa>(scale(sdpa.scale) != sdpa.scale, [=](Sdpa& changed) { changed.scale = scale(changed.scale); });
          }};
}

/// The numbers that the views of OPERAND were multiplied with.
DescriptionMutation of_view_scale(std::string change, Operand Sdpa::* operand, double (*scale)(double)) {
  return {"scale", std::move(change), [=](const Sdpa& sdpa, Facts&) {
            bool scaled = false;
            for (const OperandView& view : (sdpa.*operand).views) scaled |= view.scale != 1;
            return once_if<Sdpa>(scaled, [=](Sdpa& changed) {
              for (OperandView& view : (changed.*operand).views) view.scale = scale(view.scale);
            });
          }};
}

DescriptionMutation of_tensor_scale(std::string change, void (*apply)(std::vector<TensorScale>&, size_t)) {
  return {"tensor scale", std::move(change), [=](const Sdpa& sdpa, Facts&) {
            Changes changes;
            for (size_t i = 0; i < sdpa.tensor_scales.size(); ++i)
              changes.push_back([=](Sdpa& changed) { apply(changed.tensor_scales, i); });
            return changes;
          }};
}

/// APPLY where the softcap is there, or where it is not.
DescriptionMutation of_softcap(std::string change, bool is_there, void (*apply)(Sdpa&)) {
  return {"softcap", std::move(change),
          [=](const Sdpa& sdpa, Facts&) { return once_if<Sdpa>((sdpa.softcap != 0) == is_there, apply); }};
}

DescriptionMutation only_if(std::string step, std::string change, bool (*applies)(const Sdpa&), void (*apply)(Sdpa&)) {
  return {std::move(step), std::move(change), [=](const Sdpa& sdpa, Facts&) { return once_if<Sdpa>(applies(sdpa), apply); }};
}

constexpr const char* kRowsKeepAKey = "rows-keep-a-key";

bool is_assumed(const Sdpa& sdpa, const std::string& id) {
  return std::any_of(sdpa.preconditions.begin(), sdpa.preconditions.end(),
                     [&](const Precondition& condition) { return condition.id == id && !condition.proven; });
}

void take_for_proven(Sdpa& sdpa) {
  for (Precondition& condition : sdpa.preconditions) condition.proven |= condition.id == kRowsKeepAKey;
}

DescriptionMutation without_precondition(std::string id) {
  return {"preconditions", "'" + id + "' left out", [=](const Sdpa& sdpa, Facts&) {
            return once_if<Sdpa>(is_assumed(sdpa, id), [=](Sdpa& changed) {
              std::erase_if(changed.preconditions, [&](const Precondition& condition) { return condition.id == id; });
            });
          }};
}

/// Sums of scores and biases rounded to the type of Q, where the model makes them in a wider one.
DescriptionMutation in_type_of_query() {
  return {"type", "that of Q, narrower than the model's sums", [](const Sdpa& sdpa, Facts& facts) {
            const DataType type = facts.type(*sdpa.q.views.front().value);
            return once_if<Sdpa>(type != sdpa.type, [type](Sdpa& changed) { changed.type = type; });
          }};
}

std::vector<DescriptionMutation> scale_mutations() {
  const auto none = [](double) { return 1.0; };
  const auto twice = [](double scale) { return scale * scale; };
  return {
      of_scale("x 1.01", [](double scale) { return scale * 1.01; }),
      of_scale("x 1.0001", [](double scale) { return scale * 1.0001; }),
      of_scale("doubled", [](double scale) { return scale * 2; }),
      of_scale("its root", [](double scale) { return std::sqrt(std::abs(scale)); }),
      of_scale("its square", twice),
      of_scale("left out", none),
      of_scale("negated", [](double scale) { return -scale; }),
      of_scale("inverted", [](double scale) { return 1 / scale; }),
      of_scale("zero", [](double) { return 0.0; }),
      of_view_scale("beside Q left out", &Sdpa::q, none),
      of_view_scale("beside Q twice", &Sdpa::q, twice),
      of_view_scale("beside K left out", &Sdpa::k, none),
      of_view_scale("beside K twice", &Sdpa::k, twice),
      of_tensor_scale("left out",
                      [](auto& scales, size_t i) { scales.erase(scales.begin() + static_cast<std::ptrdiff_t>(i)); }),
      of_tensor_scale("factor for divisor", [](auto& scales, size_t i) { scales[i].divides = !scales[i].divides; }),
      of_tensor_scale("beside the other operand", [](auto& scales, size_t i) { scales[i].on_key = !scales[i].on_key; }),
      of_tensor_scale("twice", [](auto& scales, size_t i) { scales.push_back(TensorScale(scales[i])); }),
  };
}

}  // namespace

std::vector<DescriptionMutation> score_mutations() {
  std::vector<DescriptionMutation> all = scale_mutations();
  const std::vector<DescriptionMutation> more = {
      of_softcap("left out", true, [](Sdpa& s) { s.softcap = 0; }),
      of_softcap("x 1.01", true, [](Sdpa& s) { s.softcap *= 1.01; }),
      of_softcap("of the scores before the scale", true, [](Sdpa& s) { s.softcap *= s.scale; }),
      of_softcap("inverted", true, [](Sdpa& s) { s.softcap = 1 / s.softcap; }),
      of_softcap("30 where there is none", false, [](Sdpa& s) { s.softcap = 30; }),
      only_if(
          "causal", "left out", [](const Sdpa& s) { return s.is_causal; }, [](Sdpa& s) { s.is_causal = false; }),
      only_if(
          "causal", "where it is not", [](const Sdpa& s) { return !s.is_causal; }, [](Sdpa& s) { s.is_causal = true; }),
      only_if(
          "lengths", "left out", [](const Sdpa& s) { return s.nonpad_kv_seqlen != nullptr; },
          [](Sdpa& s) { s.nonpad_kv_seqlen = nullptr; }),
      only_if(
          "guard", "seen where there is none", [](const Sdpa& s) { return !s.guarded && is_assumed(s, kRowsKeepAKey); },
          [](Sdpa& s) {
            s.guarded = true;
            take_for_proven(s);
          }),
      only_if(
          "preconditions", "'rows-keep-a-key' taken for proven", [](const Sdpa& s) { return is_assumed(s, kRowsKeepAKey); },
          take_for_proven),
      only_if(
          "guard", "overlooked", [](const Sdpa& s) { return s.guarded; }, [](Sdpa& s) { s.guarded = false; }),
      only_if(
          "scores output", "another stage of the scores", [](const Sdpa& s) { return s.scores_output.has_value(); },
          [](Sdpa& s) { s.scores_output_mode = (s.scores_output_mode + 1) % 4; }),
      only_if(
          "scores output", "the stage before", [](const Sdpa& s) { return s.scores_output.has_value(); },
          [](Sdpa& s) { s.scores_output_mode = (s.scores_output_mode + 3) % 4; }),
      in_type_of_query(),
      without_precondition(kRowsKeepAKey),
      without_precondition("scores-finite"),
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace attn_opt
