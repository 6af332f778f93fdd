// SPDX-License-Identifier: Apache-2.0
#include "topology/links/wiring_tables.h"

#include <algorithm>
#include <bit>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/vf2_sub_graph_iso.hpp>
#include <mutex>
#include <optional>
#include <utility>

#include "topology/links/set_search.h"
#include "topology/links/set_table.h"

namespace berth {
namespace {

// Equal under any numbering: the sorted bandwidths and NUMA relations of a GPU.
using Signature = std::vector<int>;

struct LinkEdge {
  int megabytes_per_s = 0;
  bool same_numa = false;
  friend bool operator==(const LinkEdge&, const LinkEdge&) = default;
};

using Graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, Signature, LinkEdge>;
using Vertex = Graph::vertex_descriptor;
using Edge = Graph::edge_descriptor;

Graph GraphOf(const Wiring& wiring) {
  const auto gpus = static_cast<std::size_t>(wiring.gpus);
  Graph graph(gpus);
  for (std::size_t a = 0; a < gpus; ++a) {
    for (std::size_t b = 0; b < gpus; ++b) {
      if (a == b) continue;
      const LinkEdge edge{wiring.Between(static_cast<int>(a), static_cast<int>(b)),
                          wiring.numa[a] == wiring.numa[b]};
      graph[a].push_back(edge.megabytes_per_s * 2 + (edge.same_numa ? 1 : 0));
      if (a < b) boost::add_edge(a, b, edge, graph);
    }
    std::ranges::sort(graph[a]);
  }
  return graph;
}

}  // namespace

std::optional<std::vector<int>> NumberingOf(const Wiring& from_wiring, const Wiring& to_wiring) {
  if (from_wiring.gpus != to_wiring.gpus) return std::nullopt;
  const Graph from = GraphOf(from_wiring), to = GraphOf(to_wiring);
  std::vector<int> found;
  const auto keep = [&](auto forward, auto /*backward*/) {
    for (Vertex gpu = 0; gpu < boost::num_vertices(from); ++gpu) {
      found.push_back(static_cast<int>(boost::get(forward, gpu)));
    }
    return false;  // the first is as good as any
  };
  int steps = 0;
  const auto same_edge = [&](const Edge& a, const Edge& b) {
    return ++steps <= kMaxIsomorphismSteps && from[a] == to[b];  // beyond them it runs dry
  };
  const auto same_vertex = [&](Vertex a, Vertex b) { return from[a] == to[b]; };
  boost::vf2_graph_iso(from, to, keep, boost::vertex_order_by_mult(from),
                       boost::edges_equivalent(same_edge).vertices_equivalent(same_vertex));
  if (found.empty()) return std::nullopt;
  return found;
}

struct WiringSets::Kind {
  Kind(const Wiring& of, const SizeMix& sizes) : wiring(of), mix(sizes) {}

  const Wiring wiring;
  const SizeMix mix;
  std::once_flag once;
  std::optional<SetTable> table;      // after `once`
  std::optional<SetOutlook> outlook;  // the same, unless there are too many GPUs
};

GpuMask WiringSets::Mapped(GpuMask set, const std::vector<int>& to) {
  if (to.empty()) return set;
  GpuMask mapped = 0;
  for (; set != 0; set &= set - 1) {
    mapped |= GpuBit(to[static_cast<std::size_t>(std::countr_zero(set))]);
  }
  return mapped;
}

const SetTable* WiringSets::table() const {
  if (wiring_->gpus > kMaxTableGpus) return nullptr;
  std::call_once(kind_->once, [this] {
    kind_->table.emplace(kind_->wiring, kind_->mix);
    if (wiring_->gpus <= kMaxOutlookGpus) kind_->outlook.emplace(*kind_->table, kind_->mix);
  });
  return &*kind_->table;
}

GpuMask WiringSets::Choose(GpuMask free, int size, GpuMask required,
                           std::span<const GpuMask> tenants) const {
  if (uniform_) {
    const int missing = size - std::popcount(required);
    if (size < 1 || size > std::popcount(free) || missing < 0 || (required & ~free) != 0) return 0;
    GpuMask set = required;
    for (GpuMask rest = free & ~required; std::popcount(set) < size; rest &= rest - 1) {
      set |= rest & (~rest + 1);
    }
    return set;
  }
  if (const SetTable* sets = table()) {
    if (tenants.empty() || !kind_->outlook) {
      return FromTable(sets->Choose(ToTable(free), size, ToTable(required)));
    }
    std::vector<GpuMask> held(tenants.size());
    std::ranges::transform(tenants, held.begin(), [this](GpuMask set) { return ToTable(set); });
    return FromTable(kind_->outlook->Choose(ToTable(free), size, ToTable(required), held));
  }
  return SearchSet(*wiring_, free, size, required);
}

int WiringSets::quality(GpuMask set) const {
  if (uniform_ || std::popcount(set) < 2) return kPerfect;
  if (const SetTable* sets = table()) return sets->quality(ToTable(set));
  const GpuMask all = AllGpus(wiring_->gpus);
  const std::int64_t best = AggregateOf(*wiring_, SearchSet(*wiring_, all, std::popcount(set)));
  if (best == 0) return kPerfect;
  return static_cast<int>(
      std::min<std::int64_t>(kPerfect, AggregateOf(*wiring_, set) * kPerfect / best));
}

WiringSets WiringTables::SetsOf(const Wiring& wiring) {
  WiringSets sets;
  sets.wiring_ = std::make_shared<const Wiring>(wiring);
  sets.uniform_ = wiring.Uniform();
  for (const auto& kind : kinds_) {
    if (kind->wiring == wiring) {
      sets.kind_ = kind;
      return sets;
    }
  }
  for (const auto& kind : kinds_) {
    auto to = NumberingOf(wiring, kind->wiring);
    if (!to) continue;
    sets.kind_ = kind;
    sets.to_table_ = *std::move(to);
    sets.from_table_.resize(sets.to_table_.size());
    for (std::size_t gpu = 0; gpu < sets.to_table_.size(); ++gpu) {
      sets.from_table_[static_cast<std::size_t>(sets.to_table_[gpu])] = static_cast<int>(gpu);
    }
    return sets;
  }
  kinds_.push_back(std::make_shared<WiringSets::Kind>(wiring, mix_));
  sets.kind_ = kinds_.back();
  return sets;
}

}  // namespace berth
