// SPDX-License-Identifier: Apache-2.0
//
// `berth topology show|annotate|choose`: the links of a machine as Berth reads them, and its choice
// of GPUs.
#pragma once

#include <string>

#include "base/result.h"

namespace berth {

struct TopologyFlags {
  std::string file;  // "-": standard input
  bool json = false;
  std::string policy = "berth", free, required;  // GPUs as "0,3,5"; "" is none
  int size = 0;
};

// The text to print. Error: malformed input, with file and place.
Result<std::string> ShowTopology(const TopologyFlags& flags);
Result<std::string> AnnotateTopology(const TopologyFlags& flags);
Result<std::string> ChooseOnTopology(const TopologyFlags& flags);

}  // namespace berth
