package callbacks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

func TestF34_barOutsideATerminal(t *testing.T) {
	var out bytes.Buffer
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(200), loop.Until(loop.Steps(200)), callbacks.ProgressBar(&out))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, 11, out.String())
	require.NotContains(t, out.String(), "\r")
	require.NotContains(t, out.String(), "\x1b")
	require.Equal(t, "  1/200 - sum: 0.0000", lines[0])
	require.True(t, strings.HasPrefix(lines[1], " 20/200 - ETA "), lines[1])
	require.Contains(t, lines[1], " - sum: 190.0000")
	require.True(t, strings.HasPrefix(lines[10], "200/200 - "), lines[10])
	require.Contains(t, lines[10], " - sum: 19900.0000 - ")
	require.Contains(t, lines[10], " examples/s")
	t.Logf("F34: %d lines, 0 control characters", len(lines))
}

type brokenPipe struct{ writes int }

func (w *brokenPipe) Write([]byte) (int, error) {
	w.writes++
	return 0, errors.New("broken pipe")
}

func TestF36_etaIsNotNegative(t *testing.T) {
	negative, lines := regexp.MustCompile(`-\d`), 0
	rapid.Check(t, func(t *rapid.T) {
		until := rapid.SampledFrom([]loop.Period{loop.Steps(100), loop.Samples(10_000), loop.Time(time.Hour), loop.Time(math.MaxInt64),
			loop.Date(1), loop.Date(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()), loop.Date(math.MaxInt64), loop.Steps(math.MaxInt64)}).Draw(t, "until")
		var out bytes.Buffer
		bar := callbacks.NewBar(&out, callbacks.Terminal(func() int { return 300 }))
		e := loop.Elapsed{Date: loop.Date(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())}
		e.Steps = rapid.Int64Range(0, 200).Draw(t, "from")
		from := e
		for range rapid.IntRange(1, 20).Draw(t, "turns") {
			e.Steps++
			e.Samples += rapid.Int64Range(0, 1000).Draw(t, "samples")
			e.Time += time.Duration(rapid.Int64Range(0, int64(10*time.Hour)).Draw(t, "time"))
			// The clock on the wall jumps by up to an hour, both ways.
			e.Date += loop.Date(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "jump"))
			require.NoError(t, bar.Watch(t.Context(), loop.Report{Elapsed: e, From: from, Until: until}))
		}
		require.NoError(t, bar.End(t.Context(), loop.Ending{Report: loop.Report{Elapsed: e, From: from, Until: until}}))
		text := strings.ReplaceAll(out.String(), " - ", " ")
		require.NotRegexp(t, negative, text)
		lines += strings.Count(out.String(), "\r")
	})
	require.Positive(t, lines)
	t.Logf("F36: %d lines with clocks that jump by up to 1 h, 0 negative numbers", lines)
}

// For a number of steps that is never reached, the time left is unknown, but not zero.
func TestF36_etaOfWhatHasNoEnd(t *testing.T) {
	var out bytes.Buffer
	bar := callbacks.NewBar(&out)
	for step := range int64(2) {
		e := loop.Elapsed{Steps: step + 1, Time: time.Duration(step+1) * time.Minute}
		require.NoError(t, bar.Watch(t.Context(), loop.Report{Elapsed: e, Until: loop.Steps(math.MaxInt64)}))
	}
	require.Equal(t, "2/9223372036854775807 - ETA 36500d00h", strings.TrimSpace(lastLine(out.String())))
}

func TestF34_barOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		columns := 60
		widest := map[int]int{}
		step := func(_ context.Context, s, n int) (int, loop.Logs, error) {
			time.Sleep(100 * time.Microsecond) // 10,000 lines a second, if each step wrote one
			columns = []int{60, 0, 1, 20, 200}[n/2000]
			logs := metric("ten", 0.125)
			logs.Metric("十十十", 1)
			return s, logs, nil
		}
		lines := &lineWidths{&out, &columns, widest}
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, numbers(10_000), loop.Until(loop.Steps(10_000)),
			callbacks.ProgressBar(lines, callbacks.Terminal(func() int { return columns })))
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(out.String(), "\n"))
		writes := strings.Count(out.String(), "\r")
		require.LessOrEqual(t, writes, 22, "1 s at 20 a second, the first turn and the end")
		require.GreaterOrEqual(t, writes, 20)
		require.Equal(t, "\r", out.String()[:1])
		for columns, width := range widest {
			if columns == 0 {
				columns = 80
			}
			require.Less(t, width, columns)
		}
		require.Positive(t, widest[60])
		require.Zero(t, widest[1])
		t.Logf("F34: %d redraws of 10,000 steps; widths %v", writes, widest)
	})
}

// lineWidths notes how wide the lines are, a wide character as two.
type lineWidths struct {
	out     *bytes.Buffer
	columns *int
	widest  map[int]int
}

func (w *lineWidths) Write(b []byte) (int, error) {
	line := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(string(b), "\r"), "\n"), "\x1b[K")
	n := 0
	for _, r := range line {
		if n++; unicode.Is(unicode.Han, r) {
			n++
		}
	}
	w.widest[*w.columns] = max(w.widest[*w.columns], n)
	return w.out.Write(b)
}

// F34: writing to a pipe without a reader as standard output ends a process. The bar must prevent that.
func TestF34_barOnAClosedStandardError(t *testing.T) {
	if os.Getenv("LAZO_TEST_CLOSED") != "" {
		// Package os itself is the control: without a bar this process must die of the same write.
		bars := map[string]loop.Option{"bar": callbacks.ProgressBar(os.Stderr), "os": loop.Watch(loop.EachStep, func(context.Context, loop.Report) error {
			fmt.Fprintln(os.Stderr, "line")
			return nil
		})}
		result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(500), loop.Until(loop.Steps(500)), bars[os.Getenv("LAZO_TEST_CLOSED")])
		fmt.Println("finished", result.Elapsed.Steps, err)
		return
	}
	for _, row := range []struct{ writer, want string }{{"bar", "finished 500 <nil>"}, {"os", ""}} {
		read, write, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, read.Close())
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestF34_barOnAClosedStandardError$")
		child.Env = append(os.Environ(), "LAZO_TEST_CLOSED="+row.writer)
		child.Stderr = write
		out, err := child.Output()
		require.NoError(t, write.Close())
		if row.want == "" {
			require.ErrorContains(t, err, "broken pipe")
			continue
		}
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), row.want)
	}
}
