// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/koordinator/koordinator_watch.h"

#include <utility>

#include "server/dialects/koordinator/koordinator_json.h"
#include "server/dialects/koordinator/koordinator_links.h"
#include "server/kube/watch/table_sink.h"

namespace berth::dialects {
namespace {

constexpr const char* kDevices = "devices";

class KoordinatorWatch final : public kube::ClusterExtension {
 public:
  KoordinatorWatch(const kube::ExtensionContext& context, LinkLibrary& library)
      : links_(context.state, library, context.on_unreadable),
        sink_(links_, kube::Whole(DecodeKoordinatorDevice), kDevices, context.on_unreadable) {}

  std::vector<kube::WatchSource> Sources() override {
    return {{.kind = {.name = kDevices,
                      .paths = kube::ApiPaths("scheduling.koordinator.sh", {"v1alpha1"}, kDevices),
                      .optional = true,
                      .why_not_ready = "waiting for the list of Koordinator's devices"},
             .sink = sink_,
             .unreadable = [this] { return sink_.unreadable() + links_.unfit(); }}};
  }

  kube::PublishNodes DecorateNodes(kube::PublishNodes next) override {
    return [this, next = std::move(next)](std::vector<ClusterEvent> events) {
      links_.Publish(std::move(events), next);
    };
  }

 private:
  KoordinatorLinks links_;
  kube::TableSink<KoordinatorLinks> sink_;
};

}  // namespace

std::unique_ptr<kube::ClusterExtension> WatchKoordinator(const kube::ExtensionContext& context,
                                                         LinkLibrary& library) {
  return std::make_unique<KoordinatorWatch>(context, library);
}

}  // namespace berth::dialects
