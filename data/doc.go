// Package data holds training data, reads it from files, and deals it out in batches.
//
// An [Array] is a flat slice with dimensions; a [Field] is an array with a name; a [Set] is fields over the same
// examples, which [Set.Batches] divides into batches, in order or shuffled. [Set.Split] and [Set.Folds] divide it, also
// by class or by group, and [Set.Map] changes its fields.
//
// [Batches.All] and [Batches.From] are sequences of batches, iter.Seq2[B, error]. All other functions take such
// sequences and return them, so that they compose:
//
//	change             [Map], [ParallelMap], [Filter], [Zip], [Augment], [OnField] with [Scaling] or [OneHot], [Select],
//	                   [Drop], [Rename]
//	length and order   [Take], [Repeat], [Passes], [Interleave], [ShuffleBuffer], [Shard] and [Set.Shard]
//	batches of items   [Rebatch], [Chunk], [Window], [Buckets], [Pad], [PadSequences]
//	cost               [Prefetch], [Cache]
//	looks              [Peek], [Checked]
//	ends               [Items] of a slice begin one, [Collect] makes a set of one
//
// Read from files: [OpenCSV], [StreamCSV], [OpenImageFolder], [TFRecordFile] with [ParseTFExample], [OpenIDX], [MNIST];
// [Digits] comes with the package, and Parquet files are read by the module data/parquet. Readers check lengths before
// they take memory; what a hostile file may cost stands with each.
//
// A table with texts, classes and missing values is a set, too, with a field for each column ([CSV.Texts], or Texts of
// data/parquet). A [Preparation], fitted on the training data, makes numbers of it, and of new rows in the same way.
//
// # Positions
//
// The order of a set and the draws of [Augment] are pure functions of a seed and of places. They are the same on each
// machine and in each run. So the position in any pipeline is one number: how many batches it has given. A run of
// package loop counts them (loop.Elapsed.Steps), and begins its data at this position. Nothing else is saved.
//
// The [Batches] of a set or of a [Resident] are data for a run. The run begins them at any position at no cost.
//
// A pipeline over a set is given to a run by loop.From, with a function that makes the pipeline from a position on:
//
//	loop.From(func(position int64) iter.Seq2[data.Batch, error] {
//		batches := set.Batches(32, data.Shuffle(0)).From(position)
//		return data.Prefetch(data.Map(batches, data.Augment(1, "x", data.FlipHorizontal())), 4)
//	})
//
// This is right if each function of the pipeline gives one batch for each one: Map, ParallelMap, Augment, Prefetch,
// Checked, OnField, [ShareOf]. If a function takes k batches for each one, as Chunk(k) does, the set begins at
// k*position.
//
// Any other pipeline is given to a run as a plain iterator, loop.Data. The run ranges over it from its start and leaves
// out the batches before its position. The pipeline makes these batches again. Filter, Zip, Interleave, ShuffleBuffer,
// Rebatch, Buckets, Shard, Repeat, Passes and streams from files need this.
//
// [TFRecords] and other functions that read from an io.Reader can be iterated once. All else can be iterated again,
// from its start.
package data
