// The steps that make a case smaller, each kept only if the case still holds.
#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "src/cli/cases/case_cut.h"

namespace attn_opt {

/// Asks whether a model still shows what a case is made for. After its deadline none does, so that what was found by then
/// stays; who tries many models stops at is_over().
class CaseTest {
 public:
  using Clock = std::chrono::steady_clock;

  CaseTest(std::function<bool(const onnx::ModelProto&)> holds, Clock::time_point deadline)
      : holds_(std::move(holds)), deadline_(deadline) {}

  bool is_over() const { return Clock::now() >= deadline_; }
  bool operator()(const onnx::ModelProto& model) const { return !is_over() && holds_(model); }

 private:
  std::function<bool(const onnx::ModelProto&)> holds_;
  Clock::time_point deadline_;
};

/// Shapes and axes, without which a site is matched but cannot be verified.
enum class Integers { kMayBeInputs, kStay };

/// Cuts producers off, leaves nodes and outputs out, makes constants inputs and sizes small.
void shrink(CaseModel& model, const CaseTest& holds, Integers integers);

/// Sizes above 4 in inputs and in integer constants replaced by small ones, products of them by the products.
void shrink_sizes(CaseModel& model, const CaseTest& holds);

}  // namespace attn_opt
