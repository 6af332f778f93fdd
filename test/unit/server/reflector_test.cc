// SPDX-License-Identifier: Apache-2.0
#include "server/kube/watch/reflector.h"

#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "server/kube/client/body_queue.h"
#include "test/support/scripted_api_client.h"

namespace berth::kube::reflector_test {
namespace {

using std::chrono::milliseconds;
using test::ScriptedApiClient;
using Step = ScriptedApiClient::Step;
using Lines = std::vector<std::string>;

// Writes down what it hears: "begin", "=a" listed, "end", "+a" changed, "-a" deleted.
class RecordingSink final : public ObjectSink {
 public:
  void ListBegins() override {
    const Lines so_far = notes();
    if (so_far.empty() || so_far.back() != "begin") Note("begin");  // a failed list begins again
  }
  void Listed(const PaddedText& object) override { NoteObject("=", object); }
  void ListEnds() override { Note("end"); }
  void Changed(const PaddedText& object) override { NoteObject("+", object); }
  void Deleted(const PaddedText& object) override { NoteObject("-", object); }

  Lines notes() {
    const MutexLock lock(mutex_);
    return notes_;
  }

 private:
  void NoteObject(const std::string& what, const PaddedText& text) {
    EXPECT_GE(text.capacity(), text.size() + PaddedText::kPadding);
    const std::string& object = text.str();
    const std::size_t at = object.find("\"name\":\"");
    ASSERT_NE(at, std::string::npos) << object;
    Note(what + object.substr(at + 8, object.find('"', at + 8) - at - 8));
  }
  void Note(const std::string& note) {
    const MutexLock lock(mutex_);
    notes_.push_back(note);
  }

  Mutex mutex_;
  Lines notes_ BERTH_GUARDED_BY(mutex_);
};

std::string Object(const std::string& name, int version) {
  return R"({"kind":"Pod","metadata":{"name":")" + name + R"(","resourceVersion":")" +
         std::to_string(version) + "\"}}";
}

std::string Event(const std::string& type, const std::string& name, int version) {
  return "{\"type\":\"" + type + "\",\"object\":" + Object(name, version) + "}\n";
}

std::string Status(int code, const std::string& reason) {
  return R"({"kind":"Status","code":)" + std::to_string(code) + R"(,"reason":")" + reason +
         R"(","message":"because"})";
}

std::string ErrorEvent(int code) {
  return "{\"type\":\"ERROR\",\"object\":" + Status(code, "Why") + "}\n";
}

Step List(int version, const Lines& names, const std::string& next = "") {
  std::string items;
  for (const std::string& name : names) items += (items.empty() ? "" : ",") + Object(name, version);
  return {.pieces = {R"({"metadata":{"resourceVersion":")" + std::to_string(version) +
                     R"(","continue":")" + next + R"("},"items":[)" + items + "]}"}};
}

Step Refusal(int status, const std::string& reason = "Why") {
  return {.status = status, .pieces = {Status(status, reason)}};
}

class ReflectorTest : public testing::Test {
 protected:
  ReflectorTest() {
    options_.path = "/api/v1/pods";
    options_.first_pause = milliseconds(1);
    options_.longest_pause = milliseconds(4);
    options_.absent_pause = milliseconds(2);
    options_.short_watch = std::chrono::hours(1);
    options_.on_problem = [this](const std::string& problem) {
      const MutexLock lock(mutex_);
      problems_.push_back(problem);
    };
    options_.on_note = [this](const std::string& note) {
      const MutexLock lock(mutex_);
      notes_.push_back(note);
    };
  }

  // Plays the steps, and one call more, which must be the last.
  void Play(std::deque<Step> steps) {
    const std::size_t calls = steps.size() + 1;
    ScriptedApiClient client(std::move(steps));
    Reflector reflector(client, sink_, clock_, options_);
    paths_ = client.AwaitCalls(calls);
    stats_ = reflector.stats();
    EXPECT_EQ(paths_.size(), calls);
  }

