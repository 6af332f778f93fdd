// SPDX-License-Identifier: Apache-2.0
//
// A configuration as a cluster stores it: the text inside the manifest of a ConfigMap.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

struct ConfigText {
  std::string text;    // for LoadConfig and CheckConfig
  std::string origin;  // names the file, and the key of a ConfigMap, in errors
};

// The value of the manifest's only key in `data`; of several keys, `berth.yaml`. Line numbers count
// in the manifest if the value is a block (`|`), else in the value, with the origin "ORIGIN
// data.KEY". A text of another kind than ConfigMap is returned unchanged. Error: kInvalidArgument
// "ORIGIN:LINE: data: want ..., got ...".
Result<ConfigText> ConfigInside(std::string text, std::string_view origin);

}  // namespace berth
