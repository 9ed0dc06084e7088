package outer_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train/outer"
)

type continuous = outer.Continuous[int, int]

// memory keeps checkpoints in memory.
type memory struct {
	mu   sync.Mutex
	kept map[int64]int
	// keep is how many stay; 0 means all.
	keep     int
	restored []string
	looks    int
	closed   int
	err      error
}

func (m *memory) Steps(context.Context) ([]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looks++
	return slices.Collect(maps.Keys(m.kept)), m.err
}

func (m *memory) Restore(_ context.Context, into int, step int64) (int, loop.Elapsed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restored = append(m.restored, fmt.Sprintf("%d into %d", step, into))
	state, ok := m.kept[step]
	if !ok {
		return 0, loop.Elapsed{}, fs.ErrNotExist
	}
	return state, loop.Elapsed{Steps: step, Samples: 10 * step, Time: time.Duration(step) * time.Second}, nil
}

func (m *memory) Save(_ context.Context, state int, at loop.Elapsed) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[int64]int{}
	}
	m.kept[at.Steps] = state
	for m.keep > 0 && len(m.kept) > m.keep {
		delete(m.kept, slices.Min(slices.Collect(maps.Keys(m.kept))))
	}
	return nil
}

func (m *memory) Close() error { m.closed++; return nil }

// saveTo saves at each border, and closes at the end.
func saveTo(m *memory) action {
	return action{Name: "save", Do: func(ctx context.Context, at border) error { return m.Save(ctx, at.State, at.Elapsed) },
		Close: func(context.Context) error { return m.Close() }}
}

func stopAtOnce(context.Context) (bool, error) { return true, nil }

// stateOf logs the state that it evaluates.
var stateOf = loop.StepFunc[int, int](func(_ context.Context, s, _ int) (int, loop.Logs, error) {
	var logs loop.Logs
	logs.Metric("state", float64(s))
	return -1, logs, nil
})

func TestB51_oneCheckpointIsEvaluatedOnce(t *testing.T) {
	m := &memory{kept: map[int64]int{10: 100}}
	result, err := continuous{Checkpoints: m, Stop: stopAtOnce, Evals: []eval{{Test: test{Name: "test", Step: stateOf, Data: evalData(3)}}}}.Run(t.Context(), 7)
	require.NoError(t, err)
	require.Equal(t, []string{"10 into 7"}, m.restored)
	require.Equal(t, loop.DataEnded, result.Reason)
	require.Equal(t, 100, result.State)
	require.Equal(t, loop.Elapsed{Steps: 10, Samples: 100, Time: 10 * time.Second}, result.Elapsed)
	require.Equal(t, []float64{100, -1, -1}, series(t, result.Evaluations["test"].History(), "state"))
	require.EqualValues(t, 10, result.Evaluations["test"].Elapsed.Steps)
	t.Logf("restored %v", m.restored)
}

func TestContinuous_rules(t *testing.T) {
	three := func() *memory { return &memory{kept: map[int64]int{30: 300, 0: 5, 20: 200}} }
	specs := []eval{{Test: test{Name: "a", Step: stateOf, Data: evalData(1)}}, {Test: test{Name: "b", Step: stateOf, Data: evalData(1)}, Every: 5}}
	for _, row := range []struct {
		name     string
		loop     continuous
		restored []string
		states   []float64
		state    int
	}{
		{"in their order, step 0 too, each from the original", continuous{Checkpoints: three(), Evals: specs},
			[]string{"0 into 7", "0 into 7", "20 into 7", "20 into 7", "30 into 7", "30 into 7"}, []float64{5, 200, 300}, 300},
		{"the newest", continuous{Checkpoints: three(), Evals: specs, Newest: true}, []string{"30 into 7", "30 into 7"}, []float64{300}, 300},
		{"When", continuous{Checkpoints: three(), Evals: []eval{{Test: test{Name: "a", Step: stateOf, Data: evalData(1)},
			When: func(at outer.Inner) bool { return at.Number == 0 && at.Elapsed.Steps == 20 }}}}, []string{"20 into 7"}, []float64{200}, 200},
		{"nothing there", continuous{Checkpoints: &memory{}, Evals: specs}, nil, nil, 7},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.loop.Stop = stopAtOnce
			result, err := row.loop.Run(t.Context(), 7)
			require.NoError(t, err)
			require.Equal(t, row.restored, row.loop.Checkpoints.(*memory).restored)
			require.Equal(t, row.state, result.State)
			if row.states == nil {
				require.Empty(t, result.Evaluations)
				require.Zero(t, result.Elapsed)
				return
			}
			require.Equal(t, row.states, series(t, result.History, "state_a"))
		})
	}
}

