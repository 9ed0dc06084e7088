package dist_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lazo-ml/lazo/dist"
)

// Without a launcher the job is this process; under mpirun, srun or `lazo run` the same program is one of several.
func ExampleJoin() {
	job, err := dist.Join(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	stop := []int64{0} // 1: this rank wants to end
	if err := job.Agree(stop); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("rank %d of %d, stop %d\n", job.Rank(), job.Size(), stop[0])
	if err := job.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: rank 0 of 1, stop 0
}
