// SPDX-License-Identifier: Apache-2.0
#include "topology/mig/mig_catalog.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace berth {
namespace {

struct Shape {
  int memory_units;
  MigUnits starts;
};

// The one grid of 7 compute slices and 8 memory units that A100 and all after it share.
constexpr Shape k1g{1, 0b01111111}, k1gDouble{2, 0b01010101}, k2g{2, 0b00010101},
    k3g{4, 0b00010001}, k4g{4, 0b00000001}, k7g{8, 0b00000001};
// The 12 units of an RTX PRO 6000.
constexpr Shape kQuarter{3, 0b001001001001}, kHalf{6, 0b000001000001}, kWhole{12, 0b1};

// Memory in MiB: as NVML said it of an H100 80GB and an H200, else from the printed GiB, to a
// hundredth; 0 if it is printed nowhere.
struct Row {
  std::string_view profile;
  Shape shape;
  int max_instances;
  int memory_mib;
  bool once_per_gpu;
  MigEngines engines = {};  // decoders, encoders, jpeg, ofa, copy
};

constexpr Row kA30[] = {
    {"1g.6gb", {1, 0b1111}, 4, 5837, false},  {"1g.6gb+me", {1, 0b1111}, 1, 5837, true},
    {"2g.12gb", {2, 0b101}, 2, 11674, false}, {"2g.12gb+me", {2, 0b101}, 1, 11674, true},
    {"4g.24gb", {4, 0b1}, 1, 23347, true},
};
constexpr Row kA100With40[] = {
    {"1g.5gb", k1g, 7, 4864, false},        {"1g.5gb+me", k1g, 1, 4864, true},
    {"1g.10gb", k1gDouble, 4, 9851, false}, {"2g.10gb", k2g, 3, 9851, false},
    {"3g.20gb", k3g, 2, 19968, false},      {"4g.20gb", k4g, 1, 19968, false},
    {"7g.40gb", k7g, 1, 40192, true},
};
constexpr Row kA100With80[] = {
    {"1g.10gb", k1g, 7, 9851, false},        {"1g.10gb+me", k1g, 1, 9851, true},
    {"1g.20gb", k1gDouble, 4, 19968, false}, {"2g.20gb", k2g, 3, 19968, false},
    {"3g.40gb", k3g, 2, 40192, false},       {"4g.40gb", k4g, 1, 40192, false},
    {"7g.80gb", k7g, 1, 80384, true},
};
constexpr Row kH100With80[] = {
    {"1g.10gb", k1g, 7, 9984, false},        {"1g.10gb+me", k1g, 1, 9984, true},
    {"1g.20gb", k1gDouble, 4, 20096, false}, {"2g.20gb", k2g, 3, 20096, false},
    {"3g.40gb", k3g, 2, 40448, false},       {"4g.40gb", k4g, 1, 40448, false},
    {"7g.80gb", k7g, 1, 81152, true},
};
constexpr Row kH100With94[] = {
    {"1g.12gb", k1g, 7, 11008, false},   {"1g.12gb+me", k1g, 1, 11008, true},
    {"1g.24gb", k1gDouble, 4, 0, false}, {"2g.24gb", k2g, 3, 22139, false},
    {"3g.47gb", k3g, 2, 47493, false},   {"4g.47gb", k4g, 1, 47493, false},
    {"7g.94gb", k7g, 1, 95355, true},
};
constexpr Row kH100With96[] = {
    {"1g.12gb", k1g, 7, 0, false},       {"1g.12gb+me", k1g, 1, 0, true},
    {"1g.24gb", k1gDouble, 4, 0, false}, {"2g.24gb", k2g, 3, 0, false},
    {"3g.48gb", k3g, 2, 0, false},       {"4g.48gb", k4g, 1, 0, false},
    {"7g.96gb", k7g, 1, 0, true},
};
constexpr Row kGH200With144[] = {
    {"1g.18gb", k1g, 7, 0, false},       {"1g.18gb+me", k1g, 1, 0, true},
    {"1g.36gb", k1gDouble, 4, 0, false}, {"2g.36gb", k2g, 3, 0, false},
    {"3g.72gb", k3g, 2, 0, false},       {"4g.72gb", k4g, 1, 0, false},
    {"7g.144gb", k7g, 1, 0, true},
};
constexpr Row kH200[] = {
    {"1g.18gb", k1g, 7, 16384, false},       {"1g.18gb+me", k1g, 1, 16384, true},
    {"1g.35gb", k1gDouble, 4, 33280, false}, {"2g.35gb", k2g, 3, 33280, false},
    {"3g.71gb", k3g, 2, 71424, false},       {"4g.71gb", k4g, 1, 71424, false},
    {"7g.141gb", k7g, 1, 143360, true},
};
constexpr Row kB200[] = {
    {"1g.23gb", k1g, 7, 20992, false},       {"1g.23gb+me", k1g, 1, 20992, true},
    {"1g.45gb", k1gDouble, 4, 45312, false}, {"2g.45gb", k2g, 3, 45312, false},
    {"3g.90gb", k3g, 2, 0, false},           {"4g.90gb", k4g, 1, 0, false},
    {"7g.180gb", k7g, 1, 0, true},
};
constexpr Row kGB200[] = {
    {"1g.23gb", k1g, 7, 0, false},       {"1g.23gb+me", k1g, 1, 0, true},
    {"1g.47gb", k1gDouble, 4, 0, false}, {"2g.47gb", k2g, 3, 0, false},
    {"3g.93gb", k3g, 2, 0, false},       {"4g.93gb", k4g, 1, 0, false},
    {"7g.186gb", k7g, 1, 0, true},
};
constexpr Row kB300[] = {
    {"1g.34gb", k1g, 7, 0, false},       {"1g.34gb+me", k1g, 1, 0, true},
    {"1g.67gb", k1gDouble, 4, 0, false}, {"2g.67gb", k2g, 3, 0, false},
    {"3g.135gb", k3g, 2, 0, false},      {"4g.135gb", k4g, 1, 0, false},
    {"7g.269gb", k7g, 1, 0, true},
};
constexpr Row kGB300[] = {
    {"1g.35gb", k1g, 7, 0, false},       {"1g.35gb+me", k1g, 1, 0, true},
    {"1g.70gb", k1gDouble, 4, 0, false}, {"2g.70gb", k2g, 3, 0, false},
    {"3g.139gb", k3g, 2, 0, false},      {"4g.139gb", k4g, 1, 0, false},
    {"7g.278gb", k7g, 1, 0, true},
};
constexpr Row kRtxPro6000[] = {
    {"1g.24gb", kQuarter, 4, 24187, false, {1, 1, 1, 0, 1}},
    {"1g.24gb+me", kQuarter, 1, 24187, true, {1, 1, 1, 1, 1}},
    {"1g.24gb+gfx", kQuarter, 4, 24187, false, {1, 1, 1, 0, 1}},
    {"1g.24gb+me.all", kQuarter, 1, 24187, true, {4, 4, 4, 1, 1}},
    {"1g.24gb-me", kQuarter, 4, 24187, false, {0, 0, 0, 0, 1}},
    {"2g.48gb", kHalf, 2, 48517, false, {2, 2, 2, 0, 2}},
    {"2g.48gb+gfx", kHalf, 2, 48517, false, {2, 2, 2, 0, 2}},
    {"2g.48gb+me.all", kHalf, 1, 48517, true, {4, 4, 4, 1, 2}},
    {"2g.48gb-me", kHalf, 2, 48517, false, {0, 0, 0, 0, 2}},
    {"4g.96gb", kWhole, 1, 97280, true, {4, 4, 4, 1, 4}},
    {"4g.96gb+gfx", kWhole, 1, 97280, true, {4, 4, 4, 1, 4}},
};
constexpr Row kRtxPro5000[] = {
    {"1g.24gb", {1, 0b11}, 2, 0, false, {1, 1, 0, 0, 1}},
    {"1g.24gb+me", {1, 0b11}, 1, 0, true, {1, 1, 1, 1, 1}},
    {"1g.24gb+gfx", {1, 0b11}, 2, 0, false, {1, 1, 0, 0, 1}},
    {"1g.24gb+me.all", {1, 0b11}, 1, 0, true, {3, 3, 1, 1, 1}},
    {"1g.24gb-me", {1, 0b11}, 2, 0, false, {0, 0, 0, 0, 1}},
    {"2g.48gb", {2, 0b1}, 1, 0, true, {3, 3, 1, 1, 4}},
    {"2g.48gb+gfx", {2, 0b1}, 1, 0, true, {3, 3, 1, 1, 4}},
};
constexpr Row kRtxPro4500[] = {
    {"1g.16gb", {1, 0b11}, 2, 0, false, {1, 1, 1, 0, 1}},
    {"1g.16gb+gfx", {1, 0b11}, 2, 0, false, {1, 1, 1, 0, 1}},
    {"1g.16gb+me.all", {1, 0b11}, 1, 0, true, {3, 3, 2, 1, 1}},
    {"1g.16gb-me", {1, 0b11}, 2, 0, false, {0, 0, 0, 0, 1}},
    {"2g.32gb", {2, 0b1}, 1, 0, true, {3, 3, 2, 1, 2}},
    {"2g.32gb+gfx", {2, 0b1}, 1, 0, true, {3, 3, 2, 1, 2}},
};

using Alias = std::pair<std::string_view, std::string_view>;
// GB200 comes with two families of names, of 186 and of 189 GB.
constexpr Alias kGB200Aliases[] = {
    {"1g.24gb", "1g.23gb"}, {"1g.24gb+me", "1g.23gb+me"}, {"3g.95gb", "3g.93gb"},
    {"4g.95gb", "4g.93gb"}, {"7g.189gb", "7g.186gb"},
};

struct Product {
  std::string_view name;
  int compute_slices;
  int memory_units;
  bool engine_limited;
  MigEngines engines;
  std::span<const Row> rows;
  std::array<std::string_view, 5> labels;  // as GPU Feature Discovery writes them
  std::string_view source;
  MigConfidence confidence;
  std::span<const Alias> aliases = {};
};

constexpr Product kProducts[] = {
    {"A30-24GB",
     4,
     4,
     false,
     {},
     kA30,
     {"NVIDIA-A30"},
     "MIG User Guide r610; go-nvml; DRA driver PR 1018",
     MigConfidence::kHigh},
    {"A100-40GB",
     7,
     8,
     false,
     {},
     kA100With40,
     {"NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-PCIE-40GB", "NVIDIA-A800-SXM4-40GB",
      "NVIDIA-A800-40GB-Active", "NVIDIA-A100-40GB-PCIe"},
     "MIG User Guide r610 with its -lgipp; go-nvml",
     MigConfidence::kHigh},
    {"A100-80GB",
     7,
     8,
     false,
     {},
     kA100With80,
     {"NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-80GB-PCIe", "NVIDIA-A800-SXM4-80GB",
      "NVIDIA-A800-80GB-PCIe", "NVIDIA-A100X"},
     "MIG User Guide r610; go-nvml",
     MigConfidence::kHigh},
    {"H100-80GB",
     7,
     8,
     false,
     {},
     kH100With80,
     {"NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-PCIe", "NVIDIA-H800", "NVIDIA-H800-PCIe"},
     "MIG User Guide r610; NVML and -lgipp of an H100 SXM, driver 580.159.04",
     MigConfidence::kHigh},
    {"H100-94GB",
     7,
     8,
     false,
     {},
     kH100With94,
     {"NVIDIA-H100-NVL", "NVIDIA-H100-94GB-HBM2e", "NVIDIA-H800-NVL"},
     "MIG User Guide r610; -lgipp of H100 NVL in public notes; mig-parted PR 101",
     MigConfidence::kHigh},
    {"H100-96GB-GH200-H20",
     7,
     8,
     false,
     {},
     kH100With96,
     {"NVIDIA-GH200-480GB", "NVIDIA-GH200-120GB", "NVIDIA-H20", "NVIDIA-H100-96GB-HBM3"},
     "MIG User Guide r610; gpu-operator v26.7.0; starts as on A100 and H100",
     MigConfidence::kMediumHigh},
    {"GH200-144GB",
     7,
     8,
     false,
     {},
     kGH200With144,
     {"NVIDIA-GH200-144G-HBM3e"},
     "gpu-operator v26.7.0; starts as on A100 and H100",
     MigConfidence::kMedium},
    {"H200-141GB",
     7,
     8,
     false,
     {},
     kH200,
     {"NVIDIA-H200", "NVIDIA-H200-NVL", "NVIDIA-H20-3e"},
     "MIG User Guide r610; NVML and -lgipp of an H200, driver 580.159.04",
     MigConfidence::kHigh},
    {"B200-180GB",
     7,
     8,
     false,
     {},
     kB200,
     {"NVIDIA-B200"},
     "MIG User Guide r610; gpu-operator PR 1242, 1351; DRA driver; starts as on H100",
     MigConfidence::kMediumHigh},
    {"GB200-186GB",
     7,
     8,
     false,
     {},
     kGB200,
     {"NVIDIA-GB200"},
     "gpu-operator v26.7.0 and PR 1303; starts as on A100 and H100",
     MigConfidence::kMediumHigh,
     kGB200Aliases},
    {"B300-288GB",
     7,
     8,
     false,
     {},
     kB300,
     {"NVIDIA-B300-SXM6-AC"},
     "gpu-operator v26.7.0; starts as on A100 and H100",
     MigConfidence::kMedium},
    {"GB300-288GB",
     7,
     8,
     false,
     {},
     kGB300,
     {"NVIDIA-GB300"},
     "gpu-operator v26.7.0; starts as on A100 and H100",
     MigConfidence::kMedium},
    {"RTX-PRO-6000-BW-96GB",
     4,
     12,
     true,
     {4, 4, 4, 1, 4},
     kRtxPro6000,
     {"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
      "NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition",
      "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition"},
     "MIG User Guide r610; -lgipp of the Server Edition in public notes",
     MigConfidence::kHigh},
    {"RTX-PRO-5000-BW-48GB",
     2,
     2,
     true,
     {3, 3, 1, 1, 4},
     kRtxPro5000,
     {"NVIDIA-RTX-PRO-5000-Blackwell"},
     "MIG User Guide r610; starts guessed",
     MigConfidence::kLow},
    {"RTX-PRO-4500-BW-32GB",
     2,
     2,
     true,
     {3, 3, 2, 1, 2},
     kRtxPro4500,
     {"NVIDIA-RTX-PRO-4500-Blackwell"},
     "MIG User Guide r610; starts guessed",
     MigConfidence::kLow},
};

MigProfile ProfileNamed(std::string_view name) {
  const auto profile = ParseMigProfile(name);
  BERTH_CHECK(profile.has_value());
  return *profile;
}

MigProduct Build(const Product& product) {
  MigProductSpec spec{std::string(product.name),
                      product.compute_slices,
                      product.memory_units,
                      product.engine_limited,
                      product.engines,
                      {},
                      {}};
  for (const Row& row : product.rows) {
    spec.rows.push_back({ProfileNamed(row.profile), row.shape.memory_units, row.shape.starts,
                         row.max_instances, row.memory_mib, row.once_per_gpu, row.engines,
                         std::string(product.source), product.confidence});
  }
  for (const auto& [other, name] : product.aliases) {
    spec.aliases.emplace_back(ProfileNamed(other), ProfileNamed(name));
  }
  auto built = MigProduct::Make(std::move(spec));
  BERTH_CHECK(built.has_value());
  return *std::move(built);
}

std::string_view WithoutVendor(std::string_view label) {
  constexpr std::string_view kVendor = "NVIDIA-";
  if (label.starts_with(kVendor)) label.remove_prefix(kVendor.size());
  return label;
}

// Whether `label` is `known`, or goes on after it with a '-'.
bool Continues(std::string_view label, std::string_view known) {
  return !known.empty() && label.starts_with(known) &&
         (label.size() == known.size() || label[known.size()] == '-');
}

}  // namespace

