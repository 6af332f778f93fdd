// SPDX-License-Identifier: Apache-2.0
//
// Paths of the API server in which names from outside become parts: of requests, of annotations. A
// name that is none could lead anywhere, with Berth's rights.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::kube {

// Error: kInvalidArgument "namespace: want a DNS-1123 label, got \"a/../b\"".
Result<std::string> PodPath(std::string_view namespace_name, std::string_view name);
Result<std::string> PodsPath(std::string_view namespace_name);
Result<std::string> NodePath(std::string_view name);
Result<std::string> ClaimPath(std::string_view namespace_name, std::string_view name);
Result<std::string> EventsPath(std::string_view namespace_name);

// For the value of a query's parameter.
std::string EscapeForQuery(std::string_view text);

}  // namespace berth::kube
