// SPDX-License-Identifier: Apache-2.0
#include "scoring/engine/engine.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/cleanup.h"
#include "scoring/registry.h"
#include "scoring/waste/market.h"
#include "scoring/waste/pod_draws.h"

namespace berth {
namespace {

constexpr RefreshEffort kNothingWaits{std::numeric_limits<std::uint64_t>::max()};

// With GPUs, of those that the mix is of.
double GpuPodsOf(const LearnedMix::Epoch& epoch) {
  double with_gpus = 0, all = 0;
  for (const RequestClass& entry : *epoch.mix) {
    with_gpus += entry.shape.wants_gpu() ? entry.weight : 0;
    all += entry.weight;
  }
  return all > 0 ? static_cast<double>(epoch.pods) * with_gpus / all : 0;
}

}  // namespace

Result<std::shared_ptr<Engine>> Engine::Create(Learning learning, const Snapshot& snapshot) {
  std::shared_ptr<Engine> engine(new Engine(nullptr, std::move(learning)));
  Engine& self = *engine;
  const MutexLock following(self.following_mutex_);
  self.Begin(self.CurrentMix(), snapshot);
  while (self.rounds_left_ > 0) self.CalibrateOnce(snapshot);
  BERTH_TRY(Profiles profiles, self.Build());
  const MutexLock lock(self.mutex_);
  self.tables_ = std::make_shared<ProfileTables>(std::move(profiles), self.EffortOfDecisions());
  self.tables_->LookAt(snapshot);
  return engine;
}

MixUse Engine::UseOf(const Learning& learning) {
  MixUse use = MixUseOf(learning.spec);
  for (const ProfileSpec& other : learning.others) use = std::max(use, MixUseOf(other));
  return use;
}

LearnedMix::Epoch Engine::CurrentMix() const {
  return learning_.mix == nullptr ? LearnedMix::Epoch{1, learning_.fixed}
                                  : learning_.mix->Current();
}

void Engine::Begin(const LearnedMix::Epoch& epoch, const Snapshot& snapshot) {
  epoch_ = epoch.number;
  gpu_pods_ = GpuPodsOf(epoch);
  const bool knows_draws = !fleet_.empty();
  fleet_ = FleetOf(snapshot);
  models_ = ModelsOf(fleet_);
  // A configured mix is used as it is.
  RequestMix mix = learning_.mix == nullptr ? *epoch.mix : OnFleet(*epoch.mix, models_);
  if (use_ == MixUse::kDraws) {
    InheritDraws(mix_, mix);
    turnover_.Look(static_cast<double>(epoch.gpu_pods), static_cast<double>(snapshot.departed()));
    used_ = UsedOf(snapshot, WorthOf(mix, fleet_));
    if (!fleet_.empty() && !mix.empty()) rounds_left_ = knows_draws ? kRounds : kFirstRounds;
    rounds_at_once_ = epoch.pods < kBeginningPods ? rounds_left_ : 1;
  }
  mix_ = std::move(mix);
}

bool Engine::HasOtherModels(const std::shared_ptr<const Snapshot>& snapshot) {
  if (looked_at_ != nullptr && snapshot->SameNodes(*looked_at_)) return false;
  looked_at_ = snapshot;
  return ModelsOf(FleetOf(*snapshot)) != models_;
}

void Engine::CalibrateOnce(const Snapshot& snapshot) {
  Calibrate(mix_, fleet_, SampleOf(snapshot, kSample),
            AtTurnover(learning_.waste, turnover_.share(), used_));
  --rounds_left_;
}

Result<Profiles> Engine::Build() const {
  WasteParameters waste = AtTurnover(learning_.waste, turnover_.share(), used_);
  // What is configured is known.
  if (learning_.mix != nullptr) waste.least_slot_price = LeastSlotPrice(gpu_pods_);
  BERTH_TRY(Profile chosen, BuildProfile(learning_.spec, mix_, waste, fleet_));
  Profiles profiles{std::make_shared<const Profile>(std::move(chosen))};
  for (const ProfileSpec& spec : learning_.others) {
    BERTH_TRY(Profile other, BuildProfile(spec, mix_, waste, fleet_));
    profiles.others.push_back(std::make_shared<const Profile>(std::move(other)));
  }
  return profiles;
}

std::shared_ptr<ProfileTables> Engine::Tables() const {
  const MutexLock lock(mutex_);
  return tables_;
}

std::shared_ptr<const Profile> Engine::profile(const RequestShape& shape) const {
  return Tables()->profiles().Of(shape.nodes.profile);
}

std::shared_ptr<Engine> Engine::Apart() const {
  return std::shared_ptr<Engine>(
      new Engine(std::make_shared<ProfileTables>(*Tables(), kNothingWaits), {}));
}

std::shared_ptr<Engine> Engine::Apart(std::shared_ptr<const LearnedMix> mix) const {
  Learning learning = learning_;
  learning.background = {};
  if (learning.mix != nullptr) learning.mix = std::move(mix);
  std::shared_ptr<Engine> apart(new Engine(nullptr, std::move(learning)));
  Engine& its = *apart;
  its.is_thorough_ = is_thorough_ || learning_.background;
  const MutexLock following(following_mutex_);
  const MutexLock its_following(its.following_mutex_);
  its.epoch_ = epoch_;
  its.mix_ = mix_;
  its.fleet_ = fleet_;
  its.models_ = models_;
  its.looked_at_ = looked_at_;
  its.gpu_pods_ = gpu_pods_;
  its.turnover_ = turnover_;
  its.used_ = used_;
  its.rounds_left_ = rounds_left_;
  its.rounds_at_once_ = rounds_at_once_;
  its.Use(std::make_shared<ProfileTables>(*Tables(), kNothingWaits));
  return apart;
}

void Engine::ForgetTables() { Use(std::make_shared<ProfileTables>(*Tables(), Tables()->effort())); }

RefreshEffort Engine::EffortOfDecisions() const {
  if (is_thorough_) return kNothingWaits;
  return learning_.background ? kServedEffort : RefreshEffort();
}

void Engine::Use(std::shared_ptr<ProfileTables> tables) {
  const MutexLock lock(mutex_);
  // Decisions under way keep the old ones; otherwise they are freed after the lock.
  std::swap(tables_, tables);
}

std::shared_ptr<ProfileTables> Engine::Advance(const std::shared_ptr<const Snapshot>& snapshot) {
  if (rounds_left_ == 0) {
    const LearnedMix::Epoch epoch = CurrentMix();
    if (!HasOtherModels(snapshot) && epoch.number == epoch_) return nullptr;
    Begin(epoch, *snapshot);
  }
  for (int i = 0; i < rounds_at_once_ && rounds_left_ > 0; ++i) CalibrateOnce(*snapshot);
  if (rounds_left_ > 0) return nullptr;
  auto profiles = Build();
  BERTH_CHECK(profiles.has_value());  // they could be built before
  auto tables = std::make_shared<ProfileTables>(*std::move(profiles), EffortOfDecisions());
  tables->LookAt(*snapshot);
  return tables;
}

void Engine::Follow(const std::shared_ptr<const Snapshot>& snapshot) {
  if (use_ == MixUse::kNone) return;
  if (learning_.background) return FollowInBackground(snapshot);
  const MutexLock following(following_mutex_);
  std::shared_ptr<ProfileTables> tables = Advance(snapshot);
  while (is_thorough_ && rounds_left_ > 0) tables = Advance(snapshot);
  if (tables != nullptr) return Use(std::move(tables));
  {
    const MutexLock lock(waiting_mutex_);
    if (++pods_since_look_ < kPodsPerLook) return;
    pods_since_look_ = 0;
  }
  Tables()->LookAt(*snapshot);
}

void Engine::FollowInBackground(const std::shared_ptr<const Snapshot>& snapshot) {
  {
    const MutexLock lock(waiting_mutex_);
    newest_ = snapshot;
    const bool is_new = taken_up_ == nullptr || !snapshot->SameNodes(*taken_up_) ||
                        CurrentMix().number != epoch_taken_up_;
    if (++pods_since_look_ < kPodsPerLook && !is_new) return;
    if (catching_up_) return;
    catching_up_ = true;
  }
  const bool taken = learning_.background([weak = weak_from_this()] {
    if (const std::shared_ptr<Engine> self = weak.lock()) self->CatchUp();
  });
  if (taken) return;
  const MutexLock lock(waiting_mutex_);
  catching_up_ = false;  // the next pod tries again
}

void Engine::CatchUp() {
  bool has_caught_up = false;
  // If memory runs out on the way, the next pod tries again.
  const Cleanup ends([&] {
    if (has_caught_up) return;
    const MutexLock lock(waiting_mutex_);
    catching_up_ = false;
  });
  const MutexLock following(following_mutex_);
  while (true) {
    std::shared_ptr<const Snapshot> snapshot;
    bool looks = false;
    {
      const MutexLock lock(waiting_mutex_);
      const std::uint64_t epoch = CurrentMix().number;
      looks = pods_since_look_ >= kPodsPerLook;
      if (!looks && taken_up_ != nullptr && newest_->SameNodes(*taken_up_) &&
          epoch == epoch_taken_up_) {
        has_caught_up = true;
        catching_up_ = false;
        return;
      }
      if (looks) pods_since_look_ = 0;
      taken_up_ = snapshot = newest_;
      epoch_taken_up_ = epoch;
    }
    std::shared_ptr<ProfileTables> tables;
    do {
      tables = Advance(snapshot);
    } while (rounds_left_ > 0);
    if (tables == nullptr) {
      if (looks) Tables()->LookAt(*snapshot);
      continue;
    }
    tables->Prepare(snapshot, *Tables(), kPreparedShapes);
    Use(std::move(tables));
  }
}

void Engine::CompleteLater(const std::shared_ptr<ProfileTables>& tables,
                           const RequestShape& shape) {
  if (!learning_.background || !tables->NeedsCompleting(shape)) return;
  if (!learning_.background([tables, shape] { tables->Complete(shape); })) {
    tables->Complete(shape);
  }
}

}  // namespace berth
