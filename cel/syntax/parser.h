// SPDX-License-Identifier: Apache-2.0
//
// From the text of an expression to its tree, macros expanded.
#pragma once

#include <string_view>

#include "cel/failure.h"
#include "cel/syntax/node.h"
#include "cel/value.h"

namespace berth::cel {

// `constants` comes to own the texts of the tree. Error: kRefused; kUnsupported for bytes, messages
// (`Type{...}`) and for more than kDeepest levels or kMostNodes nodes.
Expected<NodePtr> Parse(std::string_view expression, Arena& constants);

}  // namespace berth::cel
