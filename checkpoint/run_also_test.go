package checkpoint_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

type partly struct {
	Seen  int
	inner int
}

type wholly struct {
	Seen  map[string]int
	Rest  int `json:",omitempty"`
	cache int `json:"-"`
	Since time.Time
}

// A value that JSON would save in part, or not at all, is an error before the first step.
func TestAlso_refuses(t *testing.T) {
	for name, row := range map[string]struct {
		value any
		want  string
	}{
		"a field":           {&partly{inner: 1}, "JSON leaves out checkpoint_test.partly.inner: export the field"},
		"within a slice":    {&[]partly{{}}, "JSON leaves out []checkpoint_test.partly.inner"},
		"within a field":    {&struct{ Of map[string]*partly }{}, ".Of.inner"},
		"an embedded one":   {&struct{ partly }{}, ".partly.inner"},
		"a random source":   {rand.NewPCG(1, 2), "JSON leaves out rand.PCG.hi"},
		"no JSON":           {new(func()), "json: unsupported type"},
		"an infinity":       {new(math.Inf(1)), "json: unsupported value: +Inf"},
		"no pointer":        {partly{}, "expected a pointer to the value to save and restore"},
		"loop":              {new(int), "the section is the run's own"},
		"\xff no text":      {new(int), "the name is not UTF-8"},
		"a recursive value": {&struct{ Next *partly }{}, ".Next.inner"},
	} {
		_, _, err := run(t.Context(), counting(), &counter{Rate: 1}, saves(openMem(t, &vfs.Mem{}, checkpoint.Options{}), loop.Never, checkpoint.Options{Also: map[string]any{name: row.value}}), loop.Until(loop.Steps(1)))
		require.ErrorContains(t, err, "option Also ", name)
		require.ErrorContains(t, err, row.want, name)
	}
	_, _, err := run(t.Context(), counting(), &counter{Rate: 1}, saves(openMem(t, &vfs.Mem{}, checkpoint.Options{}), loop.Never, checkpoint.Options{Same: partly{}}), loop.Until(loop.Steps(1)))
	require.ErrorContains(t, err, "option Same: JSON leaves out checkpoint_test.partly.inner")
}

// The saved value is restored: no key or field of the program's value remains.
func TestAlso_restoresTheWholeValue(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	saved := wholly{Seen: map[string]int{"b": 2}, Since: time.Unix(5, 0).UTC()}
	_, _, err := run(t.Context(), counting(), &counter{Rate: 1}, saves(f, loop.EachStep, checkpoint.Options{Also: map[string]any{"value": &saved}}), loop.Until(loop.Steps(1)))
	require.NoError(t, err)
	got := wholly{Seen: map[string]int{"start": 1}, Rest: 5, cache: 7}
	_, err = looked(f, &counter{}, checkpoint.Options{Also: map[string]any{"value": &got}})
	require.NoError(t, err)
	require.Equal(t, wholly{Seen: map[string]int{"b": 2}, cache: 7, Since: saved.Since}, got)
	kept := map[string]int{"start": 1}
	_, err = looked(f, &counter{}, checkpoint.Options{Also: map[string]any{"value": &kept}})
	require.Error(t, err)
	require.Equal(t, map[string]int{"start": 1}, kept, "an error changes nothing")
}

