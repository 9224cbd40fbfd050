#include "src/trial/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "src/trial/npy_text.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

constexpr std::string_view kMagic = "\x93NUMPY";

struct Header {
  std::string descr;  ///< "<f4": byte order, kind, bytes of an element
  bool fortran_order = false;
  Dims dims;
};

/// What follows KEY in the Python dictionary that a header is.
std::optional<std::string_view> entry(std::string_view text, std::string_view key) {
  const size_t at = text.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size() + 3);
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

std::optional<Dims> parse_shape(std::string_view text) {
  const size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) return std::nullopt;
  Dims dims;
  for (text = text.substr(1, end - 1); !text.empty();) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view number = text.substr(0, comma);
    number.remove_prefix(std::min(number.find_first_not_of(' '), number.size()));
    int64_t dim = -1;
    const auto [parsed, error] = std::from_chars(number.data(), number.data() + number.size(), dim);
    if (error != std::errc() || dim < 0) return std::nullopt;
    dims.push_back(dim);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return dims;
}

std::optional<Header> parse_header(std::string_view text) {
  const auto descr = entry(text, "descr"), order = entry(text, "fortran_order"), shape = entry(text, "shape");
  if (!descr || !order || !shape || !descr->starts_with('\'')) return std::nullopt;
  const auto dims = parse_shape(*shape);
  const size_t quote = descr->find('\'', 1);
  if (!dims || quote == std::string_view::npos) return std::nullopt;
  return Header{std::string(descr->substr(1, quote - 1)), order->starts_with("True"), *dims};
}

std::optional<Header> read_header(const ReadBytes& read) {
  const auto text_of = [&](size_t size) {
    std::string text(size, '\0');
    return read(std::as_writable_bytes(std::span(text))) ? text : std::string();
  };
  const std::string start = text_of(kMagic.size() + 2);
  if (!start.starts_with(kMagic)) return std::nullopt;
  const size_t length_bytes = start[kMagic.size()] == 1 ? 2 : 4;
  const std::string length_text = text_of(length_bytes);
  uint32_t length = 0;
  std::memcpy(&length, length_text.data(), length_text.size());
  constexpr uint32_t kLongest = 1 << 20;
  return length > kLongest ? std::nullopt : parse_header(text_of(length));
}

struct NamedType {
  std::string_view descr;
  DataType type;
};
constexpr NamedType kTypes[] = {
    {"<f4", P::FLOAT}, {"<f8", P::DOUBLE}, {"<f2", P::FLOAT16}, {"|b1", P::BOOL},   {"|i1", P::INT8},   {"<i2", P::INT16},
    {"<i4", P::INT32}, {"<i8", P::INT64},  {"|u1", P::UINT8},   {"<u2", P::UINT16}, {"<u4", P::UINT32}, {"<u8", P::UINT64},
};

DataType type_of(const std::string& descr, DataType declared) {
  for (const auto& [name, type] : kTypes) {
    if (name == descr) return type;
  }
  const std::string size = std::to_string(element_size(declared));
  const bool is_void = descr == "|V" + size || descr == "<V" + size || (descr == "<f1" && size == "1");
  return is_void ? declared : P::UNDEFINED;
}

/// The elements of TENSOR, which come with the first axis running fastest, in row-major order.
Tensor row_major(const Tensor& tensor) {
  Tensor result(tensor.type(), tensor.dims());
  const size_t size = element_size(tensor.type());
  const std::byte* from = tensor.bytes().data();
  std::byte* to = result.mutable_bytes().data();
  Dims at(tensor.dims().size(), 0);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    size_t index = 0;
    for (size_t axis = at.size(); axis-- > 0;) {
      index = index * static_cast<size_t>(tensor.dims()[axis]) + static_cast<size_t>(at[axis]);
    }
    std::memcpy(to + static_cast<size_t>(i) * size, from + index * size, size);
    for (size_t axis = at.size(); axis-- > 0 && ++at[axis] == tensor.dims()[axis];) at[axis] = 0;
  }
  return result;
}

