// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

// may asks the API server whether a service account of berth-system may do something; what is
// "verb group/resource[/subresource] [namespace [name]]".
func may(t *testing.T, plane *harness.Plane, account, what string) bool {
	t.Helper()
	words := append(strings.Fields(what), "", "")
	group, kind, _ := strings.Cut(words[1], "/")
	kind, subresource, _ := strings.Cut(kind, "/")
	review, err := plane.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:berth-system:" + account,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:berth-system", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: words[0], Group: group, Resource: kind,
				Subresource: subresource, Namespace: words[2], Name: words[3]},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// All that Berth asks the API server for; the paths are in server/kube. Without a namespace: in all of them.
var usedByBerth = []string{
	"list /nodes", "watch /nodes",
	"list /pods", "watch /pods", "get /pods",
	"list policy/poddisruptionbudgets", "watch policy/poddisruptionbudgets",
	"list resource.k8s.io/resourceslices", "watch resource.k8s.io/resourceslices",
	"list resource.k8s.io/resourceclaims", "watch resource.k8s.io/resourceclaims",
	"list resource.k8s.io/deviceclasses", "watch resource.k8s.io/deviceclasses",
	"list resource.k8s.io/devicetaintrules", "watch resource.k8s.io/devicetaintrules",
	"list scheduling.k8s.io/podgroups", "watch scheduling.k8s.io/podgroups",
	"list scheduling.k8s.io/compositepodgroups", "watch scheduling.k8s.io/compositepodgroups",
	"list scheduling.x-k8s.io/podgroups", "watch scheduling.x-k8s.io/podgroups",
	"list scheduling.volcano.sh/podgroups", "watch scheduling.volcano.sh/podgroups",
	"list scheduling.run.ai/podgroups", "watch scheduling.run.ai/podgroups",
	"list scheduler.grove.io/podgangs", "watch scheduler.grove.io/podgangs",
	"list batch/jobs", "watch batch/jobs",
	"list jobset.x-k8s.io/jobsets", "watch jobset.x-k8s.io/jobsets",
	"list leaderworkerset.x-k8s.io/leaderworkersets", "watch leaderworkerset.x-k8s.io/leaderworkersets",
	"list disaggregatedset.x-k8s.io/disaggregatedsets", "watch disaggregatedset.x-k8s.io/disaggregatedsets",
	"list scheduling.koordinator.sh/devices", "watch scheduling.koordinator.sh/devices",
	"create /pods/binding",
	"patch /pods/status",
	"create /events",
	"patch /pods berth-system",
	"create coordination.k8s.io/leases berth-system",
	"get coordination.k8s.io/leases berth-system berth", "update coordination.k8s.io/leases berth-system berth",
}

// What it does beyond that with dra.chooseDevices.
var usedToChooseDevices = []string{
	"get resource.k8s.io/resourceclaims", "patch resource.k8s.io/resourceclaims",
	"patch resource.k8s.io/resourceclaims/status", "patch resource.k8s.io/resourceclaims/binding",
}

// With dra.preempt.
var usedToPreempt = []string{"create /pods/eviction"}

// With makeRoom.mode: act.
var usedToMakeRoom = usedToPreempt

// To tell node autoscalers which nodes it keeps.
var usedToKeepNodes = []string{"patch /nodes"}

// And with hami.giveDevices.
var usedOnHamiNodes = []string{"get /nodes", "patch /nodes"}

var refusedToBerth = []string{
	"delete /pods", "create /pods", "update /pods", "patch /pods", "create /pods/exec",
	"update /pods/status", "update /nodes", "patch /nodes", "update /nodes/status",
	"get /secrets", "list /secrets", "get /secrets berth-system berth-server-tls", "get /configmaps berth-system berth",
	"create /serviceaccounts/token berth-system berth",
	"create coordination.k8s.io/leases kube-system", "get coordination.k8s.io/leases default berth",
	"update coordination.k8s.io/leases kube-system kube-scheduler",
	"update coordination.k8s.io/leases berth-system berth-scheduler", "delete coordination.k8s.io/leases berth-system berth",
	"create rbac.authorization.k8s.io/clusterrolebindings", "impersonate /users",
}

