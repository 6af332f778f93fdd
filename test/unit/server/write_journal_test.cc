// SPDX-License-Identifier: Apache-2.0
#include "server/kube/lead/write_journal.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "bench/replay/time/sim_clock.h"
#include "server/kube/lead/leader_elector.h"
#include "test/support/config_places.h"
#include "test/support/fake_api_server.h"

namespace berth::kube::write_journal_test {
namespace {

using std::chrono::seconds;
using Notes = std::vector<std::string>;

class WriteJournalTest : public testing::Test {
 protected:
  // A process that is started.
  std::unique_ptr<WriteJournal> Start() {
    auto journal = WriteJournal::Open(folder_.At(""), clock_, seconds(15));
    EXPECT_TRUE(journal) << journal.error().message;
    return journal ? *std::move(journal) : nullptr;
  }
  // What the next process finds, whether or not that goes on.
  Notes LeftBehind() { return Start()->TakeLeft(); }

  const test::ConfigFolder folder_;
  SimClock clock_;
};

TEST_F(WriteJournalTest, OneProcessAtATimeHasIt) {
  const auto first = Start();
  const auto second = WriteJournal::Open(folder_.At(""), clock_, seconds(15));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kConflict);
  EXPECT_EQ(WriteJournal::Open("/nowhere", clock_, seconds(15)).error().code, Errc::kUnavailable);
}

TEST_F(WriteJournalTest, TheNextProcessGoesOnAndKnowsWhatWasOnItsWay) {
  std::string token;
  {
    const auto before = Start();
    token = before->token();
    EXPECT_EQ(token.size(), 16u);
    EXPECT_EQ(before->TakeLeft(), Notes());
    const std::size_t a = before->Begin("a"), b = before->Begin("b"), c = before->Begin("c");
    EXPECT_NE(a, b);
    before->End(a, Instant::min());
    before->End(c, clock_.Now() + seconds(15));  // nobody knows its outcome
    (void)before->Begin("d");
  }
  const auto next = Start();
  EXPECT_EQ(next->token(), token);
  EXPECT_EQ(next->TakeLeft(), (Notes{"d", "b", "c"}));
  EXPECT_EQ(next->TakeLeft(), Notes());
}

TEST_F(WriteJournalTest, WhatWasOnItsWayIsOverWhenTheLeaseIs) {
  (void)Start()->Begin("a");
  const auto next = Start();
  clock_.Advance(seconds(15));
  EXPECT_EQ(next->TakeLeft(), Notes());
}

TEST_F(WriteJournalTest, ADoubtThatIsOverIsNotLeftToAnybody) {
  {
    const auto before = Start();
    before->End(before->Begin("long ago"), clock_.Now() + seconds(15));
    clock_.Advance(seconds(15));
    before->End(before->Begin("now"), Instant::min());
  }
  EXPECT_EQ(LeftBehind(), Notes());
}

TEST_F(WriteJournalTest, AWriteThatNobodyCanTellMakesTheNextProcessAnother) {
  for (const std::string& note :
       {std::string(), std::string(WriteJournal::kMostNoteBytes + 1, 'x')}) {
    std::string token;
    {
      const auto before = Start();
      token = before->token();
      before->End(before->Begin(note), Instant::min());
    }
    {
      const auto before = Start();
      EXPECT_EQ(before->token(), token) << "it has ended";
      (void)before->Begin("a");
      (void)before->Begin(note);
    }
    const auto next = Start();
    EXPECT_NE(next->token(), token);
    EXPECT_EQ(next->TakeLeft(), Notes());
  }
}

TEST_F(WriteJournalTest, MoreWritesThanItHasRoomForMakeTheNextProcessAnother) {
  auto journal = Start();
  const std::string first = journal->token();
  const std::string longest(WriteJournal::kMostNoteBytes, 'x');
  std::vector<std::size_t> writes;
  for (std::size_t i = 0; i < WriteJournal::kSlots; ++i) writes.push_back(journal->Begin(longest));
  journal = nullptr;
  journal = Start();
  EXPECT_EQ(journal->token(), first);
  EXPECT_EQ(journal->TakeLeft(), Notes(WriteJournal::kSlots, longest));
  const std::size_t more = journal->Begin("one more");
  journal->End(more, clock_.Now() + seconds(20));
  journal = nullptr;
  journal = Start();
  const std::string second = journal->token();
  EXPECT_NE(second, first);
  // When all of it is over it goes on again.
  for (std::size_t& write : writes) write = journal->Begin("a");
  journal->End(journal->Begin("one more"), clock_.Now() + seconds(20));
  for (const std::size_t write : writes) journal->End(write, Instant::min());
  clock_.Advance(seconds(20));
  journal->End(journal->Begin("a"), Instant::min());
  journal = nullptr;
  EXPECT_EQ(Start()->token(), second);
}

TEST_F(WriteJournalTest, AFileThatIsNotItsOwnIsBegunAnew) {
  const std::string token = Start()->token();
  const std::string path = folder_.At("writes");
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(32);
    file << "another machine";
  }
  const std::string next = Start()->token();
  EXPECT_NE(next, token);
  std::ofstream(path, std::ios::binary) << std::string(5'000'000, 'x');
  const auto last = Start();
  EXPECT_NE(last->token(), next);
  EXPECT_EQ(last->TakeLeft(), Notes());
}

