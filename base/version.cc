// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

namespace berth {
namespace {

// By itself, for who cannot run the program: release/image.sh and one for another architecture.
[[gnu::section(".berth_version"), gnu::used]] constexpr char kVersion[] = BERTH_VERSION;

}  // namespace

std::string_view BerthVersion() { return kVersion; }

}  // namespace berth
