// TfIdfVectorizer: counts the n-grams of a pool in rows of integers or strings.
#include <map>

#include "src/exec/families.h"
#include "src/exec/kernel.h"

namespace attn_opt {
namespace {

constexpr int64_t kMostSteps = int64_t{1} << 32;

/// The attributes but for the pool.
struct NgramSettings {
  int64_t shortest = 1, longest = 1;   ///< lengths of n-grams that count
  int64_t most_skipped = 0;            ///< items between neighbours of an n-gram
  std::vector<int64_t> starts;         ///< in the pool, of the n-grams of 1, 2, ... items
  std::vector<int64_t> coordinates;    ///< in the output, of each n-gram
  std::vector<float> weights;          ///< of each n-gram; empty: all 1
  bool counts = true, weighs = false;  ///< mode TF and TFIDF; IDF and TFIDF

  int64_t outputs() const { return *std::ranges::max_element(coordinates) + 1; }
};

Expected<NgramSettings> read_settings(const KernelContext& context) {
  NgramSettings settings;
  settings.shortest = context.attribute_int("min_gram_length", 0);
  settings.longest = context.attribute_int("max_gram_length", 0);
  settings.most_skipped = context.attribute_int("max_skip_count", 0);
  if (settings.shortest < 1 || settings.longest < settings.shortest || settings.most_skipped < 0) {
    return context.invalid("lengths or skips of n-grams are out of range");
  }
  settings.starts = context.attribute_ints("ngram_counts");
  settings.coordinates = context.attribute_ints("ngram_indexes");
  if (settings.coordinates.empty() || *std::ranges::min_element(settings.coordinates) < 0 ||
      *std::ranges::max_element(settings.coordinates) == std::numeric_limits<int64_t>::max()) {
    return context.invalid("ngram_indexes are empty or out of range");
  }
  settings.weights = context.attribute_floats("weights");
  if (!settings.weights.empty() && settings.weights.size() != settings.coordinates.size()) {
    return context.invalid("weights are not one for each n-gram");
  }
  const std::string mode = context.attribute_string("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") return context.invalid("mode " + mode);
  settings.counts = mode != "IDF";
  settings.weighs = mode != "TF";
  return settings;
}

/// N-grams as paths in a tree of items.
template <class Item>
class NgramTree {
 public:
  /// Node of ITEM behind node FROM; -1: none.
  int64_t next(int64_t from, const Item& item) const {
    const auto found = nodes_.find({from, item});
    return found != nodes_.end() ? found->second : -1;
  }
  /// The n-gram that ends at NODE; -1: none.
  int64_t ngram(int64_t node) const { return ngrams_[static_cast<size_t>(node)]; }

  void add(std::span<const Item> items, int64_t ngram) {
    int64_t node = 0;
    for (const Item& item : items) {
      const auto [entry, is_new] = nodes_.try_emplace({node, item}, static_cast<int64_t>(ngrams_.size()));
      if (is_new) ngrams_.push_back(-1);
      node = entry->second;
    }
    ngrams_[static_cast<size_t>(node)] = ngram;
  }

