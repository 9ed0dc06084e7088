//go:build linux

// Package containers_test builds the image of the Dockerfile, by the same script, and runs the manifests in it as a
// node would: in namespaces, with the image read-only, as the user, with the variables and volumes of the pod.
package containers_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	core "k8s.io/api/core/v1"
)

const inside = "CONTAINERS_TEST_INSIDE"

func TestMain(m *testing.M) {
	if text := os.Getenv(inside); text != "" {
		fmt.Fprintln(os.Stderr, "container:", enter(text))
		os.Exit(125)
	}
	if os.Getenv(asRank) != "" {
		os.Exit(rank())
	}
	os.Exit(m.Run())
}

// container is a pod's container on this machine.
type container struct {
	Root         string
	UID, GID     int
	Groups       []int
	ReadOnly     bool
	Mounts       map[string]string // folders of this machine, by their paths in the container
	Command, Env []string
	Threads      uint64 // RLIMIT_NPROC, 0: unlimited
}

// enter makes this process, the first of its namespaces, the container's program. It returns only an error.
func enter(text string) error {
	var c container
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	type mount struct {
		source, target, kind string
		flags                uintptr
	}
	dev := c.Root + "/dev"
	mounts := []mount{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE}, {c.Root, c.Root, "", unix.MS_BIND},
		{"proc", c.Root + "/proc", "proc", 0}, {"/sys", c.Root + "/sys", "", unix.MS_BIND | unix.MS_REC}, {"tmpfs", dev, "tmpfs", 0},
	}
	for path, folder := range c.Mounts {
		mounts = append(mounts, mount{folder, c.Root + path, "", unix.MS_BIND})
	}
	if c.ReadOnly {
		mounts = append(mounts, mount{"", c.Root, "", unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY})
	}
	for _, m := range mounts {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %+v: %w", m, err)
		}
	}
	for _, device := range []string{"null", "zero", "urandom"} {
		path := filepath.Join(dev, device)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
		if err := unix.Mount("/dev/"+device, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", path, err)
		}
	}
	if err := os.Mkdir(dev+"/shm", 0o777|os.ModeSticky); err != nil {
		return err
	}
	if err := os.Chmod(dev+"/shm", 0o777|os.ModeSticky); err != nil {
		return err
	}
	if err := unix.Chroot(c.Root); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if c.UID != 0 {
		for _, set := range []func() error{
			func() error { return syscall.Setgroups(c.Groups) },
			func() error { return syscall.Setgid(c.GID) },
			func() error { return syscall.Setuid(c.UID) },
		} {
			if err := set(); err != nil {
				return err
			}
		}
	}
	if c.Threads > 0 {
		if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: c.Threads, Max: c.Threads}); err != nil {
			return err
		}
	}
	return syscall.Exec(c.Command[0], c.Command, c.Env)
}

// running is a started container.
type running struct {
	*exec.Cmd
	t      *testing.T
	mu     sync.Mutex
	text   strings.Builder
	lines  chan string
	closed chan struct{}
}

// start runs a container until the end of the test at most. Without root, its user is this one, root in a user
// namespace.
func (c container) start(t *testing.T) *running {
	t.Helper()
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	if os.Getuid() != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
		c.UID = 0
	}
	for path := range c.Mounts {
		require.NoError(t, os.MkdirAll(c.Root+path, 0o755))
	}
	for _, path := range []string{"/proc", "/sys", "/dev"} {
		require.NoError(t, os.MkdirAll(c.Root+path, 0o755))
	}
	text, err := json.Marshal(c)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	r := &running{Cmd: exec.CommandContext(t.Context(), self), t: t, lines: make(chan string), closed: make(chan struct{})}
	r.SysProcAttr, r.Env = attributes, []string{inside + "=" + string(text)}
	out, in, err := os.Pipe()
	require.NoError(t, err)
	r.Stdout, r.Stderr = in, in
	require.NoError(t, r.Start(), "this test needs root, or namespaces of users")
	require.NoError(t, in.Close())
	go func() {
		defer close(r.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			r.mu.Lock()
			fmt.Fprintln(&r.text, scanner.Text())
			r.mu.Unlock()
			select {
			case r.lines <- scanner.Text():
			case <-r.closed:
			}
		}
	}()
	return r
}

