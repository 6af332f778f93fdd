// SPDX-License-Identifier: Apache-2.0
#include "topology/links/gpu_graph.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/connected_components.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/graph/graphviz.hpp>
#include <boost/graph/kruskal_min_spanning_tree.hpp>
#include <boost/graph/vf2_sub_graph_iso.hpp>
#include <functional>
#include <iterator>
#include <sstream>

namespace berth {
namespace {

struct GpuVertex {
  std::string name;
  int numa = 0;
  std::vector<int> signature;  // sorted bandwidths and NUMA relations: equal under any numbering
};

struct LinkEdge {
  Link link;
  int megabytes_per_s = 0;
  int cost = 0;  // -megabytes_per_s, for the maximum spanning tree
  bool same_numa = false;
};

using Graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, GpuVertex, LinkEdge>;
using Vertex = Graph::vertex_descriptor;
using Edge = Graph::edge_descriptor;

struct IsFabric {
  const Graph* graph = nullptr;
  bool operator()(const Edge& edge) const {
    return (*graph)[edge].link.fabric != LinkType::kUnknown;
  }
};

Graph Build(const Wiring& wiring, const LinkMatrix* matrix) {
  const auto gpus = static_cast<std::size_t>(wiring.gpus);
  Graph graph(gpus);
  for (std::size_t a = 0; a < gpus; ++a) {
    graph[a].name = matrix != nullptr ? matrix->gpus[a] : "GPU" + std::to_string(a);
    graph[a].numa = wiring.numa[a];
    for (std::size_t b = 0; b < gpus; ++b) {
      if (a == b) continue;
      LinkEdge edge;
      edge.megabytes_per_s = wiring.Between(static_cast<int>(a), static_cast<int>(b));
      edge.cost = -edge.megabytes_per_s;
      edge.same_numa = wiring.numa[a] == wiring.numa[b];
      graph[a].signature.push_back(edge.megabytes_per_s * 2 + (edge.same_numa ? 1 : 0));
      if (matrix != nullptr) edge.link = matrix->link(static_cast<int>(a), static_cast<int>(b));
      if (a < b) boost::add_edge(a, b, edge, graph);
    }
    std::ranges::sort(graph[a].signature);
  }
  return graph;
}

}  // namespace

struct GpuGraph::Impl {
  Graph graph;
};

GpuGraph::GpuGraph(const LinkMatrix& matrix) : impl_(new Impl{Build(WiringOf(matrix), &matrix)}) {}
GpuGraph::GpuGraph(const Wiring& wiring) : impl_(new Impl{Build(wiring, nullptr)}) {}
GpuGraph::~GpuGraph() = default;
GpuGraph::GpuGraph(GpuGraph&&) noexcept = default;
GpuGraph& GpuGraph::operator=(GpuGraph&&) noexcept = default;

std::vector<std::vector<int>> GpuGraph::Islands() const {
  const Graph& graph = impl_->graph;
  const boost::filtered_graph<Graph, IsFabric> fabric(graph, IsFabric{&graph});
  std::vector<std::size_t> component(boost::num_vertices(graph));
  const auto map =
      boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, graph));
  std::vector<std::vector<int>> islands(boost::connected_components(fabric, map));
  for (std::size_t gpu = 0; gpu < component.size(); ++gpu) {
    islands[component[gpu]].push_back(static_cast<int>(gpu));
  }
  return islands;
}

std::vector<int> GpuGraph::WidestPaths() const {
  const Graph& graph = impl_->graph;
  const std::size_t gpus = boost::num_vertices(graph);
  std::vector<Edge> tree;  // best edges first, as Kruskal takes them
  boost::kruskal_minimum_spanning_tree(graph, std::back_inserter(tree),
                                       boost::weight_map(boost::get(&LinkEdge::cost, graph)));
  std::vector<int> widest(gpus * gpus, 0);
  std::vector<std::vector<std::size_t>> joined(gpus);
  std::vector<std::size_t> group(gpus);
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
    joined[gpu] = {gpu};
    group[gpu] = gpu;
  }
  for (const Edge& edge : tree) {  // what it joins meets over nothing better than this edge
    const std::size_t into = group[boost::source(edge, graph)];
    const std::size_t from = group[boost::target(edge, graph)];
    for (const std::size_t a : joined[into]) {
      for (const std::size_t b : joined[from]) {
        widest[a * gpus + b] = widest[b * gpus + a] = graph[edge].megabytes_per_s;
      }
    }
    for (const std::size_t gpu : joined[from]) group[gpu] = into;
    joined[into].insert(joined[into].end(), joined[from].begin(), joined[from].end());
    joined[from].clear();
  }
  return widest;
}

std::optional<std::vector<int>> GpuGraph::IsomorphismTo(const GpuGraph& other) const {
  const Graph& from = impl_->graph;
  const Graph& to = other.impl_->graph;
  if (boost::num_vertices(from) != boost::num_vertices(to)) return std::nullopt;
  std::vector<int> found;
  const auto keep = [&](auto forward, auto /*backward*/) {
    for (Vertex gpu = 0; gpu < boost::num_vertices(from); ++gpu) {
      found.push_back(static_cast<int>(boost::get(forward, gpu)));
    }
    return false;  // the first is as good as any
  };
  int steps = 0;
  const auto same_edge = [&](const Edge& a, const Edge& b) {
    if (++steps > kMaxIsomorphismSteps) return false;  // the search then runs dry
    return from[a].megabytes_per_s == to[b].megabytes_per_s && from[a].same_numa == to[b].same_numa;
  };
  const auto same_vertex = [&](Vertex a, Vertex b) { return from[a].signature == to[b].signature; };
  boost::vf2_graph_iso(from, to, keep, boost::vertex_order_by_mult(from),
                       boost::edges_equivalent(same_edge).vertices_equivalent(same_vertex));
  if (found.empty()) return std::nullopt;
  return found;
}

std::string GpuGraph::Graphviz() const {
  const Graph& graph = impl_->graph;
  int best = 0;
  for (const Edge& edge : boost::make_iterator_range(boost::edges(graph))) {
    if (graph[edge].link.pcie > LinkType::kSys) best = std::max(best, graph[edge].megabytes_per_s);
  }
  const auto drawn = [&graph, best](const Edge& edge) {
    const Link& link = graph[edge].link;
    return IsFabric{&graph}(edge) ||
           (link.pcie > LinkType::kSys && graph[edge].megabytes_per_s == best);
  };
  const boost::filtered_graph<Graph, std::function<bool(Edge)>> picture(graph, drawn);
  std::ostringstream text;
  boost::write_graphviz(
      text, picture,
      [&graph](std::ostream& out, Vertex gpu) {
        out << "[label=\"" << graph[gpu].name << "\\nNUMA group " << graph[gpu].numa << "\"]";
      },
      [&graph](std::ostream& out, const Edge& edge) {
        out << "[label=\"" << LinkText(graph[edge].link) << "\"]";
      });
  return text.str();
}

}  // namespace berth
