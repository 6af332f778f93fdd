// SPDX-License-Identifier: Apache-2.0
//
// A progress line on stderr with the time left; silent where stderr is not a terminal.
#pragma once

#include <string>

#include "bench/replay/replay.h"

namespace berth::replay {

// `label` names the work. The line is erased at the end.
Progress TerminalProgress(std::string label);

}  // namespace berth::replay
