#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "attn_opt/tensor.h"
#include "src/exec/dispatch.h"
#include "src/exec/elementwise/cast_only.h"

namespace attn_opt {
namespace {

/// What x86 gives for values out of range, which ONNX leaves undefined: the lowest value of the signed type
/// that the conversion goes through, then truncation to the target's width.
template <class To>
To to_integer(double value) {
  using Wide = std::conditional_t<(sizeof(To) < 4 || std::is_same_v<To, int32_t>), int32_t, int64_t>;
  if constexpr (std::is_same_v<To, uint64_t>) {
    if (value >= 0x1p63 && value < 0x1p64) return static_cast<uint64_t>(value);
  }
  constexpr double kBound = std::is_same_v<Wide, int32_t> ? 0x1p31 : 0x1p63;
  const bool in_range = value >= -kBound && value < kBound;
  return static_cast<To>(in_range ? static_cast<Wide>(value) : std::numeric_limits<Wide>::min());
}

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    if constexpr (kIsHalf<From>)
      return static_cast<float>(value) != 0.0f;
    else
      return value != From{};
  } else if constexpr (kIsFloat<From> && std::is_integral_v<To>) {
    return to_integer<To>(static_cast<double>(static_cast<Compute<From>>(value)));
  } else if constexpr (kIsHalf<From>) {
    return round_to<To>(static_cast<float>(value));
  } else {
    return round_to<To>(value);
  }
}

std::string print_float(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits).ptr;
  return {text, end};
}

template <class From>
std::string print(From value) {
  if constexpr (std::is_same_v<From, bool>)
    return value ? "1" : "0";
  else if constexpr (std::is_integral_v<From>)
    return std::to_string(value);
  else if constexpr (std::is_same_v<From, double>)
    return print_float(value, 17);
  else
    return print_float(static_cast<float>(value), 8);
}

template <class To>
Expected<Tensor> from_strings(const Tensor& from) {
  Tensor to(data_type_of<To>(), from.dims());
  const auto in = from.data<std::string>();
  const auto out = to.mutable_data<To>();
  for (size_t i = 0; i < in.size(); ++i) {
    const char* begin = in[i].c_str();
    char* end = nullptr;
    if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool>) {
      out[i] = std::is_signed_v<To> ? static_cast<To>(std::strtoll(begin, &end, 10))
                                    : static_cast<To>(std::strtoull(begin, &end, 10));
    } else {
      out[i] = convert<To>(std::strtod(begin, &end));
    }
    if (in[i].empty() || *end != '\0') {
      return fail(ErrorCode::kInvalidInput, "", "Cast: \"" + in[i].substr(0, 40) + "\" is not a number");
    }
  }
  return to;
}

template <class To>
Expected<Tensor> cast_to(const Tensor& from) {
  if (from.type() == onnx::TensorProto::STRING) {
    if constexpr (std::is_same_v<To, std::string>)
      return from;
    else
      return from_strings<To>(from);
  }
  Tensor to(data_type_of<To>(), from.dims());
  const auto fill = [&]<class From>() -> bool {
    if (data_type_of<From>() != from.type()) return false;
    const auto in = from.data<From>();
    const auto out = to.mutable_data<To>();
    for (size_t i = 0; i < in.size(); ++i) {
      if constexpr (std::is_same_v<To, std::string>)
        out[i] = print(in[i]);
      else
        out[i] = convert<To>(in[i]);
    }
    return true;
  };
  const bool known = [&]<class... Ts>(TypeList<Ts...>) { return (fill.template operator()<Ts>() || ...); }(FixedSizeTypes{});
  if (!known) return fail(ErrorCode::kUnsupported, "", "Cast from " + type_name(from.type()));
  return to;
}

}  // namespace

Expected<Tensor> Tensor::cast(DataType to, const CastRules& rules) const {
  if (to == type_) return *this;
  if (is_cast_only(type_)) return decoded(*this).cast(to, rules);
  if (is_cast_only(to)) {
    ATTN_OPT_TRY(const Tensor carrier, cast(is_cast_only_integer(to) ? carrier_of(to) : onnx::TensorProto::DOUBLE));
    return encoded(carrier, to, rules);
  }
  Expected<Tensor> result = fail(ErrorCode::kUnsupported, "", "Cast to " + type_name(to));
  [&]<class... Ts>(TypeList<Ts...>) {
    (void)((data_type_of<Ts>() == to ? (result = cast_to<Ts>(*this), true) : false) || ...);
  }(AllTypes{});
  return result;
}

}  // namespace attn_opt
