// Package storetest tests implementations of [dist.Store]. The ranks of a job call [Run] together; the job may have one
// process.
package storetest
