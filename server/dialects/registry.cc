// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/registry.h"

#include <utility>
#include <vector>

#include "server/dialects/dra/dra_watch.h"
#include "server/dialects/groups/group_dialect.h"
#include "server/dialects/hami/hami_binding.h"
#include "server/dialects/hami/hami_dialect.h"
#include "server/dialects/koordinator/koordinator_dialect.h"
#include "server/dialects/nvidia/nvidia_dialect.h"

namespace berth::dialects {

std::shared_ptr<const wire::Dialects> AllDialects(const Config& config) {
  std::vector<std::unique_ptr<const wire::Dialect>> in_order;
  in_order.push_back(MakeBerth());
  in_order.push_back(MakeHami(config.hami.give_devices));
  in_order.push_back(MakeKoordinator());
  in_order.push_back(MakeVolcano());
  in_order.push_back(MakeGpushare(config.gpushare));
  in_order.push_back(MakeMps());
  in_order.push_back(MakeFractions());
  in_order.push_back(MakeKai());
  in_order.push_back(MakeIntel());
  in_order.push_back(MakeDevices());
  in_order.push_back(MakeNvidia());
  in_order.push_back(MakeGroups(config.gangs.controllers));
  return std::make_shared<const wire::Dialects>(std::move(in_order));
}

kube::MakeExtensions AllExtensions(const ExtensionParts& parts) {
  return [parts](const kube::ExtensionContext& context) {
    kube::ClusterExtensions all;
    all.push_back(WatchDra(context,
                           {.state = context.state,
                            .offers = parts.mig_offers,
                            .classes = parts.device_classes,
                            .devices = parts.devices,
                            .open = parts.open_claims},
                           parts.chooses_devices));
    all.push_back(WatchGroups(context, parts.groups, parts.pod_rules, parts.job_ends));
    all.push_back(WatchKoordinator(context, parts.links));
    all.push_back(std::make_unique<HamiBinds>(context.write, parts.pod_rules));
    all.push_back(std::make_unique<OneAtATime>(context.write, VolcanoHandover()));
    all.push_back(std::make_unique<OneAtATime>(context.write, GpushareHandover()));
    return all;
  };
}

}  // namespace berth::dialects
