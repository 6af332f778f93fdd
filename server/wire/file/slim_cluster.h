// SPDX-License-Identifier: Apache-2.0
//
// SlimCluster: the cluster of a file for somebody else's eyes. Left out are environment, commands,
// arguments, images, probes and messages of containers, what volumes mount, names of pull secrets,
// messages of conditions, annotations that no dialect reads, fields of Nodes, Pods and metadata
// that nobody reads, and objects of kinds that nobody reads. Names, labels, amounts and times stay,
// so that every answer about it is the same.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "server/wire/pod/dialect.h"

namespace berth::wire {

// Whether somebody reads objects of that kind, other than Node, Pod, PodGroup, PodDisruptionBudget.
using ReadsKind = std::function<bool(std::string_view api_version, std::string_view kind)>;

// A List, an object a line; of a dump of /debug/snapshot, which has none of this, the text itself.
// Requires: DecodeCluster has read the text.
std::string SlimCluster(std::string text, const Dialects& dialects, const ReadsKind& reads_kind);

}  // namespace berth::wire
