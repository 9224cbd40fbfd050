#include "attn_opt/attention_parts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "patterns/operands/operand_walk.h"
#include "patterns/preconditions.h"
#include "patterns/scores/causal_terms.h"

namespace attn_opt {
namespace {

const std::map<char, Role> kRoles = {{'b', Role::kBatch}, {'h', Role::kHead}, {'s', Role::kRow}, {'d', Role::kFeature}};

/// "bs(hd)" as "b", "s", "hd".
std::vector<std::string> split_axes(const std::string& axes) {
  std::vector<std::string> groups;
  bool is_open = false;
  for (const char c : axes) {
    if (c == '(') groups.emplace_back();
    if (c == '(' || c == ')')
      is_open = c == '(';
    else if (is_open)
      groups.back() += c;
    else
      groups.emplace_back(1, c);
  }
  return groups;
}

/// Sizes of the letters of GROUP, which share an axis of SIZE.
Matched<Shape> sizes_of(const std::string& group, const Dim& size, int64_t heads, const PartView& part, const Node& anchor) {
  if (group.size() == 1) return Shape{size};
  const auto other = heads > 0 ? exact_quotient(size, heads) : std::nullopt;
  if (!other)
    return missed("parts.axes", &anchor,
                  "'" + part.value->name + "' has " + size.str() + " for '" + group + "' and " +
                      (heads > 0 ? std::to_string(heads) + " heads" : "no number of heads"));
  return group[0] == 'h' ? Shape{heads, *other} : Shape{*other, heads};
}

Matched<AxisMap> axes_of(const PartView& part, int64_t heads, const Node& anchor, MatchContext& context) {
  if (const std::string wrong = wrong_axes(part.axes); !wrong.empty()) return missed("parts.axes", &anchor, wrong);
  const MaybeShape shape = context.facts.shape(*part.value);
  const std::vector<std::string> groups = split_axes(part.axes);
  if (!shape || shape->size() != groups.size())
    return missed(
        "parts.rank", &anchor,
        "'" + part.value->name + "' is " + (shape ? to_string(*shape) : "of no known rank") + ", not '" + part.axes + "'");
  Shape sizes;
  std::vector<Role> roles;
  for (size_t axis = 0; axis < groups.size(); ++axis) {
    ATTN_OPT_MATCH(const Shape of_group, sizes_of(groups[axis], (*shape)[axis], heads, part, anchor));
    sizes.insert(sizes.end(), of_group.begin(), of_group.end());
    for (const char letter : groups[axis]) roles.push_back(kRoles.at(letter));
  }
  auto axes = AxisMap::of(sizes, roles).regrouped(*shape);
  if (!axes)
    return missed("parts.axes", &anchor, "'" + part.value->name + "' is " + to_string(*shape) + ", not '" + part.axes + "'");
  return *std::move(axes);
}

class Description {
 public:
  Description(const AttentionParts& parts, Node& anchor, MatchContext& context)
      : parts_(parts), anchor_(anchor), context_(context), kv_heads_(parts.kv_heads > 0 ? parts.kv_heads : parts.heads) {}

  Matched<Match> match() {
    ATTN_OPT_DONE(check_values());
    ATTN_OPT_DONE(check_types());
    ATTN_OPT_DONE(check_numbers());
    Match match;
    match.anchor = &anchor_;
    match.insert_before = parts_.output.value->producer;
    match.peeled = parts_.peeled;
    ATTN_OPT_MATCH(match.sdpa, describe());
    return match;
  }

 private:
  std::vector<Value*> values_read() const {
    std::vector<Value*> values{parts_.q.value, parts_.k.value, parts_.v.value};
    for (const ScoreTerm& term : parts_.terms) values.push_back(term.value);
    for (Value* value : {parts_.nonpad_kv_seqlen, parts_.past_key, parts_.past_value})
      if (value) values.push_back(value);
    return values;
  }

