// SPDX-License-Identifier: Apache-2.0
//
// GpuGraph: the GPUs of one machine as a graph whose vertices and edges carry the known properties.
//
// Held in Boost.Graph, whose types stay in gpu_graph.cc. Searched when a wiring is first seen;
// decisions use tables made from it (set_table.h). Immutable; any number of threads may read.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "topology/links/link_matrix.h"
#include "topology/links/wiring.h"

namespace berth {

class GpuGraph {
 public:
  explicit GpuGraph(const LinkMatrix& matrix);
  // Bandwidths and NUMA groups alone: names are GPU0.., links have no type.
  explicit GpuGraph(const Wiring& wiring);
  ~GpuGraph();
  GpuGraph(GpuGraph&&) noexcept;
  GpuGraph& operator=(GpuGraph&&) noexcept;

  // GPUs joined by a fabric, transitively; a GPU without is alone. Each sorted, in the order
  // of their first GPU.
  [[nodiscard]] std::vector<std::vector<int>> Islands() const;

  // The bandwidth of the best path between every two GPUs, in MB/s, where a path is as good as its
  // worst link: gpus x gpus. (Maximum spanning tree by Kruskal; exact.)
  [[nodiscard]] std::vector<int> WidestPaths() const;

  // to[i] is the GPU of `other` that corresponds to GPU i under another numbering, with the same
  // bandwidths and NUMA groups throughout. nullopt if there is no such numbering, or none was found
  // within kMaxIsomorphismSteps comparisons of edges (then both wirings merely get a table of their
  // own).
  [[nodiscard]] std::optional<std::vector<int>> IsomorphismTo(const GpuGraph& other) const;

  // Graphviz: fabric links, and the fastest of the PCIe relations better than SYS.
  [[nodiscard]] std::string Graphviz() const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

inline constexpr int kMaxIsomorphismSteps = 2'000'000;

}  // namespace berth
