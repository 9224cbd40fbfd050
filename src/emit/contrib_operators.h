// What MultiHeadAttention and GroupQueryAttention of com.microsoft have in common.
#pragma once

#include "src/emit/operators.h"

namespace attn_opt {

/// The miss "target.contrib" of SITE: what the operator has no place for.
tl::unexpected<Miss> beyond_contrib(const Site& site, std::string found);
/// What neither operator has.
Matched<void> check_contrib(const WritingPlan& plan, Site& site);
/// A row that the masks leave no key is NaN, as a softmax makes it; the description may have it 0.
Matched<void> check_empty_rows(const Causality& causality, Site& site);
/// True if rows that the masks may leave no key are 0.
bool has_empty_rows(const Site& site);
/// Y of NODE, 0 in the rows that its mask leaves no key if such are to be 0. Miss "target.contrib": each head has a mask.
Matched<Value*> with_empty_rows_zero(Node& node, const NodeParts& parts, Site& site);
/// Features of each head as a number; nullopt if they are a symbol.
std::optional<int64_t> head_size(const OperandView& view);
/// VALUE, integers, as int32.
Value* as_int32(Value* value, Site& site);

}  // namespace attn_opt