  /// All that is read must stand above what makes the output.
  Matched<void> check_values() const {
    const auto values = values_read();
    if (!parts_.output.value || std::ranges::find(values, nullptr) != values.end())
      return missed("parts.order", &anchor_, "Q, K, V, the output or a term has no value");
    if ((parts_.past_key == nullptr) != (parts_.past_value == nullptr))
      return missed("parts.order", &anchor_, "a past has both keys and values");
    for (const Value* made : {parts_.output.value, parts_.present_key, parts_.present_value})
      if (made && !is_made_beside(*made))
        return missed("parts.order", &anchor_, "no node beside it makes '" + made->name + "'");
    const Node* maker = parts_.output.value->producer;
    for (const Value* present : {parts_.present_key, parts_.present_value})
      if (present && !parts_.past_key && present->producer != maker)
        return missed("parts.order", maker, "without a past '" + present->name + "' is K or V, and no output of this node");
    for (const Value* value : values)
      if (!anchor_.graph->sees(*value) ||
          (value->producer && value->graph == maker->graph && !is_above(*value->producer, *maker)))
        return missed("parts.order", maker, "'" + value->name + "' does not stand above it");
    return {};
  }

  bool is_made_beside(const Value& value) const {
    return value.producer && value.graph == anchor_.graph && value.producer->placement == Placement::kOfFile;
  }

  static bool is_above(const Node& node, const Node& reader) {
    return node.position < reader.position || (node.placement != Placement::kOfFile && node.position == reader.position);
  }

  Matched<void> check_types() const {
    const DataType type = context_.facts.type(*parts_.q.value);
    for (const Value* value :
         {parts_.q.value, parts_.k.value, parts_.v.value, parts_.output.value, parts_.past_key, parts_.past_value})
      if (value && (context_.facts.type(*value) != type || !is_floating(type))) return wrong_type(*value);
    for (const ScoreTerm& term : parts_.terms) {
      const DataType found = context_.facts.type(*term.value);
      if (term.kind == ScoreTerm::Kind::kBias ? !is_floating(found) : found != onnx::TensorProto::BOOL)
        return wrong_type(*term.value);
    }
    if (parts_.softmax_precision != onnx::TensorProto::UNDEFINED && !is_floating(parts_.softmax_precision))
      return missed("parts.type", &anchor_, "a softmax in " + type_name(parts_.softmax_precision));
    if (parts_.nonpad_kv_seqlen && context_.facts.type(*parts_.nonpad_kv_seqlen) != onnx::TensorProto::INT64)
      return wrong_type(*parts_.nonpad_kv_seqlen);
    return {};
  }

  Matched<void> check_numbers() const {
    const auto is_number = [](double number) { return std::isfinite(number); };
    if (!is_number(parts_.scale.value_or(1)) || !is_number(parts_.softcap) || parts_.softcap < 0)
      return missed("parts.scale", &anchor_, "the scale is a number, the softcap one that is not negative");
    for (const ScoreTerm& term : parts_.terms)
      if (!is_number(term.coefficient) || std::isnan(term.fill))
        return missed("parts.scale", &anchor_, "a term's coefficient or fill is NaN");
    return {};
  }

  tl::unexpected<Miss> wrong_type(const Value& value) const {
    return missed("parts.type", &anchor_, "'" + value.name + "' is of type " + type_name(context_.facts.type(value)));
  }

  Operand operand(const PartView& part, const AxisMap& axes, Value* past, Value* present) {
    OperandView start{part.value, axes};
    start.past = past;
    if (past) start.present = present;
    return walk_operand(std::move(start), context_);
  }

  Matched<Sdpa> describe() {
    ATTN_OPT_MATCH(const AxisMap q, axes_of(parts_.q, parts_.heads, anchor_, context_));
    ATTN_OPT_MATCH(const AxisMap k, axes_of(parts_.k, kv_heads_, anchor_, context_));
    ATTN_OPT_MATCH(const AxisMap v, axes_of(parts_.v, kv_heads_, anchor_, context_));
    ATTN_OPT_MATCH(const AxisMap y, axes_of(parts_.output, parts_.heads, anchor_, context_));
    Sdpa sdpa;
    sdpa.q = walk_operand({parts_.q.value, q}, context_);
    sdpa.k = operand(parts_.k, k, parts_.past_key, parts_.present_key);
    sdpa.v = operand(parts_.v, v, parts_.past_value, parts_.present_value);
    add_copies(sdpa);
    sdpa.type = context_.facts.type(*parts_.q.value);
    sdpa.batch = q.size(Role::kBatch);
    sdpa.query_heads = q.size(Role::kHead);
    ATTN_OPT_MATCH(sdpa.scale, scale_for(q.size(Role::kFeature)));
    sdpa.softcap = parts_.softcap;
    ATTN_OPT_DONE(add_terms(q, k, sdpa));
    sdpa.is_causal = parts_.is_causal;
    sdpa.nonpad_kv_seqlen = parts_.nonpad_kv_seqlen;
    sdpa.softmax_precision = parts_.softmax_precision;
    sdpa.guarded = parts_.guarded;
    if (!parts_.subtracts_maximum) sdpa.exponent_offset = 0;
    sdpa.outputs = walk_output(*parts_.output.value, y, context_);
    sdpa.preconditions = preconditions_of(sdpa, context_);
    for (const std::string& id : parts_.assumed) assume(id, "assumed by the pattern", sdpa);
    return sdpa;
  }