  // What the path of that call asks for: "list", "list C", "watch V".
  std::string Call(std::size_t i) const {
    const std::string& path = paths_.at(i);
    const auto value = [&path](const std::string& key) -> std::string {
      const std::size_t at = path.find(key + "=");
      if (at == std::string::npos) return "";
      const std::size_t begin = at + key.size() + 1;
      return path.substr(begin, path.find('&', begin) - begin);
    };
    if (path.find("watch=1") == std::string::npos) {
      return value("continue").empty() ? "list" : "list " + value("continue");
    }
    return "watch " + value("resourceVersion");
  }
  Lines Calls() const {
    Lines calls;
    for (std::size_t i = 0; i < paths_.size(); ++i) calls.push_back(Call(i));
    return calls;
  }
  Lines problems() {
    const MutexLock lock(mutex_);
    return problems_;
  }
  Lines notes() {
    const MutexLock lock(mutex_);
    return notes_;
  }

  ReflectorOptions options_;
  SystemClock clock_;
  RecordingSink sink_;
  Lines paths_;
  ReflectorStats stats_;
  Mutex mutex_;
  Lines problems_ BERTH_GUARDED_BY(mutex_);
  Lines notes_ BERTH_GUARDED_BY(mutex_);
};

TEST_F(ReflectorTest, ListsThenWatchesFromThere) {
  Play({List(10, {"a", "b"}),
        {.pieces = {Event("ADDED", "c", 11) + Event("MODIFIED", "a", 12),
                    Event("DELETED", "b", 13)}}});
  EXPECT_EQ(sink_.notes(), (Lines{"begin", "=a", "=b", "end", "+c", "+a", "-b"}));
  EXPECT_EQ(Calls(), (Lines{"list", "watch 10", "watch 13"}));
  EXPECT_EQ(paths_[0], "/api/v1/pods?limit=500");
  EXPECT_EQ(paths_[1],
            "/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=10");
  EXPECT_TRUE(stats_.synced);
  EXPECT_FALSE(stats_.absent);
  EXPECT_EQ(stats_.lists, 1U);
  EXPECT_EQ(stats_.events, 3U);
  EXPECT_EQ(stats_.reconnects, 1U);
  EXPECT_NE(stats_.last_contact, Instant{});
  EXPECT_EQ(problems(), Lines{});
}

TEST_F(ReflectorTest, ReadsPagesAndEscapesTheToken) {
  options_.page_items = 2;
  options_.query = "labelSelector=a%3Db";
  Play({List(10, {"a", "b"}, "x+/=&"), List(10, {"c"})});
  EXPECT_EQ(sink_.notes(), (Lines{"begin", "=a", "=b", "=c", "end"}));
  EXPECT_EQ(paths_[0], "/api/v1/pods?limit=2&labelSelector=a%3Db");
  EXPECT_EQ(paths_[1], "/api/v1/pods?limit=2&labelSelector=a%3Db&continue=x%2B%2F%3D%26");
  EXPECT_TRUE(paths_[2].ends_with("&resourceVersion=10&labelSelector=a%3Db"));
}

TEST_F(ReflectorTest, BeginsAnewWhenThePagesExpire) {
  Play({List(10, {"a"}, "more"), Refusal(410, "Expired"), List(20, {"b"})});
  EXPECT_EQ(sink_.notes(), (Lines{"begin", "=a", "begin", "=b", "end"}));
  EXPECT_EQ(Calls(), (Lines{"list", "list more", "list", "watch 20"}));
  EXPECT_EQ(problems(), (Lines{"list /api/v1/pods: 410 Expired: because"}));
}

TEST_F(ReflectorTest, IsNotSyncedByHalfAList) {
  Play({List(10, {"a"}, "more"), {.pieces = {R"({"metadata":{"resourceVersion":"1"},"items":[)"}}});
  EXPECT_FALSE(stats_.synced);
  EXPECT_EQ(stats_.lists, 0U);
  EXPECT_EQ(sink_.notes(), (Lines{"begin", "=a", "begin"}));
}

TEST_F(ReflectorTest, GoesOnFromABookmark) {
  Play({List(10, {}), {.pieces = {Event("BOOKMARK", "", 40)}}, {}});
  EXPECT_EQ(Calls(), (Lines{"list", "watch 10", "watch 40", "watch 40"}));
  EXPECT_EQ(sink_.notes(), (Lines{"begin", "end"}));
  EXPECT_EQ(stats_.events, 0U);
}

