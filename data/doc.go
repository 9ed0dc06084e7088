// Package data holds training data, reads it from files, and deals it out in batches.
//
// An [Array] is a flat slice with dimensions; a [Field] is an array with a name; a [Set] is fields over the same
// examples, which [Set.Batches] deals out, in order or shuffled. [Set.Split] and [Set.Folds] divide it, also by class
// or by group, and [Set.Map] changes its fields.
//
// Everything behind that is a function from sequences to sequences, iter.Seq2[B, error], so that they compose:
//
//	change             [Map], [ParallelMap], [Filter], [Zip], [Augment], [OnField] with [Scaling] or [OneHot], [Select],
//	                   [Drop], [Rename]
//	length and order   [Take], [Repeat], [Passes], [Interleave], [ShuffleBuffer], [Shard] and [Set.Shard], [Discard]
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
// # Where a run was
//
// All orders and draws are pure functions of a seed and of places: the same on each machine and in each run. So a
// position in any pipeline is one number, that of the batches it has given, as loop.Elapsed.Steps counts them; it needs
// no other state on disk. A run that made n steps goes on with
//
//   - [Skip](n) at the set, at no cost, if every stage behind it gives one batch for one: Map, ParallelMap, Augment,
//     Prefetch, Checked, OnField, [Set.MapBatches].
//   - [Skip](n*k) for a stage that always takes k for one, as Chunk(k), or Rebatch to k times the size in a single epoch.
//   - [Discard](n) at the end, whatever the pipeline: the batches are made and thrown away. Filter, Interleave, Zip, ShuffleBuffer,
//     Buckets, Shard, Repeat, and streams from files need that.
//
// [TFRecords] and others that read from an io.Reader can be iterated once; all else can be iterated again, from its
// start.
package data
