// Expressions in the dim_params of exporters.
//   sum      = ["-"] product {("+" | " - ") product}
//   product  = power {("*" | "//" | "%") power}
//   power    = factor ["**" number]
//   factor   = number | name | "(" sum ")" | "floor(" factor "/" factor ")" | binary "(" sum "," sum ")" | rounding "("
//   quotient ")" binary   = "min" | "max" | "FloorDiv" | "CleanDiv" | "CeilDiv" | "Mod" | "PythonMod"   (or "Min", "Max")
//   rounding = "CeilToInt" | "FloorToInt" | "TruncToInt"
//   quotient = ("FloatTrueDiv" | "IntTrueDiv") "(" sum ["- 0.5" | "+ 0.5"] "," sum ")"
// A number may be written as a float (2.0), and "ToFloat(" sum ")" is its sum. A divisor is a size: it is taken to be positive.
#include <cctype>
#include <charconv>
#include <string_view>
#include <unordered_map>

#include "attn_opt/dim.h"

namespace attn_opt {
namespace {

constexpr size_t kMaxLength = 2048;
constexpr int kMaxNesting = 32;
constexpr int64_t kMaxExponent = 4;

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
    while (total && !is_before_fraction()) {
      const bool plus = take("+");
      if (!plus && !take_spaced_minus()) break;
      const std::optional<Dim> next = product();
      total = !next ? std::nullopt : std::optional(plus ? *total + *next : *total - *next);
    }
    return total;
  }

  std::optional<Dim> product() {
    std::optional<Dim> total = power();
    while (total) {
      const char operation = take("//") ? '/' : take("%") ? '%' : take("*") ? '*' : 0;
      if (operation == 0) break;
      const std::optional<Dim> next = power();
      if (!next) return std::nullopt;
      total = operation == '/' ? floor_quotient(*total, *next) : operation == '%' ? remainder(*total, *next) : *total * *next;
    }
    return total;
  }

  std::optional<Dim> power() {
    std::optional<Dim> base = factor();
    if (!base || !take("**")) return base;
    skip_blanks();
    const std::optional<Dim> exponent = number();
    if (!exponent || exponent->value() < 1 || exponent->value() > kMaxExponent) return std::nullopt;
    Dim result = *base;
    for (int64_t i = 1; i < exponent->value(); ++i) result = result * *base;
    return result;
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
    if (function == "ToFloat") return closed(nested());
    if (function == "CeilToInt") return closed(true_quotient(ceiling));
    if (function == "FloorToInt") return closed(true_quotient(floor_quotient));
    if (function == "TruncToInt") return closed(true_quotient(truncated));
    static const std::unordered_map<std::string_view, Dim (*)(const Dim&, const Dim&)> kBinary = {{"min", minimum},
                                                                                                  {"Min", minimum},
                                                                                                  {"max", maximum},
                                                                                                  {"Max", maximum},
                                                                                                  {"FloorDiv", floor_quotient},
                                                                                                  {"CleanDiv", floor_quotient},
                                                                                                  {"CeilDiv", ceiling},
                                                                                                  {"Mod", remainder},
                                                                                                  {"PythonMod", remainder}};
    const auto binary = kBinary.find(function);
    return binary == kBinary.end() ? std::nullopt : closed(applied(*binary->second));
  }

  /// OPERATION of what stands between the parenthesis that was read and a comma, and of what follows to the next one.
  template <class Operation>
  std::optional<Dim> applied(const Operation& operation) {
    const std::optional<Dim> a = nested();
    if (!a || !take(",")) return std::nullopt;
    const std::optional<Dim> b = nested();
    return b ? std::optional<Dim>(operation(*a, *b)) : std::nullopt;
  }

  /// The quotient of two sizes in floats, which ROUNDED makes an integer.
  template <class Rounded>
  std::optional<Dim> true_quotient(const Rounded& rounded) {
    if (!take("FloatTrueDiv(") && !take("IntTrueDiv(")) return std::nullopt;
    const std::optional<Dim> a = nested();
    std::optional<Dim> offset = a ? rounded_fraction(rounded) : std::nullopt;
    if (!offset || !take(",")) return std::nullopt;
    const std::optional<Dim> b = nested();
    return b ? closed(rounded(*a + *offset, *b)) : std::nullopt;
  }

  /// True in front of "- 0.5", or of "+ 0.5": what is added to a dividend so that it lies between two integers.
  bool is_before_fraction() {
    skip_blanks();
    const std::string_view rest = text_.substr(at_);
    return rest.starts_with("- 0.5") || rest.starts_with("+ 0.5");
  }

  /// A quotient is ROUNDED the same if its dividend is before: 0 or 1 of a half. 0 if no half follows.
  ///   ceil((x - 0.5) / y) = ceil(x / y)        floor((x - 0.5) / y) = floor((x - 1) / y)
  template <class Rounded>
  std::optional<Dim> rounded_fraction(const Rounded& rounded) {
    if (!is_before_fraction()) return Dim(0);
    const bool is_plus = take("+ 0.5");
    if (!is_plus && !take("- 0.5")) return std::nullopt;
    if (at_ != text_.size() && is_name(text_[at_])) return std::nullopt;
    if (rounded == ceiling) return Dim(is_plus ? 1 : 0);
    return rounded == floor_quotient ? std::optional(Dim(is_plus ? 0 : -1)) : std::nullopt;
  }

  static Dim remainder(const Dim& a, const Dim& b) { return a - b * floor_quotient(a, b); }
  static Dim ceiling(const Dim& a, const Dim& b) { return floor_quotient(a + b - 1, b); }
  /// Rounds towards 0.
  static Dim truncated(const Dim& a, const Dim& b) {
    return a.never_negative() ? floor_quotient(a, b) : maximum(floor_quotient(a, b), 0) + minimum(ceiling(a, b), 0);
  }

  std::optional<Dim> nested() {
    ++nesting_;
    std::optional<Dim> dim = sum();
    --nesting_;
    return dim;
  }

  std::optional<Dim> closed(std::optional<Dim> dim) { return take(")") ? std::move(dim) : std::nullopt; }

  std::optional<Dim> number() {
    int64_t value = 0;
    const char* const end = text_.data() + text_.size();
    const auto [rest, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc()) return std::nullopt;
    at_ = static_cast<size_t>(rest - text_.data());
    if (text_.substr(at_).starts_with(".0")) at_ += 2;
    return at_ != text_.size() && is_name(text_[at_]) ? std::nullopt : std::optional<Dim>(value);
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

  static bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == ':'; }

  std::string_view text_;
  size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace

Dim Dim::parse(const std::string& dim_param) {
  if (dim_param.size() <= kMaxLength) {
    // "-1" is the name that some tools give to what they do not know.
    if (std::optional<Dim> dim = Parser(dim_param).whole(); dim && dim->may_be_size()) return *std::move(dim);
  }
  return symbol(dim_param);
}

}  // namespace attn_opt
