// SPDX-License-Identifier: Apache-2.0
//
// The ecosystems that Berth speaks to, in order of precedence. A new one is a folder here and a
// line in registry.cc.
#pragma once

#include <memory>

#include "cluster/claims/device_claim.h"
#include "cluster/claims/device_offers.h"
#include "cluster/groups/pod_groups.h"
#include "cluster/node/mig_library.h"
#include "config/config.h"
#include "scoring/earmarks/pod_ends.h"
#include "server/dialects/one_at_a_time.h"
#include "server/kube/watch/watch_source.h"
#include "server/wire/pod/dialect.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::dialects {

// What the extensions fill, beside ClusterState, and what they read. References: they outlive them.
struct ExtensionParts {
  PodGroups& groups;
  MigOffers& mig_offers;
  DeviceClasses& device_classes;
  DeviceOffers& devices;
  OpenClaims& open_claims;
  const wire::PodRules& pod_rules;
  LinkLibrary& links;
  JobEndTable* job_ends = nullptr;  // nullptr: nobody asks for them
  bool chooses_devices = false;     // Berth chooses the devices of claims (DraConfig)
};

// What each of them says on Nodes and Pods, and what its agent hears.
std::shared_ptr<const wire::Dialects> AllDialects(const Config& config);

// What is watched for each of them, and what surrounds a bind.
kube::MakeExtensions AllExtensions(const ExtensionParts& parts);

// Dialects that are no more than what they read and write: their sources say what that is.

std::unique_ptr<const wire::Dialect> MakeBerth();
std::unique_ptr<const wire::Dialect> MakeDevices();
std::unique_ptr<const wire::Dialect> MakeFractions();
std::unique_ptr<const wire::Dialect> MakeGpushare(const GpushareConfig& config);
std::unique_ptr<const wire::Dialect> MakeIntel();
std::unique_ptr<const wire::Dialect> MakeKai();
std::unique_ptr<const wire::Dialect> MakeMps();
std::unique_ptr<const wire::Dialect> MakeVolcano();

// How a pod shows that the plugin has not served it yet.
Handover GpushareHandover();
Handover VolcanoHandover();

}  // namespace berth::dialects
