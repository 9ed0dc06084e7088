package lookup_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/lookup"
	"github.com/lazo-ml/lazo/internal/records"
)

type entry [2]string

func key(e *entry) (collection, name string) { return e[0], e[1] }

func TestFind(t *testing.T) {
	list := []entry{{"losses", "loss"}, {"metrics", "accuracy"}, {"losses", "x.y"}, {"x", "y"}, {"metrics", "twice"}, {"outputs", "twice"}}
	for name, at := range map[string]int{"loss": 0, "losses.loss": 0, "accuracy": 1, "losses.x.y": 2, "x.y": 3, "outputs.twice": 5} {
		got, err := lookup.Find(list, key, name)
		require.NoError(t, err, name)
		require.Equal(t, at, got, name)
	}
	all := "losses.loss, metrics.accuracy, losses.x.y, x.y, metrics.twice, outputs.twice"
	for _, c := range []struct {
		list []entry
		name string
		is   error
		err  string
	}{
		{list, "twice", nil, `ambiguous name: "twice"; use one of: metrics.twice, outputs.twice`},
		{list, "acuracy", lookup.ErrNoEntry, `no such entry: "acuracy" (did you mean metrics.accuracy?); there are: ` + all},
		{list, "something", lookup.ErrNoEntry, `no such entry: "something"; there are: ` + all},
		{list, ".loss", records.ErrName, `malformed name: ".loss"; want name or collection.name, there are: ` + all},
		{nil, "loss", lookup.ErrNoEntry, `no such entry: "loss"; there are: none`},
	} {
		_, err := lookup.Find(c.list, key, c.name)
		require.EqualError(t, err, c.err)
		if c.is != nil {
			require.ErrorIs(t, err, c.is)
		}
	}
	many := make([]entry, 25)
	for i := range many {
		many[i] = entry{"c", fmt.Sprint("number", i)}
	}
	_, err := lookup.Find(many, key, "z")
	require.ErrorContains(t, err, "c.number19 and 5 more")
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = lookup.Find(list, key, "accuracy") }))
}
