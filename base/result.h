// SPDX-License-Identifier: Apache-2.0
//
// Result<T>: a value, or an Error that says what was wanted, what was found and where.
//
// Domain outcomes ("does not fit") are values, never Errors. Errors are the failures that a caller
// must expect: bad input, a lost race, an unreachable peer. Messages are lower case without a full
// stop and begin with the place: "nodes[3].name: want a DNS-1123 name, got \"\"".
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace berth {

enum class Errc {
  kInvalidArgument,  // the input is wrong: sending it again changes nothing
  kNotFound,         // what the request names does not exist
  kConflict,         // somebody else was faster: look again, then retry
  kUnavailable,      // a peer or our own caches are not there (yet)
  kDeadline,         // its time was over before anything was done
  kInternal,         // our fault
};

// "invalid_argument", ...: for logs and metric labels.
std::string_view ErrcName(Errc code);

struct Error {
  Errc code = Errc::kInternal;
  std::string message;

  // The same error, seen from one level further out: "place: message" (or "place.message" /
  // "place[0]..." where the message continues a path).
  Error Within(std::string_view place) &&;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// The result; an Error as Error::Within has it.
template <class T>
Result<T> Within(Result<T> result, std::string_view place) {
  if (!result) return tl::unexpected(std::move(result).error().Within(place));
  return result;
}

inline tl::unexpected<Error> Fail(Errc code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

inline tl::unexpected<Error> Invalid(std::string message) {
  return Fail(Errc::kInvalidArgument, std::move(message));
}

}  // namespace berth

#define BERTH_CONCAT_INNER(a, b) a##b
#define BERTH_CONCAT(a, b) BERTH_CONCAT_INNER(a, b)

// BERTH_TRY(auto x, Parse(text)): on failure return the Error, else define x. The project's only
// control-flow macro, with BERTH_TRY_STATUS for a Status.
#define BERTH_TRY(declaration, expression)                                        \
  auto BERTH_CONCAT(berth_try_, __LINE__) = (expression);                         \
  if (!BERTH_CONCAT(berth_try_, __LINE__)) {                                      \
    return tl::unexpected(std::move(BERTH_CONCAT(berth_try_, __LINE__)).error()); \
  }                                                                               \
  declaration = *std::move(BERTH_CONCAT(berth_try_, __LINE__))

#define BERTH_TRY_STATUS(expression)                        \
  if (auto berth_status = (expression); !berth_status) {    \
    return tl::unexpected(std::move(berth_status).error()); \
  }
