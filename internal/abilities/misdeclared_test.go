package abilities

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

type rightSize struct{}

func (rightSize) Samples() int { return 1 }

type otherSamples struct{}

func (otherSamples) Samples(n int) []int { return make([]int, n) }

type wrongSize struct{}

func (wrongSize) Samples() int64 { return 1 }

type wrongSetter struct{}

func (wrongSetter) SetLearningRate(float32) error { return nil }

func TestMisdeclared(t *testing.T) {
	asked := []reflect.Type{reflect.TypeFor[Sized](), reflect.TypeFor[LearningRater]()}
	for _, fine := range []any{rightSize{}, otherSamples{}, 3, struct{}{}} {
		require.NoError(t, Misdeclared(reflect.TypeOf(fine), "the batch", asked...))
	}
	require.EqualError(t, Misdeclared(reflect.TypeFor[wrongSize](), "the batch", asked...),
		"the batch, a abilities.wrongSize, has the method Samples func() int64, which a run asks for as func() int")
	require.EqualError(t, Misdeclared(reflect.TypeFor[wrongSetter](), "the state", asked...),
		"the state, a abilities.wrongSetter, has the method SetLearningRate func(float32) error, which a run asks for as func(float64) error")
}
