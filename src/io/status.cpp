#include "attn_opt/status.h"

namespace attn_opt {

std::string Error::message() const {
  std::string text = where.empty() ? what : where + ": " + what;
  if (!remedy.empty()) text += "; " + remedy;
  return text;
}

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kRequirement: return 1;
    case ErrorCode::kUsage: return 2;
    case ErrorCode::kInvalidInput:
    case ErrorCode::kUnsupported:
    case ErrorCode::kLimit: return 3;
    case ErrorCode::kMismatch: return 4;
    case ErrorCode::kOutput: return 5;
  }
  return 3;
}

}  // namespace attn_opt
