// Package gocloud keeps checkpoints in the object stores of gocloud.dev/blob, such as S3, Google Cloud Storage and
// Azure.
//
//	import _ "gocloud.dev/blob/s3blob" // for s3:// addresses
//
//	bucket, err := blob.OpenBucket(ctx, "s3://models?region=eu-west-1")
//	folder, err := checkpoint.OpenStore(ctx, gocloud.Store{Bucket: blob.PrefixedBucket(bucket, "run-7/")}, "s3://models/run-7", checkpoint.Options{})
package gocloud
