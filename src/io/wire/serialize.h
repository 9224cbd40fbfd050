// The one way in which models are written: spliced and plain outputs are the same bytes.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message_lite.h>

namespace attn_opt {

/// Appends MESSAGE, unchanged since its ByteSizeLong() was last asked for, to STREAM, entries of maps in order.
inline void serialize(const google::protobuf::MessageLite& message, google::protobuf::io::ZeroCopyOutputStream& stream) {
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeWithCachedSizes(&coded);
}

}  // namespace attn_opt
