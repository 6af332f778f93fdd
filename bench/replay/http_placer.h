// SPDX-License-Identifier: Apache-2.0
//
// HttpPlacer: asks a server exactly as kube-scheduler does - filter with node names, prioritize
// unless one node is left, the highest priority, bind.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "bench/http/http_client.h"
#include "bench/replay/engine_placer.h"
#include "bench/replay/replay.h"

namespace berth::replay {

// The pod as the scheduler gets it from the API server, reduced to the fields that matter here.
std::string PodJson(const PodRequest& pod);

class HttpPlacer final : public Placer {
 public:
  HttpPlacer(http::HttpClient client, const std::vector<NodeSpec>& nodes, TieBreaker ties);

  // The node alone, without devices. A refused bind is an Error, because no other scheduler uses
  // this cluster.
  Result<std::optional<Placement>> Place(const PodRequest& pod) override;

  enum Verb { kFilter, kPrioritize, kBind, kVerbs };
  // Microseconds of every call, from the first byte written to the last one read.
  [[nodiscard]] const std::vector<double>& latencies_us(Verb verb) const { return us_[verb]; }

 private:
  Result<std::string> Post(Verb verb, std::string_view path, const std::string& body);
  // Chooses the node of the pod from the names of a JSON list (without its brackets).
  Result<std::string> Choose(const std::string& pod_json, std::string_view names);

  http::HttpClient client_;
  TieBreaker ties_;
  std::string all_names_;  // "\"a\",\"b\""
  std::array<std::vector<double>, kVerbs> us_;
};

}  // namespace berth::replay
