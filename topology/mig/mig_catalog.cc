// SPDX-License-Identifier: Apache-2.0
#include "topology/mig/mig_product.h"

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

// The 12 units of an RTX PRO 6000.
constexpr Shape kQuarter{3, 0b001001001001}, kHalf{6, 0b000001000001}, kWhole{12, 0b1};

// Memory in MiB: as NVML said it of an H100 80GB and an H200, else from the printed GiB, to a
// hundredth; 0 if it is printed nowhere.
struct Row {
  MigProfile profile;
  Shape shape;
  int max_instances;
  int memory_mib;
  bool once_per_gpu;
  MigEngines engines = {};  // decoders, encoders, jpeg, ofa, copy
};

constexpr auto kMe = MigExtension::kMe, kMeAll = MigExtension::kMeAll, kNoMe = MigExtension::kNoMe,
               kGfx = MigExtension::kGfx;

// The rows of the one grid of 7 compute slices and 8 memory units that A100 and all after it share,
// by the gigabytes in the names of 1g, 2g, 3g and 7g, and the memory of 1g, 1g of two units, 2g, 3g
// and 7g.
constexpr std::array<Row, 7> Grid(const std::array<int, 4>& gb,
                                  const std::array<int, 5>& mib = {}) {
  return {{{{1, gb[0]}, {1, 0b01111111}, 7, mib[0], false},
           {{1, gb[0], kMe}, {1, 0b01111111}, 1, mib[0], true},
           {{1, gb[1]}, {2, 0b01010101}, 4, mib[1], false},
           {{2, gb[1]}, {2, 0b00010101}, 3, mib[2], false},
           {{3, gb[2]}, {4, 0b00010001}, 2, mib[3], false},
           {{4, gb[2]}, {4, 0b00000001}, 1, mib[3], false},
           {{7, gb[3]}, {8, 0b00000001}, 1, mib[4], true}}};
}
constexpr auto kA100With40 = Grid({5, 10, 20, 40}, {4864, 9851, 9851, 19968, 40192});
constexpr auto kA100With80 = Grid({10, 20, 40, 80}, {9851, 19968, 19968, 40192, 80384});
constexpr auto kH100With80 = Grid({10, 20, 40, 80}, {9984, 20096, 20096, 40448, 81152});
constexpr auto kH100With94 = Grid({12, 24, 47, 94}, {11008, 0, 22139, 47493, 95355});
constexpr auto kH100With96 = Grid({12, 24, 48, 96});
constexpr auto kGH200With144 = Grid({18, 36, 72, 144});
constexpr auto kH200 = Grid({18, 35, 71, 141}, {16384, 33280, 33280, 71424, 143360});
constexpr auto kB200 = Grid({23, 45, 90, 180}, {20992, 45312, 45312, 0, 0});
constexpr auto kGB200 = Grid({23, 47, 93, 186});
constexpr auto kB300 = Grid({34, 67, 135, 269});
constexpr auto kGB300 = Grid({35, 70, 139, 278});

