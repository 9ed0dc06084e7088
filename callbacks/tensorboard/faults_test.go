package tensorboard_test

import (
	"context"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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

// F35: nothing after half a record can be read, so a file is abandoned after a failed write, and closed once.
func TestF35_aBrokenFileIsLeftAlone(t *testing.T) {
	file := &sick{writes: 3}
	w := tensorboard.New(t.TempDir(), tensorboard.CreateWith(func(string) (io.WriteCloser, error) { return file, nil }))
	var logs loop.Logs
	logs.Loss("loss", 1)
	for range 9 {
		require.NoError(t, w.Watch(t.Context(), loop.Report{Logs: logs}))
	}
	require.ErrorIs(t, w.End(t.Context(), loop.Ending{}), syscall.ENOSPC)
	require.Equal(t, 4, file.wrote)
	require.Equal(t, 1, file.closed)
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

func TestF29_namesLaw(t *testing.T) {
	anyName := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("%0AaF\n\xff"))), 0, 6).Draw(t, "bytes"))
	})
	drawn := 0
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyName.Draw(t, "a"), anyName.Draw(t, "b")
		require.Equal(t, a == b, tensorboard.Escape(a) == tensorboard.Escape(b))
		require.Regexp(t, `^\PC*$`, tensorboard.Escape(a))
		drawn++
	})
	t.Logf("F29: %d pairs of names, none of which fell together", drawn)
}
