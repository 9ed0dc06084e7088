//lazo:norace
package main

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

// Each method solves the task within its bound of steps, on the host's environment too, and a second run has the same
// bits of losses, returns and parameters.
func TestLearns(t *testing.T) {
	for name, m := range methods {
		t.Run(name, func(t *testing.T) {
			first := trained(t, m, "")
			returns := first.logged["return_test"]
			last := returns[len(returns)-1]
			require.GreaterOrEqual(t, last, 475.0, "the mean return of 100 episodes of 500 steps at most")
			onHost := first.play(t, 100)
			require.InDelta(t, last, onHost, 25, "the same episodes in Go: an episode of another rounding may end elsewhere")
			t.Logf("%s: solved after %d of %d steps: mean return %.2f, of the host's environment %.2f", name, first.steps, m.until, last, onHost)
			require.Equal(t, first.outcome, trained(t, m, "").outcome)
		})
	}
}

// A source that reads the state sees each step whose batch it has handed out: with steps in blocks the numbers of a
// run are the same, bit by bit, as with steps one at a time. The tests are so far apart that they do not end the
// blocks.
func TestS03_blocksAndSingleSteps(t *testing.T) {
	for name, steps := range map[string]loop.Steps{"reinforce": 20, "ppo": 200, "dqn": 1500} {
		t.Run(name, func(t *testing.T) {
			m := methods[name]
			m.tests, m.until = steps, steps
			require.Equal(t, trained(t, m, "", loop.SingleSteps()).outcome, trained(t, m, "").outcome)
		})
	}
}

// A run that ended between two plays, and continues from its checkpoint, has all numbers of one that was not
// interrupted.
func TestResumes(t *testing.T) {
	for name, steps := range map[string]loop.Steps{"reinforce": 7, "ppo": 68, "dqn": 700} { // before a test finds the task solved, which ends the run
		t.Run(name, func(t *testing.T) {
			m, dir := methods[name], filepath.Join(t.TempDir(), "run")
			m.tests, m.until = steps-2, 2*steps
			whole := trained(t, m, "")
			m.until = steps - 1
			trained(t, m, dir)
			m.until = 2 * steps
			require.Equal(t, whole.outcome, trained(t, m, dir).outcome)
		})
	}
}

// outcome is all numbers of a run.
type outcome struct {
	steps  int64
	logged map[string][]float64
	values map[string]any
}

type run struct {
	outcome
	state *managed.State
}

func trained(t *testing.T, m method, dir string, options ...loop.Option) run {
	t.Helper()
	result, err := learn(t.Context(), m, plugintest.CPU(t), 0, dir, options...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, result.State.Close()) })
	r := run{outcome{steps: result.Elapsed.Steps, logged: map[string][]float64{}, values: map[string]any{}}, result.State}
	for _, name := range result.History.Names() {
		_, r.logged[name], err = result.History.Series(name)
		require.NoError(t, err)
	}
	for _, name := range r.state.Names() {
		value, err := r.state.Value(name)
		require.NoError(t, err)
		r.values[name] = value.Value()
	}
	require.Greater(t, len(r.values), 12)
	return r
}

// play is the mean return of the first states of the tests, by the best action, in the host's environment.
func (r run) play(t *testing.T, n int) float64 {
	t.Helper()
	var poles []pole
	for b, err := range starts(n).All() {
		require.NoError(t, err)
		flat := b.Fields[0].Array.Flat.([]float32)
		for i := range n {
			poles = append(poles, pole(flat[4*i:]))
		}
	}
	a, steps := agent{t.Context(), r.state, 0}, 0
	for range horizon {
		values, err := a.look(q, poles)
		require.NoError(t, err)
		for i, p := range poles {
			if !p.up() {
				continue
			}
			steps++
			action := int32(0)
			if values[2*i+1] > values[2*i] {
				action = 1
			}
			poles[i] = p.push(action)
		}
	}
	return float64(steps) / float64(n)
}

// The graph's environment moves as the host's does, with any action, in bounds and out of them.
func TestPhysics(t *testing.T) {
	ctx, random, n := t.Context(), rand.New(rand.NewPCG(0, 0)), 64
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)))
	require.NoError(t, err)
	defer state.Close()
	step := managed.TestStep(func(b *managed.Builder) {
		b.Output("moved", push(b.Field("x"), b.Field("action")))
		b.Output("up", up(b.Field("x")))
	}, managed.OutputsAlone())
	defer step.Close()
	poles, actions, standing := make([]pole, n), make([]int32, n), 0
	for i := range poles {
		poles[i] = draw(random)
	}
	for range 60 {
		flat := make([]float32, 0, 4*n)
		for i, p := range poles {
			flat, actions[i] = append(flat, p[:]...), random.Int32N(2)
		}
		_, logs, err := step.Step(ctx, state, data.Batch{Fields: []data.Field{data.X(flat, n, 4), data.Named("action", actions, n)}})
		require.NoError(t, err)
		moved, err := managed.Array(logs, "moved")
		require.NoError(t, err)
		still, err := managed.Array(logs, "up")
		require.NoError(t, err)
		for i, p := range poles {
			poles[i] = p.push(actions[i])
			require.InDeltaSlice(t, moved.Flat.([]float32)[4*i:4*i+4], poles[i][:], 1e-5)
			require.Equal(t, p.up(), still.Flat.([]bool)[i])
			if p.up() {
				standing++
			}
		}
	}
	require.Greater(t, standing, 60*n/10)
	require.Less(t, standing, 60*n*9/10)
}

// A pole that leans falls to its side, the faster the more it leans; a push of the cart turns it the other way. The
// accelerations of one state are those that were computed by hand.
func TestPush(t *testing.T) {
	leaning := pole{0, 0, 0.1, 0}.push(1)
	require.Positive(t, leaning[1], "the cart goes to the right")
	require.Negative(t, leaning[3], "and the pole to the left")
	// (F + 0)/M = 9.0909; turn = (9.8 - 0)·… at the angle 0 is -9.0909 / (0.5·(4/3 - 0.1/1.1)) = -14.6341.
	upright := pole{}.push(1)
	require.InDelta(t, -14.6341*interval, upright[3], 1e-5)
	require.InDelta(t, (9.09091+0.1*0.5*14.6341/1.1)*interval, upright[1], 1e-5)
	require.Equal(t, pole{0, -upright[1], 0, -upright[3]}, pole{}.push(0))
	require.True(t, pole{-farthest, 9, -0.2, 9}.up())
	require.False(t, pole{2.41, 0, 0, 0}.up())
	require.False(t, pole{0, 0, -0.21, 0}.up())
}
