package install

import (
	"bufio"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
