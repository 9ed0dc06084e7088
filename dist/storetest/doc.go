// Package storetest tests implementations of [dist.Store]. The ranks of a job call [Run] together; the job may have one
// process:
//
//	job, err := dist.Join(t.Context())
//	require.NoError(t, err)
//	storetest.Run(t, job, store)
package storetest
