// SPDX-License-Identifier: Apache-2.0
//
// Dialects that are no more than what they read and write: their sources say what that is.
#pragma once

#include <memory>

#include "server/wire/pod/dialect.h"

namespace berth::dialects {

std::unique_ptr<const wire::Dialect> MakeBerth();
std::unique_ptr<const wire::Dialect> MakeIntel();
std::unique_ptr<const wire::Dialect> MakeKai();
std::unique_ptr<const wire::Dialect> MakeMps();

}  // namespace berth::dialects
