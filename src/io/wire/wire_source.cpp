#include "src/io/wire/wire_source.h"

#include <algorithm>

namespace attn_opt {

WireSource::WireSource(const FileBytes& file) : size_(file.bytes().size()) {
  if (file.descriptor()) {
    file_ = &file;
    buffer_.resize(kWindow);
  } else {
    window_ = file.bytes();
  }
}

void WireSource::fill(uint64_t at) {
  if (file_ == nullptr || at >= size_ || failure_ != 0) return;
  const size_t size = std::min<uint64_t>(kWindow, size_ - at);
  failure_ = read_exactly(file_->descriptor().get(), at, std::as_writable_bytes(std::span(buffer_)).first(size));
  window_at_ = at;
  window_ = std::as_bytes(std::span(buffer_)).first(failure_ == 0 ? size : 0);
}

int WireSource::append_to(std::string& text, uint64_t at, uint64_t size) const {
  const size_t old_size = text.size();
  text.resize(old_size + size);
  const auto to = std::as_writable_bytes(std::span(text)).subspan(old_size);
  if (file_ != nullptr) return read_exactly(file_->descriptor().get(), at, to);
  std::ranges::copy(window_.subspan(at, size), to.begin());
  return 0;
}

}  // namespace attn_opt
