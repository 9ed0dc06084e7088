package managed_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// stops is the number of stops of F10's run, stoppedSteps its length.
var stops, stoppedSteps = 4, int64(200)

// session is a training with everything that has memory: dropout, Adam after an accumulation, a schedule, averaged
// parameters, a metric over many batches, a plateau, early stopping.
type session struct {
	t        *testing.T
	set      *data.Set
	training loop.Loop[*managed.State, data.Batch]
	// evaluating is called when an evaluation begins.
	evaluating *func()
}

func newSession(t *testing.T) session {
	tracked := func(b *managed.Builder) { b.Mean("running", b.Field("y")) }
	train := stepper(t, managed.TrainStep(func(b *managed.Builder) { noisy(b); tracked(b) }))
	test := stepper(t, managed.TestStep(noisy))
	evaluating := func() {}
	evaluation := loop.Evaluation[*managed.State, data.Batch]{Name: "test", Loop: loop.New(loop.On(loop.EachStep, test)),
		Data: loop.From(func(position int64) iter.Seq2[data.Batch, error] {
			evaluating()
			return line(t, 48).Batches(16).From(position)
		})}
	return session{t, line(t, 80), loop.New(loop.On(loop.EachStep, train), evaluation.On(loop.Every(loop.Steps(7)))), &evaluating}
}

func (s session) state(strategy strategies.Strategy) *managed.State {
	rule := optim.New(0.02, optim.Accumulate(3), optim.Adam{}, optim.ScaleBySchedule(optim.Cosine(1, 0.5, 40)), optim.Average{Decay: 0.9})
	state, err := managed.New(strategy, managed.WithOptimizer(rule), managed.WithSeed(5))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, state.Close()) })
	return state
}

// run continues from the folder, with blocks, until a step.
func (s session) run(strategy strategies.Strategy, f *checkpoint.Folder, until int64, options ...loop.Option) loop.Result[*managed.State] {
	s.t.Helper()
	result, err := s.tryRun(s.t.Context(), strategy, f, until, options...)
	require.NoError(s.t, err)
	return result
}

func (s session) tryRun(ctx context.Context, strategy strategies.Strategy, f *checkpoint.Folder, until int64, options ...loop.Option) (loop.Result[*managed.State], error) {
	s.t.Helper()
	state := s.state(strategy)
	batches := s.set.Batches(16, data.Shuffle(3))
	return s.training.Run(ctx, state, batches, append(options, loop.Until(loop.Steps(until)),
		callbacks.ReduceOnPlateau("loss_test", 0.5, callbacks.Evaluations(2)),
		callbacks.StopEarly("loss_test", callbacks.Evaluations(1000)),
		f.Resume(checkpoint.Every(loop.Steps(31))))...)
}

// cut runs on and is cancelled in the middle of its second evaluation.
func (s session) cut(strategy strategies.Strategy, f *checkpoint.Folder) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	evaluations := 0
	*s.evaluating = func() {
		if evaluations++; evaluations == 2 {
			cancel()
		}
	}
	_, err := s.tryRun(ctx, strategy, f, 1<<40)
	require.ErrorIs(s.t, err, context.Canceled)
	*s.evaluating = func() {}
}

func lossesOf(t *testing.T, h *loop.History) (all []string) {
	t.Helper()
	for at, logs := range h.Rows() {
		line := fmt.Sprint(at.Steps, " ", at.Samples)
		for e := range logs.All() {
			x, err := e.Value.Float()
			require.NoError(t, err)
			line += fmt.Sprintf(" %s=%x", e.Path(), math.Float64bits(x))
		}
		all = append(all, line)
	}
	return all
}

// A run that is stopped again and again is the run that was never stopped.
func TestF10_resumedRunMakesTheSameBits(t *testing.T) {
	r := plugintest.CPU(t)
	s := newSession(t)
	until := stoppedSteps
	whole := s.run(strategies.Jit(r), folder(t, checkpoint.Options{}), until)
	want := bits(t, whole.State)
	f := folder(t, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}})
	random := rand.New(rand.NewPCG(10, 1))
	var last loop.Result[*managed.State]
	at, cuts := int64(0), 0
	for i := range stops {
		at += 1 + random.Int64N((until-at)/int64(stops-i)*2-1)
		at = min(at, until-int64(stops-i))
		s.run(strategies.Jit(r), f, at)
		if i%2 == 0 && at+14 < until {
			s.cut(strategies.Jit(r), f)
			list, err := f.List(t.Context())
			require.NoError(t, err)
			at = max(at, int64(list[len(list)-1].Step)) // it may have saved on its way
			cuts++
		}
	}
	last = s.run(strategies.Jit(r), f, until)
	require.Equal(t, want, bits(t, last.State))
	require.Equal(t, lossesOf(t, whole.History), lossesOf(t, last.History))
	rate, err := last.State.LearningRate()
	require.NoError(t, err)
	require.Less(t, rate, 0.02, "the plateau had its say")
	t.Logf("F10: %d stops and %d cuts inside of an evaluation in %d steps (dropout, shuffle, accumulation, Adam, schedule, average, plateau, evaluations, blocks): 0 differing bits in %d variables and %d rows",
		stops, cuts, until, len(want), last.History.Len())
}

// A run on four devices continues on one.
func TestF11_otherDevices(t *testing.T) {
	four := plugintest.Devices(t, 4)
	s := newSession(t)
	parallel, err := strategies.DataParallel(four, strategies.Parallel{})
	require.NoError(t, err)
	two, err := strategies.DataParallel(four, strategies.Parallel{Devices: 2})
	require.NoError(t, err)
	whole := s.run(parallel, folder(t, checkpoint.Options{}), 130)
	_, want, err := whole.History.Series("loss")
	require.NoError(t, err)
	f := folder(t, checkpoint.Options{})
	s.run(parallel, f, 30)
	s.run(two, f, 35)
	last := s.run(strategies.Jit(four), f, 130)
	_, got, err := last.History.Series("loss")
	require.NoError(t, err)
	require.Len(t, got, len(want))
	worst := 0.0
	for i := range want {
		worst = max(worst, math.Abs(got[i]-want[i])/math.Abs(want[i]))
	}
	require.Less(t, worst, 1e-5)
	t.Logf("F11: 4 devices until step 30, 2 until 35, 1 until 130: each loss within %.1e of the unbroken run on 4, of 1e-5 allowed", worst)
}