// Slices of numbers are tensors with the same bits, and those that an earlier version saved as JSON are still read.
func TestAlso_numbersAreBinary(t *testing.T) {
	type named []float32
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	seen, flags, none, other := named{1.5, float32(math.NaN()), float32(math.Inf(-1))}, []bool{true, false}, []int64{}, []int{7}
	also := map[string]any{"seen": &seen, "flags": &flags, "none": &none, "other": &other}
	_, _, err := run(t.Context(), counting(), &counter{Rate: 1}, saves(f, loop.EachStep, checkpoint.Options{Also: also}), loop.Until(loop.Steps(1)))
	require.NoError(t, err)
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	found := map[string]string{}
	for _, tensor := range c.Tensors {
		found[tensor.Name] = fmt.Sprint(tensor.DType, tensor.Dims)
	}
	require.Subset(t, found, map[string]string{"loop.also.seen": "F32 [3]", "loop.also.flags": "BOOL [2]", "loop.also.none": "I64 [0]"})
	require.NotContains(t, found, "loop.also.other")
	require.NotContains(t, c.Sections(), "seen")

	var seen2 named
	flags2, none2, other2 := []bool{true, true, true, true}, []int64{5}, []int(nil)
	_, err = looked(f, &counter{}, checkpoint.Options{Also: map[string]any{"seen": &seen2, "flags": &flags2, "none": &none2, "other": &other2}})
	require.NoError(t, err)
	for i := range seen {
		require.Equal(t, math.Float32bits(seen[i]), math.Float32bits(seen2[i]))
	}
	require.Equal(t, flags, flags2)
	require.Empty(t, none2)
	require.Equal(t, other, other2)
	var wide []float64
	_, err = looked(f, &counter{}, checkpoint.Options{Also: map[string]any{"seen": &wide}})
	require.ErrorContains(t, err, `option Also "seen": the value is a []float64, and the checkpoint has F32 [3] in binary`)

	old := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	_, _, err = run(t.Context(), counting(), &counter{Rate: 1}, saves(old, loop.EachStep, checkpoint.Options{Also: map[string]any{"seen": &struct{ asJSON }{}}}), loop.Until(loop.Steps(1)))
	require.NoError(t, err)
	_, err = looked(old, &counter{}, checkpoint.Options{Also: map[string]any{"seen": &seen2}})
	require.NoError(t, err)
	require.Equal(t, named{1, 2}, seen2)
}

type asJSON struct{}

func (asJSON) MarshalJSON() ([]byte, error) { return []byte("[1,2]"), nil }

// The effects of tasks at the end are saved, also if the last step was saved before them: a second start has the same
// state and rows.
func TestResume_savesWhatRanAtTheEnd(t *testing.T) {
	add := loop.StepFunc(func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
		c.Weight++
		return c, loop.Logs{}, nil
	})
	halve := loop.StepFunc(func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
		c.Weight /= 2
		return c, loop.Logs{}, nil
	})
	measure := loop.StepFunc(func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("loss", 1/c.Weight)
		return c, logs, nil
	})
	one := loop.Data[int64](func(yield func(int64, error) bool) { yield(0, nil) })
	evaluation := loop.Evaluate("test", measure, one).On(loop.Every(loop.Steps(8)).AndAtEnd())
	for _, every := range []loop.Steps{1, 4, 5, 7, 20, 100} {
		f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 2}}})
		for range 2 {
			result, _, err := run(t.Context(), loop.New(loop.On(loop.EachStep, add), evaluation), &counter{}, f.Resume(checkpoint.Every(every), checkpoint.KeepBest("loss_test")), loop.Until(loop.Steps(20)))
			require.NoError(t, err)
			require.Equal(t, 20.0, result.State.Weight, "the best, every %d", every)
			last, err := result.History.Last("loss_test")
			require.NoError(t, err)
			require.Equal(t, 1/20.0, last, "every %d", every)
		}
		f = openMem(t, &vfs.Mem{}, checkpoint.Options{})
		for range 2 {
			result, _, err := run(t.Context(), loop.New(loop.On(loop.EachStep, add), loop.On(loop.AtEnd, halve)), &counter{}, saves(f, loop.Every(every)), loop.Until(loop.Steps(20)))
			require.NoError(t, err)
			require.Equal(t, 10.0, result.State.Weight, "every %d", every)
		}
	}
}

// A run that pauses or is extended has the state of one that was never stopped, with tasks at the start and the end.
func TestResume_tasksAtTheStartAndTheEnd(t *testing.T) {
	add := loop.StepFunc(func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
		c.Weight++
		return c, loop.Logs{}, nil
	})
	begin := loop.StepFunc(func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
		c.Weight += 100
		return c, loop.Logs{}, nil
	})
	end := loop.StepFunc(func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
		c.Weight *= 3
		return c, loop.Logs{}, nil
	})
	l := loop.New(loop.On(loop.AtStart, begin), loop.On(loop.EachStep, add), loop.On(loop.AtEnd, end))
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	pause := loop.Watch(loop.At(loop.Steps(6)), func(context.Context, loop.Report) error { return loop.ErrPause })
	result, _, err := run(t.Context(), l, &counter{}, saves(f, loop.Every(loop.Steps(4))), loop.Until(loop.Steps(10)), pause)
	require.NoError(t, err)
	require.Equal(t, 106.0, result.State.Weight)
	result, _, err = run(t.Context(), l, &counter{}, saves(f, loop.Every(loop.Steps(4))), loop.Until(loop.Steps(10)))
	require.NoError(t, err)
	require.Equal(t, 330.0, result.State.Weight)
}
