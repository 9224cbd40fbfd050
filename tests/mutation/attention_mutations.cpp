// The Attention node written wrong: its attributes, inputs and outputs.
#include <algorithm>
#include <cmath>

#include "tests/mutation/edit_changes.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

constexpr const char* kInputs[] = {"Q", "K", "V", "mask", "past key", "past value", "lengths"};
constexpr float kManyUlps = 1 + 64 * 0x1p-23f;

/// APPLY to the Attention node where it APPLIES.
EditMutation of_node(std::string step, std::string change, bool (*applies)(const Node&), void (*apply)(Node&)) {
  return {std::move(step), std::move(change), [=](const Emission& emission, Facts&) {
            return once_if<Emission>(applies(*emission.attention), [=](Emission& changed) { apply(*changed.attention); });
          }};
}

/// The float attribute NAME, which is there, times FACTOR.
EditMutation times(const std::string& name, std::string change, float factor) {
  return {"Attention." + name, std::move(change), [=](const Emission& emission, Facts&) {
            return once_if<Emission>(emission.attention->attribute(name) != nullptr, [=](Emission& changed) {
              auto* attribute = attribute_of(*changed.attention, name);
              attribute->set_f(attribute->f() * factor);
            });
          }};
}

/// What the operator takes for the scale where none is given; 0 if the head size is not known.
float default_scale(const Node& attention, Facts& facts) {
  const MaybeShape q = facts.shape(*attention.inputs[0]);
  if (!q || !q->back().is_constant()) return 0;
  const int64_t heads = q->size() == 3 ? attention.int_attribute("q_num_heads", 1) : 1;
  return 1 / std::sqrt(static_cast<float>(q->back().value() / heads));
}

EditMutation without(const std::string& name) {
  return {"Attention." + name, "left out", [=](const Emission& emission, Facts& facts) {
            const auto* attribute = emission.attention->attribute(name);
            const bool is_default = attribute && name == "scale" &&
                                    std::abs(attribute->f() / default_scale(*emission.attention, facts) - 1) < 1e-6f;
            return once_if<Emission>(attribute != nullptr && !is_default,
                                     [=](Emission& changed) { remove_attribute(*changed.attention, name); });
          }};
}

/// The int attribute NAME becomes CHANGE of what it is; OTHERWISE stands for one that is not there.
EditMutation becomes(const std::string& name, std::string change, int64_t otherwise, int64_t (*to)(int64_t)) {
  return {"Attention." + name, std::move(change), [=](const Emission& emission, Facts&) {
            const int64_t now = emission.attention->int_attribute(name, otherwise);
            return once_if<Emission>(now >= 0 && to(now) != now && to(now) >= 0, [=](Emission& changed) {
              set_attribute(*changed.attention, GraphBuilder::attribute(name, to(now)));
            });
          }};
}

std::vector<EditMutation> attribute_mutations() {
  std::vector<EditMutation> all;
  for (const char* name : {"scale", "softcap"}) {
    all.push_back(times(name, "x 1.01", 1.01f));
    all.push_back(times(name, "doubled", 2));
    all.push_back(times(name, "off by 64 ulp", kManyUlps));
    all.push_back(without(name));
  }
  for (const char* name : {"q_num_heads", "kv_num_heads"}) {
    all.push_back(becomes(name, "doubled", -1, [](int64_t n) { return n * 2; }));
    all.push_back(becomes(name, "halved", -1, [](int64_t n) { return n % 2 ? n : n / 2; }));
    all.push_back(becomes(name, "1", -1, [](int64_t) -> int64_t { return 1; }));
    all.push_back(without(name));
  }
  for (const char* name : {"left_window_size", "right_window_size"}) {
    all.push_back(becomes(name, "+ 1", -1, [](int64_t keys) { return keys + 1; }));
    all.push_back(becomes(name, "- 1", -1, [](int64_t keys) { return keys - 1; }));
    all.push_back(without(name));
  }
  all.push_back(becomes("is_causal", "left out", 0, [](int64_t) -> int64_t { return 0; }));
  all.push_back(becomes("is_causal", "added", 0, [](int64_t) -> int64_t { return 1; }));
  all.push_back(of_node(
      "Attention.softcap", "30 where there is none", [](const Node& n) { return n.attribute("softcap") == nullptr; },
      [](Node& n) { set_attribute(n, GraphBuilder::attribute("softcap", 30.0f)); }));
  all.push_back(of_node(
      "Attention.q_num_heads", "exchanged with kv_num_heads",
      [](const Node& n) { return n.int_attribute("q_num_heads", 0) != n.int_attribute("kv_num_heads", 0); },
      [](Node& n) {
        const int64_t q = n.int_attribute("q_num_heads", 0), kv = n.int_attribute("kv_num_heads", 0);
        set_attribute(n, GraphBuilder::attribute("q_num_heads", kv));
        set_attribute(n, GraphBuilder::attribute("kv_num_heads", q));
      }));
  all.push_back(without("softmax_precision"));
  all.push_back({"Attention.softmax_precision", "float16 for a wider type", [](const Emission& emission, Facts& facts) {
                   return once_if<Emission>(facts.type(*emission.attention->inputs[0]) != P::FLOAT16, [](Emission& changed) {
                     set_attribute(*changed.attention, GraphBuilder::attribute("softmax_precision", int64_t{P::FLOAT16}));
                   });
                 }});
  const auto wants_scores = [](const Node& n) { return n.output(3) != nullptr; };
  const auto set_mode = [](Node& n, int64_t shift) {
    const int64_t mode = n.int_attribute("qk_matmul_output_mode", 0);
    set_attribute(n, GraphBuilder::attribute("qk_matmul_output_mode", (mode + shift) % 4));
  };
  for (const int64_t shift : {1, 2, 3})
    all.push_back(
        {"Attention.qk_matmul_output_mode", "+ " + std::to_string(shift) + " modulo 4", [=](const Emission& emission, Facts&) {
           return once_if<Emission>(wants_scores(*emission.attention),
                                    [=](Emission& changed) { set_mode(*changed.attention, shift); });
         }});
  return all;
}

