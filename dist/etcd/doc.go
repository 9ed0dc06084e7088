// Package etcd is a [dist.Store] in etcd, for plugins whose processes find each other by keys and values. It is a
// separate module because of its dependencies.
//
// A job is a store itself ([dist.Job]). Use this one to see the job's keys in the cluster's etcd ([Open]), or for
// etcd's server instead of lazo's ([Embed]):
//
//	job, err := dist.Join(ctx)
//	…
//	store, err := etcd.Open(ctx, job, clientv3.Config{Endpoints: []string{"https://etcd:2379"}, TLS: credentials})
//	…
//	runtime, err := xla.Open(ctx, xla.CUDA, xla.Across(job), xla.WithStore(store))
//
// On all ranks, close the runtime first, then the store, then the job. Keys begin with lazo/JOB/ATTEMPT/ and a random
// word. They have a lease that rank 0 renews, so a dead job's keys disappear within a minute.
package etcd