func TestRightsOfTheManifestsAreWhatBerthUses(t *testing.T) {
	plane := harness.NewPlane(t)
	plane.GrantBerth()
	for _, what := range usedByBerth {
		if !may(t, plane, "berth", what) {
			t.Errorf("Berth may not %s", what)
		}
	}
	for _, what := range slices.Concat(refusedToBerth, usedToChooseDevices, usedToPreempt, usedOnHamiNodes) {
		if may(t, plane, "berth", what) {
			t.Errorf("Berth may %s", what)
		}
	}
	// And no more than that: every verb that a rule gives is in the list.
	objects := render(t, "manifests/base")
	rules := slices.Concat(as[rbacv1.ClusterRole](t, objects, "ClusterRole/berth").Rules,
		as[rbacv1.Role](t, objects, "Role/berth-leader-election").Rules)
	wantNoMore(t, rules, usedByBerth)

	// A component adds what an option needs.
	for component, used := range map[string][]string{"dra-devices": usedToChooseDevices, "dra-preempt": usedToPreempt, "make-room": usedToMakeRoom,
		"keep-nodes": usedToKeepNodes, "hami-nodes": usedOnHamiNodes} {
		folder := "manifests/components/" + component
		plane.Kubectl("apply", "--filename="+folder+"/rbac.yaml")
		for _, what := range used {
			if !may(t, plane, "berth", what) {
				t.Errorf("with the component %s Berth may not %s", component, what)
			}
		}
		objects = render(t, withComponent(t, "manifests/base", folder))
		wantNoMore(t, as[rbacv1.ClusterRole](t, objects, "ClusterRole/berth-"+component).Rules, used)
	}
}

// wantNoMore fails where a rule allows Berth what it does not do.
func wantNoMore(t *testing.T, rules []rbacv1.PolicyRule, does []string) {
	t.Helper()
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, kind := range rule.Resources {
				for _, verb := range rule.Verbs {
					what := fmt.Sprintf("%s %s/%s", verb, group, kind)
					if !slices.ContainsFunc(does, func(used string) bool { return used == what || strings.HasPrefix(used, what+" ") }) {
						t.Errorf("a rule allows Berth to %s, which it does not do", what)
					}
				}
			}
		}
	}
}

