#include "src/emit/key_rules.h"

#include <algorithm>
#include <utility>

namespace attn_opt {
namespace {

std::string upper_bound(const CausalMask& mask) {
  const std::string start = mask.counts_from_lengths ? "j <= i + '" + mask.lengths->name + "'" : "j <= i";
  return start + (mask.offset->is(0) ? "" : " + " + mask.offset->str());
}

/// The number that BOUND lies beyond STAND; nullopt if it is none, or negative.
std::optional<int64_t> window(const Dim& bound, const Dim& stand) {
  const Dim size = bound - stand;
  if (!size.is_constant() || size.value() < 0) return std::nullopt;
  return size.value();
}

void narrow(std::optional<int64_t>& known, int64_t size) { known = known ? std::min(*known, size) : size; }

}  // namespace

std::string text_of(const CausalMask& mask) {
  std::string text = "keeps key j of query i if ";
  auto add = [&, is_first = true](const std::string& bound) mutable {
    text += (std::exchange(is_first, false) ? "" : " and ") + bound;
  };
  if (mask.offset) add(upper_bound(mask));
  if (mask.least) add("j >= i + " + mask.least->str());
  if (mask.end) add("j < '" + mask.lengths->name + "'" + (mask.end->is(0) ? "" : " + " + mask.end->str()));
  return text;
}

KeyRuleReader::KeyRuleReader(const WritingPlan& plan, Site& site) : plan_(plan), site_(site) {
  rules_.is_causal = site.sdpa.is_causal;
  rules_.left_window = site.sdpa.left_window;
  rules_.right_window = site.sdpa.right_window;
  if (site.sdpa.nonpad_kv_seqlen) rules_.lengths = {site.sdpa.nonpad_kv_seqlen, 0, false};
}

void KeyRuleReader::offer_lengths(const ScoreTerm& mask) {
  const CausalMask& bounds = *mask.causal;
  if (!bounds.lengths || rules_.lengths || rules_.is_bound() || plan_.has_past) return;
  if (!site_.says.lengths || !check_frame(mask).empty()) return;
  const Dim& queries = site_.scores[2];
  // Keys beyond where the last query stands are seen by none.
  const bool is_causal = bounds.offset && bounds.counts_from_lengths;
  if (is_causal ? !site_.says.counts_from_lengths : !bounds.end) return;
  const Dim added = is_causal ? *bounds.offset + queries : *bounds.end;
  if (!added.is_constant() && !site_.sizes.knows(added)) return;
  rules_.lengths = {bounds.lengths, added, true};
  KeyRules tried = rules_;
  if (!say_bounds(bounds, tried).empty()) rules_.lengths.reset();
}

std::string KeyRuleReader::check_frame(const ScoreTerm& mask) const {
  const Shape& frame = mask.frame;
  const bool has_rows = frame.size() >= 2 && frame[frame.size() - 2] == site_.scores[2] && frame.back() == site_.scores[3];
  if (!has_rows) return "is laid out for " + to_string(frame) + ", not " + to_string(site_.scores);
  if (!mask.causal->lengths) return {};
  const MaybeShape list = site_.facts.shape(*mask.causal->lengths);
  const bool fits = frame.size() == 4 && may_be_equal(frame[0], site_.scores[0]) && list && list->size() == 1 &&
                    (list->front().is(1) || list->front() == site_.scores[0]);
  return fits ? "" : "has lengths '" + mask.causal->lengths->name + "' that are not those of the batch";
}

Dim KeyRuleReader::stand() const {
  if (rules_.lengths) return rules_.lengths->added - site_.scores[2];
  return plan_.has_past ? site_.facts.shape(*plan_.k->past).known()[2] : Dim(0);
}

std::string KeyRuleReader::say(const ScoreTerm& mask) {
  if (std::string why = check_frame(mask); !why.empty()) return why;
  KeyRules rules = rules_;
  std::string why = say_bounds(*mask.causal, rules);
  if (why.empty()) rules_ = rules;
  return why;
}

std::string KeyRuleReader::say_bounds(const CausalMask& mask, KeyRules& rules) const {
  const bool has_lengths = rules.lengths.has_value();
  if (mask.lengths && !(has_lengths && rules.lengths->list == mask.lengths))
    return "it " + text_of(mask) + ", and lengths cannot be said beside the rest";
  std::string why = "it " + text_of(mask) + ", behind a past of " + stand().str();
  if ((mask.offset || mask.least) && mask.counts_from_lengths != has_lengths) return why;
  if (mask.end && *mask.end != rules.lengths->added) {
    const bool follows = mask.offset && (*mask.end - rules.lengths->added).never_negative();
    if (!follows) return why;
  }
  if (mask.offset && *mask.offset == stand() && site_.says.causal) {
    rules.is_causal = true;
  } else if (mask.offset) {
    const auto size = window(*mask.offset, stand());
    if (!size || !site_.says.right_window) return why;
    narrow(rules.right_window, *size);
  }
  if (mask.least) {
    const auto size = window(stand(), *mask.least);
    if (!size || !site_.says.left_window) return why;
    narrow(rules.left_window, *size);
  }
  const bool as_many = plan_.k->axes.size(Role::kRow) == plan_.q->axes.size(Role::kRow);
  if ((mask.offset || mask.least) && !as_many && !site_.says.causal_of_other_rows) return "new keys are not as many as queries";
  return {};
}

bool KeyRuleReader::keeps_own_key(const CausalMask& mask) const {
  if (mask.lengths) return false;
  return !mask.least || (site_.scores[3] - site_.scores[2] - stand()).never_negative();
}

namespace {

Matched<Value*> size_value(const Dim& size, const KeyLengths& lengths, Site& site) {
  Value* value = site.sizes.sizes({size});
  if (!value) return missed("emit.shape", lengths.list->producer, "no value at hand has the size " + size.str());
  return value;
}

/// VALUE, to which what is added to LENGTHS is, and S at most: the greatest int64 stands for no limit, and the sum is none.
Matched<Value*> bounded_before_sum(Value* value, const KeyLengths& lengths, Site& site) {
  const bool may_leave = site.facts.type(*lengths.list) == onnx::TensorProto::INT64 && lengths.added.never_negative();
  if (!lengths.is_of_mask || !may_leave) return value;
  ATTN_OPT_MATCH(Value * keys, size_value(site.scores[3], lengths, site));
  return site.build.node("Min", {value, keys});
}

/// VALUE within 0 to S: a mask keeps no key for less than 0, and every key for more than S.
Matched<Value*> within_keys(Value* value, const KeyLengths& lengths, Site& site) {
  ATTN_OPT_MATCH(Value * keys, size_value(site.scores[3], lengths, site));
  value = site.build.node("Max", {value, site.build.ints({0})});
  return site.build.node("Min", {value, keys});
}

}  // namespace

Matched<Value*> write_lengths(const KeyLengths& lengths, Site& site) {
  Value* value = lengths.list;
  if (site.facts.type(*value) != onnx::TensorProto::INT64)
    value = site.build.node("Cast", {value}, {GraphBuilder::attribute("to", int64_t{onnx::TensorProto::INT64})});
  if (!lengths.added.is(0)) {
    ATTN_OPT_MATCH(value, bounded_before_sum(value, lengths, site));
    ATTN_OPT_MATCH(Value * added, size_value(lengths.added, lengths, site));
    value = site.build.node("Add", {value, added});
  }
  if (lengths.is_of_mask && !site.target.takes_any_length) {
    ATTN_OPT_MATCH(value, within_keys(value, lengths, site));
  }
  const MaybeShape list = site.facts.shape(*lengths.list);
  const Dim& batch = site.scores[0];
  if (!list || !list->front().is(1) || batch.is(1)) return value;
  ATTN_OPT_MATCH(Value * sizes, size_value(batch, lengths, site));
  return site.build.node("Expand", {value, sizes});
}

}  // namespace attn_opt
