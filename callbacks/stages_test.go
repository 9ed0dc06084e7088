package callbacks_test

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// stages are times that a test sets.
type stages map[string]time.Duration

func (s stages) All() iter.Seq2[string, time.Duration] { return maps.All(s) }

// fed is data that takes 3 s a batch, 2 of them to decode and 1 to read, for steps of 1 s.
func fed(n int) (loop.Loop[int, sized], stages, loop.Data[sized]) {
	s := stages{"read": time.Hour, "decode": time.Minute, "idle": time.Second} // of an earlier run
	step := func(_ context.Context, state int, _ sized) (int, loop.Logs, error) {
		time.Sleep(time.Second)
		return state, loop.Logs{}, nil
	}
	return loop.New(loop.On(loop.EachStep, loop.StepFunc(step))), s, func(yield func(sized, error) bool) {
		for range n {
			time.Sleep(3 * time.Second)
			s["read"] += time.Second
			s["decode"] += 2 * time.Second
			if !yield(make(sized, 8), nil) {
				return
			}
		}
	}
}

func TestMeasure_saysWhatARunWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, data := fed(4)
		var timing callbacks.Timing
		_, err := l.Run(t.Context(), 0, data, callbacks.Measure(func(got callbacks.Timing) { timing = got }, s.All()))
		require.NoError(t, err)
		require.Equal(t, 16*time.Second, timing.Total)
		require.Equal(t, 12*time.Second, timing.Waited())
		require.ElementsMatch(t, []callbacks.Part{{Kind: "stage", Name: "read", Total: 4 * time.Second}, {Kind: "stage", Name: "decode", Total: 8 * time.Second}}, timing.Stages,
			"of this run, and without what did nothing")
		require.True(t, strings.HasSuffix(timing.String(), "\nwaited for data 75% (decode 50%, read 25%)\n"), timing.String())
	})
}

func TestBarStages(t *testing.T) {
	lines := func(t *testing.T, options ...callbacks.Bar) (lines []string) {
		synctest.Test(t, func(t *testing.T) {
			l, s, data := fed(4)
			var out bytes.Buffer
			_, err := l.Run(t.Context(), 0, data, loop.Until(loop.Steps(4)), callbacks.ProgressBar(&out, append(options, callbacks.Bar{Stages: s.All()})...))
			require.NoError(t, err)
			lines = strings.Split(strings.TrimSpace(out.String()), "\n")
		})
		return lines
	}
	for _, line := range lines(t) {
		require.Contains(t, line, " - data 75% (decode 50%, read 25%)")
	}
	epochs := lines(t, callbacks.Bar{Epoch: loop.Steps(2)})
	require.Len(t, epochs, 2)
	for _, line := range epochs {
		require.Contains(t, line, " - data 75% (decode 50%, read 25%)", "of each epoch")
	}
}

func TestStages_areNotNil(t *testing.T) {
	l, s, data := fed(1)
	_, err := l.Run(t.Context(), 0, data, callbacks.Measure(func(callbacks.Timing) {}, s.All(), nil))
	require.EqualError(t, err, "loop: callback 1 (at end: measure): stages 2 of 2 are nil")
}
