// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

namespace berth {

std::string_view BerthVersion() { return BERTH_VERSION; }

}  // namespace berth
