package train_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

// model is a state with methods; it changes in place.
type model struct {
	weight float64
	all    // its hooks
}

func newModel() *model { return &model{all: all{}} }

func (m *model) TrainStep(_ context.Context, x float64) (*model, loop.Logs, error) {
	m.all["TrainStep"]++
	m.weight += x
	return m, loop.Logs{}, nil
}

func (m *model) TestStep(_ context.Context, x float64) (*model, loop.Logs, error) {
	m.all["TestStep"]++
	var logs loop.Logs
	logs.Loss("loss", m.weight-x)
	return m, logs, nil
}

func (m *model) ResetStep(context.Context) (*model, error) {
	m.all["ResetStep"]++
	return m, nil
}

func (m *model) PredictStep(_ context.Context, x float64) (float64, error) { return m.weight * x, nil }

// The hooks of all are for states and batches of type int: those of a model need its own.
func (m *model) TrainBegin(context.Context, *modelTurn) error      { return m.note("TrainBegin") }
func (m *model) TrainBatchBegin(context.Context, *modelTurn) error { return m.note("TrainBatchBegin") }
func (m *model) AfterTrainStep(context.Context, *modelTurn) error  { return m.note("AfterTrainStep") }
func (m *model) AfterResetStep(context.Context, *modelTurn) error  { return m.note("AfterResetStep") }
func (m *model) EpochEnd(context.Context, *modelTurn) error        { return m.note("EpochEnd") }
func (m *model) TrainBatchEnd(context.Context, *modelTurn) error   { return m.note("TrainBatchEnd") }
func (m *model) TrainEnd(context.Context, *modelTurn) error        { return m.note("TrainEnd") }
func (m *model) TestBegin(context.Context, *modelTurn) error       { return m.note("TestBegin") }
func (m *model) TestBatchBegin(context.Context, *modelTurn) error  { return m.note("TestBatchBegin") }
func (m *model) AfterTestStep(context.Context, *modelTurn) error   { return m.note("AfterTestStep") }
func (m *model) TestBatchEnd(context.Context, *modelTurn) error    { return m.note("TestBatchEnd") }
func (m *model) TestEnd(context.Context, *modelTurn) error         { return m.note("TestEnd") }
func (m *model) PredictBegin(context.Context, *modelTurn) error    { return m.note("PredictBegin") }
func (m *model) PredictBatchBegin(context.Context, *modelTurn) error {
	return m.note("PredictBatchBegin")
}
func (m *model) AfterPredictStep(context.Context, *modelTurn) error {
	return m.note("AfterPredictStep")
}
func (m *model) PredictBatchEnd(context.Context, *modelTurn) error { return m.note("PredictBatchEnd") }
func (m *model) PredictEnd(context.Context, *modelTurn) error      { return m.note("PredictEnd") }

type modelTurn = loop.Turn[*model, float64]

var (
	modelHooks = train.Hooks[*model, float64]{Begin: train.Method((*model).TrainBegin),
		BatchBegin: train.Method((*model).TrainBatchBegin), AfterStep: train.Method((*model).AfterTrainStep),
		AfterReset: train.Method((*model).AfterResetStep), EpochEnd: train.Method((*model).EpochEnd),
		BatchEnd: train.Method((*model).TrainBatchEnd), End: train.Method((*model).TrainEnd)}
	modelTestHooks = train.Hooks[*model, float64]{Begin: train.Method((*model).TestBegin),
		AfterReset: train.Method((*model).AfterResetStep), BatchBegin: train.Method((*model).TestBatchBegin),
		AfterStep: train.Method((*model).AfterTestStep),
		BatchEnd:  train.Method((*model).TestBatchEnd), End: train.Method((*model).TestEnd)}
	modelPredictHooks = train.Hooks[*model, float64]{Begin: train.Method((*model).PredictBegin),
		BatchBegin: train.Method((*model).PredictBatchBegin), AfterStep: train.Method((*model).AfterPredictStep),
		BatchEnd: train.Method((*model).PredictBatchEnd), End: train.Method((*model).PredictEnd)}
)

func floats(n int) loop.Data[float64] {
	return func(yield func(float64, error) bool) {
		for i := range n {
			if !yield(float64(i), nil) {
				return
			}
		}
	}
}

// Ciclo's test step ran 8, 12, 16 times for 4 batches in the first three epochs.
func TestD04_methodsRunOnce(t *testing.T) {
	l := train.Of[*model]()
	l.Epoch = loop.Steps(2)
	l.Tests = []loop.Evaluation[*model, float64]{train.TestOf[*model](floats(4), modelTestHooks)}
	m := newModel()
	var perEpoch []int
	l.Hooks = []train.Hooks[*model, float64]{modelHooks, {EpochEnd: func(context.Context, *modelTurn) error {
		perEpoch = append(perEpoch, m.all["TestStep"])
		return nil
	}}}
	for run := range 2 { // nothing piles up in the loop either
		*m, perEpoch = *newModel(), nil
		_, err := l.Run(t.Context(), m, floats(6))
		require.NoError(t, err)
		require.Equal(t, []int{4, 8, 12}, perEpoch)
		require.Equal(t, all{
			"TrainBegin": 1, "TrainBatchBegin": 6, "TrainStep": 6, "AfterTrainStep": 6, "EpochEnd": 3, "TrainBatchEnd": 6, "TrainEnd": 1,
			"ResetStep": 9, "AfterResetStep": 6,
			"TestBegin": 3, "TestBatchBegin": 12, "TestStep": 12, "AfterTestStep": 12, "TestBatchEnd": 12, "TestEnd": 3,
		}, m.all, "run %d", run+1)
	}
	t.Logf("D04: test steps by epoch: 4, 4, 4 for 4 batches")
}

