// SPDX-License-Identifier: Apache-2.0
#include "server/commands/topology_command.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <vector>

#include "server/wire/node/topology_json.h"
#include "topology/links/gpu_graph.h"
#include "topology/links/wiring_tables.h"

namespace berth {
namespace {

std::string ListOf(GpuMask set) {
  std::string list;
  for (; set != 0; set &= set - 1) {
    if (!list.empty()) list += ",";
    list += std::to_string(std::countr_zero(set));
  }
  return list;
}

std::string Padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

void AppendLine(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

std::string MatrixText(const LinkMatrix& matrix) {
  std::size_t width = 7;
  for (int device = 0; device < matrix.device_count(); ++device) {
    width = std::max(width, matrix.name(device).size() + 1);
  }
  std::string line = Padded("", width), out;
  for (int device = 0; device < matrix.device_count(); ++device) {
    line += Padded(matrix.name(device), width);
  }
  AppendLine(out, line + Padded("CPU Affinity", 20) + "NUMA Affinity");
  for (int gpu = 0; gpu < matrix.gpu_count(); ++gpu) {
    line = Padded(matrix.name(gpu), width);
    for (int device = 0; device < matrix.device_count(); ++device) {
      line += Padded(gpu == device ? "X" : LinkText(matrix.link(gpu, device)), width);
    }
    const auto row = static_cast<std::size_t>(gpu);
    AppendLine(out, line + Padded(matrix.cpu_affinity[row], 20) + matrix.numa_affinity[row]);
  }
  return out;
}

std::string BestSetsText(const WiringSets& sets, int gpus) {
  std::string out = "best set per size (ring, bisection and aggregate in GB/s):\n";
  const auto gigabytes = [](std::int64_t megabytes) {
    const std::string tenths = std::to_string((megabytes + 50) / 100);
    return tenths.size() < 2
               ? "0." + tenths
               : tenths.substr(0, tenths.size() - 1) + "." + tenths.substr(tenths.size() - 1);
  };
  for (int size = 1; size <= gpus; ++size) {
    const GpuMask set = sets.Choose(AllGpus(gpus), size);
    std::string line = "  " + Padded(std::to_string(size), 4) +
                       Padded(ListOf(set), 3 * static_cast<std::size_t>(gpus));
    if (const SetTable* table = sets.table(); table != nullptr && size > 1) {
      const GpuMask own = sets.ToTable(set);
      line += "ring " + gigabytes(table->ring(own)) + ", bisection " +
              gigabytes(table->bisection(own)) + ", aggregate " + gigabytes(table->aggregate(own)) +
              ", ";
    }
    AppendLine(out, line + "NUMA groups " + std::to_string(sets.span(set)));
  }
  if (gpus > kMaxTableGpus) out += "  (bounded search: may not be the best)\n";
  return out;
}

std::string GroupsText(const char* title, const std::vector<std::vector<int>>& groups) {
  std::string out = title;
  for (const std::vector<int>& group : groups) {
    GpuMask set = 0;
    for (const int gpu : group) set |= GpuBit(gpu);
    out += " {" + ListOf(set) + "}";
  }
  return out + "\n";
}

}  // namespace

Result<std::string> ShowTopology(const TopologyFlags& flags) {
  BERTH_TRY(const LinkMatrix matrix, wire::ReadTopologyFile(flags.file));
  if (flags.json) return wire::TopologyJson(matrix) + "\n";
  const Wiring wiring = WiringOf(matrix);
  const GpuGraph graph(matrix);
  std::vector<std::vector<int>> numa(
      static_cast<std::size_t>(wiring.gpus == 0 ? 0 : *std::ranges::max_element(wiring.numa) + 1));
  for (int gpu = 0; gpu < wiring.gpus; ++gpu) {
    numa[static_cast<std::size_t>(wiring.numa[static_cast<std::size_t>(gpu)])].push_back(gpu);
  }
  WiringTables tables;
  std::string out = MatrixText(matrix) + "\n";
  out += GroupsText("islands (NVLink, xGMI):", graph.Islands());
  out += GroupsText("NUMA groups:", numa);
  for (const std::string& warning : matrix.warnings) out += "warning: " + warning + "\n";
  out += "\n" + BestSetsText(tables.SetsOf(wiring), wiring.gpus);
  return out + "\n" + graph.Graphviz();
}

Result<std::string> AnnotateTopology(const TopologyFlags& flags) {
  BERTH_TRY(const LinkMatrix matrix, wire::ReadTopologyFile(flags.file));
  auto annotation = wire::TopologyAnnotation(matrix);
  if (!annotation) return tl::unexpected(std::move(annotation).error().Within(flags.file));
  return *annotation + "\n";
}

}  // namespace berth
