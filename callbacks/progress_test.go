package callbacks_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// messages logs the texts alone.
func messages(out *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.MessageKey {
			return a
		}
		return slog.Attr{}
	}}))
}

func TestB93_progressEveryFourSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, s, n int) (int, loop.Logs, error) {
			time.Sleep(120 * time.Millisecond)
			return add(ctx, s, n)
		}
		var out bytes.Buffer
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(slow))).Run(t.Context(), 0, numbers(10), loop.Until(loop.Steps(10)),
			callbacks.LogProgress(messages(&out), loop.Every(loop.Steps(4)).AndAtEnd()))
		require.NoError(t, err)
		require.Equal(t, []string{
			`msg="8.3 steps/s, 40.0% (4/10), ETA: 0m"`,
			`msg="8.3 steps/s, 80.0% (8/10), ETA: 0m"`,
			`msg="8.3 steps/s, 100.0% (10/10), ETA: 0m"`}, strings.Split(strings.TrimSpace(out.String()), "\n"))
	})
}

func TestB93_progressByHand(t *testing.T) {
	at := func(steps int64, d time.Duration) loop.Elapsed {
		return loop.Elapsed{Steps: steps, Samples: 2 * steps, Time: d, Date: loop.Date(time.Hour + d)}
	}
	for _, row := range []struct {
		name  string
		until loop.Period
		calls []loop.Elapsed
		want  string
	}{
		{"not on the first call", loop.Steps(10), []loop.Elapsed{at(4, time.Second)}, ""},
		{"minutes below an hour", loop.Steps(10), []loop.Elapsed{at(1, 0), at(4, 15*time.Minute)}, "0.0 steps/s, 40.0% (4/10), ETA: 30m"},
		{"hours", loop.Steps(10), []loop.Elapsed{at(1, 0), at(4, 91*time.Minute)}, "0.0 steps/s, 40.0% (4/10), ETA: 3h2m"},
		{"days", loop.Steps(1000), []loop.Elapsed{at(1, 0), at(11, 1000*time.Second)}, "0.0 steps/s, 1.1% (11/1000), ETA: 1d3h28m"},
		{"no end", nil, []loop.Elapsed{at(1, 0), at(2, 120*time.Millisecond)}, "8.3 steps/s"},
		{"samples", loop.Samples(20), []loop.Elapsed{at(1, 0), at(4, 360*time.Millisecond)}, "8.3 steps/s, 40.0% (8/20 samples), ETA: 0m"},
		{"time", loop.Time(time.Hour), []loop.Elapsed{at(1, 0), at(9, 6*time.Minute)}, "0.0 steps/s, 10.0% (6m/1h0m), ETA: 54m"},
		{"a date", loop.Date(3 * time.Hour), []loop.Elapsed{at(1, 0), at(9, 30*time.Minute)}, "0.0 steps/s, 25.0% (30m/2h0m), ETA: 1h30m"},
		{"the same turn again", loop.Steps(10), []loop.Elapsed{at(4, time.Second), at(4, 2*time.Second)}, ""},
		{"no time", loop.Steps(10), []loop.Elapsed{at(4, time.Second), at(5, time.Second)}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out bytes.Buffer
			p, err := byHand(callbacks.LogProgress(messages(&out), loop.EachStep))
			require.NoError(t, err)
			for _, e := range row.calls {
				require.NoError(t, p.Watch(t.Context(), loop.Report{Elapsed: e, Until: row.until}))
			}
			require.NoError(t, p.End(t.Context(), loop.Ending{}))
			got := strings.TrimSpace(out.String())
			if row.want != "" {
				require.Equal(t, `msg="`+row.want+`"`, got)
				return
			}
			require.Empty(t, got)
		})
	}
}

func TestLogProgress_readsNothing(t *testing.T) {
	reads := 0
	step := func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Set(loop.Losses, "loss", counted{&reads})
		return s, logs, nil
	}
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, numbers(6), loop.Until(loop.Steps(6)),
		callbacks.LogProgress(messages(&bytes.Buffer{}), loop.EachStep), callbacks.LogProgress(nil, loop.EachStep))
	require.NoError(t, err)
	require.Zero(t, reads)
}
