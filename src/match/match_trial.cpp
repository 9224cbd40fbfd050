#include "src/match/match_trial.h"

#include "src/graph/operator_name.h"

namespace attn_opt {
namespace {

thread_local MatchTrial* under_way = nullptr;

}  // namespace

MatchTrial::MatchTrial(bool is_told) : outer_(under_way), is_told_(is_told) { under_way = this; }
MatchTrial::~MatchTrial() { under_way = outer_; }
MatchTrial* MatchTrial::current() { return under_way; }

void MatchTrial::bind(Value** bound, Value& value) {
  *bound = &value;
  bound_.insert(bound);
  captures_.push_back([this, bound] {
    *bound = nullptr;
    bound_.erase(bound);
  });
}

void MatchTrial::roll_back(size_t mark) {
  for (; captures_.size() > mark; captures_.pop_back()) captures_.back()();
}

void MatchTrial::misfit(const Value& value, const std::string& wanted) {
  if (!is_told_ || depth_ <= deepest_) return;
  deepest_ = depth_;
  furthest_ = value.producer;
  const std::string what = value.producer ? operator_name(*value.producer) : "an input or a constant";
  found_ = "'" + value.name + "' is " + what + ", not " + wanted;
}

}  // namespace attn_opt
