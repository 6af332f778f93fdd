// SPDX-License-Identifier: Apache-2.0
//
// Groups of pods, in our own words and in those of other schedulers and controllers (pod_group.h).
#pragma once

#include <memory>

#include "server/wire/dialect.h"

namespace berth::dialects {

std::unique_ptr<const wire::Dialect> MakeGroups();

}  // namespace berth::dialects
