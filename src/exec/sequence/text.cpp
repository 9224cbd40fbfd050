// Operators on strings: StringConcat, StringSplit, StringNormalizer, RegexFullMatch.
#include <unordered_set>

#ifdef ATTN_OPT_HAS_RE2
#include <re2/re2.h>
#endif

#include "src/exec/elementwise/broadcast.h"
#include "src/exec/families.h"
#include "src/exec/sequence/utf8.h"

namespace attn_opt {
namespace {

using Words = std::vector<std::string_view>;

Status check_strings(const KernelContext& context) {
  for (const Tensor& input : context.inputs) {
    if (input.type() != onnx::TensorProto::STRING) {
      return context.invalid("expected strings, not " + type_name(input.type()));
    }
  }
  return {};
}

Outputs concat_strings(const KernelContext& context) {
  ATTN_OPT_CHECK(check_strings(context));
  const Tensor& a = context.input(0);
  const Tensor& b = context.input(1);
  ATTN_OPT_TRY(Dims dims, broadcast_dims(context, a.dims(), b.dims()));
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::STRING, std::move(dims)));
  double bytes = 0;
  for (const Tensor* part : {&a, &b}) {
    for (const std::string& text : part->data<std::string>()) {
      bytes += static_cast<double>(text.size()) * static_cast<double>(out.size()) / static_cast<double>(part->size());
    }
  }
  ATTN_OPT_CHECK(context.within_budget(static_cast<int64_t>(std::min(bytes, 0x1p62)), 1));
  broadcast_apply<std::string, std::string, std::string>(a, b, out,
                                                         [](const std::string& x, const std::string& y) { return x + y; });
  return single(std::move(out));
}

/// TEXT without white space at its start.
std::string_view trimmed_start(std::string_view text) {
  while (!text.empty()) {
    const auto point = first_code_point(text);
    if (!point || !is_white_space(point->value)) break;
    text.remove_prefix(point->bytes);
  }
  return text;
}

/// The length of TEXT's first word, which ends before white space.
size_t word_length(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    const auto point = first_code_point(text.substr(length));
    if (point && is_white_space(point->value)) break;
    length += point ? point->bytes : 1;
  }
  return length;
}

std::string_view trimmed_end(std::string_view text) {
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const auto point = first_code_point(text.substr(at));
    at += point ? point->bytes : 1;
    if (!point || !is_white_space(point->value)) end = at;
  }
  return text.substr(0, end);
}

/// At most MOST + 1 words between runs of white space.
Words split_at_white_space(std::string_view text, int64_t most) {
  Words words;
  for (text = trimmed_start(text); !text.empty(); text = trimmed_start(text)) {
    const bool last = static_cast<int64_t>(words.size()) == most;
    const std::string_view word = last ? trimmed_end(text) : text.substr(0, word_length(text));
    words.push_back(word);
    text.remove_prefix(last ? text.size() : word.size());
  }
  return words;
}

Words split_at(std::string_view text, std::string_view delimiter, int64_t most) {
  Words words;
  while (static_cast<int64_t>(words.size()) != most) {
    const size_t end = text.find(delimiter);
    if (end == std::string_view::npos) break;
    words.push_back(text.substr(0, end));
    text.remove_prefix(end + delimiter.size());
  }
  words.push_back(text);
  return words;
}

Outputs split_strings(const KernelContext& context) {
  ATTN_OPT_CHECK(check_strings(context));
  const Tensor& x = context.input(0);
  const std::string delimiter = context.attribute_string("delimiter", "");
  const int64_t most = context.attribute_int("maxsplit", -1);
  const auto words_of = [&](const std::string& text) {
    return delimiter.empty() ? split_at_white_space(text, most) : split_at(text, delimiter, most);
  };
  ATTN_OPT_TRY(Tensor counts, context.allocate(onnx::TensorProto::INT64, x.dims()));
  int64_t longest = 0;
  size_t i = 0;
  for (const std::string& text : x.data<std::string>()) {
    const auto count = static_cast<int64_t>(words_of(text).size());
    counts.mutable_data<int64_t>()[i++] = count;
    longest = std::max(longest, count);
  }
  Dims dims = x.dims();
  dims.push_back(longest);
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::STRING, std::move(dims)));
  auto to = out.mutable_data<std::string>().begin();
  for (const std::string& text : x.data<std::string>()) {
    std::ranges::copy(words_of(text), to);
    to += longest;
  }
  return std::vector<Tensor>{std::move(out), std::move(counts)};
}

