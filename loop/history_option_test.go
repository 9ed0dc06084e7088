package loop_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
)

// The history against rows kept one by one, in all bounds, with columns that come and go, numbers and late values.
func TestHistory_laws(t *testing.T) {
	names := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 9).Draw(t, "rows")
		bound := rapid.SampledFrom([]string{"none", "thin"}).Draw(t, "bound")
		h := &loop.History{}
		if bound == "thin" {
			h = loop.Restricted(loop.Thin(rows))
		}
		var model []map[string]float64
		fetched := 0
		ever := map[string]bool{}
		for i := range rapid.IntRange(0, 40).Draw(t, "commits") {
			var logs loop.Logs
			r := map[string]float64{"steps": float64(i + 1)}
			for _, name := range names {
				v := float64(rapid.IntRange(0, 99).Draw(t, name))
				switch rapid.SampledFrom([]string{"number", "late", "missing"}).Draw(t, "kind") {
				case "number":
					logs.Metric(name, v)
				case "late":
					logs.Set(loop.Metrics, name, late{&fetched, v, nil})
				default:
					continue
				}
				r[name], ever[name] = v, true
			}
			h.Commit(at(int64(i+1)), logs, int64(i+1))
			model = append(model, r)
			if rapid.Bool().Draw(t, "read") && ever["a"] {
				_, _ = h.Last("a")
			}
		}
		if bound == "thin" {
			model = thinned(model, rows)
		}
		require.Equal(t, len(model), h.Len())
		asked := rapid.SliceOfN(rapid.SampledFrom(append([]string{"steps"}, names...)), 1, 3).Draw(t, "asked")
		got, err := h.Collect(asked...)
		for _, name := range asked {
			if name != "steps" && !ever[name] {
				require.ErrorIs(t, err, loop.ErrNoEntry)
				return
			}
		}
		require.NoError(t, err)
		want := make([][]float64, len(asked))
	rows:
		for _, r := range model {
			for _, name := range asked {
				if _, ok := r[name]; !ok {
					continue rows
				}
			}
			for i, name := range asked {
				want[i] = append(want[i], r[name])
			}
		}
		require.Equal(t, want, got)
		i := 0
		for elapsed, logs := range h.Rows() {
			require.EqualValues(t, model[i]["steps"], elapsed.Steps)
			require.Equal(t, len(model[i])-1, logs.Len())
			for e := range logs.All() {
				v, err := e.Value.Float()
				require.NoError(t, err)
				require.Equal(t, model[i][e.Name], v)
			}
			i++
		}
		before := fetched
		_, err = h.Collect(asked...)
		require.NoError(t, err)
		require.Equal(t, before, fetched, "all that Rows gave was read, so nothing is fetched again")
	})
}

// An unread value is dropped with its row, also if it was the only one of its entry.
func TestThin_dropsAnUnreadValue(t *testing.T) {
	h, fetched := loop.Restricted(loop.Thin(2)), 0
	commit := func(step int64, v any) {
		var logs loop.Logs
		if v != nil {
			logs.Set(loop.Metrics, "a", v)
		}
		h.Commit(at(step), logs, 1)
	}
	for step := range int64(4) {
		commit(step+1, nil)
	}
	commit(5, late{&fetched, 5, nil}) // the newest, which the next one replaces
	commit(6, 6.0)
	got, err := h.Collect("steps", "a")
	require.NoError(t, err)
	require.Equal(t, [][]float64{{6}, {6}}, got)
	require.Zero(t, fetched)
}

// thinned is another form of Thin's rule: the smallest power of two whose multiples, with the newest row, fit the
// limit.
func thinned[R any](all []R, rows int) []R {
	for every := 1; ; every *= 2 {
		var kept []R
		for i, r := range all {
			if (i+1)%every == 0 || i == len(all)-1 {
				kept = append(kept, r)
			}
		}
		if len(kept) <= rows {
			return kept
		}
	}
}

func TestThin_inARun(t *testing.T) {
	steps := func(options ...loop.Option) []float64 {
		result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(100), options...)
		require.NoError(t, err)
		columns, err := result.History.Collect("steps", "sum")
		require.NoError(t, err)
		require.Len(t, columns[1], len(columns[0]))
		return columns[0]
	}
	require.Equal(t, []float64{16, 32, 48, 64, 80, 96, 100}, steps(loop.Thin(8)))
	require.Equal(t, []float64{100}, steps(loop.Thin(1)))
	require.Equal(t, []float64{16, 32, 48, 64, 80, 96, 100}, steps(loop.Thin(2), loop.Thin(8)), "the last one counts")
	require.Equal(t, []float64{80, 100}, steps(loop.Keep(loop.Every(loop.Steps(5))), loop.Thin(2)))
	for _, rows := range []int{0, -1} {
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(1), loop.Thin(rows))
		require.ErrorContains(t, err, fmt.Sprintf(": rows must be positive, got %d", rows))
	}
}

func TestThin_dropsUnread(t *testing.T) {
	h := loop.Restricted(loop.Thin(5))
	fetched, freed := 0, make(chan struct{}, 100)
	var early loop.Logs
	for i := range int64(100) {
		value := &late{&fetched, float64(i), nil}
		runtime.SetFinalizer(value, func(*late) { freed <- struct{}{} })
		var logs loop.Logs
		logs.Set(loop.Losses, "loss", value)
		h.Commit(at(i+1), logs, 1)
		if i == 0 {
			for _, logs := range h.Rows() {
				early = logs
			}
		}
	}
	runtime.GC()
	for range 90 {
		<-freed // at the latest when all but the bound are gone; a value that is held would hang the test
	}
	require.Zero(t, fetched)
	_, err := early.Float("loss")
	require.EqualError(t, err, "loop: losses.loss: the history dropped it before it was read")
}

func TestThin_memoryIsFlat(t *testing.T) {
	h := loop.Restricted(loop.Thin(1000))
	fill := func(n int64) uint64 {
		for i := range n {
			logs := metric("loss", float64(i))
			if i%500 == 0 {
				logs.Metric("rare", 1)
			}
			h.Commit(at(i), logs, 1)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := fill(2000)
	after := fill(200_000)
	require.Less(t, after, before+128<<10)
	t.Logf("heap after 2,000 rows %d kB, after 202,000 rows %d kB", before>>10, after>>10)
}