// withComponent is a folder with an overlay of base and component.
func withComponent(t *testing.T, base, component string) string {
	t.Helper()
	folder := t.TempDir()
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	for field, target := range map[string]string{"resources": base, "components": component} {
		target, err := filepath.Abs(target)
		if err == nil {
			target, err = filepath.Rel(folder, target)
		}
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("%s: [%s]\n", field, target)
	}
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// The group's way to Berth goes through the API server, in every overlay; nobody's pods are let in with it.
func TestViewersReachBerthThroughTheAPIServerAlone(t *testing.T) {
	for _, overlay := range deployments(t) {
		objects := render(t, overlay)
		if _, has := objects["NetworkPolicy/berth-viewers"]; !has {
			objects = render(t, withComponent(t, overlay, "manifests/components/viewers"))
		}
		rule := as[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy/berth-viewers").Spec.Ingress[0]
		ports := map[string]int32{}
		for _, port := range as[appsv1.Deployment](t, objects, "Deployment/berth").Spec.Template.Spec.Containers[0].Ports {
			ports[port.Name] = port.ContainerPort
		}
		for _, port := range as[v1.Service](t, objects, "Service/berth").Spec.Ports {
			open := slices.ContainsFunc(rule.Ports, func(is networkingv1.NetworkPolicyPort) bool {
				return is.Port.IntVal == ports[port.TargetPort.StrVal]
			})
			if port.Name == "debug" && !open {
				t.Errorf("%s: no rule has port %d: %v", overlay, ports[port.TargetPort.StrVal], rule.Ports)
			}
		}
		for _, from := range rule.From {
			agents := from.NamespaceSelector != nil && from.PodSelector != nil &&
				from.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] == "kube-system" && len(from.PodSelector.MatchLabels) > 0
			if !agents && (from.IPBlock == nil || from.IPBlock.CIDR != "192.0.2.1/32") {
				t.Errorf("%s: as shipped it lets in %+v", overlay, from)
			}
		}
	}
}

// Berth and the second scheduler, each with the rights of its service account alone, place pods.
func TestServiceAccountsOfTheManifestsSuffice(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.CreateNodes(2)
	plane.AddPriorityClass("high", 1000)
	plane.AddBerthNamespace()
	plane.Kubectl("apply", "-k", "manifests/overlays/kind")
	objects := render(t, "manifests/overlays/kind")
	berth := plane.NewBerth("berth", plane.ServiceAccountKubeconfig("berth"), configOfBerth(t, objects))
	berth.Start()
	berth.WaitReady()
	kubeconfig := plane.ServiceAccountKubeconfig("berth-scheduler")
	scheduler := plane.StartSchedulerWith("berth-scheduler",
		replaced(t, fileText(t, "manifests/components/second-scheduler/config.yaml"),
			append(asPod(kubeconfig), shippedURL, berth.URL+"/")...), kubeconfig, "berth-system/berth-scheduler")

	pods := append(withAndWithoutGPUs("pod"), oneGPUEach("low", 14)...)
	for _, pod := range pods {
		pod.Spec.SchedulerName = "berth-scheduler"
	}
	stranger := harness.Pod("of-another-scheduler", nil)
	plane.CreatePods(append(pods, stranger)...)
	harness.Eventually(t, "all but one pod to be placed", 30*time.Second, func() error {
		waiting, err := plane.ListPods("spec.nodeName=")
		if err == nil && len(waiting) != 1 {
			err = fmt.Errorf("%d wait: %s", len(waiting), harness.WhyPending(&waiting[0]))
		}
		return err
	})
	if plane.Pod(stranger.Name).Spec.NodeName != "" {
		t.Error("the second scheduler placed a pod that did not ask for it")
	}
	// The scheduler evicts and nominates, too.
	high := harness.Pod("high", harness.Ask{harness.GPUResource: "2"})
	high.Spec.SchedulerName, high.Spec.PriorityClassName = "berth-scheduler", "high"
	plane.CreatePods(high)
	harness.Eventually(t, "the pod of high priority to be placed", time.Minute, func() error {
		if pod := plane.Pod("high"); pod.Spec.NodeName == "" {
			return fmt.Errorf("it is not: %s", harness.WhyPending(pod))
		}
		return nil
	})
	plane.CheckGrants()

	harness.Eventually(t, "an event of Berth", 15*time.Second, func() error {
		events, err := plane.Client.CoreV1().Events(harness.Namespace).List(t.Context(), metav1.ListOptions{})
		if err == nil && !slices.ContainsFunc(events.Items, func(event v1.Event) bool {
			return event.Source.Component == "berth" || event.ReportingController == "berth" ||
				strings.HasPrefix(event.ReportingController, "berth.dev")
		}) {
			err = fmt.Errorf("none among %d", len(events.Items))
		}
		return err
	})
	if dropped := berth.Metric("berth_events_dropped_total"); dropped != 0 {
		t.Errorf("%g events of Berth were not posted", dropped)
	}
	for name, log := range map[string]string{"Berth": berth.Log(), "the second scheduler": scheduler.Log()} {
		for _, word := range []string{"answered 403", "answered 401", "orbidden", "nauthorized"} {
			if contains(log, word) == nil {
				t.Errorf("the log of %s has %q:\n%s", name, word, log)
			}
		}
	}
	wantNobodyRefused(t, plane)
}

// wantNobodyRefused asks the API server itself: what is in no log is in its count.
func wantNobodyRefused(t *testing.T, plane *harness.Plane) {
	t.Helper()
	refused := func() string {
		lines := regexp.MustCompile(`(?m)^authorization_attempts_total\{.*\} [1-9].*$`).FindAllString(plane.Kubectl("get", "--raw=/metrics"), -1)
		return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, `"allowed"`) }), "\n")
	}
	if counted := refused(); counted != "" {
		t.Errorf("the API server refused something: %s", counted)
	}
	// It would have been counted.
	out, err := exec.Command(harness.Binary(t, "kubectl"), "--kubeconfig="+plane.ServiceAccountKubeconfig("berth"), "get",
		"--raw=/api/v1/secrets").CombinedOutput()
	if err == nil || refused() == "" {
		t.Errorf("reading secrets: %v, refusals counted: %q\n%s", err, refused(), out)
	}
}
