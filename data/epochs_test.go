package data

import (
	"iter"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
)

// firstOf returns the first n batches of a source, without their place in memory. [Take] would change what they know of
// their epoch.
func firstOf(t require.TestingT, source iter.Seq2[Batch, error], n int64) (all []Batch) {
	for b, err := range source {
		require.NoError(t, err)
		if all = append(all, b.alone()); int64(len(all)) == n {
			break
		}
	}
	return all
}

// The batches from a position are those of the whole data without the ones before, whatever the set and its options,
// and each batch knows its place in the epochs.
func TestBatches_fromAPositionIsTheTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.IntRange(1, 3).Draw(t, "processes")
		size := of * rapid.IntRange(1, 5).Draw(t, "rows of a process")
		n := of * rapid.IntRange(size/of, 20).Draw(t, "examples of a process")
		var options []Option
		perEpoch := int64(n / size)
		if rapid.Bool().Draw(t, "remainder") {
			options, perEpoch = append(options, Kept), int64((n+size-1)/size)
		}
		if rapid.Bool().Draw(t, "shuffle") {
			options = append(options, Shuffle(rapid.Uint64().Draw(t, "seed")))
		}
		if rapid.Bool().Draw(t, "shared") {
			options = append(options, Share(rapid.IntRange(0, of-1).Draw(t, "rank"), of))
		}
		set := numbered(t, n)
		var batches Batches
		switch kind := rapid.SampledFrom([]string{"set", "resident", "mapped"}).Draw(t, "kind"); kind {
		case "resident":
			batches = OnDevice(set).Batches(size, options...)
		case "mapped":
			mapped, err := set.MapBatches(Rename("x", "z"))
			require.NoError(t, err)
			batches = mapped.Batches(size, options...)
		default:
			batches = set.Batches(size, options...)
		}
		position := rapid.Int64Range(0, 4*perEpoch).Draw(t, "position")
		more := rapid.Int64Range(1, 2*perEpoch+1).Draw(t, "more")

		tail := firstOf(t, batches.From(position), more)
		require.Equal(t, firstOf(t, batches.From(0), position+more)[position:], tail)
		for i, b := range tail {
			at := position + int64(i)
			epoch, last, known := b.InEpoch()
			require.True(t, known)
			require.Equal(t, at/perEpoch, epoch)
			require.Equal(t, (at+1)%perEpoch == 0, last)
		}
		require.Equal(t, firstOf(t, batches.From(0), perEpoch), firstOf(t, batches.All(), -1), "All is the first epoch")
	})
}

func TestBatches_none(t *testing.T) {
	for _, source := range []iter.Seq2[Batch, error]{Batches{}.All(), Batches{}.From(0), Batches{}.From(7), Map(Batches{}.All(), copyOf)} {
		var errs []error
		for b, err := range source {
			require.Equal(t, Batch{}, b)
			errs = append(errs, err)
		}
		require.Len(t, errs, 1)
		require.EqualError(t, errs[0], "data: the Batches are the zero value: make them with Set.Batches")
	}
}

func copyOf(b Batch) (Batch, error) { return b.copied(), nil }

type stage struct {
	of    Batches
	stage func(iter.Seq2[Batch, error]) iter.Seq2[Batch, error]
}

