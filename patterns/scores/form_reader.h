// Reads values as forms (score_form.h), an operator at a time: the equation of each stands above it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "attn_opt/pattern.h"
#include "patterns/scores/score_form.h"

namespace attn_opt {

class FormReader {
 public:
  /// What is made for conditions that the graph has no booleans for stands above READER.
  FormReader(Node& reader, MatchContext& context) : reader_(&reader), context_(&context), facts_(context.facts) {}
  /// Reads linear_terms() alone; of what is multiplied with a number too if FOLLOWS_FACTORS.
  explicit FormReader(Facts& facts, bool follows_factors = false) : facts_(facts), follows_factors_(follows_factors) {}

  /// Scores may be taken to be less than numbers far above 0: the least of those that bound them is entered in CLAMP.
  void take_bounds(std::optional<double>& clamp) { clamp_ = &clamp; }
  /// VALUE, made elementwise of CORE and others; nullopt if it is no form of CORE.
  std::optional<ScoreForm> in_terms_of(Value& core, Value& value);
  /// What NODE makes of its operand number CORE, whatever that has in common with the others.
  std::optional<ScoreForm> one_step(Node& node, size_t core);
  /// VALUE as numbers by conditions: ones and zeros cast from booleans, 1 - m, Where(m, 0, -1e4), a constant of 0 and another
  /// number. Nullopt if it may hold others.
  std::optional<ScoreForm> numbers(Value& value);
  /// ADDENDS together, as numbers() says of each; what is KNOWN may tell the number that a constant is.
  std::optional<ScoreForm> numbers(std::span<const Addend> addends, const Known& known = {});
  /// The number that ADDENDS come to together where that is KNOWN.
  std::optional<double> number_where(std::span<const Addend> addends, const Known& known);
  /// What is added to the core in the case INDEX of FORM; NaN if it is more than a number.
  double number_added(const ScoreForm& form, size_t index);
  /// FORM, of what MOVE reads, as that of what it makes; nullopt where a mask is broadcast to what is regrouped.
  std::optional<ScoreForm> behind_move(ScoreForm form, const Node& move);
  /// What SUM adds up, as often as their coefficients say, seen through nodes that change nothing, without zeros; itself if it
  /// adds nothing up. At most about 16.
  std::vector<Addend> linear_terms(Value& sum);

 private:
  std::optional<ScoreForm> read(Value& value, Value* core);
  ScoreForm sum_or_value(Value& value);
  ScoreForm sum_of(Value& value);
  std::optional<ScoreForm> computed(Value& value, Value* core);
  std::optional<ScoreForm> operand(const Node& node, size_t number, Value* core);
  std::optional<ScoreForm> total(const Node& node, Value* core);
  std::optional<ScoreForm> multiplied(const Node& node, Value* core);
  std::optional<ScoreForm> chosen(const Node& node, Value* core);
  std::optional<ScoreForm> laid_over(const Node& node, Value* core);
  std::optional<ScoreForm> bounded(const Node& node);
  std::optional<ScoreForm> moved(Node& node);
  Value* moved(Value& condition, const Node& node);
  std::optional<ScoreForm> one_or_zero(Value& value);
  std::optional<ScoreForm> either_number(Value& value);
  bool holds(Value& value, const Value& core);
  Literal literal(Value& condition);

  Node* reader_ = nullptr;
  MatchContext* context_ = nullptr;
  Facts& facts_;
  bool follows_factors_ = false;
  std::optional<double>* clamp_ = nullptr;
  int depth_ = 0;
  std::map<std::pair<Value*, Value*>, std::optional<ScoreForm>> known_;
  std::map<std::pair<Value*, const Value*>, bool> holds_;
};

/// The values that SUM adds up once each, as linear_terms() says; SUM itself if it adds something else.
std::vector<Value*> addends_of(Value& sum, Facts& facts);

/// True if VALUE is 0 wherever what it is made of is finite: 0 times a value, or one less itself.
bool is_nothing(Value& value, Facts& facts);

/// The operands of NODE that a form follows, by number; empty if it is no operator of forms.
std::vector<size_t> form_operands(const Node& node);
/// The nearest of VALUE and what it is made of by operators of forms that FITS; null if none does.
Value* nearest_source(Value& value, const std::function<bool(Value&)>& fits, Facts& facts);
/// The nearest value that both ONE and OTHER are made of by operators of forms, and that FITS; null if there is none.
Value* common_source(Value& one, Value& other, const std::function<bool(Value&)>& fits, Facts& facts);

}  // namespace attn_opt
