// SPDX-License-Identifier: Apache-2.0
//
// What is told of nodes that are thought to come and go, wherever they are asked about.
#pragma once

#include <string>

#include "scoring/explain/node_edits.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {

Json EditedNodesJson(const EditedNodes& nodes);
// A line for those that come and one for those that go; "" without any.
std::string TextOf(const EditedNodes& nodes);

}  // namespace berth::wire
