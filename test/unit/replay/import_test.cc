// SPDX-License-Identifier: Apache-2.0
//
// A few rows in each format, as the README of the trace has them, and what is made of them.
#include "bench/replay/import/import.h"

#include <string>

#include <gtest/gtest.h>

#include "bench/replay/trace.h"
#include "test/support/test_certificates.h"

namespace berth::replay::import_test {
namespace {

class ImportTest : public testing::Test {
 protected:
  Imported Import(const std::string& format, const std::string& jobs,
                  const std::string& nodes = "") {
    const std::string node_file = nodes.empty() ? "" : folder_.WriteText("nodes", nodes);
    auto imported = ImportTrace(format, folder_.WriteText("jobs", jobs), node_file);
    EXPECT_TRUE(imported) << imported.error().message;
    return imported ? *std::move(imported) : Imported();
  }
  std::string ErrorOf(const std::string& format, const std::string& jobs) {
    const auto imported = ImportTrace(format, folder_.WriteText("jobs", jobs), "");
    EXPECT_FALSE(imported);
    return imported ? "" : imported.error().message;
  }

  const test::TemporaryFolder folder_;
};

constexpr char kHead[] =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n";

constexpr char kHelios[] =
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,"
    "2020-06-10 04:55:09,36848,0\n"
    "1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,"
    "2020-06-09 18:45:36,249,0\n"
    "1425513,uzqls,vcpDC,16,64,2,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,"
    "2020-06-17 14:15:21,675233,0\n"
    "1425514,uzqls,vcpDC,9,64,2,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,"
    "2020-06-17 14:15:21,675233,0\n"
    "1425515,uzqls,vcpDC,0,8,1,CANCELLED,2020-06-09 18:41:28,,,0,0\n";

TEST_F(ImportTest, JobsOfHeliosAreAPodForEachNode) {
  const Imported told = Import("helios", kHelios);
  EXPECT_EQ(TasksCsv(told), std::string(kHead) +
                                "1425511,1000,0,1,1000,,0,36848\n"
                                "1425512,16000,0,4,1000,,26,275\n"
                                "1425513-0,32000,0,8,1000,,27,675260\n"
                                "1425513-1,32000,0,8,1000,,27,675260\n");
  EXPECT_EQ(told.jobs, 5);
  EXPECT_EQ(told.passed_over.at("its GPUs are not the same number on each node"), 1);
  EXPECT_EQ(told.passed_over.at("it did not run"), 1);
}

constexpr char kKalos[] =
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,"
    "start_time,end_time,fail_time,stop_time,duration,queue,gpu_time\n"
    "dlctk696s0jbvitv,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,"
    "2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,"
    "1152.0\n";
constexpr char kSeren[] =
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,"
    "queue,gpu_time\n"
    "5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
    "2023-03-01 00:20:51+08:00,117,32,936.0\n"
    "5778469,u5907,1,8,128,Other,COMPLETED,2023-02-28 16:18:20+00:00,2023-03-01 00:24:11+08:00,"
    "2023-03-01 01:09:04+08:00,2693,13,21544.0\n";

TEST_F(ImportTest, JobsOfAcmeRunFromTheirStartToTheirEnd) {
  const Imported kalos = Import("acme", kKalos);
  ASSERT_EQ(kalos.tasks.size(), 8u);
  EXPECT_EQ(kalos.tasks[0].memory_mib, 1'024'000);
  EXPECT_EQ(kalos.tasks[0].cpu_milli, 120'000);
  EXPECT_EQ(kalos.tasks[0].deleted_s, 8) << "its duration contains the time in the queue";
  EXPECT_EQ(TasksCsv(Import("acme", kSeren)), std::string(kHead) +
                                                  "5778469,128000,0,8,1000,,0,2693\n"
                                                  "5778432,128000,0,8,1000,,2,119\n")
      << "times have their zones";
}

TEST_F(ImportTest, TasksOfPaiHaveNoHeaderAndPartsOfGpus) {
  const Imported told = Import("pai-2020",
                               "4f05,tensorflow,1.0,Terminated,1739162.0,1739200.0,600.0,29.296875,"
                               "50.0,MISC\n"
                               "job0,ps,1.0,Terminated,1739162.0,1739262.0,600.0,10.0,,CPU\n"
                               "job0,worker,2.0,Failed,1739172.0,1739262.0,400.0,10.0,200.0,V100\n"
                               "job1,worker,1.0,Failed,1739172.0,1739262.0,400.0,10.0,150.0,V100\n"
                               "job2,worker,1.0,Running,1739172.0,,400.0,10.0,100.0,V100\n",
                               "82e5,T4,96,512,2\n91aa,CPU,96,512,0\n");
  EXPECT_EQ(TasksCsv(told), std::string(kHead) +
                                "4f05-tensorflow,6000,30000,1,500,,0,38\n"
                                "job0-ps,6000,10240,0,0,,0,100\n"
                                "job0-worker-0,4000,10240,2,1000,,10,100\n"
                                "job0-worker-1,4000,10240,2,1000,,10,100\n");
  EXPECT_EQ(told.passed_over.at("more than one GPU and a part of one"), 1);
  EXPECT_EQ(told.passed_over.at("its start or its end is not there"), 1);
  EXPECT_EQ(NodesCsv(told),
            "sn,cpu_milli,memory_mib,gpu,model\n"
            "82e5,96000,524288,2,T4\n"
            "91aa,96000,524288,0,\n");
}

constexpr char kPhilly[] = R"([
  {"status": "Pass", "vc": "ee9e8c", "jobid": "application_1", "user": "ce2f4c",
   "submitted_time": "2017-10-07 01:11:39",
   "attempts": [
     {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23",
      "detail": [{"ip": "m47", "gpus": ["gpu0", "gpu1"]}]},
     {"start_time": "2017-10-07 01:13:30", "end_time": "2017-10-07 01:14:30",
      "detail": [{"ip": "m412", "gpus": ["gpu0", "gpu1"]}]}]},
  {"jobid": "application_2", "submitted_time": "2017-10-07 01:11:49",
   "attempts": [{"start_time": "2017-10-07 01:12:00", "end_time": "2017-10-07 01:12:10",
      "detail": [{"ip": "m1", "gpus": ["gpu0"]}, {"ip": "m2", "gpus": ["gpu0"]},
                 {"ip": "m3", "gpus": ["gpu0", "gpu1"]}]}]},
  {"jobid": "application_3", "submitted_time": "2017-10-07 01:11:49", "attempts": []},
  {"jobid": "application_4", "submitted_time": "None", "attempts": []},
  {"jobid": "application_5", "submitted_time": "2017-10-07 01:11:49",
   "attempts": [{"start_time": "2017-10-07 01:12:00", "end_time": null,
                 "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]}
])";

TEST_F(ImportTest, JobsOfPhillyHaveTheGpusThatTheyWereGiven) {
  const Imported told = Import(
      "philly", kPhilly, "machineId, number of GPUs, single GPU mem\nm31,8, 24GB\nm2,2,12GB\n");
  EXPECT_EQ(TasksCsv(told), std::string(kHead) +
                                "application_1,0,0,2,1000,,0,134\n"
                                "application_2-of-1-0,0,0,1,1000,,10,20\n"
                                "application_2-of-1-1,0,0,1,1000,,10,20\n"
                                "application_2-of-2,0,0,2,1000,,10,20\n");
  EXPECT_EQ(told.passed_over.at("no attempt says which GPUs it had"), 1);
  EXPECT_EQ(told.passed_over.at("when it was submitted is not there"), 1);
  EXPECT_EQ(told.passed_over.at("it did not run"), 1);
  EXPECT_EQ(NodesCsv(told),
            "sn,cpu_milli,memory_mib,gpu,model\n"
            "m31,0,0,8,24GB\n"
            "m2,0,0,2,12GB\n");
}

TEST_F(ImportTest, InstancesOfTheDlrmTraceThatWereThereBeforeBeginWithIt) {
  const Imported told = Import(
      "dlrm-2025",
      "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,"
      "rdma_limit,memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,"
      "creation_time,scheduled_time,deletion_time\n"
      "instance_7185,HN,app_0,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,,,\n"
      "instance_13574,CN,app_130,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,1435629.0,1435629.0,"
      "1435760.0\n");
  EXPECT_EQ(TasksCsv(told), std::string(kHead) +
                                "instance_7185,12000,122880,1,1000,,0,1435760\n"
                                "instance_13574,64000,327680,0,0,,1435629,1435760\n");
}

TEST_F(ImportTest, JobsOfTheSpotTraceHaveWorkersModelsAndPriorities) {
  const Imported told =
      Import("spot-gpu-2026",
             "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,"
             "duration,job_type\n"
             "239255,13,A10,20,1,1,0,2764799,HP\n"
             "437260,57,A100-SXM4-80GB,15,0.5,2,9589663,41060,Spot\n",
             "node_name,gpu_model,gpu_capacity_num,cpu_num\n0,GPU-series-1,4,192\n");
  EXPECT_EQ(TasksCsv(told),
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,"
            "priority\n"
            "239255,20000,0,1,1000,A10,0,2764799,1\n"
            "437260-0,15000,0,1,500,A100-SXM4-80GB,9589663,9630723,0\n"
            "437260-1,15000,0,1,500,A100-SXM4-80GB,9589663,9630723,0\n");
  EXPECT_EQ(NodesCsv(told), "sn,cpu_milli,memory_mib,gpu,model\n0,192000,0,4,GPU-series-1\n");
}

TEST_F(ImportTest, TheReplayReadsTheWrittenTrace) {
  const Imported told = Import("helios", kHelios);
  const auto tasks =
      ReadTasks(folder_.WriteText("tasks.csv", TasksCsv(told)), TaskTimes::kRequired);
  ASSERT_TRUE(tasks) << tasks.error().message;
  EXPECT_EQ(tasks->size(), told.tasks.size());
}

TEST_F(ImportTest, AnUnknownFormatIsRefusedWithItsPlace) {
  const std::string jobs = folder_.WriteText("jobs", "");
  EXPECT_EQ(ErrorOf("borg", ""),
            "--from: want philly, helios, acme, pai-2020, dlrm-2025, spot-gpu-2026, got \"borg\"");
  EXPECT_EQ(ErrorOf("philly", "{}"), jobs + ": want a list of jobs in JSON, got something else");
  EXPECT_EQ(ErrorOf("philly", "[{"), jobs + ": want a list of jobs in JSON, got something else");
  EXPECT_EQ(
      ErrorOf("helios", "job_id,gpu_num,cpu_num,node_num,submit_time,duration\n1,1,1,1,now,5\n"),
      jobs + ":2: column submit_time: want YYYY-MM-DD HH:MM:SS, got \"now\"");
  EXPECT_EQ(ErrorOf("pai-2020", "a,t,1.0,Failed,1,2,many,1,1,T4\n"),
            jobs + ":1: column plan_cpu: want a number from 0, got \"many\"")
      << "lines are those of the file";
  const auto nodes = ImportTrace("helios", jobs, jobs);
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().message, "--node-table: the trace helios has no table of nodes");
}

TEST_F(ImportTest, AnAmountThatNoJobHasIsRefusedWithItsPlace) {
  for (const std::string memory : {"-5", "1e300", "much"}) {
    const std::string error =
        ErrorOf("acme",
                "job_id,gpu_num,cpu_num,node_num,submit_time,duration,mem_per_pod_GB\n"
                "a,1,1,1,2020-06-09 18:41:01,60," +
                    memory + "\n");
    EXPECT_NE(error.find(":2: column mem_per_pod_GB: want a number from 0, got \"" + memory + '"'),
              std::string::npos)
        << error;
  }
  EXPECT_EQ(NumberOf("1e300"), std::nullopt);
  EXPECT_EQ(NumberOf("-1e13"), std::nullopt);
  EXPECT_EQ(NumberOf("-1e12"), -1e12);
}

TEST(ImportTimes, HaveAZoneOrAreTakenForUtc) {
  EXPECT_EQ(SecondsOf("1970-01-02 00:00:01"), 86'401);
  EXPECT_EQ(SecondsOf("1970-01-01 09:00:00+08:00"), 3600);
  EXPECT_EQ(SecondsOf("1970-01-01 00:00:00.250-01:30"), 5400);
  EXPECT_EQ(SecondsOf("1970-01-01T00:00:07Z"), 7);
  for (const char* text : {"", "None", "1970-13-01 00:00:00", "1970-01-01", "1970-01-01 00:00:00+8",
                           "1970-01-01 00:00:00 PDT"}) {
    EXPECT_EQ(SecondsOf(text), std::nullopt) << text;
  }
}

TEST(JobImporter, PassesOverWhatIsNoPodOfOurs) {
  JobImporter importer;
  importer.Add({.name = "a", .gpu_milli = 65'000, .runs_s = 1});
  importer.Add({.name = "b", .pods = 0, .runs_s = 1});
  importer.Add({.name = "c", .runs_s = 1});
  importer.Add({.name = "c", .runs_s = 1});
  const Imported told = importer.Take();
  EXPECT_EQ(told.tasks.size(), 1u);
  EXPECT_EQ(told.jobs, 4);
  EXPECT_EQ(told.passed_over.size(), 3u);
}

}  // namespace
}  // namespace berth::replay::import_test
