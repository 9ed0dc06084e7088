package checkpoint_test

import (
	"bytes"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

func TestRetention(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(-1)
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var list []checkpoint.Info
	for i, loss := range []float64{5, 3, nan, 1, 3, inf, 2} {
		list = append(list, checkpoint.Info{
			Step: checkpoint.Step(10 * (i + 1)), Time: day.Add(time.Duration(i) * 10 * time.Hour), Metrics: map[string]float64{"loss": loss},
		})
	}
	list = append(list, checkpoint.Info{Step: 80, Time: day.Add(70 * time.Hour)})
	type steps = []checkpoint.Step
	for _, c := range []struct {
		name  string
		rules []checkpoint.Retention
		want  steps
	}{
		{"none", nil, steps{10, 20, 30, 40, 50, 60, 70, 80}},
		{"last", []checkpoint.Retention{{Last: 2}}, steps{70, 80}},
		{"last of more than there are", []checkpoint.Retention{{Last: 9}}, steps{10, 20, 30, 40, 50, 60, 70, 80}},
		{"lowest: earlier of equals, not NaN, not -Inf", []checkpoint.Retention{{Best: 3, Metric: "loss"}}, steps{20, 40, 70}},
		{"highest", []checkpoint.Retention{{Best: 1, Metric: "loss", Mode: loop.Highest}}, steps{10}},
		{"highest of more than there are", []checkpoint.Retention{{Best: 9, Metric: "loss", Mode: loop.Highest}}, steps{10, 20, 40, 50, 70}},
		{"a metric that none has", []checkpoint.Retention{{Best: 3, Metric: "lost", Mode: loop.Lowest}}, nil},
		{"every 20 steps", []checkpoint.Retention{{EverySteps: 20}}, steps{10, 20, 40, 60, 80}},
		{"every 10 steps", []checkpoint.Retention{{EverySteps: 10}}, steps{10, 20, 30, 40, 50, 60, 70, 80}},
		{"every day", []checkpoint.Retention{{EveryTime: 24 * time.Hour}}, steps{10, 40, 60}},
		{"the last and the best", []checkpoint.Retention{{Last: 1, Best: 1, Metric: "loss"}}, steps{40, 80}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, checkpoint.Kept(c.rules, list)) })
	}
}

// Kept checkpoints are still kept after the others are removed. Otherwise the best or the oldest would be removed one
// by one.
func TestRetentionIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.Custom(func(t *rapid.T) checkpoint.Retention {
			n := func(name string) int { return rapid.IntRange(0, 5).Draw(t, name) }
			r := checkpoint.Retention{Last: n("last"), EverySteps: checkpoint.Step(n("steps")), EveryTime: time.Duration(n("time")) * time.Second}
			if r.Best = n("best"); r.Best > 0 {
				r.Metric, r.Mode = "m", rapid.SampledFrom([]loop.Mode{loop.Lowest, loop.Highest}).Draw(t, "mode")
			}
			return r
		}).Filter(func(r checkpoint.Retention) bool { return r != checkpoint.Retention{} })
		rules := rapid.SliceOfN(rule, 1, 3).Draw(t, "rules")
		var list []checkpoint.Info
		for i, m := range rapid.SliceOfN(rapid.IntRange(-3, 3), 0, 20).Draw(t, "list") {
			list = append(list, checkpoint.Info{Step: checkpoint.Step(i), Time: time.Unix(int64(i*i%17), 0), Metrics: map[string]float64{"m": float64(m)}})
		}
		first := checkpoint.Kept(rules, list)
		var rest []checkpoint.Info
		for _, s := range first {
			rest = append(rest, list[s])
		}
		require.Equal(t, first, checkpoint.Kept(rules, rest), "%v", rules)
	})
}

func TestSaveWarnsOfAMetricThatIsNotThere(t *testing.T) {
	var log bytes.Buffer
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{
		Keep: []checkpoint.Retention{{Last: 1, Best: 1, Metric: "lost", Mode: loop.Lowest}}, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	save(t, f, 1)
	require.Contains(t, log.String(), `keep="{Last: 1, Best: 1, Metric: \"lost\", Mode: lowest}" metrics=[loss]`)
}

func TestSaveOfAnEarlierStepIsKept(t *testing.T) {
	m := saved(t, 10, 20)
	f := openMem(t, m, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}})
	save(t, f, 11)
	require.Equal(t, []checkpoint.Step{11, 20}, steps(t, f))
	save(t, f, 12)
	require.Equal(t, []checkpoint.Step{12, 20}, steps(t, f))

	m = saved(t, 10, 15, 20)
	f = openMem(t, m, checkpoint.Options{Keep: []checkpoint.Retention{{Best: 1, Metric: "loss", Mode: loop.Highest}}})
	save(t, f, 11)
	require.Equal(t, []checkpoint.Step{10, 11, 20}, steps(t, f), "the best, the saved one, the newest")
}

// A rule that Open refuses keeps nothing, and does not panic.
func TestKept_ofARetentionThatIsRefused(t *testing.T) {
	list := []checkpoint.Info{{Step: 1}, {Step: 2}}
	for _, r := range []checkpoint.Retention{{}, {EverySteps: -1}, {EveryTime: -1}, {Best: -1, Metric: "loss"}, {Last: -1}, {Last: 1, Metric: "loss"}} {
		require.Equal(t, []bool{false, false}, r.Kept(list), r.String())
	}
}
