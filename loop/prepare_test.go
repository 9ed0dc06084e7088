package loop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

func prepare(name string, f func(ctx context.Context, from loop.Beginning) (loop.Option, error)) loop.Option {
	return loop.Prepare(name, f)
}

// opened is an option that holds something until the end of the run.
type opened struct {
	loop.Option
	close func() error
}

func (o opened) Close() error { return o.close() }

// A Prepare runs once in each run, in the order of the options. It knows the results of the earlier ones and of the
// options, changes the state, and closes its option after the callbacks.
func TestPrepare(t *testing.T) {
	var did []string
	say := func(format string, args ...any) { did = append(did, fmt.Sprintf(format, args...)) }
	history := &loop.History{}
	history.Commit(loop.Elapsed{Steps: 3}, loop.Logs{}, 0)
	options := loop.Options(
		prepare("first", func(_ context.Context, from loop.Beginning) (loop.Option, error) {
			say("first from %d until %v with %v", from.From.Steps, from.Until, from.State())
			state, ok := abilities.StateAs[*int](from)
			require.True(t, ok)
			*state = 10
			closing := func() error { say("first closed"); return nil }
			return opened{loop.Options(loop.Continue(loop.Elapsed{Steps: 3}, history), loop.Watch(loop.AtEnd, func(context.Context, loop.Report) error { say("watched"); return nil })), closing}, nil
		}),
		prepare("second", func(_ context.Context, from loop.Beginning) (loop.Option, error) {
			say("second from %d with %d rows and %v", from.From.Steps, from.History.Len(), from.State())
			return nil, nil
		}),
		loop.Continue(loop.Elapsed{Steps: 1}, nil), loop.Until(loop.Steps(5)))
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)))
	for range 2 {
		did = nil
		result, err := l.Run(t.Context(), 0, numbers(9), options)
		require.NoError(t, err)
		require.EqualValues(t, 5, result.Elapsed.Steps)
		require.Equal(t, []string{"first from 1 until 5 steps with 0", "second from 3 with 1 rows and 10", "watched", "first closed"}, did)
		require.Equal(t, 10+3+4, result.State)
		history = &loop.History{}
		history.Commit(loop.Elapsed{Steps: 3}, loop.Logs{}, 0)
	}
	_, err := l.Plan(options)
	require.NoError(t, err)
	require.Len(t, did, 4, "a plan leaves it out")
}

// Callbacks learn how many batches of a plain iterator a continued run leaves out.
func TestBeginning_skipped(t *testing.T) {
	for want, data := range map[int64]loop.Source[int]{3: numbers(9), 0: loop.From(numbers(9).From)} {
		skipped := int64(-1)
		begins := loop.Callback{When: loop.Never, Start: func(from loop.Beginning) (loop.Attendant, error) { skipped = from.Skipped; return spoiled{}, nil }}
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, data, loop.Continue(loop.Elapsed{Steps: 3}, nil), begins)
		require.NoError(t, err)
		require.Equal(t, want, skipped)
	}
}

// However the run ends, the option of a Prepare is closed. If one fails, no step is made.
func TestPrepare_fails(t *testing.T) {
	errNo := errors.New("no")
	for _, row := range []struct {
		name    string
		options []loop.Option
		want    string
	}{
		{"an error", []loop.Option{prepare("second", func(context.Context, loop.Beginning) (loop.Option, error) { return nil, errNo })}, "loop: second: no"},
		{"a panic", []loop.Option{prepare("second", func(context.Context, loop.Beginning) (loop.Option, error) { panic("bad") })}, "loop: second: panic: bad"},
		{"no function", []loop.Option{loop.Prepare("second", nil)}, "loop: second: no function given"},
		{"one in another", []loop.Option{prepare("second", func(context.Context, loop.Beginning) (loop.Option, error) {
			return prepare("third", func(context.Context, loop.Beginning) (loop.Option, error) { return nil, nil }), nil
		})}, "loop: third: a Prepare cannot return another one"},
		{"another option", []loop.Option{loop.Until(loop.Steps(-1))}, "loop: until: period must be zero or positive"},
	} {
		t.Run(row.name, func(t *testing.T) {
			closed := 0
			first := prepare("first", func(context.Context, loop.Beginning) (loop.Option, error) {
				return opened{loop.Options(), func() error { closed++; return nil }}, nil
			})
			result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 7, numbers(9), append([]loop.Option{first}, row.options...)...)
			require.ErrorContains(t, err, row.want)
			require.Equal(t, 1, closed)
			require.Equal(t, loop.Failed, result.Reason)
			require.Equal(t, 7, result.State)
			require.Zero(t, result.Elapsed.Steps)
			require.NotNil(t, result.History)
		})
	}
	leaves := prepare("first", func(context.Context, loop.Beginning) (loop.Option, error) {
		return opened{loop.Options(), func() error { return errNo }}, nil
	})
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(2), leaves)
	require.ErrorIs(t, err, errNo)
	require.Equal(t, loop.Failed, result.Reason)
	require.EqualValues(t, 2, result.Elapsed.Steps)
	for _, err := range loop.Over(numbers(2), leaves) {
		require.ErrorContains(t, err, "over: expected only Until and Continue")
	}
}
