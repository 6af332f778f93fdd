// SPDX-License-Identifier: Apache-2.0
//
// Answers to the kubelet's question which devices a container should get. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "node/interposer/ports.h"

namespace berth::node {

// Whether these are exactly `size` different devices that are available, with all that must be.
bool IsAnswer(const PreferredQuestion& question, const std::vector<std::string>& devices);

// An answer for every question: what must be, then of `wanted` what is available, then what is not
// in `avoid`, then the rest, each by name. Fewer than `size` only where fewer are available.
std::vector<std::string> AnyAnswer(const PreferredQuestion& question,
                                   std::span<const std::string> wanted,
                                   std::span<const std::string> avoid);

// The available devices without those to avoid, but with all that must be.
std::vector<std::string> Without(const PreferredQuestion& question,
                                 std::span<const std::string> avoid);

}  // namespace berth::node
