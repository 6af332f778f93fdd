// SPDX-License-Identifier: Apache-2.0
//
// UrlPlacer: asks any extender as kube-scheduler does. It keeps the books itself: it sends the
// nodes that take the pod by these, and gives the pod the first devices of the node that is chosen.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/replay/conform/connection.h"
#include "bench/replay/engine_placer.h"
#include "bench/replay/replay.h"

namespace berth::replay {

struct UrlOptions {
  std::string url = {};      // urlPrefix
  bool node_bodies = false;  // full nodes instead of names
  // Of filter, prioritize and bind, those that are asked; the last two as long as they are there.
  std::vector<std::string> verbs = {"filter", "prioritize", "bind"};
};

class UrlPlacer final : public Placer {
 public:
  // Error: no URL, or nobody listens there. Requires: the books of these nodes outlive the placer.
  static Result<UrlPlacer> Create(const UrlOptions& options, const std::vector<NodeSpec>& nodes,
                                  EnginePlacer& books);

  // A pod that the extender refuses finds no place; of nodes of equal score the first is taken.
  // Error: an answer that kube-scheduler cannot use, or a refused bind.
  Result<std::optional<Placement>> Place(const PodRequest& pod) override;
  [[nodiscard]] std::shared_ptr<const Snapshot> Cluster() const override {
    return books_->Cluster();
  }

  // Microseconds of every call of the verb.
  [[nodiscard]] const std::vector<double>& latencies_us(const std::string& verb) {
    return us_[verb];
  }

 private:
  UrlPlacer(const UrlOptions& options, conform::ExtenderUrl url, EnginePlacer& books)
      : options_(options), url_(std::move(url)), books_(&books) {}

  [[nodiscard]] bool Asks(const std::string& verb) const;
  Result<nlohmann::json> Post(const std::string& verb, const std::string& body);
  [[nodiscard]] std::string Body(const PodRequest& pod, const std::vector<std::string>& names);
  // Those of the names that the extender passes.
  Result<std::vector<std::string>> Filter(const PodRequest& pod, std::vector<std::string> names);
  Result<std::string> Choose(const PodRequest& pod, const std::vector<std::string>& names);
  Status Bind(const PodRequest& pod, const std::string& node);

  UrlOptions options_;
  conform::ExtenderUrl url_;
  EnginePlacer* books_;
  std::unique_ptr<conform::Connection> connection_;
  std::map<std::string, std::string> node_bodies_;  // by name
  std::map<std::string, std::vector<double>> us_;
};

}  // namespace berth::replay
