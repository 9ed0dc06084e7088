package checkpoint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// Values of Also are restored in place, and a missing one is an error.
func TestAlso(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	place := int64(1) << 60
	also := checkpoint.Options{Also: map[string]any{"place": &place}}
	_, _, err := run(t.Context(), counting(), &counter{Rate: 1}, loop.Until(loop.Steps(7)), saves(f, loop.Never, also),
		loop.Watch(loop.EachStep, func(context.Context, loop.Report) error { place++; return nil }))
	require.NoError(t, err)
	place = 0
	_, err = looked(f, &counter{}, also)
	require.NoError(t, err)
	require.EqualValues(t, 1<<60+7, place)
	state, other := &counter{Weight: 3}, 0
	_, err = looked(f, state, checkpoint.Options{Also: map[string]any{"other": &other}})
	require.ErrorIs(t, err, checkpoint.ErrNoSection)
	_, err = looked(f, state, checkpoint.Options{Also: map[string]any{"place": new(string)}})
	require.ErrorContains(t, err, `section "place"`)
	require.Equal(t, &counter{Weight: 3}, state, "after an error the state is as it was")

	f = openMem(t, &vfs.Mem{}, checkpoint.Options{}) // the start of a run has taken its first batch
	_, _, err = run(t.Context(), counting(), &counter{}, loop.Until(loop.Steps(7)), saves(f, loop.EachStep.AndAtStart(), also))
	require.ErrorContains(t, err, "does not belong to this step: the start of a run has its first batch: save first after a step")
}

func TestB58_anEmptyFolderLeavesTheState(t *testing.T) {
	var said bytes.Buffer
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{Log: slog.New(slog.NewTextHandler(&said, nil))})
	state := &counter{Weight: 0.5, Rate: 0.25}
	result, err := looked(f, state)
	require.NoError(t, err)
	require.Zero(t, result.Elapsed.Steps)
	require.Equal(t, &counter{Weight: 0.5, Rate: 0.25}, state)
	require.Equal(t, 1, strings.Count(said.String(), "\n"))
	require.Contains(t, said.String(), `level=INFO msg="checkpoint: nothing to resume from, the run begins at step 0" folder=`)
	t.Log("B58: an empty folder: the same state, and a line that says so")
}

// A run that another option sets to begin after the checkpoint does not go back without a word.
func TestResume_beforeTheBeginning(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	begin := func(steps int64) error {
		_, _, err := run(t.Context(), counting(), &counter{Rate: 1}, loop.Until(loop.Steps(20)), f.Resume(), loop.Continue(loop.Elapsed{Steps: steps}, nil))
		return err
	}
	require.NoError(t, begin(8), "an empty folder leaves it")
	require.Equal(t, []checkpoint.Step{20}, steps(t, f))
	require.NoError(t, begin(8), "the checkpoint counts")
	require.ErrorContains(t, begin(21), "the checkpoint of step 20 in folder is before step 21, at which the run is set to begin")
}

// The messages that a user sees when resuming.
func TestResumeMessages(t *testing.T) {
	ctx := t.Context()
	m := &vfs.Mem{}
	f := openMem(t, m, checkpoint.Options{})
	resumed(t, f, 10)
	resumed(t, f, 20)
	require.NoError(t, f.Close())
	damage := func(step checkpoint.Step) {
		names, err := m.ReadDir(".")
		require.NoError(t, err)
		for _, name := range names {
			if strings.HasPrefix(name, dir(step)) {
				text := read(t, m, name+"/state.safetensors")
				text[len(text)-1]++
				write(t, m, name+"/state.safetensors", text)
			}
		}
	}
	damage(20)
	var said bytes.Buffer
	f = openMem(t, m, checkpoint.Options{Log: slog.New(slog.NewTextHandler(&said, nil))})
	// The resumed run saves step 20 again in place of the damaged one.
	_, from := resumed(t, f, 20)
	require.EqualValues(t, 10, from.Steps)
	require.Contains(t, said.String(), `level=WARN msg="checkpoint: skipped"`)
	require.Contains(t, said.String(), "checkpoint=step-000000000020")
	require.Contains(t, said.String(), `level=INFO msg="checkpoint: the run is resumed" folder=folder step=10`)
	require.NoError(t, f.Verify(ctx, 20))
	damage(10)
	damage(20)
	_, err := looked(f, &counter{})
	require.ErrorContains(t, err, "found, none can be loaded")
	var damaged *checkpoint.DamagedError
	require.ErrorAs(t, err, &damaged)

	g := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	save(t, g, 4)
	_, err = looked(g, &counter{})
	require.ErrorIs(t, err, checkpoint.ErrNoSection)
	require.ErrorContains(t, err, "checkpoint: resume from step 4 in ")
	require.ErrorContains(t, err, "it was not saved by a run, so its position is unknown")
}