// A process trains and saves every 10 seconds, another one evaluates what appears.
func TestContinuous_asCheckpointsAppear(t *testing.T) {
	for _, row := range []struct {
		name   string
		poll   time.Duration
		keep   int
		newest bool
		steps  []float64
		looks  int // at most
	}{
		{"default", 0, 0, false, []float64{10, 20, 30, 40, 50}, 8},
		{"seldom", 35 * time.Second, 0, false, []float64{10, 20, 30, 40, 50}, 4},
		{"seldom, the newest", 35 * time.Second, 0, true, []float64{30, 50}, 4},
		{"old ones are removed", 25 * time.Second, 1, false, []float64{20, 40, 50}, 5},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				m := &memory{keep: row.keep}
				trained := make(chan struct{})
				go func() {
					defer close(trained)
					o := toy{TotalSteps: 50, LoopSteps: 10, Data: endless(nil), Dir: dir, End: []action{saveTo(m)},
						Train: loop.StepFunc[int, int](func(ctx context.Context, s, b int) (int, loop.Logs, error) {
							time.Sleep(1001 * time.Millisecond)
							return counting(ctx, s, b)
						})}
					_, err := o.Run(t.Context(), 0)
					if err != nil {
						t.Error(err)
					}
				}()
				result, err := continuous{Checkpoints: m, Dir: dir, Poll: row.poll, Newest: row.newest,
					Evals: []eval{{Test: test{Name: "test", Step: stateOf, Data: evalData(1)}}}}.Run(t.Context(), 0)
				<-trained
				require.NoError(t, err)
				require.Equal(t, loop.DataEnded, result.Reason)
				require.Equal(t, row.steps, series(t, result.History, "state_test"))
				require.Equal(t, row.steps, series(t, result.History, "stats.step"))
				require.Equal(t, 50, result.State)
				require.LessOrEqual(t, m.looks, row.looks)
				require.Equal(t, 1, m.closed)
			})
		})
	}
}

func TestContinuous_ends(t *testing.T) {
	boom := errors.New("boom")
	evals := []eval{{Test: test{Name: "test", Step: stateOf, Data: evalData(1)}}}
	with := func(a action) []eval {
		return []eval{{Test: test{Name: "test", Step: stateOf, Data: evalData(1)}, End: []action{a}}}
	}
	two := func() *memory { return &memory{kept: map[int64]int{1: 10, 2: 20}} }
	for _, row := range []struct {
		name   string
		loop   continuous
		reason loop.Reason
		state  int
		err    string
	}{
		{"an action stops", continuous{Checkpoints: two(), Stop: stopAtOnce, Evals: with(action{Do: func(context.Context, border) error { return loop.ErrStop }})}, loop.Stopped, 10, ""},
		{"an action fails", continuous{Checkpoints: two(), Stop: stopAtOnce, Evals: with(action{Name: "x", Every: 2, Do: func(context.Context, border) error { return boom }})}, loop.Failed, 10,
			"loop: step 2: each step: evaluation test: checkpoint of step 2: action x: boom"},
		{"the work of an action fails", continuous{Checkpoints: two(), Stop: stopAtOnce, Evals: with(action{Do: func(_ context.Context, at border) error {
			at.Group.Go("x", func() error { return boom })
			return nil
		}})}, loop.Failed, -1, "background: x: boom"},
		{"Stop fails", continuous{Checkpoints: two(), Stop: func(context.Context) (bool, error) { return false, boom }, Evals: evals}, loop.Failed, 7,
			"loop: step 1: data: is the training over: boom"},
		{"the list fails", continuous{Checkpoints: &memory{err: boom}, Stop: stopAtOnce, Evals: evals}, loop.Failed, 7, "loop: step 1: data: list checkpoints: boom"},
		{"a panic in Stop", continuous{Checkpoints: two(), Stop: func(context.Context) (bool, error) { panic(boom) }, Evals: evals}, loop.Failed, 7, "loop: step 1: data: panic: boom"},
	} {
		t.Run(row.name, func(t *testing.T) {
			result, err := row.loop.Run(t.Context(), 7)
			if row.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.err)
				require.ErrorIs(t, err, boom)
			}
			require.Equal(t, row.reason, result.Reason)
			if row.state >= 0 {
				require.Equal(t, row.state, result.State)
			}
		})
	}
	t.Run("the context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Hour, func() { cancel(boom) })
			m := two()
			result, err := continuous{Checkpoints: m, Dir: t.TempDir(), Evals: evals}.Run(ctx, 7)
			require.ErrorIs(t, err, boom)
			require.Equal(t, loop.Cancelled, result.Reason)
			require.Equal(t, 20, result.State)
			require.LessOrEqual(t, m.looks, 361)
		})
	})
}