constexpr Row kA30[] = {
    {{1, 6}, {1, 0b1111}, 4, 5837, false},  {{1, 6, kMe}, {1, 0b1111}, 1, 5837, true},
    {{2, 12}, {2, 0b101}, 2, 11674, false}, {{2, 12, kMe}, {2, 0b101}, 1, 11674, true},
    {{4, 24}, {4, 0b1}, 1, 23347, true},
};
constexpr Row kRtxPro6000[] = {
    {{1, 24}, kQuarter, 4, 24187, false, {1, 1, 1, 0, 1}},
    {{1, 24, kMe}, kQuarter, 1, 24187, true, {1, 1, 1, 1, 1}},
    {{1, 24, kGfx}, kQuarter, 4, 24187, false, {1, 1, 1, 0, 1}},
    {{1, 24, kMeAll}, kQuarter, 1, 24187, true, {4, 4, 4, 1, 1}},
    {{1, 24, kNoMe}, kQuarter, 4, 24187, false, {0, 0, 0, 0, 1}},
    {{2, 48}, kHalf, 2, 48517, false, {2, 2, 2, 0, 2}},
    {{2, 48, kGfx}, kHalf, 2, 48517, false, {2, 2, 2, 0, 2}},
    {{2, 48, kMeAll}, kHalf, 1, 48517, true, {4, 4, 4, 1, 2}},
    {{2, 48, kNoMe}, kHalf, 2, 48517, false, {0, 0, 0, 0, 2}},
    {{4, 96}, kWhole, 1, 97280, true, {4, 4, 4, 1, 4}},
    {{4, 96, kGfx}, kWhole, 1, 97280, true, {4, 4, 4, 1, 4}},
};
constexpr Row kRtxPro5000[] = {
    {{1, 24}, {1, 0b11}, 2, 0, false, {1, 1, 0, 0, 1}},
    {{1, 24, kMe}, {1, 0b11}, 1, 0, true, {1, 1, 1, 1, 1}},
    {{1, 24, kGfx}, {1, 0b11}, 2, 0, false, {1, 1, 0, 0, 1}},
    {{1, 24, kMeAll}, {1, 0b11}, 1, 0, true, {3, 3, 1, 1, 1}},
    {{1, 24, kNoMe}, {1, 0b11}, 2, 0, false, {0, 0, 0, 0, 1}},
    {{2, 48}, {2, 0b1}, 1, 0, true, {3, 3, 1, 1, 4}},
    {{2, 48, kGfx}, {2, 0b1}, 1, 0, true, {3, 3, 1, 1, 4}},
};
constexpr Row kRtxPro4500[] = {
    {{1, 16}, {1, 0b11}, 2, 0, false, {1, 1, 1, 0, 1}},
    {{1, 16, kGfx}, {1, 0b11}, 2, 0, false, {1, 1, 1, 0, 1}},
    {{1, 16, kMeAll}, {1, 0b11}, 1, 0, true, {3, 3, 2, 1, 1}},
    {{1, 16, kNoMe}, {1, 0b11}, 2, 0, false, {0, 0, 0, 0, 1}},
    {{2, 32}, {2, 0b1}, 1, 0, true, {3, 3, 2, 1, 2}},
    {{2, 32, kGfx}, {2, 0b1}, 1, 0, true, {3, 3, 2, 1, 2}},
};

using Alias = std::pair<MigProfile, MigProfile>;
// GB200 comes with two families of names, of 186 and of 189 GB.
constexpr Alias kGB200Aliases[] = {
    {{1, 24}, {1, 23}}, {{1, 24, kMe}, {1, 23, kMe}}, {{3, 95}, {3, 93}},
    {{4, 95}, {4, 93}}, {{7, 189}, {7, 186}},
};

struct Card {
  int compute_slices;
  int memory_units;
  bool engine_limited;
  MigEngines engines;
};
constexpr Card kSevenOfEight{7, 8, false, {}};

struct Product {
  std::string_view name;
  Card card;
  std::span<const Row> rows;
  std::array<std::string_view, 5> labels;  // as GPU Feature Discovery writes them
  std::string_view source;
  std::span<const Alias> aliases = {};
};

constexpr Product Of(std::string_view name, const Card& card, std::span<const Row> rows,
                     const std::array<std::string_view, 5>& labels, std::string_view source,
                     std::span<const Alias> aliases = {}) {
  return {name, card, rows, labels, source, aliases};
}

