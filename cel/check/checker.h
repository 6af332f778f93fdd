// SPDX-License-Identifier: Apache-2.0
//
// Whether an expression is one that selects devices, and what its names mean. Source:
// github.com/google/cel-go, checker/checker.go, with the declarations of
// k8s.io/dynamic-resource-allocation/cel.
#pragma once

#include "cel/failure.h"
#include "cel/syntax/node.h"

namespace berth::cel {

// Fills in the variables, functions and overloads of the tree. The number of its variables' slots.
// Error: kRefused where types do not agree or the result is no bool; kUnsupported for a function or
// a variable that Berth does not know.
Expected<int> Check(Node& root);

}  // namespace berth::cel
