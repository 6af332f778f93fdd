// SPDX-License-Identifier: Apache-2.0
#include "topology/machine_types.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/text.h"
#include "topology/gpu_vendor.h"

namespace berth {
namespace {

// Where rows were read. Azure: the pages of the series, such as ncast4v3-series.md; a size with "r"
// has RDMA. A temporary disk counts as NVMe only where the page calls it so.
constexpr std::string_view kDocAzure =
    "MicrosoftDocs/azure-compute-docs, articles/virtual-machines";

// AWS: labels and resources that Karpenter gives each type, vpc.amazonaws.com/efa among them.
constexpr std::string_view kDocKarpenter =
    "aws/karpenter-provider-aws at fbab471, reference/instance-types.md";
constexpr std::string_view kDocKarpenterDra =
    "aws/karpenter-provider-aws, documentation of DRA, Supported Instance Types";
constexpr std::string_view kDocUltraServer =
    "AWS reference architecture of the P6e-GB200 UltraServer: 18 of them have 72 GPUs";

// Google: a local SSD that one may attach is none of the type's own.
constexpr std::string_view kDocGoogle =
    "docs.cloud.google.com/compute/docs/gpus and docs/accelerator-optimized-machines; "
    "GoogleCloudPlatform/cluster-toolkit at 147e356, modules/internal/gpu-definition/main.tf";
constexpr std::string_view kDocGkeGpus =
    "GKE documentation, Run GPUs in Standard node pools, MACHINE_TYPE";

// Oracle.
constexpr std::string_view kDocOciShapes =
    "docs.oracle.com, Compute Shapes, as of 2025-02-13 (jacklty/oci_doc_crawler), and a later copy";

// Without labels of GPUs, the size, plan or flavor is the machine type. No disks and networks.
constexpr std::string_view kDocDigitalOcean =
    "docs.digitalocean.com, release notes of GPU Droplets; slugs of /v2/sizes";
constexpr std::string_view kDocLinode = "techdocs.akamai.com, GPUs on LKE; IDs of /v4/linode/types";
constexpr std::string_view kDocOvh = "ovhcloud.com, prices of Public Cloud, flavors with GPUs";
constexpr std::string_view kDocScaleway =
    "scaleway/docs-content, choosing-gpu-instance-type.mdx; prices of GPU Instances";

// The GPUs of the machines, or the parts of them.
struct CloudBoard {
  std::string_view model;
  std::int64_t memory_mib;
  int parts = 1;
  bool guessed = false;
};

// Memory is what MIG has of the whole GPU (mig_product.h).
constexpr CloudBoard kBoardA100PcieWith80{"NVIDIA-A100-80GB-PCIe", 0};
constexpr CloudBoard kBoardA100Sxm4With40{"NVIDIA-A100-SXM4-40GB", 0};
constexpr CloudBoard kBoardA100Sxm4With80{"NVIDIA-A100-SXM4-80GB", 0};
constexpr CloudBoard kBoardH100{"NVIDIA-H100-80GB-HBM3", 0};
constexpr CloudBoard kBoardH100Nvl{"NVIDIA-H100-NVL", 0};
constexpr std::string_view kPro6000 = "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition";
constexpr CloudBoard kBoardPro6000{kPro6000, 0};

// Memory as NVIDIA's DRA driver publishes it of nodes on AWS (karpenter-provider-aws, drametadata).
constexpr CloudBoard kBoardA10g{"NVIDIA-A10G", 23'028};
constexpr CloudBoard kBoardB200{"NVIDIA-B200", 182'784};
constexpr CloudBoard kBoardB300{"NVIDIA-B300-SXM6-AC", 268 * 1024};
constexpr CloudBoard kBoardH200{"NVIDIA-H200", 140 * 1024};
constexpr CloudBoard kBoardL4{"NVIDIA-L4", 23'034};
constexpr CloudBoard kBoardL4Half{"NVIDIA-L4-12Q", 12 * 1024, 2};
constexpr CloudBoard kBoardL4Quarter{"NVIDIA-L4-6Q", 6 * 1024, 4};
constexpr CloudBoard kBoardL4Eighth{"NVIDIA-L4-3Q", 3 * 1024, 8};
constexpr CloudBoard kBoardL40s{"NVIDIA-L40S", 46'068};
constexpr CloudBoard kBoardT4{"Tesla-T4", 15 * 1024};

// Memory as nvidia-smi printed it in public notes.
constexpr CloudBoard kBoardA10Sixth{"NVIDIA-A10-4Q", 4 * 1024, 6};
constexpr CloudBoard kBoardA10Vgpu{"NVIDIA-A10-24Q", 24'512};
constexpr CloudBoard kBoardGb200{"NVIDIA-GB200", 189'471};
constexpr CloudBoard kBoardGb300{"NVIDIA-GB300", 284'208};
constexpr CloudBoard kBoardT4g{"NVIDIA-T4G", 15 * 1024};
constexpr CloudBoard kBoardV100PcieWith16{"Tesla-V100-PCIE-16GB", 16'160};
constexpr CloudBoard kBoardV100Sxm2With16{"Tesla-V100-SXM2-16GB", 16'160};
constexpr CloudBoard kBoardV100Sxm2With32{"Tesla-V100-SXM2-32GB", 32'510};

constexpr CloudBoard kBoardH100Pcie{"NVIDIA-H100-PCIe", 81'559};
constexpr CloudBoard kBoardRtx4000Ada{"NVIDIA-RTX-4000-Ada-Generation", 20'475};
constexpr CloudBoard kBoardRtx6000Ada{"NVIDIA-RTX-6000-Ada-Generation", 49'140};

// Memory as devices of the openb cluster reported it (gpu_vendor.cc).
constexpr CloudBoard kBoardA10{"NVIDIA-A10", 22'731};
constexpr CloudBoard kBoardOciV100{"Tesla-V100-SXM2-16GB", 16'160, 1, true};
constexpr CloudBoard kBoardP100Pcie{"Tesla-P100-PCIE-16GB", 16'280, 1, true};
constexpr CloudBoard kBoardP100Sxm2{"Tesla-P100-SXM2-16GB", 16'280, 1, true};
constexpr CloudBoard kBoardP4{"Tesla-P4", 7'611, 1, true};

// Memory is the vendor's size. A MI300X of Azure is a virtual function, one of Oracle's a module.
constexpr CloudBoard kBoardA10Half{"NVIDIA-A10-12Q", 12 * 1024, 2};
constexpr CloudBoard kBoardA10Third{"NVIDIA-A10-8Q", 8 * 1024, 3};
constexpr CloudBoard kBoardM60{"Tesla-M60", 8 * 1024, 1, true};
constexpr CloudBoard kBoardMi25{"AMD_Radeon_Instinct_MI25", 16 * 1024, 1, true};
constexpr CloudBoard kBoardMi300x{"AMD_Instinct_MI300X_OAM", 192 * 1024};
constexpr CloudBoard kBoardMi300xVf{"AMD_Instinct_MI300X_VF", 192 * 1024, 1, true};
constexpr CloudBoard kBoardMi325xVf{"AMD_Instinct_MI325X_VF", 256 * 1024, 1, true};
constexpr CloudBoard kBoardPro6000Half{kPro6000, 48 * 1024, 2, true};
constexpr CloudBoard kBoardPro6000Quarter{kPro6000, 24 * 1024, 4, true};
constexpr CloudBoard kBoardPro6000Eighth{kPro6000, 12 * 1024, 8, true};
constexpr CloudBoard kBoardV520{"AMD_Radeon_Pro_V520", 8 * 1024, 1, true};
constexpr CloudBoard kBoardV620{"AMD_Radeon_Pro_V620", 32 * 1024, 1, true};
constexpr CloudBoard kBoardV710{"AMD_Radeon_Pro_V710", 24 * 1024, 1, true};

// The types with that board, by one source: the name, the GPUs, or "1/2" of one, with an "r" behind
// them RDMA, and GiB of local NVMe, or GB where the source has them.
struct Family {
  CloudBoard board;
  std::string_view source, types;
};
constexpr Family kFamilies[] = {
    {kBoardV520, kDocKarpenter,
     "g4ad.16xlarge 4 2400GB, g4ad.2xlarge 1 300GB, g4ad.4xlarge 1 600GB, g4ad.8xlarge 2 1200GB, "
     "g4ad.xlarge 1 150GB"},
    {kBoardT4, kDocKarpenter,
     "g4dn.12xlarge 4r 900GB, g4dn.16xlarge 1r 900GB, g4dn.2xlarge 1 225GB, g4dn.4xlarge 1 225GB, "
     "g4dn.8xlarge 1r 900GB, g4dn.metal 8r 1800GB, g4dn.xlarge 1 125GB"},
    {kBoardA10g, kDocKarpenter,
     "g5.12xlarge 4r 3800GB, g5.16xlarge 1r 1900GB, g5.24xlarge 4r 3800GB, g5.2xlarge 1 450GB, "
     "g5.48xlarge 8r 7600GB, g5.4xlarge 1 600GB, g5.8xlarge 1r 900GB, g5.xlarge 1 250GB"},
    {kBoardT4g, kDocKarpenter,
     "g5g.16xlarge 2, g5g.2xlarge 1, g5g.4xlarge 1, g5g.8xlarge 1, g5g.metal 2, g5g.xlarge 1"},
    {kBoardL4, kDocKarpenter,
     "g6.12xlarge 4r 3760GB, g6.16xlarge 1r 1880GB, g6.24xlarge 4r 3760GB, g6.2xlarge 1 450GB, "
     "g6.48xlarge 8r 7520GB, g6.4xlarge 1 600GB, g6.8xlarge 1r 900GB, g6.xlarge 1 250GB, "
     "gr6.4xlarge 1 600GB, gr6.8xlarge 1r 900GB"},
    {kBoardL40s, kDocKarpenter,
     "g6e.12xlarge 4r 3800GB, g6e.16xlarge 1r 1900GB, g6e.24xlarge 4r 3800GB, "
     "g6e.2xlarge 1 450GB, g6e.48xlarge 8r 7600GB, g6e.4xlarge 1 600GB, g6e.8xlarge 1r 900GB, "
     "g6e.xlarge 1 250GB"},
    {kBoardL4Quarter, kDocKarpenter, "g6f.2xlarge 1 200GB"},
    {kBoardL4Half, kDocKarpenter, "g6f.4xlarge 1 450GB, gr6f.4xlarge 1 450GB"},
    {kBoardL4Eighth, kDocKarpenter, "g6f.large 1 100GB, g6f.xlarge 1 100GB"},
    {kBoardV100Sxm2With16, kDocKarpenter, "p3.16xlarge 8, p3.2xlarge 1, p3.8xlarge 4"},
    {kBoardV100Sxm2With32, kDocKarpenter, "p3dn.24xlarge 8r 1800GB"},
    {kBoardA100Sxm4With40, kDocKarpenter, "p4d.24xlarge 8r 8000GB"},
    {kBoardA100Sxm4With80, kDocKarpenter, "p4de.24xlarge 8r 8000GB"},
    {kBoardH100, kDocKarpenter, "p5.48xlarge 8r 30400GB, p5.4xlarge 1r 3800GB"},
    {kBoardH200, kDocKarpenter, "p5e.48xlarge 8r 30400GB, p5en.48xlarge 8r 30400GB"},
    {kBoardB200, kDocKarpenter, "p6-b200.48xlarge 8r 30400GB"},
    {kBoardB300, kDocKarpenterDra, "p6-b300.48xlarge 8r"},
    {kBoardGb200, kDocUltraServer, "p6e-gb200.36xlarge 4r"},
    {kBoardV100PcieWith16, kDocAzure,
     "Standard_NC12s_v3 2, Standard_NC24rs_v3 4r, Standard_NC24s_v3 4, Standard_NC6s_v3 1"},
    {kBoardT4, kDocAzure,
     "Standard_NC16as_T4_v3 1, Standard_NC4as_T4_v3 1, Standard_NC64as_T4_v3 4, "
     "Standard_NC8as_T4_v3 1"},
    {kBoardA100PcieWith80, kDocAzure,
     "Standard_NC24ads_A100_v4 1 960, Standard_NC48ads_A100_v4 2 1920, "
     "Standard_NC96ads_A100_v4 4 3840"},
    {kBoardH100Nvl, kDocAzure,
     "Standard_NC40ads_H100_v5 1, Standard_NC80adis_H100_v5 2, Standard_NCC40ads_H100_v5 1"},
    {kBoardGb300, kDocAzure,
     "Standard_ND128isrG5_GB300_v6 4r 16384, Standard_ND128isr_GB300_v6 4r 16384"},
    {kBoardGb200, kDocAzure, "Standard_ND128isr_NDR_GB200_v6 4r 16384"},
    {kBoardV100Sxm2With32, kDocAzure, "Standard_ND40rs_v2 8r"},
    {kBoardA100Sxm4With80, kDocAzure, "Standard_ND96amsr_A100_v4 8r"},
    {kBoardA100Sxm4With40, kDocAzure, "Standard_ND96asr_v4 8r"},
    {kBoardH100, kDocAzure, "Standard_ND96isr_H100_v5 8r 28672"},
    {kBoardH200, kDocAzure, "Standard_ND96isr_H200_v5 8r 28672"},
    {kBoardMi300xVf, kDocAzure, "Standard_ND96isr_MI300X_v5 8r 28672"},
    {kBoardV620, kDocAzure,
     "Standard_NG16ads_V620_v1 1/2 1920, Standard_NG32adms_V620_v1 1 3840, "
     "Standard_NG32ads_V620_v1 1 3840, Standard_NG8ads_V620_v1 1/4 960"},
    {kBoardA10Third, kDocAzure, "Standard_NV12ads_A10_v5 1"},
    {kBoardM60, kDocAzure, "Standard_NV12s_v3 1, Standard_NV24s_v3 2, Standard_NV48s_v3 4"},
    {kBoardA10Half, kDocAzure, "Standard_NV18ads_A10_v5 1"},
    {kBoardV710, kDocAzure,
     "Standard_NV12ads_V710_v5 1/2, Standard_NV24ads_V710_v5 1, Standard_NV28adms_V710_v5 1, "
     "Standard_NV4ads_V710_v5 1/6, Standard_NV8ads_V710_v5 1/3"},
    {kBoardMi25, kDocAzure,
     "Standard_NV16as_v4 1/2, Standard_NV32as_v4 1, Standard_NV4as_v4 1/8, "
     "Standard_NV8as_v4 1/4"},
    {kBoardA10Vgpu, kDocAzure,
     "Standard_NV36adms_A10_v5 1, Standard_NV36ads_A10_v5 1, Standard_NV72ads_A10_v5 2"},
    {kBoardA10Sixth, kDocAzure, "Standard_NV6ads_A10_v5 1"},
    {kBoardA100Sxm4With40, kDocGoogle,
     "a2-highgpu-1g 1, a2-highgpu-2g 2, a2-highgpu-4g 4, a2-highgpu-8g 8, a2-megagpu-16g 16"},
    {kBoardA100Sxm4With80, kDocGoogle,
     "a2-ultragpu-1g 1 375, a2-ultragpu-2g 2 750, a2-ultragpu-4g 4 1500, a2-ultragpu-8g 8 3000"},
    {kBoardH100, kDocGoogle,
     "a3-edgegpu-8g 8r 6000, a3-highgpu-1g 1 750, a3-highgpu-2g 2 1500, a3-highgpu-4g 4 3000, "
     "a3-highgpu-8g 8r 6000, a3-megagpu-8g 8r 6000"},
    {kBoardH200, kDocGoogle, "a3-ultragpu-8g 8r 12000"},
    {kBoardB200, kDocGoogle, "a4-highgpu-8g 8r 12000"},
    {kBoardGb200, kDocGoogle, "a4x-highgpu-4g 4r 12000, a4x-highgpu-4g-nolssd 4r"},
    {kBoardGb300, kDocGoogle, "a4x-maxgpu-4g-metal 4r 12000"},
    {kBoardL4, kDocGoogle,
     "g2-standard-12 1, g2-standard-16 1, g2-standard-24 2, g2-standard-32 1, g2-standard-4 1, "
     "g2-standard-48 4, g2-standard-8 1, g2-standard-96 8"},
    {kBoardPro6000Quarter, kDocGoogle, "g4-standard-12 1"},
    {kBoardPro6000, kDocGoogle,
     "g4-standard-192 4, g4-standard-384 8, g4-standard-48 1, g4-standard-96 2"},
    {kBoardPro6000Half, kDocGoogle, "g4-standard-24 1"},
    {kBoardPro6000Eighth, kDocGoogle, "g4-standard-6 1"},
    {kBoardA10, kDocOciShapes, "BM.GPU.A10.4 4 7680GB, VM.GPU.A10.1 1, VM.GPU.A10.2 2"},
    {kBoardA100Sxm4With80, kDocOciShapes, "BM.GPU.A100-v2.8 8r 27200GB"},
    {kBoardH100, kDocOciShapes, "BM.GPU.H100.8 8r 61440GB"},
    {kBoardH200, kDocOciShapes, "BM.GPU.H200.8 8r 30720GB"},
    {kBoardL40s, kDocOciShapes, "BM.GPU.L40S.4 4r 7680GB"},
    {kBoardMi300x, kDocOciShapes, "BM.GPU.MI300X.8 8r 30720GB"},
    {kBoardP100Sxm2, kDocOciShapes, "BM.GPU2.2 2, VM.GPU2.1 1"},
    {kBoardOciV100, kDocOciShapes, "BM.GPU3.8 8, VM.GPU3.1 1, VM.GPU3.2 2, VM.GPU3.4 4"},
    {kBoardA100Sxm4With40, kDocOciShapes, "BM.GPU4.8 8r 27200GB"},
    {kBoardB200, kDocOciShapes, "BM.GPU.B200.8 8r 30720GB"},
    {kBoardGb200, kDocOciShapes, "BM.GPU.GB200.4 4r 30720GB"},
    {kBoardRtx4000Ada, kDocDigitalOcean, "gpu-4000adax1-20gb 1"},
    {kBoardRtx6000Ada, kDocDigitalOcean, "gpu-6000adax1-48gb 1"},
    {kBoardH100, kDocDigitalOcean, "gpu-h100x1-80gb 1, gpu-h100x8-640gb 8"},
    {kBoardH200, kDocDigitalOcean, "gpu-h200x1-141gb 1, gpu-h200x8-1128gb 8"},
    {kBoardL40s, kDocDigitalOcean, "gpu-l40sx1-48gb 1"},
    {kBoardMi300xVf, kDocDigitalOcean, "gpu-mi300x1-192gb 1, gpu-mi300x8-1536gb 8"},
    {kBoardMi325xVf, kDocDigitalOcean, "gpu-mi325x1-256gb 1, gpu-mi325x8-2048gb 8"},
    {kBoardRtx4000Ada, kDocLinode,
     "g2-gpu-rtx4000a1-l 1, g2-gpu-rtx4000a1-m 1, g2-gpu-rtx4000a1-s 1, g2-gpu-rtx4000a1-xl 1, "
     "g2-gpu-rtx4000a2-hs 2, g2-gpu-rtx4000a2-m 2, g2-gpu-rtx4000a2-s 2, g2-gpu-rtx4000a4-m 4, "
     "g2-gpu-rtx4000a4-s 4"},
    {kBoardPro6000, kDocLinode, "g3-gpu-rtxpro6000-blackwell-1 1, g3-gpu-rtxpro6000-blackwell-4 4"},
    {kBoardA10, kDocOvh, "a10-180 4, a10-45 1, a10-90 2"},
    {kBoardL4, kDocOvh, "l4-180 2, l4-360 4, l4-90 1"},
    {kBoardL40s, kDocOvh, "l40s-180 2, l40s-360 4, l40s-90 1"},
    {kBoardB300, kDocScaleway, "B300-SXM-8-288G 8"},
    {kBoardH100Pcie, kDocScaleway, "H100-1-80G 1, H100-2-80G 2"},
    {kBoardH100, kDocScaleway, "H100-SXM-2-80G 2, H100-SXM-4-80G 4, H100-SXM-8-80G 8"},
    {kBoardL4, kDocScaleway, "L4-1-24G 1, L4-2-24G 2, L4-4-24G 4, L4-8-24G 8"},
    {kBoardL40s, kDocScaleway, "L40S-1-48G 1, L40S-2-48G 2, L40S-4-48G 4, L40S-8-48G 8"},
    {kBoardP100Pcie, kDocScaleway, "RENDER-S 1"}};

// Requires: the words are those of a type (test/unit/topology/known_machine_types_test.cc).
MachineType ReadType(const Family& family, std::string_view words) {
  const auto number = [](std::string_view text, std::int64_t otherwise) {
    return ParseInt(text, 0, 1 << 20).value_or(otherwise);
  };
  const CloudBoard& board = family.board;
  const std::string_view name = NextPart(words, ' ');
  std::string_view gpus = NextPart(words, ' ');
  const bool rdma = gpus.ends_with('r'), in_gb = words.ends_with("GB");
  gpus.remove_suffix(rdma ? 1 : 0);
  words.remove_suffix(in_gb ? 2 : 0);
  const auto count = static_cast<int>(number(NextPart(gpus, '/'), 0));
  const auto parts = static_cast<int>(number(gpus, board.parts));
  const std::int64_t mib = board.memory_mib * board.parts / parts, nvme = number(words, 0);
  const std::int64_t gib = in_gb ? nvme * 1'000'000'000 / (std::int64_t{1} << 30) : nvme;
  return {name, count, board.model, board.guessed, mib, parts, rdma, gib, family.source};
}

std::vector<MachineType> ReadFamilies() {
  std::vector<MachineType> rows;
  for (const Family& family : kFamilies) {
    for (const auto type : PartsOf(family.types, ',')) rows.push_back(ReadType(family, type));
  }
  std::ranges::sort(rows, {}, &MachineType::name);
  return rows;
}

constexpr GkeAccelerator GkeRow(std::string_view value, const CloudBoard& board,
                                std::string_view source) {
  return {value, board.model, board.guessed, board.memory_mib, source};
}

constexpr std::array kGkeAccelerators = {
    GkeRow("nvidia-a100-80gb", kBoardA100Sxm4With80, kDocGkeGpus),
    GkeRow("nvidia-b200", kBoardB200, kDocGkeGpus),
    GkeRow("nvidia-gb200", kBoardGb200, kDocGoogle),
    GkeRow("nvidia-gb300", kBoardGb300, kDocGoogle),
    GkeRow("nvidia-h100-80gb", kBoardH100, kDocGkeGpus),
    GkeRow("nvidia-h100-mega-80gb", kBoardH100, kDocGkeGpus),
    GkeRow("nvidia-h200-141gb", kBoardH200, kDocGkeGpus),
    GkeRow("nvidia-l4", kBoardL4, kDocGkeGpus),
    GkeRow("nvidia-rtx-pro-6000", kBoardPro6000, kDocGkeGpus),
    GkeRow("nvidia-tesla-a100", kBoardA100Sxm4With40, kDocGkeGpus),
    GkeRow("nvidia-tesla-p100", kBoardP100Pcie, kDocGkeGpus),
    GkeRow("nvidia-tesla-p4", kBoardP4, kDocGoogle),
    GkeRow("nvidia-tesla-t4", kBoardT4, kDocGkeGpus),
    GkeRow("nvidia-tesla-v100", kBoardV100Sxm2With16, kDocGoogle),
};

constexpr std::string_view kDocGkeSpot =
    "README of nullplatform's GKE node pools, Keeping workloads off spot capacity";
constexpr SpotLabel kSpotLabels[] = {
    {"cloud.google.com/gke-provisioning", "spot", kDocGkeSpot},
    {"cloud.google.com/gke-spot", "true", kDocGkeSpot},
    {"eks.amazonaws.com/capacityType", "SPOT",
     "awsdocs/amazon-eks-user-guide, managed-node-groups.adoc"},
    {"karpenter.sh/capacity-type", "spot",
     "aws/karpenter-provider-aws, concepts/scheduling.md, Well-Known Labels"},
    {"kubernetes.azure.com/scalesetpriority", "spot",
     "MicrosoftDocs/azure-aks-docs, spot-node-pool.md"},
    {"oci.oraclecloud.com/oke-is-preemptible", "true",
     "docs.oracle.com, Cluster Management Best Practices of OKE (jacklty/oci_doc_crawler)"}};

// What the spec says comes before what the row has.
MachineType RowOf(const MachineTypeSpec& spec) {
  const MachineType* const catalogued = FindMachineType(spec.name);
  MachineType row = catalogued != nullptr ? *catalogued : MachineType{};
  row.name = spec.name;
  row.source = "the configuration";
  if (spec.gpu_model) {
    row.gpu_model = *spec.gpu_model;
    row.model_guessed = false;
  }
  row.gpus = spec.gpus.value_or(row.gpus);
  row.gpu_memory_mib = spec.gpu_memory_mib.value_or(row.gpu_memory_mib);
  row.gpu_parts = spec.gpu_parts.value_or(std::max(row.gpu_parts, 1));
  row.rdma = spec.rdma.value_or(row.rdma);
  row.nvme_gib = spec.nvme_gib.value_or(row.nvme_gib);
  row.price_per_hour = spec.price_per_hour.value_or(row.price_per_hour);
  return row;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace

std::int64_t GpuMemoryMibOf(const MachineType& type) {
  if (type.gpu_memory_mib > 0) return type.gpu_memory_mib;
  return CataloguedMemoryMib(type.gpu_model) / std::max(type.gpu_parts, 1);
}

std::string_view GpuResourceOf(const MachineType& type) {
  return type.gpu_model.starts_with("AMD_") ? "amd.com/gpu" : "nvidia.com/gpu";
}

std::span<const MachineType> MachineTypeCatalogue() {
  static const std::vector<MachineType> kRows = ReadFamilies();
  return kRows;
}

const MachineType* FindMachineType(std::string_view name) {
  const std::span<const MachineType> all = MachineTypeCatalogue();
  const auto row = std::ranges::lower_bound(all, name, {}, &MachineType::name);
  return row != all.end() && row->name == name ? &*row : nullptr;
}

std::span<const GkeAccelerator> GkeAcceleratorCatalogue() { return kGkeAccelerators; }

const GkeAccelerator* FindGkeAccelerator(std::string_view value) {
  const auto row = std::ranges::lower_bound(kGkeAccelerators, value, {}, &GkeAccelerator::value);
  return row != kGkeAccelerators.end() && row->value == value ? &*row : nullptr;
}

std::span<const SpotLabel> SpotLabels() { return kSpotLabels; }

MachineTypes::MachineTypes(std::span<const MachineTypeSpec> specs)
    : specs_(specs.begin(), specs.end()) {
  for (const MachineTypeSpec& spec : specs_) rows_.push_back(RowOf(spec));
  std::ranges::sort(rows_, {}, &MachineType::name);
}

const MachineType* MachineTypes::Find(std::string_view name) const {
  const auto row = std::ranges::lower_bound(rows_, name, {}, &MachineType::name);
  return row != rows_.end() && row->name == name ? &*row : FindMachineType(name);
}

std::vector<std::string_view> MachineTypes::NearestTo(std::string_view name,
                                                      std::size_t most) const {
  constexpr std::size_t kMostCharacters = 100;  // time grows with them
  const std::string wanted = Lower(name.substr(0, kMostCharacters));
  std::vector<std::pair<std::size_t, std::string_view>> found;
  const auto add = [&](const MachineType& row) {
    found.emplace_back(EditDistance(wanted, Lower(row.name.substr(0, kMostCharacters))), row.name);
  };
  for (const MachineType& row : rows_) add(row);
  for (const MachineType& row : MachineTypeCatalogue()) {
    if (!std::ranges::binary_search(rows_, row.name, {}, &MachineType::name)) add(row);
  }
  std::ranges::sort(found);
  std::vector<std::string_view> nearest;
  for (const auto& [distance, row] : found) {
    if (nearest.size() < most) nearest.push_back(row);
  }
  return nearest;
}

}  // namespace berth
