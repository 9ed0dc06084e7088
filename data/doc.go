// Package data holds training data, and divides it into batches.
//
// An [Array] is a flat slice with dimensions, a [Field] an array with a name, a [Set] fields over the same examples.
// [Set.Batches] returns a sequence of batches, iter.Seq2[B, error], for these functions:
//
//	change             [Map], [ParallelMap], [Filter], [Zip]
//	length and order   [Take], [Repeat], [Passes], [Interleave], [ShuffleBuffer], [Shard]
//	batches of items   [Rebatch], [Chunk], [Window], [Buckets], [PadSequences], [PackSequences]
//	cost               [Prefetch], [Cache]
//
// Numbers like n, depth and workers must be at least 1, those of [Take] 0 or more. Subpackages read files.
//
// # Positions
//
// Order and augmentation depend only on a seed and the position, the number of yielded batches (loop.Elapsed.Steps),
// from which a resumed run continues.
//
// Pass the [Batches] of a set or a [Resident] to a run directly. For a pipeline over a set, pass loop.From, for an
// evaluation with [Batches.WholeFrom]:
//
//	loop.From(func(position int64) iter.Seq2[data.Batch, error] {
//		batches := set.Batches(32, data.Shuffle(0)).From(position)
//		return data.Prefetch(data.Map(batches, images.Augment(1, "x", images.FlipHorizontal())), 4)
//	})
//
// Its functions must yield one batch per batch; with one that combines k, start the set at k*position. Pass other
// pipelines, or streams from files, as a plain iterator, loop.Data: a resumed run skips earlier batches.
//
// Sequences that read an io.Reader can be iterated once, all others repeatedly.
package data
