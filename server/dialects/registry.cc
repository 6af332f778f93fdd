// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/registry.h"

#include "server/dialects/dra/dra_watch.h"
#include "server/dialects/groups/group_watch.h"
#include "server/dialects/hami/hami_binds.h"
#include "server/dialects/instaslice/instaslice_watch.h"
#include "server/dialects/koordinator/koordinator_watch.h"

namespace berth::dialects {

kube::MakeExtensions AllExtensions(const ExtensionParts& parts) {
  return [parts](const kube::ExtensionContext& context) {
    kube::ClusterExtensions all;
    all.push_back(WatchDra(context, parts.mig_offers, parts.device_classes));
    all.push_back(WatchGroups(context, parts.groups, parts.pod_rules.levels()));
    all.push_back(WatchInstaslice(context));
    all.push_back(WatchKoordinator(context, parts.links));
    all.push_back(std::make_unique<HamiBinds>(context.write, parts.pod_rules));
    return all;
  };
}

}  // namespace berth::dialects
