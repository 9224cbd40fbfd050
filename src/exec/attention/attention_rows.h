// Moving rows of Q, K, V and Y between a tensor's type and the type that is computed in.
#pragma once

#include "src/exec/attention/attention.h"

namespace attn_opt {

/// COUNT rows of WIDTH elements, the first of which begins at element OFFSET, one after the other in BUFFER.
template <class C>
void convert_rows(const HeadRows& rows, int64_t offset, int64_t count, int64_t width, C* buffer);

/// COUNT rows of WIDTH elements from POSITION on: in place where they have type C, else converted into BUFFER.
template <class C>
struct RowBlock {
  const C* data = nullptr;
  int64_t stride = 0;
};
template <class C>
RowBlock<C> load_rows(const HeadRows& rows, int64_t batch, int64_t head, int64_t position, int64_t count, int64_t width,
                      C* buffer) {
  const int64_t offset = rows.layout.offset(batch, head, position);
  if (rows.type == data_type_of<C>()) return {reinterpret_cast<const C*>(rows.data) + offset, rows.layout.row_stride};
  convert_rows(rows, offset, count, width, buffer);
  return {buffer, width};
}

/// Writes COUNT values to element OFFSET of TO, rounded to its type.
template <class C>
void store_row(const C* from, int64_t count, Tensor& to, int64_t offset);

}  // namespace attn_opt
