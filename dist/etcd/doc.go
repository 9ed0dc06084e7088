// Package etcd keeps in etcd what the processes of a job leave for each other ([dist.Store]), for plugins whose
// processes find each other by keys and values. It is a module of its own, so that only its users get its dependencies.
//
// A job has a store without it ([dist.Job.Store]). This one is for those whose clusters have an etcd ([Open]), and want
// to see there what their jobs do, or who would rather trust its server than lazo's ([Embed]):
//
//	job, err := dist.Join(ctx)
//	…
//	store, err := etcd.Open(ctx, job, clientv3.Config{Endpoints: []string{"https://etcd:2379"}, TLS: credentials})
//	…
//	runtime, err := xla.Open(ctx, xla.CUDA, xla.Across(job), xla.WithStore(store))
//
// Close the runtime first, then the store, then the job, on all ranks. Keys begin with lazo/JOB/ATTEMPT/ and a random
// word, and are bound to a lease that rank 0 keeps alive: those of a job that died vanish within a minute.
package etcd
