// SPDX-License-Identifier: Apache-2.0
//
// Where this build's checkout and programs are. Compiled into one file only: a path in a compile
// command keeps ccache from serving another checkout.
#pragma once

#include <string>

namespace berth::test {

std::string SourceDir();
std::string BinDir();

}  // namespace berth::test
