// The steps that make a case smaller, each kept only if the case still holds.
#pragma once

#include <functional>

#include "src/cli/case_cut.h"

namespace attn_opt {

/// True if a model still shows what a case is made for.
using CaseTest = std::function<bool(const onnx::ModelProto&)>;

/// Shapes and axes, without which a site is matched but cannot be verified.
enum class Integers { kMayBeInputs, kStay };

/// Cuts producers off, leaves nodes and outputs out, makes constants inputs and sizes small.
void shrink(CaseModel& model, const CaseTest& holds, Integers integers);

/// Sizes above 4 in inputs and in integer constants replaced by small ones, products of them by the products.
void shrink_sizes(CaseModel& model, const CaseTest& holds);

}  // namespace attn_opt
