// SPDX-License-Identifier: Apache-2.0
//
// Plan: a compiled expression, ready to be evaluated.
#pragma once

#include "cel/syntax/node.h"
#include "cel/value.h"

namespace berth::cel {

class Plan {
 public:
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  Arena constants;
  NodePtr root;
  int slots = 0;
};

}  // namespace berth::cel
