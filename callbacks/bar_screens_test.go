package callbacks_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hinshun/vt10x"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/internal/golden"
	"github.com/lazo-ml/lazo/loop"
)

// compiled is a state whose steps compile at times.
type compiled struct{ since atomic.Pointer[time.Time] }

func (c *compiled) CompilingSince() (at time.Time, ok bool) {
	if since := c.since.Load(); since != nil {
		return *since, true
	}
	return at, false
}

// compile takes d; look is called 2.45 s after its start.
func (c *compiled) compile(d time.Duration, look func()) {
	now := time.Now()
	c.since.Store(&now)
	time.Sleep(2450 * time.Millisecond)
	look()
	time.Sleep(d - 2450*time.Millisecond)
	c.since.Store(nil)
}

// training is a run of up to 12 epochs of 20 steps, of which the fourth has the best validation, with a bar. look is
// called in several moments. The clock is that of synctest, so each number is always the same.
func training(t *testing.T, w io.Writer, look func(moment string), options ...callbacks.Bar) {
	synctest.Test(t, func(t *testing.T) {
		epoch, lines := loop.Steps(20), &callbacks.Lines{Out: w}
		logger := slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		step := loop.OnTurn(loop.EachStep, func(_ context.Context, turn *loop.Turn[*compiled, sized]) error {
			n := turn.Elapsed.Steps
			switch n {
			case 1:
				turn.State.compile(3450*time.Millisecond, func() { look("the first step compiles") })
			case 20:
				turn.State.compile(4*time.Second, func() { look("a shorter batch compiles") })
			case 47:
				logger.Info("a record of someone else's, beside the bar")
				look("in the middle of an epoch, below a record")
			}
			time.Sleep(100 * time.Millisecond)
			turn.Logs.Loss("loss", 2/float64(n))
			turn.Logs.Metric("accuracy", 1-1/float64(n+1))
			turn.Logs.Stateful("avg_loss", 2/float64(n)+0.01)
			return nil
		})
		evaluations := 0
		test := loop.Evaluation[*compiled, sized]{Name: "val", Data: loop.Data[sized](func(yield func(sized, error) bool) {
			for range 5 {
				if !yield(make(sized, 32), nil) {
					return
				}
			}
		}), Loop: loop.New(loop.OnTurn(loop.EachStep, func(_ context.Context, turn *loop.Turn[*compiled, sized]) error {
			time.Sleep(500 * time.Millisecond)
			if evaluations == 1 && turn.Elapsed.Steps == 3 {
				look("in validation")
			}
			turn.Logs.Loss("loss", 1)
			turn.Logs.Metric("accuracy", 0.5)
			return nil
		}))}
		validate := loop.OnTurn(loop.Every(epoch), func(ctx context.Context, turn *loop.Turn[*compiled, sized]) error {
			_, logs, err := test.Run(ctx, turn.State)
			turn.Logs.Merge(logs)
			evaluations++
			turn.Logs.Set(loop.Losses, "loss_val", []float64{0.9, 0.5, 0.4, 0.3, 0.35, 0.31, 0.32}[evaluations-1])
			return err
		}).Named("evaluation val")
		looked := loop.Watch(loop.At(loop.Steps(60)), func(context.Context, loop.Report) error { look("an epoch has ended"); return nil })
		looked.Order = 1
		batches := func(yield func(sized, error) bool) {
			for n := 1; ; n++ {
				if n == 65 {
					time.Sleep(1250 * time.Millisecond)
					look("the data does not come")
				}
				if !yield(make(sized, 32), nil) {
					return
				}
			}
		}
		options = append([]callbacks.Bar{callbacks.Bar{Epoch: epoch}}, options...)
		result, err := loop.New(step, validate).Run(t.Context(), &compiled{}, loop.Data[sized](batches), loop.Until(12*epoch),
			callbacks.ProgressBar(lines, options...), looked, callbacks.StopEarly("loss_val", callbacks.Evaluations(3)))
		require.NoError(t, err)
		require.Equal(t, loop.Stopped, result.Reason)
	})
	look("the end")
}

