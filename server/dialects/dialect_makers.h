// SPDX-License-Identifier: Apache-2.0
//
// Dialects that are no more than what they read and write: their sources say what that is.
#pragma once

#include <memory>

#include "config/config.h"
#include "server/dialects/one_at_a_time.h"
#include "server/wire/pod/dialect.h"

namespace berth::dialects {

std::unique_ptr<const wire::Dialect> MakeBerth();
std::unique_ptr<const wire::Dialect> MakeFractions();
std::unique_ptr<const wire::Dialect> MakeGpushare(const GpushareConfig& config);
std::unique_ptr<const wire::Dialect> MakeIntel();
std::unique_ptr<const wire::Dialect> MakeKai();
std::unique_ptr<const wire::Dialect> MakeMps();
std::unique_ptr<const wire::Dialect> MakeVolcano();

// How a pod shows that the plugin has not served it yet.
Handover GpushareHandover();
Handover VolcanoHandover();

}  // namespace berth::dialects
