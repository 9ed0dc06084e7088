package tensorboard_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/loop"
)

// sick is a file that takes some writes and then fails, or is slow.
type sick struct {
	writes int
	slow   time.Duration
	wrote  int
	closed int
}

func (s *sick) Write(b []byte) (int, error) {
	time.Sleep(s.slow)
	if s.wrote++; s.wrote > s.writes {
		return len(b) / 2, syscall.ENOSPC
	}
	return len(b), nil
}

func (s *sick) Close() error {
	s.closed++
	return nil
}

// F35: nothing after half a record can be read, so a file that stays broken gets only the rest of it, and is closed
// once.
func TestF35_aBrokenFileGetsTheRestOfARecord(t *testing.T) {
	file, dir := &sick{writes: 3}, t.TempDir()
	w := tensorboard.New(dir, tensorboard.CreateWith(func(string) (io.WriteCloser, error) { return file, nil }))
	var logs loop.Logs
	logs.Loss("loss", 1)
	for step := range int64(9) {
		require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: step + 1}, Logs: logs}))
	}
	err := w.End(t.Context(), loop.Ending{})
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, filepath.Join(dir, "train")+": 7 records of steps 3 to 9 are missing: ")
	require.Equal(t, 3+7+1, file.wrote, "each event tries, and so does the end")
	require.Equal(t, 1, file.closed)
}

// full is an event file on a disk with some room.
type full struct {
	*os.File
	room *int
}

func (f full) Write(b []byte) (int, error) {
	n := min(len(b), *f.room)
	*f.room -= n
	n, err := f.File.Write(b[:n])
	if err == nil && n < len(b) {
		err = syscall.ENOSPC
	}
	return n, err
}

// S52: a disk that is full for a time costs no event, also if it is full at the start, and the logger has it at once.
func TestWrite_fullDisk(t *testing.T) {
	const size, steps = 1 << 20, 60
	for _, at := range []int64{1, 30} {
		var text strings.Builder
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
		t.Cleanup(func() { slog.SetDefault(before) })
		dir, room := t.TempDir(), size
		w := tensorboard.New(dir, tensorboard.CreateWith(func(path string) (io.WriteCloser, error) {
			file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			return full{file, &room}, err
		}))
		var logs loop.Logs
		logs.Loss("loss", 1)
		for step := range int64(steps) {
			switch step + 1 {
			case at:
				room = 10 // a half record
			case at + 20:
				require.Equal(t, 1, strings.Count(text.String(), "level=WARN"), &text)
				room = size
			}
			require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: step + 1}, Logs: logs}))
		}
		require.Contains(t, text.String(), fmt.Sprintf("from=%d to=%d lost=0", at, at+19))
		require.NoError(t, w.End(t.Context(), loop.Ending{}))
		written, _ := only(t, filepath.Join(dir, "train")).series("losses/loss")
		require.Len(t, written, steps)
		require.IsIncreasing(t, written)
	}
	t.Logf("S52: a disk full for 20 of %d events: 0 lost", steps)
}

// S52: events continue in a new file if theirs was renamed or removed, and hide none of it.
func TestWrite_rotation(t *testing.T) {
	for name, row := range map[string]struct {
		rotate func(path string) error
		left   []int64
	}{
		"renamed": {func(path string) error { return os.Rename(path, strings.Replace(path, "tfevents.", "tfevents.0", 1)) }, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"emptied": {func(path string) error { return os.Truncate(path, 0) }, []int64{5, 6, 7, 8, 9}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := tensorboard.New(dir)
			var logs loop.Logs
			logs.Loss("loss", 1)
			for step := range int64(9) {
				if step == 4 {
					paths, err := filepath.Glob(filepath.Join(dir, "train", "events.out.tfevents.*"))
					require.NoError(t, err)
					require.Len(t, paths, 1)
					require.NoError(t, row.rotate(paths[0]))
				}
				require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: step + 1}, Logs: logs}))
			}
			require.NoError(t, w.End(t.Context(), loop.Ending{}))
			all := read(t, filepath.Join(dir, "train"))
			require.Len(t, all, 2)
			require.Equal(t, row.left, visible(all, "losses/loss"))
		})
	}
}

func TestF35_aSlowDiskDropsAndSaysSo(t *testing.T) {
	for _, told := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			dir, count := t.TempDir(), int64(0)
			b := callbacks.Background{Queue: 4, Deadline: time.Minute}
			if told {
				b.Dropped = func(_ string, n int64) { count = n }
			}
			file := &sick{writes: 1e6, slow: 100 * time.Millisecond}
			step := func(_ context.Context, s, _ int) (int, loop.Logs, error) {
				time.Sleep(time.Millisecond)
				return curve(t.Context(), s, 0)
			}
			start, ran := time.Now(), time.Duration(0)
			_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, numbers(1000),
				loop.Watch(loop.EachStep, func(context.Context, loop.Report) error { ran = time.Since(start); return nil }),
				tensorboard.Write(dir, loop.EachStep, tensorboard.InBackground(b),
					tensorboard.CreateWith(func(string) (io.WriteCloser, error) { return file, nil })))
			require.Equal(t, time.Second, ran, "no step waited")
			if told {
				require.NoError(t, err)
				require.EqualValues(t, 1000-(file.wrote-1), count)
				return
			}
			require.ErrorIs(t, err, tensorboard.ErrDropped)
			t.Logf("F35: 1000 steps of 1 ms took %s beside writes of 100 ms; %d written; %v", ran, file.wrote-1, err)
		})
	}
}

// F29: names are text that a protocol buffer takes, on one line, and two names are two tags.
func TestF29_hostileNames(t *testing.T) {
	for name, want := range map[string]string{
		"loss":                         "losses/loss",
		"häß/layer 1.w%":               "losses/häß/layer 1.w%",
		"a\nb\x00\x1b[31m":             "losses/a%0Ab%00%1B[31m",
		"\xff":                         "losses/%FF",
		"%0A":                          "losses/%250A",
		"<script>alert(1)</script>":    "losses/<script>alert(1)</script>",
		"../../etc/passwd":             "losses/../../etc/passwd",
		"\u202egnp":                    "losses/%E2%80%AEgnp",
		strings.Repeat("x", 1<<16):     "losses/" + strings.Repeat("x", 1<<16),
		"_hparams_/session_start_info": "losses/_hparams_/session_start_info",
		"100%FF and %ZZ":               "losses/100%25FF and %ZZ",
		"\ufffd":                       "losses/\ufffd",
	} {
		got, err := write(t, func(l *loop.Logs) { l.Loss(name, 1) })
		require.NoError(t, err)
		require.Equal(t, []string{want}, got.tags())
	}
	got, err := write(t, func(l *loop.Logs) { l.Set("a/b", "c", 1); l.Set("a", "b/c", 1) })
	require.NoError(t, err)
	require.Equal(t, []string{"a%2Fb/c", "a/b/c"}, got.tags())
}
