// SPDX-License-Identifier: Apache-2.0
#include "topology/links/gpu_links.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <tuple>
#include <utility>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/vf2_sub_graph_iso.hpp>

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

// Calls visit(set) for every set of `size` of the free GPUs; there are at most kMaxTableGpus.
template <class Visit>
void ForEachSet(GpuMask free, int size, Visit visit) {
  std::array<GpuMask, kMaxTableGpus> bits{};
  std::size_t members = 0;
  ForEachGpu(free, [&](int gpu) { bits[members++] = GpuBit(gpu); });
  const std::uint32_t end = std::uint32_t{1} << members;
  for (std::uint32_t dense = (std::uint32_t{1} << size) - 1; dense < end;) {
    GpuMask set = 0;
    ForEachGpu(dense, [&](int position) { set |= bits[static_cast<std::size_t>(position)]; });
    visit(set);
    const std::uint32_t step = dense & (~dense + 1);  // Gosper: the next mask with as many bits
    const std::uint32_t ripple = dense + step;
    dense = (((ripple ^ dense) >> 2) / step) | ripple;
  }
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

struct GpuLinks::Parts {
  Parts(LinkMatrix of, const LinkSpeeds& speeds, LinkOrigin where, WiringTables& tables)
      : matrix(std::move(of)),
        origin(std::move(where)),
        wiring(WiringOf(matrix, speeds)),
        sets(tables.SetsOf(wiring)),
        around(SurroundingsOf(matrix)),
        uniform(wiring.Uniform()),
        knows_numa(NumaGroupsOf(matrix).has_value()),
        numa_nodes(NumaNodesOf(matrix)) {
    if (!uniform) (void)sets.table();  // built now, so that no decision waits for it
  }

  const LinkMatrix matrix;
  const LinkOrigin origin;
  const Wiring wiring;
  const WiringSets sets;
  const std::vector<Surroundings> around;
  const bool uniform;
  const bool knows_numa;
  const std::vector<GpuMask> numa_nodes;
  // Of the patterns that were asked for.
  mutable std::array<std::once_flag, kLinkPatterns> once;
  mutable std::array<std::vector<int>, kLinkPatterns> pattern_scores;
};

GpuLinks::GpuLinks(LinkMatrix matrix, const LinkSpeeds& speeds, LinkOrigin origin,
                   WiringTables& tables)
    : parts_(std::make_shared<const Parts>(std::move(matrix), speeds, std::move(origin), tables)) {}

const LinkMatrix& GpuLinks::matrix() const { return parts_->matrix; }
LinkSource GpuLinks::source() const { return known() ? origin().source : LinkSource::kUnknown; }
const LinkOrigin& GpuLinks::origin() const { return parts_->origin; }
bool GpuLinks::knows_numa() const { return parts_->knows_numa; }
std::span<const GpuMask> GpuLinks::numa_nodes() const { return parts_->numa_nodes; }
int GpuLinks::Between(int a, int b) const { return parts_->wiring.Between(a, b); }
const Surroundings& GpuLinks::around(int gpu) const {
  return parts_->around[static_cast<std::size_t>(gpu)];
}
int GpuLinks::span(GpuMask set) const { return parts_->wiring.Span(set); }
int GpuLinks::LeastSpan(int size) const { return parts_->wiring.LeastSpan(size); }
int GpuLinks::MostOfOneGroup(GpuMask set) const { return parts_->wiring.MostOfOneGroup(set); }
int GpuLinks::quality(GpuMask set) const { return parts_->sets.quality(set); }

int GpuLinks::BestQuality(GpuMask free, int size) const {
  if (size < 1 || size > std::popcount(free)) return 0;
  if (size == 1 || parts_->uniform) return kPerfect;
  if (parts_->wiring.gpus > kMaxTableGpus) return quality(Choose(free, size));
  int best = 0;
  ForEachSet(free, size, [&](GpuMask set) { best = std::max(best, quality(set)); });
  return best;
}

int GpuLinks::Ring(GpuMask set) const {
  if (std::popcount(set) < 2) return 0;
  const Wiring& wiring = parts_->wiring;
  if (!parts_->uniform && wiring.gpus <= kMaxTableGpus) {
    return parts_->sets.table()->ring(parts_->sets.ToTable(set));
  }
  int worst = wiring.Between(std::countr_zero(set), std::countr_zero(set & (set - 1)));
  ForEachGpu(set, [&](int a) {
    ForEachGpu(set & (GpuBit(a) - 1),
               [&](int b) { worst = std::min(worst, wiring.Between(a, b)); });
  });
  return worst;
}

GpuMask GpuLinks::LinkedWith(GpuMask seed, GpuMask within) const {
  GpuMask reached = seed;
  for (GpuMask next = seed; next != 0;) {
    GpuMask found = 0;
    ForEachGpu(next, [&](int gpu) { found |= around(gpu).fabric; });
    next = found & within & ~reached;
    reached |= next;
  }
  return reached;
}

GpuMask GpuLinks::LargestLinked(GpuMask free) const {
  GpuMask largest = 0;
  for (GpuMask left = free; left != 0;) {
    const GpuMask linked = LinkedWith(LowestBit(left), free);
    if (std::popcount(linked) > std::popcount(largest)) largest = linked;
    left &= ~linked;
  }
  return largest;
}

bool GpuLinks::Satisfies(GpuMask set, const LinkAsk& ask) const {
  if (std::popcount(set) < 2) return true;
  if (ask.numa == NumaWish::kRequired && (!knows_numa() || span(set) > 1)) return false;
  if (ask.link == LinkWish::kRequired && LinkedWith(LowestBit(set), set) != set) return false;
  return ask.min_megabytes_per_s == 0 || Ring(set) >= ask.min_megabytes_per_s;
}

GpuMask GpuLinks::Choose(GpuMask free, int size, const LinkAsk& ask,
                         std::span<const GpuMask> tenants) const {
  const GpuMask usual = parts_->sets.Choose(free, size, 0, tenants);
  if (size < 2 || usual == 0 || ask == LinkAsk{}) return usual;
  const bool usual_order = ask.link != LinkWish::kNone && ask.numa != NumaWish::kPreferred &&
                           ask.pattern == LinkPattern::kAny;
  if (usual_order && Satisfies(usual, ask)) return usual;
  const bool linked = ask.link == LinkWish::kRequired;
  if (parts_->uniform && !linked) return Satisfies(usual, ask) ? usual : 0;  // as any other set
  if (linked && std::popcount(LargestLinked(free)) < size) return 0;
  if (parts_->wiring.gpus <= kMaxTableGpus) return Search(free, size, ask);
  return ask.limits() || ask.numa == NumaWish::kPreferred ? Grow(free, size, ask) : usual;
}

GpuMask GpuLinks::Search(GpuMask free, int size, const LinkAsk& ask) const {
  const WiringSets& sets = parts_->sets;
  const SetTable& table = *sets.table();
  const bool indifferent = ask.link == LinkWish::kNone;
  using Key = std::array<int, 5>;
  GpuMask best = 0;
  Key best_key{};
  ForEachSet(free, size, [&](GpuMask set) {
    if (!Satisfies(set, ask)) return;
    const int groups = -span(set);
    const Key key = {ask.numa == NumaWish::kPreferred ? groups : 0,
                     indifferent ? 0 : PatternScore(set, ask.pattern),
                     indifferent ? 0 : table.quality(sets.ToTable(set)), groups,
                     table.value(sets.ToTable(free ^ set))};
    if (best != 0 && key <= best_key) return;
    best = set;
    best_key = key;
  });
  return best;
}

int GpuLinks::PatternScore(GpuMask set, LinkPattern pattern) const {
  if (pattern == LinkPattern::kAny) return 0;
  if (pattern == LinkPattern::kRing) return Ring(set);
  const auto index = static_cast<std::size_t>(pattern);
  std::vector<int>& scores = parts_->pattern_scores[index];
  std::call_once(parts_->once[index], [&] { scores = PatternScores(parts_->wiring, pattern); });
  return scores.empty() ? 0 : scores[set];
}

GpuMask GpuLinks::Grow(GpuMask free, int size, const LinkAsk& ask) const {
  GpuMask best = 0;
  std::pair<int, std::int64_t> best_key;
  ForEachGpu(free, [&](int seed) {
    const GpuMask set = GrowFrom(seed, free, size, ask);
    if (set == 0 || !Satisfies(set, ask)) return;
    const std::pair key(ask.numa == NumaWish::kPreferred ? -span(set) : 0,
                        AggregateOf(parts_->wiring, set));
    if (best != 0 && key <= best_key) return;
    best = set;
    best_key = key;
  });
  return best;
}

// The next GPU stays in the seed's NUMA group, or is linked to the set, where that is required.
GpuMask GpuLinks::GrowFrom(int seed, GpuMask free, int size, const LinkAsk& ask) const {
  const Wiring& wiring = parts_->wiring;
  const bool leaves_numa = ask.numa != NumaWish::kRequired;
  GpuMask set = GpuBit(seed), linked = around(seed).fabric;
  while (std::popcount(set) < size) {
    int next = -1;
    std::tuple<int, std::int64_t> next_key;
    const GpuMask reach = ask.link == LinkWish::kRequired ? linked : ~GpuMask{0};
    ForEachGpu(free & ~set & reach, [&](int gpu) {
      if (!leaves_numa && wiring.Span(GpuBit(seed) | GpuBit(gpu)) > 1) return;
      std::int64_t added = 0;
      ForEachGpu(set, [&](int other) { added += wiring.Between(gpu, other); });
      const bool numa_first = ask.numa == NumaWish::kPreferred;
      const std::tuple key(numa_first ? -wiring.Span(set | GpuBit(gpu)) : 0, added);
      if (next >= 0 && key <= next_key) return;
      next = gpu;
      next_key = key;
    });
    if (next < 0) return 0;
    set |= GpuBit(next);
    linked |= around(next).fabric;
  }
  return set;
}

bool operator==(const GpuLinks& a, const GpuLinks& b) {
  if (a.parts_ == b.parts_) return true;
  return a.known() && b.known() && a.origin() == b.origin() && a.matrix() == b.matrix() &&
         a.parts_->wiring == b.parts_->wiring;
}

}  // namespace berth
