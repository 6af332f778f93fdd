// SPDX-License-Identifier: Apache-2.0
//
// The requests of the cases, as bytes.
#pragma once

#include <string>

#include "bench/replay/conform/cases.h"
#include "bench/replay/conform/conform.h"

namespace berth::conform {

// The body of a case: what stands for something is filled in.
std::string BodyOf(const ConformOptions& options, const Case& tried, char verb);

// The whole request.
std::string BytesOf(Form form, const ExtenderUrl& url, const std::string& verb,
                    const std::string& body);

}  // namespace berth::conform