// screenText returns a screen's text without trailing spaces and surrounding empty lines.
func screenText(text string) string {
	var s strings.Builder
	for line := range strings.Lines(text) {
		s.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return strings.Trim(s.String(), "\n") + "\n"
}

// screenRows are more than the lines of a run.
const screenRows = 40

// emulated is a terminal in memory.
type emulated struct {
	vt10x.Terminal
	columns atomic.Int64
}

func emulate(columns int) *emulated {
	e := &emulated{Terminal: vt10x.New(vt10x.WithSize(columns, screenRows))}
	e.columns.Store(int64(columns))
	return e
}

func (e *emulated) resize(columns int) {
	e.columns.Store(int64(columns))
	e.Resize(columns, screenRows)
}

// Write writes as the line discipline of a terminal does.
func (e *emulated) Write(p []byte) (int, error) {
	_, err := e.Terminal.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n")))
	return len(p), err
}

func (e *emulated) option() callbacks.Bar {
	return callbacks.Terminal(func() int { return int(e.columns.Load()) })
}

// The screen at several moments of a run, for three widths. TestBar_screensInTmux does the same in tmux.
func TestBar_screens(t *testing.T) {
	for _, columns := range []int{60, 80, 120} {
		e, screens := emulate(columns), new(strings.Builder)
		training(t, e, func(moment string) {
			fmt.Fprintf(screens, "== %s\n%s", moment, screenText(e.String()))
			e.Lock()
			cursor := e.Cursor()
			e.Unlock()
			require.Zero(t, cursor.X, "the cursor is at the start of a row")
		}, e.option())
		golden.Equal(t, screensFile(columns), screens.String())
		require.Contains(t, screens.String(), "loss_val: 0.3500")
	}
}

func screensFile(columns int) string { return fmt.Sprintf("testdata/bar_%d.golden", columns) }

// resized are the widths that a terminal of 120 columns gets after the moments of a run.
var resized = map[string]int{
	"the first step compiles":                   60,
	"a shorter batch compiles":                  120,
	"in validation":                             50,
	"in the middle of an epoch, below a record": 120,
	"an epoch has ended":                        80,
	"the data does not come":                    40,
}

// A terminal that cuts its lines where it is made narrower, as xterm does; tmux puts them on several lines.
func TestBar_resized(t *testing.T) {
	e, screens := emulate(120), new(strings.Builder)
	training(t, e, func(moment string) {
		fmt.Fprintf(screens, "== %d columns, %s\n%s", e.columns.Load(), moment, screenText(e.String()))
		if columns, ok := resized[moment]; ok {
			e.resize(columns)
		}
	}, e.option())
	golden.Equal(t, "testdata/bar_resized.golden", screens.String())
}

// In colours it is the same text.
func TestBar_colours(t *testing.T) {
	plain, coloured := emulate(120), emulate(120)
	training(t, plain, func(string) {}, plain.option())
	training(t, coloured, func(moment string) {
		if moment == "in validation" {
			require.Equal(t, vt10x.Yellow, foreground(coloured, "validating"))
			require.Equal(t, vt10x.Green, foreground(coloured, "[="))
			require.Equal(t, vt10x.DefaultFG, foreground(coloured, "loss: "))
		}
	}, coloured.option(), callbacks.Coloured)
	require.Equal(t, plain.String(), coloured.String())
	require.Equal(t, vt10x.Cyan, foreground(coloured, "loss_val: "))
	require.Equal(t, vt10x.Yellow, foreground(coloured, "stopped early"))
}

// foreground is the colour of a text's first occurrence on the screen.
func foreground(e *emulated, text string) vt10x.Color {
	before, _, _ := strings.Cut(e.String(), text)
	row := strings.Count(before, "\n")
	e.Lock()
	defer e.Unlock()
	return e.Cell(len([]rune(before[strings.LastIndex(before, "\n")+1:])), row).FG
}
