// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

const shippedImage = "registry.example.com/berth:e2e"

// makeImage is the archive that `make image` makes of the programs under test.
func makeImage(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "berth.oci.tar")
	if out, err := exec.Command("release/image.sh", shippedImage, file, os.Getenv("BERTH_BIN")).CombinedOutput(); err != nil {
		t.Fatalf("release/image.sh: %v\n%s", err, out)
	}
	archive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// What users write for their cluster, as docs/install.md has it: where the image is, and the agent of GPU nodes.
func overlayOfUsers(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" +
		"resources: [" + relative(t, folder, "manifests/base") + "]\n" +
		"components: [" + relative(t, folder, "manifests/components/node") + "]\n" +
		"images: [{name: berth, newName: registry.example.com/berth, newTag: e2e}]\n"
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// startedBy waits until a pod with this label is ready, on the image that was imported, and gives it.
func startedBy(t *testing.T, plane *harness.Plane, namespace, name string) *v1.Pod {
	t.Helper()
	var ready *v1.Pod
	harness.Eventually(t, "a pod of "+name+" to be ready", 2*time.Minute, func() error {
		pods, err := plane.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + name})
		if err != nil || len(pods.Items) == 0 {
			return fmt.Errorf("there is none: %v", err)
		}
		for _, pod := range pods.Items {
			for _, condition := range pod.Status.Conditions {
				if condition.Type == v1.PodReady && condition.Status == v1.ConditionTrue {
					ready = &pod
					return nil
				}
			}
		}
		return fmt.Errorf("%s\n%s", pods.Items[0].Status.String(), events(t, plane, namespace))
	})
	if status := ready.Status.ContainerStatuses[0]; status.Image != shippedImage || status.RestartCount > 0 {
		t.Errorf("%s: want %s without a restart, got %+v", name, shippedImage, status)
	}
	return ready
}

func events(t *testing.T, plane *harness.Plane, namespace string) string {
	t.Helper()
	list, err := plane.Client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	text := ""
	for _, event := range list.Items {
		text += fmt.Sprintf("%s %s: %s\n", event.InvolvedObject.Name, event.Reason, event.Message)
	}
	return text
}

// The image, started from the shipped manifests by a real kubelet: Berth leads and places a pod, and berth-node has the
// kubelet give that pod the GPUs that Berth chose. Nothing of Berth runs outside of it.
func TestNodeRunsTheImageFromTheShippedManifests(t *testing.T) {
	needNodes(t)
	needBerth(t)
	if !inOwnNetwork(t) {
		return
	}
	plane := harness.NewPlane(t, "--advertise-address="+podAddress, "--enable-admission-plugins=ServiceAccount,PodSecurity")
	plane.StartControllerManager()
	// What kube-proxy would do for the Service `kubernetes`, and for that of Berth once its pod is there.
	harness.NewProxyAt(t, harness.APIServiceIP+":443", plane.Address())
	service := harness.NewProxy(t, "127.0.0.1:1")
	plane.StartScheduler(harness.ShippedExtenders(t, "http://"+service.Address())...)
	node := plane.StartNode(harness.MachineOptions{Name: "a", Agent: true, PluginFlags: opposite, Webhook: true, Address: podAddress,
		Labels: "berth.dev/gpu-node=true", Kubelet: "nodeLeaseDurationSeconds: 8\ntopologyManagerPolicy: best-effort\n"})
	archive := makeImage(t)
	node.ImportImage(archive)

	plane.AddBerthNamespace()
	if out := plane.Kubectl("apply", "-k", overlayOfUsers(t)); strings.Contains(out, "Warning") {
		t.Errorf("kubectl warns: %s", out)
	}
	agent := startedBy(t, plane, agentNamespace, "berth-node")
	pod := startedBy(t, plane, "berth-system", "berth")
	if user := *pod.Spec.SecurityContext.RunAsUser; agent.Status.HostIP != podAddress || pod.Status.PodIP == podAddress || user != 65532 {
		t.Errorf("want a pod with an address of its own, as user 65532, got %s as %d", pod.Status.PodIP, user)
	}
	harness.Eventually(t, "Berth to lead and the Node to be described", time.Minute, func() error {
		label := plane.Kubectl("-n", "berth-system", "get", "pods", "-l", "berth.dev/leader=true", "-o", "name")
		said := annotations(t, plane, "a")
		if strings.TrimSpace(label) != "pod/"+pod.Name || said["berth.dev/carries-out"] != harness.GPUResource ||
			!strings.Contains(said["berth.dev/kubelet"], `"topologyManagerPolicy":"best-effort"`) {
			return fmt.Errorf("leader %q, annotations %v", label, said)
		}
		return nil
	})
	node.WaitGPUs()
	service.Target(pod.Status.PodIP + ":8888")
	plane.CreatePods(harness.Work("three", gpus(3)))
	harness.Eventually(t, "the pod to have the GPUs that Berth chose", 30*time.Second, func() error {
		ours := plane.Pod("three")
		if ours.Status.Phase != v1.PodRunning {
			return fmt.Errorf("it is %s: %s", ours.Status.Phase, harness.WhyPending(ours))
		}
		return node.AsPlanned(ours, harness.GivenTo(ours, harness.GPUResource))
	})

	// An older runtime takes the archive, too.
	other := plane.StartMachine(harness.MachineOptions{Name: "b", Debian: true})
	other.ImportImage(archive)
	if images := other.Images(); !strings.Contains(images, shippedImage) {
		t.Errorf("Debian's containerd has no %s: %s", shippedImage, images)
	}
}
