#include "attn_opt/facts.h"

#include "src/match/facts/fact_store.h"

namespace attn_opt {
Facts::Facts(ModelGraph& view, const TensorStore& tensors, bool assume) : impl_(new Impl(view, tensors)) {
  static const std::set<std::string> kNoEquations;
  if (!assume) impl_->store.assume_only(kNoEquations);
}
Facts::~Facts() = default;

bool Facts::may_assume() const { return impl_->store.may_assume(); }

MaybeShape Facts::shape(const Value& value) { return shape_of(impl_->store.fact(value)); }

DataType Facts::type(const Value& value) { return impl_->store.fact(value).type; }

const IntegerData* Facts::integers(const Value& value) {
  impl_->store.fact(value);
  return impl_->store.elements(value);
}

const IntegerData* Facts::integers_of_each_run(const Value& value) { return impl_->proofs.integers(value); }

MaybeShape Facts::shape_of_each_run(const Value& value) { return impl_->proofs.shape(value); }

void Facts::take_over(const Value& existing, const Value& made) { impl_->store.take_over(existing, made); }

const Tensor* Facts::constant(const Value& value) { return impl_->store.constant(value); }

std::optional<double> Facts::uniform(const Value& value) { return number_in(impl_->store.uniform(value)); }

std::optional<double> Facts::scalar(const Value& value) {
  const MaybeShape dims = shape(value);
  if (!dims || element_count(*dims) != 1) return std::nullopt;
  return number_in(constant(value));
}

const std::vector<SizeAssumption>& Facts::assumptions() const { return impl_->store.assumptions(); }

std::vector<const SizeAssumption*> Facts::assumptions_about(const std::set<std::string>& symbols) const {
  return impl_->store.assumptions_about(symbols);
}

bool Facts::proves(const SizeAssumption& assumption, std::span<Value* const> read) {
  return impl_->proofs.holds(assumption, read);
}

}  // namespace attn_opt
