package loop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
)

// With different clocks and a fault in one member, all members make the same steps, none waits without end (the test
// would deadlock), and the others name the member with the fault.
func TestJob_agrees(t *testing.T) {
	seen := map[string]int{}
	for seen["programs"] < modelPrograms {
		rapid.Check(t, func(t *rapid.T) {
			p := drawProgram(t)
			if oneIn(t, 4, "own fault") && len(p.sizes) > 0 {
				p.fault, p.faultAt = pick(t, []string{"ends", "larger", "cancel", "error", "hang"}, "own fault"), evenly(t, len(p.sizes)-1, "own fault at")
			}
			n, seed := 2+evenly(t, 2, "members"), 1+uint64(evenly(t, 1000, "seed"))
			culprit := evenly(t, n-1, "culprit")
			rapid.SyncTest(t, func(t *rapid.T) {
				checkMembers(t, runMembers(p, n, func(rank int) bool { return rank == culprit }, seed, true, true), culprit, seen)
			})
			seen["programs"]++
		})
	}
	for _, what := range []string{"blocks", "data ended", "until reached", "stopped", "cancelled", "failed", "uneven", "samples", "rank", "stopped by another"} {
		require.Positive(t, seen[what], "no program had this: %s", what)
	}
	t.Logf("job: %v", seen)
}

func checkMembers(t require.TestingT, runs []*memberRun, culprit int, seen map[string]int) {
	c := runs[culprit]
	seen[c.result.Reason.String()]++
	if c.err != nil && strings.Contains(c.err.Error(), "not at the same place") { // one stopped within a block
		for _, r := range runs {
			require.Error(t, r.err) // the same, or the reason that ends the run at this border
		}
		require.True(t, slices.ContainsFunc(c.tasks, func(p part) bool { return p.block > 1 && p.does == "stop" }), "%v; %v; %v; %v; %s at %d", c.err, runs[(culprit+1)%len(runs)].err, c.tasks, c.watchers, c.fault, c.faultAt)
		seen["apart"]++
		return
	}
	var witness *memberRun
	for _, r := range runs {
		seen["blocks"] += r.blocks
		require.Equal(t, c.err == nil, r.err == nil, "rank %d: %v; rank %d: %v", culprit, c.err, r.rank, r.err)
		if c.err != nil && r != c {
			text := r.err.Error()
			switch {
			case strings.HasPrefix(text, fmt.Sprintf("loop: rank %d: ", culprit)):
				seen["rank"]++
				var ranked *loop.RankError
				require.ErrorAs(t, r.err, &ranked)
				require.Equal(t, culprit, ranked.Rank)
			case strings.Contains(text, "must have the same number of batches"):
				seen["uneven"]++
			case strings.Contains(text, "must count the same number of samples"):
				seen["samples"]++
			default: // all meet it, unless one failed before
				require.True(t, strings.HasPrefix(c.err.Error(), text) || strings.Contains(text, "all tasks had a turn"), "%v; %v", c.err, text)
			}
		}
		if r == c && c.err != nil {
			continue // it may have failed in the midst of a turn
		}
		if witness == nil {
			witness = r
		}
		require.Equal(t, witness.outcome.state, r.outcome.state)
		require.Equal(t, witness.result.Elapsed, r.result.Elapsed)
		require.Equal(t, witness.result.Reason, r.result.Reason)
		require.Equal(t, witness.trace, r.trace)
		if r.result.Stop != nil && r != c {
			require.ErrorIs(t, r.result.Stop, loop.ErrStop)
			if strings.Contains(r.result.Stop.Error(), "rank ") {
				seen["stopped by another"]++
			}
		}
	}
}
