// SPDX-License-Identifier: Apache-2.0
//
// HAMi's dialect: what its device plugin publishes on Nodes (hami_mig.h, hami_links.h), what its
// users write on Pods (hami_ask.h), and what its plugin reads of a pod that Berth binds
// (hami_binding.h).
#pragma once

#include <memory>

#include "server/wire/pod/dialect.h"

namespace berth::dialects {

// gives_devices: Berth gives the MIG devices of HAMi's plugin, in place of HAMi's scheduler.
std::unique_ptr<const wire::Dialect> MakeHami(bool gives_devices);

}  // namespace berth::dialects
