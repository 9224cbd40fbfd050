// Which views of Q, K, V and the output one writing of an attention uses.
#pragma once

#include <cstdint>
#include <functional>

#include "attn_opt/internal/emit.h"
#include "src/emit/layout.h"

namespace attn_opt {

struct WritingPlan {
  IoForm form = IoForm::k4d;
  const OperandView* q = nullptr;
  const OperandView* k = nullptr;
  const OperandView* v = nullptr;
  const OutputView* output = nullptr;
  int cost = 0;          ///< in Reshapes and Transposes that this writing adds; to read a value better not read costs some, too
  int64_t kv_group = 1;  ///< query heads per key/value head
  bool has_past = false;
  bool expands_key_heads = false, expands_value_heads = false;
  bool expands_key_batch = false, expands_value_batch = false;
};

/// Gives WRITE the ways to write SDPA under OPTIONS, the preferred one first, until it returns true. The miss says why
/// there is none.
Matched<void> try_plans(const Sdpa& sdpa, const EmitOptions& options, Facts& facts,
                        const std::function<bool(const WritingPlan&)>& write);

}  // namespace attn_opt
