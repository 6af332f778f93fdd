// SPDX-License-Identifier: Apache-2.0
//
// HAMi's dialect: what its device plugin publishes on Nodes (hami_mig.h, and links as below), what
// its users write on Pods (hami_ask.h), and what its plugin reads of a pod that Berth binds
// (hami_binding.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/pod/dialect.h"
#include "topology/links/link_matrix.h"

namespace berth::dialects {

// The links of a node's GPUs as HAMi's device plugin publishes them.
//
//   hami.io/node-nvidia-score     [{"uuid":"GPU-a","score":{"GPU-b":1800,"GPU-c":20}}, ...]
//   hami.io/node-nvidia-register  [{"id":"GPU-a","index":1,"numa":1,...}, ...]; an index and a NUMA
//                                 node of 0 are left out
//
// The scores are those of topology/links/product_links.h; 0 for a pair that HAMi could not
// score. They come in no order, so the register has to say which GPU has which index. (HAMi at
// 3be7525, pkg/device/nvidia/calculate_score.go.)

inline constexpr std::string_view kHamiScoreAnnotation = "hami.io/node-nvidia-score";
inline constexpr std::string_view kHamiRegisterAnnotation = "hami.io/node-nvidia-register";

struct HamiLinks {
  LinkMatrix matrix;
  std::vector<std::string> uuids;  // by index
};

// The text of the one annotation and the JSON of the other. Error: kInvalidArgument with the path
// in the scores, or "hami.io/node-nvidia-register" and the path in it.
Result<HamiLinks> ParseHamiLinks(std::string_view scores, const wire::Json& registered);

// gives_devices: Berth gives the MIG devices of HAMi's plugin, in place of HAMi's scheduler.
std::unique_ptr<const wire::Dialect> MakeHami(bool gives_devices);

}  // namespace berth::dialects