TEST_F(ReflectorTest, ListsAgainWhenTheVersionIsGone) {
  Play({List(10, {"a"}),
        Refusal(410),
        List(20, {"b"}),
        {.pieces = {Event("ADDED", "c", 21) + ErrorEvent(410)}},
        List(30, {})});
  EXPECT_EQ(Calls(), (Lines{"list", "watch 10", "list", "watch 20", "list", "watch 30"}));
  EXPECT_EQ(sink_.notes(),
            (Lines{"begin", "=a", "end", "begin", "=b", "end", "+c", "begin", "end"}));
  EXPECT_EQ(problems(), (Lines{"watch /api/v1/pods: 410 Why: because",
                               "watch /api/v1/pods: ERROR event: 410 Why: because"}));
  EXPECT_EQ(stats_.lists, 3U);
}

TEST_F(ReflectorTest, KeepsItsPlaceWhenTheServerIsBusy) {
  Play({List(10, {}),
        Refusal(429),
        Refusal(500),
        Refusal(503),
        Refusal(403),
        Refusal(401),
        {.pieces = {ErrorEvent(500)}},
        {.error = "connection reset"},
        {.pieces = {Event("ADDED", "a", 11)}, .error = "cut"}});
  EXPECT_EQ(Calls(), (Lines{"list", "watch 10", "watch 10", "watch 10", "watch 10", "watch 10",
                            "watch 10", "watch 10", "watch 10", "watch 11"}));
  EXPECT_EQ(stats_.problems, 8U);
}

TEST_F(ReflectorTest, NamesWhatIsForbidden) {
  Play({Refusal(403, "Forbidden"), List(10, {}), Refusal(403, "Forbidden")});
  EXPECT_EQ(problems(), (Lines{"list /api/v1/pods: 403 Forbidden: because",
                               "watch /api/v1/pods: 403 Forbidden: because"}));
  EXPECT_EQ(Calls(), (Lines{"list", "list", "watch 10", "watch 10"}));
}

TEST_F(ReflectorTest, CountsAnApiThatIsNotThereAsSyncedAndLooksAgain) {
  options_.may_be_absent = true;
  Play({Refusal(404), Refusal(404), Refusal(404)});
  EXPECT_TRUE(stats_.synced);
  EXPECT_TRUE(stats_.absent);
  EXPECT_EQ(sink_.notes(), (Lines{"begin", "end", "begin"})) << "nothing is there, said once";
  EXPECT_EQ(problems(), Lines());
  EXPECT_EQ(notes(), (Lines{"/api/v1/pods is not served"}));
}

TEST_F(ReflectorTest, ReadsTheBestVersionOfAnApiThatIsServed) {
  options_.path = "/apis/g/v2/x";
  options_.other_paths = {"/apis/g/v1/x", "/apis/g/v1beta1/x"};
  Play({Refusal(404), List(10, {"a"}), Refusal(410), List(20, {"b"})});
  EXPECT_EQ(Calls(), (Lines{"list", "list", "watch 10", "list", "watch 20"}));
  EXPECT_TRUE(paths_[1].starts_with("/apis/g/v1/x?"));
  EXPECT_TRUE(paths_[2].starts_with("/apis/g/v1/x?"));
  EXPECT_TRUE(paths_[4].starts_with("/apis/g/v2/x?")) << "by now it is";
  EXPECT_EQ(notes(), Lines());
}

TEST_F(ReflectorTest, AnApiOfWhichNoVersionIsServedIsAbsent) {
  options_.may_be_absent = true;
  options_.other_paths = {"/old"};
  Play({Refusal(404), Refusal(404), Refusal(404), List(10, {})});
  EXPECT_EQ(Calls(), (Lines{"list", "list", "list", "list", "watch 10"}));
  EXPECT_EQ(notes(), (Lines{"/api/v1/pods is not served", "/old is served"}));
}

