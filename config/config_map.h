// SPDX-License-Identifier: Apache-2.0
//
// A configuration as it is kept in a cluster: the text inside of the manifest of a ConfigMap.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

struct ConfigText {
  std::string text;    // for LoadConfig and CheckConfig
  std::string origin;  // names the file, and the key of a ConfigMap, in errors
};

// The manifest's one key in `data`, of several `berth.yaml`. Of a block (`|`) lines are counted in
// the manifest; of any other form in the value, and the origin is then "ORIGIN data.KEY". A text
// that is not of kind ConfigMap is handed back as it is. Error: kInvalidArgument "ORIGIN:LINE:
// data: want ..., got ...".
Result<ConfigText> ConfigInside(std::string text, std::string_view origin);

}  // namespace berth