// stages are functions over batches: those that give one batch for each one, and those that may leave out, join or
// reorder batches.
func stages(t *testing.T) (oneForOne, others map[string]stage) {
	set, err := New(Named("x", make([]float32, 14*4), 14, 2, 2, 1), Y(make([]int32, 14), 14))
	require.NoError(t, err)
	mapped, err := set.MapBatches(copyOf)
	require.NoError(t, err)
	type sequence = iter.Seq2[Batch, error]
	of := set.Batches(4, Shuffle(1), Kept)
	by := func(f func(Batch) (Batch, error)) stage {
		return stage{of, func(s sequence) sequence { return Map(s, f) }}
	}
	asItIs := func(s sequence) sequence { return s }
	join := func(a, _ Batch) (Batch, error) { return a, nil }
	full := func(b Batch) bool { return b.Size == 4 }
	oneForOne = map[string]stage{
		"none":         {of, asItIs},
		"no remainder": {set.Batches(4), asItIs},
		"one batch":    {set.Batches(14), asItIs},
		"resident":     {OnDevice(set).Batches(4, Kept), asItIs},
		"mapped":       {mapped.Batches(4, Kept), asItIs},
		"shared":       {set.Batches(4, Kept, Share(1, 2)), asItIs},
		"on the host": {OnDevice(set).Batches(4, Kept), func(s sequence) sequence {
			return Map(s, Batch.OnHost)
		}},
		"map":          by(copyOf),
		"select":       by(Select("x")),
		"pad":          by(func(b Batch) (Batch, error) { return Pad(b, 4) }),
		"parallel map": {of, func(s sequence) sequence { return ParallelMap(s, 3, copyOf) }},
		"prefetch":     {of, func(s sequence) sequence { return Prefetch(s, 2) }},
		"checked":      {of, Checked},
		"cache":        {of, Cache[Batch]},
		"share of":     {of, func(s sequence) sequence { return ShareOf(s, 1, 2) }},
	}
	others = map[string]stage{
		"rebatch":         {of, func(s sequence) sequence { return Rebatch(s, 3, Kept) }},
		"rebatch, same":   {of, func(s sequence) sequence { return Rebatch(s, 4, Dropped) }},
		"rebatch, padded": {of, func(s sequence) sequence { return Prefetch(Rebatch(s, 5, Padded), 1) }},
		"filter":          {of, func(s sequence) sequence { return Filter(s, full) }},
		"take":            {of, func(s sequence) sequence { return Take(s, 3) }},
		"zip":             {of, func(s sequence) sequence { return Zip(s, Take(s, 3), join) }},
		"interleave":      {of, func(s sequence) sequence { return Interleave(1, s, s) }},
		"shuffle buffer":  {of, func(s sequence) sequence { return ShuffleBuffer(s, 3, 1) }},
		"shard":           {of, func(s sequence) sequence { return Shard(s, 0, 3) }},
	}
	return oneForOne, others
}

func TestInEpoch_knownAfterOneBatchForEachOne(t *testing.T) {
	rows, _ := stages(t)
	for name, row := range rows {
		perEpoch := len(firstOf(t, row.of.All(), -1))
		all := firstOf(t, row.stage(row.of.sequence(0, 3)), -1)
		require.Len(t, all, 3*perEpoch, name)
		for i, b := range all {
			epoch, last, known := b.InEpoch()
			require.True(t, known, name)
			require.EqualValues(t, i/perEpoch, epoch, name)
			require.Equal(t, (i+1)%perEpoch == 0, last, name)
		}
	}
}

func TestInEpoch_unknownElsewhere(t *testing.T) {
	_, rows := stages(t)
	for name, row := range rows {
		for _, b := range firstOf(t, row.stage(row.of.sequence(0, 3)), -1) {
			_, _, known := b.InEpoch()
			require.False(t, known, name)
		}
	}
	rebatch := rows["rebatch"]
	var epochs []int64
	for _, b := range firstOf(t, rebatch.stage(rebatch.of.sequence(0, 3)), -1) {
		epoch, last, _ := b.InEpoch()
		require.False(t, last)
		epochs = append(epochs, epoch)
	}
	require.Equal(t, []int64{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2}, epochs)
	_, last, known := Batch{Size: 1}.InEpoch()
	require.False(t, last || known, "made by hand")
	for _, ends := range []bool{true, false} {
		b := Batch{Size: 1}
		_, last, known = b.WithEnd(ends).InEpoch()
		require.True(t, known)
		require.Equal(t, ends, last)
		_, _, known = b.InEpoch()
		require.False(t, known, "the batch itself stays")
	}
}

// A run counts epochs where the batches know their end, and where they do not: those of a plain iterator end with it.
func TestInEpoch_ofARun(t *testing.T) {
	known, unknown := stages(t)
	rows := maps.Clone(known)
	maps.Copy(rows, unknown)
	for name, row := range rows {
		want := int64(2 * len(firstOf(t, row.stage(row.of.All()), -1)))
		each, pass := int64(len(firstOf(t, row.of.All(), -1))), int64(-1)
		sources := map[string]loop.Source[Batch]{"an iterator": loop.Data[Batch](func(yield func(Batch, error) bool) {
			pass++
			row.stage(row.of.sequence(pass*each, pass+1))(yield)
		})}
		if name == "none" {
			sources["the batches"] = row.of
		}
		for kind, source := range sources {
			var end loop.Elapsed
			for pass, err := range loop.Over(source, loop.Until(loop.Epochs(2))) {
				require.NoError(t, err, name)
				if end = pass.Elapsed; end.Steps > want {
					break
				}
			}
			require.Equal(t, []int64{want, 2}, []int64{end.Steps, int64(end.Epochs)}, "%s as %s", name, kind)
		}
	}
}
