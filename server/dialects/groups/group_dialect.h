// SPDX-License-Identifier: Apache-2.0
//
// Groups of pods, in our own words and in those of other schedulers and controllers (pod_group.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/wire/pod/dialect.h"

namespace berth::dialects {

// controllers: whose pods are gangs without saying so (GangsConfig).
std::unique_ptr<const wire::Dialect> MakeGroups(std::vector<std::string> controllers);

}  // namespace berth::dialects
