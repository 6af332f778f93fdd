// SPDX-License-Identifier: Apache-2.0
#include "test/support/build_paths.h"

namespace berth::test {

std::string SourceDir() { return BERTH_SOURCE_DIR; }
std::string BinDir() { return BERTH_BIN_DIR; }

}  // namespace berth::test
