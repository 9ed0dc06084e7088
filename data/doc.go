// Package data holds training data, and divides it into batches.
//
// An [Array] is a flat slice with dimensions, a [Field] an array with a name, a [Set] fields over the same examples.
// [Set.Batches] returns sequences of batches, iter.Seq2[B, error]. These functions process them:
//
//	change             [Map], [ParallelMap], [Filter], [Zip], [OnField], as with [OneHot], [Select], [Drop], [Rename]
//	length and order   [Take], [Repeat], [Passes], [Interleave], [ShuffleBuffer], [Shard] and [Set.Shard]
//	batches of items   [Rebatch], [Chunk], [Window], [Buckets], [Pad], [PadSequences], [PackSequences]
//	cost               [Prefetch], [Cache]
//	looks              [Peek], [Checked]
//	ends               [Items], [Collect]
//
// Package data/tables reads and prepares CSV, data/images folders of images, data/files IDX, MNIST and TFRecord, the
// module data/parquet Parquet.
//
// # Positions
//
// Order and augmentation depend only on a seed and the position, the number of yielded batches (loop.Elapsed.Steps), at
// which a resumed run starts the data.
//
// Pass the [Batches] of a set or a [Resident] to a run directly. For a pipeline over a set, pass loop.From, for an
// evaluation with [Batches.WholeFrom] instead of From:
//
//	loop.From(func(position int64) iter.Seq2[data.Batch, error] {
//		batches := set.Batches(32, data.Shuffle(0)).From(position)
//		return data.Prefetch(data.Map(batches, images.Augment(1, "x", images.FlipHorizontal())), 4)
//	})
//
// Each function of such a pipeline must yield one batch per batch: Map, ParallelMap, Prefetch, Checked, [ShareOf]. With
// one that combines k batches, as Chunk(k), start the set at k*position. Pass any other pipeline, or streams from
// files, as a plain iterator, loop.Data: a resumed run iterates it from its start and skips the earlier batches.
//
// Functions that read from an io.Reader, such as files.ReadTFRecords, can be iterated once, all others repeatedly.
package data