bool has(const Node& node, size_t input) { return node.input(input) != nullptr; }

EditMutation exchanged_inputs(size_t one, size_t other) {
  return {"Attention inputs", std::string(kInputs[one]) + " and " + kInputs[other] + " exchanged",
          [=](const Emission& emission, Facts&) {
            const Node& node = *emission.attention;
            return once_if<Emission>(
                has(node, one) && has(node, other) && node.inputs[one] != node.inputs[other],
                [=](Emission& changed) { std::swap(changed.attention->inputs[one], changed.attention->inputs[other]); });
          }};
}

EditMutation input_for(size_t from, size_t to) {
  return {"Attention inputs", std::string(kInputs[from]) + " for " + kInputs[to], [=](const Emission& emission, Facts&) {
            const Node& node = *emission.attention;
            return once_if<Emission>(
                has(node, from) && has(node, to) && node.inputs[from] != node.inputs[to],
                [=](Emission& changed) { changed.attention->inputs[to] = changed.attention->inputs[from]; });
          }};
}

EditMutation without_inputs(std::string change, std::vector<size_t> inputs) {
  return {"Attention inputs", std::move(change), [=](const Emission& emission, Facts&) {
            const bool applies =
                std::all_of(inputs.begin(), inputs.end(), [&](size_t i) { return has(*emission.attention, i); });
            return once_if<Emission>(applies, [=](Emission& changed) {
              for (const size_t input : inputs) changed.attention->inputs[input] = nullptr;
              while (!changed.attention->inputs.back()) changed.attention->inputs.pop_back();
            });
          }};
}

/// Input INPUT passes through OP with ATTRIBUTES where its type is one that FITS.
EditMutation through(size_t input, std::string change, bool (*fits)(DataType), std::string op,
                     GraphBuilder::Attributes attributes = {}) {
  return {"Attention inputs", std::string(kInputs[input]) + " " + std::move(change),
          [=](const Emission& emission, Facts& facts) {
            const Value* value = emission.attention->input(input);
            return once_if<Emission>(value && fits(facts.type(*value)), [=](Emission& changed) {
              insert_before(changed, *changed.attention, static_cast<int>(input), op, attributes);
            });
          }};
}

/// Input INPUT, of float, passes through a narrower type.
EditMutation through_half(size_t input) {
  return {"Attention inputs", std::string(kInputs[input]) + " through float16", [=](const Emission& emission, Facts& facts) {
            const Value* value = emission.attention->input(input);
            return once_if<Emission>(value && facts.type(*value) == P::FLOAT, [=](Emission& changed) {
              for (const int64_t type : {P::FLOAT16, P::FLOAT})
                insert_before(changed, *changed.attention, static_cast<int>(input), "Cast",
                              {GraphBuilder::attribute("to", type)});
            });
          }};
}

