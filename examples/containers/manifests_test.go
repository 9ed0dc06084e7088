//go:build linux

package containers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/validation"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/lazo-ml/lazo/dist"
)

// decode reads one document of a known kind and refuses fields that the kind does not have.
func decode(text []byte) (any, error) {
	var named struct{ Kind string }
	if err := yaml.Unmarshal(text, &named); err != nil {
		return nil, err
	}
	kinds := map[string]any{
		"Deployment": &apps.Deployment{}, "Job": &batch.Job{}, "MPIJob": &kubeflow.MPIJob{},
		"PersistentVolumeClaim": &core.PersistentVolumeClaim{}, "Service": &core.Service{},
	}
	of := kinds[named.Kind]
	if of == nil {
		return nil, fmt.Errorf("unknown kind %q", named.Kind)
	}
	return of, yaml.UnmarshalStrict(text, of)
}

func documents(t *testing.T, file string) (all []any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
		of, err := decode(part)
		require.NoError(t, err, file)
		all = append(all, of)
	}
	return all
}

// decoded sets into to the file's document of its kind.
func decoded[T any](t *testing.T, file string, into *T) {
	t.Helper()
	for _, of := range documents(t, file) {
		if of, ok := of.(*T); ok {
			*into = *of
			return
		}
	}
	require.Fail(t, "no document of this kind", "%s: %T", file, into)
}

func podsOf(of any) (specs []core.PodSpec) {
	switch of := of.(type) {
	case *apps.Deployment:
		return []core.PodSpec{of.Spec.Template.Spec}
	case *batch.Job:
		return []core.PodSpec{of.Spec.Template.Spec}
	case *kubeflow.MPIJob:
		for _, role := range []kubeflow.MPIReplicaType{kubeflow.MPIReplicaTypeLauncher, kubeflow.MPIReplicaTypeWorker} {
			specs = append(specs, of.Spec.MPIReplicaSpecs[role].Template.Spec)
		}
	}
	return specs
}

var variable = regexp.MustCompile(`\bLAZO_[A-Z_]+\b`)

// variables are those that lazo's programs read.
func variables(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, quoted := range regexp.MustCompile(`"LAZO_[A-Z_]+"`).FindAllString(string(text), -1) {
			known[strings.Trim(quoted, `"`)] = true
		}
		return err
	}))
	require.Greater(t, len(known), 10)
	return known
}

func unknown(text string, known map[string]bool) (names []string) {
	for _, name := range variable.FindAllString(text, -1) {
		if !known[name] {
			names = append(names, name)
		}
	}
	return names
}

// Kubernetes' types have all fields of the manifests, and lazo's programs all their variables and flags.
func TestManifests(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 5)
	known, checked := variables(t), 0
	programs := map[string]string{"/bin/mnist": program(t, "./examples/mnist"), "/bin/lazo": program(t, "./cmd/lazo")}
	// accepted calls the programs of a command with their own flags and --help.
	accepted := func(command []string) bool {
		isProgram := func(word string) bool { return programs[word] != "" || word == "/usr/sbin/sshd" }
		called := false
		for rest := command; ; {
			at := slices.IndexFunc(rest, isProgram)
			if at < 0 {
				return called
			}
			own := rest[at+1:]
			end := slices.IndexFunc(own, isProgram)
			if end >= 0 {
				own = own[:end]
			}
			if of := programs[rest[at]]; of != "" {
				if out, err := exec.CommandContext(t.Context(), of, append(slices.Clone(own), "--help")...).CombinedOutput(); err != nil {
					t.Logf("%v: %s", command, out)
					return false
				}
			}
			called, rest = true, rest[at+1:]
		}
	}
	for _, file := range append(files, "Dockerfile") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Empty(t, unknown(string(text), known), file)
	}
	for _, file := range files {
		for _, of := range documents(t, file) {
			for _, spec := range podsOf(of) {
				require.Positive(t, *spec.TerminationGracePeriodSeconds)
				require.True(t, *spec.SecurityContext.RunAsNonRoot)
				volumes := map[string]bool{}
				for _, v := range spec.Volumes {
					volumes[v.Name] = true
				}
				for _, c := range spec.Containers {
					for _, m := range c.VolumeMounts {
						require.True(t, volumes[m.Name], "%s: %s", file, m.Name)
					}
					checked++
					require.True(t, accepted(slices.Concat(c.Command, c.Args)), "%s: %s", file, c.Name)
				}
			}
		}
	}
	require.Equal(t, 6, checked)

	// The checks above find mistakes.
	require.Equal(t, []string{"LAZO_SIZES"}, unknown(`{name: LAZO_SIZES, value: "4"}, {name: LAZO_SIZE}`, known))
	for _, command := range [][]string{{"/bin/mnist", "-resumed", "/checkpoints"}, {"/bin/lazo", "serve", "/models", "--lisen", ":8000"}, {"/bin/lazo", "run", "-ranks", "2", "/bin/mnist"}, {"/bin/lazo", "run", "-np", "2", "/bin/mnist", "-resumed", "/checkpoints"}, {"/bin/train"}} {
		require.False(t, accepted(command), command)
	}
	text, err := os.ReadFile("serve.yaml")
	require.NoError(t, err)
	_, last, found := bytes.Cut(text, []byte("\n---\n"))
	require.True(t, found)
	for old, wrong := range map[string]string{"readinessProbe:": "readynessProbe:", "containerPort:": "port:", "readOnlyRootFilesystem: true": "readOnlyRootFilesystem: yes please"} {
		changed := bytes.Replace(last, []byte(old), []byte(wrong), 1)
		require.NotEqual(t, last, changed, old)
		_, err := decode(changed)
		require.Error(t, err, wrong)
	}
}

