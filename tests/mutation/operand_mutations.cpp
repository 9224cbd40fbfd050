// Q, K, V, the cache and the outputs taken for one another.
#include "tests/mutation/mutation.h"

namespace attn_opt {
namespace {

using Changes = std::vector<Change<Sdpa>>;

DescriptionMutation always(std::string step, std::string change, void (*apply)(Sdpa&)) {
  return {std::move(step), std::move(change), [=](const Sdpa&, Facts&) { return Changes{apply}; }};
}

bool has_past(const Operand& operand) {
  for (const OperandView& view : operand.views)
    if (view.past) return true;
  return false;
}

/// The others would be read instead, rightly.
void keep_views_behind_cache(Sdpa& sdpa) {
  for (Operand* operand : {&sdpa.k, &sdpa.v})
    std::erase_if(operand->views, [](const OperandView& view) { return view.past == nullptr; });
}

/// CHANGE where both K and V are read behind a cache: it gets each view of K with that of V beside it.
DescriptionMutation of_cache(std::string change, void (*apply)(OperandView& k, OperandView& v)) {
  return {"cache", std::move(change), [=](const Sdpa& sdpa, Facts&) {
            return once_if<Sdpa>(has_past(sdpa.k) && has_past(sdpa.v), [=](Sdpa& changed) {
              keep_views_behind_cache(changed);
              auto &keys = changed.k.views, &values = changed.v.views;
              for (size_t i = 0; i < std::min(keys.size(), values.size()); ++i) apply(keys[i], values[i]);
            });
          }};
}

/// Each view of OPERAND reads the value of the one after it, or before it, and keeps its own layout.
DescriptionMutation at_other_step(const char* name, Operand Sdpa::* operand, bool later) {
  return {"operands", std::string(name) + (later ? " read above its layout" : " read below its layout"),
          [=](const Sdpa& sdpa, Facts&) {
            return once_if<Sdpa>((sdpa.*operand).views.size() > 1, [=](Sdpa& changed) {
              const auto views = (changed.*operand).views;
              auto& shifted = (changed.*operand).views;
              for (size_t i = 0; i < views.size(); ++i) {
                const bool ends = later ? i + 1 == views.size() : i == 0;
                if (!ends) shifted[i].value = views[later ? i + 1 : i - 1].value;
              }
              shifted.erase(later ? shifted.end() - 1 : shifted.begin());
            });
          }};
}

DescriptionMutation output_at_other_step(bool later) {
  return {"outputs", later ? "Y taken over below its layout" : "Y taken over above its layout", [=](const Sdpa& sdpa, Facts&) {
            return once_if<Sdpa>(sdpa.outputs.size() > 1, [=](Sdpa& changed) {
              const auto views = changed.outputs;
              for (size_t i = 0; i < views.size(); ++i) {
                const bool ends = later ? i + 1 == views.size() : i == 0;
                if (!ends) changed.outputs[i].value = views[later ? i + 1 : i - 1].value;
              }
              changed.outputs.erase(later ? changed.outputs.end() - 1 : changed.outputs.begin());
            });
          }};
}

Changes presents_changed(const Sdpa& sdpa, const Change<Sdpa>& change) {
  bool shown = false;
  for (const OperandView& view : sdpa.k.views) shown |= view.present != nullptr;
  return once_if<Sdpa>(shown && has_past(sdpa.v), change);
}

void swap_presents(Sdpa& sdpa) {
  Value *key = nullptr, *value = nullptr;
  for (const OperandView& view : sdpa.k.views) key = view.present ? view.present : key;
  for (const OperandView& view : sdpa.v.views) value = view.present ? view.present : value;
  for (OperandView& view : sdpa.k.views)
    if (view.past) view.present = value;
  for (OperandView& view : sdpa.v.views)
    if (view.past) view.present = key;
}

void drop_past(Sdpa& sdpa) {
  keep_views_behind_cache(sdpa);
  for (Operand* operand : {&sdpa.k, &sdpa.v})
    for (OperandView& view : operand->views) view.past = view.present = nullptr;
}

}  // namespace

std::vector<DescriptionMutation> operand_mutations() {
  std::vector<DescriptionMutation> all = {
      always("operands", "K and V exchanged", [](Sdpa& s) { std::swap(s.k, s.v); }),
      always("operands", "Q and K exchanged", [](Sdpa& s) { std::swap(s.q, s.k); }),
      always("operands", "Q and V exchanged", [](Sdpa& s) { std::swap(s.q, s.v); }),
      always("operands", "K for V", [](Sdpa& s) { s.v = s.k; }),
      always("operands", "V for K", [](Sdpa& s) { s.k = s.v; }),
      always("operands", "K for Q", [](Sdpa& s) { s.q = s.k; }),
      always("operands", "Q for K", [](Sdpa& s) { s.k = s.q; }),
      of_cache("past key and past value exchanged", [](OperandView& k, OperandView& v) { std::swap(k.past, v.past); }),
      of_cache("past key for past value", [](OperandView& k, OperandView& v) { v.past = k.past; }),
      of_cache("past value for past key", [](OperandView& k, OperandView& v) { k.past = v.past; }),
      of_cache("new keys before past keys", [](OperandView& k, OperandView&) { std::swap(k.past, k.value); }),
      of_cache("new values before past values", [](OperandView&, OperandView& v) { std::swap(v.past, v.value); }),
      of_cache("new rows of K and V exchanged", [](OperandView& k, OperandView& v) { std::swap(k.value, v.value); }),
      {"cache", "dropped",
       [](const Sdpa& sdpa, Facts&) { return once_if<Sdpa>(has_past(sdpa.k) && has_past(sdpa.v), drop_past); }},
      {"outputs", "present key and value exchanged",
       [](const Sdpa& sdpa, Facts&) { return presents_changed(sdpa, swap_presents); }},
      {"outputs", "Y and probabilities exchanged",
       [](const Sdpa& sdpa, Facts&) {
         return once_if<Sdpa>(sdpa.probabilities.has_value() && !sdpa.outputs.empty(), [](Sdpa& changed) {
           changed.outputs.resize(1);
           std::swap(changed.outputs[0].value, changed.probabilities->value);
         });
       }},
      output_at_other_step(true),
      output_at_other_step(false),
  };
  const std::pair<const char*, Operand Sdpa::*> operands[] = {{"Q", &Sdpa::q}, {"K", &Sdpa::k}, {"V", &Sdpa::v}};
  for (const auto& [name, operand] : operands)
    for (const bool later : {true, false}) all.push_back(at_other_step(name, operand, later));
  return all;
}

}  // namespace attn_opt
