// SPDX-License-Identifier: Apache-2.0
//
// NCCL's (and RCCL's) topology file: <system> of <cpu> of nested <pci>, with <gpu> and <nvlink> or
// <xgmi> where NCCL itself wrote it (NCCL_TOPO_DUMP_FILE).
//
// PCIe relations follow from the tree: the same bridge above both is PIX, a bridge higher up PXB,
// the same <cpu> PHB, else SYS. NVLinks to a switch reach every other GPU of that switch fabric
// with the smaller count of the two. Files of cloud providers name no NVLinks: then the matrix has
// none, with the warning "no-fabric-listed".
#pragma once

#include <string_view>

#include "base/result.h"
#include "topology/links/link_matrix.h"

namespace berth {

// GPUs are named GPU0.. by their `dev`, or in the order of the file if some have none. Error:
// kInvalidArgument with the element ("pci 0000:18:00.0: nvlink.count: want ..."), or the offset at
// which the text is not XML. Documents nested deeper than 64 elements are refused.
Result<LinkMatrix> ParseNcclXml(std::string_view text);

}  // namespace berth
