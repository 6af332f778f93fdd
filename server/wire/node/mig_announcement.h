// SPDX-License-Identifier: Apache-2.0
//
// MigAnnouncement: the MIG devices of a node as an agent or a person describes them, in whatever
// format. BuildMig makes the MigSpec of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/node/mig_library.h"
#include "cluster/node/mig_spec.h"

namespace berth::wire {

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

}  // namespace berth::wire
