// Package gocloud keeps checkpoints in the object stores of gocloud.dev/blob, like S3 ("s3://…", after an import of
// gocloud.dev/blob/s3blob), Google Cloud Storage and Azure.
package gocloud