  Matched<double> scale_for(const Dim& features) const {
    if (parts_.scale) return *parts_.scale;
    if (!features.is_constant() || features.value() <= 0)
      return missed("parts.scale", &anchor_, "no scale, and the head size " + features.str() + " is no number");
    return 1 / std::sqrt(static_cast<double>(features.value()));
  }

  /// Without a past the presents are K and V themselves.
  void add_copies(Sdpa& sdpa) const {
    if (parts_.past_key) return;
    for (const auto& [present, operand] : {std::pair(parts_.present_key, &sdpa.k), std::pair(parts_.present_value, &sdpa.v)})
      if (present) sdpa.copies.push_back({present, operand->views.front()});
  }

  Matched<void> add_terms(const AxisMap& q, const AxisMap& k, Sdpa& sdpa) const {
    Dim keys = k.size(Role::kRow);
    if (parts_.past_key) {
      for (const Value* value : {parts_.past_key, parts_.past_value})
        if (const MaybeShape past = context_.facts.shape(*value); !past || past->size() != 4)
          return missed("parts.rank", &anchor_, "'" + value->name + "' is no (B, H, P, D)");
      keys = keys + context_.facts.shape(*parts_.past_key).known()[2];
    }
    sdpa.terms = parts_.terms;
    for (ScoreTerm& term : sdpa.terms) term.frame = {sdpa.batch, sdpa.query_heads, q.size(Role::kRow), keys};
    read_causal_terms(sdpa, context_.facts);
    return {};
  }

  const AttentionParts& parts_;
  Node& anchor_;
  MatchContext& context_;
  int64_t kv_heads_;
};

ScoreTerm masking(ScoreTerm::Kind kind, Value* mask, double fill) {
  ScoreTerm term;
  term.kind = kind;
  term.value = mask;
  term.fill = fill;
  return term;
}

}  // namespace

ScoreTerm bias(Value* value, double coefficient) {
  ScoreTerm term;
  term.value = value;
  term.coefficient = coefficient;
  return term;
}

ScoreTerm keep(Value* mask, double fill) { return masking(ScoreTerm::Kind::kKeep, mask, fill); }
ScoreTerm drop(Value* mask, double fill) { return masking(ScoreTerm::Kind::kDrop, mask, fill); }

std::string wrong_axes(const std::string& axes) {
  std::set<char> seen;
  size_t group = 0;  // letters since the bracket opened, and the bracket
  for (const char c : axes) {
    if (c == '(' || c == ')') {
      if ((c == '(') != (group == 0)) return "'" + axes + "': brackets hold two letters";
      if (c == ')' && group != 3) return "'" + axes + "': brackets hold two letters";
      group = c == '(' ? 1 : 0;
      continue;
    }
    if (!kRoles.contains(c)) return "'" + axes + "': '" + c + "' is none of b, h, s, d";
    if (!seen.insert(c).second) return "'" + axes + "': '" + c + "' twice";
    if (group > 0) ++group;
  }
  if (group != 0) return "'" + axes + "': a bracket is open";
  for (const auto& pair : {"bs", "sb", "bd", "db", "sd", "ds"})
    if (axes.find("(" + std::string(pair) + ")") != std::string::npos)
      return "'" + axes + "': one of two that share an axis is h";
  return seen.contains('s') && seen.contains('d') ? "" : "'" + axes + "': rows (s) and features (d) are axes";
}

Matched<Match> match_of(const AttentionParts& parts, Node& anchor, MatchContext& context) {
  return Description(parts, anchor, context).match();
}

}  // namespace attn_opt
