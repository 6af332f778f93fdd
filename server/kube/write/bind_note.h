// SPDX-License-Identifier: Apache-2.0
//
// The note of a bind on its way (server/kube/lead/write_journal.h): a file of the cluster
// (server/wire/file/cluster_file.h) that has this pod alone.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/state/cluster_event.h"
#include "server/extender/ports.h"
#include "server/wire/node/node_json.h"

namespace berth::kube {

// Never empty. Of a pod that gets no devices it says only that.
std::string NoteOfBind(const BindOrder& order);

// The pod with its devices; nullopt: it gets none. Error: kInvalidArgument, it is no such note.
Result<std::optional<PodBound>> BindOfNote(const std::string& note, const wire::NodeRules& rules);

}  // namespace berth::kube
