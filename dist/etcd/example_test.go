package etcd_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/dist/etcd"
)

// A job whose processes find each other by an etcd in rank 0; xla.WithStore takes the store.
func ExampleEmbed() {
	ctx := context.Background()
	job, err := dist.Join(ctx)
	if err != nil {
		log.Fatal(err)
	}
	store, err := etcd.Embed(ctx, job)
	if err != nil {
		log.Fatal(err)
	}
	if job.Rank() == 0 {
		if err := store.Put(ctx, "address", []byte("10.0.0.1:7000")); err != nil {
			log.Fatal(err)
		}
	}
	address, err := store.Get(ctx, "address")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(address))
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}
	if err := job.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: 10.0.0.1:7000
}