TEST_F(ReflectorTest, AListThatStaysForbiddenIsToldOnceAndEmptiesNothing) {
  Play({List(10, {"a"}), Refusal(410), Refusal(403), Refusal(403), Refusal(403)});
  EXPECT_TRUE(stats_.synced);
  EXPECT_TRUE(stats_.forbidden);
  EXPECT_EQ(stats_.problems, 4U);
  EXPECT_EQ(problems(),
            (Lines{"watch /api/v1/pods: 410 Why: because", "list /api/v1/pods: 403 Why: because"}));
  EXPECT_EQ(sink_.notes(), (Lines{"begin", "=a", "end", "begin"}));
}

TEST_F(ReflectorTest, A404OnACoreResourceEmptiesNothing) {
  Play({List(10, {"a"}), Refusal(404), Refusal(404), Refusal(404), List(20, {"a"})});
  EXPECT_EQ(Calls(), (Lines{"list", "watch 10", "list", "list", "list", "watch 20"}));
  EXPECT_EQ(sink_.notes(), (Lines{"begin", "=a", "end", "begin", "=a", "end"}));
  EXPECT_EQ(notes(), Lines()) << "no note says that pods are not served";
  EXPECT_EQ(stats_.problems, 3U);
  EXPECT_EQ(problems().back(),
            "list /api/v1/pods: 404 Why: because (want the address of an API server or of a proxy "
            "to one: every API server serves this)");
}

TEST_F(ReflectorTest, AResourceOfEveryApiServerThatIsNotFoundIsNotSynced) {
  Play({Refusal(404), Refusal(404)});
  EXPECT_FALSE(stats_.synced);
  EXPECT_FALSE(stats_.absent);
  EXPECT_EQ(sink_.notes(), (Lines{"begin"}));
}

TEST_F(ReflectorTest, FollowsAnApiThatComesAndGoes) {
  options_.may_be_absent = true;
  Play({Refusal(404), List(10, {"a"}), Refusal(404), Refusal(404), List(20, {"b"})});
  EXPECT_EQ(Calls(), (Lines{"list", "list", "watch 10", "list", "list", "watch 20"}));
  EXPECT_EQ(sink_.notes(),
            (Lines{"begin", "end", "begin", "=a", "end", "begin", "end", "begin", "=b", "end"}));
  EXPECT_FALSE(stats_.absent);
}

TEST_F(ReflectorTest, JoinsLinesThatComeInPieces) {
  const std::string text = Event("ADDED", "a", 11) + "\n" + Event("DELETED", "a", 12);
  Lines bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  Play({List(10, {}), {.pieces = bytes}});
  EXPECT_EQ(sink_.notes(), (Lines{"begin", "end", "+a", "-a"}));
  EXPECT_EQ(Call(2), "watch 12");
}

TEST_F(ReflectorTest, DoesNotTrustALineWithoutEnd) {
  std::string cut = Event("ADDED", "b", 12);
  cut.pop_back();
  Play({List(10, {}), {.pieces = {Event("ADDED", "a", 11) + cut}}});
  EXPECT_EQ(sink_.notes(), (Lines{"begin", "end", "+a"}));
  EXPECT_EQ(Call(2), "watch 11");
  EXPECT_EQ(problems(), (Lines{"watch /api/v1/pods: ended within a line"}));
}

TEST_F(ReflectorTest, ReconnectsAfterALineThatIsNoEventThenListsAgain) {
  Play({List(10, {}),
        {.pieces = {Event("ADDED", "a", 11) + "garbage\n"}},
        {.pieces = {"garbage\n"}},
        List(20, {})});
  EXPECT_EQ(Calls(), (Lines{"list", "watch 10", "watch 11", "list", "watch 20"}));
  ASSERT_EQ(problems().size(), 2U);
  EXPECT_TRUE(problems()[0].starts_with("watch /api/v1/pods: watch event: ")) << problems()[0];
}

TEST_F(ReflectorTest, ListsAgainAfterALineThatIsTooLong) {
  options_.max_line_bytes = 200;
  Play({List(10, {}), {.pieces = {std::string(150, 'x'), std::string(150, 'x')}}, List(20, {})});
  EXPECT_EQ(Calls(), (Lines{"list", "watch 10", "list", "watch 20"}));
  EXPECT_EQ(problems(), (Lines{"watch /api/v1/pods: a line of more than 200 bytes"}));
}

