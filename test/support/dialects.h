// SPDX-License-Identifier: Apache-2.0
//
// The dialects of a default configuration, for tests that decode Nodes and Pods.
#pragma once

#include <memory>

#include "config/config.h"
#include "server/dialects/registry.h"

namespace berth::test {

inline std::shared_ptr<const wire::Dialects> AllDialects() {
  static const auto all = dialects::AllDialects(DefaultConfig());
  return all;
}

}  // namespace berth::test
