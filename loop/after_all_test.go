package loop_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// told notes when it looks and when it hears of the end.
type told struct {
	name string
	said *[]string
	end  *loop.Ending
}

func (w told) Watch(context.Context, loop.Report) error {
	*w.said = append(*w.said, w.name)
	return nil
}

func (w told) End(_ context.Context, e loop.Ending) error {
	*w.said = append(*w.said, w.name+" ends")
	*w.end = e
	return nil
}

func TestAfterAllLooksBehindTheOthers(t *testing.T) {
	var said []string
	var end loop.Ending
	attend := func(name string, place int) loop.Option {
		c := attend(name, loop.EachStep, func() loop.Attendant { return told{name, &said, &end} })
		c.Order = place
		return c
	}
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { return s, loop.Logs{}, nil })))
	_, err := l.Run(t.Context(), 0, loop.Data[int](func(yield func(int, error) bool) { yield(1, nil) }), loop.Options(attend("a", 1), nil, attend("b", 1)),
		attend("c", 0), attend("d", 0), attend("e", -1))
	require.NoError(t, err)
	require.Equal(t, []string{"e", "c", "d", "a", "b", "b ends", "a ends", "d ends", "c ends", "e ends"}, said)
}

// Partial distinguishes a state in the middle of an iteration from one at a border.
func TestEndingPartial(t *testing.T) {
	for _, row := range []struct {
		name    string
		step    error // of the step, in the third turn
		behind  error // of the task after it
		cancels bool  // the context, in the third turn
		want    bool
		steps   int64
	}{
		{"no error", nil, nil, false, false, 5},
		{"the step fails", errors.New("no"), nil, false, false, 2},
		{"the task behind fails", nil, errors.New("no"), false, true, 3},
		{"the task behind is cancelled", nil, context.Canceled, true, true, 3},
		{"cancelled at the border", nil, nil, true, false, 3},
		{"stopped", nil, loop.ErrStop, false, false, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			task := func(fail error) loop.Task[int, int] {
				return loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, b int) (int, loop.Logs, error) {
					if b == 3 && row.cancels {
						cancel()
					}
					if b == 3 && fail != nil {
						return s, loop.Logs{}, fail
					}
					return s, loop.Logs{}, nil
				}))

			}
			var said []string
			var end loop.Ending
			_, _ = loop.New(task(row.step), task(row.behind)).Run(ctx, 0, loop.Data[int](func(yield func(int, error) bool) {
				for b := 1; b <= 5 && yield(b, nil); b++ {
				}
			}), attend("", loop.EachStep, func() loop.Attendant { return told{"", &said, &end} }))
			require.Equal(t, row.want, end.Partial)
			require.Equal(t, row.steps, end.Elapsed.Steps)
		})
	}
}
