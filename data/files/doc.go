// Package files reads training data from files of fixed formats: IDX as of [MNIST], and TFRecord with tf.train.Example
// records.
//
// Functions named Read read an io.Reader, Open and Stream a file. Files may be gzip-compressed.
package files
