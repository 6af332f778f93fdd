// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/koordinator/koordinator_json.h"

#include <algorithm>
#include <utility>

#include "base/quantity.h"
#include "server/dialects/koordinator/koordinator_ask.h"
#include "topology/links/product_links.h"

namespace berth::dialects {
namespace {

using wire::Fields;
using wire::Json;

constexpr int kMostNumaNodes = 1023;  // Linux' MAX_NUMNODES

struct MinorGpu {
  int minor = -1;
  KoordinatorGpu gpu;
};

Status ReadDevice(const Json& json, const std::string& path, std::vector<MinorGpu>& gpus) {
  Fields fields(json, path);
  std::string type;
  MinorGpu read;
  fields.Text("type", type);
  if (type != "gpu") return fields.FinishForeign();
  fields.Int("minor", 0, kMaxGpus - 1, read.minor);
  fields.Text("id", read.gpu.uuid);
  fields.Bool("health", read.gpu.healthy);
  fields.Object("resources", [&read](const Json& resources, const std::string& at) -> Status {
    BERTH_TRY(const std::int64_t bytes, KoordinatorAmount(resources, at, kKoordinatorMemory));
    read.gpu.memory_mib = bytes >> 20;
    return {};
  });
  fields.Object("topology", [&read](const Json& topology, const std::string& at) {
    Fields place(topology, at);
    place.Int("nodeID", -1, kMostNumaNodes, read.gpu.numa);
    place.Text("pcieID", read.gpu.pcie);
    return place.FinishForeign();
  });
  BERTH_TRY_STATUS(fields.FinishForeign());
  if (read.minor < 0) return Invalid(path + ".minor: want a number, got none");
  gpus.push_back(std::move(read));
  return {};
}

LinkType RelationOf(const KoordinatorGpu& a, const KoordinatorGpu& b) {
  if (a.numa != b.numa) return LinkType::kSys;
  return !a.pcie.empty() && a.pcie == b.pcie ? LinkType::kPxb : LinkType::kNode;
}

}  // namespace

Result<std::int64_t> KoordinatorAmount(const Json& resources, const std::string& path,
                                       std::string_view resource) {
  const auto found = resources.find(std::string(resource));
  if (found == resources.end()) return 0;
  const auto read = Quantity::Parse(found->is_string() ? found->get<std::string>() : found->dump());
  const std::string place = path + "." + std::string(resource);
  if (!read) return tl::unexpected(Error(read.error()).Within(place));
  if (read->Value() < 0) return Invalid(place + ": want 0 or more, got " + found->dump());
  return read->Value();
}

Result<KoordinatorDevice> DecodeKoordinatorDevice(const PaddedText& text) {
  const Json json = Json::parse(text.view(), nullptr, false);
  if (json.is_discarded()) return Invalid("want JSON, got something else");
  KoordinatorDevice device;
  std::vector<MinorGpu> gpus;
  Fields fields(json, "");
  fields.Object("metadata", [&device](const Json& metadata, const std::string& path) {
    Fields meta(metadata, path);
    meta.Text("name", device.name);
    return meta.FinishForeign();
  });
  fields.Object("spec", [&gpus](const Json& spec, const std::string& path) {
    Fields of_spec(spec, path);
    of_spec.List("devices", [&gpus](const Json& listed, const std::string& at) {
      return ReadDevice(listed, at, gpus);
    });
    return of_spec.FinishForeign();
  });
  BERTH_TRY_STATUS(fields.FinishForeign());
  if (device.name.empty()) return Invalid("metadata.name: want a name, got none");
  std::ranges::sort(gpus, {}, &MinorGpu::minor);
  for (MinorGpu& read : gpus) {
    const int wanted = static_cast<int>(device.gpus.size());
    if (read.minor != wanted) {
      return Invalid("spec.devices: want GPUs with the minors 0, 1, 2, ... each once, got " +
                     std::to_string(read.minor) + " in place of " + std::to_string(wanted));
    }
    device.gpus.push_back(std::move(read.gpu));
  }
  return device;
}

std::optional<LinkMatrix> LinksOfKoordinator(const KoordinatorDevice& device,
                                             std::string_view product) {
  const auto is_lost = [](const KoordinatorGpu& gpu) { return gpu.numa < 0; };
  if (device.gpus.empty() || std::ranges::any_of(device.gpus, is_lost)) return std::nullopt;
  const int count = static_cast<int>(device.gpus.size());
  auto matrix = LinksOfProduct(product, count);
  if (!matrix) {
    std::vector<std::string> names;
    for (int gpu = 0; gpu < count; ++gpu) names.push_back("GPU" + std::to_string(gpu));
    auto made = MakeLinkMatrix(std::move(names), {});
    if (!made) return std::nullopt;  // there are 1..kMaxGpus
    matrix = *std::move(made);
  }
  for (int a = 0; a < count; ++a) {
    const KoordinatorGpu& gpu = device.gpus[static_cast<std::size_t>(a)];
    matrix->numa_affinity[static_cast<std::size_t>(a)] = std::to_string(gpu.numa);
    for (int b = 0; b < count; ++b) {
      if (a == b) continue;
      matrix->link(a, b).pcie = RelationOf(gpu, device.gpus[static_cast<std::size_t>(b)]);
    }
  }
  return matrix;
}

}  // namespace berth::dialects
