// Expressions in the dim_params of exporters.
//   sum     = ["-"] product {("+" | " - ") product}
//   product = factor {("*" | "//") factor}
//   factor  = number | name | "(" sum ")" | "floor(" factor "/" factor ")" | ("min" | "max") "(" sum "," sum
//   ")"
#include <cctype>
#include <charconv>
#include <string_view>

#include "attn_opt/dim.h"

namespace attn_opt {
namespace {

constexpr size_t kMaxLength = 256;
constexpr int kMaxNesting = 32;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::optional<Dim> whole() {
    std::optional<Dim> dim = sum();
    skip_blanks();
    return at_ == text_.size() ? dim : std::nullopt;
  }

 private:
  std::optional<Dim> sum() {
    const bool negative = take("-");
    std::optional<Dim> total = product();
    if (total && negative) total = Dim(0) - *total;
    while (total) {
      const bool plus = take("+");
      if (!plus && !take_spaced_minus()) break;
      const std::optional<Dim> next = product();
      total = !next ? std::nullopt : std::optional(plus ? *total + *next : *total - *next);
    }
    return total;
  }

  std::optional<Dim> product() {
    std::optional<Dim> total = factor();
    while (total) {
      const bool division = take("//");
      if (!division && !take("*")) break;
      const std::optional<Dim> next = factor();
      total = !next ? std::nullopt : std::optional(division ? floor_quotient(*total, *next) : *total * *next);
    }
    return total;
  }

  std::optional<Dim> factor() {
    skip_blanks();
    if (at_ == text_.size() || nesting_ >= kMaxNesting) return std::nullopt;
    if (take("(")) return closed(nested());
    if (std::isdigit(static_cast<unsigned char>(text_[at_]))) return number();
    const std::string name = identifier();
    if (name.empty()) return std::nullopt;
    if (!take("(")) return Dim::symbol(name);
    return call(name);
  }

  std::optional<Dim> call(const std::string& function) {
    if (function == "floor") {
      const std::optional<Dim> a = factor();
      if (!a || !take("/")) return std::nullopt;
      const std::optional<Dim> b = factor();
      return b ? closed(floor_quotient(*a, *b)) : std::nullopt;
    }
    const bool smaller = function == "min" || function == "Min";
    if (!smaller && function != "max" && function != "Max") return std::nullopt;
    const std::optional<Dim> a = nested();
    if (!a || !take(",")) return std::nullopt;
    const std::optional<Dim> b = nested();
    return b ? closed(smaller ? minimum(*a, *b) : maximum(*a, *b)) : std::nullopt;
  }

  std::optional<Dim> nested() {
    ++nesting_;
    std::optional<Dim> dim = sum();
    --nesting_;
    return dim;
  }

  std::optional<Dim> closed(std::optional<Dim> dim) { return take(")") ? dim : std::nullopt; }

  std::optional<Dim> number() {
    int64_t value = 0;
    const char* const end = text_.data() + text_.size();
    const auto [rest, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc() || (rest != end && is_name(*rest))) return std::nullopt;
    at_ = static_cast<size_t>(rest - text_.data());
    return Dim(value);
  }

  std::string identifier() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  bool take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  bool take_spaced_minus() {
    skip_blanks();
    return at_ > 0 && text_[at_ - 1] == ' ' && take("- ");
  }

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  static bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == ':';
  }

  std::string_view text_;
  size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace

Dim Dim::parse(const std::string& dim_param) {
  if (dim_param.size() <= kMaxLength) {
    if (std::optional<Dim> dim = Parser(dim_param).whole()) return *std::move(dim);
  }
  return symbol(dim_param);
}

}  // namespace attn_opt