constexpr Product kProducts[] = {
    Of("A30-24GB", {4, 4, false, {}}, kA30, {"NVIDIA-A30"},
       "MIG User Guide r610; go-nvml; DRA driver PR 1018"),
    Of("A100-40GB", kSevenOfEight, kA100With40,
       {"NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-PCIE-40GB", "NVIDIA-A800-SXM4-40GB",
        "NVIDIA-A800-40GB-Active", "NVIDIA-A100-40GB-PCIe"},
       "MIG User Guide r610 with its -lgipp; go-nvml"),
    Of("A100-80GB", kSevenOfEight, kA100With80,
       {"NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-80GB-PCIe", "NVIDIA-A800-SXM4-80GB",
        "NVIDIA-A800-80GB-PCIe", "NVIDIA-A100X"},
       "MIG User Guide r610; go-nvml"),
    Of("H100-80GB", kSevenOfEight, kH100With80,
       {"NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-PCIe", "NVIDIA-H800", "NVIDIA-H800-PCIe"},
       "MIG User Guide r610; NVML and -lgipp of an H100 SXM, driver 580.159.04"),
    Of("H100-94GB", kSevenOfEight, kH100With94,
       {"NVIDIA-H100-NVL", "NVIDIA-H100-94GB-HBM2e", "NVIDIA-H800-NVL"},
       "MIG User Guide r610; -lgipp of H100 NVL in public notes; mig-parted PR 101"),
    Of("H100-96GB-GH200-H20", kSevenOfEight, kH100With96,
       {"NVIDIA-GH200-480GB", "NVIDIA-GH200-120GB", "NVIDIA-H20", "NVIDIA-H100-96GB-HBM3"},
       "MIG User Guide r610; gpu-operator v26.7.0; starts as on A100 and H100"),
    Of("GH200-144GB", kSevenOfEight, kGH200With144, {"NVIDIA-GH200-144G-HBM3e"},
       "gpu-operator v26.7.0; starts as on A100 and H100"),
    Of("H200-141GB", kSevenOfEight, kH200, {"NVIDIA-H200", "NVIDIA-H200-NVL", "NVIDIA-H20-3e"},
       "MIG User Guide r610; NVML and -lgipp of an H200, driver 580.159.04"),
    Of("B200-180GB", kSevenOfEight, kB200, {"NVIDIA-B200"},
       "MIG User Guide r610; gpu-operator PR 1242, 1351; DRA driver; starts as on H100"),
    Of("GB200-186GB", kSevenOfEight, kGB200, {"NVIDIA-GB200"},
       "gpu-operator v26.7.0 and PR 1303; starts as on A100 and H100", kGB200Aliases),
    Of("B300-288GB", kSevenOfEight, kB300, {"NVIDIA-B300-SXM6-AC"},
       "gpu-operator v26.7.0; starts as on A100 and H100"),
    Of("GB300-288GB", kSevenOfEight, kGB300, {"NVIDIA-GB300"},
       "gpu-operator v26.7.0; starts as on A100 and H100"),
    Of("RTX-PRO-6000-BW-96GB", {4, 12, true, {4, 4, 4, 1, 4}}, kRtxPro6000,
       {"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
        "NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition",
        "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition"},
       "MIG User Guide r610; -lgipp of the Server Edition in public notes"),
    Of("RTX-PRO-5000-BW-48GB", {2, 2, true, {3, 3, 1, 1, 4}}, kRtxPro5000,
       {"NVIDIA-RTX-PRO-5000-Blackwell"}, "MIG User Guide r610; starts guessed"),
    Of("RTX-PRO-4500-BW-32GB", {2, 2, true, {3, 3, 2, 1, 2}}, kRtxPro4500,
       {"NVIDIA-RTX-PRO-4500-Blackwell"}, "MIG User Guide r610; starts guessed")};

MigProduct Build(const Product& product) {
  const auto& [compute_slices, memory_units, engine_limited, engines] = product.card;
  MigProductSpec spec{std::string(product.name),
                      compute_slices,
                      memory_units,
                      engine_limited,
                      engines,
                      {},
                      {product.aliases.begin(), product.aliases.end()}};
  for (const Row& row : product.rows) {
    spec.rows.push_back({row.profile, row.shape.memory_units, row.shape.starts, row.max_instances,
                         row.memory_mib, row.once_per_gpu, row.engines,
                         std::string(product.source)});
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
