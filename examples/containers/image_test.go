//go:build linux

package containers_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
)

// The image has one program, one plugin and six libraries, and trains as a user without a name and a home folder. A
// plugin in an emptyDir is refused. Too few threads end a program with a message.
func TestImage(t *testing.T) {
	root := image(t, "cpu", program(t, "./examples/mnist"))
	var libraries []string
	size, files := int64(0), 0
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if name := entry.Name(); strings.HasPrefix(path, root+"/lib") {
			libraries = append(libraries, name)
		}
		size, files = size+info.Size(), files+1
		return err
	}))
	slices.Sort(libraries)
	t.Logf("%d files, %.1f MB, libraries %v", files, float64(size)/1e6, libraries)
	require.Equal(t, []string{"ld-linux-x86-64.so.2", "libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1"}, libraries)
	require.Less(t, size, int64(310e6))
	require.Equal(t, []string{"10001:10001"}, ofDockerfile(t, "USER"))

	c := container{Root: root, UID: 10001, GID: 10001, ReadOnly: true, Command: []string{"/bin/mnist", "-quiet", "-epochs", "1"}}
	for name, env := range map[string][]string{
		"no home":                       ofDockerfile(t, "ENV"),
		"a home that cannot be written": append(ofDockerfile(t, "ENV"), "HOME=/"),
	} {
		c.Env = env
		r := c.start(t)
		require.Zero(t, r.ends(), "%s: %s", name, r.said())
		require.Regexp(t, `^test accuracy: 0\.\d{3} \(seconds: [0-9.]+\)\n$`, r.said(), name)
	}
	c.Env = nil
	r := c.start(t)
	require.Equal(t, 1, r.ends())
	require.Contains(t, r.said(), "no folder of plugins: set LAZO_HOME to one, or HOME")

	shared := t.TempDir() // an emptyDir
	require.NoError(t, os.CopyFS(shared, os.DirFS(filepath.Join(root, "lazo"))))
	require.NoError(t, os.Chmod(shared, 0o777))
	c.Env, c.Mounts = []string{"LAZO_HOME=/shared"}, map[string]string{"/shared": shared}
	r = c.start(t)
	require.Equal(t, 1, r.ends())
	require.Contains(t, r.said(), "/shared is not yours alone: every user may write to it")

	if os.Getuid() != 0 {
		return // the kernel counts the threads of this user outside
	}
	c.Env, c.Threads = ofDockerfile(t, "ENV"), 8
	r = c.start(t)
	require.NotZero(t, r.ends())
	require.Contains(t, r.said(), "pthread_create")
}

// A node that is drained ends the Job's pod by SIGTERM within the grace period. The next pod continues, and its result
// is that of an uninterrupted run, bit by bit. XLA has as many threads as the limit of CPUs.
func TestJob(t *testing.T) {
	var job batch.Job
	decoded(t, "job.yaml", &job)
	spec := job.Spec.Template.Spec
	root := image(t, "cpu", program(t, "./examples/mnist"))
	c, folders := pod(t, root, spec)
	first := c.start(t)
	first.until(`^epoch +1/100 `)
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", first.Process.Pid))
	require.NoError(t, err)
	threads := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil && strings.HasPrefix(string(text), "tf_XLAEigen") {
			threads++
		}
	}
	require.EqualValues(t, spec.Containers[0].Resources.Limits.Cpu().Value(), threads)
	first.terminate()
	require.Equal(t, 143, first.endsWithin(spec.TerminationGracePeriodSeconds), first.said())
	require.NotContains(t, first.said(), "epoch 100/100")

	second := c.start(t)
	require.NotEqual(t, "0", second.until(`msg="checkpoint: the run is resumed".* step=(\d+)`)[1])
	require.Zero(t, second.ends(), second.said())

	whole, others := pod(t, root, spec)
	third := whole.start(t)
	require.Zero(t, third.ends(), third.said())
	diff := exec.CommandContext(t.Context(), program(t, "./cmd/lazo"), "ckpt", "diff", folders["checkpoints"], "4400", "4400", "--other", others["checkpoints"])
	out, _ := diff.CombinedOutput() // the history has times
	require.Regexp(t, `^("loop\.history" .*\n)?3[78] of 38 tensors are the same\n$`, string(out))
}

