// One use of a matcher: captures that are taken back where an alternative fails, and where matching got furthest.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "attn_opt/graph.h"

namespace attn_opt {

/// While one lives, captures are noted. Matchers are plain functions, so that the trial that they belong to is the thread's.
class MatchTrial {
 public:
  /// IS_TOLD: misfits are kept, which costs time.
  explicit MatchTrial(bool is_told);
  ~MatchTrial();
  MatchTrial(const MatchTrial&) = delete;
  MatchTrial& operator=(const MatchTrial&) = delete;

  /// The trial that is under way; null if there is none.
  static MatchTrial* current();

  /// Sets TARGET, which may be null, to VALUE.
  template <class T>
  static void capture(T* target, T value) {
    if (!target) return;
    if (MatchTrial* trial = current()) trial->captures_.push_back([target, old = *target] { *target = old; });
    *target = value;
  }

  /// BOUND, which holds null, is VALUE from now on: what captures into it later must be the same.
  void bind(Value** bound, Value& value);
  /// True if bind() gave TARGET its value.
  bool is_bound(Value* const* target) const { return bound_.contains(target); }

  size_t mark() const { return captures_.size(); }
  /// Takes back what was captured since MARK.
  void roll_back(size_t mark);

  /// Going one node up; the deepest misfit is kept.
  void enter() { ++depth_; }
  void leave() { --depth_; }
  void misfit(const Value& value, const std::string& wanted);
  const Node* furthest() const { return furthest_; }
  const std::string& found() const { return found_; }

 private:
  MatchTrial* outer_;
  bool is_told_;
  std::vector<std::function<void()>> captures_;
  std::set<Value* const*> bound_;
  int depth_ = 0, deepest_ = -1;
  const Node* furthest_ = nullptr;
  std::string found_;
};

}  // namespace attn_opt
