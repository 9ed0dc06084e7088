package board

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

func at(step int64, seconds float64) loop.Elapsed {
	return loop.Elapsed{Steps: step, Samples: 8 * step, Time: time.Duration(seconds * float64(time.Second))}
}

func (r *Run) valuesOf(name string) (all []float64) {
	for _, p := range r.series[name].points {
		all = append(all, p.value)
	}
	return all
}

func TestRow_throughput(t *testing.T) {
	r := NewStore().Add("run")
	for i := range 5 {
		r.Row("rows", at(int64(i*10), float64(i)/2), []string{"losses.loss"}, []float64{1})
	}
	require.Equal(t, []float64{20, 20}, r.valuesOf("throughput.steps per second"), "each second one")
	require.Equal(t, []float64{160, 160}, r.valuesOf("throughput.examples per second"))
}

// A run that continues from an earlier step replaces the later values of its source alone.
func TestRow_rewinds(t *testing.T) {
	r := NewStore().Add("run")
	row := func(from string, step int64, v float64) {
		r.Row(from, at(step, float64(step)), []string{from + ".loss"}, []float64{v})
	}
	for i := range 4 {
		row("a", int64(i+1), float64(i))
		row("b", int64(i+1), float64(i))
	}
	row("a", 3, 9)
	require.Equal(t, []float64{0, 1, 9}, r.valuesOf("a.loss"))
	require.Equal(t, []float64{0, 1, 2, 3}, r.valuesOf("b.loss"))
	r.Rewind("b", 2)
	require.Equal(t, []float64{0}, r.valuesOf("b.loss"))
	// A name belongs to its first source.
	r.Row("b", at(9, 9), []string{"a.loss"}, []float64{100})
	require.Equal(t, []float64{0, 1, 9}, r.valuesOf("a.loss"))
}

func TestRun_state(t *testing.T) {
	store := NewStore()
	r := store.Add("run")
	nan := math.NaN()
	r.Describe(func(i *Info) { i.Status, i.Rate = "running", &nan })
	r.Row("rows", at(1, 1), []string{"other.x", "metrics.m", "losses.loss"}, []float64{1, 2, math.Inf(1)})
	r.Numbers("process", []string{"resources.memory"}, []float64{5})
	s := r.state()
	var names []string
	for _, of := range s.Series {
		names = append(names, of.Name)
	}
	require.Equal(t, []string{"losses.loss", "metrics.m", "other.x", "resources.memory"}, names)
	require.Equal(t, seriesState{"losses.loss", 1, 1, "+Inf"}, s.Series[0])
	require.Nil(t, s.Rate)
}

func TestRun_keepsTheNewestLinesAndSamples(t *testing.T) {
	r := NewStore().Add("run")
	r.Log(strings.Repeat("line\n", mostLines) + "last\r\n" + strings.Repeat("x", 2*longestLine) + "\xff")
	require.Len(t, r.lines, mostLines)
	require.Equal(t, 2, r.cut)
	require.Equal(t, "last", r.lines[mostLines-2].text)
	require.Equal(t, strings.Repeat("x", longestLine)+"…", r.lines[mostLines-1].text)
	for i := range mostSamples + 3 {
		r.Show(Sample{Step: int64(i)})
	}
	require.Len(t, r.samples, mostSamples)
	require.Equal(t, int64(3), r.samples[0].Step)
	require.Equal(t, mostSamples+3, r.shown)
}
