// Package storetest tests implementations of [dist.Store]. A job's ranks call [Run] together; the job may have one
// process.
package storetest
