// SPDX-License-Identifier: Apache-2.0
//
// `berth-node facts`: the probe as a process of its own.
#pragma once

#include "node/facts/probe.h"

namespace berth::node {

// Prints the facts as one line on standard output. The process ends with its parent, and after 20 s
// in any case: the driver's library may hang. Returns the status to exit with: 0.
int PrintFacts(const ProbeRoots& roots);

}  // namespace berth::node
