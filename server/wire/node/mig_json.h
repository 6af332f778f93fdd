// SPDX-License-Identifier: Apache-2.0
//
// The MIG devices of a node as JSON: the node annotation berth.dev/mig, and "mig" of a node in the
// cluster file.
//
//   {"product": "A100-40GB", "partitioning": "static",
//    "gpus": [{"index": 0, "uuid": "GPU-..",
//              "instances": [{"profile": "3g.20gb", "start": 4, "uuid": "MIG-.."},
//                            {"profile": "1g.5gb", "count": 2}]}]}
//
//   product       a name of the catalogue (topology/mig/mig_product.h); left out: that of the
//                 node's label. Where it is in neither, "memory_units" and "compute_slices" say
//                 what the GPU has, and "profiles" all that it can be cut into.
//   partitioning  "static": the instances are there. "dynamic": GPUs are cut when a pod comes, and
//                 no instances are said.
//   allocator     who picks the device: "berth" (as the annotation berth.dev/devices of the pod
//                 says), "first-fit" or another one (cluster/node/mig_spec.h). Left out: berth
//                 where dynamic, else first-fit. "kube-scheduler" is for the cluster file: what
//                 ResourceClaims hold is counted there, and no pod.
//   offered       of a GPU that is cut when a pod comes: the instances that may be made, each with
//                 "start" or at every one. Left out: all of the product. []: nothing more is given.
//   foreign       true: another scheduler gives the devices out; Berth counts what its pods have
//                 and gives none
//   fixed         true: static, and nobody can cut the GPUs otherwise
//   dialect       where the allocator is berth, the agent that makes the devices: "berth" (one that
//                 reads berth.dev/devices) or the name of another dialect (MigSpec::agent)
//   instances     with "start", or "count" of them (1) whose starts are assumed as the driver
//                 would have chosen them, the largest first. "uuid", beside a start: the device
//                 plugin's name, by which the status of a pod says that it has the device
//   profiles      rows in place of those of the product: {"profile": "1g.5gb", "size": 1,
//                 "starts": [0, 1], "max": 7, "memory_mib": 4864}
//
// The cluster file also has what otherwise comes from labels and allocatable: "knowledge",
// "shared", "single", "single_memory_mib", "trouble".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/node/mig_library.h"
#include "cluster/node/mig_spec.h"
#include "cluster/node/mig_use.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {

// MigAnnouncement: the MIG devices of a node as an agent or a person describes them, in whatever
// format. BuildMig makes the MigSpec of it.

struct MigInstance {
  MigProfile profile;
  int start = -1;         // -1: not said
  int count = 1;          // above 1 only without a start
  std::string uuid = {};  // beside a start: the device plugin's name of it; empty = not known
};

struct AnnouncedMigGpu {
  int index = -1;  // on the node
  std::string uuid;
  std::vector<MigInstance> instances;               // static: those that there are
  std::optional<std::vector<MigInstance>> offered;  // dynamic: nothing = all of the product
  std::string path;                                 // of errors: "gpus[0]"
};

struct MigAnnouncement {
  // The product: "" = that of the node's label. Where `own` has memory units it is all that the
  // product is; else its rows replace those of the catalogue.
  std::string product;
  MigProductSpec own;
  std::vector<AnnouncedMigGpu> gpus;
  // The rest as in MigSpec; `product` and `gpus` of this one are not looked at.
  MigSpec rest;
  // Nothing: as exact as the instances are.
  std::optional<MigKnowledge> knowledge;
};

// The index of the last GPU that a node may have: devices on GPUs of their own have one each.
inline constexpr int kMostMigGpuIndex = 4095;

// Completes a row that the node describes: as many instances as it has starts unless it says
// otherwise, and which profiles exist once per GPU.
void CompleteRow(MigRow& row);

// `label`: the node's product label. Builds the tables of a product whose GPUs are cut when a
// pod comes (scoring/mig/mig_tables.h), so that no decision has to. Error: kInvalidArgument with
// the field, behind `path` where that is not empty.
Result<MigSpec> BuildMig(MigAnnouncement announced, const std::string& path, std::string_view label,
                         MigLibrary& library);

// Puts one instance of the row onto the GPU where the driver would; false where none fits.
bool AddByDriver(const MigProduct& product, int row, MigSet& instances);

inline constexpr std::string_view kMigAnnotation = "berth.dev/mig";

// `label`: the node's product label. What is read is built by BuildMig. Error:
// kInvalidArgument with the path of the field.
Result<MigSpec> ReadMig(const Json& json, const std::string& path, std::string_view label,
                        MigLibrary& library);

// What ReadMig reads back as the same.
Json MigJson(const MigSpec& spec);

// For people, beside that: per GPU its memory units, the instances that pods or claims have of it,
// and the other ones that are there (static).
//
//   [{"gpu": 0, "units": 8, "taken": [{"profile": "3g.20gb", "start": 4, "size": 4}], "free": []}]
Json MigUseJson(const MigSpec& spec, const MigUse& use);

}  // namespace berth::wire