/// Input INPUT with NUMBER added to each element, or multiplied with it.
EditMutation shifted(size_t input, std::string change, std::string op, double number, bool (*fits)(DataType)) {
  return {"Attention inputs", std::string(kInputs[input]) + " " + std::move(change),
          [=](const Emission& emission, Facts& facts) {
            const Value* value = emission.attention->input(input);
            const DataType type = value ? facts.type(*value) : DataType(P::UNDEFINED);
            return once_if<Emission>(value && fits(type), [=](Emission& changed) {
              Value* operand = builder_of(changed).constant(*Tensor::scalar<double>(number).cast(type));
              insert_before(changed, *changed.attention, static_cast<int>(input), op, {}, {operand});
            });
          }};
}

EditMutation mask_transposed() {
  return {"Attention inputs", "mask transposed", [](const Emission& emission, Facts& facts) {
            const Value* mask = emission.attention->input(3);
            const MaybeShape shape = mask ? facts.shape(*mask) : nullptr;
            if (!shape || shape->size() < 2) return EditChanges{};
            std::vector<int64_t> perm;
            for (size_t axis = 0; axis < shape->size(); ++axis) perm.push_back(static_cast<int64_t>(axis));
            std::swap(perm.back(), perm[perm.size() - 2]);
            return once_if<Emission>(true, [perm](Emission& changed) {
              insert_before(changed, *changed.attention, 3, "Transpose", {GraphBuilder::attribute("perm", perm)});
            });
          }};
}

bool is_bool(DataType type) { return type == P::BOOL; }
bool is_integer(DataType type) { return type == P::INT64; }
bool is_float(DataType type) { return is_floating(type); }

std::vector<EditMutation> input_mutations() {
  std::vector<EditMutation> all;
  constexpr std::pair<size_t, size_t> kPairs[] = {{0, 1}, {0, 2}, {1, 2}, {4, 5}, {1, 4}, {2, 5}, {1, 5}, {2, 4}};
  for (const auto& [one, other] : kPairs) all.push_back(exchanged_inputs(one, other));
  constexpr std::pair<size_t, size_t> kCopies[] = {{1, 2}, {2, 1}, {0, 1}, {1, 0}, {4, 5}, {5, 4}};
  for (const auto& [from, to] : kCopies) all.push_back(input_for(from, to));
  all.push_back(without_inputs("mask left out", {3}));
  all.push_back(without_inputs("past left out", {4, 5}));
  all.push_back(without_inputs("lengths left out", {6}));
  all.push_back(through(3, "negated", is_bool, "Not"));
  all.push_back(through(3, "of the other sign", is_float, "Neg"));
  all.push_back(through(3, "given as 0 and 1", is_bool, "Cast", {GraphBuilder::attribute("to", int64_t{P::FLOAT})}));
  all.push_back(shifted(3, "x 1.01", "Mul", 1.01, is_float));
  all.push_back(shifted(6, "+ 1", "Add", 1, is_integer));
  all.push_back(shifted(6, "- 1", "Sub", 1, is_integer));
  for (const size_t input : {0, 1, 2, 4, 5}) {
    all.push_back(shifted(input, "x 1.001", "Mul", 1.001, is_float));
    all.push_back(through_half(input));
  }
  all.push_back(through_half(3));
  all.push_back(mask_transposed());
  return all;
}

void exchange_outputs(Node& node, size_t one, size_t other) {
  std::swap(node.outputs[one], node.outputs[other]);
  for (const size_t i : {one, other})
    if (node.outputs[i]) node.outputs[i]->output = static_cast<int>(i);
}

EditMutation exchanged_outputs(std::string change, size_t one, size_t other) {
  return {"Attention outputs", std::move(change), [=](const Emission& emission, Facts&) {
            return once_if<Emission>(emission.attention->output(one) && emission.attention->output(other),
                                     [=](Emission& changed) { exchange_outputs(*changed.attention, one, other); });
          }};
}

}  // namespace

std::vector<EditMutation> attention_mutations() {
  std::vector<EditMutation> all = attribute_mutations();
  for (auto& mutation : input_mutations()) all.push_back(std::move(mutation));
  all.push_back(exchanged_outputs("present key and value exchanged", 1, 2));
  all.push_back(exchanged_outputs("Y and present key exchanged", 0, 1));
  all.push_back(exchanged_outputs("Y and present value exchanged", 0, 2));
  all.push_back(exchanged_outputs("Y and scores exchanged", 0, 3));
  return all;
}

}  // namespace attn_opt