using CaseChange = std::optional<std::string> (*)(std::string_view);

/// Null for NONE.
Expected<CaseChange> case_change(const KernelContext& context) {
  const std::string action = context.attribute_string("case_change_action", "NONE");
  if (action == "NONE") return nullptr;
  if (action == "UPPER") return upper_case;
  if (action == "LOWER") return lower_case;
  return context.invalid("case_change_action " + action + " is not NONE, UPPER or LOWER");
}

/// Turkic and Lithuanian alphabets pair letters in their own way; for all others one table serves.
bool has_letters_of_its_own(const std::string& locale) {
  const std::string language = locale.substr(0, locale.find_first_of("_-."));
  return language == "tr" || language == "az" || language == "lt";
}

Outputs normalize_strings(const KernelContext& context) {
  ATTN_OPT_CHECK(check_strings(context));
  const Tensor& x = context.input(0);
  if (x.rank() < 1 || x.rank() > 2 || (x.rank() == 2 && x.dims()[0] != 1)) {
    return context.invalid("input of shape " + print_dims(x.dims()) + ", not [C] or [1, C]");
  }
  const std::string locale = context.attribute_string("locale", "en_US");
  if (has_letters_of_its_own(locale)) return context.unsupported("locale " + locale);
  ATTN_OPT_TRY(const CaseChange change, case_change(context));
  const bool exact = context.attribute_int("is_case_sensitive", 0) != 0;
  const auto changed = [&](const std::string& text, CaseChange by) -> Expected<std::string> {
    if (by == nullptr) return text;
    if (auto result = by(text)) return *std::move(result);
    return context.invalid("a string is not UTF-8");
  };
  const CaseChange folding = exact ? nullptr : (change != nullptr ? change : lower_case);
  std::unordered_set<std::string> stopwords;
  for (const std::string& word : context.attribute_strings("stopwords")) {
    ATTN_OPT_TRY(std::string folded, changed(word, folding));
    stopwords.insert(std::move(folded));
  }
  std::vector<std::string> kept;
  for (const std::string& text : x.data<std::string>()) {
    if (!stopwords.empty()) {
      ATTN_OPT_TRY(const std::string folded, changed(text, folding));
      if (stopwords.contains(folded)) continue;
    }
    ATTN_OPT_TRY(std::string result, changed(text, change));
    kept.push_back(std::move(result));
  }
  if (kept.empty()) kept.emplace_back();
  Dims dims = x.dims();
  dims.back() = static_cast<int64_t>(kept.size());
  return single(Tensor::of<std::string>(std::move(dims), kept));
}

Outputs regex_full_match(const KernelContext& context) {
#ifdef ATTN_OPT_HAS_RE2
  ATTN_OPT_CHECK(check_strings(context));
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 pattern(context.attribute_string("pattern", ""), options);
  if (!pattern.ok()) return context.invalid("pattern: " + pattern.error());
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::BOOL, x.dims()));
  std::ranges::transform(x.data<std::string>(), out.mutable_data<bool>().begin(),
                         [&](const std::string& text) { return RE2::FullMatch(text, pattern); });
  return single(std::move(out));
#else
  return context.unsupported("patterns: built without RE2");
#endif
}

}  // namespace

void register_text(KernelRegistry& registry) {
  registry.add("StringConcat", 20, 20, concat_strings);
  registry.add("StringSplit", 20, 20, split_strings);
  registry.add("StringNormalizer", 10, 10, normalize_strings);
  registry.add("RegexFullMatch", 20, 20, regex_full_match);
}

}  // namespace attn_opt
