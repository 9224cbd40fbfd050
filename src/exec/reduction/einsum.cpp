// Einsum: operands are contracted from left to right, each pair as one batched matrix product.
#include <map>
#include <set>

#include "src/exec/elementwise/broadcast.h"
#include "src/exec/families.h"
#include "src/exec/layout/copy.h"
#include "src/exec/reduction/matmul.h"
#include "src/io/einsum_equation.h"

namespace attn_opt {
namespace {

/// A letter, or kEllipsis + i for the axis i places from the end of what an ellipsis stands for.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 256;

struct Operand {
  Tensor tensor;
  Labels labels;
};

Expected<EinsumEquation> checked_equation(const KernelContext& context) {
  EinsumEquation equation = einsum_equation(context.attribute_string("equation", ""));
  if (equation.operands.size() != context.inputs.size())
    return context.invalid("the equation is not of as many terms as inputs");
  return equation;
}

/// The labels of TERM; ELLIPSIS: how many axes its "..." stands for.
Expected<Labels> labels_of(const KernelContext& context, const std::string& term, int64_t ellipsis) {
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term.compare(i, 3, "...") == 0) {
      for (int64_t k = ellipsis; k-- > 0;) labels.push_back(kEllipsis + static_cast<int>(k));
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[i])) != 0) {
      labels.push_back(term[i]);
    } else {
      return context.invalid("the term " + term + " is not of letters");
    }
  }
  return labels;
}

int64_t ellipsis_axes(const std::string& term, const Tensor& tensor) {
  return term.find("...") == std::string::npos ? 0 : tensor.rank() - static_cast<int64_t>(term.size()) + 3;
}

/// The diagonal over repeated labels, and the sum over those that KEEP lacks.
Expected<Operand> reduced(const KernelContext& context, const Operand& from, const std::set<Label>& keep) {
  const Dims own = strides_of(from.tensor.dims());
  std::map<Label, std::pair<int64_t, int64_t>> axes;  // extent, stride
  Labels order;
  for (size_t i = 0; i < from.labels.size(); ++i) {
    const auto [entry, is_new] = axes.try_emplace(from.labels[i], from.tensor.dims()[i], 0);
    if (is_new) order.push_back(from.labels[i]);
    if (entry->second.first != from.tensor.dims()[i]) {
      return context.invalid("a repeated label has two extents");
    }
    entry->second.second += own[i];
  }
  Labels kept;
  Dims kept_dims, dims, strides, out_strides;
  for (const Label label : order) {
    if (!keep.contains(label)) continue;
    kept.push_back(label);
    kept_dims.push_back(axes[label].first);
  }
  if (kept == from.labels) return from;
  const Dims kept_strides = strides_of(kept_dims);
  for (const Label label : order) {
    const auto at = std::ranges::find(kept, label) - kept.begin();
    dims.push_back(axes[label].first);
    strides.push_back(axes[label].second);
    out_strides.push_back(keep.contains(label) ? kept_strides[static_cast<size_t>(at)] : 0);
  }
  ATTN_OPT_TRY(Tensor out, context.allocate(from.tensor.type(), kept_dims));
  return dispatch(context, from.tensor.type(), NumericTypes{}, [&]<class T>() -> Expected<Operand> {
    std::vector<Accumulator<T>> sums(static_cast<size_t>(out.size()));
    const auto data = from.tensor.data<T>();
    StridedLoop<2>(dims, {strides, out_strides}).elements([&](const std::array<int64_t, 2>& at) {
      auto& sum = sums[static_cast<size_t>(at[1])];
      sum = static_cast<Accumulator<T>>(sum + static_cast<Compute<T>>(data[static_cast<size_t>(at[0])]));
    });
    std::ranges::transform(sums, out.mutable_data<T>().begin(), [](auto sum) { return round_to<T>(sum); });
    return Operand{std::move(out), kept};
  });
}

Expected<Operand> arranged(const KernelContext& context, const Operand& from, const Labels& labels) {
  std::vector<int64_t> perm;
  for (const Label label : labels) {
    perm.push_back(std::ranges::find(from.labels, label) - from.labels.begin());
  }
  ATTN_OPT_TRY(Tensor tensor, transposed(context, from.tensor, perm));
  return Operand{std::move(tensor), labels};
}

int64_t extent_of(const Operand& operand, const Labels& labels) {
  int64_t extent = 1;
  for (const Label label : labels) {
    extent *= operand.tensor.dims()[static_cast<size_t>(std::ranges::find(operand.labels, label) - operand.labels.begin())];
  }
  return extent;
}

/// Labels by where they occur.
struct PairLabels {
  Labels batch, contracted, left, right;
};

PairLabels classify(const Operand& a, const Operand& b, const std::set<Label>& keep) {
  PairLabels labels;
  for (const Label label : a.labels) {
    const bool shared = std::ranges::find(b.labels, label) != b.labels.end();
    (shared ? (keep.contains(label) ? labels.batch : labels.contracted) : labels.left).push_back(label);
  }
  for (const Label label : b.labels) {
    if (std::ranges::find(a.labels, label) == a.labels.end()) labels.right.push_back(label);
  }
  return labels;
}