/// Bytes of a string of "<U5" or "|S5"; 0: DESCR is of no strings.
size_t string_width(const std::string& descr) {
  const bool is_utf32 = descr.starts_with("<U"), is_bytes = descr.starts_with("|S");
  size_t characters = 0;
  const char *begin = descr.data() + std::min<size_t>(2, descr.size()), *end = descr.data() + descr.size();
  const auto [parsed, error] = std::from_chars(begin, end, characters);
  constexpr size_t kLongest = size_t{1} << 30;
  if ((!is_utf32 && !is_bytes) || error != std::errc() || parsed != end || characters > kLongest) return 0;
  return is_utf32 ? 4 * characters : characters;
}

Expected<Tensor> read_strings(const std::string& name, const Header& header, size_t width, const ReadBytes& read) {
  Tensor tensor(P::STRING, header.dims);
  std::string cell(width, '\0');
  for (std::string& text : tensor.mutable_data<std::string>()) {
    if (!read(std::as_writable_bytes(std::span(cell)))) return fail(ErrorCode::kInvalidInput, name, "is cut short");
    text = header.descr[1] == 'U' ? utf8_of_utf32(cell) : cell.substr(0, cell.find_last_not_of('\0') + 1);
  }
  return tensor;
}

std::string header_text(const std::string& descr, const Dims& dims) {
  std::string shape;
  for (const int64_t dim : dims) shape += std::to_string(dim) + ",";
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  constexpr size_t kAlignment = 64, kStart = 10;
  text.resize((kStart + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment - kStart - 1, ' ');
  return text + "\n";
}

std::string descr_of(DataType type) {
  for (const auto& [name, known] : kTypes) {
    if (known == type) return std::string(name);
  }
  return "|V" + std::to_string(element_size(type));
}

Status write_header(const std::string& descr, const Dims& dims, const WriteBytes& write) {
  const std::string text = header_text(descr, dims);
  const auto length = static_cast<uint16_t>(text.size());
  std::string start(kMagic);
  start += {'\x01', '\x00', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  return write(start + text);
}

Status write_strings(const Tensor& tensor, const WriteBytes& write) {
  size_t longest = 4;
  for (const std::string& text : tensor.data<std::string>()) longest = std::max(longest, utf32_of_utf8(text).size());
  ATTN_OPT_CHECK(write_header("<U" + std::to_string(longest / 4), tensor.dims(), write));
  for (const std::string& text : tensor.data<std::string>()) {
    std::string cell = utf32_of_utf8(text);
    cell.resize(longest, '\0');
    ATTN_OPT_CHECK(write(cell));
  }
  return {};
}

}  // namespace

Expected<Tensor> read_npy(const std::string& name, const ReadBytes& read, DataType declared, size_t memory_limit) {
  const auto header = read_header(read);
  if (!header) return fail(ErrorCode::kInvalidInput, name, "is not an array of NumPy's");
  const size_t width = string_width(header->descr);
  const DataType type = width > 0 ? P::STRING : type_of(header->descr, declared);
  if (type == P::UNDEFINED) {
    return fail(ErrorCode::kUnsupported, name, "unsupported: NumPy's element type '" + header->descr + "'");
  }
  const int64_t count = element_count(header->dims);
  const size_t size = width > 0 ? width + sizeof(std::string) : element_size(type);
  const bool passes_limit = size > memory_limit || static_cast<uint64_t>(count) > memory_limit / size;
  if (count < 0 || passes_limit) {
    return fail(ErrorCode::kLimit, name, "the array passes the memory limit");
  }
  if (width > 0) return read_strings(name, *header, width, read);
  Tensor tensor(type, header->dims);
  if (!read(tensor.mutable_bytes())) return fail(ErrorCode::kInvalidInput, name, "is cut short");
  return header->fortran_order ? row_major(tensor) : tensor;
}

Status write_npy(const std::string& name, const Tensor& tensor, const WriteBytes& write) {
  if (tensor.type() == P::STRING) return write_strings(tensor, write);
  if (tensor.type() == P::UNDEFINED) return fail(ErrorCode::kOutput, name, "is no tensor: NumPy's archives hold arrays alone");
  ATTN_OPT_CHECK(write_header(descr_of(tensor.type()), tensor.dims(), write));
  const auto bytes = tensor.bytes();
  return write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace attn_opt