TEST_F(WriteJournalTest, APathThatIsALinkIsNotFollowed) {
  const std::string path = folder_.At("writes");
  ASSERT_EQ(symlink("/dev/zero", path.c_str()), 0);
  EXPECT_EQ(WriteJournal::Open(folder_.At(""), clock_, seconds(15)).error().code,
            Errc::kUnavailable);
}

// What was noted is there although the process had no moment more.
TEST_F(WriteJournalTest, OutlivesAProcessThatIsKilled) {
  const std::string token = Start()->token();
  const pid_t child = fork();
  if (child == 0) {
    auto journal = WriteJournal::Open(folder_.At(""), clock_, seconds(15));
    if (journal) (void)(*journal)->Begin("on its way");
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto next = Start();
  EXPECT_EQ(next->token(), token);
  EXPECT_EQ(next->TakeLeft(), Notes{"on its way"});
}

// As in leader_elector.h: under the same identity at once, under another one after the lease.
TEST_F(WriteJournalTest, AProcessThatGoesOnLeadsAtOnce) {
  test::FakeApiServer api;
  api.Put("/apis/coordination.k8s.io/v1/leases",
          {{"metadata", {{"name", "berth"}, {"namespace", "ns"}}},
           {"spec", {{"holderIdentity", ""}, {"leaseDurationSeconds", 1}}}});
  const auto leads = [&](WriteJournal* journal, const std::string& identity,
                         const NoteOfWrite& note) {
    LeaderElector elector(
        api, clock_,
        {.namespace_name = "ns", .name = "berth", .identity = identity, .journal = journal});
    (void)elector.Step();
    (void)elector.WriteBegins(note);  // it is killed while that is on its way
    return elector.leading();
  };
  const NoteOfWrite told = [] { return "a"; };
  auto journal = Start();
  EXPECT_TRUE(leads(journal.get(), "host_" + journal->token(), told));
  journal = nullptr;
  EXPECT_FALSE(leads(nullptr, "host_", told)) << "one elsewhere waits";
  journal = Start();
  EXPECT_TRUE(leads(journal.get(), "host_" + journal->token(), {}));
  EXPECT_EQ(journal->TakeLeft(), Notes{"a"});
  journal = nullptr;
  journal = Start();
  EXPECT_FALSE(leads(journal.get(), "host_" + journal->token(), told)) << "nobody can tell which";
}

}  // namespace
}  // namespace berth::kube::write_journal_test
