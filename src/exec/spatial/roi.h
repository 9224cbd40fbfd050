// What RoiAlign and MaxRoiPool share: regions of images, each pooled into the same number of bins.
#pragma once

#include "src/exec/kernel.h"

namespace attn_opt {

struct RoiPooling {
  Tensor images, rois;  ///< (N, C, H, W) and a region a row, doubles
  int64_t regions = 0, channels = 0;
  Dims extents, bins;  ///< H and W; of the output
  double scale = 1;    ///< from a region's coordinates to the image's
};

/// Of inputs 0 and 1; a region has COLUMNS values.
Expected<RoiPooling> read_roi_pooling(const KernelContext& context, Dims bins, int64_t columns);

/// Calls pool(roi, image, to) for each region, which is ROI, of IMAGE, number image_of(r, roi); it writes the
/// bins of all channels to TO.
template <class ImageOf, class Pool>
Outputs pool_regions(const KernelContext& context, const RoiPooling& pooling, ImageOf&& image_of, Pool&& pool) {
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::DOUBLE,
                                            {pooling.regions, pooling.channels, pooling.bins[0], pooling.bins[1]}));
  const int64_t images = pooling.images.dims()[0];
  const int64_t image_size = pooling.channels * element_count(pooling.extents);
  const int64_t columns = pooling.rois.dims()[1];
  double* to = out.mutable_data<double>().data();
  for (int64_t r = 0; r < pooling.regions && out.size() > 0; ++r) {
    const double* roi = pooling.rois.data<double>().data() + r * columns;
    const int64_t image = image_of(r, roi);
    if (image < 0 || image >= images) {
      return context.invalid("region " + std::to_string(r) + " is of image " + std::to_string(image) + ", which there is not");
    }
    ATTN_OPT_CHECK(pool(roi, pooling.images.data<double>().data() + image * image_size, to));
    to += out.size() / pooling.regions;
  }
  return single(out.cast(context.input(0).type()));
}

}  // namespace attn_opt