func TestTestOf_andPredictOf(t *testing.T) {
	m := newModel()
	m.weight = 10
	_, logs, err := train.TestOf[*model](floats(3), modelTestHooks).Run(t.Context(), m)
	require.NoError(t, err)
	loss, err := logs.Float("loss_test")
	require.NoError(t, err)
	require.Equal(t, 9., loss)
	require.Equal(t, all{"ResetStep": 2, "AfterResetStep": 1, "TestBegin": 1, "TestBatchBegin": 3, "TestStep": 3, "AfterTestStep": 3, "TestBatchEnd": 3, "TestEnd": 1}, m.all)

	m.all = all{}
	predict := train.PredictOf[*model]()
	predict.Hooks = []train.Hooks[*model, float64]{modelPredictHooks}
	outputs, err := gather(predict.All(t.Context(), m, floats(3)))
	require.NoError(t, err)
	require.Equal(t, []float64{0, 10, 20}, outputs)
	require.Equal(t, all{"PredictBegin": 1, "PredictBatchBegin": 3, "AfterPredictStep": 3, "PredictBatchEnd": 3, "PredictEnd": 1}, m.all)
}

// plain is a state that is a value: each step makes a new one, and a hook sees that of its turn.
type plain struct{ n int }

func (p plain) TrainStep(context.Context, int) (plain, loop.Logs, error) {
	return plain{p.n + 1}, loop.Logs{}, nil
}
func (p plain) TestStep(context.Context, int) (plain, loop.Logs, error) {
	var logs loop.Logs
	logs.Metric("n", float64(p.n))
	return plain{p.n + 1000}, logs, nil
}
func (p plain) TrainBatchEnd(_ context.Context, turn *loop.Turn[plain, int]) error {
	turn.State = plain{p.n + 10}
	return nil
}

func TestOf_aStateThatIsAValue(t *testing.T) {
	l := train.Of[plain]()
	l.Tests = []loop.Evaluation[plain, int]{train.TestOf[plain](upTo(1))}
	var order []int
	l.Hooks = []train.Hooks[plain, int]{
		{BatchEnd: train.Method(plain.TrainBatchEnd)},
		{BatchEnd: func(_ context.Context, turn *loop.Turn[plain, int]) error {
			order = append(order, turn.State.n) // after the state's own
			return nil
		}},
	}
	result, err := l.Run(t.Context(), plain{}, upTo(3))
	require.NoError(t, err)
	require.Equal(t, plain{33}, result.State)
	require.Equal(t, []int{11, 22, 33}, order)
	n, err := result.History.Last("n_test")
	require.NoError(t, err)
	require.Equal(t, 33., n)
}

type (
	badReset struct{}
	pointer  struct{}
	stepper  interface {
		TrainStep(context.Context, int) (stepper, loop.Logs, error)
	}
)

func (s badReset) TrainStep(context.Context, int) (badReset, loop.Logs, error) {
	return s, loop.Logs{}, nil
}
func (badReset) ResetStep() {}

func (s pointer) TrainStep(context.Context, int) (pointer, loop.Logs, error) {
	return s, loop.Logs{}, nil
}
func (s pointer) TestStep(ctx context.Context, batch int) (pointer, loop.Logs, error) {
	return s.TrainStep(ctx, batch)
}
func (s *pointer) ResetStep(context.Context) (pointer, error) { return *s, nil }

func TestOf_refusesMethodsOfAnotherForm(t *testing.T) {
	_, err := train.Of[badReset]().Run(t.Context(), badReset{}, upTo(1))
	require.EqualError(t, err, "loop: task 1 (each step: train step): method ResetStep of train_test.badReset is a func(train_test.badReset), but must be a func(train_test.badReset, context.Context) (train_test.badReset, error)")
	_, err = train.Of[pointer]().Run(t.Context(), pointer{}, upTo(1))
	onPointer := "method ResetStep of train_test.pointer has a pointer receiver: it is not a method of the value"
	require.EqualError(t, err, "loop: task 1 (each step: train step): "+onPointer)
	_, _, err = train.TestOf[pointer](upTo(1)).Run(t.Context(), pointer{})
	require.EqualError(t, err, "loop: evaluation test: task 1 (each step: test step): "+onPointer)
	_, err = train.Of[stepper, int]().Run(t.Context(), nil, upTo(1))
	require.EqualError(t, err, "loop: task 1 (each step: train step): the state has the interface type train_test.stepper, so its methods are not known: use a concrete type")
}
