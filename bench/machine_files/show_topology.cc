// SPDX-License-Identifier: Apache-2.0
#include "bench/machine_files/show_topology.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>
#include <vector>

#include "bench/machine_files/machine_file.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/topology_json.h"
#include "topology/links/gpu_links.h"

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

std::string TopologyJson(const LinkMatrix& matrix) {
  wire::Json links = wire::Json::array(), gpu_nic = wire::Json::array();
  for (int a = 0; a < matrix.gpu_count(); ++a) {
    wire::Json row = wire::Json::array(), nics = wire::Json::array();
    for (int b = 0; b < matrix.gpu_count(); ++b) {
      row.push_back(a == b ? "X" : LinkText(matrix.link(a, b)));
    }
    for (int nic = 0; nic < static_cast<int>(matrix.nics.size()); ++nic) {
      nics.push_back(LinkText(matrix.gpu_nic(a, nic)));
    }
    links.push_back(std::move(row));
    gpu_nic.push_back(std::move(nics));
  }
  wire::Json json = {{"gpus", matrix.gpus},
                     {"nics", matrix.nics},
                     {"links", std::move(links)},
                     {"gpu_nic", std::move(gpu_nic)},
                     {"cpu_affinity", matrix.cpu_affinity},
                     {"numa_affinity", matrix.numa_affinity},
                     {"warnings", matrix.warnings}};
  if (!matrix.nic_devices.empty()) json["nic_devices"] = matrix.nic_devices;
  return wire::JsonText(json);
}

std::vector<std::vector<int>> IslandsOf(const LinkMatrix& matrix) {
  std::vector<std::vector<int>> islands;
  std::vector<bool> seen(matrix.gpus.size());
  for (int first = 0; first < matrix.gpu_count(); ++first) {
    if (seen[static_cast<std::size_t>(first)]) continue;
    seen[static_cast<std::size_t>(first)] = true;
    std::vector<int> island = {first};
    for (std::size_t at = 0; at < island.size(); ++at) {
      for (int gpu = 0; gpu < matrix.gpu_count(); ++gpu) {
        if (seen[static_cast<std::size_t>(gpu)]) continue;
        if (matrix.link(island[at], gpu).fabric == LinkType::kUnknown) continue;
        seen[static_cast<std::size_t>(gpu)] = true;
        island.push_back(gpu);
      }
    }
    std::ranges::sort(island);
    islands.push_back(std::move(island));
  }
  return islands;
}

std::string GraphvizOf(const LinkMatrix& matrix) {
  const Wiring wiring = WiringOf(matrix);
  int best = 0;
  for (int a = 0; a < wiring.gpus; ++a) {
    for (int b = a + 1; b < wiring.gpus; ++b) {
      if (matrix.link(a, b).pcie > LinkType::kSys) best = std::max(best, wiring.Between(a, b));
    }
  }
  std::string text = "graph G {\n", links;
  for (int a = 0; a < wiring.gpus; ++a) {
    const auto gpu = static_cast<std::size_t>(a);
    text += std::to_string(a) + "[label=\"" + matrix.gpus[gpu] + "\\nNUMA group " +
            std::to_string(wiring.numa[gpu]) + "\"];\n";
    for (int b = a + 1; b < wiring.gpus; ++b) {
      const Link link = matrix.link(a, b);
      const bool fastest = link.pcie > LinkType::kSys && wiring.Between(a, b) == best;
      if (link.fabric == LinkType::kUnknown && !fastest) continue;
      links +=
          std::to_string(a) + "--" + std::to_string(b) + " [label=\"" + LinkText(link) + "\"];\n";
    }
  }
  return text + links + "}\n";
}

Result<std::string> ShowTopology(const ShownTopology& flags) {
  BERTH_TRY(const LinkMatrix matrix, ReadTopologyFile(flags.file));
  if (flags.json) return TopologyJson(matrix) + "\n";
  const Wiring wiring = WiringOf(matrix);
  std::vector<std::vector<int>> numa(
      static_cast<std::size_t>(wiring.gpus == 0 ? 0 : *std::ranges::max_element(wiring.numa) + 1));
  for (int gpu = 0; gpu < wiring.gpus; ++gpu) {
    numa[static_cast<std::size_t>(wiring.numa[static_cast<std::size_t>(gpu)])].push_back(gpu);
  }
  WiringTables tables;
  std::string out = MatrixText(matrix) + "\n";
  out += GroupsText("islands (NVLink, xGMI):", IslandsOf(matrix));
  out += GroupsText("NUMA groups:", numa);
  for (const std::string& warning : matrix.warnings) out += "warning: " + warning + "\n";
  out += "\n" + BestSetsText(tables.SetsOf(wiring), wiring.gpus);
  return out + "\n" + GraphvizOf(matrix);
}

Result<std::string> AnnotateTopology(const ShownTopology& flags) {
  BERTH_TRY(const LinkMatrix matrix, ReadTopologyFile(flags.file));
  for (const std::string& warning : matrix.warnings) {
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
  auto annotation = wire::TopologyAnnotation(matrix);
  if (!annotation) return tl::unexpected(std::move(annotation).error().Within(flags.file));
  return *annotation + "\n";
}

}  // namespace berth