// The server's time for clients to leave, and that of its requests, are within the grace period; the Service finds the
// pods and their port.
func TestManifests_serve(t *testing.T) {
	var d apps.Deployment
	decoded(t, "serve.yaml", &d)
	spec, c := d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
	of := func(flag string) time.Duration {
		at := slices.Index(c.Args, flag)
		require.Positive(t, at, flag)
		length, err := time.ParseDuration(c.Args[at+1])
		require.NoError(t, err)
		return length
	}
	seconds := func(n int32) time.Duration { return time.Duration(n) * time.Second }
	require.Less(t, of("--drain")+of("--timeout")+time.Second, seconds(int32(*spec.TerminationGracePeriodSeconds)))
	ready := c.ReadinessProbe
	require.Less(t, 2*seconds(ready.PeriodSeconds*ready.FailureThreshold), of("--drain"))
	for _, probe := range []*core.Probe{ready, c.LivenessProbe, c.StartupProbe} {
		require.Equal(t, intstr.FromString(c.Ports[0].Name), probe.HTTPGet.Port)
	}
	var s core.Service
	decoded(t, "serve.yaml", &s)
	require.Equal(t, d.Spec.Selector.MatchLabels, s.Spec.Selector)
	require.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
	require.Equal(t, intstr.FromString(c.Ports[0].Name), s.Spec.Ports[0].TargetPort)
}

// The operator accepts the MPIJob.
func TestManifests_mpiJob(t *testing.T) {
	var job kubeflow.MPIJob
	decoded(t, "mpijob.yaml", &job)
	kubeflow.SetDefaults_MPIJob(&job)
	require.Empty(t, validation.ValidateMPIJob(&job))
	job.Spec.SlotsPerWorker = nil
	require.NotEmpty(t, validation.ValidateMPIJob(&job))
}

const asRank = "CONTAINERS_TEST_RANK"

// rank is a pod of the indexed Job.
func rank() int {
	job, err := dist.Join(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	parts, err := job.AllGather([]byte(fmt.Sprint(job.Rank())))
	fmt.Printf("rank %d of %d: %s\n", job.Rank(), job.Size(), bytes.Join(parts, []byte(" ")))
	if err = errors.Join(err, job.Leave(err)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// The pods of the indexed Job find each other by its variables, with the Service's name in place of an address.
func TestManifests_indexed(t *testing.T) {
	var job batch.Job
	var service core.Service
	decoded(t, "indexed.yaml", &job)
	decoded(t, "indexed.yaml", &service)
	spec, n := job.Spec.Template.Spec, int(*job.Spec.Completions)
	require.EqualValues(t, n, *job.Spec.Parallelism)
	require.Equal(t, batch.IndexedCompletion, *job.Spec.CompletionMode)
	require.Equal(t, service.Name, spec.Subdomain)
	require.Equal(t, map[string]string{"job-name": job.Name}, service.Spec.Selector)
	require.Equal(t, core.ClusterIPNone, service.Spec.ClusterIP)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())
	var env []string
	for _, v := range spec.Containers[0].Env {
		switch v.Name {
		case "LAZO_COORDINATOR":
			require.Regexp(t, "^"+job.Name+"-0\\."+service.Name+":\\d+$", v.Value)
			v.Value = free.Addr().String()
		case "LAZO_SECRET":
			require.NotNil(t, v.ValueFrom.SecretKeyRef)
			v.Value = strings.Repeat("s", 32)
		}
		env = append(env, v.Name+"="+v.Value)
	}
	start := func(env []string) (wait func() string) {
		self, err := os.Executable()
		require.NoError(t, err)
		c := exec.CommandContext(t.Context(), self)
		c.Env = append(env, asRank+"=1")
		var said bytes.Buffer
		c.Stdout, c.Stderr = &said, &said
		require.NoError(t, c.Start())
		return func() string {
			_ = c.Wait()
			return said.String()
		}
	}
	var waits []func() string
	for i := range n {
		waits = append(waits, start(append(slices.Clone(env), fmt.Sprintf("JOB_COMPLETION_INDEX=%d", i))))
	}
	for i, wait := range waits {
		require.Equal(t, fmt.Sprintf("rank %d of %d: 0 1 2 3\n", i, n), wait())
	}
	for i := range env { // each variable is needed
		lacking := slices.Delete(slices.Clone(env), i, i+1)
		require.Contains(t, start(append(lacking, "JOB_COMPLETION_INDEX=0"))(), strings.Split(env[i], "=")[0], env[i])
	}
}
