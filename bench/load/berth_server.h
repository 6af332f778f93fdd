// SPDX-License-Identifier: Apache-2.0
//
// BerthServer: a server in this process, as `berth serve` builds it, with a cluster of equal nodes;
// and requests as kube-scheduler writes them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace berth::load {

constexpr int kGpusPerNode = 8;

class BerthServer {
 public:
  // learns: the request mix is learned, as in `berth serve` by default; else the typical mix is
  // used all the time.
  BerthServer(std::size_t nodes, bool learns);
  ~BerthServer();

  [[nodiscard]] const std::string& address() const;
  // Its nodes as the elements of a JSON list.
  [[nodiscard]] std::string NameList() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// About as long as a pod that kube-scheduler sends. amounts: the rest of a JSON object of
// resources, such as "nvidia.com/gpu":"2"
std::string PodJson(const std::string& uid, std::string_view amounts);

std::string FilterBody(const std::string& pod, const std::string& names);
std::string BindBody(const std::string& uid, const std::string& node);

// The first node with the best score of an answer to prioritize.
std::string BestOf(const std::string& scored);

}  // namespace berth::load
