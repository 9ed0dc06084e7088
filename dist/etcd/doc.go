// Package etcd is a [dist.Store] in etcd, for xla.WithStore: to see the job's keys in the cluster's etcd ([Open]), or
// for etcd's server instead of lazo's ([Embed]). It is a separate module because of its dependencies.
//
// On all ranks, close the runtime first, then the store, then the job. Keys begin with lazo/JOB/ATTEMPT/ and a random
// word. Rank 0 renews their lease: a dead job's keys disappear within a minute.
package etcd
