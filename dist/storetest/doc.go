// Package storetest has the tests that every [dist.Store] must pass: [Run], which the ranks of a job make together. A
// test of a store starts itself again as ranks, or is a job of one process:
//
//	job, err := dist.Join(t.Context())
//	require.NoError(t, err)
//	storetest.Run(t, job, store)
package storetest