func TestHistoryComesAsItIs(t *testing.T) {
	for _, bound := range []loop.Option{loop.Thin(7), loop.Keep(loop.Every(loop.Steps(3)))} {
		f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
		result, _ := resumed(t, f, 90, bound)
		again, err := looked(f, &counter{})
		require.NoError(t, err)
		require.Equal(t, rows(t, result.History), rows(t, again.History))
	}
}

// A forged position must not overflow the sums of a resumed run, and a position that could not be resumed is not saved.
func TestPositionIsBounded(t *testing.T) {
	const most = int64(1) << 62
	ctx := t.Context()
	for _, row := range []struct {
		samples, time int64
		ok            bool
	}{{most, 0, true}, {0, most, true}, {most + 1, 0, false}, {0, most + 1, false}, {math.MaxInt64, 0, false}, {0, math.MaxInt64, false}, {-1, 0, false}, {0, -1, false}} {
		f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
		c, err := (&counter{}).Content(ctx)
		require.NoError(t, err)
		c.Sections["loop"] = json.RawMessage(fmt.Sprintf(`{"steps":3,"samples":%d,"time":%d,"date":0}`, row.samples, row.time))
		c.Tensors = append(c.Tensors, checkpoint.Tensor{Name: "loop.history", DType: safetensors.U8, Dims: []int{2}, Data: []byte("[]")})
		require.NoError(t, f.Save(ctx, 3, c))
		_, err = looked(f, &counter{})
		if !row.ok {
			require.ErrorContains(t, err, "expected 0 to 2^62 of each")
			continue
		}
		require.NoError(t, err)
		_, _, err = run(ctx, counting(), &counter{Rate: 1}, saves(f, loop.Never), loop.Until(loop.Steps(10)))
		require.ErrorContains(t, err, "expected 0 to 2^62 of each", "it saves no more than it reads")
		result, err := looked(f, &counter{})
		require.NoError(t, err, "what was there can still be resumed from")
		require.EqualValues(t, 3, result.Elapsed.Steps)
	}
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	_, err := counting().Run(ctx, &counter{Rate: 1}, loop.From(numbered), loop.Continue(loop.Elapsed{Steps: most}, nil), saves(f, loop.EachStep))
	require.ErrorContains(t, err, "expected 0 to 2^62 of each")
}

// Saving again and again does not make checkpoints grow.
func TestF21_restarts(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}})
	var sizes []int64
	for i := range 100 {
		resumed(t, f, loop.Steps(7*(i+1)), loop.Thin(20))
		list, err := f.List(t.Context())
		require.NoError(t, err)
		sizes = append(sizes, list[len(list)-1].Bytes)
	}
	require.Less(t, float64(slices.Max(sizes[50:])), 1.5*float64(slices.Max(sizes[:50])), "10 to 20 rows, whose dates and steps have more digits")
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	require.Len(t, c.Tensors, 2)
	t.Logf("F21: 100 restarts of a run with a history of at most 20 rows: at most %d bytes in the first 50, %d in the others, %d tensors all along", slices.Max(sizes[:50]), slices.Max(sizes[50:]), len(c.Tensors))
}