func (r *running) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// until waits for a line with a match of the pattern.
func (r *running) until(pattern string) []string {
	r.t.Helper()
	for line := range r.lines {
		if found := regexp.MustCompile(pattern).FindStringSubmatch(line); found != nil {
			return found
		}
	}
	require.Fail(r.t, "no line has "+pattern, r.said())
	return nil
}

// ends returns the exit code.
func (r *running) ends() int {
	r.t.Helper()
	close(r.closed)
	_ = r.Wait()
	for range r.lines {
	}
	return r.ProcessState.ExitCode()
}

// terminate begins the end of a pod.
func (r *running) terminate() {
	r.t.Helper()
	require.NoError(r.t, r.Process.Signal(syscall.SIGTERM))
}

// endsWithin returns the exit code: 137 if the node kills the container after the grace period.
func (r *running) endsWithin(seconds *int64) int {
	r.t.Helper()
	kill := time.AfterFunc(time.Duration(*seconds)*time.Second, func() { _ = r.Process.Kill() })
	defer kill.Stop()
	return r.ends()
}

// pod returns a pod's one container, and the folders of its volumes by name.
func pod(t *testing.T, root string, spec core.PodSpec) (container, map[string]string) {
	t.Helper()
	require.Len(t, spec.Containers, 1)
	from, all := spec.Containers[0], spec.SecurityContext
	require.True(t, *all.RunAsNonRoot)
	c := container{Root: root, UID: int(*all.RunAsUser), GID: int(*all.RunAsGroup), ReadOnly: *from.SecurityContext.ReadOnlyRootFilesystem, Mounts: map[string]string{}}
	c.Command = append(append(c.Command, from.Command...), from.Args...)
	c.Env = append(ofDockerfile(t, "ENV"), "HOME=/", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	for _, variable := range from.Env {
		value := variable.Value
		if source := variable.ValueFrom; source != nil {
			require.Equal(t, "limits.cpu", source.ResourceFieldRef.Resource)
			value = fmt.Sprint(from.Resources.Limits.Cpu().Value())
		}
		c.Env = append(c.Env, variable.Name+"="+value)
	}
	folders := map[string]string{}
	for _, volume := range spec.Volumes {
		folder := filepath.Join(t.TempDir(), volume.Name)
		mode := os.FileMode(0o777) // of an emptyDir
		if volume.PersistentVolumeClaim != nil {
			mode = 0o755
			if all.FSGroup != nil {
				c.Groups, mode = []int{int(*all.FSGroup)}, 0o775|os.ModeSetgid
			}
		}
		require.NoError(t, os.Mkdir(folder, 0o700))
		if os.Getuid() == 0 && all.FSGroup != nil && volume.PersistentVolumeClaim != nil {
			require.NoError(t, os.Chown(folder, 0, int(*all.FSGroup)))
		}
		require.NoError(t, os.Chmod(folder, mode))
		folders[volume.Name] = folder
	}
	for _, m := range from.VolumeMounts {
		c.Mounts[m.MountPath] = folders[m.Name]
		require.NotEmpty(t, c.Mounts[m.MountPath], m.Name)
	}
	return c, folders
}

// ofDockerfile returns the arguments of an instruction in the last stage.
func ofDockerfile(t *testing.T, instruction string) (all []string) {
	t.Helper()
	text, err := os.ReadFile("Dockerfile")
	require.NoError(t, err)
	_, last, found := strings.Cut(string(text), "\nFROM scratch\n")
	require.True(t, found)
	for line := range strings.Lines(last) {
		if word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word == instruction {
			all = append(all, rest)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// program builds one as the Dockerfile does; go run keeps what it has linked.
func program(t *testing.T, source string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), filepath.Base(source))
	build := exec.CommandContext(t.Context(), "go", "run", "-ldflags=-s", "-exec", "cp", source, path)
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

// image makes the root of an image.
func image(t *testing.T, plugins string, programs ...string) (root string) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "root")
	c := exec.CommandContext(t.Context(), "sh", append([]string{"image.sh", root, plugins}, programs...)...)
	c.Env = append(os.Environ(), "LAZO="+program(t, "./cmd/lazo"))
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	return root
}
