// SPDX-License-Identifier: Apache-2.0
//
// A progress line on stderr with the time left; silent where stderr is not a terminal.
#pragma once

#include <string>

#include "bench/replay/replay.h"

namespace berth::replay {

// `label` says what is under way. The line is erased when all is done.
Progress TerminalProgress(std::string label);

}  // namespace berth::replay
