// SPDX-License-Identifier: Apache-2.0
//
// The JSON of labels, selectors, affinities and tolerations. They throw as object_reader.h says;
// what is JSON but makes no sense (an operator that there is not) is an Error. The values of In and
// NotIn come sorted, as Holds (cluster/values/node_constraints.h) wants them.
#pragma once

#include <simdjson.h>

#include "base/result.h"
#include "cluster/values/node_constraints.h"
#include "cluster/values/pod_request.h"

namespace berth::wire {

// metadata.labels.
Labels ReadLabels(simdjson::ondemand::object labels);

// metav1.LabelSelector: matchLabels and matchExpressions.
Result<LabelSelector> ReadLabelSelector(simdjson::ondemand::object selector);

// spec.nodeSelector.
LabelSelector ReadNodeSelector(simdjson::ondemand::object selector);

// spec.affinity: the required node affinity in it, and whether others are required.
Status ReadAffinity(simdjson::ondemand::object affinity, NodeConstraints& constraints,
                    OwnToScheduler& others);

// spec.tolerations.
std::vector<Toleration> ReadTolerations(simdjson::ondemand::array tolerations);

// spec.taints of a node.
std::vector<Taint> ReadTaints(simdjson::ondemand::array taints);

}  // namespace berth::wire
