#include "patterns/contrib/projected_reader.h"

#include "src/graph/operator_name.h"

namespace attn_opt {
namespace {

enum ProjectedOutput { kProjectedResult, kProjectedPresent };

}  // namespace

ProjectedReader::ProjectedReader(Node& node, MatchContext& context, const ProjectedInputs& at)
    : node_(node),
      context_(context),
      facts_(context.facts),
      inner_(node, context),
      at_(at),
      heads_(node.int_attribute("num_heads", 0)) {}

Matched<Match> ProjectedReader::read() {
  ATTN_OPT_DONE(refuse());
  ATTN_OPT_DONE(check_operands());
  ATTN_OPT_DONE(read_sizes());
  Match match;
  match.anchor = match.insert_before = &node_;
  match.peeled = {operator_name(node_)};
  match.has_past = node_.input(at_.past) != nullptr;
  ATTN_OPT_MATCH(ContribOperands operands, projected());
  join_caches(operands, match);
  const ContribMasking masking{node_.input(at_.mask), node_.float_attribute("mask_filter_value", -10000),
                               node_.int_attribute("unidirectional", 0) == 1, true, true};
  Value* const bias = node_.input(at_.attention_bias);
  ATTN_OPT_DONE(describe_contrib(operands, masking, bias, scores_, node_, context_, inner_, match.sdpa));
  return match;
}

Matched<void> ProjectedReader::refuse() const {
  if (!node_.output(kProjectedResult)) return missed(std::string(kNotAttention), &node_, "");
  if (node_.int_attribute("do_rotary", 0) != 0)
    return missed("contrib-attention.rotary", &node_, "do_rotary, whose caches the node makes itself");
  if (node_.input(at_.past_length) || node_.int_attribute("past_present_share_buffer", 0) != 0)
    return missed("contrib-attention.shared-buffer", &node_, "past and present are one buffer");
  return {};
}

Matched<void> ProjectedReader::read_sizes() {
  const Shape &x = facts_.shape(*node_.inputs[kX]).known(), &weights = facts_.shape(*node_.inputs[kWeights]).known();
  if (const auto* sizes = node_.ints_attribute("qkv_hidden_sizes")) sizes_.assign(sizes->begin(), sizes->end());
  const Dim& width = weights[1];
  if (sizes_.empty() && width.is_constant()) sizes_.assign(3, width.value() / 3);
  const bool fit = sizes_.size() == 3 && heads_ > 0 && sizes_[0] == sizes_[1] && sizes_[0] > 0 && sizes_[2] > 0 &&
                   sizes_[0] % heads_ == 0 && sizes_[2] % heads_ == 0;
  if (!fit)
    return missed("contrib.shape", &node_, "weights " + to_string(weights) + " for " + std::to_string(heads_) + " heads");
  scores_.type = facts_.type(*node_.inputs[at_.typed]);
  scores_.batch = x[0];
  scores_.heads = heads_;
  scores_.queries = scores_.new_keys = x[1];
  scores_.batch_size = inner_.size(*node_.inputs[kX], 0);
  scores_.query_count = scores_.key_count = inner_.size(*node_.inputs[kX], 1);
  if (!node_.input(at_.past)) return {};
  scores_.past = facts_.shape(*node_.inputs[at_.past]).known()[3];
  scores_.past_count = inner_.size(*node_.inputs[at_.past], 3);
  scores_.key_count = inner_.sum(scores_.past_count, scores_.key_count);
  return {};
}

Matched<ContribOperands> ProjectedReader::projected() {
  const auto parts = inner_.split(project(), sizes_, 2);
  ContribOperands made;
  size_t part = 0;
  for (OperandView* view : {&made.q, &made.k, &made.v}) {
    ATTN_OPT_MATCH(AxisMap axes, merged_axes(node_, scores_.batch, scores_.queries, heads_, sizes_[part] / heads_));
    *view = {parts[part++], std::move(axes)};
  }
  return made;
}

/// With a past K and V are what the present stacks; so they are if a present is read.
void ProjectedReader::join_caches(ContribOperands& operands, Match& match) {
  Value* present = node_.output(kProjectedPresent);
  const bool is_read = present && !present->unused();
  std::vector<Value*> past;
  if (Value* given = node_.input(at_.past)) past = inner_.split(given, {1, 1}, 0);
  if (past.empty() && !is_read) return;
  std::vector<Value*> stacked;
  for (size_t part : {0, 1}) {
    OperandView& view = part == 0 ? operands.k : operands.v;
    const int64_t size = sizes_[part + 1] / heads_;
    Value* rows = inner_.transposed(inner_.reshaped(view.value, {0, 0, heads_, size}), {0, 2, 1, 3});
    if (!past.empty()) {
      Value* before = inner_.build().along("Squeeze", *past[part], {0});
      rows = inner_.concat({before, rows}, 2);
    }
    view = {rows, AxisMap::of({scores_.batch, heads_, scores_.keys(), size},
                              {Role::kBatch, Role::kHead, Role::kRow, Role::kFeature})};
    stacked.push_back(inner_.unsqueezed(rows, {0}));
  }
  if (is_read) match.copies.push_back({present, inner_.concat(stacked, 0)});
}

}  // namespace attn_opt
