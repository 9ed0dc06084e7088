// Package data holds training data, reads it from files, and divides it into batches.
//
// An [Array] is a flat slice with dimensions. A [Field] is an array with a name. A [Set] has fields over the same
// examples. [Set.Batches] divides a set into batches, in order or shuffled. [Set.Split] and [Set.Folds] split it, also
// by class or by group. [Set.Map] changes its fields.
//
// [Batches.All] and [Batches.From] return sequences of batches, iter.Seq2[B, error]. All other functions take and
// return such sequences, so they compose:
//
//	change             [Map], [ParallelMap], [Filter], [Zip], [Augment], [OnField] with [Scaling] or [OneHot], [Select],
//	                   [Drop], [Rename]
//	length and order   [Take], [Repeat], [Passes], [Interleave], [ShuffleBuffer], [Shard] and [Set.Shard]
//	batches of items   [Rebatch], [Chunk], [Window], [Buckets], [Pad], [PadSequences]
//	cost               [Prefetch], [Cache]
//	looks              [Peek], [Checked]
//	ends               [Items] of a slice begin one, [Collect] makes a set of one
//
// Readers of files: [OpenCSV], [StreamCSV], [OpenImageFolder], [TFRecordFile] with [ParseTFExample], [OpenIDX],
// [MNIST]. [Digits] is part of the package. The module data/parquet reads Parquet. Readers check lengths before they
// allocate; each one documents its limit on memory.
//
// A table with texts, classes and missing values is a set with one field per column ([CSV.Texts], or Texts of
// data/parquet). A [Preparation], fitted on the training data, converts it and new rows to numbers.
//
// # Positions
//
// The order of a set and the draws of [Augment] depend only on a seed and on positions. They are the same on each
// machine and in each run. So the position in a pipeline is one number: how many batches it has yielded. A run of
// package loop counts them (loop.Elapsed.Steps) and saves nothing else about the data. A resumed run starts the data at
// this position.
//
// A run accepts the [Batches] of a set or of a [Resident] as data. Starting them at a position costs nothing.
//
// For a pipeline over a set, pass loop.From a function that makes the pipeline from a position on:
//
//	loop.From(func(position int64) iter.Seq2[data.Batch, error] {
//		batches := set.Batches(32, data.Shuffle(0)).From(position)
//		return data.Prefetch(data.Map(batches, data.Augment(1, "x", data.FlipHorizontal())), 4)
//	})
//
// This is correct if each function of the pipeline yields one batch per batch: Map, ParallelMap, Augment, Prefetch,
// Checked, OnField, [ShareOf]. If a function combines k batches into one, as Chunk(k) does, start the set at
// k*position.
//
// Pass any other pipeline as a plain iterator, loop.Data. The run iterates it from its start and skips the batches
// before its position. Filter, Zip, Interleave, ShuffleBuffer, Rebatch, Buckets, Shard, Repeat, Passes and streams from
// files need this.
//
// [TFRecords] and other functions that read from an io.Reader can be iterated once, all others repeatedly.
package data