// Two ranks in one pod exchange by lazo's MPI. SIGTERM of lazo run, the first process, ends them with a checkpoint in
// an emptyDir.
func TestMPI(t *testing.T) {
	var job batch.Job
	decoded(t, "mpi.yaml", &job)
	spec := job.Spec.Template.Spec
	root := image(t, "cpu mpi", program(t, "./cmd/lazo"), program(t, "./examples/mnist"))
	c, folders := pod(t, root, spec)
	r := c.start(t)
	r.until(`^epoch +1/300 `)
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", r.Process.Pid))
	require.NoError(t, err)
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	ranks := 0
	for _, name := range commands {
		command, _ := os.ReadFile(name) // the process may have ended
		if own, _ := os.Readlink(filepath.Join(filepath.Dir(name), "ns/pid")); own == space && bytes.HasPrefix(command, []byte("/bin/mnist\x00")) {
			ranks++
		}
	}
	require.Equal(t, 2, ranks)
	r.terminate()
	require.Equal(t, 143, r.endsWithin(spec.TerminationGracePeriodSeconds), r.said())
	require.NotContains(t, r.said(), "epoch 300/300")
	saved, err := filepath.Glob(filepath.Join(folders["checkpoints"], "*", "COMMIT"))
	require.NoError(t, err)
	require.NotEmpty(t, saved)
}

// The server is ready after its models, by the probes' paths. After SIGTERM it is alive and answers, but is not ready,
// and ends within the grace period.
func TestServe(t *testing.T) {
	var d apps.Deployment
	decoded(t, "serve.yaml", &d)
	spec := d.Spec.Template.Spec
	c, folders := pod(t, image(t, "cpu", program(t, "./cmd/lazo")), spec)
	m := must.M1(flaxlike.New(t.Context(), nn.Dense{Units: 1}, flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))), flaxlike.WithLoss("mse")))
	defer m.Close()
	require.NoError(t, m.Init(t.Context(), data.Batch{Fields: []data.Field{data.X([]float32{1}, 1, 1)}}))
	require.NoError(t, m.SetValue("/model/kernel", tensors.FromFlatDataAndDimensions([]float32{2}, 1, 1)))
	require.NoError(t, m.Save(filepath.Join(folders["models"], "m.safetensors")))
	listen := slices.Index(c.Command, "--listen") + 1
	require.Equal(t, fmt.Sprintf(":%d", spec.Containers[0].Ports[0].ContainerPort), c.Command[listen])
	c.Command[listen] = "127.0.0.1:0"
	r := c.start(t)
	address := r.until(`^(http://\S+)/v2$`)[1]
	ask := func(method, path, body string) (int, string) {
		request := must.M1(http.NewRequestWithContext(t.Context(), method, address+path, bytes.NewBufferString(body)))
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		return response.StatusCode, string(must.M1(io.ReadAll(response.Body)))
	}
	live, ready := spec.Containers[0].LivenessProbe.HTTPGet.Path, spec.Containers[0].ReadinessProbe.HTTPGet.Path
	infer := func() {
		status, answer := ask("POST", "/v2/models/m/infer", `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,1],"data":[3]}]}`)
		require.Equal(t, 200, status, answer)
		require.Contains(t, answer, `"data":[6]`)
	}
	for _, path := range []string{live, ready, spec.Containers[0].StartupProbe.HTTPGet.Path} {
		status, answer := ask("GET", path, "")
		require.Equal(t, 200, status, answer)
	}
	infer()
	r.terminate()
	for status := 200; status != 503; {
		status, _ = ask("GET", ready, "")
	}
	status, _ := ask("GET", live, "")
	require.Equal(t, 200, status)
	infer()
	http.DefaultClient.CloseIdleConnections()
	require.Equal(t, 143, r.endsWithin(spec.TerminationGracePeriodSeconds), r.said())
}
