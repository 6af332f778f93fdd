// SPDX-License-Identifier: Apache-2.0
#include "topology/machine_types.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/text.h"
#include "topology/gpu_model.h"

namespace berth {
namespace {

// Where rows were read. Azure: pages of MicrosoftDocs/azure-compute-docs; a size with "r" has RDMA.
// A temporary disk counts as NVMe only where the page calls it so.
constexpr std::string_view kDocNcT4V3 = "azure-compute-docs, ncast4v3-series.md";
constexpr std::string_view kDocNcA100V4 =
    "azure-compute-docs, nca100v4-series.md and nca100v4-series-specs.md";
constexpr std::string_view kDocNcH100V5 = "azure-compute-docs, ncadsh100v5-series.md";
constexpr std::string_view kDocNccH100V5 = "azure-compute-docs, nccadsh100v5-series.md";
constexpr std::string_view kDocNcV3 = "azure-compute-docs, ncv3-series.md";
constexpr std::string_view kDocNdV2 = "azure-compute-docs, ndv2-series.md and ndv2-series-specs.md";
constexpr std::string_view kDocNdA100V4 = "azure-compute-docs, ndasra100v4-series.md";
constexpr std::string_view kDocNdmA100V4 = "azure-compute-docs, ndma100v4-series.md";
constexpr std::string_view kDocNdH100V5 = "azure-compute-docs, ndh100v5-series.md";
constexpr std::string_view kDocNdH200V5 = "azure-compute-docs, nd-h200-v5-series.md";
constexpr std::string_view kDocNdMi300xV5 = "azure-compute-docs, ndmi300xv5-series.md";
constexpr std::string_view kDocNdGb200V6 =
    "azure-compute-docs, nd-gb200-v6-series.md and nd-gb200-v6-series-specs.md";
constexpr std::string_view kDocNdGb300V6 =
    "azure-compute-docs, nd-gb300-v6-series.md and nd-gb300-v6-series-specs.md";
constexpr std::string_view kDocNvA10V5 = "azure-compute-docs, nvadsa10v5-series.md";
constexpr std::string_view kDocNvV710V5 = "azure-compute-docs, nvadsv710-v5-series.md";
constexpr std::string_view kDocNvV3 = "azure-compute-docs, nvv3-series.md";
constexpr std::string_view kDocNvV4 = "azure-compute-docs, nvv4-series.md";
constexpr std::string_view kDocNgV620 = "azure-compute-docs, ngadsv620-series.md";

// AWS: labels and resources that Karpenter gives each type, vpc.amazonaws.com/efa among them.
constexpr std::string_view kDocKarpenter =
    "aws/karpenter-provider-aws at fbab471, reference/instance-types.md";
constexpr std::string_view kDocKarpenterDra =
    "aws/karpenter-provider-aws, documentation of DRA, Supported Instance Types";
constexpr std::string_view kDocUltraServer =
    "AWS reference architecture of the P6e-GB200 UltraServer: 18 of them have 72 GPUs";

// Google: a local SSD that one may attach is none of the type's own.
constexpr std::string_view kDocGoogle =
    "docs.cloud.google.com/compute/docs/gpus and docs/accelerator-optimized-machines";
constexpr std::string_view kDocClusterToolkit =
    "GoogleCloudPlatform/cluster-toolkit at 147e356, modules/internal/gpu-definition/main.tf";
constexpr std::string_view kDocGkeGpus =
    "GKE documentation, Run GPUs in Standard node pools, MACHINE_TYPE";

// Oracle.
constexpr std::string_view kDocOciShapes =
    "docs.oracle.com, Compute Shapes, as of 2025-02-13 (jacklty/oci_doc_crawler)";
constexpr std::string_view kDocOciShapesLater = "docs.oracle.com, Compute Shapes, a later copy";

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

// Memory is what MIG has of the whole GPU (mig_catalog.h).
constexpr CloudBoard kBoardA100PcieWith80{"NVIDIA-A100-80GB-PCIe", 0};
constexpr CloudBoard kBoardA100Sxm4With40{"NVIDIA-A100-SXM4-40GB", 0};
constexpr CloudBoard kBoardA100Sxm4With80{"NVIDIA-A100-SXM4-80GB", 0};
constexpr CloudBoard kBoardH100{"NVIDIA-H100-80GB-HBM3", 0};
constexpr CloudBoard kBoardH100Nvl{"NVIDIA-H100-NVL", 0};
constexpr CloudBoard kBoardPro6000{"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 0};

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

// Memory as devices of the openb cluster reported it (gpu_model.cc).
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
constexpr CloudBoard kBoardMi25Half{"AMD_Radeon_Instinct_MI25", 8 * 1024, 2, true};
constexpr CloudBoard kBoardMi25Quarter{"AMD_Radeon_Instinct_MI25", 4 * 1024, 4, true};
constexpr CloudBoard kBoardMi25Eighth{"AMD_Radeon_Instinct_MI25", 2 * 1024, 8, true};
constexpr CloudBoard kBoardMi300x{"AMD_Instinct_MI300X_OAM", 192 * 1024};
constexpr CloudBoard kBoardMi300xVf{"AMD_Instinct_MI300X_VF", 192 * 1024, 1, true};
constexpr CloudBoard kBoardMi325xVf{"AMD_Instinct_MI325X_VF", 256 * 1024, 1, true};
constexpr CloudBoard kBoardPro6000Half{"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 48 * 1024, 2,
                                       true};
constexpr CloudBoard kBoardPro6000Quarter{"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 24 * 1024,
                                          4, true};
constexpr CloudBoard kBoardPro6000Eighth{"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 12 * 1024,
                                         8, true};
constexpr CloudBoard kBoardV520{"AMD_Radeon_Pro_V520", 8 * 1024, 1, true};
constexpr CloudBoard kBoardV620{"AMD_Radeon_Pro_V620", 32 * 1024, 1, true};
constexpr CloudBoard kBoardV620Half{"AMD_Radeon_Pro_V620", 16 * 1024, 2, true};
constexpr CloudBoard kBoardV620Quarter{"AMD_Radeon_Pro_V620", 8 * 1024, 4, true};
constexpr CloudBoard kBoardV710{"AMD_Radeon_Pro_V710", 24 * 1024, 1, true};
constexpr CloudBoard kBoardV710Half{"AMD_Radeon_Pro_V710", 12 * 1024, 2, true};
constexpr CloudBoard kBoardV710Third{"AMD_Radeon_Pro_V710", 8 * 1024, 3, true};
constexpr CloudBoard kBoardV710Sixth{"AMD_Radeon_Pro_V710", 4 * 1024, 6, true};

enum Fabric : bool { kEthernet = false, kRdma = true };

// AWS and Oracle print disks in units of 10^9 bytes.
constexpr std::int64_t GibOfGb(std::int64_t gigabytes) {
  return gigabytes * 1'000'000'000 / (std::int64_t{1} << 30);
}

constexpr MachineType TypeRow(std::string_view name, int gpus, const CloudBoard& board,
                              Fabric fabric, std::int64_t nvme_gib, std::string_view source) {
  return {name,        gpus,         board.model, board.guessed, board.memory_mib,
          board.parts, bool{fabric}, nvme_gib,    source};
}

constexpr std::array kMachineTypes = {
    TypeRow("B300-SXM-8-288G", 8, kBoardB300, kEthernet, 0, kDocScaleway),
    TypeRow("BM.GPU.A10.4", 4, kBoardA10, kEthernet, GibOfGb(7680), kDocOciShapes),
    TypeRow("BM.GPU.A100-v2.8", 8, kBoardA100Sxm4With80, kRdma, GibOfGb(27200), kDocOciShapes),
    TypeRow("BM.GPU.B200.8", 8, kBoardB200, kRdma, GibOfGb(30720), kDocOciShapesLater),
    TypeRow("BM.GPU.GB200.4", 4, kBoardGb200, kRdma, GibOfGb(30720), kDocOciShapesLater),
    TypeRow("BM.GPU.H100.8", 8, kBoardH100, kRdma, GibOfGb(61440), kDocOciShapes),
    TypeRow("BM.GPU.H200.8", 8, kBoardH200, kRdma, GibOfGb(30720), kDocOciShapes),
    TypeRow("BM.GPU.L40S.4", 4, kBoardL40s, kRdma, GibOfGb(7680), kDocOciShapes),
    TypeRow("BM.GPU.MI300X.8", 8, kBoardMi300x, kRdma, GibOfGb(30720), kDocOciShapes),
    TypeRow("BM.GPU2.2", 2, kBoardP100Sxm2, kEthernet, 0, kDocOciShapes),
    TypeRow("BM.GPU3.8", 8, kBoardOciV100, kEthernet, 0, kDocOciShapes),
    TypeRow("BM.GPU4.8", 8, kBoardA100Sxm4With40, kRdma, GibOfGb(27200), kDocOciShapes),
    TypeRow("H100-1-80G", 1, kBoardH100Pcie, kEthernet, 0, kDocScaleway),
    TypeRow("H100-2-80G", 2, kBoardH100Pcie, kEthernet, 0, kDocScaleway),
    TypeRow("H100-SXM-2-80G", 2, kBoardH100, kEthernet, 0, kDocScaleway),
    TypeRow("H100-SXM-4-80G", 4, kBoardH100, kEthernet, 0, kDocScaleway),
    TypeRow("H100-SXM-8-80G", 8, kBoardH100, kEthernet, 0, kDocScaleway),
    TypeRow("L4-1-24G", 1, kBoardL4, kEthernet, 0, kDocScaleway),
    TypeRow("L4-2-24G", 2, kBoardL4, kEthernet, 0, kDocScaleway),
    TypeRow("L4-4-24G", 4, kBoardL4, kEthernet, 0, kDocScaleway),
    TypeRow("L4-8-24G", 8, kBoardL4, kEthernet, 0, kDocScaleway),
    TypeRow("L40S-1-48G", 1, kBoardL40s, kEthernet, 0, kDocScaleway),
    TypeRow("L40S-2-48G", 2, kBoardL40s, kEthernet, 0, kDocScaleway),
    TypeRow("L40S-4-48G", 4, kBoardL40s, kEthernet, 0, kDocScaleway),
    TypeRow("L40S-8-48G", 8, kBoardL40s, kEthernet, 0, kDocScaleway),
    TypeRow("RENDER-S", 1, kBoardP100Pcie, kEthernet, 0, kDocScaleway),
    TypeRow("Standard_NC12s_v3", 2, kBoardV100PcieWith16, kEthernet, 0, kDocNcV3),
    TypeRow("Standard_NC16as_T4_v3", 1, kBoardT4, kEthernet, 0, kDocNcT4V3),
    TypeRow("Standard_NC24ads_A100_v4", 1, kBoardA100PcieWith80, kEthernet, 960, kDocNcA100V4),
    TypeRow("Standard_NC24rs_v3", 4, kBoardV100PcieWith16, kRdma, 0, kDocNcV3),
    TypeRow("Standard_NC24s_v3", 4, kBoardV100PcieWith16, kEthernet, 0, kDocNcV3),
    TypeRow("Standard_NC40ads_H100_v5", 1, kBoardH100Nvl, kEthernet, 0, kDocNcH100V5),
    TypeRow("Standard_NC48ads_A100_v4", 2, kBoardA100PcieWith80, kEthernet, 1920, kDocNcA100V4),
    TypeRow("Standard_NC4as_T4_v3", 1, kBoardT4, kEthernet, 0, kDocNcT4V3),
    TypeRow("Standard_NC64as_T4_v3", 4, kBoardT4, kEthernet, 0, kDocNcT4V3),
    TypeRow("Standard_NC6s_v3", 1, kBoardV100PcieWith16, kEthernet, 0, kDocNcV3),
    TypeRow("Standard_NC80adis_H100_v5", 2, kBoardH100Nvl, kEthernet, 0, kDocNcH100V5),
    TypeRow("Standard_NC8as_T4_v3", 1, kBoardT4, kEthernet, 0, kDocNcT4V3),
    TypeRow("Standard_NC96ads_A100_v4", 4, kBoardA100PcieWith80, kEthernet, 3840, kDocNcA100V4),
    TypeRow("Standard_NCC40ads_H100_v5", 1, kBoardH100Nvl, kEthernet, 0, kDocNccH100V5),
    TypeRow("Standard_ND128isrG5_GB300_v6", 4, kBoardGb300, kRdma, 16384, kDocNdGb300V6),
    TypeRow("Standard_ND128isr_GB300_v6", 4, kBoardGb300, kRdma, 16384, kDocNdGb300V6),
    TypeRow("Standard_ND128isr_NDR_GB200_v6", 4, kBoardGb200, kRdma, 16384, kDocNdGb200V6),
    TypeRow("Standard_ND40rs_v2", 8, kBoardV100Sxm2With32, kRdma, 0, kDocNdV2),
    TypeRow("Standard_ND96amsr_A100_v4", 8, kBoardA100Sxm4With80, kRdma, 0, kDocNdmA100V4),
    TypeRow("Standard_ND96asr_v4", 8, kBoardA100Sxm4With40, kRdma, 0, kDocNdA100V4),
    TypeRow("Standard_ND96isr_H100_v5", 8, kBoardH100, kRdma, 28672, kDocNdH100V5),
    TypeRow("Standard_ND96isr_H200_v5", 8, kBoardH200, kRdma, 28672, kDocNdH200V5),
    TypeRow("Standard_ND96isr_MI300X_v5", 8, kBoardMi300xVf, kRdma, 28672, kDocNdMi300xV5),
    TypeRow("Standard_NG16ads_V620_v1", 1, kBoardV620Half, kEthernet, 1920, kDocNgV620),
    TypeRow("Standard_NG32adms_V620_v1", 1, kBoardV620, kEthernet, 3840, kDocNgV620),
    TypeRow("Standard_NG32ads_V620_v1", 1, kBoardV620, kEthernet, 3840, kDocNgV620),
    TypeRow("Standard_NG8ads_V620_v1", 1, kBoardV620Quarter, kEthernet, 960, kDocNgV620),
    TypeRow("Standard_NV12ads_A10_v5", 1, kBoardA10Third, kEthernet, 0, kDocNvA10V5),
    TypeRow("Standard_NV12ads_V710_v5", 1, kBoardV710Half, kEthernet, 0, kDocNvV710V5),
    TypeRow("Standard_NV12s_v3", 1, kBoardM60, kEthernet, 0, kDocNvV3),
    TypeRow("Standard_NV16as_v4", 1, kBoardMi25Half, kEthernet, 0, kDocNvV4),
    TypeRow("Standard_NV18ads_A10_v5", 1, kBoardA10Half, kEthernet, 0, kDocNvA10V5),
    TypeRow("Standard_NV24ads_V710_v5", 1, kBoardV710, kEthernet, 0, kDocNvV710V5),
    TypeRow("Standard_NV24s_v3", 2, kBoardM60, kEthernet, 0, kDocNvV3),
    TypeRow("Standard_NV28adms_V710_v5", 1, kBoardV710, kEthernet, 0, kDocNvV710V5),
    TypeRow("Standard_NV32as_v4", 1, kBoardMi25, kEthernet, 0, kDocNvV4),
    TypeRow("Standard_NV36adms_A10_v5", 1, kBoardA10Vgpu, kEthernet, 0, kDocNvA10V5),
    TypeRow("Standard_NV36ads_A10_v5", 1, kBoardA10Vgpu, kEthernet, 0, kDocNvA10V5),
    TypeRow("Standard_NV48s_v3", 4, kBoardM60, kEthernet, 0, kDocNvV3),
    TypeRow("Standard_NV4ads_V710_v5", 1, kBoardV710Sixth, kEthernet, 0, kDocNvV710V5),
    TypeRow("Standard_NV4as_v4", 1, kBoardMi25Eighth, kEthernet, 0, kDocNvV4),
    TypeRow("Standard_NV6ads_A10_v5", 1, kBoardA10Sixth, kEthernet, 0, kDocNvA10V5),
    TypeRow("Standard_NV72ads_A10_v5", 2, kBoardA10Vgpu, kEthernet, 0, kDocNvA10V5),
    TypeRow("Standard_NV8ads_V710_v5", 1, kBoardV710Third, kEthernet, 0, kDocNvV710V5),
    TypeRow("Standard_NV8as_v4", 1, kBoardMi25Quarter, kEthernet, 0, kDocNvV4),
    TypeRow("VM.GPU.A10.1", 1, kBoardA10, kEthernet, 0, kDocOciShapes),
    TypeRow("VM.GPU.A10.2", 2, kBoardA10, kEthernet, 0, kDocOciShapes),
    TypeRow("VM.GPU2.1", 1, kBoardP100Sxm2, kEthernet, 0, kDocOciShapes),
    TypeRow("VM.GPU3.1", 1, kBoardOciV100, kEthernet, 0, kDocOciShapes),
    TypeRow("VM.GPU3.2", 2, kBoardOciV100, kEthernet, 0, kDocOciShapes),
    TypeRow("VM.GPU3.4", 4, kBoardOciV100, kEthernet, 0, kDocOciShapes),
    TypeRow("a10-180", 4, kBoardA10, kEthernet, 0, kDocOvh),
    TypeRow("a10-45", 1, kBoardA10, kEthernet, 0, kDocOvh),
    TypeRow("a10-90", 2, kBoardA10, kEthernet, 0, kDocOvh),
    TypeRow("a2-highgpu-1g", 1, kBoardA100Sxm4With40, kEthernet, 0, kDocGoogle),
    TypeRow("a2-highgpu-2g", 2, kBoardA100Sxm4With40, kEthernet, 0, kDocGoogle),
    TypeRow("a2-highgpu-4g", 4, kBoardA100Sxm4With40, kEthernet, 0, kDocGoogle),
    TypeRow("a2-highgpu-8g", 8, kBoardA100Sxm4With40, kEthernet, 0, kDocGoogle),
    TypeRow("a2-megagpu-16g", 16, kBoardA100Sxm4With40, kEthernet, 0, kDocGoogle),
    TypeRow("a2-ultragpu-1g", 1, kBoardA100Sxm4With80, kEthernet, 375, kDocGoogle),
    TypeRow("a2-ultragpu-2g", 2, kBoardA100Sxm4With80, kEthernet, 750, kDocGoogle),
    TypeRow("a2-ultragpu-4g", 4, kBoardA100Sxm4With80, kEthernet, 1500, kDocGoogle),
    TypeRow("a2-ultragpu-8g", 8, kBoardA100Sxm4With80, kEthernet, 3000, kDocGoogle),
    TypeRow("a3-edgegpu-8g", 8, kBoardH100, kRdma, 6000, kDocGoogle),
    TypeRow("a3-highgpu-1g", 1, kBoardH100, kEthernet, 750, kDocGoogle),
    TypeRow("a3-highgpu-2g", 2, kBoardH100, kEthernet, 1500, kDocGoogle),
    TypeRow("a3-highgpu-4g", 4, kBoardH100, kEthernet, 3000, kDocGoogle),
    TypeRow("a3-highgpu-8g", 8, kBoardH100, kRdma, 6000, kDocGoogle),
    TypeRow("a3-megagpu-8g", 8, kBoardH100, kRdma, 6000, kDocGoogle),
    TypeRow("a3-ultragpu-8g", 8, kBoardH200, kRdma, 12000, kDocGoogle),
    TypeRow("a4-highgpu-8g", 8, kBoardB200, kRdma, 12000, kDocGoogle),
    TypeRow("a4x-highgpu-4g", 4, kBoardGb200, kRdma, 12000, kDocGoogle),
    TypeRow("a4x-highgpu-4g-nolssd", 4, kBoardGb200, kRdma, 0, kDocClusterToolkit),
    TypeRow("a4x-maxgpu-4g-metal", 4, kBoardGb300, kRdma, 12000, kDocGoogle),
    TypeRow("g2-gpu-rtx4000a1-l", 1, kBoardRtx4000Ada, kEthernet, 0, kDocLinode),
    TypeRow("g2-gpu-rtx4000a1-m", 1, kBoardRtx4000Ada, kEthernet, 0, kDocLinode),
    TypeRow("g2-gpu-rtx4000a1-s", 1, kBoardRtx4000Ada, kEthernet, 0, kDocLinode),
    TypeRow("g2-gpu-rtx4000a1-xl", 1, kBoardRtx4000Ada, kEthernet, 0, kDocLinode),
    TypeRow("g2-gpu-rtx4000a2-hs", 2, kBoardRtx4000Ada, kEthernet, 0, kDocLinode),
    TypeRow("g2-gpu-rtx4000a2-m", 2, kBoardRtx4000Ada, kEthernet, 0, kDocLinode),
    TypeRow("g2-gpu-rtx4000a2-s", 2, kBoardRtx4000Ada, kEthernet, 0, kDocLinode),
    TypeRow("g2-gpu-rtx4000a4-m", 4, kBoardRtx4000Ada, kEthernet, 0, kDocLinode),
    TypeRow("g2-gpu-rtx4000a4-s", 4, kBoardRtx4000Ada, kEthernet, 0, kDocLinode),
    TypeRow("g2-standard-12", 1, kBoardL4, kEthernet, 0, kDocGoogle),
    TypeRow("g2-standard-16", 1, kBoardL4, kEthernet, 0, kDocGoogle),
    TypeRow("g2-standard-24", 2, kBoardL4, kEthernet, 0, kDocGoogle),
    TypeRow("g2-standard-32", 1, kBoardL4, kEthernet, 0, kDocGoogle),
    TypeRow("g2-standard-4", 1, kBoardL4, kEthernet, 0, kDocGoogle),
    TypeRow("g2-standard-48", 4, kBoardL4, kEthernet, 0, kDocGoogle),
    TypeRow("g2-standard-8", 1, kBoardL4, kEthernet, 0, kDocGoogle),
    TypeRow("g2-standard-96", 8, kBoardL4, kEthernet, 0, kDocGoogle),
    TypeRow("g3-gpu-rtxpro6000-blackwell-1", 1, kBoardPro6000, kEthernet, 0, kDocLinode),
    TypeRow("g3-gpu-rtxpro6000-blackwell-4", 4, kBoardPro6000, kEthernet, 0, kDocLinode),
    TypeRow("g4-standard-12", 1, kBoardPro6000Quarter, kEthernet, 0, kDocGoogle),
    TypeRow("g4-standard-192", 4, kBoardPro6000, kEthernet, 0, kDocGoogle),
    TypeRow("g4-standard-24", 1, kBoardPro6000Half, kEthernet, 0, kDocGoogle),
    TypeRow("g4-standard-384", 8, kBoardPro6000, kEthernet, 0, kDocGoogle),
    TypeRow("g4-standard-48", 1, kBoardPro6000, kEthernet, 0, kDocGoogle),
    TypeRow("g4-standard-6", 1, kBoardPro6000Eighth, kEthernet, 0, kDocGoogle),
    TypeRow("g4-standard-96", 2, kBoardPro6000, kEthernet, 0, kDocGoogle),
    TypeRow("g4ad.16xlarge", 4, kBoardV520, kEthernet, GibOfGb(2400), kDocKarpenter),
    TypeRow("g4ad.2xlarge", 1, kBoardV520, kEthernet, GibOfGb(300), kDocKarpenter),
    TypeRow("g4ad.4xlarge", 1, kBoardV520, kEthernet, GibOfGb(600), kDocKarpenter),
    TypeRow("g4ad.8xlarge", 2, kBoardV520, kEthernet, GibOfGb(1200), kDocKarpenter),
    TypeRow("g4ad.xlarge", 1, kBoardV520, kEthernet, GibOfGb(150), kDocKarpenter),
    TypeRow("g4dn.12xlarge", 4, kBoardT4, kRdma, GibOfGb(900), kDocKarpenter),
    TypeRow("g4dn.16xlarge", 1, kBoardT4, kRdma, GibOfGb(900), kDocKarpenter),
    TypeRow("g4dn.2xlarge", 1, kBoardT4, kEthernet, GibOfGb(225), kDocKarpenter),
    TypeRow("g4dn.4xlarge", 1, kBoardT4, kEthernet, GibOfGb(225), kDocKarpenter),
    TypeRow("g4dn.8xlarge", 1, kBoardT4, kRdma, GibOfGb(900), kDocKarpenter),
    TypeRow("g4dn.metal", 8, kBoardT4, kRdma, GibOfGb(1800), kDocKarpenter),
    TypeRow("g4dn.xlarge", 1, kBoardT4, kEthernet, GibOfGb(125), kDocKarpenter),
    TypeRow("g5.12xlarge", 4, kBoardA10g, kRdma, GibOfGb(3800), kDocKarpenter),
    TypeRow("g5.16xlarge", 1, kBoardA10g, kRdma, GibOfGb(1900), kDocKarpenter),
    TypeRow("g5.24xlarge", 4, kBoardA10g, kRdma, GibOfGb(3800), kDocKarpenter),
    TypeRow("g5.2xlarge", 1, kBoardA10g, kEthernet, GibOfGb(450), kDocKarpenter),
    TypeRow("g5.48xlarge", 8, kBoardA10g, kRdma, GibOfGb(7600), kDocKarpenter),
    TypeRow("g5.4xlarge", 1, kBoardA10g, kEthernet, GibOfGb(600), kDocKarpenter),
    TypeRow("g5.8xlarge", 1, kBoardA10g, kRdma, GibOfGb(900), kDocKarpenter),
    TypeRow("g5.xlarge", 1, kBoardA10g, kEthernet, GibOfGb(250), kDocKarpenter),
    TypeRow("g5g.16xlarge", 2, kBoardT4g, kEthernet, 0, kDocKarpenter),
    TypeRow("g5g.2xlarge", 1, kBoardT4g, kEthernet, 0, kDocKarpenter),
    TypeRow("g5g.4xlarge", 1, kBoardT4g, kEthernet, 0, kDocKarpenter),
    TypeRow("g5g.8xlarge", 1, kBoardT4g, kEthernet, 0, kDocKarpenter),
    TypeRow("g5g.metal", 2, kBoardT4g, kEthernet, 0, kDocKarpenter),
    TypeRow("g5g.xlarge", 1, kBoardT4g, kEthernet, 0, kDocKarpenter),
    TypeRow("g6.12xlarge", 4, kBoardL4, kRdma, GibOfGb(3760), kDocKarpenter),
    TypeRow("g6.16xlarge", 1, kBoardL4, kRdma, GibOfGb(1880), kDocKarpenter),
    TypeRow("g6.24xlarge", 4, kBoardL4, kRdma, GibOfGb(3760), kDocKarpenter),
    TypeRow("g6.2xlarge", 1, kBoardL4, kEthernet, GibOfGb(450), kDocKarpenter),
    TypeRow("g6.48xlarge", 8, kBoardL4, kRdma, GibOfGb(7520), kDocKarpenter),
    TypeRow("g6.4xlarge", 1, kBoardL4, kEthernet, GibOfGb(600), kDocKarpenter),
    TypeRow("g6.8xlarge", 1, kBoardL4, kRdma, GibOfGb(900), kDocKarpenter),
    TypeRow("g6.xlarge", 1, kBoardL4, kEthernet, GibOfGb(250), kDocKarpenter),
    TypeRow("g6e.12xlarge", 4, kBoardL40s, kRdma, GibOfGb(3800), kDocKarpenter),
    TypeRow("g6e.16xlarge", 1, kBoardL40s, kRdma, GibOfGb(1900), kDocKarpenter),
    TypeRow("g6e.24xlarge", 4, kBoardL40s, kRdma, GibOfGb(3800), kDocKarpenter),
    TypeRow("g6e.2xlarge", 1, kBoardL40s, kEthernet, GibOfGb(450), kDocKarpenter),
    TypeRow("g6e.48xlarge", 8, kBoardL40s, kRdma, GibOfGb(7600), kDocKarpenter),
    TypeRow("g6e.4xlarge", 1, kBoardL40s, kEthernet, GibOfGb(600), kDocKarpenter),
    TypeRow("g6e.8xlarge", 1, kBoardL40s, kRdma, GibOfGb(900), kDocKarpenter),
    TypeRow("g6e.xlarge", 1, kBoardL40s, kEthernet, GibOfGb(250), kDocKarpenter),
    TypeRow("g6f.2xlarge", 1, kBoardL4Quarter, kEthernet, GibOfGb(200), kDocKarpenter),
    TypeRow("g6f.4xlarge", 1, kBoardL4Half, kEthernet, GibOfGb(450), kDocKarpenter),
    TypeRow("g6f.large", 1, kBoardL4Eighth, kEthernet, GibOfGb(100), kDocKarpenter),
    TypeRow("g6f.xlarge", 1, kBoardL4Eighth, kEthernet, GibOfGb(100), kDocKarpenter),
    TypeRow("gpu-4000adax1-20gb", 1, kBoardRtx4000Ada, kEthernet, 0, kDocDigitalOcean),
    TypeRow("gpu-6000adax1-48gb", 1, kBoardRtx6000Ada, kEthernet, 0, kDocDigitalOcean),
    TypeRow("gpu-h100x1-80gb", 1, kBoardH100, kEthernet, 0, kDocDigitalOcean),
    TypeRow("gpu-h100x8-640gb", 8, kBoardH100, kEthernet, 0, kDocDigitalOcean),
    TypeRow("gpu-h200x1-141gb", 1, kBoardH200, kEthernet, 0, kDocDigitalOcean),
    TypeRow("gpu-h200x8-1128gb", 8, kBoardH200, kEthernet, 0, kDocDigitalOcean),
    TypeRow("gpu-l40sx1-48gb", 1, kBoardL40s, kEthernet, 0, kDocDigitalOcean),
    TypeRow("gpu-mi300x1-192gb", 1, kBoardMi300xVf, kEthernet, 0, kDocDigitalOcean),
    TypeRow("gpu-mi300x8-1536gb", 8, kBoardMi300xVf, kEthernet, 0, kDocDigitalOcean),
    TypeRow("gpu-mi325x1-256gb", 1, kBoardMi325xVf, kEthernet, 0, kDocDigitalOcean),
    TypeRow("gpu-mi325x8-2048gb", 8, kBoardMi325xVf, kEthernet, 0, kDocDigitalOcean),
    TypeRow("gr6.4xlarge", 1, kBoardL4, kEthernet, GibOfGb(600), kDocKarpenter),
    TypeRow("gr6.8xlarge", 1, kBoardL4, kRdma, GibOfGb(900), kDocKarpenter),
    TypeRow("gr6f.4xlarge", 1, kBoardL4Half, kEthernet, GibOfGb(450), kDocKarpenter),
    TypeRow("l4-180", 2, kBoardL4, kEthernet, 0, kDocOvh),
    TypeRow("l4-360", 4, kBoardL4, kEthernet, 0, kDocOvh),
    TypeRow("l4-90", 1, kBoardL4, kEthernet, 0, kDocOvh),
    TypeRow("l40s-180", 2, kBoardL40s, kEthernet, 0, kDocOvh),
    TypeRow("l40s-360", 4, kBoardL40s, kEthernet, 0, kDocOvh),
    TypeRow("l40s-90", 1, kBoardL40s, kEthernet, 0, kDocOvh),
    TypeRow("p3.16xlarge", 8, kBoardV100Sxm2With16, kEthernet, 0, kDocKarpenter),
    TypeRow("p3.2xlarge", 1, kBoardV100Sxm2With16, kEthernet, 0, kDocKarpenter),
    TypeRow("p3.8xlarge", 4, kBoardV100Sxm2With16, kEthernet, 0, kDocKarpenter),
    TypeRow("p3dn.24xlarge", 8, kBoardV100Sxm2With32, kRdma, GibOfGb(1800), kDocKarpenter),
    TypeRow("p4d.24xlarge", 8, kBoardA100Sxm4With40, kRdma, GibOfGb(8000), kDocKarpenter),
    TypeRow("p4de.24xlarge", 8, kBoardA100Sxm4With80, kRdma, GibOfGb(8000), kDocKarpenter),
    TypeRow("p5.48xlarge", 8, kBoardH100, kRdma, GibOfGb(30400), kDocKarpenter),
    TypeRow("p5.4xlarge", 1, kBoardH100, kRdma, GibOfGb(3800), kDocKarpenter),
    TypeRow("p5e.48xlarge", 8, kBoardH200, kRdma, GibOfGb(30400), kDocKarpenter),
    TypeRow("p5en.48xlarge", 8, kBoardH200, kRdma, GibOfGb(30400), kDocKarpenter),
    TypeRow("p6-b200.48xlarge", 8, kBoardB200, kRdma, GibOfGb(30400), kDocKarpenter),
    TypeRow("p6-b300.48xlarge", 8, kBoardB300, kRdma, 0, kDocKarpenterDra),
    TypeRow("p6e-gb200.36xlarge", 4, kBoardGb200, kRdma, 0, kDocUltraServer),
};

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
constexpr std::array<SpotLabel, 6> kSpotLabels = {{
    {"cloud.google.com/gke-provisioning", "spot", kDocGkeSpot},
    {"cloud.google.com/gke-spot", "true", kDocGkeSpot},
    {"eks.amazonaws.com/capacityType", "SPOT",
     "awsdocs/amazon-eks-user-guide, managed-node-groups.adoc"},
    {"karpenter.sh/capacity-type", "spot",
     "aws/karpenter-provider-aws, concepts/scheduling.md, Well-Known Labels"},
    {"kubernetes.azure.com/scalesetpriority", "spot",
     "MicrosoftDocs/azure-aks-docs, spot-node-pool.md"},
    {"oci.oraclecloud.com/oke-is-preemptible", "true",
     "docs.oracle.com, Cluster Management Best Practices of OKE (jacklty/oci_doc_crawler)"},
}};

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

std::span<const MachineType> MachineTypeCatalogue() { return kMachineTypes; }

const MachineType* FindMachineType(std::string_view name) {
  const auto row = std::ranges::lower_bound(kMachineTypes, name, {}, &MachineType::name);
  return row != kMachineTypes.end() && row->name == name ? &*row : nullptr;
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