TEST_F(ReflectorTest, APageThatIsTooLargeComesInHalves) {
  options_.page_items = 4;
  options_.max_page_bytes = 200;
  Play({Step{.pieces = {std::string(201, ' ')}}, List(10, {"a", "b"}, "more"), List(10, {"c"})});
  EXPECT_EQ(problems(), Lines{});
  EXPECT_EQ(sink_.notes(), (Lines{"begin", "=a", "=b", "=c", "end"}));
  EXPECT_EQ(paths_[1], "/api/v1/pods?limit=2");
  EXPECT_EQ(paths_[2], "/api/v1/pods?limit=2&continue=more");
  EXPECT_EQ(Calls().back(), "watch 10");
}

TEST_F(ReflectorTest, RefusesAnObjectThatIsTooLarge) {
  options_.page_items = 1;
  options_.max_line_bytes = 100;
  Play({Step{.pieces = {std::string(101, ' ')}}});
  EXPECT_EQ(problems(), (Lines{"list /api/v1/pods: an object of more than 100 bytes"}));
}

TEST_F(ReflectorTest, PausesWhenWatchesEndAtOnce) {
  Play({List(10, {}), {}, {}, {}});
  EXPECT_EQ(problems().size(), 3U);
  EXPECT_EQ(problems()[0], "watch /api/v1/pods: ended at once");
}

TEST_F(ReflectorTest, WatchesAgainAtOnceWhenAQuietWatchHasRunItsTime) {
  options_.short_watch = milliseconds(0);
  options_.first_pause = options_.longest_pause = std::chrono::hours(1);
  Play({List(10, {}), {}, {}, {}});
  EXPECT_EQ(problems(), Lines{});
}

TEST_F(ReflectorTest, PausesAsLongAsTheServerAsks) {
  Step busy = Refusal(429);
  busy.retry_after = std::chrono::hours(1);
  ScriptedApiClient client({busy});
  Reflector reflector(client, sink_, clock_, options_);
  client.AwaitCalls(1);
  for (int i = 0; i < 2000 && reflector.stats().problems == 0; ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  ASSERT_EQ(reflector.stats().problems, 1U);
  // The pauses of the options are a few milliseconds; this one does not end, but for a stop.
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(client.AwaitCalls(1).size(), 1U);
}

TEST_F(ReflectorTest, StopsWhileItWatchesAndWhileItPauses) {
  options_.first_pause = options_.longest_pause = std::chrono::hours(1);
  Play({List(10, {})});  // in a watch that says nothing
  ScriptedApiClient client({Step{.error = "down"}});
  Reflector reflector(client, sink_, clock_, options_);
  client.AwaitCalls(1);  // and now it goes into a pause of an hour
}

TEST(LineSplitter, SplitsAtEveryPlace) {
  const std::string text = "one\n\ntwo\nthree";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    LineSplitter splitter(100);
    Lines lines;
    const auto take = [&lines](const PaddedText& line) {
      EXPECT_GE(line.capacity(), line.size() + PaddedText::kPadding);
      lines.push_back(line.str());
      return true;
    };
    EXPECT_TRUE(splitter.Add(text.substr(0, cut), take));
    EXPECT_TRUE(splitter.Add(text.substr(cut), take));
    EXPECT_EQ(lines, (Lines{"one", "two"})) << cut;
    EXPECT_TRUE(splitter.mid_line());
  }
}

TEST(LineSplitter, StopsWhenToldToAndAtTheLimit) {
  LineSplitter splitter(4);
  const auto no = [](const PaddedText&) { return false; };
  EXPECT_FALSE(splitter.Add("a\nb\n", no));
  EXPECT_FALSE(splitter.too_long());
  const auto yes = [](const PaddedText&) { return true; };
  EXPECT_TRUE(splitter.Add("1234\n123", yes));
  EXPECT_FALSE(splitter.Add("45\n", yes));
  EXPECT_TRUE(splitter.too_long());
}

}  // namespace
}  // namespace berth::kube::reflector_test