Labels joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A and B, whose shared labels have equal extents, summed over labels that KEEP lacks.
Expected<Operand> contracted(const KernelContext& context, const Operand& a, const Operand& b, const std::set<Label>& keep) {
  std::set<Label> in_a(keep), in_b(keep);
  in_a.insert(b.labels.begin(), b.labels.end());
  in_b.insert(a.labels.begin(), a.labels.end());
  ATTN_OPT_TRY(const Operand left, reduced(context, a, in_a));
  ATTN_OPT_TRY(const Operand right, reduced(context, b, in_b));
  const PairLabels labels = classify(left, right, keep);
  ATTN_OPT_TRY(const Operand x, arranged(context, left, joined(joined(labels.batch, labels.left), labels.contracted)));
  ATTN_OPT_TRY(const Operand y, arranged(context, right, joined(joined(labels.batch, labels.contracted), labels.right)));
  const int64_t batch = extent_of(x, labels.batch);
  const int64_t k = extent_of(x, labels.contracted);
  Operand result;
  result.labels = joined(joined(labels.batch, labels.left), labels.right);
  Dims dims;
  for (const Label label : result.labels) {
    const Operand& owner = std::ranges::find(x.labels, label) != x.labels.end() ? x : y;
    dims.push_back(extent_of(owner, {label}));
  }
  ATTN_OPT_TRY(result.tensor, matmul(context, x.tensor.reshaped({batch, extent_of(x, labels.left), k}),
                                     y.tensor.reshaped({batch, k, extent_of(y, labels.right)})));
  result.tensor = result.tensor.reshaped(std::move(dims));
  return result;
}

/// Expands axes of extent 1 whose label is longer elsewhere (only those of an ellipsis may).
Status make_equal(const KernelContext& context, std::vector<Operand>& operands) {
  std::map<Label, int64_t> extents;
  for (const Operand& operand : operands) {
    for (size_t i = 0; i < operand.labels.size(); ++i) {
      int64_t& extent = extents.try_emplace(operand.labels[i], 1).first->second;
      if (extent == 1) extent = operand.tensor.dims()[i];
    }
  }
  for (Operand& operand : operands) {
    Dims dims;
    for (size_t i = 0; i < operand.labels.size(); ++i) {
      const int64_t own = operand.tensor.dims()[i];
      dims.push_back(extents[operand.labels[i]]);
      if (own != dims.back() && own != 1) return context.invalid("a label has two extents");
    }
    ATTN_OPT_TRY(operand.tensor, expand(context, operand.tensor, dims));
  }
  return {};
}

/// Without "->": the ellipsis, then the labels that occur once, in alphabetical order.
std::string implicit_output(const EinsumEquation& equation) {
  std::map<char, int> counts;
  bool ellipsis = false;
  for (const auto& term : equation.operands) {
    for (const char c : term) {
      if (c == '.')
        ellipsis = true;
      else
        ++counts[c];
    }
  }
  std::string output = ellipsis ? "..." : "";
  for (const auto& [label, count] : counts) {
    if (count == 1) output += label;
  }
  return output;
}

Expected<std::vector<Operand>> read_operands(const KernelContext& context, const EinsumEquation& equation, DataType type,
                                             int64_t& ellipsis) {
  std::vector<Operand> operands;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    ATTN_OPT_CHECK(context.same_type(context.input(0), context.input(i)));
    ATTN_OPT_TRY(Tensor tensor, context.input(i).cast(type));
    const int64_t own = ellipsis_axes(equation.operands[i], tensor);
    ATTN_OPT_TRY(Labels labels, labels_of(context, equation.operands[i], own));
    if (own < 0 || static_cast<int64_t>(labels.size()) != tensor.rank()) {
      return context.invalid("term " + equation.operands[i] + " does not fit shape " + print_dims(tensor.dims()));
    }
    ellipsis = std::max(ellipsis, own);
    operands.push_back({std::move(tensor), std::move(labels)});
  }
  return operands;
}

Outputs einsum(const KernelContext& context) {
  ATTN_OPT_TRY(const EinsumEquation equation, checked_equation(context));
  const DataType type = context.input(0).type();
  int64_t ellipsis = 0;
  ATTN_OPT_TRY(auto operands, read_operands(context, equation, product_type(type), ellipsis));
  ATTN_OPT_CHECK(make_equal(context, operands));
  ATTN_OPT_TRY(const Labels output,
               labels_of(context, equation.result ? *equation.result : implicit_output(equation), ellipsis));
  Operand result = std::move(operands[0]);
  for (size_t i = 1; i < operands.size(); ++i) {
    std::set<Label> keep(output.begin(), output.end());
    for (size_t later = i + 1; later < operands.size(); ++later) {
      keep.insert(operands[later].labels.begin(), operands[later].labels.end());
    }
    ATTN_OPT_TRY(result, contracted(context, result, operands[i], keep));
  }
  ATTN_OPT_TRY(result, reduced(context, result, {output.begin(), output.end()}));
  ATTN_OPT_TRY(result, arranged(context, result, output));
  return single(result.tensor.cast(type));
}

}  // namespace

void register_einsum(KernelRegistry& registry) { registry.add("Einsum", 12, 28, einsum); }

}  // namespace attn_opt
