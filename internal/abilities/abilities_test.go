package abilities

import (
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
)

type sized int

func (s sized) Samples() int { return int(s) }

type model struct{ state any }

func (m model) State() any { return m.state }

type report struct{ state, pointer any }

func (r report) State() any        { return r.state }
func (r report) StatePointer() any { return r.pointer }

func TestAs(t *testing.T) {
	for _, has := range []any{sized(3), model{sized(3)}} {
		found, ok := As[Sized](has)
		require.True(t, ok)
		require.Equal(t, 3, found.Samples())
	}
	for _, lacks := range []any{nil, 3, model{nil}, model{model{sized(3)}}} {
		_, ok := As[Sized](lacks)
		require.False(t, ok, "%v", lacks)
	}
	size := sized(4)
	for want, of := range map[int]report{3: {sized(3), new(int)}, 4: {nil, &size}} {
		found, ok := StateAs[Sized](of)
		require.True(t, ok)
		require.Equal(t, want, found.Samples())
	}
	_, ok := StateAs[Sized](report{state: sized(3)})
	require.False(t, ok, "a run without a state")
}

// batch leaves out some examples.
type batch int

func (b batch) LeftOut() int { return int(b) }

type source []batch

func (s source) From(position int64) iter.Seq2[batch, error] {
	if position > int64(len(s)) {
		return nil
	}
	return func(yield func(batch, error) bool) {
		for _, b := range s[position:] {
			if !yield(b, nil) {
				return
			}
		}
	}
}

type whole struct{ source }

func (w whole) WholeFrom(int64) iter.Seq2[batch, error] { return source{7}.From(0) }

func TestWholeFrom(t *testing.T) {
	texts := func(batches iter.Seq2[batch, error]) (list []string) {
		for b, err := range batches {
			if err != nil {
				require.ErrorContains(t, err, "the batches leave out the examples of the data that do not fill a batch (2)")
			}
			list = append(list, fmt.Sprint(int(b), err != nil))
		}
		return list
	}
	from := WholeFrom[batch](source{0, 0, 2})
	require.Equal(t, []string{"0 false", "0 true"}, texts(from(1)))
	require.Nil(t, from(4), "a position that the source does not have")
	require.Equal(t, []string{"7 false"}, texts(WholeFrom[batch](whole{source{2}})(0)))
	broken := errors.New("broken")
	for _, err := range Complete(func(yield func(batch, error) bool) { yield(2, broken) }) {
		require.Equal(t, broken, err, "an error of the source stays")
	}
	n := 0
	for range Complete(func(yield func(int, error) bool) { _ = yield(1, nil) && yield(2, nil) }) {
		n++ // batches that leave out nothing
	}
	require.Equal(t, 2, n)
}

func TestActivity(t *testing.T) {
	require.Equal(t, "data", Activity{Name: "data"}.String())
	require.Equal(t, "none", Activity{Name: "data", Of: named("none")}.String())
}

type named string

func (n named) String() string { return string(n) }
