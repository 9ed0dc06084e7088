// Package files reads training data from files of fixed formats: IDX as of [MNIST], and TFRecord with tf.train.Example
// records. Package data/tables reads CSV, data/images folders of images, the module data/parquet Parquet.
//
// The functions that begin with Read read an io.Reader, those with Open and Stream a file. Files may be
// gzip-compressed.
package files
