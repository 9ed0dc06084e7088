package install

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestF25_EightAtOnce(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 2_000_000))
	x := serve(t, one)
	const processes = 8
	reached, release := make(chan struct{}, processes), make(chan struct{})
	x.answer(func(w http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		<-release
		w.Write(one.wheel)
	})
	root := t.TempDir()
	var children []*exec.Cmd
	for range processes {
		child := x.child(t.Context(), t, order{Root: root, Table: []Wheel{one.Wheel}})
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		_, err = bufio.NewReaderSize(out, 16).ReadString('\n') // it has started
		require.NoError(t, err)
		children = append(children, child)
	}
	<-reached
	close(release)
	failed := 0
	for _, child := range children {
		if child.Wait() != nil {
			failed++
		}
	}
	require.Zero(t, failed)
	require.EqualValues(t, 1, x.downloads.Load())
	_, err := find(t.Context(), "toy", root, x.options(root, one), full)
	require.NoError(t, err)
	tidy(t, root, true)
	t.Logf("F25: %d processes at once: %d download, %d failed", processes, x.downloads.Load(), failed)
}

func TestF25_DiskFull(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 2_000_000))
	packed := newToy(t, "2.0", make([]byte, 2_000_000)) // small as a wheel, so the disk is full while unpacking
	for name, toy := range map[string]toy{"while downloading": one, "while unpacking": packed} {
		t.Run(name, func(t *testing.T) {
			x := serve(t, toy)
			root := t.TempDir()
			child := x.child(t.Context(), t, order{Root: root, Table: []Wheel{toy.Wheel}, FileLimit: 1_000_000})
			out, err := child.Output()
			var exit *exec.ExitError
			require.True(t, errors.As(err, &exit), "%v", err)
			require.Equal(t, 3, exit.ExitCode(), "%s", out)
			require.Contains(t, string(out), "no room in "+root)
			tidy(t, root, false)
			_, err = Install(t.Context(), "toy", x.options(root, toy))
			require.NoError(t, err, "the next run recovers")
			tidy(t, root, true)
		})
	}
}

func TestF25_KilledAnywhere(t *testing.T) {
	one, two := newToy(t, "1.0", noise(1, 1_000_000)), newToy(t, "2.0", noise(2, 3_000_000))
	x := serve(t, one, two)
	random := rand.New(rand.NewPCG(1, 25))
	place := make(map[string]int) // where the kills hit
	old, fresh := 0, 0
	for kill := range kills {
		root := t.TempDir()
		upgrade := kill%2 == 1
		o := x.options(root, two)
		if upgrade {
			_, err := Install(t.Context(), "toy", x.options(root, one))
			require.NoError(t, err)
		}
		last := killAfter(t, x.child(t.Context(), t, order{Root: root, Table: o.table}), random)
		place[last]++

		p, err := find(t.Context(), "toy", root, o, full)
		switch {
		case err == nil && p.Version == "2.0":
			fresh++
		case upgrade:
			require.NoError(t, err, "the old version is still there")
			require.Equal(t, "1.0", p.Version)
			old++
		default:
			require.ErrorIs(t, err, ErrNotInstalled)
		}
		p, err = Install(t.Context(), "toy", o)
		require.NoError(t, err, "the next run recovers")
		require.Equal(t, "2.0", p.Version)
		_, err = find(t.Context(), "toy", root, o, full)
		require.NoError(t, err)
		tidy(t, root, true)
		require.NoError(t, os.RemoveAll(filepath.Join(root, "toy")))
	}
	require.Greater(t, len(place), 2, "the kills must hit several stages: %v", place)
	t.Logf("F25: %d kills %v: 0 wrong files, old version kept %d times, new one already there %d times, 0 files left after the next run", kills, place, old, fresh)
}

// killAfter runs the child, kills it shortly after a random event, and returns that event.
func killAfter(t *testing.T, child *exec.Cmd, random *rand.Rand) string {
	t.Helper()
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	// Most of the short stages come after the download, which has the most events.
	stage := []Stage{Resolve, Download, Download, Extract, Probe}[random.IntN(5)]
	skip := 0
	if stage == Download {
		skip = random.IntN(12)
	}
	pause := time.Duration(random.IntN(4000)) * time.Microsecond
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if name, _, _ := strings.Cut(lines.Text(), " "); Stage(name) == stage {
			if skip--; skip < 0 {
				break
			}
		}
	}
	time.Sleep(pause)
	_ = child.Process.Kill()
	_ = child.Wait()
	if child.ProcessState.Exited() {
		return "too late"
	}
	return string(stage)
}