// vanishing lists a checkpoint once, and cannot give it.
type vanishing struct {
	*memory
	again bool // it lists it still
}

func (v *vanishing) Steps(ctx context.Context) ([]int64, error) {
	steps, err := v.memory.Steps(ctx)
	if v.looks == 1 || v.again {
		steps = append(steps, 5)
	}
	return steps, err
}

func TestContinuous_checkpointsThatVanish(t *testing.T) {
	specs := []eval{{Test: test{Name: "a", Step: stateOf, Data: evalData(1)}}, {Test: test{Name: "b", Step: stateOf, Data: evalData(1)}}}
	v := &vanishing{memory: &memory{kept: map[int64]int{9: 90}}}
	result, err := continuous{Checkpoints: v, Stop: stopAtOnce, Evals: specs}.Run(t.Context(), 7)
	require.NoError(t, err)
	require.Equal(t, []int64{5}, result.Missed)
	require.Equal(t, []string{"5 into 7", "9 into 7", "9 into 7"}, v.restored)

	v = &vanishing{memory: &memory{}, again: true}
	_, err = continuous{Checkpoints: v, Stop: stopAtOnce, Evals: specs}.Run(t.Context(), 7)
	require.EqualError(t, err, "loop: step 1: each step: evaluation a: restore the checkpoint of step 5: file does not exist")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestContinuous_refusesBadSettings(t *testing.T) {
	_, err := continuous{Poll: -1}.Run(t.Context(), 0)
	require.EqualError(t, err, "outer: continuous evaluation: no Checkpoints given\nno Evals given\nwant a Poll that is not negative, got -1ns\nnothing would end it: want Stop or Dir")
	_, err = continuous{Checkpoints: &memory{}, Stop: stopAtOnce, Evals: []eval{{}}}.Run(t.Context(), 0)
	require.ErrorContains(t, err, "evaluation 1 (): want a name")
}

func TestContinuous_restoring(t *testing.T) {
	boom := errors.New("boom")
	evals := []eval{{Test: test{Name: "test", Step: stateOf, Data: evalData(1)}}}
	for _, row := range []struct {
		name string
		from outer.Checkpoints[int]
		err  string
	}{
		{"the list fails", &memory{err: boom}, "loop: step 1: data: list checkpoints: boom"},
		{"of another step", wrongStep{&memory{kept: map[int64]int{1: 50}}},
			"loop: step 1: each step: evaluation test: restore the checkpoint of step 2: it says that it has 1 steps"},
		{"a panic", panicking{&memory{}}, "loop: step 1: data: panic: boom"},
	} {
		t.Run(row.name, func(t *testing.T) {
			result, err := continuous{Checkpoints: row.from, Newest: true, Stop: stopAtOnce, Evals: evals}.Run(t.Context(), 0)
			require.EqualError(t, err, row.err)
			require.Equal(t, loop.Failed, result.Reason)
			require.Equal(t, 0, result.State)
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(boom)
	result, err := continuous{Checkpoints: &memory{err: context.Cause(ctx)}, Stop: stopAtOnce, Evals: evals}.Run(ctx, 0)
	require.ErrorIs(t, err, boom)
	require.Equal(t, loop.Cancelled, result.Reason)
}

type wrongStep struct{ *memory }

func (w wrongStep) Steps(context.Context) ([]int64, error) { return []int64{2, 0}, nil }

func (w wrongStep) Restore(ctx context.Context, into int, _ int64) (int, loop.Elapsed, error) {
	return w.memory.Restore(ctx, into, 1)
}

type panicking struct{ *memory }

func (panicking) Steps(context.Context) ([]int64, error) { panic("boom") }
