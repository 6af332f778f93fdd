// SPDX-License-Identifier: Apache-2.0
//
// Program: a CEL expression that selects devices, of a DeviceClass or of a request of a
// ResourceClaim (selectors[].cel.expression), compiled once and asked about many devices.
//
// It answers as kube-scheduler does, or says that it does not know: language and libraries are
// those of k8s.io/dynamic-resource-allocation/cel of Kubernetes 1.37, which has the features
// DRAConsumableCapacity and DRAListTypeAttributes in stored expressions whether they are on or not.
// `make cel` compares the two (test/e2e/cel). Types are not checked: the API server does that
// before it stores an expression.
//
// Evaluated: contains, startsWith, endsWith, matches, lowerAscii, upperAscii, split, substring,
// size, includes, int, string, comparisons of quantities and versions, optionals, and the macros.
// Not evaluated: all other functions, bytes, numbers that are no integers, durations, timestamps,
// types, maps other than the device's, regular expressions that are no constants, quantities above
// 2^63 - 1, and lists that hold quantities or versions beside others.
//
// Bounds: text of 10 KiB and 250 levels (Kubernetes' own), cost of 1,000,000 units per device
// (Kubernetes' own; a unit is some 10 ns), and what Kubernetes leaves to its machine: kMostBytes
// and kMostSteps (cel/value.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "cel/device.h"
#include "cel/failure.h"
#include "cel/syntax/node.h"
#include "cel/value.h"

namespace berth::cel {

// Plan: a compiled expression, ready to be evaluated.

class Plan {
 public:
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  Arena constants;
  NodePtr root;
  int slots = 0;
};

inline constexpr std::size_t kLongestExpression = 10 * 1024;  // CELSelectorExpressionMaxLength
inline constexpr std::uint64_t kMostCost = 1'000'000;         // CELSelectorExpressionMaxCost

class Plan;

// Immutable: any thread may ask it.
class Program {
 public:
  // Error: kUnsupported (a function or a name that Berth does not know) or kRefused.
  static Expected<Program> Compile(std::string_view expression);

  // What an evaluation took, and what its answer is about.
  struct Effort {
    std::uint64_t cost = 0;      // in Kubernetes' units
    bool sees_identity = false;  // it looked at an attribute of the device alone (IsIdentity)
  };
  // Whether the expression selects the device. Error: kFailed or kUnsupported.
  [[nodiscard]] Expected<bool> Matches(const Device& device, Effort* effort = nullptr) const;

 private:
  explicit Program(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}

  std::shared_ptr<const Plan> plan_;
};

}  // namespace berth::cel
