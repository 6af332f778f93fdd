// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

namespace berth {

std::string_view ErrcName(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
      return "invalid_argument";
    case Errc::kNotFound:
      return "not_found";
    case Errc::kConflict:
      return "conflict";
    case Errc::kUnavailable:
      return "unavailable";
    case Errc::kDeadline:
      return "deadline";
    case Errc::kInternal:
      return "internal";
  }
  return "internal";
}

Error Error::Within(std::string_view place) && {
  const bool path_goes_on = !message.empty() && (message[0] == '.' || message[0] == '[');
  message.insert(0, path_goes_on ? "" : ": ");
  message.insert(0, place);
  return std::move(*this);
}

}  // namespace berth
