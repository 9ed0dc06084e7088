// Package etcd is a [dist.Store] in etcd, for plugins whose processes find each other by keys and values. It is a
// separate module because of its dependencies.
//
// A job is a store itself ([dist.Job]). Use this one to see the job's keys in the cluster's etcd ([Open]), or for
// etcd's server ([Embed]); pass it to xla.WithStore.
//
// On all ranks, close the runtime first, then the store, then the job. Keys begin with lazo/JOB/ATTEMPT/ and a random
// word. Rank 0 renews their lease: a dead job's keys disappear within a minute.
package etcd
