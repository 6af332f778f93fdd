// SPDX-License-Identifier: Apache-2.0

// Demo leaves a control plane with an extender in front running in the background, with nodes and pods to look at.
//
//	demo [-stub] FOLDER         start it; FOLDER keeps its log, its process id and its kubeconfig
//	demo -stop FOLDER           stop it
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"berth.dev/e2e/harness"
)

func main() {
	stop := flag.Bool("stop", false, "stop the demo of FOLDER")
	stub := flag.Bool("stub", false, "put the stub in front instead of Berth")
	run := flag.Bool("run", false, "stay in the foreground")
	flag.Parse()
	folder, err := filepath.Abs(flag.Arg(0))
	if flag.NArg() != 1 || err != nil {
		fmt.Fprintln(os.Stderr, "usage: demo [-stub | -stop] FOLDER")
		os.Exit(2)
	}
	switch {
	case *stop:
		err = stopIt(folder)
	case *run:
		serve(folder, *stub)
	default:
		err = start(folder, *stub)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func pidFile(folder string) string   { return filepath.Join(folder, "pid") }
func readyFile(folder string) string { return filepath.Join(folder, "ready") }

// start runs this program again in a session of its own, and returns when that one is ready.
func start(folder string, stub bool) error {
	if err := stopIt(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command(self, "-run", fmt.Sprintf("-stub=%v", stub), folder)
	child.Stdout, child.Stderr = log, log
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		if text, err := os.ReadFile(readyFile(folder)); err == nil {
			fmt.Print(string(text))
			return nil
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("it ended:\n%s", text)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// stopIt ends the demo of this folder, if there is one.
func stopIt(folder string) error {
	text, err := os.ReadFile(pidFile(folder))
	if err != nil {
		return nil
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%s: %w", pidFile(folder), err)
	}
	// The number may be another program's by now.
	if link, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); filepath.Base(link) == "demo" {
		_ = syscall.Kill(pid, syscall.SIGTERM)
		for range 300 {
			if syscall.Kill(pid, 0) != nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return os.RemoveAll(folder)
}

func serve(folder string, stub bool) {
	command := &harness.Command{}
	defer command.Close()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	write(command, pidFile(folder), strconv.Itoa(os.Getpid())+"\n")

	if missing := harness.BerthMissing(); !stub && missing != "" {
		command.Fatalf("%s; -stub puts the stub in front", missing)
	}
	plane := harness.NewPlane(command)
	plane.CreateNodes(8)
	run := startNodes(plane)
	inFront, url := extenders(plane, stub)
	plane.StartScheduler(inFront...)
	createPods(plane, stub, run == "")
	plane.WaitBound(time.Minute)
	ask := ""
	if url != "" {
		plane.CreatePods(harness.Pod(waits, harness.Ask{harness.GPUResource: "16"}))
		ask = linesToAsk(command, folder, url)
	}

	kubectl := harness.Binary(command, "kubectl") + " --kubeconfig " + plane.Admin
	if run == "" {
		run = "Pods run on gpu-a and gpu-b; the other nodes have no kubelet."
	}
	write(command, readyFile(folder), fmt.Sprintf(`The control plane is running, with pods placed. %s
To look at it:
%s  %s get nodes
  %s get pods -o custom-columns='NAME:.metadata.name,NODE:.spec.nodeName,DEVICES:.metadata.annotations.berth\.dev/devices'
To stop it:
  make e2e-demo-stop
`, run, ask, kubectl, kubectl))
	<-signals
}

// runs is the label of the nodes that run containers.
const runs = "berth.test/runs"

// startNodes starts two nodes that run their pods; where none can, it says why no pod runs.
func startNodes(plane *harness.Plane) string {
	if missing := harness.NodesMissing(); missing != "" {
		return "No pod runs: " + missing + "."
	}
	agent := harness.AgentMissing() == ""
	for _, name := range []string{"gpu-a", "gpu-b"} {
		node := plane.StartNode(harness.MachineOptions{Name: name, Agent: agent, Labels: runs + "=yes"})
		node.Annotate("berth.dev/topology", harness.TwoQuads.Annotation())
		if agent {
			node.StartAgent()
		}
		node.WaitGPUs()
	}
	return ""
}

// createPods creates what there is to look at; 6 pods of two GPUs run where nodes can.
func createPods(plane *harness.Plane, stub, run bool) {
	train := harness.Pods("train", 12, harness.Ask{harness.GPUResource: "2"})
	for _, pod := range train[:6] {
		if run {
			pod.Spec.NodeSelector = map[string]string{runs: "yes"}
		}
	}
	if !stub { // which does not know shares
		train = append(train, harness.OneOfEach()...)
		train = append(train, harness.Pods("infer", 20, harness.Ask{harness.MilliResource: "250"})...)
	}
	for _, pod := range train {
		harness.MakeWork(pod)
	}
	plane.CreatePods(train...)
}

// extenders starts what is in front, and says where it answers; nobody asks the stub anything.
func extenders(plane *harness.Plane, stub bool) (inFront []configv1.Extender, url string) {
	if stub {
		return plane.StartStub().Extenders(), ""
	}
	berth := plane.StartBerth("")
	return harness.ShippedExtenders(plane.T, berth.URL), berth.URL
}

// waits is a pod that no node is large enough for.
const waits = "more-than-a-node-has"

// linesToAsk are the questions that Berth answers, to be copied to a shell.
func linesToAsk(t harness.T, folder, url string) string {
	job := filepath.Join(folder, "job.yaml")
	write(t, job, `apiVersion: batch/v1
kind: Job
metadata: {name: what-if}
spec:
  parallelism: 6
  template:
    spec:
      containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: "8"}}}]
`)
	berth := harness.BerthBinary()
	return fmt.Sprintf(`  %s/ in a browser
  %s top --server %s
  %s explain pod %s/%s --server %s
  %s plan -f %s --server %s
`, url, berth, url, berth, harness.Namespace, waits, url, berth, job, url)
}

// write makes the file appear with its content.
func write(t harness.T, file, text string) {
	if err := os.WriteFile(file+".new", []byte(text), 0o644); err != nil {
		t.Fatalf("%v", err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatalf("%v", err)
	}
}
