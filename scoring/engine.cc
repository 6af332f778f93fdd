// SPDX-License-Identifier: Apache-2.0
#include "scoring/engine.h"

#include <utility>

#include "base/check.h"
#include "scoring/fleet_mix.h"
#include "scoring/pod_draws.h"
#include "scoring/registry.h"

namespace berth {

Result<std::shared_ptr<Engine>> Engine::Create(Learning learning, const Snapshot& snapshot) {
  std::shared_ptr<Engine> engine(new Engine(nullptr, std::move(learning)));
  Engine& self = *engine;
  const MutexLock following(self.following_mutex_);
  self.Begin(self.CurrentMix(), snapshot);
  while (self.rounds_left_ > 0) self.CalibrateOnce(snapshot);
  BERTH_TRY(Profile profile, self.Build());
  const MutexLock lock(self.mutex_);
  self.tables_ = std::make_shared<ProfileTables>(std::move(profile));
  return engine;
}

LearnedMix::Epoch Engine::CurrentMix() const {
  return learning_.mix == nullptr ? LearnedMix::Epoch{1, learning_.fixed}
                                  : learning_.mix->Current();
}

void Engine::Begin(const LearnedMix::Epoch& epoch, const Snapshot& snapshot) {
  epoch_ = epoch.number;
  const bool knows_draws = !fleet_.empty();
  fleet_ = FleetOf(snapshot);
  // A mix that is configured is as its author wants it.
  RequestMix mix = learning_.mix == nullptr ? *epoch.mix : OnFleet(*epoch.mix, ModelsOf(fleet_));
  if (use_ == MixUse::kDraws) {
    InheritDraws(mix_, mix);
    turnover_.Look(static_cast<double>(epoch.gpu_pods), static_cast<double>(snapshot.departed()));
    if (!fleet_.empty() && !mix.empty()) rounds_left_ = knows_draws ? kRounds : kFirstRounds;
    rounds_at_once_ = epoch.pods < kBeginningPods ? rounds_left_ : 1;
  }
  mix_ = std::move(mix);
}

void Engine::CalibrateOnce(const Snapshot& snapshot) {
  Calibrate(mix_, fleet_, SampleOf(snapshot, kSample),
            AtTurnover(learning_.waste, turnover_.share()));
  --rounds_left_;
}

Result<Profile> Engine::Build() const {
  return BuildProfile(learning_.spec, mix_, AtTurnover(learning_.waste, turnover_.share()), fleet_);
}

std::shared_ptr<ProfileTables> Engine::Tables() const {
  const MutexLock lock(mutex_);
  return tables_;
}

std::shared_ptr<const Profile> Engine::profile() const {
  const std::shared_ptr<const ProfileTables> tables = Tables();
  return {tables, &tables->profile()};
}

void Engine::Follow(const std::shared_ptr<const Snapshot>& snapshot) {
  if (use_ == MixUse::kNone) return;
  const MutexLock following(following_mutex_);
  if (rounds_left_ == 0) {
    const LearnedMix::Epoch epoch = CurrentMix();
    const bool has_new_fleet = fleet_.empty() && !FleetOf(*snapshot).empty();
    if (epoch.number == epoch_ && !has_new_fleet) return;
    Begin(epoch, *snapshot);
  }
  for (int i = 0; i < rounds_at_once_ && rounds_left_ > 0; ++i) CalibrateOnce(*snapshot);
  if (rounds_left_ > 0) return;
  auto profile = Build();
  BERTH_CHECK(profile.has_value());  // it could be built before
  auto tables = std::make_shared<ProfileTables>(*std::move(profile));
  const MutexLock lock(mutex_);
  // Whoever still decides with the old ones keeps them; else they are freed after the lock.
  std::swap(tables_, tables);
}

}  // namespace berth
