// SPDX-License-Identifier: Apache-2.0
//
// `berth topology show|annotate`: the links of a machine as Berth reads them.
#pragma once

#include <string>

#include "base/result.h"

namespace berth {

struct TopologyFlags {
  std::string file;  // "-": standard input
  bool json = false;
};

// The text to print. Error: malformed input, with file and place.
Result<std::string> ShowTopology(const TopologyFlags& flags);
Result<std::string> AnnotateTopology(const TopologyFlags& flags);

}  // namespace berth
