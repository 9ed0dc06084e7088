package checkpoint_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

const childEnv = "LAZO_CHECKPOINT_TEST_CHILD"

// kills is the number of processes that each test kills.
var kills = 20

// payload is content of this many bytes, all of them the step's.
func payload(step, size int) checkpoint.Content {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(step + i>>12)
	}
	return checkpoint.Content{
		Tensors:  []checkpoint.Tensor{{Name: "w", DType: safetensors.U8, Dims: []int{size}, Data: data}},
		Metrics:  map[string]float64{"loss": float64(step * 7919 % 101)},
		Sections: map[string]any{"step": step},
	}
}

// TestChild is the process that is killed; run for itself it does nothing.
func TestChild(t *testing.T) {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	var mode, dir string
	var size, keep int
	_, err := fmt.Sscanf(text, "%s %d %d %q", &mode, &size, &keep, &dir)
	require.NoError(t, err)
	options := checkpoint.Options{Log: quiet}
	if keep > 0 {
		options.Keep = []checkpoint.Retention{{Last: keep, Best: 1, Metric: "loss"}}
	}
	f, err := checkpoint.Open(dir, options)
	require.NoError(t, err)
	if mode == "hold" {
		fmt.Println("saved 0")
		_, _ = io.ReadAll(os.Stdin)
		return
	}
	first := 1
	if c, err := f.Newest(t.Context()); err == nil {
		first = int(c.Step) + 1
	} else {
		require.ErrorIs(t, err, checkpoint.ErrNone)
	}
	a := f.Async()
	for step := first; ; step++ {
		at := checkpoint.Step(step)
		if mode == "sync" {
			require.NoError(t, f.Save(context.Background(), at, payload(step, size)))
			fmt.Println("saved", step)
			continue
		}
		require.NoError(t, a.Save(context.Background(), at, payload(step, size)))
		if step%3 == 0 {
			require.NoError(t, a.Wait(context.Background()))
			fmt.Println("saved", step)
		}
	}
}

// child starts a process and waits until it has saved n times. It returns a function that kills it and returns its last
// report.
func child(t *testing.T, n int, mode string, size, keep int, dir string) (*exec.Cmd, func() int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childEnv+"="+fmt.Sprintf("%s %d %d %q", mode, size, keep, dir))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	_, err = cmd.StdinPipe() // so that a child can hold until it is killed
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	last := -1
	next := func() bool {
		line, err := lines.ReadString('\n')
		if err != nil {
			return false // a line that is not whole does not count
		}
		number, ok := strings.CutPrefix(strings.TrimSpace(line), "saved ")
		require.True(t, ok, line)
		last, err = strconv.Atoi(number)
		require.NoError(t, err)
		return true
	}
	for range n {
		require.True(t, next(), "the child ended for itself")
	}
	return cmd, func() int {
		require.NoError(t, cmd.Process.Kill())
		for next() {
		}
		require.Error(t, cmd.Wait()) // closes stdin
		return last
	}
}

// killing kills processes that save into one folder, one after the other.
func killing(t *testing.T, row string, size int, keep []int) {
	random := rand.New(rand.NewPCG(uint64(size), 1))
	for _, mode := range []string{"sync", "async"} {
		dir := t.TempDir()
		left, total := 0, 0
		for i := range kills / 2 {
			start := time.Now()
			_, kill := child(t, 1+random.IntN(3), mode, size, keep[i%len(keep)], dir)
			time.Sleep(time.Duration(random.Int64N(int64(time.Since(start)))) / 2)
			acknowledged := kill()
			names, err := os.ReadDir(dir)
			require.NoError(t, err)
			for _, n := range names {
				if strings.HasPrefix(n.Name(), ".") {
					left++
				}
			}
			f, err := checkpoint.Open(dir, checkpoint.Options{Log: quiet})
			require.NoError(t, err)
			c, err := f.Newest(t.Context())
			require.NoError(t, err, "kill %d", i)
			require.GreaterOrEqual(t, int(c.Step), acknowledged, "kill %d", i)
			want := payload(int(c.Step), size)
			require.Equal(t, want.Metrics, c.Metrics)
			require.True(t, string(want.Tensors[0].Data) == string(c.Tensors[0].Data))
			list, err := f.List(t.Context())
			require.NoError(t, err)
			for _, info := range list {
				require.NoError(t, info.Err, "what can be seen is complete")
			}
			total++
			require.NoError(t, f.Close())
		}
		t.Logf("%s: %s: %d kills, %d of them in the middle of a save or a pruning: 0 folders that cannot be loaded, 0 acknowledged steps lost", row, mode, total, left)
	}
}

func TestF08_twoProcesses(t *testing.T) {
	dir := t.TempDir()
	cmd, kill := child(t, 1, "hold", 0, 0, dir)
	start := time.Now()
	_, err := checkpoint.Open(dir, checkpoint.Options{Log: quiet})
	took := time.Since(start)
	var locked *checkpoint.LockedError
	require.ErrorAs(t, err, &locked)
	host, hostErr := os.Hostname()
	require.NoError(t, hostErr)
	require.Equal(t, &checkpoint.LockedError{Dir: dir, PID: cmd.Process.Pid, Host: host}, locked)
	require.ErrorContains(t, err, fmt.Sprintf("process %d on host %q writes there", cmd.Process.Pid, host))
	reader, err := checkpoint.Open(dir, checkpoint.Options{ReadOnly: true, Log: quiet})
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	kill()
	f, err := checkpoint.Open(dir, checkpoint.Options{Log: quiet})
	require.NoError(t, err, "the lock is gone with the process")
	_, err = checkpoint.Open(dir, checkpoint.Options{Log: quiet})
	require.ErrorAs(t, err, &locked)
	require.Equal(t, os.Getpid(), locked.PID, "one process has it once")
	save(t, f, 1)
	require.NoError(t, f.Close())
	t.Logf("F08: the second process was refused after %v, with the first one's pid; after its SIGKILL a third one started", took.Round(time.Microsecond))
}

func TestLockOfUnknownOwner(t *testing.T) {
	for _, note := range []string{"", "{", `{"pid":"x"}`, `[]`, strings.Repeat("x", 5000)} {
		m := saved(t)
		l, err := m.Lock("LOCK", note)
		require.NoError(t, err)
		_, err = checkpoint.OpenFS(m, "folder", checkpoint.Options{})
		require.ErrorContains(t, err, "another process writes there")
		require.NoError(t, l.Close())
	}
}

//lazo:norace
func TestF01_killedWhileSaving(t *testing.T) { killing(t, "F01", 8<<20, []int{2}) }

func TestF07_killedWhilePruning(t *testing.T) { killing(t, "F07", 4<<10, []int{1, 2, 3}) }
