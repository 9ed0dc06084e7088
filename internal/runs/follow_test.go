package runs_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/runs"
	"github.com/lazo-ml/lazo/loop"
)

type point struct {
	step int64
	x    float64
}

// sink keeps rows as a page does.
type sink struct {
	rows     int
	points   map[string][]point
	last     int64
	status   checkpoint.RunStatus
	why      string
	settings map[string]string
	err      error
	lines    string
	search   *runs.Search
}

func (s *sink) Row(source string, at loop.Elapsed, columns []string, numbers []float64) {
	s.rows++
	if at.Steps < s.last {
		s.Rewind(source, at.Steps)
	}
	for i, name := range columns {
		all := s.points[name]
		if n := len(all); n > 0 && all[n-1].step == at.Steps {
			all = all[:n-1]
		}
		s.points[name] = append(all, point{at.Steps, numbers[i]})
	}
	s.last = at.Steps
}

func (s *sink) Rewind(_ string, step int64) {
	for name, all := range s.points {
		for len(all) > 0 && all[len(all)-1].step >= step {
			all = all[:len(all)-1]
		}
		s.points[name] = all
	}
	s.last = 0
}

func (s *sink) Describe(status checkpoint.RunStatus, why string, settings map[string]string, err error) {
	s.status, s.why, s.settings, s.err = status, why, settings, err
}

func (s *sink) Log(text string) { s.lines += text }

func (s *sink) Search(of *runs.Search) { s.search = of }

type following struct {
	*runs.Follower
	t     *testing.T
	sinks map[string]*sink
}

func follow(t *testing.T, dir string) *following {
	f := &following{t: t, sinks: map[string]*sink{}}
	f.Follower = runs.NewFollower(dir, func(name string) runs.Sink {
		f.sinks[name] = &sink{points: map[string][]point{}}
		return f.sinks[name]
	}, func(name string) { delete(f.sinks, name) }, slog.New(slog.DiscardHandler))
	return f
}

func (f *following) look() {
	f.t.Helper()
	require.NoError(f.t, f.Find(f.t.Context()))
	f.read()
}

func (f *following) read() {
	f.t.Helper()
	require.NoError(f.t, f.Read(f.t.Context()))
}

func (f *following) only() *sink {
	f.t.Helper()
	require.Len(f.t, f.sinks, 1)
	for _, s := range f.sinks {
		return s
	}
	return nil
}

func write(t *testing.T, path, text string, how int) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|how, 0o600)
	require.NoError(t, err)
	_, err = file.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

func jsonRow(step int, loss float64) string {
	return fmt.Sprintf("{\"elapsed.steps\":%d,\"losses.loss\":%g}\n", step, loss)
}

func TestFollow_readsEachLineOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log.jsonl")
	write(t, path, jsonRow(1, 3)+jsonRow(2, 2), 0)
	f := follow(t, dir)
	f.look()
	s := f.only()
	require.Equal(t, 2, s.rows)
	f.read()
	require.Equal(t, 2, s.rows)
	write(t, path, jsonRow(3, 1)+`{"elapsed.steps":4,`, os.O_APPEND)
	f.read()
	require.Equal(t, 3, s.rows)
	write(t, path, `"losses.loss":0.5}`+"\n", os.O_APPEND)
	f.read()
	require.Equal(t, 4, s.rows)
	require.Equal(t, []point{{1, 3}, {2, 2}, {3, 1}, {4, 0.5}}, s.points["losses.loss"])
	require.NoError(t, os.Remove(path))
	f.look()
	require.Empty(t, f.sinks)
}

func TestFollow_tableWithItsHeader(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log.csv")
	write(t, path, "elapsed.steps,losses.loss\n1,3\n", 0)
	f := follow(t, dir)
	f.look()
	write(t, path, "2,2\n", os.O_APPEND)
	f.read()
	require.Equal(t, []point{{1, 3}, {2, 2}}, f.only().points["losses.loss"])
	// A new column: the file is replaced.
	write(t, path+".tmp", "elapsed.steps,losses.loss,metrics.accuracy\n1,3,\n2,2,\n3,1,0.5\n", 0)
	require.NoError(t, os.Rename(path+".tmp", path))
	f.read()
	require.Equal(t, []point{{1, 3}, {2, 2}, {3, 1}}, f.only().points["losses.loss"])
	require.Equal(t, []point{{3, 0.5}}, f.only().points["metrics.accuracy"])
}

// A resumed run removes lines of the file and writes others, maybe more.
func TestFollow_rewrittenLines(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log.jsonl")
	write(t, path, jsonRow(1, 3)+jsonRow(2, 2)+jsonRow(3, 1), 0)
	f := follow(t, dir)
	f.look()
	write(t, path, jsonRow(1, 3)+jsonRow(2, 7)+jsonRow(3, 8)+jsonRow(4, 9), os.O_TRUNC)
	f.read()
	require.Equal(t, []point{{1, 3}, {2, 7}, {3, 8}, {4, 9}}, f.only().points["losses.loss"])
}

