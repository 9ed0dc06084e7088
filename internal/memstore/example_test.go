package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/memstore"
)

// A process that ends where COMMIT is written leaves the checkpoint before as the newest.
func ExampleFaulty() {
	ctx, memory := context.Background(), new(memstore.Memory)
	save := func(store checkpoint.Store, step checkpoint.Step) error {
		folder, err := checkpoint.OpenStore(ctx, store, "runs", checkpoint.Options{})
		if err != nil {
			return err
		}
		return folder.Save(ctx, step, checkpoint.Content{})
	}
	if err := save(memory, 100); err != nil {
		log.Fatal(err)
	}
	full := &memstore.Faulty{Store: memory, Before: func(c memstore.Call) error {
		if c.Op == memstore.OpPut {
			return errors.New("the store is full")
		}
		return nil
	}}
	fmt.Println(save(full, 200) != nil)

	folder, err := checkpoint.OpenStore(ctx, memory.Clone(), "runs", checkpoint.Options{}) // as another process finds it
	if err != nil {
		log.Fatal(err)
	}
	newest, err := folder.Newest(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(newest.Step)
	// Output:
	// true
	// 100
}
