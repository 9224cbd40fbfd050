// STFT and MelWeightMatrix.
#include <array>
#include <cmath>
#include <numbers>

#include "src/exec/families.h"
#include "src/exec/sequence/dft.h"

namespace attn_opt {
namespace {

struct Frames {
  int64_t length = 0, step = 1, count = 0;
  std::vector<double> window;
};

Expected<Frames> read_frames(const KernelContext& context, int64_t signal_length) {
  Frames frames;
  if (context.has(2)) {
    if (context.input(2).rank() != 1) return context.invalid("the window is not a vector");
    ATTN_OPT_TRY(frames.window, context.reals(context.input(2)));
  }
  const auto given = context.has(2) ? static_cast<int64_t>(frames.window.size()) : signal_length;
  ATTN_OPT_TRY(frames.length, context.integer(3, given));
  ATTN_OPT_TRY(frames.step, context.integer(1, 0));
  if (frames.step < 1 || frames.length < 1 || frames.length > signal_length) {
    return context.invalid("frame_step or frame_length is out of range");
  }
  if (!context.has(2)) frames.window.assign(static_cast<size_t>(frames.length), 1);
  if (static_cast<int64_t>(frames.window.size()) != frames.length) {
    return context.invalid("the window is not of frame_length");
  }
  frames.count = (signal_length - frames.length) / frames.step + 1;
  return frames;
}

/// SIGNAL of shape [batch, length, parts] as windowed frames of shape [batch, frames, frame length, parts].
Expected<Tensor> framed(const KernelContext& context, const Tensor& signal, const Frames& frames) {
  const Dims& dims = signal.dims();
  ATTN_OPT_TRY(const Tensor values, signal.cast(onnx::TensorProto::DOUBLE));
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::DOUBLE, {dims[0], frames.count, frames.length, dims[2]}));
  double* to = out.mutable_data<double>().data();
  for (int64_t frame = 0; frame < dims[0] * frames.count; ++frame) {
    const int64_t start = frame / frames.count * dims[1] + frame % frames.count * frames.step;
    const double* from = values.data<double>().data() + start * dims[2];
    for (const double weight : frames.window) {
      for (int64_t part = 0; part < dims[2]; ++part) *to++ = weight * *from++;
    }
  }
  return out;
}

Outputs stft(const KernelContext& context) {
  const Tensor& signal = context.input(0);
  const Dims& dims = signal.dims();
  if (dims.size() != 3 || (dims[2] != 1 && dims[2] != 2)) {
    return context.invalid("signal of shape " + print_dims(dims) + ", not [batch, length, 1 or 2]");
  }
  Transform transform;
  transform.onesided = context.attribute_int("onesided", 1) != 0;
  transform.complex = dims[2] == 2;
  if (transform.onesided && transform.complex) return context.invalid("onesided asks for a real signal");
  ATTN_OPT_TRY(const Frames frames, read_frames(context, dims[1]));
  transform.axis = 2;
  transform.points = transform.in = frames.length;
  ATTN_OPT_TRY(const Tensor windows, framed(context, signal, frames));
  ATTN_OPT_TRY(const Tensor spectra, transformed(context, windows, transform));
  return single(spectra.cast(signal.type()));
}

double mel_of(double hertz) { return 2595 * std::log1p(hertz / 700) / std::numbers::ln10; }
double hertz_of(double mel) { return 700 * std::expm1(mel / 2595 * std::numbers::ln10); }

struct MelBands {
  int64_t bins = 0;            ///< of the mel scale
  int64_t rows = 0;            ///< of the spectrogram
  std::vector<int64_t> edges;  ///< rows where the triangles begin, peak and end: bin b's at b, b + 1, b + 2
};

Expected<MelBands> read_bands(const KernelContext& context) {
  MelBands bands;
  ATTN_OPT_TRY(bands.bins, context.integer(0, 0));
  ATTN_OPT_TRY(const int64_t dft_length, context.integer(1, 0));
  ATTN_OPT_TRY(const int64_t sample_rate, context.integer(2, 0));
  ATTN_OPT_TRY(const auto lower, context.reals(context.input(3)));
  ATTN_OPT_TRY(const auto upper, context.reals(context.input(4)));
  if (bands.bins < 1 || dft_length < 1 || sample_rate < 1 || lower.size() != 1 || upper.size() != 1) {
    return context.invalid("an input is not a positive scalar");
  }
  bands.rows = dft_length / 2 + 1;
  ATTN_OPT_CHECK(context.within_budget(bands.bins, 2 * sizeof(int64_t)));
  const double low = mel_of(lower[0]);
  const double step = (mel_of(upper[0]) - low) / static_cast<double>(bands.bins + 2);
  for (int64_t i = 0; i < bands.bins + 2; ++i) {
    const double hertz = hertz_of(low + static_cast<double>(i) * step);
    const double row = std::floor((static_cast<double>(dft_length) + 1) * hertz / static_cast<double>(sample_rate));
    const bool follows = bands.edges.empty() || row >= static_cast<double>(bands.edges.back());
    if (!(row >= 0 && row < static_cast<double>(bands.rows) && follows)) {
      return context.invalid("the edges in hertz do not lie in the spectrogram");
    }
    bands.edges.push_back(static_cast<int64_t>(row));
  }
  return bands;
}

Outputs mel_weight_matrix(const KernelContext& context) {
  ATTN_OPT_TRY(const MelBands bands, read_bands(context));
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::DOUBLE, {bands.rows, bands.bins}));
  const auto weights = out.mutable_data<double>();
  const auto part = [](int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
  for (int64_t bin = 0; bin < bands.bins; ++bin) {
    const auto [begin, peak, end] = std::array{bands.edges[static_cast<size_t>(bin)], bands.edges[static_cast<size_t>(bin) + 1],
                                               bands.edges[static_cast<size_t>(bin) + 2]};
    const auto weight = [&](int64_t row) -> double& { return weights[static_cast<size_t>(row * bands.bins + bin)]; };
    for (int64_t row = begin; row < peak; ++row) weight(row) = part(row - begin, peak - begin);
    weight(peak) = 1;
    for (int64_t row = peak + 1; row < end; ++row) weight(row) = part(end - row, end - peak);
  }
  const auto type = static_cast<DataType>(context.attribute_int("output_datatype", onnx::TensorProto::FLOAT));
  return single(out.cast(type));
}

}  // namespace

void register_signal(KernelRegistry& registry) {
  registry.add("STFT", 17, 17, stft);
  registry.add("MelWeightMatrix", 17, 17, mel_weight_matrix);
}

}  // namespace attn_opt