 private:
  std::map<std::pair<int64_t, Item>, int64_t> nodes_;
  std::vector<int64_t> ngrams_{-1};
};

template <class Item>
Expected<NgramTree<Item>> read_pool(const KernelContext& context, const NgramSettings& settings, std::span<const Item> pool) {
  NgramTree<Item> tree;
  int64_t ngram = 0;
  for (size_t i = 0; i < settings.starts.size(); ++i) {
    const auto length = static_cast<int64_t>(i) + 1;
    const int64_t start = settings.starts[i];
    const int64_t end = i + 1 < settings.starts.size() ? settings.starts[i + 1] : static_cast<int64_t>(pool.size());
    if (start < 0 || end < start || end > static_cast<int64_t>(pool.size()) || (end - start) % length != 0) {
      return context.invalid("ngram_counts do not fit the pool");
    }
    for (int64_t at = start; at < end; at += length, ++ngram) {
      if (length < settings.shortest || length > settings.longest) continue;
      tree.add(pool.subspan(static_cast<size_t>(at), static_cast<size_t>(length)), ngram);
    }
  }
  if (ngram > static_cast<int64_t>(settings.coordinates.size())) {
    return context.invalid("ngram_indexes are fewer than the n-grams");
  }
  return tree;
}

/// Adds to COUNTS each n-gram of ROW whose items lie DISTANCE apart.
template <class Item>
void count_ngrams(const NgramTree<Item>& tree, std::span<const Item> row, int64_t distance, int64_t shortest, int64_t longest,
                  std::vector<int64_t>& counts) {
  const auto size = static_cast<int64_t>(row.size());
  for (int64_t start = 0; start < size; ++start) {
    int64_t node = 0;
    int64_t at = start;
    for (int64_t length = 1; length <= longest && at < size; ++length, at += distance) {
      node = tree.next(node, row[static_cast<size_t>(at)]);
      if (node < 0) break;
      const int64_t ngram = tree.ngram(node);
      if (ngram >= 0 && length >= shortest) ++counts[static_cast<size_t>(ngram)];
    }
  }
}

/// OUT's row for ROW. N-grams of one item know no distance: they count once.
template <class Item>
void vectorize(const NgramSettings& settings, const NgramTree<Item>& tree, std::span<const Item> row, std::span<float> out) {
  std::vector<int64_t> counts(settings.coordinates.size(), 0);
  const auto size = static_cast<int64_t>(row.size());
  count_ngrams(tree, row, 1, settings.shortest, settings.longest, counts);
  const int64_t farthest = std::min(settings.most_skipped, size) + 1;
  const int64_t shortest = std::max<int64_t>(settings.shortest, 2);
  for (int64_t distance = 2; distance <= farthest && shortest <= settings.longest; ++distance) {
    count_ngrams(tree, row, distance, shortest, settings.longest, counts);
  }
  for (size_t ngram = 0; ngram < counts.size(); ++ngram) {
    if (counts[ngram] == 0) continue;
    const float weight = settings.weighs && !settings.weights.empty() ? settings.weights[ngram] : 1;
    const auto count = static_cast<float>(settings.counts ? counts[ngram] : 1);
    out[static_cast<size_t>(settings.coordinates[ngram])] += weight * count;
  }
}

template <class Item>
Outputs vectorized(const KernelContext& context, const Tensor& x, std::span<const Item> pool) {
  ATTN_OPT_TRY(const NgramSettings settings, read_settings(context));
  ATTN_OPT_TRY(const auto tree, read_pool(context, settings, pool));
  const bool batched = x.rank() == 2;
  const int64_t rows = batched ? x.dims()[0] : 1;
  const int64_t length = batched ? x.dims()[1] : x.size();
  if (x.rank() > 2 || rows < 1) return context.invalid("input of shape " + print_dims(x.dims()));
  const int64_t passes = std::min(settings.most_skipped, length) + 1;
  if (x.size() > 0 && passes > kMostSteps / x.size()) return context.unsupported("skips in rows of this size");
  const int64_t width = settings.outputs();
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::FLOAT, batched ? Dims{rows, width} : Dims{width}));
  for (int64_t row = 0; row < rows; ++row) {
    vectorize<Item>(settings, tree, x.data<Item>().subspan(static_cast<size_t>(row * length), static_cast<size_t>(length)),
                    out.mutable_data<float>().subspan(static_cast<size_t>(row * width), static_cast<size_t>(width)));
  }
  return single(std::move(out));
}

Outputs tf_idf_vectorizer(const KernelContext& context) {
  const Tensor& x = context.input(0);
  if (x.type() == onnx::TensorProto::STRING) {
    const auto pool = context.attribute_strings("pool_strings");
    if (pool.empty()) return context.invalid("strings without pool_strings");
    return vectorized<std::string>(context, x, pool);
  }
  if (x.type() != onnx::TensorProto::INT32 && x.type() != onnx::TensorProto::INT64) {
    return context.invalid("input of type " + type_name(x.type()));
  }
  const auto pool = context.attribute_ints("pool_int64s");
  if (pool.empty()) return context.invalid("integers without pool_int64s");
  ATTN_OPT_TRY(const Tensor wide, x.cast(onnx::TensorProto::INT64));
  return vectorized<int64_t>(context, wide, pool);
}

}  // namespace

void register_ngrams(KernelRegistry& registry) { registry.add("TfIdfVectorizer", 9, 9, tf_idf_vectorizer); }

}  // namespace attn_opt
