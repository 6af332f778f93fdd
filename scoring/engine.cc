// SPDX-License-Identifier: Apache-2.0
#include "scoring/engine.h"

#include <utility>

#include "base/check.h"
#include "scoring/pod_draws.h"
#include "scoring/registry.h"

namespace berth {

Result<std::shared_ptr<Engine>> Engine::Create(Learning learning, const Snapshot& snapshot) {
  std::shared_ptr<Engine> engine(new Engine(nullptr, std::move(learning)));
  Engine& self = *engine;
  const MutexLock following(self.following_mutex_);
  BERTH_TRY(Profile profile, self.ProfileFor(self.CurrentMix(), snapshot, kFirstRounds));
  const MutexLock lock(self.mutex_);
  self.tables_ = std::make_shared<ProfileTables>(std::move(profile));
  return engine;
}

LearnedMix::Epoch Engine::CurrentMix() const {
  return learning_.mix == nullptr ? LearnedMix::Epoch{1, learning_.fixed}
                                  : learning_.mix->Current();
}

Result<Profile> Engine::ProfileFor(const LearnedMix::Epoch& epoch, const Snapshot& snapshot,
                                   int rounds) {
  epoch_ = epoch.number;
  if (use_ != MixUse::kDraws) return BuildProfile(learning_.spec, *epoch.mix, learning_.waste);
  const Fleet fleet = FleetOf(snapshot);
  knows_fleet_ = !fleet.empty();
  RequestMix mix = *epoch.mix;
  InheritDraws(calibrated_, mix);
  Calibrate(mix, fleet, learning_.waste, rounds);
  calibrated_ = std::move(mix);
  return BuildProfile(learning_.spec, calibrated_, learning_.waste, fleet);
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
  const LearnedMix::Epoch epoch = CurrentMix();
  const bool has_new_fleet = use_ == MixUse::kDraws && !knows_fleet_ && snapshot->size() > 0;
  if (epoch.number == epoch_ && !has_new_fleet) return;
  auto profile = ProfileFor(epoch, *snapshot, knows_fleet_ ? kRounds : kFirstRounds);
  BERTH_CHECK(profile.has_value());  // it could be built before
  auto tables = std::make_shared<ProfileTables>(*std::move(profile));
  const MutexLock lock(mutex_);
  // Whoever still decides with the old ones keeps them; else they are freed after the lock.
  std::swap(tables_, tables);
}

}  // namespace berth
