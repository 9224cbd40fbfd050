// Errors as values.
//
// Every function of attn_opt that can fail on what a user's file holds returns Expected<T>. An Error says what is
// wrong, where in the model or file, and what the user can do. Exceptions of ONNX and protobuf are caught where those
// libraries are called and become Errors there.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace attn_opt {

/// What kind of failure it is; each kind has one exit status (docs/cli.md).
enum class ErrorCode {
  kRequirement,   ///< a requirement of the user's is not met: exit status 1
  kUsage,         ///< the command line is wrong: 2
  kInvalidInput,  ///< the input cannot be read or is not valid ONNX: 3
  kUnsupported,   ///< an operator or type that attn-opt cannot run: 3
  kLimit,         ///< the input is beyond a limit (size, nesting, memory, time): 3
  kMismatch,      ///< numbers differ: 4
  kOutput,        ///< the output cannot be written: 5
};

/// What went wrong.
struct Error {
  ErrorCode code = ErrorCode::kInvalidInput;
  std::string where;   ///< file, node or value; may be empty
  std::string what;    ///< what is wrong
  std::string remedy;  ///< what to do about it; may be empty

  /// "where: what; remedy" on one line.
  std::string message() const;
};

/// A T, or why there is none.
template <class T>
using Expected = tl::expected<T, Error>;
/// Nothing, or what went wrong.
using Status = Expected<void>;

/// An Error, to be returned as an Expected of any type.
inline tl::unexpected<Error> fail(ErrorCode code, std::string where, std::string what, std::string remedy = {}) {
  return tl::unexpected<Error>(Error{code, std::move(where), std::move(what), std::move(remedy)});
}

/// The exit status of a failure of this kind.
int exit_status(ErrorCode code);

}  // namespace attn_opt

#define ATTN_OPT_CONCAT_INNER(a, b) a##b
#define ATTN_OPT_CONCAT(a, b) ATTN_OPT_CONCAT_INNER(a, b)

/// ATTN_OPT_TRY(auto x, expression): x is the expression's value, or the enclosing function returns its error.
#define ATTN_OPT_TRY(declaration, expression) \
  ATTN_OPT_TRY_IMPL(ATTN_OPT_CONCAT(attn_opt_try_, __LINE__), declaration, expression)
#define ATTN_OPT_TRY_IMPL(temporary, declaration, expression)                             \
  auto temporary = (expression);                                                          \
  if (!temporary) return tl::unexpected<::attn_opt::Error>(std::move(temporary.error())); \
  declaration = *std::move(temporary)

/// Returns the error of a Status expression from the enclosing function.
#define ATTN_OPT_CHECK(expression)                                       \
  if (auto attn_opt_status = (expression); attn_opt_status) {            \
  } else /* written so that an else behind the macro keeps its own if */ \
    return tl::unexpected<::attn_opt::Error>(std::move(attn_opt_status.error()))