func TestFollow_rotation(t *testing.T) {
	all := []point{{1, 3}, {2, 2}, {3, 1}, {4, 0.5}}
	t.Run("renamed", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "log.jsonl")
		write(t, path, jsonRow(1, 3)+jsonRow(2, 2), 0)
		f := follow(t, dir)
		f.look()
		write(t, path, jsonRow(3, 1), os.O_APPEND) // not read yet
		require.NoError(t, os.Rename(path, path+".1"))
		f.read()
		write(t, path, jsonRow(4, 0.5), 0)
		f.look()
		require.Equal(t, all, f.only().points["losses.loss"])
		again := follow(t, dir)
		again.look()
		require.Equal(t, all, again.only().points["losses.loss"])
	})
	t.Run("emptied", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "log.jsonl")
		write(t, path, jsonRow(1, 3)+jsonRow(2, 2)+jsonRow(3, 1), 0)
		f := follow(t, dir)
		f.look()
		write(t, path, jsonRow(4, 0.5), os.O_TRUNC)
		f.read()
		require.Equal(t, all, f.only().points["losses.loss"])
	})
}

func TestFollow_damagedLine(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log.jsonl")
	write(t, path, jsonRow(1, 3)+"damaged\n", 0)
	f := follow(t, dir)
	f.look()
	s := f.only()
	require.ErrorContains(t, s.err, "log.jsonl: ")
	rows := s.rows
	f.read()
	require.Equal(t, rows, s.rows, "an unchanged file is not read again")
	require.Error(t, s.err)
	write(t, path, jsonRow(1, 3)+jsonRow(2, 2), os.O_TRUNC)
	f.read()
	require.NoError(t, s.err)
	require.Equal(t, []point{{1, 3}, {2, 2}}, s.points["losses.loss"])
}

func TestFollow_runs(t *testing.T) {
	dir := t.TempDir()
	saved, logged := filepath.Join(dir, "saved"), filepath.Join(dir, "logged")
	require.NoError(t, train(t, "0.1", 4, nil, checkpoint.Resume(saved, checkpoint.Every(loop.Steps(2))), callbacks.JSONL(filepath.Join(saved, "log.jsonl"), loop.Every(loop.Steps(2)))))
	write(t, filepath.Join(saved, "out.log"), "first\nsecond\nhal", 0)
	require.NoError(t, train(t, "0.1", 4, nil, tensorboard.Write(logged, loop.EachStep, tensorboard.Hyperparameters(map[string]any{"rate": 0.5}))))
	f := follow(t, dir)
	f.look()
	s := f.sinks["saved"]
	require.NotNil(t, s)
	require.NoError(t, s.err)
	require.Equal(t, checkpoint.Ended, s.status)
	require.Contains(t, s.why, "data ended")
	require.Equal(t, "0.1", s.settings["optimizer.rate"])
	require.Equal(t, "first\nsecond\n", s.lines)
	require.NotContains(t, s.points, "progress.epoch")
	write(t, filepath.Join(saved, "out.log"), "f\n", os.O_APPEND)
	f.read()
	require.Equal(t, "first\nsecond\nhalf\n", s.lines)

	l := f.sinks["logged"]
	require.NotNil(t, l)
	require.Equal(t, checkpoint.Ended, l.status)
	require.Equal(t, map[string]string{"rate": "0.5"}, l.settings)
	require.Equal(t, []point{{1, 0.1}, {2, 0.2}, {3, 0.3}, {4, 0.4}}, rounded(l.points["metrics.accuracy"], l.points["metrics.val_accuracy"]))
}

func rounded(all ...[]point) (p []point) {
	for _, of := range all {
		for _, v := range of {
			p = append(p, point{v.step, float64(int(v.x*1000+0.5)) / 1000})
		}
	}
	return p
}

// The rows come from the history alone, again after each checkpoint.
func TestFollow_history(t *testing.T) {
	dir := t.TempDir()
	f := follow(t, dir)
	seen := map[int64]int{}
	look := loop.Callback{When: loop.EachStep, Order: 2, Start: func(loop.Beginning) (loop.Attendant, error) {
		return watch(func(_ context.Context, r loop.Report) error {
			f.look()
			if s := f.sinks[filepath.Base(dir)]; s != nil {
				seen[r.Elapsed.Steps] = len(s.points["metrics.score"])
				require.Equal(t, checkpoint.Running, s.status)
			}
			return nil
		}), nil
	}}
	require.NoError(t, train(t, "0.1", 6, nil, checkpoint.Resume(dir, checkpoint.Every(loop.Steps(2))), look))
	fresh := follow(t, dir)
	fresh.look()
	s := fresh.sinks[filepath.Base(dir)]
	require.Len(t, s.points["metrics.score"], 6)
	require.Equal(t, checkpoint.Ended, s.status)
	require.NotEmpty(t, seen)
}

type watch func(context.Context, loop.Report) error

func (w watch) Watch(ctx context.Context, r loop.Report) error { return w(ctx, r) }
func (watch) End(context.Context, loop.Ending) error           { return nil }
