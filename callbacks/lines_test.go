package callbacks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// terminal knows the control characters of bars and returns the screen line by line.
type terminal struct {
	mu    sync.Mutex
	lines []string
	at    int // column
}

func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil {
		s.lines = []string{""}
	}
	last := &s.lines[len(s.lines)-1]
	for text := string(p); text != ""; {
		switch {
		case strings.HasPrefix(text, "\x1b[K"), strings.HasPrefix(text, "\x1b[J"): // it writes on the last line
			*last, text = (*last)[:s.at], text[3:]
			continue
		case text[0] == '\r':
			s.at = 0
		case text[0] == '\n':
			s.lines, s.at = append(s.lines, ""), 0
			last = &s.lines[len(s.lines)-1]
		default:
			*last = (*last)[:s.at] + text[:1] + (*last)[min(s.at+1, len(*last)):]
			s.at++
		}
		text = text[1:]
	}
	return len(p), nil
}

var wide = callbacks.Terminal(func() int { return 200 })

func TestLines_aboveTheBar(t *testing.T) {
	for _, row := range []struct {
		name    string
		options []callbacks.Bar
	}{{"terminal", []callbacks.Bar{wide}}, {"plain", nil}} {
		t.Run(row.name, func(t *testing.T) {
			var screen terminal
			lines, logger := &callbacks.Lines{Out: &screen}, &callbacks.Lines{Out: &screen}
			// Its last output has no line end when the bar's last line is written.
			say := loop.Watch(loop.Every(loop.Steps(2)), func(_ context.Context, r loop.Report) error {
				fmt.Fprintf(lines, " of %d", r.Elapsed.Steps)
				fmt.Fprintln(logger, "logged")
				fmt.Fprint(lines, " is done\ntwo\nbegin")
				if row.options != nil {
					require.Regexp(t, `^1/5 \[====`, screen.lines[len(screen.lines)-1], "the bar is there again")
				}
				return nil
			})
			fmt.Fprint(lines, "before: ")
			fmt.Fprint(lines, "at once\n")
			_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(5),
				callbacks.ProgressBar(&screen, append(row.options, callbacks.Bar{Below: []*callbacks.Lines{lines, logger}})...), say, loop.Until(loop.Steps(5)))
			require.NoError(t, err)
			fmt.Fprint(lines, "!\n")
			t.Logf("%q", screen.lines)
			var got, bar []string
			for _, line := range screen.lines {
				if len(line) > 2 && line[1:3] == "/5" {
					bar, line = append(bar, line[:3]), line[:3]
				}
				if line != "1/5" && line != "2/5" && line != "3/5" && line != "4/5" {
					got = append(got, line)
				}
			}
			require.Equal(t, []string{"before: at once", "logged", " of 2 is done", "two", "logged", "begin of 4 is done", "two", "5/5", "begin!", ""}, got)
			if row.options != nil {
				require.Equal(t, []string{"5/5"}, bar, "on a terminal it is one line")
			}
		})
	}
}

// Lines of many goroutines, while bars come and go.
func TestLines_fromGoroutines(t *testing.T) {
	var screen terminal
	lines := &callbacks.Lines{Out: &screen}
	const writers, each = 4, 50
	var done sync.WaitGroup
	for i := range writers {
		done.Go(func() {
			for n := range each {
				fmt.Fprintf(lines, "line %d of %d\n", n, i)
			}
		})
	}
	for range 10 {
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(20), callbacks.ProgressBar(&screen, wide, callbacks.Bar{Below: []*callbacks.Lines{lines}}))
		require.NoError(t, err)
	}
	done.Wait()
	count := map[string]int{}
	for _, line := range screen.lines {
		if !strings.HasPrefix(line, "20 steps - ") {
			count[line]++
		}
	}
	require.Len(t, count, writers*each+1, "each line alone")
	require.Len(t, screen.lines, writers*each+10+1)
}

// noWriter always fails.
type noWriter struct{ err error }

func (w noWriter) Write([]byte) (int, error) { return 0, w.err }

func TestLines_whereNobodyReads(t *testing.T) {
	boom := errors.New("boom")
	var screen terminal
	lines := &callbacks.Lines{Out: noWriter{boom}}
	var failed []error
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(2), callbacks.ProgressBar(&screen, wide, callbacks.Bar{Below: []*callbacks.Lines{lines}}),
		loop.Watch(loop.EachStep, func(context.Context, loop.Report) error {
			_, err := fmt.Fprintln(lines, "line")
			failed = append(failed, err)
			return nil
		}))
	require.NoError(t, err)
	require.Equal(t, []error{boom, boom}, failed)
	require.Len(t, screen.lines, 2, "the bar is whole")

	// And the bar's writer: the lines go on.
	var out bytes.Buffer
	lines = &callbacks.Lines{Out: &out}
	_, err = loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(2), callbacks.ProgressBar(noWriter{boom}, wide, callbacks.Bar{Below: []*callbacks.Lines{lines}}),
		loop.Watch(loop.EachStep, func(context.Context, loop.Report) error {
			_, err := fmt.Fprintln(lines, "line")
			return err
		}))
	require.NoError(t, err)
	require.Equal(t, "line\nline\n", out.String())
}

func TestLines_withoutAWriter(t *testing.T) {
	lines := &callbacks.Lines{}
	_, err := fmt.Fprintln(lines, "line")
	require.ErrorContains(t, err, "Lines have no writer: set Out")
	_, err = loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(2), callbacks.ProgressBar(lines), callbacks.ProgressBar(io.Discard, callbacks.Bar{Below: []*callbacks.Lines{lines}}))
	require.NoError(t, err, "it shows nothing")
}

// A line of the program's own, in two parts: the bar is on standard error, below it.
func ExampleLines() {
	lines := &callbacks.Lines{Out: os.Stdout}
	say := loop.Watch(loop.At(loop.Steps(3)), func(context.Context, loop.Report) error {
		fmt.Fprint(lines, "half of ")
		fmt.Fprintln(lines, "the way")
		return nil
	})
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(context.Background(), 0, numbers(6), callbacks.ProgressBar(os.Stderr, callbacks.Bar{Below: []*callbacks.Lines{lines}}), say)
	fmt.Println(err)
	// Output:
	// half of the way
	// <nil>
}
