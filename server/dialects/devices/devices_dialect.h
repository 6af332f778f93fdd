// SPDX-License-Identifier: Apache-2.0
//
// What the device plugins of all vendors say by numbers alone: node_gpus.h. Asked after the agents
// that hand out the GPUs of a node in their own way.
#pragma once

#include <memory>

#include "server/wire/pod/dialect.h"

namespace berth::dialects {

std::unique_ptr<const wire::Dialect> MakeDevices();

}  // namespace berth::dialects
