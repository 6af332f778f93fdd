// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/trace.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/support/temp_file.h"

namespace berth::replay::trace_test {
namespace {

using test::TempFile;
using Kind = TempFile::Kind;

const std::string kNodeHeader = "sn,cpu_milli,memory_mib,gpu,model\n";
const std::string kTaskHeader = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";

struct BadFile {
  std::string description, rows, message;  // the message goes on after the path
};

TEST(ReadNodes, ReadsWhatTheTraceHas) {
  const std::string text = kNodeHeader + "n-1,96000,393216,8,T4\nn-0,64000,262144,0,\n";
  for (const Kind kind : {Kind::kPlain, Kind::kGzip}) {
    const TempFile file(text, kind);
    const auto nodes = ReadNodes(file.path());
    ASSERT_TRUE(nodes.has_value()) << nodes.error().message;
    ASSERT_EQ(nodes->size(), 2U);
    const TraceNode& first = nodes->front();
    EXPECT_EQ(first.name, "n-1") << "in the order of the file";
    EXPECT_EQ(first.cpu_milli, 96'000);
    EXPECT_EQ(first.memory_mib, 393'216);
    EXPECT_EQ(first.gpus, 8);
    EXPECT_EQ(first.model, "T4");
    EXPECT_EQ(GpuCapacityMilli(*nodes), 8000);
  }
}

TEST(ReadNodes, NamesFileLineAndColumnOfWhatIsWrong) {
  for (const BadFile& c :
       {BadFile{"negative CPU", "a,-1,1,1,T4\n",
                ":2: column cpu_milli: want an integer from 0 to 1000000000, got \"-1\""},
        BadFile{"negative memory", "a,1,1,1,T4\nb,1,-1,1,T4\n",
                ":3: column memory_mib: want an integer from 0 to 1099511627776, got \"-1\""},
        BadFile{"too many GPUs", "a,1,1,65,T4\n",
                ":2: column gpu: want an integer from 0 to 64, got \"65\""},
        BadFile{"half a GPU", "a,1,1,0.5,T4\n",
                ":2: column gpu: want an integer from 0 to 64, got \"0.5\""},
        BadFile{"a field too few", "a,1,1,1\n", ":2: want 5 fields, got 4"},
        BadFile{"a name twice", "a,1,1,1,T4\nb,1,1,1,T4\n\na,1,1,1,T4\n",
                ":5: name \"a\" is there twice"},
        BadFile{"a name that is none", "a,1,1,1,T4\nNode_1,1,1,1,T4\n",
                ":3: node.name: want a DNS-1123 name, got \"Node_1\""},
        BadFile{"no name", ",1,1,1,T4\n", ":2: node.name: want a DNS-1123 name, got \"\""}}) {
    const TempFile file(kNodeHeader + c.rows);
    const auto nodes = ReadNodes(file.path());
    ASSERT_FALSE(nodes.has_value()) << c.description;
    EXPECT_EQ(nodes.error().code, Errc::kInvalidArgument) << c.description;
    EXPECT_EQ(nodes.error().message, file.path() + c.message) << c.description;
  }
}

TEST(ReadNodes, RefusesAFileOfTasks) {
  const TempFile file(kTaskHeader);
  EXPECT_EQ(ReadNodes(file.path()).error().message,
            file.path() + ":1: want the columns sn,cpu_milli,memory_mib,gpu,model, got " +
                kTaskHeader.substr(0, kTaskHeader.size() - 1));
}

TEST(ReadTasks, SortsThemByName) {
  const std::string text =
      kTaskHeader + "t-2,4000,8192,1,300,\nt-1,8000,1024,4,1000,V100M16|T4\nt-3,500,0,0,0,\n";
  for (const Kind kind : {Kind::kPlain, Kind::kGzip}) {
    const TempFile file(text, kind);
    const auto tasks = ReadTasks(file.path());
    ASSERT_TRUE(tasks.has_value()) << tasks.error().message;
    ASSERT_EQ(tasks->size(), 3U);
    EXPECT_EQ((*tasks)[0].name, "t-1");
    EXPECT_EQ((*tasks)[0].gpus, 4);
    EXPECT_EQ((*tasks)[0].gpu_spec, "V100M16|T4");
    EXPECT_EQ((*tasks)[1].gpu_milli, 300);
    EXPECT_EQ((*tasks)[2].cpu_milli, 500);
    EXPECT_EQ(GpuDemandMilli((*tasks)[0]), 4000);
    EXPECT_EQ(GpuDemandMilli((*tasks)[1]), 300);
    EXPECT_EQ(GpuDemandMilli((*tasks)[2]), 0);
  }
}

TEST(ReadTasks, DoesWithoutTheModelColumn) {
  const TempFile file("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,0,700\n");
  const auto tasks = ReadTasks(file.path());
  ASSERT_TRUE(tasks.has_value()) << tasks.error().message;
  EXPECT_EQ(tasks->front().gpu_spec, "");
  EXPECT_EQ(tasks->front().gpu_milli, 0) << "a share of no GPU is none";
}

TEST(ReadTasks, NamesFileLineAndColumnOfWhatIsWrong) {
  for (const BadFile& c :
       {BadFile{"negative CPU", "a,-1,1,1,1000,\n",
                ":2: column cpu_milli: want an integer from 0 to 1000000000, got \"-1\""},
        BadFile{"negative memory", "a,1,-1,1,1000,\n",
                ":2: column memory_mib: want an integer from 0 to 1099511627776, got \"-1\""},
        BadFile{"negative GPUs", "a,1,1,-1,1000,\n",
                ":2: column num_gpu: want an integer from 0 to 64, got \"-1\""},
        BadFile{"a share above one", "a,1,1,1,1001,\n",
                ":2: column gpu_milli: want an integer from 0 to 1000, got \"1001\""},
        BadFile{"a share of nothing", "a,1,1,1,0,\n",
                ":2: column gpu_milli: want 1..1000 with num_gpu > 0, got 0"},
        BadFile{"shares of two", "a,1,1,2,500,\n",
                ":2: column gpu_milli: want 1000 with num_gpu > 1, got 500"},
        BadFile{"text", "a,one,1,1,1000,\n",
                ":2: column cpu_milli: want an integer from 0 to 1000000000, got \"one\""},
        BadFile{"nothing", "a,,1,1,1000,\n",
                ":2: column cpu_milli: want an integer from 0 to 1000000000, got \"\""},
        BadFile{"a name twice", "a,1,1,0,0,\na,1,1,0,0,\n", ":3: name \"a\" is there twice"}}) {
    const TempFile file(kTaskHeader + c.rows);
    const auto tasks = ReadTasks(file.path());
    ASSERT_FALSE(tasks.has_value()) << c.description;
    EXPECT_EQ(tasks.error().code, Errc::kInvalidArgument) << c.description;
    EXPECT_EQ(tasks.error().message, file.path() + c.message) << c.description;
  }
}

const std::string kTimedHeader =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,priority\n";

TEST(ReadTasks, ReadsTimesAndPriorityWhereAskedTo) {
  const TempFile file(kTimedHeader + "a,1,1,1,1000,5,17,-3\nb,1,1,1,1000,5,17,\n");
  const auto tasks = ReadTasks(file.path(), TaskTimes::kRequired);
  ASSERT_TRUE(tasks.has_value()) << tasks.error().message;
  EXPECT_EQ(tasks->front().created_s, 5);
  EXPECT_EQ(tasks->front().deleted_s, 17);
  EXPECT_EQ(tasks->front().priority, -3);
  EXPECT_EQ(tasks->at(1).priority, 0) << "pandas writes nothing where there is none";
  const TempFile wrong(kTimedHeader + "a,1,1,1,1000,,,0\n");
  EXPECT_TRUE(ReadTasks(wrong.path()).has_value()) << "times are not looked at otherwise";
}

TEST(ReadTasks, NamesFileLineAndColumnOfTimesThatAreWrong) {
  for (const BadFile& c :
       {BadFile{"negative", "a,1,1,0,0,-1,2,0\n",
                ":2: column creation_time: want an integer from 0 to 4294967296, got \"-1\""},
        BadFile{"missing", "a,1,1,0,0,1,,0\n",
                ":2: column deletion_time: want an integer from 0 to 4294967296, got \"\""},
        BadFile{"deleted before it was created", "a,1,1,0,0,1,2,0\nb,1,1,0,0,8,7,0\n",
                ":3: column deletion_time: want at least creation_time (8), got 7"},
        BadFile{"a priority that is none", "a,1,1,0,0,1,2,high\n",
                ":2: column priority: want an integer from -2147483647 to 2147483647, got "
                "\"high\""}}) {
    const TempFile file(kTimedHeader + c.rows);
    const auto tasks = ReadTasks(file.path(), TaskTimes::kRequired);
    ASSERT_FALSE(tasks.has_value()) << c.description;
    EXPECT_EQ(tasks.error().message, file.path() + c.message) << c.description;
  }
  const TempFile none(kTaskHeader);
  EXPECT_EQ(ReadTasks(none.path(), TaskTimes::kRequired).error().message,
            none.path() +
                ":1: want the columns creation_time and deletion_time, got no "
                "creation_time (with a load, times are drawn instead)");
}

TEST(ReadNodes, ReadsTraitsAndPriceWhereTheyAreThere) {
  const std::string header = "sn,traits,cpu_milli,memory_mib,gpu,model,price_per_hour\n";
  const TempFile file(header + "a,spot|nvme|spot,1000,1000,4,T4,2.5\nb,,1000,1000,4,T4,\n");
  const auto nodes = ReadNodes(file.path());
  ASSERT_TRUE(nodes.has_value()) << nodes.error().message;
  EXPECT_EQ(nodes->front().traits, (std::vector<std::string>{"nvme", "spot"}));
  EXPECT_EQ(ToNodeSpec(nodes->front(), "a").traits, nodes->front().traits);
  EXPECT_EQ(ToNodeSpec(nodes->front(), "a").gpu_price, 2.5 / 4);
  EXPECT_TRUE(nodes->back().traits.empty());
  EXPECT_EQ(ToNodeSpec(nodes->back(), "b").gpu_price, 0);
  for (const char* price : {"-1", "x", "1e9", "2,5", "nan"}) {
    const TempFile bad(header + "a,,1000,1000,4,T4,\"" + price + "\"\n");
    EXPECT_EQ(
        ReadNodes(bad.path()).error().message,
        bad.path() + ":2: column price_per_hour: want a price such as 12.5, got \"" + price + "\"");
  }
}

TEST(ReadTasks, ReadsTheClassWhereItIsThere) {
  const TempFile file("name,class,cpu_milli,memory_mib,num_gpu,gpu_milli\na,batch,1000,1,1,1000\n");
  const auto tasks = ReadTasks(file.path());
  ASSERT_TRUE(tasks.has_value()) << tasks.error().message;
  EXPECT_EQ(tasks->front().workload_class, "batch");
}

TEST(NamesIn, SplitsSortsAndDropsRepeats) {
  EXPECT_EQ(NamesIn("V100M32|T4|V100M32"), (std::vector<std::string>{"T4", "V100M32"}));
  EXPECT_EQ(NamesIn("T4"), std::vector<std::string>{"T4"});
  EXPECT_TRUE(NamesIn("").empty());
  EXPECT_TRUE(NamesIn("||").empty());
}

TEST(ToNodeSpec, TakesGpuMemoryFromTheCatalogue) {
  const NodeSpec known = ToNodeSpec({"a", 96'000, 1024, 2, "T4"}, "0.a");
  EXPECT_EQ(known.name, "0.a");
  EXPECT_EQ(known.cpu_milli, 96'000);
  EXPECT_EQ(known.memory_bytes, 1024 * 1024 * 1024);
  EXPECT_EQ(known.gpu_model, "T4");
  EXPECT_EQ(known.gpus, std::vector<GpuSpec>(2, GpuSpec{"", 15'109, true}));
  EXPECT_EQ(ToNodeSpec({"a", 1, 1, 1, "G2"}, "a").gpus[0].memory_mib, 0) << "not disclosed";
}

TEST(ToShape, TellsSharesFromWholeGpus) {
  const auto gpus = [](int count, int milli) {
    return ToShape({"t", 1000, 2, count, milli, "T4|A10"}).gpus;
  };
  EXPECT_EQ(gpus(0, 0), GpuAsk{NoGpu{}});
  EXPECT_EQ(gpus(1, 999), (GpuAsk{GpuShare{999, 0}}));
  EXPECT_EQ(gpus(1, 1000), GpuAsk{WholeGpus{1}});
  EXPECT_EQ(gpus(8, 1000), GpuAsk{WholeGpus{8}});
  const RequestShape shape = ToShape({"t", 1000, 2, 1, 1000, "T4|A10"});
  EXPECT_EQ(shape.cpu_milli, 1000);
  EXPECT_EQ(shape.memory_bytes, 2 * 1024 * 1024);
  EXPECT_EQ(shape.models, (std::vector<std::string>{"A10", "T4"}));
}

}  // namespace
}  // namespace berth::replay::trace_test
