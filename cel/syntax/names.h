// SPDX-License-Identifier: Apache-2.0
//
// What the names in an expression mean: variables and functions. Source:
// github.com/google/cel-go (checker, common/stdlib, ext), k8s.io/apiserver/pkg/cel/library and
// k8s.io/dynamic-resource-allocation/cel of Kubernetes 1.37.
//
// Types are not checked: the API server refuses a claim or class whose selector has types that do
// not agree. What would be refused gives any verdict here.
#pragma once

#include "cel/failure.h"
#include "cel/syntax/node.h"

namespace berth::cel {

// Fills in the variables and functions of the tree. Returns how many slots its variables have.
// Error: kUnsupported for a name, a number of arguments or a field of `device` that Berth does not
// know.
Expected<int> ResolveNames(Node& root);

// Whether it converts one value into another kind, so that Kubernetes evaluates it when it compiles
// an expression in which the value is a constant.
inline bool IsConversion(Function function) {
  return function >= Function::kToDyn && function <= Function::kToString;
}

}  // namespace berth::cel