std::span<const MigProduct> MigCatalogue() {
  static const std::vector<MigProduct> catalogue = [] {
    std::vector<MigProduct> products;
    for (const Product& product : kProducts) products.push_back(Build(product));
    return products;
  }();
  return catalogue;
}

const MigProduct* FindMigProduct(std::string_view name) {
  const auto product = std::ranges::find(MigCatalogue(), name, &MigProduct::name);
  return product == MigCatalogue().end() ? nullptr : &*product;
}

std::string_view BareGpuProductLabel(std::string_view label) {
  label = label.substr(0, label.find("-MIG-"));
  constexpr std::string_view kShared = "-SHARED";
  if (label.ends_with(kShared)) label.remove_suffix(kShared.size());
  return label;
}

const MigProduct* MigProductOfLabel(std::string_view label) {
  const std::string_view card = WithoutVendor(BareGpuProductLabel(label));
  const Product* best = nullptr;
  std::size_t longest = 0;
  for (const Product& product : kProducts) {
    for (const std::string_view known : product.labels) {
      if (known.size() <= longest || !Continues(card, WithoutVendor(known))) continue;
      longest = known.size();
      best = &product;
    }
  }
  return best == nullptr ? nullptr : &MigCatalogue()[static_cast<std::size_t>(best - kProducts)];
}

}  // namespace berth
